"""What an OpenAI-compatible endpoint understands, learnt from what it refuses.

Endpoints differ in few places: whether they take a JSON schema, only "some JSON", or neither; whether the
limit is called ``max_tokens`` or ``max_completion_tokens``; whether a temperature may be set; whether a
system message may be sent. We ask for the best, and step down where a refusal names or implies the feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from clew.prompts import schema_instruction
from clew.protocols import Prompt

_TOO_LONG = ("context length", "context_length", "context size", "too long", "maximum context")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to put a prompt to one endpoint."""

    structure: Literal["json_schema", "json_object", "text"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    system: bool = True

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        """Return the request for a prompt, without the model's name."""
        body: dict[str, Any] = {"messages": self._messages(prompt), self.limit: prompt.max_tokens}
        if self.temperature:
            body["temperature"] = prompt.temperature
        if prompt.stop:
            body["stop"] = list(prompt.stop)
        if prompt.schema is not None and self.structure == "json_schema":
            shape = {"name": prompt.role, "schema": prompt.schema, "strict": _closed(prompt.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif prompt.schema is not None and self.structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def step_down(self, complaint: str, prompt: Prompt) -> Dialect | None:
        """Return the dialect to try after a refusal, or None where the refusal is about something else."""
        said = complaint.casefold()
        if any(words in said for words in _TOO_LONG):
            return None
        if self.limit == "max_tokens" and "max_completion_tokens" in said:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in said:
            return replace(self, temperature=False)
        if self.system and prompt.system and "system" in said and "role" in said:
            return replace(self, system=False)
        if prompt.schema is not None and self.structure != "text":
            # Endpoints word this refusal in too many ways to wait for a certain one.
            return replace(self, structure="json_object" if self.structure == "json_schema" else "text")
        return None

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        system = prompt.system
        if prompt.schema is not None and self.structure != "json_schema":
            system = f"{system}\n\n{schema_instruction(prompt.schema)}".strip()
        if system and self.system:
            return [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]
        return [{"role": "user", "content": f"{system}\n\n{prompt.user}".strip()}]


def _closed(schema: Mapping[str, Any]) -> bool:
    """Return whether every object of a schema requires all its keys and no other: the ``strict`` form."""
    if "properties" in schema:
        properties = schema["properties"]
        exact = (
            set(schema.get("required", ())) == set(properties) and schema.get("additionalProperties") is False
        )
        return exact and all(_closed(inner) for inner in properties.values())
    return _closed(schema["items"]) if "items" in schema else schema.get("type") != "object"
