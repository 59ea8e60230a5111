"""What ``clew ask`` prints and reads, and how the help is laid out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

import clew
from clew.app.cli.commands import app

CLEW = Path(sys.executable).with_name("clew")
#: What a person has no use for: recipes, SQL, boxes, keys of documents and of models.
INNER = re.compile(
    r"\w+\(\w+=|\bselect\b.*\bfrom\b|\bbox \d|[0-9a-f]{32}|@[0-9a-f]{8}|expected:|probability",
    re.IGNORECASE,
)
FILMS = "Kismet\tdirector\tLudwig Berger\nKismet\tstars\tAda Pell\nLudwig Berger\tborn in\tMainz\n"
ORDERS = "Order,Country,Total\nA1,Norway,80\nA2,Sweden,219\nA3,Norway,876\n"
NOTES = "# Lock\n\nThe lock at Oxley was rebuilt by Dorothea Lisle in 1931.\n"
QUESTIONS = [
    ("Who directed Kismet?",),
    ("How many orders went to Norway?",),
    ("Who rebuilt the lock at Oxley?",),
    ("Who painted the ceiling of the chapel?",),
    ("Which order was on Norway in 1931?",),
    ("--triples", "#1 >> director >> Ludwig Berger; final answer: #1"),
    ("--chain", "Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2"),
    ("Who rebuilt the lock at Oxley?", "--method", "kgp"),
    ("Who rebuilt the lock at Oxley?", "--method", "read", "--retriever", "bm25"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manners")
    for name, text in (("films.tsv", FILMS), ("orders.csv", ORDERS), ("notes.md", NOTES)):
        (folder / name).write_text(text, encoding="utf-8")
    with clew.open(folder / "kb", create=True) as base:
        base.add([folder / "orders.csv", folder / "notes.md"])
        base.graphs.add(folder / "films.tsv")
    return folder


def start(home, *words, stdin=b""):
    """Run ``clew`` in a process of its own."""
    environment = os.environ | {"COLUMNS": "80", "CLEW_HOME": str(home / "kb")}
    return subprocess.run([CLEW, *words], input=stdin, capture_output=True, env=environment, check=False)


def printed(home, *words, columns=80):
    """Run a command in this process, as in a terminal of so many columns; return what it prints."""
    environment = {"COLUMNS": str(columns), "CLEW_HOME": str(home / "kb")}
    result = CliRunner().invoke(app, list(words), env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: " ".join(words)[:40])
def test_an_answer_its_quotes_and_a_line_of_how_are_printed(home, words) -> None:
    text = printed(home, "ask", *words)
    assert not INNER.search(text) and "\nTrail" not in text, text
    lines = text.rstrip().splitlines()
    assert lines[0] in {"Answer", "Perhaps", "Not answered"} and lines[-1].startswith("How: ")
    assert lines[-1].endswith(" (--trail)") and len(lines[-1]) <= 80
    trail = printed(home, "ask", *words, "--trail")
    assert trail.startswith(text.split("How: ")[0].split("Ranked")[0].rstrip()) and "\nTrail  " in trail
    data = json.loads(printed(home, "ask", *words, "--json"))
    assert data["recipe"] and data["trail"] and data["recipe"].split("(")[0] in trail


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("-",), b"Who directed Kismet?\n"),
        ((), b"Who directed Kismet?\n"),
        ((), b"\xef\xbb\xbf  Who directed\r\nKismet?"),
        (("-k", "1"), b"Who directed Kismet?"),
    ],
)
def test_a_question_is_read_from_standard_input(home, words, stdin) -> None:
    shown = start(home, "ask", *words, "--json", stdin=stdin)
    assert json.loads(shown.stdout)["values"] == ["Ludwig Berger"], shown.stderr


def test_a_question_that_is_given_leaves_standard_input_alone(home) -> None:
    shown = start(home, "ask", "Who directed Kismet?", "--json", stdin=b"Who stars in Kismet?")
    assert json.loads(shown.stdout)["values"] == ["Ludwig Berger"]
    triples = "#1 >> stars >> Ada Pell; final answer: #1"
    shown = start(home, "ask", "--triples", triples, "--json", stdin=b"\xff")
    assert json.loads(shown.stdout)["values"] == ["Kismet"]


@pytest.mark.parametrize(
    ("words", "stdin", "problem"),
    [
        ((), b"", "the question is empty"),
        (("-",), b" \n ", "the question is empty"),
        (("-",), b"Who directed \xff?", "standard input is not text in UTF-8"),
        ((), b"a" * 90_000, "the question has 20,001 characters, more than 20,000"),
    ],
)
def test_what_is_no_question_is_refused(home, words, stdin, problem) -> None:
    shown = start(home, "ask", *words, stdin=stdin)
    assert shown.returncode == 2 and problem in shown.stderr.decode() and b"Traceback" not in shown.stderr


def test_a_closed_standard_input_is_said(home) -> None:
    shown = subprocess.run(
        ["/bin/sh", "-c", f"exec {CLEW} ask - --kb {home / 'kb'} <&-"], capture_output=True, check=False
    )
    assert shown.returncode == 2 and b"standard input is closed" in shown.stderr


# The help


def paragraphs(text):
    """Yield the paragraphs of a help above its boxes, as the lines that they are printed in."""
    above = text.partition("╭")[0]
    for block in re.split(r"\n\s*\n", above):
        yield [line.strip() for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "command", ["", "add", "ask", "chat", "search", "sql", "serve", "graph", "graph add", "eval run"]
)
@pytest.mark.parametrize("columns", [80, 100])
def test_the_help_is_wrapped_once(home, command, columns) -> None:
    text = printed(home, *command.split(), "--help", columns=columns)
    assert text and all(len(line) <= columns for line in text.splitlines())
    for lines in paragraphs(text):
        for line, following in pairwise(lines):
            first = following.split()[0]
            assert len(line) + 1 + len(first) > columns - 5, (line, following)


def test_commands_stand_by_task_each_in_one_line(home) -> None:
    text = start(home, "--help").stdout.decode()
    boxes = re.findall(r"╭─ (.+?) ─+╮\n(.*?)╰", text, re.DOTALL)
    names = {
        title: re.findall(r"^│ ([a-z]\S*)", body, re.MULTILINE) for title, body in boxes if title != "Options"
    }
    assert len(names) >= 5 and all(len(commands) <= 8 for commands in names.values())
    every = [name for commands in names.values() for name in commands]
    assert len(every) == len(set(every)) >= 29
    task = {name: title for title, commands in names.items() for name in commands}
    assert task["add"] == task["list"] != task["ask"] == task["search"] != task["eval"] == task["train"]
    for body in (body for title, body in boxes if title != "Options"):
        assert all(re.match(r"│ [a-z]\S* +\S", line) for line in body.splitlines()), body
