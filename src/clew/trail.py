"""Trails: what receives the steps of an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from clew.types import Step, Usage


@dataclass(slots=True)
class Recorder:
    """A trail that keeps its steps.

    ``watch`` is called with each step as it happens, to stream it; ``stop`` is asked between steps whether
    the caller wants no more.
    """

    watch: Callable[[Step], None] | None = None
    stop: Callable[[], bool] | None = None
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Keep ``step`` and show it to the watcher."""
        self.steps.append(step)
        if self.watch is not None:
            self.watch(step)

    def stopped(self) -> bool:
        """Return whether the caller wants no more steps."""
        return self.stop is not None and self.stop()

    def usage(self) -> Usage:
        """Return the usage of all steps together."""
        return sum((step.usage for step in self.steps), Usage())
