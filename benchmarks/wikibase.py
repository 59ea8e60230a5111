"""Gold chains of 2WikiMultihopQA's comparison questions over a mounted store in the form of Wikidata.

    PYTHONPATH=src python benchmarks/wikibase.py --data ../shared/data

The store is an Oxigraph folder with the gold triples (``tests/wikibase_store.py``): properties with labels, dates
with their precision, items with the numbers that the data set gives them, and a table of titles. A question is
covered if all its relations are among those properties and all its dates can be read. No model.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.metrics.answers import exact_match
from clew.knowledge_base import registry
from clew.papers.gold_hops import gold_chain
from clew.store.sparql.mount_options import MountOptions
from wikibase_store import build_wikibase, is_covered


def read_ids(path: Path) -> dict[str, str]:
    """Return the number in Wikidata of each name of a triple, where the data set gives it."""
    ids = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for names, numbers in zip(row["evidences"], row["evidences_id"], strict=False):
            ids[names[0]] = numbers[0]
            if "date" not in names[1]:
                ids[names[2]] = numbers[2]
    return ids


def select_comparisons(path: Path) -> tuple[list[Example], list[Example]]:
    """Return the comparison questions, and those of them that a Wikibase can hold."""
    examples = [
        example
        for example in load_dataset("2wikimultihopqa", path).examples()
        if "comparison" in example.question_type
    ]
    return examples, [example for example in examples if is_covered(example.chain)]


def answer_questions(
    path: Path, examples: list[Example], encoder: bool, verbose: bool = False
) -> tuple[Counter[str], Counter[str]]:
    """Return how many questions of each type there are, and how many are answered right."""
    right: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store, titles = build_wikibase([example.chain for example in examples], read_ids(path), folder)
        with clew.open(folder / "kb", create=True) as base:
            base.graphs.mount("wikidata", str(store), MountOptions(titles=str(titles)))
            loaded = base.encoding.encoder() if encoder else None
            method = registry.build_method("chain(sources=kg)", base.store, encoder=loaded)
            for example in examples:
                chain, _ = gold_chain(example)
                answer = method.answer(Question(example.question, chain=str(chain)), TrailRecorder())
                is_right = any(exact_match(answer.text, gold) for gold in example.answers)
                right[example.question_type] += is_right
                if verbose and not is_right:
                    print(f"{example.question} | {example.answers[0]} | {answer.text} | {chain}")
    return Counter(example.question_type for example in examples), right


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--lexical", action="store_true", help="without the encoder")
    parser.add_argument("--verbose", action="store_true", help="print what was answered wrong")
    given = parser.parse_args()
    path = given.data / "2wikimultihopqa/train500.jsonl"
    every, covered = select_comparisons(path)
    started = time.perf_counter()
    counts, right = answer_questions(path, covered[: given.limit], not given.lexical, given.verbose)
    seconds = time.perf_counter() - started
    print(f"{len(every)} comparison questions, {len(covered)} covered")
    for kind in sorted(counts):
        print(f"{kind}: {right[kind]} of {counts[kind]} right")
    print(f"{right.total()} of {counts.total()} right, {1000 * seconds / counts.total():.0f} ms a question")


if __name__ == "__main__":
    main()
