"""Ask again, later, where that may help."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from clew.core.errors import BudgetExceeded, Unavailable, UsageError
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.core.types import Usage
from clew.models.costs import estimate_usage, price
from clew.models.pool import map_threads

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
                    wait = min(
                        self.longest_wait, self.first_wait * 2 ** (attempt - 1) * (1 + random.random() / 2)
                    )
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


@dataclass(slots=True)
class Budget:
    """What may be spent at most, by all models that share it: calls, tokens in and out together, US dollars.

    None: no limit. ``spent`` is what the calls that have ended did cost.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    spent: Usage = field(default=Usage(), init=False)
    _under_way: dict[int, Usage] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def reserve(self, most: Usage) -> int:
        """Set aside what a batch may cost at most; return the number of the reservation.

        Raises BudgetExceeded where that, on top of what is spent and set aside, is over a limit.
        """
        with self._lock:
            total = sum(self._under_way.values(), self.spent) + most
            for what, limit, value in (
                ("calls", self.calls, total.calls),
                ("tokens", self.tokens, total.tokens_in + total.tokens_out),
                ("dollars", self.money, total.money or 0.0),
            ):
                if limit is not None and value > limit:
                    raise BudgetExceeded(
                        f"what the language model is to be asked next may bring the total to {value:g} {what}, "
                        f"over the budget of {limit:g}",
                        f"Calls so far: {self.spent.calls}",
                    )
            number = max(self._under_way, default=0) + 1
            self._under_way[number] = most
            return number

    def settle(self, number: int, cost: Usage) -> None:
        """Replace a reservation by what the batch did cost."""
        with self._lock:
            del self._under_way[number]
            self.spent += cost


class BudgetedModel:
    """Refuses a batch of calls that might exceed ``budget``, before any of them is made.

    What a batch will cost is not known before, so the most that it can cost is set aside (:func:`estimate`:
    all its tokens, and replies of full length) and corrected by what it did cost. Raises UsageError for a
    budget in money where no price is known.
    """

    def __init__(self, model: LanguageModel, budget: Budget) -> None:
        if budget.money is not None and price(model.name) is None:
            raise UsageError(
                f"a budget in money, but no price is known for '{model.name}'",
                "Give its price in a file named by CLEW_PRICES, or limit calls or tokens",
            )
        self.model = model
        self.budget = budget

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises BudgetExceeded and ModelError."""
        number = self.budget.reserve(estimate_usage(prompts, self.name))
        # A batch that fails may have cost something; nobody says what, so its calls count and no more.
        cost = Usage(calls=len(prompts))
        try:
            completions = self.model.complete(prompts)
            cost = sum((made.usage for made in completions), Usage())
        finally:
            self.budget.settle(number, cost)
        return completions


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


# MERGED: Stop before it costs too much.
# MERGED: Different models for different roles.
