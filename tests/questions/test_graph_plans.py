"""Plans over graphs: how they are written, said and run, and that the one a question means is among the options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.models.encoders import OnnxEncoder, embedded_folder
from clew.questions.catalogue import GraphCatalogue
from clew.questions.names import find_names
from clew.questions.plans import (
    COUNT,
    YES_NO,
    Comparison,
    Edge,
    GraphPlan,
    Kind,
    Rank,
    Same,
    run_plan,
    say_plan,
    type_unknowns,
)
from clew.questions.text import QuestionText
from clew.train.plan_data import Domain, fit_slots, misspell, read_domain, read_plan

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
    "misspelt", ["Who does Andrw report to?", "who does andrew report to", "Andrew's superior?"]
)
def test_names_are_found_in_other_letters_and_spellings(graph, misspelt):
    assert "Andrew" in {name.name for name in find_names(graph, QuestionText(misspelt))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "other", "floor"), [("kitchen", "hospital", 0.85), ("hospital", "kitchen", 0.85)]
)
def test_the_plan_that_a_question_means_is_among_the_options(domain, other, floor):
    """Questions of a graph that nothing was fitted to, one of ten words misspelt."""
    encoder = OnnxEncoder(embedded_folder("hops"))
    with Domain(DATA / other, encoder) as known:
        scorer = fit_slots([known.slots(question) for question in read_domain(DATA / other)])
    with Domain(DATA / domain, encoder) as asked:
        is_among = []
        for number, question in enumerate(read_domain(DATA / domain)):
            misspelt = replace(question, question=misspell(question.question, number))
            is_among.append(asked.prepare(misspelt, scorer).right.any())
    assert len(is_among) == 60 and np.mean(is_among) >= floor
