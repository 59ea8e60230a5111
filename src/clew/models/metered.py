"""A ledger of what models cost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from clew.protocols import Completion, LanguageModel, Prompt
from clew.types import Usage

_step: ContextVar[str] = ContextVar("step", default="")


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Enter what is asked within this context under the step ``name``."""
    token = _step.set(name)
    try:
        yield
    finally:
        _step.reset(token)


@dataclass(frozen=True, slots=True)
class Entry:
    """One completion in the ledger."""

    role: str
    step: str
    model: str
    cached: bool
    usage: Usage


class Metered:
    """Writes down the usage of every completion, by role and by :func:`step`."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        completions = self.model.complete(prompts)
        entries = [
            Entry(prompt.role, _step.get(), made.model, made.cached, made.usage)
            for prompt, made in zip(prompts, completions, strict=True)
        ]
        with self._lock:
            self._entries += entries
        return completions

    def entries(self) -> list[Entry]:
        """Return the ledger, in the order of completion."""
        with self._lock:
            return list(self._entries)

    def total(self) -> Usage:
        """Return the usage of everything."""
        return sum((entry.usage for entry in self.entries()), Usage())

    def by_role(self) -> dict[str, Usage]:
        """Return the usage of each role."""
        return _sums((entry.role, entry.usage) for entry in self.entries())

    def by_step(self) -> dict[str, Usage]:
        """Return the usage of each step; ``""`` is what was asked outside any."""
        return _sums((entry.step, entry.usage) for entry in self.entries())


def _sums(pairs: Iterator[tuple[str, Usage]]) -> dict[str, Usage]:
    sums: dict[str, Usage] = {}
    for key, usage in pairs:
        sums[key] = sums.get(key, Usage()) + usage
    return sums
