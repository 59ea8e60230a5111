"""Plans over graphs: how they are written, said and run, and that the one a question means is among the options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.models.encoders import OnnxEncoder, embedded_folder
from clew.models.plan_judge import create_plan_judge
from clew.questions.catalogue import GraphCatalogue
from clew.questions.names import find_names
from clew.questions.plans import (
    COUNT,
    VALUE,
    YES_NO,
    Comparison,
    Edge,
    GraphPlan,
    Kind,
    Rank,
    Same,
    explain_plan,
    run_plan,
    say_plan,
    type_unknowns,
)
from clew.questions.reading import PlanModel
from clew.questions.text import QuestionText
from clew.train.plan_data import Domain, PlanSource, fit_slots, read_plan, read_source
from misspelling import misspell

DATA = Path(__file__).with_name("data")

PLANS = [
    (GraphPlan((Edge("Andrew", ("reports to",), 1),)), '"Andrew" >> reports to >> #1; final answer: #1'),
    (
        GraphPlan((Kind(1, "person"), Edge(1, ("works in",), 2, "not", counted_from=1))),
        "#1 : person; not #1 >> works in >> #2; final answer: #1",
    ),
    (
        GraphPlan((Edge(2, ("works in",), 1, "at least 2", counted_from=1),)),
        "at least 2 #1 << works in << #2; final answer: #1",
    ),
    (
        GraphPlan((Kind(1, "dam"), Rank(1, True, "height", most=3))),
        "#1 : dam; 3 highest #1.height; final answer: #1",
    ),
    (
        GraphPlan((Kind(1, "dam"), Comparison(1, "built", "between", ("1950", "1979")))),
        "#1 : dam; #1.built between 1950 and 1979; final answer: #1",
    ),
    (
        GraphPlan((Same(1, "Andrew"), Edge(1, ("reports to",), "Nancy")), YES_NO),
        '#1 = "Andrew"; #1 >> reports to >> "Nancy"; final answer: #1',
    ),
]


@pytest.mark.parametrize(("plan", "triples"), PLANS)
def test_a_plan_is_written_as_typed_triples_that_read_back_as_the_plan(plan, triples):
    assert plan.triples == triples
    assert read_plan(triples, plan.operation) == plan.close_gaps()


def test_a_plan_is_run_exactly_as_it_reads(graph):
    def names(plan):
        return [entity.name for entity in graph.entities(run_plan(graph, plan))]

    assert names(GraphPlan((Edge("Andrew", ("reports to",), 1),))) == ["Nancy"]
    assert names(GraphPlan((Edge(1, ("reports to",), "Andrew"),))) == []
    assert names(GraphPlan((Edge(1, ("works in",), "Sales"), Edge(1, ("reports to",), 2)))) == [
        "Andrew",
        "Nancy",
    ]
    assert run_plan(graph, GraphPlan((Edge("Nobody", ("reports to",), 1),))) is None


def test_a_plan_is_said_in_words(graph):
    catalogue = GraphCatalogue.of_graph(graph)
    plan = GraphPlan((Edge(1, ("reports to",), "Nancy"),))
    assert say_plan(plan, type_unknowns(plan, catalogue)) == "what thing: what thing reports to Nancy"
    count = plan.ask(COUNT)
    assert say_plan(count, type_unknowns(count, catalogue)).startswith("how many things: ")
    known = GraphPlan((Same(1, "Andrew"), Edge(1, ("reports to",), "Nancy")), YES_NO)
    assert say_plan(known, type_unknowns(known, catalogue)) == "is it true: Andrew reports to Nancy"


@pytest.mark.parametrize(
    ("plan", "types", "words"),
    [
        (
            GraphPlan((Edge("Ann", ("worksIn",), 1),)),
            {1: ""},
            "each thing for which: Ann → works in → the thing",
        ),
        (
            GraphPlan((Edge(1, ("trained",), 2, "not", counted_from=1),)),
            {1: "pilot", 2: "pilot"},
            "each pilot for which: not: the pilot → trained → some other pilot",
        ),
        (
            GraphPlan(
                (Edge(1, ("owns",), 2), Edge(2, ("built by", "sold by"), 3), Edge(3, ("lives in",), "Olm"))
            ),
            {1: "firm", 2: "ship", 3: "ship"},
            "each firm for which: the firm → owns → some ship 2; this ship 2 → built by or sold by → some ship 3; "
            "this ship 3 → lives in → Olm",
        ),
        (
            GraphPlan(
                (Kind(1, "dam"), Rank(1, True, "height", most=3), Comparison(1, "built", ">", ("1950",)))
            ),
            {1: "dam"},
            "each dam for which: its height is among the 3 highest; built more than 1950",
        ),
        (
            GraphPlan((Edge(1, ("part of",), "Olm", repeated=True),), COUNT),
            {1: "town"},
            "how many there are of the type town for which: the town → part of, in any number of steps → Olm",
        ),
        (
            GraphPlan((Same(1, "Ann"), Edge(1, ("reports to",), "Bo")), YES_NO),
            {1: "person"},
            "whether: Ann → reports to → Bo",
        ),
        (GraphPlan((Same(1, "Ann"),), VALUE, "birthYear"), {1: "person"}, "the birth year of Ann"),
        (
            GraphPlan((Edge(1, ("lives in",), "Olm"), Same(1, "Ann", denied=True))),
            {1: "person"},
            "each person for which: the person → lives in → Olm; it is not Ann",
        ),
    ],
)
def test_a_plan_is_explained_to_the_person_who_asked(plan, types, words):
    assert explain_plan(plan, types) == words


@pytest.mark.parametrize(
    "misspelt", ["Who does Andrw report to?", "who does andrew report to", "Andrew's superior?"]
)
def test_names_are_found_in_other_letters_and_spellings(graph, misspelt):
    names = find_names(GraphCatalogue.of_graph(graph), QuestionText(misspelt))
    assert "Andrew" in {name.name for name in names}


def test_a_word_of_the_schema_is_hardly_a_name(tmp_path):
    """A large graph has nodes that are called as its relations are, and as people begin a question."""
    lines = [
        "head\trelation\ttail",
        "What?\tdirected by\tAda Lund",
        "actor\thas tag\tx",
        "Rain\tstarred actor\tBo",
    ]
    lines += [f"Film {number}\tstarred actor\tPerson {number}" for number in range(3000)]
    (tmp_path / "films.tsv").write_text("\n".join(lines))
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "films.tsv", name="films")
        catalogue = GraphCatalogue.of_graph(base.store.snapshot().graph("films"))
        question = QuestionText("What actor is in Rain?")
        assert {"What?", "actor", "Rain"} <= {name.name for name in find_names(catalogue, question)}
        scorer = PlanModel.of_arrays(create_plan_judge().arrays).names
        likely = {name.name for name in find_names(catalogue, question, scorer) if name.likeness > 0.5}
        assert likely == {"Rain"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "other", "floor"), [("kitchen", "hospital", 0.85), ("hospital", "kitchen", 0.85)]
)
def test_the_plan_that_a_question_means_is_among_the_options(domain, other, floor):
    """Questions of a graph that nothing was fitted to, one of ten words misspelt."""
    encoder = OnnxEncoder(embedded_folder("hops"))
    source, names = PlanSource(DATA / other), PlanModel.of_arrays(create_plan_judge().arrays).names
    with Domain(source, encoder) as known:
        scorer = fit_slots([known.slots(question, names) for question in read_source(source)])
    with Domain(PlanSource(DATA / domain), encoder) as asked:
        is_among = []
        for number, question in enumerate(read_source(PlanSource(DATA / domain))):
            misspelt = replace(question, question=misspell(question.question, number))
            is_among.append(asked.prepare(misspelt, names, scorer).right.any())
    assert len(is_among) == 60 and np.mean(is_among) >= floor
