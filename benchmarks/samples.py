"""The sample questions: how often the first five hits hold every document that a question needs.

``--parts`` asks twenty texts that ask several questions each (data/part_questions.tsv, written before questions were
taken apart; "-" is a question without an answer), by the default method and by the walk over the whole text.

python benchmarks/samples.py
python benchmarks/samples.py --retriever default --retriever hybrid --recipe kgp
python benchmarks/samples.py --encoder onnx:FOLDER
python benchmarks/samples.py --parts
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import clew
from clew.core.types import Answer, Hit
from clew.evaluate.metrics.answers import normalise_answer

SAMPLES = Path(__file__).parent.parent / "samples"
FIRST = 5

Search = Callable[[str], Sequence[Hit]]


def first_documents(hits: Sequence[Hit]) -> set[str]:
    return {hit.node.document_name for hit in hits[:FIRST]}


def measure(name: str, search: Search, questions: Sequence[dict[str, Any]]) -> list[str]:
    """Print a line of the table; return the lines of the table of misses."""
    several = [question for question in questions if len(question["documents"]) > 1]
    missing = {q["id"]: set(q["documents"]) - first_documents(search(q["question"])) for q in questions}
    share = {
        kind: sum(not missing[q["id"]] for q in some) / max(len(some), 1)
        for kind, some in (("all", questions), ("several", several))
    }
    print(f"| {name} | {share['all']:.2f} | {share['several']:.2f} |", flush=True)
    return [
        f"| {name} | {q['id']} | {', '.join(sorted(missing[q['id']]))} | {q['question']} |"
        for q in questions
        if missing[q["id"]]
    ]


def _evidence(base: clew.KnowledgeBase, recipe: str, text: str) -> Sequence[Hit]:
    return base.ask(text, recipe=recipe).evidence


def measure_parts(base: clew.KnowledgeBase) -> None:
    """Print of how many parts of the questions the answer is right, with questions taken apart and without."""
    path = Path(__file__).parent / "data" / "part_questions.tsv"
    questions = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    print("| method | texts | questions | right | texts with all right |\n|---|---|---|---|---|")
    for recipe in ("router", "kgp"):
        right = [
            [_answers(base.ask(text, recipe=recipe), gold) for gold in golds] for text, *golds in questions
        ]
        questions_asked = sum(map(len, right))
        print(
            f"| {recipe} | {len(right)} | {questions_asked} | {sum(map(sum, right))} | {sum(map(all, right))} |"
        )


def _answers(answer: Answer, gold: str) -> bool:
    text = normalise_answer(answer.text)
    if gold == "-":
        return answer.abstained or "not found" in text
    return f" {normalise_answer(gold)} " in f" {text} "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--retriever", action="append", help="retrievers (default: search, default, bm25)")
    parser.add_argument(
        "--recipe", action="append", default=[], help="methods, by the evidence of their answer"
    )
    parser.add_argument("--summary", action="store_true", help="without the questions that failed")
    parser.add_argument("--encoder", default="clew:hops", help="such as onnx:FOLDER, or none")
    parser.add_argument("--parts", action="store_true", help="ask texts that ask several questions")
    options = parser.parse_args()
    lines = (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    # Questions that the samples do not answer have no gold documents.
    questions = [record for line in lines if (record := json.loads(line))["documents"]]
    several = sum(len(question["documents"]) > 1 for question in questions)
    misses = []
    with tempfile.TemporaryDirectory() as temporary, clew.open(temporary, create=True) as base:
        base.encoding.set(None if options.encoder == "none" else options.encoder)
        base.add([SAMPLES / "documents"])
        if options.parts:
            measure_parts(base)
            return
        print(f"{len(questions)} questions, {several} of which need several documents\n")
        print(f"| search | all gold documents in the first {FIRST} hits | of those that need several |")
        print("|---|---|---|")
        for retriever in options.retriever or ["search", "default", "bm25"]:
            misses += measure(retriever, partial(base.search, k=FIRST, retriever=retriever), questions)
        for recipe in options.recipe:
            misses += measure(recipe, partial(_evidence, base, recipe), questions)
    if not options.summary:
        print("\n| search | question | not found | text |\n|---|---|---|---|")
        print("\n".join(misses))


if __name__ == "__main__":
    main()
