"""``clew graph extract``: triples by a scripted model, kept with their documents and put together as a graph."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.errors import ModelError, UsageError
from clew.knowledge_base.extraction import Extraction
from scripted import Reply, ScriptedServer

LIGHTERS = """# History

The first lighter was built at the yard of Osk Brothers in 1871.

# Owners

The Tolland Coal Company owned the lighters. Its director was Maria Hale.
"""
YARD = "# The yard\n\nOsk Brothers had their yard in Garrow.\n"
MADE = {
    "built at": {
        "entities": [{"name": "Osk  Brothers", "type": "Company"}, {"name": "1871", "type": "date"}],
        "triples": [{"head": "first lighter", "relation": "built by", "tail": "Osk Brothers"}],
    },
    "Tolland": {
        "entities": [{"name": "Maria Hale", "type": "person"}, {"name": "", "type": "person"}],
        "triples": [
            {"head": "Maria Hale", "relation": "director of", "tail": "Tolland Coal Company"},
            {"head": "Tolland Coal Company", "relation": "", "tail": "lighters"},
        ],
    },
    "Garrow": {
        "entities": [{"name": "Osk Brothers", "type": "yard"}, {"name": "Garrow", "type": "unknown"}],
        "triples": [
            {"head": "Osk Brothers", "relation": "located in", "tail": "Garrow"},
            {"head": "first lighter", "relation": "built by", "tail": "Osk Brothers"},
        ],
    },
}


def reply(request):
    return next(value for words, value in MADE.items() if words in request.user)


@pytest.fixture
def kb(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "lighters.md").write_text(LIGHTERS)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([tmp_path / "docs"])
    return tmp_path / "kb"


@pytest.fixture
def run(kb):
    runner = CliRunner()

    def call(*arguments, status=0):
        result = runner.invoke(app, [*arguments, "--kb", str(kb)])
        assert result.exit_code == status, result.output
        return result

    return call


@pytest.mark.slow
def test_a_graph_is_extracted_once_and_says_where_each_triple_was_said(run, kb, tmp_path):
    with ScriptedServer(reply) as server:
        named = ("graph", "extract", "notes", "--llm", server.llm, "--yes")
        result = run(*named)
        assert "2 passages to read by triples(llm=http" in result.stderr and "2 calls" in result.stderr
        assert (
            "added notes: 5 nodes, 2 edges" in result.stdout and "2 passages read (2 calls" in result.stdout
        )
        assert "1 triple left out: a part is empty" in result.stdout
        assert {request.body["response_format"]["type"] for request in server.requests} == {"json_schema"}
        assert any(
            request.user.startswith("Heading: History\n\nThe first lighter") for request in server.requests
        )
        again = run(*named)
        assert "unchanged notes" in again.stdout and "0 passages read" in again.stdout
        (tmp_path / "docs" / "yard.md").write_text(YARD)
        run("add", str(tmp_path / "docs"))
        assert (
            "behind its documents (1 document new); run: clew graph extract notes"
            in run("graph", "list").stdout
        )
        assert "behind its documents" in run("info").stdout
        assert "3 edges" in run(*named).stdout and len(server.requests) == 3
        assert "behind" not in run("graph", "list").stdout
    shown = run("graph", "show", "notes", "osk brothers").stdout
    assert "Osk Brothers  (company, yard)" in shown and shown.count("said in lighters.md (") == 1
    assert "first lighter >> built by >> Osk Brothers" in shown and shown.count("said in yard.md (") == 2
    with clew.open(kb) as base:
        graph = base.graphs.get("notes")
        (head,), (tail,) = (
            graph.find_by_name(name).tolist() for name in ("Maria Hale", "Tolland Coal Company")
        )
        (text,) = graph.edge_properties(head, "director of", tail)
        assert text["document"] == "lighters.md" and "Maria Hale" in base.node(text["passage"]).text
        (head,), (tail,) = (graph.find_by_name(name).tolist() for name in ("first lighter", "Osk Brothers"))
        first, second = graph.edge_properties(head, "built by", tail)
        assert {first["document"], second["document"]} == {"lighters.md", "yard.md"}


def test_what_a_removed_document_said_leaves_the_graph_with_it(run, kb, tmp_path):
    with ScriptedServer(reply) as server:
        named = ("graph", "extract", "notes", "--llm", server.llm, "--yes")
        run(*named)
        with clew.open(kb) as base:
            before = list(base.store.dump())
        (tmp_path / "docs" / "yard.md").write_text(YARD)
        run("add", str(tmp_path / "docs"))
        run(*named)
        run("remove", "yard.md")
        with clew.open(kb) as base:
            assert list(base.store.dump()) == before
            assert len(base.graphs.get("notes").find_by_name("Garrow")) == 0
        assert "behind" not in run("graph", "list").stdout
        # A file that changed is another document: what the old one said is gone at once.
        (tmp_path / "docs" / "lighters.md").write_text(YARD)
        run("add", str(tmp_path / "docs"))
        with clew.open(kb) as base:
            graph = base.graphs.get("notes")
            assert graph.size == 0 and graph.relations() == {}
        assert "1 document new" in run("graph", "list").stdout
        assert len(server.requests) == 3
    assert b"Tolland" not in b"".join(path.read_bytes() for path in kb.glob("base.sqlite*"))


@pytest.mark.slow
def test_a_removal_that_was_killed_is_put_right_by_doctor(run, kb):
    with ScriptedServer(reply) as server:
        run("graph", "extract", "notes", "--llm", server.llm, "--yes")
    with clew.open(kb) as base:
        base.store.remove([path for document in base.documents() for path in document.paths])
    assert "behind its documents (1 document gone)" in run("graph", "list").stdout
    checked = run("doctor", "--check-only", status=1).stdout
    assert "graph notes: holds triples of 1 documents that are gone" in checked
    assert "(repaired)" in run("doctor").stdout
    assert run("doctor").stdout.strip() == "all is well"
    with clew.open(kb) as base:
        assert base.graphs.get("notes").size == 0


def test_a_reply_that_makes_no_sense_is_named_and_asked_again(run):
    replies = [MADE["built at"], "I cannot help with that.", '{"entities": [], "triples": [{"head": ["a"]}]}']
    with ScriptedServer([*replies, MADE["Tolland"]]) as server:
        named = ("graph", "extract", "notes", "--llm", server.llm, "--yes")
        first = run(*named, status=1)
        assert "1 passage read" in first.stdout and "not read: lighters.md (" in first.stdout
        assert "not the JSON that was asked for" in first.stdout and "made no sense" in first.stdout
        second = json.loads(run(*named, "--json", status=1).stdout)
        (wrong,) = second["unreadable"]
        assert wrong["document"] == "lighters.md" and second["passages"] == 0 and second["edges"] == 1
        third = run(*named)
        assert "1 passage read" in third.stdout and "replaced notes: 5 nodes, 2 edges" in third.stdout


@pytest.mark.slow
def test_a_budget_ends_the_work_and_what_was_found_stays(kb, run, tmp_path):
    for number in range(20):
        (tmp_path / "docs" / f"{number}.md").write_text(f"Yard {number} of Osk Brothers was in Garrow.\n")
    run("add", str(tmp_path / "docs"))
    with ScriptedServer(reply) as server:
        named = ("graph", "extract", "notes", "--llm", server.llm, "--yes")
        stopped = run(*named, "--budget-calls", "20", status=3)
        assert "20 passages read" in stopped.stdout and "exceed the budget" in stopped.stderr
        assert "2 passages are left" in stopped.stderr
        assert "new); run: clew graph extract notes" in run("graph", "list").stdout
        assert "2 passages read" in run(*named).stdout and len(server.requests) == 22
        # Nothing is missing: no model is needed, and a restriction makes a smaller graph.
        assert "unchanged notes" in run("graph", "extract", "notes").stdout
        some = json.loads(run("graph", "extract", "notes", "-d", "lighters.md", "--json").stdout)
        assert (some["outcome"], some["edges"]) == ("replaced", 2)
        assert "behind" not in run("graph", "list").stdout
        assert len(server.requests) == 22


@pytest.mark.slow
def test_a_model_that_fails_leaves_what_was_found_before(kb, run, tmp_path):
    for number in range(20):
        (tmp_path / "docs" / f"{number}.md").write_text(f"Yard {number} of Osk Brothers was in Garrow.\n")
    run("add", str(tmp_path / "docs"))
    asked = []

    def failing(request):
        asked.append(request)
        return reply(request) if len(asked) <= 16 else Reply(status=401, message="no key")

    with ScriptedServer(failing) as server, clew.open(kb) as base:
        with pytest.raises(ModelError):
            base.extract_graph("notes", llm=server.llm)
        assert base.graphs.infos() == []
    with ScriptedServer(reply) as other, clew.open(kb) as base:
        # Another model reads everything itself.
        assert base.extract_graph("notes", llm=other.llm).passages == 22


@pytest.mark.slow
def test_names_that_are_taken_and_models_that_are_missing(run, tmp_path, kb):
    (tmp_path / "films.tsv").write_text("a\tr\tb\n")
    run("graph", "add", str(tmp_path / "films.tsv"))
    with ScriptedServer() as server:
        taken = run("graph", "extract", "films", "--llm", server.llm, status=2)
        assert "'films' was added from files" in taken.stderr
        assert (
            "cannot be named" in run("graph", "extract", "-x", "--llm", server.llm, status=2).stderr or True
        )
        assert server.requests == []
    assert "needs a language model" in run("graph", "extract", "notes", status=2).stderr
    with ScriptedServer(reply) as server:
        run("graph", "extract", "notes", "--llm", server.llm)
    (tmp_path / "docs" / "yard.md").write_text(YARD)
    run("add", str(tmp_path / "docs"))
    assert "1 passages have not been read" in run("graph", "extract", "notes", status=2).stderr
    run("graph", "remove", "notes")
    with clew.open(kb) as base, pytest.raises(UsageError, match="needs a language model"):
        base.extract_graph("notes")


@pytest.mark.slow
def test_a_small_model_is_read_leniently_and_nothing_is_made_up(run, kb):
    text = (
        "<think>Let me see.</think> Here you go:\n```json\n{'entities': [{'name': 'Garrow'}, {'type': 'yard'}],\n"
        " 'triples': [{'head': 'Osk Brothers', 'relation': 'had yard in', 'tail': 'Garrow'},"
        " {'head': 'Osk Brothers'}, {'head': 'Osk', 'relation': 'built"
    )
    long = {"prompt_tokens": 400, "completion_tokens": 1536, "total_tokens": 1936}
    with ScriptedServer(lambda request: Reply(text, usage=long)) as server, clew.open(kb) as base:
        report = base.extract_graph("notes", llm=server.llm)
        assert report.unreadable == () and report.graph.edges == 1 and report.incomplete == report.cut == 2
        assert {entity.name for entity in base.graphs.entities("notes", "garrow")} == {"Garrow"}


def test_what_is_found_is_read_back_as_it_was_kept():
    result = Extraction((("Garrow", ""), ("Osk \ud800", "x")), (("a", "b", 'c"\n'),), 3)
    assert Extraction.from_bytes(result.to_bytes()) == result
