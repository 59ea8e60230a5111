"""Questions about the structure of documents: how many are answered rightly, wrongly, or left to the search?

    python benchmarks/structure.py                          # the 120 questions of data/structure.jsonl
    python benchmarks/structure.py --part development --show   # those that may be looked at, with the failures
    python benchmarks/structure.py --ordinary               # 550 questions about content: false alarms

The questions were written, with answers read off the documents, before there was anything to read them; eighty
(``development``) may be looked at; forty, drawn with seed 19 from those on the samples and filings, never were.
Nothing is trained on them. Base
``samples`` is ``samples/documents``, ``filings`` the eight filings of FinanceBench in the shared data, ``issue``
the documents that ``tests/structure_documents.py`` writes. No model is used.

A question is *right* if exactly what it asks for comes: the number, the pages, the items, the content of the places
and nothing else, or for one about content nothing at all. It is *refused* where it is left to the search, and else
*wrong*.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from clew.core.protocols import Snapshot  # noqa: E402
from clew.core.text import normalise  # noqa: E402
from clew.core.trail import TrailRecorder  # noqa: E402
from clew.core.types import Location, Node, Question  # noqa: E402
from clew.models.plan_judge import create_plan_judge  # noqa: E402
from clew.parse.documents.builder import DocumentBuilder  # noqa: E402
from clew.parse.documents.reader import read_file  # noqa: E402
from clew.questions.outline_reading import create_outline_reader  # noqa: E402
from clew.retrieve.structure.lookup import ASKED_FROM, StructureResult, StructureSearch  # noqa: E402
from clew.store.store import Store  # noqa: E402
from structure_documents import write_documents  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
FILINGS = DATA / "financebench" / "pdfs"
QUESTIONS = ROOT / "benchmarks" / "data" / "structure.jsonl"


def base_of_files(folder: Path, paths: list[Path]) -> Store:
    """Return a base of files."""
    base = Store.open(folder, create=True)
    for path in sorted(paths):
        stat = path.stat()
        place = Location(str(path), str(path.parent), stat.st_size, stat.st_mtime_ns, stat.st_ino)
        base.put_document(read_file(path), place)
    base.catch_up()
    return base


def judge(line: dict[str, Any], result: StructureResult, snapshot: Snapshot) -> str:
    """Return ``right``, ``wrong`` or ``refused``."""
    if "ordinary" in line:
        return "wrong" if result else "right"
    if not result:
        return "refused"
    return "right" if is_right(line, result, snapshot) else "wrong"


def is_right(line: dict[str, Any], result: StructureResult, snapshot: Snapshot) -> bool:
    """Return whether a result is what a question asks for."""
    text, nodes = result.text, [hit.node for hit in result.hits]
    documents = {node.document_name for node in nodes}
    if "count" in line:
        return numbers_of(text, line) == [line["count"]]
    if "yes" in line:
        return text.startswith("Yes" if line["yes"] else "No")
    if "missing" in line:
        return line["missing"] in text and not nodes
    if "pages" in line:
        return documents == set(line["documents"]) and pages_of(text) == line["pages"]
    if "items" in line:
        listed = sum(bool(re.match(r"\d+\. ", row)) for row in text.splitlines())
        complete = all(normalise(item) in normalise(text) for item in line["items"])
        return complete and documents == set(line["documents"]) and listed == line.get("size", listed)
    places = line["places"]
    each = all(any(stands_in(node, place, snapshot) for place in places) for node in nodes)
    return each and all(any(stands_in(node, place, snapshot) for node in nodes) for place in places)


def numbers_of(text: str, line: dict[str, Any]) -> list[int]:
    """Return the counts that an answer states: "has 8 pages", "There are 1,037 pages"."""
    return [int(number.replace(",", "")) for number in re.findall(r"(?:has|are|is) (\d[\d,]*) [a-z]", text)]


def pages_of(text: str) -> list[int]:
    """Return the pages that an answer names, each once."""
    listed = re.findall(r"[Pp]ages? ((?:\d+(?:, | and )?)+)", text)
    return sorted({int(number) for group in listed for number in re.findall(r"\d+", group)})


def stands_in(node: Node, place: dict[str, Any], snapshot: Snapshot) -> bool:
    """Return whether a node is, or is part of, a place."""
    if node.document_name != place["document"]:
        return False
    if "row" in place:
        return node.kind == "row" and place_in_table(node, snapshot) == place["row"]
    if "number" in place:
        return node.kind == "table" and table_number(node, snapshot) == place["number"]
    if "table" in place:
        return node.kind == "table" and normalise(place["table"]) in normalise(node.text)
    if "section" in place:
        return in_section(node, normalise(place["section"]), snapshot)
    return place["page"] in ({box.page for box in node.boxes} | {node.page})


def in_section(node: Node, name: str, snapshot: Snapshot) -> bool:
    """Return whether a node stands under a heading, or under an exhibit's heading and before the next exhibit's."""
    if any(normalise(heading).startswith(name) for heading in [*node.headings, node.name]):
        return True
    start, _ = snapshot.document_rows(node.document)
    before = snapshot.nodes(range_of(start, start + node.position))
    exhibits = [
        other for other in before if other.kind == "section" and normalise(other.name).startswith("exhibit ")
    ]
    return name.startswith("exhibit ") and bool(exhibits) and normalise(exhibits[-1].name).startswith(name)


def place_in_table(row: Node, snapshot: Snapshot) -> int:
    (table,) = snapshot.nodes(snapshot.rows([row.parent or ""]))
    return row.position - table.position


def table_number(table: Node, snapshot: Snapshot) -> int:
    start, end = snapshot.document_rows(table.document)
    kinds = snapshot.nodes(range_of(start, end))
    return [node.id for node in kinds if node.kind == "table"].index(table.id) + 1


def range_of(start: int, end: int) -> Any:
    import numpy as np

    return np.arange(start, end)


def report(title: str, outcomes: list[str]) -> None:
    counts = Counter(outcomes)
    figures = " | ".join(str(counts[name]) for name in ("right", "wrong", "refused"))
    print(f"| {title} | {len(outcomes)} | {figures} |")


def ask_all(lines: list[dict[str, Any]], bases: dict[str, Store], show: bool) -> list[str]:
    """Return the outcome of every question."""
    outcomes = []
    for line in lines:
        snapshot = bases[line["base"]].snapshot()
        search = StructureSearch(snapshot, create_outline_reader(create_plan_judge()))
        result = search.find(Question(line["question"]), TrailRecorder())
        outcomes.append(judge(line, result, snapshot))
        if show and line["part"] == "development" and outcomes[-1] != "right":
            print(f"{outcomes[-1]:8}{line['id']}: {line['question']}")
            nodes = [
                (hit.node.document_name[:14], hit.node.kind, hit.node.page, hit.node.name[:30])
                for hit in result.hits
            ]
            print(f"        {result.text[:300]!r} {nodes[:6]}")
    return outcomes


def ordinary_questions(seed: int = 3) -> Iterator[tuple[str, str]]:
    """Yield 550 questions about content with the set they are from."""
    import random

    draw = random.Random(seed)
    financebench = [
        json.loads(line)["question"] for line in (DATA / "financebench" / "questions.jsonl").open()
    ]
    yield from (("FinanceBench", question) for question in financebench)
    for name, file, size in (
        ("2WikiMultihopQA", "2wikimultihopqa/train500.jsonl", 150),
        ("HotpotQA", "hotpotqa/train100.jsonl", 100),
        ("MuSiQue", "musique/train100.jsonl", 100),
        ("reading/dev", "reading/dev.jsonl", 172),
    ):
        questions = [json.loads(line)["question"] for line in (DATA / file).open()]
        yield from ((name, question) for question in draw.sample(questions, size))


def paragraphs() -> Iterator[tuple[str, str]]:
    """Yield title and text of the paragraphs of the multi-hop sets and of reading/dev, each title once."""
    seen: set[str] = set()
    for file in (
        "2wikimultihopqa/train500.jsonl",
        "hotpotqa/train100.jsonl",
        "musique/train100.jsonl",
        "reading/dev.jsonl",
    ):
        for line in (DATA / file).open():
            record = json.loads(line)
            context = record.get("context") or record.get("paragraphs")
            if isinstance(context, str):
                pairs = [(record["title"] or context[:40], context)]
            elif isinstance(context[0], dict):
                pairs = [(each["title"], each["paragraph_text"]) for each in context]
            else:
                pairs = [(title, " ".join(sentences)) for title, sentences in context]
            for title, text in pairs:
                if title not in seen:
                    seen.add(title)
                    yield title, text


def base_of_paragraphs(folder: Path) -> Store:
    """Return a base in which every paragraph is a document under its title."""
    base = Store.open(folder, create=True)
    for number, (title, text) in enumerate(paragraphs()):
        builder = DocumentBuilder()
        builder.add_heading(1, title)
        builder.add_paragraph(text)
        document = builder.finish(
            data=f"{number} {text}".encode(), title=title, media_type="text/plain", parser="text/1"
        )
        name = re.sub(r"[^\w ]+", "", title)[:60] + f"-{number}.txt"
        base.put_document(document, Location(f"/corpus/{name}", "/corpus", len(text), 0, number))
    base.catch_up()
    return base


def ask_ordinary(bases: dict[str, Store]) -> None:
    """Print how many questions about content are taken for questions about structure, over each base."""
    questions = list(ordinary_questions())
    for name, base in bases.items():
        snapshot = base.snapshot()
        search = StructureSearch(snapshot, create_outline_reader(create_plan_judge()))
        alarms, asked = [], 0
        for source, question in questions:
            result = search.find(Question(question), TrailRecorder())
            readings = search.plain.read(question, snapshot, Question(question).scope)
            asked += not result and sum(reading.probability for reading in readings) >= ASKED_FROM
            if result:
                alarms.append(
                    (source, question, result.text or result.hits[0].node.name or result.hits[0].node.text)
                )
        print(
            f"{len(questions)} questions about content, base {name} ({len(snapshot.documents())} documents): "
            f"{len(alarms)} false alarms; a model would be asked about {asked}"
        )
        for source, question, text in alarms:
            print(f"  {source}: {question} -> {text[:100]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=["development", "unseen", "all"], default="all")
    parser.add_argument(
        "--show", action="store_true", help="print the failures (of the development part only)"
    )
    parser.add_argument("--ordinary", action="store_true", help="ask 550 questions about content instead")
    arguments = parser.parse_args()
    csv.field_size_limit(1 << 24)
    lines = [json.loads(text) for text in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        samples = [*(ROOT / "samples" / "documents").iterdir()]
        filings = [*FILINGS.glob("*.pdf")] if FILINGS.is_dir() else []
        issue = [*write_documents(folder / "files").iterdir()]
        if arguments.ordinary:
            bases = {"samples and filings": base_of_files(folder / "a", [*samples, *filings, *issue])}
            bases["paragraphs"] = base_of_paragraphs(folder / "b")
        else:
            bases = {
                "samples": base_of_files(folder / "s", samples),
                "issue": base_of_files(folder / "i", issue),
            }
            if filings:
                bases["filings"] = base_of_files(folder / "f", filings)
            else:
                print("the shared filings are not here: their questions are left out")
        for base in bases.values():
            stack.enter_context(base)
        if arguments.ordinary:
            ask_ordinary(bases)
            return
        lines = [line for line in lines if line["base"] in bases]
        if not arguments.show:
            print("| questions | | right | wrong | refused |\n|---|---|---|---|---|")
        for part in ("development", "unseen") if arguments.part == "all" else (arguments.part,):
            own = [line for line in lines if line["part"] == part]
            outcomes = ask_all(own, bases, arguments.show)
            for name in bases:
                if chosen := [
                    outcome for line, outcome in zip(own, outcomes, strict=True) if line["base"] == name
                ]:
                    report(f"{part}, {name}", chosen)
            report(part, outcomes)


if __name__ == "__main__":
    main()
