"""A table of 2,000 rows is never given to a reader, a model or a person whole."""

import json

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app
from clew.core.types import Scope
from clew.models.costs import count_tokens
from clew.retrieve.structure.algebra import evaluate
from clew.retrieve.structure.lookup import excerpt_table, fetch_hits
from clew.retrieve.structure.query import Query, Selector
from scripted import ScriptedServer
from structure_documents import write_sales

QUESTION = "What does table 1 of sales.csv say?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sales")
    write_sales(folder / "sales.csv")
    with clew.open(folder / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([folder / "sales.csv"])
    return folder / "kb"


@pytest.mark.slow
def test_an_answer_is_short_in_print_and_as_json_and_its_id_leads_to_the_whole(folder):
    printed = CliRunner().invoke(app, ["ask", QUESTION, "--kb", str(folder)])
    assert printed.exit_code == 0
    assert len(printed.stdout) < 6_000
    with clew.open(folder) as base:
        answer = base.ask(QUESTION)
        assert len(json.dumps(answer.to_dict())) < 12_000
        (hit,) = answer.evidence
        whole = base.node(hit.node.id)
    assert f"of 2,000 rows; all of them: clew show {hit.node.id})" in hit.node.text
    assert "INV-10001" in answer.text
    assert whole.text.count("INV-") == 2_000


@pytest.mark.slow
def test_rows_that_share_words_with_the_question_are_shown_with_the_head(folder):
    question, query = "What does it say about invoice INV-11500?", Query("show", (Selector("table", 1),))
    with clew.open(folder) as base:
        snapshot = base.store.snapshot()
        finding = evaluate(question, [query], snapshot, Scope())
        (hit,) = fetch_hits(snapshot, finding.references, question=question)
    assert "INV-10001" in hit.node.text
    assert "INV-11500" in hit.node.text
    assert "1 of them here" in hit.node.text


@pytest.mark.slow
def test_a_model_is_sent_less_than_8000_tokens_in_all(folder):
    sent = []

    def reply(request):
        sent.append(request.prompt)
        return {"answer": "Invoices of 2023.", "quotes": [], "answered": True}

    with ScriptedServer(reply) as server, clew.open(folder) as base:
        base.ask(QUESTION, llm=server.llm)
    assert any("INV-10001" in prompt for prompt in sent)
    # Tables of numbers have up to twice as many tokens as prose has.
    assert 2 * sum(count_tokens(prompt) for prompt in sent) < 8_000


def test_an_excerpt_is_the_whole_where_that_is_short_and_counts_the_rest_where_not():
    rows = [f"| {number} | {'red' if number % 50 == 7 else 'blue'} |" for number in range(1_000)]
    table = "\n".join(["Paints", "", "| number | colour |", "| --- | --- |", *rows])
    assert excerpt_table(table, "d:1", len(table)) == table
    part = excerpt_table(table, "d:1", 1_500, "which are red?")
    assert len(part) < 1_800
    assert part.startswith("Paints\n\n| number | colour |\n| --- | --- |\n| 0 | blue |")
    assert [row for row in rows if "red" in row][-1] in part
    assert "20 share words with the question, 20 of them here" in part
    everywhere = excerpt_table(table, "d:1", 1_500, "the number of blue ones")
    assert "| 0 | blue |" in everywhere
    assert "980 share words with the question" in everywhere
    assert len(everywhere) < 1_800
