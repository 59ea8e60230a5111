"""The commands as a person runs them, on the sample documents."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from annotation_server import AnnotationServer, wat
from bad_files import BAD_FILES
from clew.graph.annotation import AnnotationService
from clew.store.store import Store
from command_line import run
from scripted import ScriptedServer

SAMPLES = Path(__file__).parents[3] / "samples" / "documents"
QUESTION = (
    "What does the hirer pay a day if the lighter Bittern is returned late, "
    "and in what year was the Bittern built?"
)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_with_its_encoder_a_question_is_answered_from_both_documents(embedded, tmp_path) -> None:
    run("add", SAMPLES, "--kb", tmp_path / "kb")
    listed = json.loads(run("encoder", "list", "--kb", tmp_path / "kb", "--json").stdout)
    assert listed["encoder"] == "clew:hops" and listed["vectors"][0]["missing"] == 0
    answer = json.loads(run("ask", QUESTION, "--kb", tmp_path / "kb", "--json").stdout)
    assert "$9" in answer["answer"] and "1919" in answer["answer"]
    # Going without it and back costs nothing: its vectors stay.
    assert "none" in run("encoder", "set", "none", "--kb", tmp_path / "kb").stdout
    assert "0 vectors made" in run("encoder", "set", "clew:hops", "--kb", tmp_path / "kb").stdout


@pytest.mark.slow
def test_what_has_no_vector_yet_is_said_and_its_time_foretold(embedded, tmp_path) -> None:
    (tmp_path / "a.md").write_text("The Oskell bridge was built by Alf Clausen.\n", encoding="utf-8")
    run("add", tmp_path / "a.md", "--kb", tmp_path / "kb", "--encoder", "none")
    with clew.open(tmp_path / "kb") as base:
        assert base.encoding.estimate() == (0, 0.0)
        base.encoding.set("clew:hops")
        missing, seconds = base.encoding.estimate()
        assert missing == 1 and seconds is not None and seconds > 0
    for words in (("search", "bridge"), ("ask", "Who built the Oskell bridge?")):
        assert "1 passage can be found by words alone" in run(*words, "--kb", tmp_path / "kb").stderr
    assert "1 vector made" in run("encoder", "encode", "--kb", tmp_path / "kb").stdout
    assert "words alone" not in run("search", "bridge", "--kb", tmp_path / "kb").stderr


@pytest.mark.slow
def test_an_empty_base_finds_nothing(embedded, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    run("add", tmp_path / "empty", "--kb", tmp_path / "kb")
    assert "nothing found" in run("search", "bridge", "--kb", tmp_path / "kb").stdout
    assert (
        "No answer that clew is sure of"
        in run("ask", "Who built the bridge?", "--kb", tmp_path / "kb").stdout
    )


def test_a_text_as_long_as_a_document_is_no_question(kb) -> None:
    for command in ("ask", "search"):
        refused = run(command, "lighter " * 2_501, "--kb", kb, status=2).stderr
        assert "the question has 20,008 characters, more than 20,000" in refused
        assert "Add long texts as documents" in refused


@pytest.mark.slow
def test_a_question_is_answered_with_evidence_from_both_documents(kb) -> None:
    answer = json.loads(run("ask", QUESTION, "--kb", kb, "--json").stdout)
    assert {"lighter-hire-contract.pdf", "oskell-passage-annual-report-1931.pdf"} <= {
        item["document"] for item in answer["evidence"]
    }
    assert "$9" in answer["answer"] and "1919" in answer["answer"]
    assert answer["reader"] == "extractive"
    # It asks two questions, and each is sent its own way.
    methods = [step["detail"]["method"] for step in answer["trail"] if step["name"] == "route"]
    assert methods == ["parts", "documents", "documents"]
    assert [step["name"] for step in answer["trail"]].count("seed") == 2
    shown = run("ask", QUESTION, "--kb", kb)
    assert "no language model wrote them" in shown.stdout and "How: " in shown.stdout
    assert "No language model is set" in shown.stderr


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["--budget-calls", "--budget-tokens"])
def test_a_spent_budget_shows_what_was_found_and_has_its_own_exit_status(kb, limit: str) -> None:
    with ScriptedServer([]) as server:
        asked = run("ask", QUESTION, "--kb", kb, "--llm", server.llm, limit, 0, "--json", status=3)
        assert not server.requests
    answer = json.loads(asked.stdout)
    assert "exceed the budget" in answer["stopped"] and answer["stopped"] in asked.stderr
    assert answer["abstained"] and answer["usage"]["calls"] == 0
    fine = json.loads(run("ask", QUESTION, "--kb", kb, "--json").stdout)
    assert fine["stopped"] is None


@pytest.mark.slow
def test_a_model_answers_with_checked_quotes_and_a_fabricated_one_is_shown_as_rejected(kb) -> None:
    def script(request):
        if "Bittern" in request.prompt and "quotes" in request.prompt:
            quotes = [
                {"source": 1, "text": "words that no document holds"},
                {"source": 1, "text": "the Hirer shall pay $9"},
            ]
            return {"answer": "$9 a day", "quotes": quotes, "abstain": False}
        return "Nothing more."

    with ScriptedServer(script) as server:
        answer = json.loads(run("ask", QUESTION, "--kb", kb, "--llm", server.llm, "--json").stdout)
    assert answer["answer"] == "$9 a day"
    assert answer["rejected"] == ["words that no document holds"]
    assert [quote["text"] for quote in answer["quotes"]] == ["the Hirer shall pay $9"]


@pytest.mark.slow
def test_search_prints_the_promised_shape(kb) -> None:
    hits = json.loads(run("search", "toll on live geese", "--kb", kb, "--json", "-k", "3").stdout)["hits"]
    assert len(hits) == 3
    assert set(hits[0]) >= {"document", "page", "section", "text", "score", "path"}
    assert isinstance(hits[0]["section"], str) and "geese" in hits[0]["text"]
    only = json.loads(
        run(
            "search", "geese", "--kb", kb, "--json", "-d", "merrowgate-charter.md", "--retriever", "bm25"
        ).stdout
    )
    assert {hit["document"] for hit in only["hits"]} == {"merrowgate-charter.md"}


@pytest.mark.slow
def test_a_structural_question_prints_what_it_names(kb) -> None:
    shown = run("ask", "What does Table 1 of the annual report say?", "--kb", kb).stdout
    assert "Lady Annis" in shown and "Not answered" not in shown


def test_list_show_info_doctor_recipes(kb) -> None:
    assert "lighter-hire-contract.pdf" in run("list", "--kb", kb).stdout
    assert "7. Late return" in run("show", "lighter-hire-contract.pdf", "--kb", kb).stdout
    assert "Late return" in run("show", "lighter-hire-contract.pdf", "--page", "2", "--kb", kb).stdout
    info = json.loads(run("info", "--kb", kb, "--json").stdout)
    assert info["documents"] == 12
    assert run("info", "--kb", kb, "--digest").stdout.strip() == info["digest"]
    assert "density" in run("info", "--kb", kb, "--graphs", "all").stdout
    run("doctor", "--kb", kb)
    assert "kgp-paper" in run("recipes").stdout


def test_adding_again_changes_nothing(kb) -> None:
    before = run("info", "--kb", kb, "--digest").stdout
    report = json.loads(run("add", SAMPLES, "--kb", kb, "--json").stdout)
    assert report["unchanged"] == 12 and not report["added"]
    assert run("info", "--kb", kb, "--digest").stdout == before


@pytest.mark.slow
def test_bad_files_are_named_with_reasons_and_nothing_else_is_lost(tmp_path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nA paragraph about the mill.\n")
    # All of them: tests/ingest/test_bad_files.py.
    results = [bad.write(folder) for bad in BAD_FILES[::6]]
    assert len(results) >= 5
    report = json.loads(
        run("add", *results, folder / "good.md", "--kb", tmp_path / "kb", "--json", status=1).stdout
    )
    assert len(report["failed"]) == len(results)
    assert all(item["reason"] for item in report["failed"])
    assert [Path(path).name for path in report["added"]] == ["good.md"]


@pytest.mark.slow
def test_changed_moved_and_deleted_files(tmp_path) -> None:
    folder, kb = tmp_path / "files", tmp_path / "kb"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# {name}\n\nAbout {name} alone.\n")
    run("add", folder, "--kb", kb)
    (folder / "a.md").write_text("# a\n\nChanged entirely now.\n")
    (folder / "b.md").rename(folder / "c.md")
    report = json.loads(run("add", "--sync", folder, "--kb", kb, "--json").stdout)
    assert [len(report[kind]) for kind in ("replaced", "located", "removed", "added")] == [1, 1, 1, 0]
    removed = json.loads(run("remove", "c.md", "--kb", kb, "--json").stdout)
    assert removed["remaining"] == 1
    with Store.open(kb) as base:
        assert [document.name for document in base.documents()] == ["a.md"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("ask", "x", "--kb", "nowhere"), "clew add"),
        (("search", "x", "--retriever", "bm52"), "bm25"),
        (("ask", "x", "--llm", "opnai:gpt"), "openai"),
        (("ask", ""), "empty"),
        (("show", "nothing.pdf"), "clew list"),
        (("encoder", "set", "onnx:/nowhere"), "onnx"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_hint(kb, words, text) -> None:
    given = words if "--kb" in words else (*words, "--kb", kb)
    assert text in run(*given, status=2).stderr


@pytest.mark.slow
def test_listing_imports_no_numpy(kb) -> None:
    for command in (["list"], ["info"], ["show", "merrowgate-charter.md"]):
        code = (
            "import sys\nfrom clew.app.cli.commands import app\n"
            f"try:\n    app({[*command, '--kb', str(kb)]!r})\nexcept SystemExit:\n    pass\n"
            "sys.exit('numpy' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
        assert done.returncode == 0, command


@pytest.mark.slow
def test_passages_are_annotated_after_saying_where_they_go_and_the_graph_can_be_walked(
    kb, monkeypatch
) -> None:
    monkeypatch.setenv("CLEW_TAGME_TOKEN", "secret")
    monkeypatch.setattr(AnnotationService, "_wait", lambda self: None)
    server = AnnotationServer(wat)
    try:
        done = run("annotate", "--url", server.url, "--kb", kb)
        asked = len(server.asked)
        again = run("annotate", "--url", server.url, "--kb", kb)
    finally:
        server.close()
    assert (
        f"{asked} passages go to {server.url}" in done.stderr and f"{asked} passages annotated" in done.stdout
    )
    assert "0 passages annotated" in again.stdout and len(server.asked) == asked
    answer = run("ask", QUESTION, "--recipe", "kgp(graph=entities(prior=0.0))", "--kb", kb, "--json").stdout
    assert "entities(prior=0.0" in json.loads(answer)["recipe"]
    monkeypatch.delenv("CLEW_TAGME_TOKEN")
    run("annotate", "--service", "tagme", "--url", server.url, "--kb", kb, status=2)
