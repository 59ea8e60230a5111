"""Language models behind an OpenAI-compatible endpoint, through the ``openai`` SDK."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clew.errors import BadCompletion
from clew.models.dialect import Dialect
from clew.models.endpoint import Endpoint, refusal_text
from clew.models.pool import map_threads
from clew.models.prices import cost_in_dollars
from clew.models.tokens import count_tokens, count_prompt_tokens
from clew.protocols import Completion, Prompt
from clew.types import Usage

if TYPE_CHECKING:
    import openai

#: Long enough for a small model on a slow machine to read thirty passages.
TIMEOUT = 180.0
WORKERS = 4
#: Statuses with which endpoints refuse a feature of a request.
_REFUSED = frozenset({400, 422, 501})


class OpenAIModel:
    """A model at ``endpoint``; ``workers`` calls run at once.

    What the endpoint refuses is left out and remembered for this object's life (:class:`Dialect`). Raises
    ModelError with the reason, Unavailable (a ModelError) where the same call may succeed later.
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
            reply, refusal = self._ask(dialect, prompt)
            if refusal is None:
                break
            dialect = refusal
        if dialect is not known:
            # Only now that it was accepted: a refusal may have had another reason.
            self._dialect = dialect
        return self._completion(reply, prompt, time.perf_counter() - started)

    def _ask(self, dialect: Dialect, prompt: Prompt) -> tuple[Any, Dialect | None]:
        """Return the reply, or the dialect to try instead."""
        import openai

        try:
            body = dialect.request_body(prompt)
            return self._client.chat.completions.create(model=self.endpoint.model, **body), None
        except openai.APIStatusError as error:
            other = dialect.step_down(f"{error.param} {refusal_text(error)}", prompt)
            if error.status_code not in _REFUSED or other is None:
                raise self.endpoint.explain_error(error, self.timeout) from error
            return None, other
        except openai.OpenAIError as error:
            raise self.endpoint.explain_error(error, self.timeout) from error
        except ValueError as error:  # the SDK lets the JSON error of a damaged body through
            raise self._no_endpoint(str(error)) from error

    def _completion(self, reply: Any, prompt: Prompt, seconds: float) -> Completion:
        choices = getattr(reply, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise self._no_endpoint(str(reply)[:100])
        message = choices[0].message
        text = cut_at_stop(message.content or getattr(message, "refusal", None) or "", prompt.stop)
        usage = self._usage(getattr(reply, "usage", None), prompt, text, seconds)
        return Completion(text, usage, self.name)

    def _usage(self, said: Any, prompt: Prompt, text: str, seconds: float) -> Usage:
        given, made = getattr(said, "prompt_tokens", None), getattr(said, "completion_tokens", None)
        estimated = not isinstance(given, int) or not isinstance(made, int)
        if not isinstance(given, int) or not isinstance(made, int):
            given, made = count_prompt_tokens(prompt), count_tokens(text)
        return Usage(1, given, made, seconds, cost_in_dollars(self.name, given, made), estimated)

    def _no_endpoint(self, saw: str) -> BadCompletion:
        return BadCompletion(
            f"{self.endpoint.url} did not answer as an OpenAI-compatible endpoint does: {saw}",
            "Does the address end as it should, usually in /v1?",
        )


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """Cut a text at the first stop string; some endpoints ignore them."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
