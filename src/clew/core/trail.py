"""Trails: recording the steps of an answer, and retrieving with a trail."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.core.protocols import Retriever, Trail
from clew.core.steps import RetrieveStep
from clew.core.types import Hit, Question, Step, Usage


@dataclass(slots=True)
class TrailRecorder:
    """A trail that records its steps.

    ``on_step`` is called with each step as it happens, to stream it; ``is_cancelled`` is called between steps and
    returns whether the caller wants no more.
    """

    on_step: Callable[[Step], None] | None = None
    is_cancelled: Callable[[], bool] | None = None
    steps: list[Step] = field(default_factory=list)

    @classmethod
    def forwarding_to(cls, trail: Trail) -> TrailRecorder:
        """Return a recorder that passes each step on to ``trail`` and stops when its caller wants no more."""
        return cls(on_step=trail.add, is_cancelled=trail.should_stop)

    def add(self, step: Step) -> None:
        """Record ``step`` and pass it to ``on_step``."""
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)

    def should_stop(self) -> bool:
        """Return whether the caller wants no more steps."""
        return self.is_cancelled is not None and self.is_cancelled()

    def usage(self) -> Usage:
        """Return the total usage of all steps."""
        return sum((step.usage for step in self.steps), Usage())


def explore_retriever(retriever: Retriever, question: Question, k: int, trail: Trail) -> list[Hit]:
    """Return at most ``k`` hits, best first.

    The steps of an :class:`~clew.core.protocols.Explorer` are added to the trail; other retrievers have none.
    """
    explore = getattr(retriever, "explore", None)
    return list(explore(question, k, trail) if explore is not None else retriever.retrieve(question, k))


def retrieve_with_trail(
    retriever: Retriever,
    question: Question,
    k: int,
    trail: Trail,
    query: str | None = None,
    round: int | None = None,
) -> list[Hit]:
    """Return at most ``k`` hits, best first, and add the retrieval to the trail.

    The steps of an explorer come first, each with its own cost. The step "retrieve" follows, with ``query`` and
    ``round``, the number of hits, the seconds that no other step accounts for, and no usage.
    """
    started = time.perf_counter()
    recorder = TrailRecorder.forwarding_to(trail)
    hits = explore_retriever(retriever, question, k, recorder)
    accounted = sum(step.seconds for step in recorder.steps)
    seconds = max(0.0, time.perf_counter() - started - accounted)
    trail.add(RetrieveStep(query, round, len(hits), hits=tuple(hits), seconds=seconds))
    return hits
