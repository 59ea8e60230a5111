"""``clew grid``: answers with quotes, empty cells, what is kept and continued, and what is written."""

import csv
import json
from dataclasses import asdict

import openpyxl
import pytest

import clew
from clew.core.errors import UsageError
from clew.knowledge_base.grid import Grid, GridCell
from command_line import run
from scripted import ScriptedServer

QUESTIONS = ["What is the rent?", "Who is the tenant?", "What is the capital of Mongolia?"]
LEASES = {"mill.md": ("Mill", "950", "Ada Pell"), "lock.md": ("Lock", "410", "Ines Calder")}


@pytest.fixture
def home(tmp_path):
    (tmp_path / "leases").mkdir()
    for name, (house, rent, tenant) in LEASES.items():
        text = f"# Lease of {house} House\n\nThe rent is {rent} dollars a month.\n\nThe tenant is {tenant}.\n"
        (tmp_path / "leases" / name).write_text(text)
    (tmp_path / "questions.txt").write_text("\n".join([*QUESTIONS, "", QUESTIONS[0]]))
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path / "leases"])
    return tmp_path


def run_grid(home, *words):
    return run("grid", home / "questions.txt", "--kb", home / "kb", *words)


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_each_document_answers_for_itself_with_a_quote(home):
    result = run_grid(home, "--out", home / "grid.xlsx")
    assert (
        "4 of 6 cells filled, each with a quote" in result.stdout
        and "2 documents x 3 questions" in result.stderr
    )
    book = openpyxl.load_workbook(home / "grid.xlsx")
    head, *rows = book["answers"].iter_rows(values_only=True)
    assert list(head[1:]) == QUESTIONS
    for name, rent, tenant, capital in rows:
        _, expected, person = LEASES[name]
        assert expected in rent and person in tenant and capital is None
    assert "dollars a month" in book["answers"].cell(2, 2).comment.text
    quotes = list(book["quotes"].iter_rows(min_row=2, values_only=True))
    with clew.open(home / "kb") as base:
        texts = {item.name: " ".join(node.text for node in base.tree(item.key)) for item in base.documents()}
    assert len(quotes) == 4 and all(quote in texts[document] for document, _, _, quote, _, _ in quotes)


def test_a_grid_that_was_stopped_continues_and_asks_only_what_is_new(home):
    out = home / "grid.csv"
    cells = home / "grid.csv.cells.jsonl"
    run_grid(home, "--out", out)
    whole = read_rows(out)
    assert [row["document"] for row in whole] == sorted(LEASES) and len(cells.read_bytes().splitlines()) == 6
    kept = cells.read_bytes().splitlines(keepends=True)
    marked = json.loads(kept[0]) | {"answer": "what was answered before"}
    cells.write_bytes(json.dumps(marked).encode() + b"\n" + kept[1] + kept[2][:20])
    assert "2 of 6 cells answered before" in run_grid(home, "--out", out).stderr
    assert len(cells.read_bytes().splitlines()) == 6
    assert "what was answered before" in out.read_text() and read_rows(out)[1] == whole[1]
    (home / "leases" / "pier.md").write_text("# Lease\n\nThe tenant is Bo Lund.\n")
    with clew.open(home / "kb") as base:
        base.add([home / "leases"])
    run_grid(home, "--out", out)
    assert len(cells.read_bytes().splitlines()) == 9 and "Bo Lund" in read_rows(out)[-1][QUESTIONS[1]]
    cells.write_text('{"something": "else"}\n')
    refused = run("grid", home / "questions.txt", "--kb", home / "kb", "--out", out, status=2)
    assert "line 1 of" in refused.stderr and cells.read_text() == '{"something": "else"}\n'


@pytest.mark.slow
def test_a_model_is_paid_for_after_a_few_cells_tell_what_it_costs(home):
    reply = json.dumps({"answer": "It is so.", "quotes": [], "abstain": False})
    with ScriptedServer(lambda request: reply) as server:
        words = ("--llm", server.llm, "--recipe", "read(retriever=bm25)", "--json")
        result = run_grid(home, "--out", home / "grid.csv", *words)
    grid = json.loads(result.stdout)
    assert grid["missing"] == 0 and "3 cells left; about 2 calls" in result.stderr
    assert "as for the first 3" in result.stderr and server.answered == 4  # two cells have no passage to read
    # A model's words without a quote from the document fill no cell.
    assert not any(cell["answer"] for row in grid["rows"] for cell in row["cells"])


def test_what_a_spreadsheet_would_take_for_a_formula_is_text(home):
    with clew.open(home / "kb") as base:
        grid = Grid(base, QUESTIONS[:1], home / "cells.jsonl", documents=["mill.md"])
        (document,) = grid.documents
        cell = GridCell(
            document.key, QUESTIONS[0], grid.setting, '=HYPERLINK("http://evil.example")', 0.5, "=1+1", "p"
        )
        (home / "cells.jsonl").write_text(json.dumps(asdict(cell)) + "\n")
        grid = Grid(base, QUESTIONS[:1], home / "cells.jsonl", documents=["mill.md"])
        grid.write(home / "x.xlsx")
        grid.write(home / "x.csv")
        with pytest.raises(UsageError, match="ods"):
            grid.write(home / "x.ods")
    workbook = openpyxl.load_workbook(home / "x.xlsx")
    assert workbook["answers"].cell(2, 2).data_type == "s" and workbook["quotes"].cell(2, 4).data_type == "s"
    assert read_rows(home / "x.csv")[0][QUESTIONS[0]].startswith("'=")


@pytest.mark.slow
def test_what_is_no_grid_is_refused(home):
    (home / "empty.txt").write_text("\n\n")
    assert "no question" in run("grid", home / "empty.txt", "--kb", home / "kb", status=2).stderr
    assert "cannot read" in run("grid", home / "none.txt", "--kb", home / "kb", status=2).stderr
    assert ".csv" in run_grid_fails(home, "--out", home / "grid.ods")


def run_grid_fails(home, *words):
    return run("grid", home / "questions.txt", "--kb", home / "kb", *words, status=2).stderr
