"""Plain questions over graphs: the readings of a question, with the plans that were run."""

from __future__ import annotations

import pytest

from clew.core.types import STATED_FROM
from clew.models.plan_judge import create_plan_judge
from clew.questions.catalogue import Label
from clew.questions.reading import QuestionReader
from clew.questions.slots import write_out
from clew.questions.text import QuestionText, is_misfit


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


def test_a_place_is_no_sure_answer_to_when(graph, reader):
    for question in ("When did Andrew start to work in Sales?", "When does Andrew report to Nancy?"):
        for reading in reader.read(question, [graph])[:1]:
            has_day = any(any(map(str.isdigit, value)) for value in reading.values)
            assert has_day or reading.probability < STATED_FROM


@pytest.mark.parametrize(
    ("question", "values", "misfit"),
    [
        ("Who built the Heron Queen?", ["1907"], True),
        ("Who built the Heron Queen?", ["Strake & Loam", "1907"], False),
        ("Whom does Vera report to?", [], False),  # nobody is an answer
        ("When was it built?", ["Oskell"], True),
        ("When was it built?", ["1907"], False),
        ("What was built in 1907?", ["1907"], False),
    ],
)
def test_a_number_is_nobody_and_a_place_no_day(question, values, misfit):
    assert is_misfit(QuestionText(question), values) == misfit


def test_where_graphs_alone_are_asked_a_question_is_likelier_about_them(graph, reader):
    for question in ("Who does Andrew report to?", "Who works in Sales?"):
        (beside, *_), (alone, *_) = (reader.read(question, [graph], alone=own) for own in (False, True))
        assert beside.plan == alone.plan and alone.probability >= beside.probability


def test_names_that_abbreviate_a_word_of_the_question_are_written_out():
    written = [write_out(Label.read(name), ["driver", "destination", "quantity"]).text for name in NAMES]
    assert written == ["driver name", "destination", "quantity", "dry", "drive", "rate"]


NAMES = ("drv_name", "dest", "qty", "dry", "drive", "rate")
