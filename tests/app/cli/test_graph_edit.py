"""``clew graph edit``: files of edges and nodes added to a graph and removed from it."""

import json

import pytest

import clew
from clew.core.errors import BadRows, UsageError
from clew.knowledge_base import GraphEdits
from command_line import run

FILMS = """The Lighter Bittern\tdirected by\tAda Pell
The Lighter Bittern\tgenre\tdrama
Rain on Slate\tdirected by\tAda Pell
Kismet\tdirected by\tJoel Marsh
"""
TURTLE = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:k a :Film ; rdfs:label "Kismet"@en ; :director :d ; :producer :p . :d rdfs:label "William Dieterle"@en .
:director rdfs:label "directed by"@en .
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "films.tsv").write_text(FILMS)
    (tmp_path / "films.ttl").write_text(TURTLE)
    run("graph", "add", tmp_path / "films.tsv", "--kb", tmp_path / "base")
    return tmp_path


def answers(folder, triples):
    result = run("ask", "--triples", triples, "--kb", folder / "base", "--json")
    return json.loads(result.stdout)["answer"]


def test_files_are_added_and_removed(folder):
    (folder / "new.jsonl").write_text(
        '["Kismet", "genre", "drama", {"source": "poster"}]\n'
        '{"id": "Ines Tarrow", "type": "person", "born": 1901}\n'
        '{"head": "Rain on Slate", "relation": "stars", "tail": "Ines Tarrow"}\n'
    )
    (folder / "wrong.tsv").write_text("Rain on Slate\tdirected by\tAda Pell\nKismet\tgenre\tcomedy\n")
    result = run(
        *("graph", "edit", "films", "--kb", folder / "base"),
        *("--add", folder / "new.jsonl", "--remove", folder / "wrong.tsv"),
        *("--remove-node", "films:Joel Marsh"),
    )
    assert result.stdout.splitlines()[:2] == [
        "1 node added, 1 removed, 0 described anew",
        "2 edges added, 2 removed, 0 described anew",
    ]
    assert "not in the graph, so not removed: Kismet >> genre >> comedy" in result.output
    assert answers(folder, "#1 >> genre >> drama") == "Kismet, The Lighter Bittern"
    assert answers(folder, "#1 >> directed by >> Ada Pell") == "The Lighter Bittern"
    assert answers(folder, "#1 >> stars >> #2; #2.born = 1901; final answer: #1") == "Rain on Slate"
    assert "edited since it was added" in run("graph", "list", "--kb", folder / "base").stdout
    assert run("doctor", "--kb", folder / "base")


@pytest.mark.slow
def test_the_sparql_view_is_of_the_edited_graph(folder):
    pytest.importorskip("pyoxigraph")
    query = 'SELECT ?x { ?x r:directed%20by ?y . ?y clew:name "Ada Pell" }'
    ask = ("graph", "query", "films", query, "--kb", folder / "base")
    assert len(run(*ask).stdout.splitlines()) == 4
    (folder / "new.tsv").write_text("Another\tdirected by\tAda Pell\n")
    run("graph", "edit", "films", "--add", folder / "new.tsv", "--kb", folder / "base")
    assert "Another" in run(*ask).stdout


def test_adding_the_old_files_replaces_an_edited_graph(folder):
    add = ("graph", "add", folder / "films.tsv", "--kb", folder / "base", "--json")
    before = json.loads(run(*add).stdout)
    assert before["outcome"] == "unchanged"
    edited = json.loads(
        run("graph", "edit", "films", "--remove-node", "drama", "--kb", folder / "base", "--json").stdout
    )
    assert edited["edited"] and edited["digest"] != before["digest"]
    assert (edited["nodes_removed"], edited["edges_removed"], edited["missing"]) == (1, 1, [])
    again = json.loads(run(*add).stdout)
    assert (again["outcome"], again["digest"], again["edited"]) == ("replaced", before["digest"], False)


def test_rdf_edits_relations_between_nodes(folder):
    pytest.importorskip("pyoxigraph")
    with clew.open(folder / "base") as base:
        base.graphs.add(folder / "films.ttl", name="rdf")
        (folder / "add.nt").write_text(
            "<http://example.org/k> <http://example.org/director> <http://example.org/NewPerson> .\n"
            "<http://example.org/k> <http://example.org/hasScore> <http://example.org/p> .\n"
        )
        (folder / "remove.nt").write_text(
            "<http://example.org/k> <http://example.org/producer> <http://example.org/p> .\n"
        )
        report = base.graphs.edit("rdf", add=[folder / "add.nt"], remove=[folder / "remove.nt"])
        assert (report.counts.edges_added, report.counts.edges_removed) == (2, 1)
        edited = report.graph.digest
        whole = TURTLE.replace(":producer :p", ":director :NewPerson ; :hasScore :p")
        (folder / "whole.ttl").write_text(whole)
        assert base.graphs.add(folder / "whole.ttl", name="other").graph.digest == edited
        (folder / "add.nt").write_text('<http://example.org/k> <http://example.org/year> "1944" .\n')
        with pytest.raises(UsageError, match="RDF edits relations"):
            base.graphs.edit("rdf", add=[folder / "add.nt"])
        with pytest.raises(UsageError, match="cannot edit a graph of other files"):
            base.graphs.edit("films", add=[folder / "add.nt"])


def test_a_bad_row_leaves_the_graph_unchanged_unless_bad_rows_are_skipped(folder):
    (folder / "new.jsonl").write_text('["a", "b", "c"]\n["a"]\n')
    with clew.open(folder / "base") as base:
        digest = base.graphs.infos()[0].digest
        with pytest.raises(BadRows, match="line 2"):
            base.graphs.edit("films", add=[folder / "new.jsonl"])
        assert base.graphs.infos()[0].digest == digest
        report = base.graphs.edit("films", add=[folder / "new.jsonl"], skip_bad=True)
        assert (report.bad, report.counts.edges_added) == (1, 1)


def test_refusals(folder):
    failed = run("graph", "edit", "films", "--kb", folder / "base", status=2)
    assert "nothing to change" in failed.output
    with clew.open(folder / "base") as base, pytest.raises(UsageError, match="no graph named 'film'"):
        base.graphs.edit("film", GraphEdits())
