"""The default method: graph questions go to the graph, all others to the documents, and the answer says why."""

from __future__ import annotations

import pytest

import clew
import film_world
from clew.core.types import RouteStep
from clew.testing import SAMPLE_DOCUMENTS, SAMPLE_QUESTION


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The sample documents and the film world in one base, without an encoder."""
    folder = tmp_path_factory.mktemp("router")
    for name, text in SAMPLE_DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        patch.setenv("CLEW_READER", "none")
        with clew.open(folder / "kb", create=True) as opened:
            opened.add([folder / name for name in SAMPLE_DOCUMENTS])
            film_world.films(opened.store)
            yield opened


def test_a_question_about_the_graph_is_answered_from_it(base):
    answer = base.ask("Who directed Low Water?")
    assert answer.values == ("Ilse Varnholt",) and answer.recipe == "graph"
    assert isinstance(answer.trail[0], RouteStep) and answer.trail[0].method == "graph"
    assert answer.route.startswith("From the graph: 'Low Water' is a node of 'films'")
    assert answer.to_dict()["route"] == answer.route
    written = [step.detail["written by"] for step in answer.trail if step.name == "triples"]
    assert written == ["clew's parser"]


def test_a_count_is_the_answer_of_how_many(base):
    assert base.ask("How many films did Ilse Varnholt direct?").text.startswith("3: ")


def test_a_property_is_read_by_a_chain(base):
    answer = base.ask("What colour is The Tin Parade?")
    assert answer.values == ("red",) and any(step.name == "chain" for step in answer.trail)


def test_a_question_about_documents_goes_to_them(base):
    answer = base.ask(SAMPLE_QUESTION)
    assert answer.recipe.startswith("kgp") and not answer.abstained
    assert answer.route == "From the documents: no name in the question is a node of a graph"
    assert answer.text == base.ask(SAMPLE_QUESTION, recipe="kgp").text


def test_where_the_graph_is_not_sure_the_documents_are_asked_and_the_readings_shown(base):
    answer = base.ask("Who produced Low Water?")
    assert answer.recipe.startswith("kgp") and "produced" in answer.route
    step = answer.trail[0]
    assert isinstance(step, RouteStep) and step.method == "documents" and step.alternatives


def test_a_question_that_is_restricted_goes_where_it_is_restricted_to(base):
    document = next(iter(SAMPLE_DOCUMENTS))
    assert base.ask("Who directed Low Water?", documents=[document]).recipe.startswith("kgp")
    unsure = base.ask("Who produced Low Water?", graphs=["films"])
    assert unsure.abstained and unsure.text.startswith("Not sure") and "--triples" in unsure.text


def test_a_base_without_graphs_decides_nothing(base):
    answer = base.ask("Who directed Low Water?", recipe="kgp")
    assert not any(isinstance(step, RouteStep) for step in answer.trail) and answer.route == ""
