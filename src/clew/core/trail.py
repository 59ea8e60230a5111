"""Trails: what receives the steps of an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew.core.protocols import Retriever, Trail
from clew.core.types import Hit, Question, Step, Usage


@dataclass(slots=True)
class TrailRecorder:
    """A trail that keeps its steps.

    ``watch`` is called with each step as it happens, to stream it; ``stop`` is asked between steps whether
    the caller wants no more.
    """

    on_step: Callable[[Step], None] | None = None
    is_cancelled: Callable[[], bool] | None = None
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Keep ``step`` and show it to the watcher."""
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)

    def should_stop(self) -> bool:
        """Return whether the caller wants no more steps."""
        return self.is_cancelled is not None and self.is_cancelled()

    def usage(self) -> Usage:
        """Return the usage of all steps together."""
        return sum((step.usage for step in self.steps), Usage())


def explore_retriever(retriever: Retriever, question: Question, k: int, trail: Trail) -> list[Hit]:
    """Return at most ``k`` hits, best first; the steps of an :class:`~clew.core.protocols.Explorer` go to the
    trail."""
    explore = getattr(retriever, "explore", None)
    return list(explore(question, k, trail) if explore is not None else retriever.retrieve(question, k))


def retrieve_with_trail(
    retriever: Retriever, question: Question, k: int, trail: Trail, **detail: Any
) -> list[Hit]:
    """Return at most ``k`` hits, best first, and enter the retrieval into the trail.

    The steps of an explorer come first, with what each cost; the step "retrieve" that follows has ``detail``,
    the number of hits, the seconds that are in none of them, and no usage of its own.
    """
    started = time.perf_counter()
    record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
    hits = explore_retriever(retriever, question, k, record)
    told = sum(step.seconds for step in record.steps)
    seconds = max(0.0, time.perf_counter() - started - told)
    trail.add(Step("retrieve", {**detail, "hits": len(hits)}, tuple(hits), seconds=seconds))
    return hits
