"""What a prompt is shown of a graph: whole where it is small, cut to the question where it is large."""

import json

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.types import Property
from clew.methods.focus.schema import SchemaLimits, describe_schema, question_phrases
from clew.store.store import Store
from clew.triples.linking.relations import GraphRelationLinker
from retrieve_encoders import WordEncoder


@pytest.fixture(scope="module")
def base(schemas):
    return schemas


@pytest.fixture(scope="module")
def graph(base):
    return base.snapshot().graph("films")


@pytest.mark.slow
def test_properties_with_their_counts_and_types(graph):
    assert graph.properties() == {
        "born": Property(1, 1, {"person": 1}, graph.rows(["films:David Lynch"])[0]),
        "colour": Property(2, 0, {"film": 2}, graph.rows(["films:Heat"])[0]),
        "release_year": Property(3, 3, {"film": 3}, graph.rows(["films:Eraserhead"])[0]),
    }


@pytest.mark.slow
def test_a_small_graph_is_shown_whole(graph):
    shown = describe_schema([graph], "Which film did David Lynch direct?")
    assert shown.text == (
        "Graph films, 6 nodes\n\n"
        "Node types (2):\n"
        "- film: 3 nodes, such as Blue Velvet; Eraserhead; Heat\n"
        "- person: 3 nodes, such as Al Pacino; David Lynch; Michael Mann\n\n"
        "Relations (2), as head type >> relation >> tail type:\n"
        "- film >> directed_by >> person: 3 edges, such as Blue Velvet >> directed_by >> David Lynch\n"
        "- film >> starred_actors >> person: 1 edge, such as Heat >> starred_actors >> Al Pacino\n\n"
        "Properties of nodes (3):\n"
        "- release_year of film: number, 3 values, such as 1977\n"
        "- colour of film: text, 2 values, such as blue\n"
        "- born of person: day, 1 value, such as 1946-01-20"
    )
    assert shown.summary == "films: 2 types, 2 relations, 3 properties" and str(shown) == shown.text


QUESTION = "Which horse won the race that is over two miles in length?"


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [None, WordEncoder("won", "race", "ridden")])
def test_a_large_graph_is_cut_to_the_question_and_says_so(base, encoder):
    graph = base.snapshot().graph("wide")
    shown = describe_schema(
        [graph], QUESTION, GraphRelationLinker(encoder), SchemaLimits(types=6, relations=9, properties=4)
    )
    lines = shown.text.splitlines()
    assert "Node types (6 of 402):" in lines and "Properties of nodes (4 of 201):" in lines
    assert "Relations (9 of 203), as head type >> relation >> tail type:" in lines
    assert shown.summary == "wide: 6 of 402 types, 9 of 203 relations, 4 of 201 properties"
    assert "- race >> won_by >> horse: 1 edge, such as Derby >> won_by >> Bittern" in lines
    # Those that join the same types come with it, though the question does not say them.
    assert any("horse >> runs_in >> race" in line for line in lines)
    assert "- horse: 1 node, such as Bittern" in lines and "- race: 1 node, such as Derby" in lines
    assert "- length in miles of race: number, 1 value, such as 2.5" in lines
    assert sum(" >> " in line and line.startswith("- ") for line in lines) == 9


def test_several_graphs_are_parts_of_their_own(base, graph):
    shown = describe_schema([graph, base.snapshot().graph("wide")], QUESTION)
    assert shown.text.startswith("Graph films, 6 nodes\n") and "\n\nGraph wide, 402 nodes\n" in shown.text
    assert (
        shown.summary.startswith("films: 2 types")
        and "; wide: 30 of 402 types, 40 of 203 relations" in shown.summary
    )


def test_a_graph_without_types_or_nodes_that_are_described(tmp_path):
    from link_graphs import graph_of

    with Store.open(tmp_path / "base", create=True) as base:
        graph = graph_of(base, [("a", "b", "c" * 100)])
        shown = describe_schema([graph], "b?")
        assert graph.properties() == {} and "Its nodes have no types." in shown.text
        assert f"- b: 1 edge, such as a >> b >> {'c' * 59}…" in shown.text
        assert describe_schema([], "b?").text == ""


def test_parts_of_a_question():
    assert question_phrases("Who was born in the town?") == ["born in", "born", "town"]
    assert question_phrases("") == [""]
    many = question_phrases(" ".join(f"word{n}" for n in range(100)))
    assert len(many) == 24 and len(set(many)) == 24


def test_the_command_shows_properties_and_what_a_prompt_would_be_shown(base):
    kb = ["--kb", str(base.path)]
    printed = CliRunner().invoke(app, ["graph", "schema", "films", *kb])
    assert printed.exit_code == 0, printed.output
    assert "type film: 3 nodes, such as Blue Velvet; Eraserhead; Heat\n" in printed.stdout
    assert "property release_year of film: number, 3 values, such as 1977\n" in printed.stdout
    few = CliRunner().invoke(app, ["graph", "schema", "films", "--limit", "1", *kb]).stdout
    assert "... 1 more type, 1 more relation, 2 more properties; see --limit\n" in few
    record = json.loads(CliRunner().invoke(app, ["graph", "schema", "films", "--json", *kb]).stdout)
    assert record["properties"][0] == {
        "property": "born", "values": 1, "numbers": 1, "types": {"person": 1}, "example": "1946-01-20"
    }  # fmt: skip
    cut = CliRunner().invoke(app, ["graph", "schema", "wide", "--question", QUESTION, *kb])
    with clew.open(base.path) as opened:
        assert cut.stdout == opened.graphs.schema(QUESTION, ["wide"]).text + "\n"
    assert "Relations (40 of 203)" in cut.stdout and "won_by" in cut.stdout
