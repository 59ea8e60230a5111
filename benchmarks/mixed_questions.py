"""The thirty mixed questions over the samples and their graph: right per hop and in all, and against other methods.

    python benchmarks/mixed_questions.py --show
    python benchmarks/mixed_questions.py --method kgp       # what the documents alone know

A hop is right where the value that went on says what one of its gold answers says
(:func:`clew.core.values.same_value`); ``from its source`` counts those that came from the source that the
question was written for, or where no hop is wrong from another that knows it as well. The questions and their gold
were written and committed before there was anything to run.
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
from clew.core.trail import ConflictStep, FillStep
from clew.core.types import Answer
from clew.core.values import same_value
from clew.methods.mixed import best_fillings

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"


def is_right(value: str, gold: list[str]) -> bool:
    """Return whether a value says what one of the gold answers says."""
    return any(same_value(value, each) or fold_name(value) == fold_name(each) for each in gold)


def judge(record: dict[str, Any], answer: Answer) -> list[tuple[bool, bool]]:
    """Return for each gold hop whether its value is right, and whether it came from its source."""
    best = best_fillings(answer.trail)
    judged = []
    for number, hop in enumerate(record["hops"], 1):
        step: FillStep | None = best.get(f"#{number}")
        value = (step.values or ("",))[0] if step else ""
        judged.append((is_right(value, hop["answers"]), step is not None and step.source == hop["source"]))
    return judged


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="mixed", help="mixed, router, kgp, graph")
    parser.add_argument(
        "--show", action="store_true", help="print every hop of the questions that went wrong"
    )
    arguments = parser.parse_args()
    lines = (SAMPLES / "mixed-questions.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as folder, clew.open(folder + "/kb", create=True) as base:
        base.add([SAMPLES / "documents"])
        base.graphs.add(SAMPLES / "graphs" / "oskell-people-and-ships.tsv", name="oskell")
        counts: Counter[str] = Counter()
        by_source: dict[str, Counter[str]] = {}
        seconds = []
        for record in records:
            started = time.perf_counter()
            try:
                answer = base.ask(record["question"], recipe=arguments.method)
            except clew.ClewError as error:
                answer = Answer(str(error), abstained=True)
            seconds.append(time.perf_counter() - started)
            final = answer.values[0] if answer.values else answer.text
            outcome = "right" if is_right(final, record["answers"]) else "wrong"
            outcome = "refused" if answer.abstained else outcome
            counts[outcome] += 1
            hops = judge(record, answer)
            for hop, (right, own) in zip(record["hops"], hops, strict=True):
                counter = by_source.setdefault(hop["source"], Counter())
                counter.update({"hops": 1, "right": right, "own": right and own})
            conflicts = [step for step in answer.trail if isinstance(step, ConflictStep)]
            if "disagrees" in record:
                shown = any(record["disagrees"] in each.also.values + each.taken.values for each in conflicts)
                counts["disagreements"] += 1
                counts["disagreements shown"] += shown
            if arguments.show and (outcome != "right" or not all(right for right, _ in hops)):
                print(
                    f"{record['id']} {outcome}: {record['question']}  -> {final!r}, gold {record['answers']}"
                )
                for step in answer.trail:
                    if isinstance(step, FillStep):
                        print(
                            f"    {step.unknown} {step.source} {step.question!r}: {step.values} "
                            f"{step.confidence} {step.outcome or ''}"
                        )
        print(
            f"{len(records)} questions: right {counts['right']}, wrong {counts['wrong']}, "
            f"refused {counts['refused']}; {statistics.median(seconds):.1f} s in the median"
        )
        for source, counter in sorted(by_source.items()):
            print(
                f"hops of a {source:9s} {counter['hops']:3d}  right {counter['right']:3d}  "
                f"from a {source} {counter['own']:3d}"
            )
        if counts["disagreements"]:
            print(f"disagreements shown {counts['disagreements shown']} of {counts['disagreements']}")


if __name__ == "__main__":
    main()
