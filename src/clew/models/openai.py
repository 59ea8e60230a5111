"""Language models behind an OpenAI-compatible endpoint, called through the ``openai`` SDK.

Endpoints differ in a few features: whether they take a JSON schema, any JSON, or neither; whether the limit is called
``max_tokens`` or ``max_completion_tokens``; whether a temperature may be set; whether a system message may be sent. A
:class:`Dialect` begins with the best of each, and steps down where a refusal names or implies the feature.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import schema_instruction
from clew.core.protocols import Completion, Prompt
from clew.core.types import Usage
from clew.models.costs import cost_in_dollars, count_prompt_tokens, count_tokens
from clew.models.endpoint import Endpoint, refusal_text
from clew.models.wrappers import map_threads

if TYPE_CHECKING:
    import openai

_TOO_LONG = ("context length", "context_length", "context size", "too long", "maximum context")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features that one endpoint understands."""

    structure: Literal["json_schema", "json_object", "text"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    system: bool = True

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        """Return the body of a request for a prompt, without the model's name."""
        body: dict[str, Any] = {"messages": self._messages(prompt), self.limit: prompt.max_tokens}
        if self.temperature:
            body["temperature"] = prompt.temperature
        if prompt.stop:
            body["stop"] = list(prompt.stop)
        if prompt.schema is not None and self.structure == "json_schema":
            form = {"name": prompt.role, "schema": prompt.schema, "strict": _is_strict(prompt.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif prompt.schema is not None and self.structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def step_down(self, complaint: str, prompt: Prompt) -> Dialect | None:
        """Return the dialect to try after a refusal, None where the refusal is about something else."""
        text = complaint.casefold()
        if any(words in text for words in _TOO_LONG):
            return None
        if self.limit == "max_tokens" and "max_completion_tokens" in text:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in text:
            return replace(self, temperature=False)
        if self.system and prompt.system and "system" in text and "role" in text:
            return replace(self, system=False)
        if prompt.schema is not None and self.structure != "text":
            # Endpoints word this refusal in too many ways to recognise them.
            return replace(self, structure="json_object" if self.structure == "json_schema" else "text")
        return None

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        system = prompt.system
        if prompt.schema is not None and self.structure != "json_schema":
            system = f"{system}\n\n{schema_instruction(prompt.schema)}".strip()
        if system and self.system:
            return [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]
        return [{"role": "user", "content": f"{system}\n\n{prompt.user}".strip()}]


def _is_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether every object of a schema requires exactly its own keys, as ``strict`` demands."""
    if "properties" in schema:
        properties = schema["properties"]
        exact = (
            set(schema.get("required", ())) == set(properties) and schema.get("additionalProperties") is False
        )
        return exact and all(_is_strict(inner) for inner in properties.values())
    return _is_strict(schema["items"]) if "items" in schema else schema.get("type") != "object"


#: Long enough for a small model on a slow machine to read thirty passages.
TIMEOUT = 180.0
WORKERS = 4
#: HTTP statuses with which endpoints refuse a feature of a request.
_REFUSED = frozenset({400, 422, 501})


class OpenAIModel:
    """A language model at ``endpoint``; ``workers`` calls run at once.

    Features that the endpoint refuses are left out from then on (:class:`Dialect`). Raises ModelError with the
    reason, Unavailable (a ModelError) where the same call may succeed later.
    """

    def __init__(self, endpoint: Endpoint, *, workers: int = WORKERS, timeout: float = TIMEOUT) -> None:
        self.endpoint = endpoint
        self.workers = workers
        self.timeout = timeout
        self._dialect = Dialect()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Canonical name, such as ``openai:gpt-4o-mini``."""
        return self.endpoint.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        with self._lock:
            self._client  # noqa: B018 - made once, before the threads start
        return map_threads(self._complete, prompts, self.workers)

    @cached_property
    def _client(self) -> openai.OpenAI:
        return self.endpoint.connect(self.timeout, self)

    def _complete(self, prompt: Prompt) -> Completion:
        started = time.perf_counter()
        known = dialect = self._dialect
        while True:
            reply, refusal = self._send(dialect, prompt)
            if refusal is None:
                break
            dialect = refusal
        if dialect is not known:
            # Stored only once it was accepted, since a refusal may have had another reason.
            self._dialect = dialect
        return self._completion(reply, prompt, time.perf_counter() - started)

    def _send(self, dialect: Dialect, prompt: Prompt) -> tuple[Any, Dialect | None]:
        """Return the reply, or the dialect to try instead."""
        import openai

        try:
            body = dialect.request_body(prompt)
            return self._client.chat.completions.create(model=self.endpoint.model, **body), None
        except openai.APIStatusError as error:
            next_dialect = dialect.step_down(f"{error.param} {refusal_text(error)}", prompt)
            if error.status_code not in _REFUSED or next_dialect is None:
                raise self.endpoint.explain_error(error, self.timeout) from error
            return None, next_dialect
        except openai.OpenAIError as error:
            raise self.endpoint.explain_error(error, self.timeout) from error
        except ValueError as error:  # the SDK lets the JSON error of a damaged body through
            raise self._wrong_reply(str(error)) from error

    def _completion(self, reply: Any, prompt: Prompt, seconds: float) -> Completion:
        choices = getattr(reply, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise self._wrong_reply(str(reply)[:100])
        message = choices[0].message
        text = cut_at_stop(message.content or getattr(message, "refusal", None) or "", prompt.stop)
        usage = self._usage(getattr(reply, "usage", None), prompt, text, seconds)
        return Completion(text, usage, self.name)

    def _usage(self, reported: Any, prompt: Prompt, text: str, seconds: float) -> Usage:
        tokens_in = getattr(reported, "prompt_tokens", None)
        tokens_out = getattr(reported, "completion_tokens", None)
        estimated = not isinstance(tokens_in, int) or not isinstance(tokens_out, int)
        if not isinstance(tokens_in, int) or not isinstance(tokens_out, int):
            tokens_in, tokens_out = count_prompt_tokens(prompt), count_tokens(text)
        money = cost_in_dollars(self.name, tokens_in, tokens_out)
        return Usage(1, tokens_in, tokens_out, seconds, money, estimated)

    def _wrong_reply(self, reply: str) -> BadCompletion:
        return BadCompletion(
            f"{self.endpoint.url} did not answer as an OpenAI-compatible endpoint does: {reply}",
            "Does the address end as it should, usually in /v1?",
        )


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """Return a text up to the first stop string, since some endpoints ignore stop strings."""
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
