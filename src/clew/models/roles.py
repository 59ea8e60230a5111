"""Different models for different roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.errors import UsageError
from clew.protocols import Completion, LanguageModel, Prompt

#: What models are asked for; :attr:`clew.protocols.Prompt.role`.
ROLES = ("guide", "select", "summarise", "read", "grade", "structure", "extract")


@dataclass(frozen=True, slots=True)
class RoleRouter:
    """Hands every prompt to the model of its role, or to ``default`` (None: there is none, and it fails)."""

    models: Mapping[str, LanguageModel]
    default: LanguageModel | None = None

    @property
    def name(self) -> str:
        """``guide=ollama:llama3.1,openai:gpt-4o``: parses back."""
        named = [f"{role}={model.name}" for role, model in sorted(self.models.items())]
        return ",".join([*named, *([self.default.name] if self.default else [])])

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order: one batch for each model. Raises ModelError."""
        chosen = [self._model(prompt.role) for prompt in prompts]
        completions: dict[int, Completion] = {}
        for model in {id(model): model for model in chosen}.values():
            mine = [index for index, one in enumerate(chosen) if one is model]
            replies = model.complete([prompts[index] for index in mine])
            completions.update(zip(mine, replies, strict=True))
        return [completions[index] for index in range(len(prompts))]

    def _model(self, role: str) -> LanguageModel:
        model = self.models.get(role, self.default)
        if model is None:
            raise UsageError(
                f"no language model for the role '{role}'", f"Name one: {role}=MODEL, or MODEL for all others"
            )
        return model
