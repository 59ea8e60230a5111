"""How often the plan that a question over a graph means is among the enumerated options, whole domains left out.

    python benchmarks/plan_options.py [--data ../shared/data/plans] [--number 60] [--misspelt] [--by kind]

Each graph's questions are read with slots that were fitted on the graphs of three other folds of four. Prints a line
for each kind or wording: the share of plans among the first 12, 32 and 64 options and among all, and the mean number
of options. ``--misspelt`` exchanges two letters in one of ten words.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from clew.models.encoders import OnnxEncoder, embedded_folder
from clew.models.plan_judge import create_plan_judge
from clew.questions.reading import PlanModel
from clew.train.plan_data import Domain, PlanQuestion, PlanSource, fit_slots, read_source

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from misspelling import misspell

FOLDS, CUTS = 4, (12, 32, 64)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data/plans"))
    parser.add_argument("--number", type=int, default=60, help="questions of a graph")
    parser.add_argument("--misspelt", action="store_true")
    parser.add_argument("--by", choices=["kind", "wording"], default="kind")
    given = parser.parse_args()
    folders = sorted(file.parent for file in given.data.glob("*/questions.jsonl"))
    encoder, asked, slots = OnnxEncoder(embedded_folder("hops")), {}, {}
    names = PlanModel.of_arrays(create_plan_judge().arrays).names
    for folder in folders:
        questions = [each for each in read_source(PlanSource(folder)) if each.plan is not None]
        asked[folder.name] = random.Random(0).sample(questions, min(given.number, len(questions)))
        with Domain(PlanSource(folder), encoder) as domain:
            slots[folder.name] = [domain.slots(question, names) for question in asked[folder.name]]
    ranks: dict[str, list[int | None]] = defaultdict(list)
    sizes: dict[str, list[int]] = defaultdict(list)
    for number, folder in enumerate(folders):
        others = [own for place, own in enumerate(slots.values()) if place % FOLDS != number % FOLDS]
        scorer = fit_slots([each for own in others for each in own])
        with Domain(PlanSource(folder), encoder) as domain:
            for place, question in enumerate(asked[folder.name]):
                example = domain.prepare(spell(question, place, given.misspelt), names, scorer)
                right = np.flatnonzero(example.right)
                for key in ("all", getattr(question, given.by)):
                    ranks[key].append(int(right[0]) if len(right) else None)
                    sizes[key].append(len(example.options))
    print(f"| {given.by} | n | " + " | ".join(f"@{cut}" for cut in CUTS) + " | any | options |")
    print("|---" * (4 + len(CUTS)) + "|")
    for key in ["all", *sorted(set(ranks) - {"all"})]:
        own = ranks[key]
        shares = [np.mean([rank is not None and rank < cut for rank in own]) for cut in (*CUTS, 10**6)]
        cells = " | ".join(f"{share:.2f}" for share in shares)
        print(f"| {key} | {len(own):,} | {cells} | {np.mean(sizes[key]):.0f} |")


def spell(question: PlanQuestion, seed: int, misspelt: bool) -> PlanQuestion:
    return replace(question, question=misspell(question.question, seed)) if misspelt else question


if __name__ == "__main__":
    main()
