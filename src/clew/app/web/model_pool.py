"""The language models of a server, lent to one question at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clew.app.web.settings import NO_MODEL, ModelChoice, Settings
from clew.core.errors import BudgetExceeded, unknown_name_error
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.knowledge_base import registry

_ADDRESS = re.compile(r"https?://[^,#]*#")


@dataclass(frozen=True, slots=True)
class LentModel:
    """A language model that is called no more once ``stop`` returns true, even within a step.

    Its name has no address: answers and trails name the model, and not everyone who reads them should know where the
    endpoint is.
    """

    model: LanguageModel
    stop: Callable[[], bool]

    @property
    def name(self) -> str:
        """The name of the wrapped model, without an address."""
        return strip_address(self.model.name)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt. Raises BudgetExceeded if the question was stopped, ModelError."""
        if self.stop():
            raise BudgetExceeded("stopped before the language model was asked again")
        completions = self.model.complete(prompts)
        return [replace(completion, model=strip_address(completion.model)) for completion in completions]


def strip_address(name: str) -> str:
    """Return a model's name without the address of its endpoint, one model or one per role.

    >>> without_address("http://10.0.0.7:8000/v1#qwen"), without_address("read=openai:gpt-4o,guide=http://a/v1#b")
    ('qwen', 'read=openai:gpt-4o,guide=b')
    """
    return _ADDRESS.sub("", name)


class ModelPool:
    """Lends the models of a server, to each question with a budget of its own.

    The pool keeps the models loaded while the server runs, so that questions share weights and connections. Raises
    UsageError for a model that cannot be used: its key is not set, or its price is unknown and money is limited.
    """

    def __init__(self, settings: Settings) -> None:
        self._budget = settings.budget
        self._loaded: list[LanguageModel] = []
        self.choices: tuple[ModelChoice, ...] = ()
        self.choose(settings.models)

    def choose(self, choices: Sequence[ModelChoice]) -> None:
        """Offer these models from now on, the first by default. Raises UsageError for one that cannot be used."""
        self._loaded = [self._load(choice) for choice in choices]
        self.choices = tuple(choices)

    def check(self, choice: ModelChoice) -> None:
        """Raise UsageError for a model that cannot be used."""
        self._load(choice)

    def choice(self, id: str | None) -> ModelChoice | None:
        """Return the model that a request names, None for no model; an ``id`` of None names the first. Raises
        UsageError."""
        if id == NO_MODEL or (id is None and not self.choices):
            return None
        if id is None:
            return self.choices[0]
        for choice in self.choices:
            if choice.id == id:
                return choice
        raise unknown_name_error("model", id, [NO_MODEL, *(choice.id for choice in self.choices)])

    def lend(self, choice: ModelChoice | None, stop: Callable[[], bool]) -> LentModel | None:
        """Return a model for one question, until ``stop`` returns true; None for no model."""
        return None if choice is None else LentModel(self._load(choice), stop)

    def _load(self, choice: ModelChoice) -> LanguageModel:
        from clew.models.wrappers import Budget

        limits = (self._budget.calls, self._budget.tokens, self._budget.money)
        budget = None if limits == (None, None, None) else Budget(*limits)
        return registry.load_language_model(choice.name, cache=True, budget=budget)
