"""Does a small trained guide choose the next passage better than clew's? Five folds, today's walk, no language model.

The guide is a conditional logit over what is known of a step: the score of the guide `residual` and its parts, the
cosine with the query of the encoder, how well a passage matches what the path leaves open and the last passage of the
path, the strength and the kinds of edges, and how long the path is. Its coefficients b make the next gold passages
likeliest among the candidates of a step, softmax(b x); a candidate's opinion is then that softmax, steeper by a
factor. The steps are those after the gold passages of each question: one alone, and in their order two and three.

Every question is asked with the encoder of its own fold, which did not see it (benchmarks/folds.py), also where its
steps teach the guide; the guide of a fold learns from the other four, and its factor is the best one on those. So
neither encoder, coefficients nor factor saw the question. Paths that are not encoded have coefficients without the
parts that need a query of the encoder.

    python benchmarks/trained_guide.py --folds FOLDER --out guide             # with what folds.py made; an hour
    python benchmarks/trained_guide.py --folds FOLDER --out guide --report    # the tables again

Killed, it continues where it was.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import folds
from clew.core.types import RETRIEVED_KINDS, Question, Scope
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.methods.kgp.guides import OpenCandidates
from clew.methods.kgp.trained import FEATURES, WITHOUT_QUERY, Coefficients, TrainedGuide
from clew.store.store import Store
from guides import conditional_logit

METRICS = ("recall@2", "recall@5", "recall@10", "all-gold@5")
#: How much steeper than learned the opinion of the guide may be, since a walk multiplies its steps.
FACTORS = (1.0, 1.5)


class Study:
    """The questions of a fold, with its encoder."""

    def __init__(self, folder: Path, examples: folds.Examples, fold: int) -> None:
        self.fold, self.examples = fold, examples
        self.encoder = registry.load_encoder(f"onnx:{folder / f'fold{fold}' / 'onnx'}")
        self.bases = {name: Store.open(folder / "bases" / name) for name in examples}
        for base in self.bases.values():
            base.encode(self.encoder)

    def walk(self, name: str, recipe: str) -> Any:
        """Return a walk over the paragraphs of a set."""
        return registry.build_retriever(recipe, self.bases[name], encoder=self.encoder)

    def gold_rows(self, name: str, example: Example) -> list[int]:
        """Return the gold passages of a question, in the order of its evidence, each once."""
        snapshot, gold = self.bases[name].snapshot(), GoldEvidence(example)
        titles = {piece.title for piece in example.pieces}
        keys = frozenset(entry.key for entry in self.bases[name].documents() if entry.title in titles)
        rows = np.flatnonzero(snapshot.mask(Scope(documents=keys), RETRIEVED_KINDS))
        places = [
            (min(pieces), int(row))
            for row, node in zip(rows, snapshot.nodes(rows), strict=True)
            if (pieces := gold.matching_pieces(node))
        ]
        return [row for _, row in sorted(places)]

    def steps(self) -> Iterator[tuple[np.ndarray, list[int], bool]]:
        """Yield what is known of the candidates of each step, which are gold, and whether it is a later one."""
        for name, some in self.examples.items():
            walk = self.walk(name, "kgp(guide=trained)")
            guide: TrainedGuide = walk.guide
            allowed = walk.snapshot.mask(Scope(), RETRIEVED_KINDS)
            for example in some:
                gold = self.gold_rows(name, example)
                paths = [[row] for row in gold] + [list(both) for both in pairwise(gold)] * (len(gold) > 2)
                paths += [gold[:3]] * (len(gold) > 3)
                for path in paths:
                    near = guide.graph.neighbours(path[-1])
                    near = near[allowed[near]]
                    described = guide.describe(
                        Question(example.question), [path], [near], OpenCandidates(100, allowed)
                    )
                    ((rows, known, _),) = described
                    usable = ~np.isin(rows, path)
                    targets = np.flatnonzero(np.isin(rows[usable], gold)).tolist()
                    if targets:
                        yield known[usable], targets, len(path) > 1

    def ask(self, label: str, walks: dict[str, Any]) -> Iterator[dict[str, object]]:
        """Yield a record of each question, asked with the walk of its set."""
        for name, some in self.examples.items():
            for example in some:
                started = time.perf_counter()
                hits = walks[name].retrieve(Question(example.question), 10)
                seconds = time.perf_counter() - started
                gold = GoldEvidence(example)
                result = Result(example, hit_pieces=[gold.matching_pieces(hit.node) for hit in hits])
                measures = {metric: parse_metric(metric).measure(result) for metric in METRICS}
                yield {"walk": label, "fold": self.fold, "set": name, "id": example.id, "type": example.question_type,
                       "seconds": seconds, **measures}  # fmt: skip


def learn(steps: Sequence[tuple[np.ndarray, list[int], bool]], columns: int) -> np.ndarray:
    """Return the coefficients of the first ``columns`` features: each gold passage of a step is a choice, the others
    of it left out; features are scaled to a standard deviation of 1, with a penalty of 1."""
    scale = np.concatenate([known[:, :columns] for known, _, _ in steps]).std(axis=0) + 1e-9
    choices = []
    for known, targets, _ in steps:
        for target in targets:
            kept = np.ones(len(known), dtype=np.bool_)
            kept[[other for other in targets if other != target]] = False
            choices.append(((known[:, :columns] / scale)[kept], int(np.count_nonzero(kept[:target]))))
    learnt: np.ndarray = conditional_logit(choices, penalty=1.0) / scale
    return learnt


def measure(options: argparse.Namespace, examples: folds.Examples) -> None:
    """Make what is missing: the steps of every fold, the coefficients, the walks."""
    fold_of = folds.folds(examples)
    own = [
        {
            name: [e for e in some if fold_of[name, e.id] == fold][: options.limit]
            for name, some in examples.items()
        }
        for fold in range(folds.FOLDS)
    ]
    for fold in range(folds.FOLDS):
        path = options.out / f"steps{fold}.pickle"
        if not path.exists():
            steps = list(Study(options.folds, own[fold], fold).steps())
            path.write_bytes(pickle.dumps(steps))
            print(f"fold {fold}: {len(steps)} steps", flush=True)
    steps_of = [
        pickle.loads((options.out / f"steps{fold}.pickle").read_bytes()) for fold in range(folds.FOLDS)
    ]
    for fold in range(folds.FOLDS):
        study: Study | None = None
        learnt_from = [step for other, some in enumerate(steps_of) if other != fold for step in some]
        pair = learn(learnt_from, len(FEATURES)), learn(learnt_from, WITHOUT_QUERY)
        np.savez(options.out / f"coefficients{fold}.npz", *pair)
        for label in [*(f"trained {factor}" for factor in FACTORS), "encoder"]:
            path = options.out / f"{label.replace(' ', '-')}-fold{fold}.jsonl"
            if path.exists() or (options.walk and label not in options.walk):
                continue
            study = study or Study(options.folds, own[fold], fold)
            walks = {}
            for name in examples:
                options_of = (
                    "guide=encoder, prior=0.3, sharpness=20" if label == "encoder" else "guide=trained"
                )
                recipe = f"kgp({options_of})"
                walk = study.walk(name, recipe)
                if label.startswith("trained"):
                    factor = float(label.partition(" ")[2])
                    learnt = Coefficients(*(factor * some for some in pair))
                    walk = replace(walk, guide=replace(walk.guide, coefficients=learnt))
                walks[name] = walk
            records = list(study.ask(label, walks))
            path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
            print(f"fold {fold}, {label}: asked", flush=True)


def read_residual(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what folds.py recorded of the default walk over the pool of each set: the guide `residual`."""
    for fold in range(folds.FOLDS):
        for line in (folder / f"fold{fold}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if (record["recipe"], record["pool"]) == ("kgp", "own"):
                yield {**record, "walk": "residual", "fold": fold}


def read_records(folder: Path, of_folds: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each guide about the questions that all were asked; of `trained`, each fold by the factor
    that is best on the other folds."""
    every: dict[str, list[dict[str, Any]]] = {"residual": list(read_residual(of_folds))}
    for path in sorted(folder.glob("*-fold?.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            every.setdefault(record["walk"], []).append(record)
    asked = {
        (record["set"], record["id"]) for label in every for record in every[label] if label != "residual"
    }
    every["residual"] = [record for record in every["residual"] if (record["set"], record["id"]) in asked]
    factors = [label for label in every if label.startswith("trained")]
    chosen: list[dict[str, Any]] = []
    for fold in range(folds.FOLDS):
        means = {
            label: np.mean([
                np.mean([r["recall@5"] for r in every[label] if r["set"] == name and r["fold"] != fold])
                for name in folds.SETS
            ])
            for label in factors
        }  # fmt: skip
        if means:
            best = max(means, key=lambda label: means[label])
            chosen += [record for record in every[best] if record["fold"] == fold]
    return {**every, "trained, factor chosen on the other folds": chosen} if chosen else every


def report(folder: Path, of_folds: Path) -> None:
    """Print the tables."""
    every = read_records(folder, of_folds)
    print(f"| guide | data | questions | {' | '.join(METRICS)} | ms | recall@5, less residual |")
    print("|" + "---|" * (len(METRICS) + 5))
    base = {(r["set"], r["id"]): r["recall@5"] for r in every["residual"]}
    for label, records in every.items():
        for name in folds.SETS:
            some = [record for record in records if record["set"] == name]
            if not some:
                continue
            cells = [bootstrap_interval([record[metric] for record in some]) for metric in METRICS]
            text = " | ".join(f"{100 * c.mean:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in cells)
            gap = bootstrap_interval(
                [r["recall@5"] - base[name, r["id"]] for r in some if (name, r["id"]) in base]
            )
            print(
                f"| {label} | {name} | {len(some)} | {text} | {1000 * np.mean([r['seconds'] for r in some]):.0f} | "
                f"{100 * gap.mean:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}] |"
            )
    folds.by_type(every)
    paths = sorted(folder.glob("steps?.pickle"))
    if len(paths) == folds.FOLDS:
        steps = [step for path in paths for step in pickle.loads(path.read_bytes())]
        with_query, without = learn(steps, len(FEATURES)), learn(steps, WITHOUT_QUERY)
        print(f"\nLearned from all {len(steps):,} steps:")
        print("\n| known of a candidate | coefficient | without a query |\n|---|---|---|")
        for n, feature in enumerate(FEATURES):
            print(f"| {feature} | {with_query[n]:.2f} | {f'{without[n]:.2f}' if n < WITHOUT_QUERY else ''} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folds", type=Path, required=True, help="the folder of folds.py: encoders, bases, records"
    )
    parser.add_argument("--limit", type=int, help="questions of each set and fold (default: all)")
    parser.add_argument("--out", type=Path, required=True, help="where steps and records are kept")
    parser.add_argument("--walk", action="append", help="only these: encoder, 'trained 1.0', ...")
    parser.add_argument("--report", action="store_true", help="only print the tables of what is there")
    options = parser.parse_args()
    if not folds.DATA.is_dir():
        raise SystemExit(f"no data at {folds.DATA}; it is not part of this repository")
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        examples = {
            name: list(load_dataset(name, folds.DATA / name / f"{file}.jsonl").examples())
            for name, file in folds.SETS.items()
        }
        measure(options, examples)
    report(options.out, options.folds)


if __name__ == "__main__":
    main()
