"""Queries over graphs that a language model writes: what is asked, what is refused with a reason, what it costs."""

from __future__ import annotations

import json

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question
from clew.knowledge_base import registry
from clew.models import create_language_model
from film_world import films
from scripted import ScriptedServer

#: A question that clew's own models are not sure of.
BY_VARNHOLT = "Anything Ilse Varnholt was behind the camera for?"
DIRECTED = {"statements": ["#1 >> directed_by >> Ilse Varnholt"], "operation": "list", "property": ""}
LATEST = {"statements": [*DIRECTED["statements"], "highest #1.release_year"]}


def ask(store, *replies, question=BY_VARNHOLT) -> tuple[Answer, list[str]]:
    """Return the answer with a model that gives ``replies``, and what it was asked."""
    films(store)
    with ScriptedServer([each if isinstance(each, str) else json.dumps(each) for each in replies]) as server:
        method = registry.build_method("graph", store, llm=create_language_model(server.llm))
        answer = method.answer(Question(question), TrailRecorder())
        return answer.weigh(), [request.user for request in server.requests]


def test_a_model_is_asked_once_for_what_clew_is_not_sure_of(base):
    answer, asked = ask(base, DIRECTED)
    assert answer.way == "answer" and set(answer.values) == {"The Salt Orchard", "Low Water", "Glass Harvest"}
    assert answer.plan is not None and answer.plan.operation == "list"
    assert answer.plan.text == "#1 >> directed_by >> Ilse Varnholt; final answer: #1"
    # What proves it is shown, the schema is asked about, and the trail has the call.
    assert answer.evidence and answer.usage.calls == 1
    assert "directed_by" in asked[0] and BY_VARNHOLT in asked[0]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (DIRECTED | {"statements": ["#1 >> directed >> Ilse Varnholt"]}, "'directed'; it has 'directed_by'"),
        (DIRECTED | {"statements": ["#1 >> directed_by >> Ilse Varnhold"]}, "it has 'Ilse Varnholt'"),
        (DIRECTED | {"statements": ["#1 : movie", *DIRECTED["statements"]]}, "no type 'movie'"),
        (DIRECTED | {"statements": ["#1.length > 90"]}, "no property 'length'"),
        (DIRECTED | {"statements": ["#1 : film"]}, "no statement has 'Ilse Varnholt', which the question names"),
        (DIRECTED | {"statements": [*DIRECTED["statements"], "sorted by year"]}, "'sorted by year' says nothing"),
        (DIRECTED | {"statements": ["?film >> directed_by >> Ilse Varnholt"]}, "unknowns are written #1, #2"),
        (DIRECTED | {"property": "colour"}, "a property belongs to the operation value"),
        ("MATCH (f) RETURN f", "not the JSON that was asked for"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_and_asked_once_more(base, reply, told):
    answer, asked = ask(base, reply, DIRECTED)
    assert told in asked[1] and answer.way == "answer" and len(answer.values) == 3 and answer.usage.calls == 2


def test_a_query_that_stays_wrong_is_no_answer(base):
    wrong = DIRECTED | {"statements": ["#1 >> directed >> Ilse Varnholt"]}
    answer, asked = ask(base, wrong, wrong)
    assert answer.way != "answer" and len(asked) == 2


def test_a_number_of_the_question_is_not_left_out(base):
    question = "Anything Ilse Varnholt was behind the camera for, 1932 or so?"
    dated = DIRECTED | {"statements": [*DIRECTED["statements"], "#1.release_year = 1932"]}
    answer, asked = ask(base, DIRECTED, dated, question=question)
    assert "no statement has the 1932" in asked[1] and answer.values == ("Low Water",)


def test_that_nothing_meets_a_query_is_only_possible(base):
    empty = DIRECTED | {"statements": ["Ilse Varnholt >> directed_by >> #1"]}
    answer, asked = ask(base, empty, empty)
    assert answer.way == "perhaps" and "nothing in the graphs meets it" in asked[1]


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        ({"operation": "count"}, ("3",)),
        (LATEST | {"operation": "value", "property": "colour"}, ("green",)),
        ({"statements": ['#1 = "Low Water"', *DIRECTED["statements"]], "operation": "yes_no"}, ("Yes",)),
        ({"statements": ['#1 = "Ilse Varnholt"', "#1 >> directed_by >> Low Water"], "operation": "yes_no"}, ("No",)),
    ],
)  # fmt: skip
def test_counts_values_yes_and_no(base, fields, values):
    answer, _ = ask(base, DIRECTED | fields)
    assert answer.values == values and answer.way == "answer"


def test_a_model_may_say_that_the_graphs_cannot_be_asked(base):
    answer, asked = ask(base, DIRECTED | {"statements": []})
    assert len(asked) == 1 and answer.way != "answer"
