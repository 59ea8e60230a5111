"""Plain questions over several graphs, through links that the graphs themselves confirm."""

from __future__ import annotations

import pytest

import clew
from clew.models.plan_judge import create_plan_judge
from clew.questions.reading import QuestionReader
from clew.triples.linking import linked_graphs
from linked_worlds import BUILT, OWNED, OWNERS, YARDS, add_fleet, add_graph, write_nodes


@pytest.fixture
def base(tmp_path):
    with clew.open(tmp_path / "base", create=True) as opened:
        add_fleet(opened, tmp_path)
        yield opened


@pytest.fixture(scope="module")
def judge():
    return create_plan_judge()


def read(base, judge, text):
    snapshot = base.store.snapshot()
    graphs = [snapshot.graph(name) for name in snapshot.graphs()]
    return QuestionReader(judge, snapshot).read(text, graphs)


def across(readings):
    return [reading for reading in readings if "builtBy" in reading.triples and "owns" in reading.triples]


@pytest.mark.parametrize(
    "text",
    ["Which ships that Ann Tarrow owns were built by Orrin Yard?", "Orrin Yard ships owned by Ann Tarrow"],
)
def test_a_question_of_two_hops_over_two_graphs(base, text):
    answer = base.ask(text, recipe="graph")
    assert answer.values == ("Grey Petrel",)
    assert "the graphs 'owners' and 'yards', joined by confirmed links" in answer.formula
    # Each triple is quoted from the graph that has it.
    assert {(quote.node, quote.text) for quote in answer.quotes} == {
        ("owners:ann >> owns >> petrel", "Ann Tarrow >> owns >> Grey Petrel"),
        ("yards:y1 >> builtBy >> orrin", "Grey Petrel >> builtBy >> Orrin Yard"),
    }
    assert base.ask("", recipe="focus", chain=answer.plan.text).values == answer.values


def test_nodes_of_other_names_are_one(base, judge):
    first, *_ = across(read(base, judge, "Who owns the ships that Lock & Mast built?"))
    assert set(first.values) == {"Ann Tarrow", "Bo Lindqvist", "Cato Venn"}  # Sable is Hull 88


def test_directions_are_kept_and_an_empty_set_is_empty(base, judge):
    owners, *_ = across(read(base, judge, "Who owns the ships that Lock & Mast built?"))
    yards, *_ = across(read(base, judge, "Which yard built the ships of Bo Lindqvist?"))
    assert set(yards.values) == {"Orrin Yard", "Lock & Mast"} and owners.values != yards.values
    (empty,) = [
        reading
        for reading in read(base, judge, "Which ships of Ann Tarrow were designed by Tove Aske?")
        if "owns" in reading.triples and "designedBy" in reading.triples
    ][:1]
    assert empty.is_empty and empty.graph == "owners + yards"


def test_a_link_that_only_a_name_suggests_is_not_followed(base, judge):
    # Both graphs have a Curlew, and nothing says that it is the same one.
    readings = across(read(base, judge, "Which of Cato Venn's ships were built by Orrin Yard?"))
    assert readings and all(reading.values in ((), ("No",)) for reading in readings)


def test_a_link_that_is_removed_is_followed_no_longer(base, judge, tmp_path):
    text = "Which ships that Ann Tarrow owns were built by Orrin Yard?"
    assert across(read(base, judge, text))[0].values == ("Grey Petrel",)
    node = [(id, name, type, "", *year) for id, name, type, _, *year in YARDS[:1]]
    base.graphs.edit("yards", add=[write_nodes(tmp_path / "again.csv", node)])
    assert all(not reading.values or reading.values == ("No",) for reading in across(read(base, judge, text)))
    others = [(id, name, type, "", *year) for id, name, type, _, *year in YARDS[1:5]]
    base.graphs.edit("yards", add=[write_nodes(tmp_path / "others.csv", others)])
    assert not across(read(base, judge, text))


def test_what_one_graph_answers_alone_is_its_own(base, judge):
    reading, *_ = read(base, judge, "Which ships does Bo Lindqvist own?")
    assert (reading.graph, set(reading.values)) == ("owners", {"Sable", "Marl Hook"})
    reading, *_ = read(base, judge, "Who designed Sable?")  # the yards call it Hull 88
    assert (reading.graph, reading.values) == ("yards", ("Ilse Krahn",))
    assert '"Hull 88"' in reading.triples


def test_without_links_nothing_changes(tmp_path, judge):
    with clew.open(tmp_path / "apart", create=True) as base:
        add_graph(base, tmp_path, "owners", [node[:3] for node in OWNERS], OWNED)
        add_graph(base, tmp_path, "yards", [(*node[:3], "", *node[4:]) for node in YARDS], BUILT)
        snapshot = base.store.snapshot()
        graphs = [snapshot.graph(name) for name in snapshot.graphs()]
        for text in ("Which ships that Ann Tarrow owns were built by Orrin Yard?", "Who designed Hull 88?"):
            linked, alone = (QuestionReader(judge, each).read(text, graphs) for each in (snapshot, None))
            assert [(each.triples, each.graph, each.probability) for each in linked] == [
                (each.triples, each.graph, each.probability) for each in alone
            ]


def test_a_third_graph_that_adds_nothing_is_not_named(base, judge, tmp_path):
    add_graph(
        base, tmp_path, "harbours", [("h", "Grey Petrel", "boat", "Q901")], [("h", "berthedIn", "Skarholm")]
    )
    reading, *_ = across(read(base, judge, "Which ships that Ann Tarrow owns were built by Orrin Yard?"))
    assert (reading.graph, reading.values) == ("owners + yards", ("Grey Petrel",))


def test_graphs_that_are_too_large_are_read_apart_and_the_trail_says_so(base, monkeypatch):
    monkeypatch.setattr(linked_graphs, "MOST_JOINED", 10)
    answer = base.ask("Which ships does Bo Lindqvist own?", recipe="graph")
    (step,) = [step for step in answer.trail if step.name == "readings"]
    assert "too large" in step.apart and {reading.graph for reading in step.readings} <= {"owners", "yards"}
