"""Trails: what receives the steps of an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew.protocols import Retriever, Trail
from clew.types import Hit, Question, Step, Usage


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


def explored(retriever: Retriever, question: Question, k: int, trail: Trail) -> list[Hit]:
    """Return at most ``k`` hits, best first; the steps of an :class:`~clew.protocols.Explorer` go to the trail."""
    explore = getattr(retriever, "explore", None)
    return list(explore(question, k, trail) if explore is not None else retriever.retrieve(question, k))


def retrieved(retriever: Retriever, question: Question, k: int, trail: Trail, **detail: Any) -> list[Hit]:
    """Return at most ``k`` hits, best first, and enter the retrieval into the trail.

    The steps of an explorer come first, with what each cost; the step "retrieve" that follows has ``detail``,
    the number of hits, the seconds that are in none of them, and no usage of its own.
    """
    started = time.perf_counter()
    record = Recorder(watch=trail.add, stop=trail.stopped)
    hits = explored(retriever, question, k, record)
    told = sum(step.seconds for step in record.steps)
    seconds = max(0.0, time.perf_counter() - started - told)
    trail.add(Step("retrieve", {**detail, "hits": len(hits)}, tuple(hits), seconds=seconds))
    return hits
