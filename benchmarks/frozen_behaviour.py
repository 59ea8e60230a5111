"""Record what clew answers and prints, and compare it after a change that should alter nothing.

Usage:
    python benchmarks/frozen_behaviour.py record OUT.jsonl --data ../shared/data --work DIR
    python benchmarks/frozen_behaviour.py compare BEFORE.jsonl AFTER.jsonl

``record`` asks 200 questions (samples, three multi-hop sets, company filings, MetaQA with gold triples), each by the
recipes that suit it, eight in all, and runs every command that prints JSON. A line holds a key and what came back: the
answer's text, the ids and rounded scores of its evidence, the names of its steps, or a command's JSON without times and
paths. Bases are built from the same files each time, so parsing, storage and encoding are compared as well.
``compare`` prints every difference and exits 1 where there is one.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew

ROOT = Path(__file__).parent.parent
SEED = 0
#: Multi-hop sets: file, questions drawn.
SETS = {
    "2wikimultihopqa/train500.jsonl": 35,
    "hotpotqa/train100.jsonl": 35,
    "musique/train100.jsonl": 30,
}
DOCUMENT_RECIPES = (
    "default",
    "read(retriever=bm25)",
    "read(retriever=hybrid)",
    "kgp(graph=keywords(n=20), guide=tfidf, hops=3)",
    "read(retriever=drill, reader=span)",
    "read(retriever=twohop)",
)
GRAPH_RECIPES = ("chain(sources=kg)", "focus")
METAQA_RELATIONS = {
    "director": "directed_by",
    "writer": "written_by",
    "actor": "starred_actors",
    "year": "release_year",
    "language": "in_language",
    "tags": "has_tags",
    "genre": "has_genre",
}


def sample(path: Path, count: int) -> list[dict[str, Any]]:
    """Return ``count`` records of a JSON-lines file, drawn with the fixed seed, in file order."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    chosen = sorted(random.Random(SEED).sample(range(len(records)), min(count, len(records))))
    return [records[index] for index in chosen]


def paragraphs(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield title and text of the paragraphs of a HotpotQA, 2WikiMultihopQA or MuSiQue record."""
    for title, sentences in record.get("context", ()):
        yield title, "".join(sentences)
    for paragraph in record.get("paragraphs", ()):
        yield paragraph["title"], paragraph["paragraph_text"]


def write_paragraphs(records: list[dict[str, Any]], folder: Path) -> None:
    """Write each distinct paragraph as a Markdown file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    distinct = sorted({pair for record in records for pair in paragraphs(record)})
    for number, (title, text) in enumerate(distinct):
        (folder / f"{number:05}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


def gold_chain(record: dict[str, Any]) -> str:
    """Return the triples that the type of a MetaQA question spells, or "" where a word of it is no relation."""
    words = record["type"].split("_to_")
    topic = re.search(r"\[(.+?)\]", record["question"])
    if topic is None:
        return ""
    previous, triples = topic[1], []
    for number, (here, there) in enumerate(zip(words, words[1:], strict=False), 1):  # noqa: RUF007
        word = there if here == "movie" else here
        if word not in METAQA_RELATIONS:
            return ""
        head, tail = (previous, f"#{number}") if here == "movie" else (f"#{number}", previous)
        triples.append(f"{head} >> {METAQA_RELATIONS[word]} >> {tail}")
        previous = f"#{number}"
    return "; ".join([*triples, f"final answer: {previous}"])


def normalise(value: Any, work: Path) -> Any:
    """Return a JSON value without times and with the working folder's path replaced."""
    if isinstance(value, dict):
        return {
            key: normalise(item, work)
            for key, item in value.items()
            if not key.endswith("seconds") and key not in {"mtime_ns", "elapsed", "bytes", "size_bytes"}
        }
    if isinstance(value, list):
        return [normalise(item, work) for item in value]
    if isinstance(value, str):
        return value.replace(str(work), "WORK").replace(str(ROOT.resolve()), "ROOT")
    return round(value, 6) if isinstance(value, float) else value


def describe_answer(answer: clew.Answer) -> dict[str, Any]:
    """Return what has to stay the same of an answer."""
    return {
        "text": answer.text,
        "abstained": answer.abstained,
        "reader": answer.reader,
        "recipe": answer.recipe,
        "evidence": [[hit.node.id, round(hit.score, 6), list(hit.path)] for hit in answer.evidence],
        "context": [hit.node.id for hit in answer.context],
        "quotes": [[quote.node, quote.text, list(quote.span)] for quote in answer.quotes],
        "values": list(answer.values[:50]),
        "ranked": [
            [ranked.name, round(ranked.hit.score, 6), ranked.ranked_by] for ranked in answer.ranking[:20]
        ],
        "steps": [[step.name, len(step.hits)] for step in answer.trail],
    }


class Recording:
    """Writes one line for each thing recorded."""

    def __init__(self, out: Path, work: Path) -> None:
        self._file = out.open("w", encoding="utf-8")
        self._work = work

    def write(self, key: str, value: Any) -> None:
        """Write a key with its value."""
        self._file.write(json.dumps([key, normalise(value, self._work)], ensure_ascii=False) + "\n")
        self._file.flush()
        print(key, flush=True)

    def command(self, *arguments: str) -> None:
        """Run a command of clew and record its exit status and its JSON."""
        environment = dict(os.environ, CLEW_CACHE=str(self._work / "cache"), COLUMNS="100")
        result = subprocess.run(
            [sys.executable, "-m", "clew", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        try:
            printed = json.loads(result.stdout)
        except ValueError:
            printed = re.sub(r"[0-9.]+ ?(ms|s|MB|KB|GB)\b", "N", result.stdout).splitlines()
        key = " ".join(arguments).replace(str(self._work), "WORK").replace(str(ROOT.resolve()), "ROOT")
        self.write(f"$ clew {key}", {"status": result.returncode, "json": printed})

    def questions(self, base: Path, questions: list[tuple[str, str, str]], recipes: tuple[str, ...]) -> None:
        """Ask each question (key, text, triples) by each recipe, and record the answers."""
        with clew.open(base) as opened:
            for recipe in recipes:
                for key, text, chain in questions:
                    try:
                        described = describe_answer(opened.ask(text, recipe=recipe, chain=chain))
                    except clew.ClewError as error:
                        described = {"error": type(error).__name__}
                    self.write(f"{key} | {recipe}", described)


def record(out: Path, data: Path, work: Path) -> None:
    """Build the bases and record everything."""
    work.mkdir(parents=True, exist_ok=True)
    recording = Recording(out, work)
    samples = work / "samples"
    kb = ("--kb", str(samples), "--json")
    recording.command("add", str(ROOT / "samples" / "documents"), *kb)
    for arguments in (
        ["list"],
        ["info", "--digest"],
        ["info", "--graphs", "all"],
        ["recipes"],
        ["doctor"],
        ["encoder", "list"],
        ["show", "lighter-hire-contract.pdf"],
        ["show", "oskell-passage-annual-report-1931.pdf", "--page", "2"],
        ["show", "company-ledger-1928-29.xlsx", "--table", "1"],
        ["search", "crew of the lighter"],
        ["search", "crew of the lighter", "--retriever", "bm25", "-k", "3"],
        ["search", "crew of the lighter", "--retriever", "drill(words=32, sections=3)"],
        ["ask", "In what year was the lighter built?"],
        ["ask", "What does the table on page 2 say?", "-d", "oskell-passage-annual-report-1931.pdf"],
        ["ask", "What is the capital of Mongolia?"],
        ["ask", "Which lighter?", "--recipe", "nonsense"],
        ["estimate", str(ROOT / "samples" / "documents")],
        ["summarise"],
    ):
        recording.command(arguments[0], *arguments[1:], *(kb if arguments[0] != "recipes" else ("--json",)))
    own = [json.loads(line) for line in (ROOT / "samples" / "questions.jsonl").read_text().splitlines()]
    asked = [(f"samples {number}", record["question"], "") for number, record in enumerate(own)]
    recording.questions(samples, asked, DOCUMENT_RECIPES)
    films = work / "films"
    recording.command(
        "graph", "add", str(data / "metaqa" / "graph.tsv"), "--kb", str(films), "--name", "films", "--json"
    )
    for arguments in (["list"], ["schema", "films"], ["show", "films", "Kismet"], ["links"]):
        recording.command("graph", *arguments, "--kb", str(films), "--json")
    chains = [
        (f"metaqa {name} {number}", record["question"].replace("[", "").replace("]", ""), gold_chain(record))
        for name in ("dev_2hop", "dev_3hop")
        for number, record in enumerate(sample(data / "metaqa" / f"{name}.jsonl", 40))
    ]
    chains = [chain for chain in chains if chain[2]][:40]
    recording.questions(films, chains, GRAPH_RECIPES)
    recording.command("ask", "--triples", chains[0][2], "--kb", str(films), "--json")
    recording.command("ask", "--chain", chains[0][2], "--kb", str(films), "--json")
    records = [(name, record) for name, count in SETS.items() for record in sample(data / name, count)]
    write_paragraphs([record for _, record in records], work / "paragraphs")
    wiki = work / "wiki"
    recording.command("add", str(work / "paragraphs"), "--kb", str(wiki), "--json")
    recording.command("info", "--digest", "--kb", str(wiki), "--json")
    recording.command("info", "--graphs", "all", "--kb", str(wiki), "--json")
    questions = [
        (f"{name} {number}", record["question"], "") for number, (name, record) in enumerate(records)
    ]
    recording.questions(wiki, questions, DOCUMENT_RECIPES)
    filings = work / "filings"
    recording.command("add", str(data / "financebench" / "pdfs"), "--kb", str(filings), "--json")
    recording.command("info", "--digest", "--kb", str(filings), "--json")
    finance = sample(data / "financebench" / "questions.jsonl", 28)
    recording.questions(
        filings,
        [(f"financebench {number}", record["question"], "") for number, record in enumerate(finance)],
        DOCUMENT_RECIPES,
    )
    recording.command(
        *("eval", "run", "--data", f"musique={data}/musique/train100.jsonl", "--limit", "10"),
        *("-r", "read(retriever=bm25)", "-r", "kgp", "--out", str(work / "runs")),
    )
    recording.command("eval", "report", str(work / "runs"), "--json")
    recording.command("remove", "lighter-hire-contract.pdf", *kb)
    recording.command("info", "--digest", *kb)
    recording.command("graph", "remove", "films", "--kb", str(films), "--json")


def settle(value: Any) -> Any:
    """Return a recorded value without what depends on the order in which worker processes end, or on the clock."""
    if isinstance(value, dict):
        return {
            key: sorted(map(str, item))
            if key in {"added", "replaced"} and isinstance(item, list)
            else settle(item)
            for key, item in value.items()
            if not key.endswith("seconds")
        }
    return [settle(item) for item in value] if isinstance(value, list) else value


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each place where two JSON values differ; scores may differ by 2e-6."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from differences(before.get(key), after.get(key), f"{place}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from differences(left, right, f"{place}[{index}]")
    elif isinstance(before, float) and isinstance(after, float):
        if abs(before - after) > 2e-6:
            yield f"{place}: {before} -> {after}"
    elif before != after:
        yield f"{place}: {str(before)[:200]} -> {str(after)[:200]}"


def load_recording(path: Path) -> dict[str, Any]:
    """Return what was recorded by key; a key that occurs again is numbered."""
    values: dict[str, Any] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, value = json.loads(line)
        repeats = sum(known == key or known.startswith(f"{key} #") for known in values)
        values[f"{key} #{repeats + 1}" if repeats else key] = value
    return values


def compare(before: Path, after: Path) -> int:
    """Print every difference between two recordings; return how many keys differ."""
    old, new = load_recording(before), load_recording(after)
    different = 0
    for key in sorted({*old, *new}):
        lines = list(differences(settle(old.get(key)), settle(new.get(key))))
        if lines:
            different += 1
            print(key, *lines[:8], sep="\n  ")
    print(f"{len(old)} recorded before, {len(new)} after, {different} differ")
    return different


def main() -> None:
    """Run the command line above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("out", type=Path)
    recorder.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    recorder.add_argument("--work", type=Path, required=True)
    comparer = commands.add_parser("compare")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        sys.exit(1 if compare(options.before, options.after) else 0)
    record(options.out, options.data.resolve(), options.work.resolve())


if __name__ == "__main__":
    main()
