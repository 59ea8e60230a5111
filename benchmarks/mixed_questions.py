"""The thirty mixed questions over the samples and their graph: stated, shown and refused. No model.

    python benchmarks/mixed_questions.py --show
    python benchmarks/mixed_questions.py --method kgp       # what the documents alone know

An answer is right where its first value says what one of the gold answers says
(:func:`clew.core.values.same_value`), shown where one of the possible ones does. The questions and their gold were
written and committed before there was anything to run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import clew
from clew.core.text import fold_name
from clew.core.trail import FillStep
from clew.core.types import Answer
from clew.core.values import same_value

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"


def is_right(value: str, gold: list[str]) -> bool:
    """Return whether a value says what one of the gold answers says."""
    return any(same_value(value, each) or fold_name(value) == fold_name(each) for each in gold)


def judge(record: dict[str, Any], answer: Answer) -> str:
    """Return how a question was answered: right, wrong, shown, clutter or refused."""
    firsts = [each.values[0] if each.values else each.text for each in (answer.perhaps or (answer,))]
    is_there = any(is_right(first, record["answers"]) for first in firsts)
    if answer.way == "not_found":
        return "refused"
    return {("answer", True): "right", ("answer", False): "wrong", ("perhaps", True): "shown"}.get(
        (answer.way, is_there), "clutter"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="router", help="router, kgp, graph")
    parser.add_argument(
        "--show", action="store_true", help="print the steps of the questions that are not right"
    )
    arguments = parser.parse_args()
    lines = (SAMPLES / "mixed-questions.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as folder, clew.open(folder + "/kb", create=True) as base:
        base.add([SAMPLES / "documents"])
        base.graphs.add(SAMPLES / "graphs" / "oskell-people-and-ships.tsv", name="oskell")
        counts: Counter[str] = Counter()
        seconds = []
        for record in records:
            started = time.perf_counter()
            answer = base.ask(record["question"], recipe=arguments.method)
            seconds.append(time.perf_counter() - started)
            outcome = judge(record, answer)
            counts[outcome] += 1
            if arguments.show and outcome != "right":
                print(
                    f"{record['id']} {outcome}: {record['question']}  -> {answer.text!r}, gold {record['answers']}"
                )
                for step in answer.trail:
                    if isinstance(step, FillStep):
                        print(
                            f"    {step.unknown} {step.source} {step.question!r}: {step.values} {step.confidence}"
                        )
        print(
            f"{len(records)} questions: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}; "
            f"{statistics.median(seconds):.1f} s in the median"
        )


if __name__ == "__main__":
    main()
