"""What does a walk gain from a guide that knows the next passage? Scripted oracles; the calibration of guides.

An oracle stands in for the language model: after each path it "writes" the next gold passage that the path does not
have yet, whole (*perfect*), or 35 % of its words drawn at random and shuffled (*noisy*). 100 questions of each set
over its pooled paragraphs, no encoder. Compared are the walk without a model (`residual`), `generated` as it was
before (raw scores, two levels), and `combined`, level by level (two passages) and best first (four).

    python benchmarks/guides.py                # the tables
    python benchmarks/guides.py --fit          # learns the calibration, from questions that the tables leave out

The calibration is a conditional logit: the coefficients b that make the next gold passage likeliest among the
candidates of a step, softmax(b_residual s_residual + b_guide s_guide + b_edge strength). "half wrong": for every
other question the oracle writes about the evidence of another one.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.types import Question, Scope, Usage
from clew.evaluate.corpora import GoldEvidence, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import bootstrap_interval
from clew.graph.passages import passage_rows
from clew.knowledge_base import registry
from clew.methods.kgp import guides
from clew.methods.kgp.method import KGP
from clew.retrieve.contextual import ContextualSearch
from clew.retrieve.lexical import TfIdf
from clew.store.store import Store

DATA = Path(__file__).parents[2] / "shared" / "data"
SETS = {"hotpotqa": "train100", "musique": "train100", "2wikimultihopqa": "train500"}
QUESTIONS, FIT = 100, slice(400, 500)


@dataclass
class Oracle:
    """Writes the next gold passage: a share of its words, shuffled; all of them for 1."""

    gold: Sequence[str]
    share: float
    seed: str

    def expect(self, question: str, paths: Sequence[Sequence[str]]) -> tuple[list[str], Usage]:
        """Return for each path the first gold passage that is not on it; the question where all are."""
        texts = []
        for path in paths:
            left = [text for text in self.gold if text not in path]
            words = (left[0] if left else question).split()
            if self.share < 1 and left:
                draw = random.Random(f"{self.seed}{len(path)}{path[-1]}")
                words = draw.sample(words, max(1, round(self.share * len(words))))
            texts.append(" ".join(words))
        return texts, Usage()


def gold_texts(base: Store, example: Example) -> list[str]:
    """Return the texts of the gold passages of a question, in the order of its evidence."""
    snapshot, gold = base.snapshot(), GoldEvidence(example)
    titles = {piece.title for piece in example.pieces}
    keys = frozenset(entry.key for entry in base.documents() if entry.title in titles)
    rows = np.flatnonzero(snapshot.mask(Scope(documents=keys), ("passage",)))
    results = [
        (min(pieces), node.text) for node in snapshot.nodes(rows) if (pieces := gold.matching_pieces(node))
    ]
    return [text for _, text in sorted(results)]


def walks(base: Store, oracle: Oracle) -> dict[str, KGP]:
    """Return the walks that are compared, with ``oracle`` as their model."""
    snapshot = base.snapshot()
    best: Any = registry.build_retriever("kgp(guide=residual)", base)
    levels = replace(best, hops=2, budget=40, width=10)
    matcher = guides.LexicalMatcher(TfIdf(snapshot))
    raw = guides.TextGuide(snapshot, oracle, matcher)
    combined = guides.CombinedGuide(best.guide, raw, guides.CALIBRATION["tfidf"])
    return {
        "residual, best first": best,
        "generated, raw, two levels": replace(levels, guide=raw),
        "combined, two levels": replace(levels, guide=combined),
        "combined, best first": replace(best, guide=combined),
    }


def open_base(name: str, folder: Path) -> Store:
    """Return the base of all paragraphs of a set."""
    base = Store.open(folder / name, create=True)
    if not base.documents():
        examples = load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples()
        fill_store(base, pool_paragraphs(list(examples)), EvaluationSettings())
    return base


def measure(folder: Path, names: Sequence[str], count: int) -> None:
    """Print recall@5 of every walk with both oracles."""
    metric = parse_metric("recall@5")
    print("| set | oracle | walk | questions | recall@5 [95 %] |\n|---|---|---|---|---|")
    for name in names:
        examples = list(load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples())[:count]
        with open_base(name, folder) as base:
            for share, kind in ((0.35, "noisy"), (1.0, "perfect")):
                values: dict[str, list[float]] = {}
                for example in examples:
                    gold = GoldEvidence(example)
                    oracle = Oracle(gold_texts(base, example), share, example.id)
                    for label, walk in walks(base, oracle).items():
                        if kind == "perfect" and not label.startswith("combined"):
                            continue
                        hits = walk.retrieve(Question(example.question), 5)
                        result = Result(example, hit_pieces=[gold.matching_pieces(hit.node) for hit in hits])
                        values.setdefault(label, []).append(float(metric.measure(result) or 0.0))
                for label, some in values.items():
                    mean = bootstrap_interval(some)
                    print(
                        f"| {name} | {kind} | {label} | {len(some)} | "
                        f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}] |",
                        flush=True,
                    )


def fit(folder: Path) -> None:
    """Print the calibration of every lexical guide."""
    with open_base("2wikimultihopqa", folder) as base:
        snapshot = base.snapshot()
        name = "2wikimultihopqa"
        examples = list(load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples())[FIT]
        text_of = {int(row): node.text for row, node in zip(
            passage_rows(snapshot), snapshot.nodes(passage_rows(snapshot)), strict=True)}  # fmt: skip
        rows_of = {text: row for row, text in text_of.items()}
        residual = guides.ResidualGuide(ContextualSearch(snapshot))
        graph = registry.build_graph("mentions", base)
        matcher = guides.LexicalMatcher(TfIdf(snapshot))
        allowed = snapshot.mask(Scope(), ("passage", "row"))
        steps: dict[str, list[tuple[np.ndarray, int]]] = {}
        for number, example in enumerate(examples):
            gold = gold_texts(base, example)
            wrong = gold_texts(base, examples[number - 1])
            for start, after in pairwise(gold):
                path = [rows_of[start]]
                near = graph.neighbours(path[0])
                near = near[allowed[near]]
                for kind, expectation in (
                    ("question", guides.QuestionOnly()),
                    ("tfidf", guides.QuestionAndPath()),
                    ("generated-tfidf", Oracle(gold, 0.35, example.id)),
                    ("generated-tfidf, half wrong", Oracle(gold if number % 2 else wrong, 0.35, example.id)),
                ):
                    text = guides.TextGuide(snapshot, expectation, matcher)
                    guide = guides.CombinedGuide(residual, text, guides.CALIBRATION["tfidf"])
                    question, free = Question(example.question), guides.OpenCandidates(100, allowed)
                    scored = guide.score_neighbours(question, [path], [near], free)
                    ((rows, alone),), (opinion,) = scored.scores, scored.opinions
                    strength = np.where(np.isin(rows, near), graph.strengths(path[0], rows), 0.0)
                    target = np.flatnonzero(rows == rows_of[after])
                    usable = rows != path[0]
                    if len(target):
                        features = np.stack([alone, opinion.scores, strength], axis=1)
                        place = int(np.count_nonzero(usable[: target[0]]))
                        steps.setdefault(kind, []).append((features[usable], place))
        print("| guide | steps | with residual: residual, guide, edge | alone: guide, edge |")
        print("|---|---|---|---|")
        for kind, some in steps.items():
            together = conditional_logit(some)
            alone_fit = conditional_logit([(features[:, 1:], place) for features, place in some])
            print(
                f"| {kind} | {len(some)} | {together[0]:.1f}, {together[1]:.1f}, {together[2]:.1f} | "
                f"{alone_fit[0]:.1f}, {alone_fit[1]:.1f} |"
            )


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="learn the calibration instead")
    parser.add_argument("--set", action="append", choices=sorted(SETS), help="default: all")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--kb", type=Path, help="a folder for the bases (default: a temporary one)")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.kb or Path(temporary)
        fit(folder) if options.fit else measure(folder, options.set or list(SETS), options.questions)


if __name__ == "__main__":
    main()
