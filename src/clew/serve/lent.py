"""A language model as one question has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clew.errors import BudgetExceeded
from clew.protocols import Completion, LanguageModel, Prompt

_ADDRESS = re.compile(r"https?://[^,#]*#")


@dataclass(frozen=True, slots=True)
class Lent:
    """A language model that is asked no more once ``stop`` says so: a step may be many calls.

    It is known by its model alone: what an answer says of who wrote it, and the steps of its trail, are read by
    people whom the address of an endpoint does not concern.
    """

    model: LanguageModel
    stop: Callable[[], bool]

    @property
    def name(self) -> str:
        """The name of the model inside, without an address."""
        return without_address(self.model.name)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt. Raises BudgetExceeded where the question was stopped, ModelError."""
        if self.stop():
            raise BudgetExceeded("stopped before the language model was asked again")
        return [replace(one, model=without_address(one.model)) for one in self.model.complete(prompts)]


def without_address(name: str) -> str:
    """Return a model's name without the address of its endpoint, one model or one per role.

    >>> without_address("http://10.0.0.7:8000/v1#qwen"), without_address("read=openai:gpt-4o,guide=http://a/v1#b")
    ('qwen', 'read=openai:gpt-4o,guide=b')
    """
    return _ADDRESS.sub("", name)
