"""The default router on a mixture of 300 questions, against each single method and an oracle that always picks right.

    python benchmarks/route_mixture.py build --kb build/mixture            # one base with everything: minutes
    python benchmarks/route_mixture.py ask --kb build/mixture --method router --out build/mixture-router.jsonl
    python benchmarks/route_mixture.py report build/mixture-*.jsonl

One base holds the sample documents, the paragraphs of 40 questions of HotpotQA, 30 of MuSiQue and 40 of
2WikiMultihopQA (seed 0), and three graphs: MetaQA's films, the gold triples of those 40 of 2WikiMultihopQA, the
samples' people and ships. The questions: those 110; 40 about structure of the samples (``routing.jsonl``; right
where every labelled node is in the evidence); 40 over the samples' CSV and XLSX files, written below; 30 of two
and 30 of three hops of MetaQA (right where the first answer is); the samples' 30 mixed questions; 20 that nothing
here answers (right where the answer abstains): the samples' four, and sixteen of HotpotQA whose paragraphs are not
in the base. ``ask`` goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clew
from clew.core.errors import UsageError
from clew.core.text import fold_name
from clew.core.trail import StructureStep
from clew.core.types import Answer, Question, RouteStep
from clew.core.values import same_value
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.knowledge_base import registry
from clew.models.plan_judge import create_plan_judge
from clew.questions.outline_reading import create_outline_reader
from clew.retrieve.structure.lookup import StructureSearch
from real_graphs import write_gold_triples
from routing import is_target

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
SIZES = {"hotpotqa": 40, "musique": 30, "2wikimultihopqa": 40}
FILES = {"hotpotqa": "train100.jsonl", "musique": "train100.jsonl", "2wikimultihopqa": "train500.jsonl"}
#: Questions over the samples' tables with their answers, worked out by hand with a spreadsheet's formulas.
TABLE_QUESTIONS = """
How many people are in the crew list?	15
How many of the crew live in Saltreach?	6
How many crew have the rank Master?	4
What is the average weekly wage of the Masters?	31.375|31.38
What is the total weekly wage of the crew of the Heron Queen?	97.25
Who has the highest weekly wage?	Pellow, Jonas|Jonas Pellow
Who has the lowest weekly wage?	Quint, Leopold|Leopold Quint
Who was engaged in 1894?	Pellow, Jonas|Jonas Pellow
What is the rank of Ruth Okell?	Purser
What was the weekly wage of Ada Tolland?	23.25|$23.25
On which vessel did Sylvie Perrin serve?	Heron Queen
When was Fergus Lisle engaged?	1924
What is the home of Silas Garrow?	Dunmere Landing
How many deckhands are there?	2
What is the sum of the weekly wages?	371.5|371.50
How many shipments of freight were there?	24
How many tons did the Bittern carry?	564
What was the total charge for freight?	954.2|954.20
How many shipments were consigned by Greenlow Quarry?	3
What was the total charge of Okell & Daughters?	42.4|42.40
Which vessel carried the most tons?	Bittern
What was the largest charge?	96|96.00
How many shipments went to Saltreach?	9
What is the average charge of the Sandpiper?	42
How many tons of coal were carried?	76
What did the lamp oil weigh in tons?	13
Where did the cheese of April 1929 go?	Saltreach
What was the charge for the chain of the Tolland Yard?	28|28.00
Which consignor sent the instruments?	Perrin & Daughter
How many readings of the gauges are there?	64
How many readings did P. Ames make?	4
What was the highest stage at Fenner Mouth?	3.62
What was the lowest stage at Hallow Weir?	0.92
What was the average stage at Upper Quill?	1.701875|1.7|1.70
Who observed the gauge at Hallow Weir?	J. Okell
How many readings at Fenner Mouth are above 3?	4
What was the stage at Saltreach Bar on 1929-03-12 at 06:00?	3.20|3.2
What was remarked at Upper Quill on 1929-03-15 at 18:00?	peak; quay awash
What is the highest stage at Saltreach Bar?	3.47
How many stations are there?	4
"""


@dataclass(frozen=True)
class Task:
    """A question of the mixture: where it comes from, and what judges its answer."""

    id: str
    kind: str
    question: str
    answers: tuple[str, ...]
    targets: tuple[dict[str, Any], ...] = ()


def choose_examples(data: Path, name: str, others: int = 0) -> list[Example]:
    """Return the questions of a data set that are asked, then ``others`` whose paragraphs are left out."""
    examples = list(load_dataset(name, data / name / FILES[name]).examples())
    random.Random(0).shuffle(examples)
    return examples[: SIZES[name] + others]


def read_tasks(data: Path) -> Iterator[Task]:
    """Yield the 300 questions."""
    for name in SIZES:
        for example in choose_examples(data, name)[: SIZES[name]]:
            yield Task(example.id, name, example.question, tuple(example.answers))
    for line in (ROOT / "benchmarks" / "data" / "routing.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["structural"]:
            yield Task(record["id"], "structure", record["question"], (), tuple(record["targets"]))
    for number, line in enumerate(TABLE_QUESTIONS.strip().splitlines(), 1):
        question, answers = line.split("\t")
        yield Task(f"table-{number}", "tables", question, tuple(answers.split("|")))
    for hops in (2, 3):
        lines = (data / "metaqa" / f"dev_{hops}hop.jsonl").read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(random.Random(0).sample(lines, 30)):
            record = json.loads(line)
            question = re.sub(r"[\[\]]", "", record["question"])
            yield Task(f"metaqa-{hops}-{number}", "metaqa", question, tuple(record["answers"]))
    for line in (SAMPLES / "mixed-questions.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        yield Task(record["id"], "mixed", record["question"], tuple(record["answers"]))
    for line in (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] == "unanswerable":
            yield Task(record["id"], "unanswerable", record["question"], ())
    for example in choose_examples(data, "hotpotqa", 16)[SIZES["hotpotqa"] :]:
        yield Task(example.id, "unanswerable", example.question, ())


def build(data: Path, kb: Path) -> None:
    """Make the base."""
    encoder = registry.load_encoder("clew:hops")
    with clew.open(kb, create=True) as base:
        examples = [example for name in SIZES for example in choose_examples(data, name)]
        fill_store(base.store, pool_paragraphs(examples), EvaluationSettings(encoder=encoder))
        base.add([SAMPLES / "documents"])
        base.graphs.add(data / "metaqa" / "graph.tsv", name="films")
        base.graphs.add(SAMPLES / "graphs" / "oskell-people-and-ships.tsv", name="oskell")
        chosen = {example.id for example in choose_examples(data, "2wikimultihopqa")}
        lines = (data / "2wikimultihopqa" / FILES["2wikimultihopqa"]).read_text(encoding="utf-8").splitlines()
        part = kb / "chosen.jsonl"
        part.write_text(
            "\n".join(line for line in lines if json.loads(line)["_id"] in chosen), encoding="utf-8"
        )
        base.graphs.add(write_gold_triples(part, kb / "2wiki.jsonl"), name="2wiki")


def judge(task: Task, answer: Answer, base: clew.KnowledgeBase) -> bool:
    """Return whether an answer is right."""
    if task.kind == "unanswerable":
        return answer.abstained
    if task.targets:
        snapshot = base.store.snapshot()
        is_read = any(isinstance(step, StructureStep) and step.references for step in answer.trail)
        search = StructureSearch(snapshot, create_outline_reader(create_plan_judge()))
        named = search.find_certain(Question(task.question)).references
        nodes = snapshot.nodes(snapshot.rows([reference.node for reference in named]))
        all_named = all(any(is_target(node, target, snapshot) for node in nodes) for target in task.targets)
        return is_read and all_named
    if answer.abstained:
        return False
    given = answer.values[0] if answer.values else answer.text
    candidates = {given, given.rpartition(": ")[2], given.partition(":")[0]}
    return any(
        same_value(value, gold) or fold_name(value) == fold_name(gold)
        for value in candidates
        for gold in task.answers
    )


def ask(data: Path, kb: Path, method: str, out: Path, minutes: float, kinds: list[str]) -> None:
    """Ask every question of one method, or those of some ``kinds``, and write a line for each."""
    done = {json.loads(line)["id"] for line in out.read_text().splitlines()} if out.exists() else set()
    until = time.monotonic() + 60 * minutes
    with clew.open(kb) as base, out.open("a", encoding="utf-8") as file:
        tasks = [task for task in read_tasks(data) if not kinds or task.kind in kinds]
        base.ask(tasks[0].question, recipe=method if method != "mixed" else "router")  # nothing is timed cold
        for task in tasks:
            if task.id in done:
                continue
            if time.monotonic() > until:
                print("stopped for now; run it again to go on")
                return
            started = time.perf_counter()
            try:
                answer = base.ask(task.question, recipe=method)
            except UsageError as error:  # 'mixed' refuses a question of one hop
                answer = Answer(error.problem, abstained=True)
            record = {
                "id": task.id,
                "kind": task.kind,
                "method": method,
                "right": judge(task, answer, base),
                "abstained": answer.abstained,
                "seconds": round(time.perf_counter() - started, 4),
                "calls": answer.usage.calls,
                "routes": [step.method for step in answer.trail if isinstance(step, RouteStep)],
                "question": task.question,
                "answer": answer.text[:120],
                "gold": task.answers[:3],
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()


def report(files: list[Path]) -> None:
    """Print right answers by kind of question and method, seconds and calls, and what an oracle router would have."""
    records: dict[str, dict[str, dict[str, Any]]] = {}
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records.setdefault(record["method"], {})[record["id"]] = record
    single = [method for method in records if method != "router"]
    oracle: dict[str, dict[str, Any]] = {}
    for id in records["router"]:
        of_methods = [records[method][id] for method in single if id in records[method]]
        oracle[id] = min(of_methods, key=lambda record: (not record["right"], record["seconds"]))
    columns = {**records, "oracle": oracle}
    kinds = list(dict.fromkeys(record["kind"] for record in records["router"].values()))
    print("| questions | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for kind in [*kinds, "all"]:
        ids = [id for id, record in records["router"].items() if kind in ("all", record["kind"])]
        cells = [
            str(sum(column[id]["right"] for id in ids)) if all(id in column for id in ids) else "not run"
            for column in columns.values()
        ]
        print(f"| {kind} ({len(ids)}) | " + " | ".join(cells) + " |")
    wrong = [
        sum(not each["right"] and not each["abstained"] for each in column.values())
        for column in columns.values()
    ]
    print("| answered wrongly | " + " | ".join(map(str, wrong)) + " |")
    seconds = [statistics.median(each["seconds"] for each in column.values()) for column in columns.values()]
    print("| seconds, median | " + " | ".join(f"{each:.2f}" for each in seconds) + " |")
    total = [sum(each["seconds"] for each in column.values()) for column in columns.values()]
    print("| seconds, all | " + " | ".join(f"{each:.0f}" for each in total) + " |")
    print(
        "| model calls | "
        + " | ".join(str(sum(e["calls"] for e in c.values())) for c in columns.values())
        + " |"
    )
    by_route: dict[str, list[dict[str, Any]]] = {}
    for record in records["router"].values():
        by_route.setdefault((record["routes"] or ["documents"])[-1], []).append(record)
    print()
    for route, of_route in sorted(by_route.items()):
        kinds_of = {kind: sum(each["kind"] == kind for each in of_route) for kind in kinds}
        listed = ", ".join(f"{kind} {number}" for kind, number in kinds_of.items() if number)
        middle = statistics.median(each["seconds"] for each in of_route)
        right = sum(each["right"] for each in of_route)
        print(f"- {route}: {len(of_route)} questions, {right} right, {middle:.2f} s in the median; {listed}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["build", "ask", "report"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--kb", type=Path, default=Path("build/mixture"))
    parser.add_argument("--method", default="router")
    parser.add_argument("--out", type=Path, default=Path("build/mixture-router.jsonl"))
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--kinds", default="", help="some kinds of questions, joined by commas")
    arguments = parser.parse_args()
    if arguments.what == "build":
        build(arguments.data, arguments.kb)
    elif arguments.what == "ask":
        kinds = arguments.kinds.split(",") if arguments.kinds else []
        ask(arguments.data, arguments.kb, arguments.method, arguments.out, arguments.minutes, kinds)
    else:
        report(arguments.files)


if __name__ == "__main__":
    main()
