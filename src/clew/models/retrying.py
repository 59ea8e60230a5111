"""Ask again, later, where that may help."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from clew.errors import Unavailable
from clew.models.pool import map_threads
from clew.protocols import Completion, LanguageModel, Prompt

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long: at most ``tries`` calls, and no wait over ``longest`` seconds.

    The wait doubles from ``first`` seconds, and up to half is added by chance, so that callers who were
    refused together do not come back together. An endpoint that says when (``Retry-After``) is obeyed; one
    that says "later than ``longest``" is not waited for.
    """

    tries: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, function: Callable[[], R]) -> R:
        """Return what ``function`` returns. Raises what it raises, Unavailable only in the end."""
        for attempt in range(1, self.tries):
            try:
                return function()
            except Unavailable as error:
                wait = error.retry_after
                if wait is None:
                    wait = min(self.longest_wait, self.first_wait * 2 ** (attempt - 1) * (1 + random.random() / 2))
                elif wait > self.longest_wait:
                    raise Unavailable(error.problem, f"It asks to wait {wait:g} seconds", wait) from error
                self.sleep(wait)
        return function()


@dataclass(frozen=True, slots=True)
class RetryingModel:
    """Retries each prompt by itself, ``workers`` at once: a refused one costs no other a second call."""

    model: LanguageModel
    policy: RetryPolicy = RetryPolicy()
    workers: int = 4

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        return map_threads(
            lambda prompt: self.policy.call(lambda: self.model.complete([prompt])[0]), prompts, self.workers
        )
