"""Plain questions over graphs: the readings of a question, with the plans that were run."""

from __future__ import annotations

import pytest

from clew.core.types import STATED_FROM
from clew.models.plan_judge import create_plan_judge
from clew.questions.reading import QuestionReader


@pytest.fixture(scope="module")
def reader():
    return QuestionReader(create_plan_judge())


def test_a_question_is_read_with_its_direction(graph, reader):
    forward, *_ = reader.read("Who does Andrew report to?", [graph])
    backward, *_ = reader.read("Who reports to Nancy?", [graph])
    assert (forward.values, backward.values) == (("Nancy",), ("Andrew",))
    nobody, *_ = reader.read("Who reports to Andrew?", [graph])
    assert nobody.is_empty or nobody.probability < STATED_FROM  # the reverse is not stated as the answer
    assert all(0 <= reading.probability <= 1 for reading in (forward, backward, nobody))


def test_what_a_graph_cannot_say_is_not_likely(graph, reader):
    readings = reader.read("How long is a lease?", [graph])
    assert not readings or readings[0].probability < 0.5
