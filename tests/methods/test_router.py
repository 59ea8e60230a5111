"""The default method: graph questions go to the graph, all others to the documents, and the answer says why."""

from __future__ import annotations

import numpy as np
import pytest

import clew
import film_world
from clew.core.trail import FillStep, TrailRecorder
from clew.core.types import Alternative, Answer, Plan, Question, Quote, RouteStep
from clew.knowledge_base import registry
from clew.methods.answering import describe_origin
from clew.methods.readers import NOT_FOUND
from clew.methods.router import Cost, Measured, beside_readings, join_answers, weigh_beside
from clew.methods.tables.method import open_tables
from clew.models import create_language_model
from clew.models.plan_judge import create_plan_judge
from clew.questions.plans import GraphPlan
from clew.questions.reading import Reading
from clew.questions.table_catalogue import TableCatalogue
from clew.questions.table_query import TableArrays
from clew.questions.table_reading import TableReader
from clew.testing import SAMPLE_DOCUMENTS, SAMPLE_QUESTION
from scripted import ScriptedServer


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


@pytest.mark.slow
def test_a_question_about_the_graph_is_answered_from_it(base):
    answer = base.ask("Who directed Low Water?")
    assert answer.values == ("Ilse Varnholt",) and answer.recipe == "graph"
    assert isinstance(answer.trail[0], RouteStep) and answer.trail[0].method == "graph"
    assert answer.route.startswith("From the graph: 'films' can be asked that: ")
    assert answer.to_dict()["route"] == answer.route
    written = [step.detail["written by"] for step in answer.trail if step.name == "triples"]
    assert written == ["clew's parser"]


def test_each_question_of_several_goes_its_own_way(base):
    answer = base.ask(f"Who directed Low Water, and {SAMPLE_QUESTION[0].lower()}{SAMPLE_QUESTION[1:]}")
    assert answer.text.startswith("Ilse Varnholt") and len(answer.values) == 2
    methods = [step.method for step in answer.trail if isinstance(step, RouteStep)]
    assert methods == ["parts", "graph", "documents"]
    assert answer.route.startswith(
        "From answers to its parts: it asks 2 questions: 'Who directed Low Water?'"
    )
    kinds = {hit.node.kind for hit in answer.evidence}
    assert "triple" in kinds and len(kinds) > 1
    assert describe_origin(answer.reader, (), ()) == "each part answered on its own, as the steps say"


@pytest.mark.slow
def test_a_count_is_the_answer_of_how_many(base):
    assert base.ask("How many films did Ilse Varnholt direct?").text == "3"


@pytest.mark.slow
def test_a_property_is_a_plan_too(base):
    answer = base.ask("What colour is The Tin Parade?")
    assert answer.values == ("red",) and answer.plan is not None and answer.plan.operation == "value"


@pytest.mark.slow
def test_a_question_about_documents_goes_to_them(base):
    answer = base.ask(SAMPLE_QUESTION)
    assert answer.recipe.startswith("kgp") and answer.way == "perhaps"
    assert answer.route.startswith("From the documents: it is not likely enough (")
    assert answer.text == base.ask(SAMPLE_QUESTION, recipe="kgp").text


def test_where_the_graph_is_not_sure_the_documents_are_asked_and_the_readings_shown(base):
    answer = base.ask("Who is behind Low Water?")
    step = answer.trail[0]
    assert isinstance(step, RouteStep) and step.method == "documents" and step.alternatives
    assert answer.way == "perhaps" and answer.plan is not None and answer.plan.kind == "graph"


def test_a_question_that_is_restricted_goes_where_it_is_restricted_to(base):
    document = next(iter(SAMPLE_DOCUMENTS))
    assert base.ask("Who directed Low Water?", documents=[document]).recipe.startswith("kgp")
    unsure = base.ask("Who produced Low Water?", graphs=["films"])
    assert unsure.way == "perhaps" and unsure.recipe == "graph"


def test_a_base_without_graphs_decides_nothing(base):
    answer = base.ask("Who directed Low Water?", recipe="kgp")
    assert not any(isinstance(step, RouteStep) for step in answer.trail) and answer.route == ""


def test_the_decision_says_what_it_and_the_alternatives_will_cost(base):
    step = base.ask("Who directed Low Water?").trail[0]
    assert isinstance(step, RouteStep) and step.cost is not None
    assert step.cost.startswith("no model call, about ")
    assert all("no model call, about " in alternative for alternative in step.alternatives or ())


def test_what_a_method_has_cost_takes_the_place_of_the_shipped_median():
    measured = Measured()
    assert measured.expect("graph", Cost(0, 9.0)) == Cost(0, 9.0)
    for seconds in (0.1, 0.2, 0.6):
        measured.observe("graph", seconds, 0)
    assert measured.expect("graph", Cost(0, 9.0)) == Cost(0, 0.2)


def test_the_inverse_relation_is_read(base):
    assert base.ask("Who was born in Vessby?", recipe="graph").values == ("Marit Solheim",)
    assert base.ask("Where was Marit Solheim born?", recipe="graph").values == ("Vessby",)


def test_a_spent_budget_ends_the_steps(base):
    class Stop(TrailRecorder):
        def should_stop(self):
            return len(self.steps) > 0

    router = registry.build_method("router", base.store)
    answer = router.answer(
        Question("What did the director of Low Water eat in the harbour of Osterby?"), Stop()
    )
    assert [s.method for s in answer.trail if isinstance(s, RouteStep)] == ["documents"]
    assert not any(isinstance(s, FillStep) for s in answer.trail)


def test_a_summary_goes_down_the_sections_where_there_is_a_model(base):
    with ScriptedServer(lambda request: "1") as server:
        router = registry.build_method("router", base.store, llm=create_language_model(server.llm))
        answer = router.answer(Question("Summarise what is known of the lighthouse."), TrailRecorder())
    step = answer.trail[0]
    assert isinstance(step, RouteStep) and step.method == "drill" and "model call" in (step.cost or "")
    assert base.ask("Summarise what is known of the lighthouse.").trail[0].method == "documents"


def test_a_question_of_a_table_is_answered_from_it_and_the_plan_is_its_query(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_ENCODER", "none")
    rows = "Vessel,Departed,Cargo\nAurora,2021-02-27,timber\nBorealis,2021-03-01,iron ore\nCastor,2021-03-05,grain\n"
    (tmp_path / "vessels.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "log.md").write_text("# Log\n\nThe Delta departed empty on 2021-03-09.\n", encoding="utf-8")
    with clew.open(tmp_path / "kb", create=True) as opened:
        opened.add([tmp_path / "vessels.csv"])
        answer = opened.ask("Which vessel carried grain?")
        step = answer.trail[0]
        assert isinstance(step, RouteStep) and step.method == "tables" and "select" not in step.reason
        assert (
            answer.plan is not None and answer.plan.text == "select vessel from vessels where cargo = 'grain'"
        )
        assert answer.way == "answer" and answer.values == ("Castor",) and 0.7 <= (answer.confidence or 0) < 1
        assert answer.route.startswith("From the tables: the table 'vessels' can be asked that")
        # A cell by row and column is a place in the outline, too; the table comes first.
        assert opened.ask("What is the cargo of Castor?").route.startswith("From the tables")
        # Nothing but tables: what is unlikely there is looked for nowhere else.
        plain = opened.ask("Who wrote the amount on the wall?")
        assert plain.way == "not_found" and plain.route.startswith("From the tables: there are no documents")
        opened.add([tmp_path / "log.md"])
        assert opened.ask("Which vessel carried grain?").values == ("Castor",)
        asked = opened.ask("Who wrote the amount on the wall?").trail[0]
        assert isinstance(asked, RouteStep) and asked.method == "documents"


@pytest.mark.usefixtures("embedded")
def test_where_no_row_of_a_table_fits_no_other_row_is_stated(tmp_path):
    rows = "Vessel,Departed,Cargo\nAurora,2021-02-27,timber\nBorealis,2021-03-01,iron ore\nCastor,2021-03-05,grain\n"
    (tmp_path / "vessels.csv").write_text(rows, encoding="utf-8")
    with clew.open(tmp_path / "kb", create=True) as opened:
        opened.add([tmp_path / "vessels.csv"])
        answer = opened.ask("Which vessel departed on 28 February 2021?")
        assert answer.way != "answer" or answer.empty
        reader = TableReader(create_plan_judge())
        catalogues = [TableCatalogue(TableArrays(table)) for table in open_tables(opened.store.snapshot())]
        first = reader.read("Which vessel departed on 28 February 2021?", catalogues)[0]
        assert not first.result.rows and "date '2021-02-28'" in first.plan.sql


def test_what_graphs_may_answer_stands_beside_what_documents_may_answer():
    from_documents = Answer("nine miles", reader="span", confidence=0.4)
    from_graphs = Answer("1919", reader="graph", confidence=0.5, others=(Answer("1920", confidence=0.2),))
    both = beside_readings(from_documents, from_graphs).weigh()
    assert [(each.text, each.confidence) for each in both.perhaps] == [
        ("1919", 0.5),
        ("nine miles", 0.4),
        ("1920", 0.2),
    ]
    nothing = Answer(NOT_FOUND, abstained=True)
    assert beside_readings(nothing, from_graphs).weigh().perhaps[0].text == "1919"
    assert beside_readings(from_documents, nothing) == from_documents


def reading(probability):
    return Reading(GraphPlan(()), "films", "", probability, np.empty(0, np.int64), ())


def test_documents_are_less_likely_to_answer_where_a_graph_is_likely_to():
    quote = Quote("passage", "a walk of ten miles", (0, 19))
    answer = Answer(
        "nine miles", reader="span", confidence=0.4, alternatives=(Alternative("ten", 0.2, quote),)
    )
    beside = weigh_beside(answer, [reading(0.33)])
    assert beside.text == "nine miles" and beside.confidence == pytest.approx(0.276, abs=0.01)
    assert beside.alternatives[0].confidence == pytest.approx(0.125, abs=0.01)
    # Where no graph is likely to be asked, where a table was computed with, or where nothing was weighed: as it is.
    assert weigh_beside(answer, []) == answer and weigh_beside(answer, [reading(0.05)]) == answer
    computed = Answer("9", confidence=0.4, plan=Plan("table", "SELECT 9", "sum"))
    assert weigh_beside(computed, [reading(0.9)]) == computed
    assert weigh_beside(Answer("yes"), [reading(0.9)]).confidence is None


PARTS = [("Who built it?", "Who built it?"), ("When?", "When was it built?")]


def test_a_part_without_an_answer_is_named() -> None:
    joined = join_answers(PARTS, [Answer("Strake", confidence=0.6), Answer("none", abstained=True)])
    assert joined.text == "Strake; not found: when?"
    assert not joined.abstained and joined.confidence == 0.6
    # A budget that ended after the first part leaves the second without an answer.
    assert join_answers(PARTS, [Answer("Strake")]).text == joined.text


def test_without_any_answer_the_whole_abstains() -> None:
    joined = join_answers(PARTS, [Answer("none", abstained=True)] * 2)
    assert joined.abstained and joined.text == "No answer that clew is sure of."


def test_long_answers_have_a_line_each_and_the_least_confidence_counts() -> None:
    long = "A sentence of a model, " * 8
    joined = join_answers(PARTS, [Answer(long, confidence=0.9), Answer("1907", confidence=0.4)])
    assert joined.text.splitlines() == [long, "1907"]
    assert joined.confidence == 0.4 and joined.values == (long, "1907")
