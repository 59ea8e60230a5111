"""Wrappers of language models: retries, a budget, a different model for each role, and threads for many inputs.

The cache (:mod:`clew.models.cache`) and the recorder (:mod:`clew.models.cassette`) are wrappers too.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from clew.core.errors import BudgetExceeded, TimedOut, Unavailable, UsageError
from clew.core.protocols import Completion, LanguageModel, Prompt, context_of
from clew.core.types import Usage
from clew.models.costs import estimate_usage, price

Input = TypeVar("Input")
Output = TypeVar("Output")


def map_threads(function: Callable[[Input], Output], inputs: Sequence[Input], workers: int) -> list[Output]:
    """Return ``function`` of every input, in order, computed by at most ``workers`` threads.

    The first failure is raised once the running calls have ended; calls that have not begun are not made.
    """
    if len(inputs) <= 1 or workers == 1:
        return [function(item) for item in inputs]
    with ThreadPoolExecutor(min(workers, len(inputs))) as pool:
        futures = [pool.submit(function, item) for item in inputs]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


R = TypeVar("R")


class ModelAround:
    """A model around another, ``model``, with its name and context."""

    __slots__ = ()
    model: LanguageModel

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    @property
    def context(self) -> int | None:
        """The context of the model inside, in tokens."""
        return context_of(self.model)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often an unavailable endpoint is called: at most ``tries`` times, with no wait over ``longest_wait``
    seconds.

    The wait starts at ``first_wait`` seconds and doubles; up to half is added at random, so that callers who were
    refused together do not return together. An endpoint that names a time (``Retry-After``) is obeyed, unless the
    time is longer than ``longest_wait``. One that was too slow is not called again.
    """

    tries: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, function: Callable[[], R]) -> R:
        """Return what ``function`` returns. Raises what it raises, Unavailable only after the last try."""
        for attempt in range(1, self.tries):
            try:
                return function()
            except TimedOut:
                raise
            except Unavailable as error:
                wait = error.retry_after
                if wait is None:
                    doubled = self.first_wait * 2 ** (attempt - 1) * (1 + random.random() / 2)
                    wait = min(self.longest_wait, doubled)
                elif wait > self.longest_wait:
                    raise Unavailable(error.problem, f"It asks to wait {wait:g} seconds", wait) from error
                self.sleep(wait)
        return function()


@dataclass(frozen=True, slots=True)
class RetryingModel(ModelAround):
    """Retries each prompt on its own, ``workers`` at once, so that one refused prompt repeats no other."""

    model: LanguageModel
    policy: RetryPolicy = RetryPolicy()
    workers: int = 4

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        return map_threads(
            lambda prompt: self.policy.call(lambda: self.model.complete([prompt])[0]), prompts, self.workers
        )


@dataclass(slots=True)
class Budget:
    """A limit on what all models that share it may spend together: calls, tokens in and out, US dollars.

    None means no limit. ``spent`` is the usage of the calls that have ended.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    spent: Usage = field(default=Usage(), init=False)
    _reserved: dict[int, Usage] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def reserve(self, most: Usage) -> int:
        """Reserve the most that a batch may cost; return the number of the reservation.

        Raises BudgetExceeded where that would exceed a limit, together with what is spent and reserved.
        """
        with self._lock:
            total = sum(self._reserved.values(), self.spent) + most
            for unit, limit, value in (
                ("calls", self.calls, total.calls),
                ("tokens", self.tokens, total.tokens_in + total.tokens_out),
                ("dollars", self.money, total.money or 0.0),
            ):
                if limit is not None and value > limit:
                    raise BudgetExceeded(
                        f"the next call would exceed the budget: {value:g} of {limit:g} {unit}",
                        f"Calls so far: {self.spent.calls}",
                    )
            number = max(self._reserved, default=0) + 1
            self._reserved[number] = most
            return number

    def settle(self, number: int, cost: Usage) -> None:
        """Replace a reservation by what the batch did cost."""
        with self._lock:
            del self._reserved[number]
            self.spent += cost


class BudgetedModel(ModelAround):
    """Refuses a batch of prompts that may exceed ``budget``, before any of them is sent.

    The cost of a batch is not known in advance, so the most that it can cost is reserved (:func:`estimate_usage`: all
    its tokens, and replies of full length) and later replaced by what it did cost. Raises UsageError for a budget in
    money where no price is known.
    """

    def __init__(self, model: LanguageModel, budget: Budget) -> None:
        if budget.money is not None and price(model.name) is None:
            raise UsageError(
                f"a budget in money, but no price is known for '{model.name}'",
                "Give its price in a file named by CLEW_PRICES, or limit calls or tokens",
            )
        self.model = model
        self.budget = budget

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises BudgetExceeded and ModelError."""
        number = self.budget.reserve(estimate_usage(prompts, self.name))
        # A failed batch may have cost something, but nobody knows what: only its calls count.
        cost = Usage(calls=len(prompts))
        try:
            completions = self.model.complete(prompts)
            cost = sum((completion.usage for completion in completions), Usage())
        finally:
            self.budget.settle(number, cost)
        return completions


@dataclass(frozen=True, slots=True)
class RoleRouter:
    """Passes each prompt to the model of its role, or to ``default``; without a default, other roles are an error."""

    models: Mapping[str, LanguageModel]
    default: LanguageModel | None = None

    @property
    def name(self) -> str:
        """``guide=ollama:llama3.1,openai:gpt-4o``, which :func:`clew.models.parse_roles` parses back."""
        parts = [f"{role}={model.name}" for role, model in sorted(self.models.items())]
        return ",".join([*parts, *([self.default.name] if self.default else [])])

    @property
    def context(self) -> int | None:
        """The smallest context of its models, in tokens."""
        models = (*self.models.values(), self.default)
        return min((size for model in models if (size := context_of(model)) is not None), default=None)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order: one batch for each model. Raises ModelError, UsageError."""
        chosen = [self._model_for(prompt.role) for prompt in prompts]
        completions: dict[int, Completion] = {}
        for model in {id(model): model for model in chosen}.values():
            places = [place for place, other in enumerate(chosen) if other is model]
            replies = model.complete([prompts[place] for place in places])
            completions.update(zip(places, replies, strict=True))
        return [completions[place] for place in range(len(prompts))]

    def _model_for(self, role: str) -> LanguageModel:
        model = self.models.get(role, self.default)
        if model is None:
            raise UsageError(
                f"no language model for the role '{role}'", f"Name one: {role}=MODEL, or MODEL for all others"
            )
        return model
