"""Trails: a retriever's own steps, and the step that stands for the rest of it."""

import time

from clew.core.trail import SectionsStep, TrailRecorder, retrieve_with_trail
from clew.core.types import Question, ShownStep


class Explorer:
    """Takes two steps that say how long they were."""

    def retrieve(self, question, k):
        return self.explore(question, k, TrailRecorder())

    def explore(self, question, k, trail):
        started = time.perf_counter()
        while time.perf_counter() - started < 0.01:
            pass
        trail.add(ShownStep("search", {"hits": 0}, seconds=time.perf_counter() - started))
        trail.add(SectionsStep(0, seconds=0.0))
        return []


def test_the_retrieve_step_has_only_the_time_of_no_other_step():
    seen = []
    record = TrailRecorder(on_step=seen.append)
    started = time.perf_counter()
    retrieve_with_trail(Explorer(), Question("q"), 3, record, query="q")
    whole = time.perf_counter() - started
    assert [step.name for step in record.steps] == ["search", "sections", "retrieve"] and seen == record.steps
    assert record.steps[-1].detail == {"query": "q", "hits": 0}
    assert 0.01 <= sum(step.seconds for step in record.steps) <= whole
