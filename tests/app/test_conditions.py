"""Fifty random conditions on fields, asked through every way in: search, answers, JSON API, eval, command line.

What they select is worked out here from the facts that the files were written from.
"""

from __future__ import annotations

import calendar
import json
import random
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

import clew
from clew.core.errors import NotFound

pytestmark = pytest.mark.slow

AUTHORS = ("Jürgen Groß", "Ada Strake", "Élodie Brun")
TAGS = ("q1 plan", "Übergabe", "lease", "draft-2", "2021")
FOLDERS = ("", "Müller Akten", "Müller Akten/2020", "mail box")
RECIPE = "read(retriever=bm25)"


@dataclass(frozen=True)
class Fact:
    """What is true of a file; the day as (year, month or 0, day or 0)."""

    name: str
    folder: str
    authors: tuple[str, ...]
    tags: tuple[str, ...]
    day: tuple[int, int, int] | None
    kind: str

    @property
    def all_tags(self) -> set[str]:
        return {*self.tags, *filter(None, self.folder.split("/"))}

    @property
    def span(self) -> tuple[date, date] | None:
        return None if self.day is None else span_of(*self.day)


def span_of(year: int, month: int = 0, day: int = 0) -> tuple[date, date]:
    first, last = month or 1, month or 12
    return date(year, first, day or 1), date(year, last, day or calendar.monthrange(year, last)[1])


def write_date(day: tuple[int, int, int], rng: random.Random) -> str:
    year, month, number = day
    if not month:
        return str(year)
    if not number:
        return rng.choice([f"{year}-{month:02}", f"{calendar.month_name[month]} {year}"])
    forms = [
        date(*day).isoformat(),
        f"{number:02}.{month:02}.{year}",
        f"{number} {calendar.month_name[month]} {year}",
    ]
    return rng.choice([*forms, f"{calendar.month_abbr[month]} {number}, {year}"])


def random_day(rng: random.Random) -> tuple[int, int, int]:
    year, month = rng.choice([2019, 2020, 2021]), rng.choice([0, 1, 2, 7, 12])
    return year, month, rng.choice([0, 1, 28]) if month else 0


def write_files(folder: Path, rng: random.Random) -> list[Fact]:
    facts = []
    for number in range(36):
        authors = tuple(rng.sample(AUTHORS, rng.choice([0, 1, 1, 2])))
        tags = tuple(rng.sample(TAGS, rng.randrange(3)))
        day = random_day(rng) if rng.random() < 0.8 else None
        fact = Fact(f"n{number}.md", rng.choice(FOLDERS), authors, tags, day, "markdown")
        lines = ["author:", *(f"  - {author}" for author in authors)] if authors else []
        lines += [f"tags: [{', '.join(tags)}]"] if tags else []
        lines += [f'date: "{write_date(day, rng)}"'] if day else []
        front = "---\n" + "\n".join(lines) + "\n---\n" if lines else ""
        path = folder / fact.folder / fact.name
        if not lines:
            fact = Fact(f"n{number}.txt", fact.folder, (), (), None, "text")
            path = path.with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{front}The lease of quay number {number} ends in May {1900 + number}.\n")
        facts.append(fact)
    return facts


def fold(text: str) -> str:
    """Without case and diacritics, as the facts have them; punctuation as a space."""
    for pair in ("üu", "Üu", "éE", "Ée", "öo"):
        text = text.replace(pair[0], pair[1])
    return re.sub(r"[^a-z0-9]+", " ", text.lower().replace("ß", "ss")).strip()


def quote(value: str, rng: random.Random) -> str:
    return f'"{value}"' if " " in value or "," in value or rng.random() < 0.3 else value


def compare_days(span: tuple[date, date], operator: str, other: tuple[date, date]) -> bool:
    (first, last), (start, end) = span, other
    return {
        "=": start <= first and last <= end,
        "<": last < start,
        "<=": last <= end,
        ">": first > end,
        ">=": first >= start,
    }[operator]


def random_comparison(rng: random.Random):
    field = rng.choice(["date", "date", "tag", "author", "folder", "kind", "absent"])
    if field == "date":
        day, operator = random_day(rng), rng.choice(["=", "<", "<=", ">", ">="])
        asked = span_of(*day)
        text = f"date {operator} {quote(write_date(day, rng), rng)}"
        return text, lambda fact: fact.span is not None and compare_days(fact.span, operator, asked)
    if field == "absent":
        return 'author = ""', lambda fact: not fact.authors
    values = {
        "tag": lambda fact: fact.all_tags,
        "author": lambda fact: set(fact.authors),
        "kind": lambda fact: {fact.kind},
        "folder": lambda fact: {
            "/".join(fact.folder.split("/")[: n + 1])
            for n in range(fact.folder.count("/") + 1)
            if fact.folder
        },
    }[field]
    value = rng.choice(
        {"tag": TAGS, "author": AUTHORS, "kind": ("text", "markdown"), "folder": FOLDERS[1:]}[field]
    )
    written = rng.choice([value, value.upper() if "ß" not in value else value, fold(value)])
    operator = rng.choice(["=", "!=", "~", "in"])
    if operator == "~":
        part = fold(value)[1:4]
        return f"{field} ~ {quote(part, rng)}", lambda fact: any(
            fold(part) in fold(text) for text in values(fact)
        )

    def equals(fact: Fact) -> bool:
        return any(fold(text) == fold(value) for text in values(fact))

    if operator == "in":
        return f"{field} in (nothing, {quote(written, rng)})", equals
    holds = (lambda fact: not equals(fact)) if operator == "!=" else equals
    return f"{field} {operator} {quote(written, rng)}", holds


def random_condition(rng: random.Random, depth: int = 0):
    """Return a condition as text, and a function that tells whether a fact meets it."""
    if depth == 3 or rng.random() < 0.35:
        return random_comparison(rng)
    (left, left_holds), (right, right_holds) = (
        random_condition(rng, depth + 1),
        random_condition(rng, depth + 1),
    )
    match rng.choice(["and", "or", "not"]):
        case "and":
            return f"({left}) and ({right})", lambda fact: left_holds(fact) and right_holds(fact)
        case "or":
            return f"({left}) OR ({right})", lambda fact: left_holds(fact) or right_holds(fact)
        case _:
            return f"not ({left})", lambda fact: not left_holds(fact)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    work = tmp_path_factory.mktemp("conditions")
    facts = write_files(work / "docs", random.Random(3))
    with clew.open(work / "kb", create=True) as opened:
        opened.encoding.set(None)
        opened.add([work / "docs"], workers=1)
        yield opened, facts


def conditions(facts, count=50):
    rng = random.Random(4)
    for _ in range(count):
        text, holds = random_condition(rng)
        yield text, {fact.name for fact in facts if holds(fact)}


def names(hits):
    return {hit.node.document_name for hit in hits}


def test_searches_and_answers(base):
    base, facts = base
    sizes = set()
    for text, expected in conditions(facts):
        sizes.add(len(expected))
        if not expected:
            with pytest.raises(NotFound, match="no document meets"):
                base.search("lease of the quay", where=text)
            continue
        assert names(base.search("lease of the quay", k=100, retriever="bm25", where=text)) == expected, text
        assert names(base.search("lease of the quay", k=100, where=text)) <= expected, text
        answer = base.ask("When does the lease of the quay end?", recipe=RECIPE, where=text)
        seen = {hit.node.document_name for step in answer.trail for hit in getattr(step, "hits", ())}
        assert seen and seen <= expected and names(answer.evidence) <= expected, text
    assert len(sizes) > 15


def test_the_api_of_the_server(base, tmp_path):
    from serve_app import ServedApp

    base, facts = base
    with ServedApp(base.path) as app:
        for text, expected in conditions(facts):
            asked = {"question": "lease of the quay", "k": 100, "retriever": "bm25", "where": text}
            status, reply = app.post(f"{app.api}/search", asked)
            assert status == (200 if expected else 404), (text, reply)
            assert {hit["document"] for hit in reply.get("hits", ())} == expected, text
        text, expected = next((text, some) for text, some in conditions(facts) if 1 < len(some) < 9)
        answer = app.ask("When does the lease end?", recipe="read", where=text)
        assert {hit["document"] for hit in answer["evidence"]} <= expected


def test_evaluations_and_the_command_line(base, tmp_path, capsys, monkeypatch):
    from clew.app.cli.commands import app

    base, facts = base
    monkeypatch.setenv("CLEW_HOME", str(base.path))
    data = tmp_path / "questions.jsonl"
    data.write_text(json.dumps({"question": "When does the lease end?", "answer": "May"}) + "\n")
    chosen = [(text, expected) for text, expected in conditions(facts) if 1 < len(expected) < 20][:4]
    for number, (text, expected) in enumerate(chosen):
        run = tmp_path / f"run{number}"
        command = [
            "eval",
            "run",
            "--data",
            f"jsonl={data}",
            "--corpus",
            "kb",
            "-r",
            RECIPE,
            "--out",
            str(run),
        ]
        for arguments in (
            ["search", "lease of the quay", "-k", "100", "--retriever", "bm25", "--json", "--where", text],
            [*command, "--where", text],
        ):
            with pytest.raises(SystemExit) as end:
                app(arguments)
            assert not end.value.code, capsys.readouterr()
            printed = capsys.readouterr().out
            if arguments[0] == "search":
                assert {hit["document"] for hit in json.loads(printed)["hits"]} == expected, text
        seen = set(
            re.findall(r"n\d+\.(?:md|txt)", "".join(path.read_text() for path in run.rglob("*.jsonl")))
        )
        assert seen and seen <= expected, text
