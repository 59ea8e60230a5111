"""A stand-in for a language model that counts what a run would ask, so that its cost is known before."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.core.protocols import Completion, Prompt
from clew.core.types import Usage
from clew.models import parse_roles
from clew.models.costs import estimate_usage


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Stands in for the model of ``name`` (or for one per role) and sums up the usage of the prompts of each role.

    Its replies are the smallest that a prompt's schema allows: no structure, no quote, the first choice. Of numbered
    candidates (role ``select``) it takes the first; to a few-shot prompt it replies as the last example does, so that
    a chain of triples is followed hop by hop. A rehearsed run asks what a real run asks, as long as no prompt depends
    on an earlier reply. Tokens out are counted for replies of the greatest length allowed. Raises UsageError for a
    name that makes no sense; needs no key.
    """

    name: str
    usage_by_role: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return the smallest reply to each prompt, and count what asking for it would cost."""
        models = parse_roles(self.name)
        default = models.get("", models.get("read"))
        completions = []
        for prompt in prompts:
            model = str(models.get(prompt.role, default) or "")
            usage = estimate_usage([prompt], model)
            self.usage_by_role[prompt.role] += usage
            if prompt.schema:
                text = json.dumps(_smallest_value(prompt.schema))
            else:
                text = "1" if prompt.role == "select" else _last_example_reply(prompt.user)
            completions.append(Completion(text, usage, model))
        return completions


def _last_example_reply(user: str) -> str:
    r"""Return the last example's reply to the words that the prompt ends with; "" without one, or for several lines.

    >>> _last_example_reply("Question: Who?\nAnswer: Ada\n\nQuestion: Where?\nAnswer:")
    'Ada'
    """
    examples, line_end, label = user.rstrip().rpartition("\n")
    _, separator, rest = examples.rpartition(line_end + label)
    reply = rest.partition("\n\n")[0].strip()
    return reply if separator and label.endswith(":") and "\n" not in reply else ""


def _smallest_value(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that a JSON schema describes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "null")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            return {key: _smallest_value(value) for key, value in schema.get("properties", {}).items()}
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
