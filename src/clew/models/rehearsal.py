"""A language model that is never called: it counts what a run would ask, so that the cost is known before."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.core.protocols import Completion, Prompt
from clew.core.types import Usage
from clew.models.costs import estimate_usage
from clew.models.names import parse_roles


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Stands for the model of ``name`` (or one per role) and adds up, per role, what it is asked.

    Its replies are the least that a prompt's schema allows: no structure, no quote, the first choice; of what
    is numbered (role ``select``), the first; of a few-shot prompt, what its last example says, so that a chain of
    triples is followed hop by hop. A run over them asks what a real run asks as long as no question depends on what
    an earlier reply says. Tokens out are counted as long as replies may get.
    Raises UsageError for a name that makes no sense; needs no key.
    """

    name: str
    usage_by_role: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return the least reply to each prompt, and note what asking for it would cost."""
        models = parse_roles(self.name)
        default = models.get("", models.get("read"))
        completions = []
        for prompt in prompts:
            model = str(models.get(prompt.role, default) or "")
            usage = estimate_usage([prompt], model)
            self.usage_by_role[prompt.role] += usage
            free = "1" if prompt.role == "select" else _exemplified(prompt.user)
            text = json.dumps(_least(prompt.schema)) if prompt.schema else free
            completions.append(Completion(text, usage, model))
        return completions


def _exemplified(user: str) -> str:
    r"""Return what the last example of a prompt says after the words that the prompt ends with.

    It is "" where there is none, and where it says more than a line.

    >>> _exemplified("Question: Who?\nAnswer: Ada\n\nQuestion: Where?\nAnswer:")
    'Ada'
    """
    before, line_end, label = user.rstrip().rpartition("\n")
    _, found, rest = before.rpartition(line_end + label)
    said = rest.partition("\n\n")[0].strip()
    return said if found and label.endswith(":") and "\n" not in said else ""


def _least(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that a JSON schema describes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "null")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            return {key: _least(value) for key, value in schema.get("properties", {}).items()}
        case "array":
            return []
        case "string":
            return ""
        case "boolean":
            return True
        case "integer" | "number":
            return 0
        case _:
            return None
