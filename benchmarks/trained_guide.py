"""Does a small trained guide choose the next passage better than clew's? Five folds, today's walk, no language model.

The guide is a conditional logit over what is known of a step: the score of the guide `residual` and its parts, the
cosine with the query of the encoder, how well a passage matches what the path leaves open and the last passage of the
path, the strength and the kinds of edges, and how long the path is. Its coefficients b make the next gold passages
likeliest among the candidates of a step, softmax(b x); a candidate's opinion is then that softmax, steeper by a
factor. The steps are those after the gold passages of each question: one alone, and in their order two and three.
*trained 1.5* walks by that opinion alone, *mixed*, which is the guide `trained` of clew, by its mean with `residual`.

Every question is asked with the encoder of its own fold, which did not see it (benchmarks/folds.py), also where its
steps teach the guide; the guide of a fold learns from the other four. So neither encoder nor coefficients saw the
question. Paths that are not encoded have coefficients without the parts that need a query of the encoder. Last, every
set is asked with the encoder and with coefficients that learned from the other two.

    python benchmarks/trained_guide.py --folds FOLDER --out guide             # with what folds.py made; an hour
    python benchmarks/trained_guide.py --folds FOLDER --out guide --report    # the tables again

Killed, it continues at the next question.
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

METRICS = ("recall@2", "recall@5", "recall@10", "all-gold@5")
#: The walks that are compared: *trained* alone, steeper than learned by a factor, since a walk multiplies its steps;
#: and *mixed*. `trained 1.0` and `encoder`, which takes long, are asked for by name.
WALKS = ("residual", "trained 1.5", "mixed")
RECIPES = {"residual": "kgp(guide=residual)", "encoder": "kgp(guide=encoder, prior=0.3, sharpness=20)"}


#: The set of a step, what is known of its candidates, and which of them are gold.
Step = tuple[str, np.ndarray, list[int]]


def conditional_logit(steps: Sequence[tuple[np.ndarray, int]], penalty: float = 0.001) -> np.ndarray:
    """Return the coefficients that make the chosen candidate of each step likeliest: Newton's method, each step
    halved until it helps."""
    size = steps[0][0].shape[1]
    weights = np.zeros(size)

    def likelihood(weights: np.ndarray) -> float:
        total = -penalty / 2 * float(weights @ weights)
        for features, chosen in steps:
            scores = features @ weights
            total += float(scores[chosen] - scores.max() - np.log(np.exp(scores - scores.max()).sum()))
        return total

    for _ in range(50):
        gradient, curvature = -penalty * weights, penalty * np.eye(size)
        for features, chosen in steps:
            odds = np.exp(features @ weights - (features @ weights).max())
            shares = odds / odds.sum()
            mean = shares @ features
            gradient += features[chosen] - mean
            curvature += (features * shares[:, None]).T @ features - np.outer(mean, mean)
        change = np.linalg.solve(curvature, gradient)
        while likelihood(weights + change) < likelihood(weights) and np.abs(change).max() > 1e-6:
            change /= 2
        weights += change
        if np.abs(change).max() < 1e-4:
            break
    return weights


class Study:
    """The questions of a fold, or of a set that was left out, with its encoder."""

    def __init__(self, folder: Path, examples: folds.Examples, fold: int | str) -> None:
        self.fold, self.examples = fold, examples
        encoder = f"fold{fold}" if isinstance(fold, int) else f"without-{fold}"
        self.encoder = registry.load_encoder(f"onnx:{folder / encoder / 'onnx'}")
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

    def steps(self) -> Iterator[Step]:
        """Yield the steps of every question that have a gold candidate."""
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
                    near, question = near[allowed[near]], Question(example.question)
                    (known,) = guide.describe(question, [path], [near], OpenCandidates(100, allowed))
                    usable = ~np.isin(known.rows, path)
                    targets = np.flatnonzero(np.isin(known.rows[usable], gold)).tolist()
                    if targets:
                        yield name, known.features[usable], targets

    def ask(
        self, label: str, walks: dict[str, Any], asked: set[tuple[str, str]]
    ) -> Iterator[dict[str, object]]:
        """Yield a record of each question that was not asked yet, asked with the walk of its set."""
        for name, some in self.examples.items():
            for example in some:
                if (name, example.id) in asked:
                    continue
                started, cpu = time.perf_counter(), time.process_time()
                hits = walks[name].retrieve(Question(example.question), 10)
                seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
                gold = GoldEvidence(example)
                result = Result(example, hit_pieces=[gold.matching_pieces(hit.node) for hit in hits])
                measures = {metric: parse_metric(metric).measure(result) for metric in METRICS}
                yield {"walk": label, "fold": self.fold, "set": name, "id": example.id, "type": example.question_type,
                       "seconds": seconds, "cpu": cpu, **measures}  # fmt: skip


def learn(steps: Sequence[Step], columns: int) -> np.ndarray:
    """Return the coefficients of the first ``columns`` features: each gold passage of a step is a choice, the others
    of it left out; features are scaled to a standard deviation of 1, with a penalty of 1."""
    scale = np.concatenate([known[:, :columns] for _, known, _ in steps]).std(axis=0) + 1e-9
    choices = []
    for _, known, targets in steps:
        for target in targets:
            usable = np.ones(len(known), dtype=np.bool_)
            usable[[other for other in targets if other != target]] = False
            choices.append(((known[:, :columns] / scale)[usable], int(np.count_nonzero(usable[:target]))))
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
        for label in options.walk or WALKS:
            path = options.out / f"{label.replace(' ', '-')}-fold{fold}.jsonl"
            asked = {(record["set"], record["id"]) for record in read_lines(path)}
            if len(asked) == sum(map(len, own[fold].values())):
                continue
            study = study or Study(options.folds, own[fold], fold)
            walks = {}
            for name in examples:
                walk = study.walk(name, RECIPES.get(label, "kgp(guide=trained)"))
                if label in {"residual", "encoder"}:
                    walks[name] = walk
                    continue
                guide = replace(walk.guide, coefficients=Coefficients(*pair))
                if label != "mixed":
                    guide = replace(guide, steepness=float(label.partition(" ")[2]), trust=1.0)
                walks[name] = replace(walk, guide=guide)
            with path.open("a", encoding="utf-8") as file:
                for record in study.ask(label, walks, asked):
                    print(json.dumps(record), file=file, flush=True)
            print(f"fold {fold}, {label}: asked", flush=True)


def leave_out(options: argparse.Namespace, examples: folds.Examples) -> None:
    """Ask the questions of each set with the encoder and with coefficients that learned from the other two."""
    paths = sorted(options.out.glob("steps?.pickle"))
    steps = [step for path in paths for step in pickle.loads(path.read_bytes())]
    for number, (name, some) in enumerate(examples.items()):
        path = options.out / f"mixed-set-left-out-fold{number}.jsonl"
        asked = {(record["set"], record["id"]) for record in read_lines(path)}
        if len(asked) == len(some):
            continue
        study = Study(options.folds, {name: some}, name)
        learnt_from = [step for step in steps if step[0] != name]
        pair = learn(learnt_from, len(FEATURES)), learn(learnt_from, WITHOUT_QUERY)
        walk = study.walk(name, "kgp(guide=trained)")
        walk = replace(walk, guide=replace(walk.guide, coefficients=Coefficients(*pair)))
        with path.open("a", encoding="utf-8") as file:
            for record in study.ask("mixed, set left out", {name: walk}, asked):
                print(json.dumps(record), file=file, flush=True)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; none where it is not there."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def read_records(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each guide."""
    every: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*-fold?.jsonl")):
        for record in read_lines(path):
            every.setdefault(record["walk"], []).append(record)
    return {
        label: every[label]
        for label in sorted(every, key=lambda label: (label not in WALKS, label != "residual"))
    }


def report(folder: Path) -> None:
    """Print the tables."""
    every = read_records(folder)
    print(f"| guide | data | questions | {' | '.join(METRICS)} | ms of CPU | recall@5, less residual |")
    print("|" + "---|" * (len(METRICS) + 5))
    base = {(r["set"], r["id"]): r["recall@5"] for r in every["residual"]}
    for label, records in every.items():
        for name in folds.SETS:
            some = [record for record in records if record["set"] == name]
            if not some:
                continue
            cells = [bootstrap_interval([record[metric] for record in some]) for metric in METRICS]
            text = " | ".join(f"{100 * c.mean:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in cells)
            measured = [r["cpu"] for r in some if "cpu" in r]
            milliseconds = f"{1000 * np.mean(measured):.0f}" if measured else ""
            gap = bootstrap_interval(
                [r["recall@5"] - base[name, r["id"]] for r in some if (name, r["id"]) in base]
            )
            print(
                f"| {label} | {name} | {len(some)} | {text} | {milliseconds} | "
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
        leave_out(options, examples)
    report(options.out)


if __name__ == "__main__":
    main()
