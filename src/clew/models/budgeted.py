"""Stop before it costs too much."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.errors import BudgetExceeded, UsageError
from clew.models.prices import price
from clew.models.tokens import estimate_usage
from clew.protocols import Completion, LanguageModel, Prompt
from clew.types import Usage


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
