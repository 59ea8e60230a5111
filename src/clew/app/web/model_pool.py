"""The language models of a server, as its questions have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.core.errors import BudgetExceeded
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.knowledge_base import registry as catalog

if TYPE_CHECKING:
    from clew.app.web.settings import ModelChoice, Settings

_ADDRESS = re.compile(r"https?://[^,#]*#")


@dataclass(frozen=True, slots=True)
class LentModel:
    """A language model that is asked no more once ``stop`` says so: a step may be many calls.

    It is known by its model alone: what an answer says of who wrote it, and the steps of its trail, are read by
    people whom the address of an endpoint does not concern.
    """

    model: LanguageModel
    stop: Callable[[], bool]

    @property
    def name(self) -> str:
        """The name of the model inside, without an address."""
        return strip_address(self.model.name)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt. Raises BudgetExceeded where the question was stopped, ModelError."""
        if self.stop():
            raise BudgetExceeded("stopped before the language model was asked again")
        return [replace(one, model=strip_address(one.model)) for one in self.model.complete(prompts)]


def strip_address(name: str) -> str:
    """Return a model's name without the address of its endpoint, one model or one per role.

    >>> without_address("http://10.0.0.7:8000/v1#qwen"), without_address("read=openai:gpt-4o,guide=http://a/v1#b")
    ('qwen', 'read=openai:gpt-4o,guide=b')
    """
    return _ADDRESS.sub("", name)


class ModelPool:
    """Lends the models of a server, each question its own with the budget of one question.

    They are held while the server runs, so that weights and connections are there for all questions. Raises
    UsageError for one that cannot be used: whose key is not set, or whose price is not known where money is limited.
    """

    def __init__(self, settings: Settings) -> None:
        self._budget = settings.budget
        self._held = [self._made(one) for one in settings.models]

    def lend(self, chosen: ModelChoice | None, stop: Callable[[], bool]) -> LentModel | None:
        """Return a model that was chosen, for one question, until ``stop`` says so."""
        return None if chosen is None else LentModel(self._made(chosen), stop)

    def _made(self, chosen: ModelChoice) -> LanguageModel:
        from clew.models.wrappers import Budget

        most = self._budget
        limited = (most.calls, most.tokens, most.money) != (None, None, None)
        budget = Budget(most.calls, most.tokens, most.money) if limited else None
        return catalog.load_language_model(chosen.name, cache=True, budget=budget)
