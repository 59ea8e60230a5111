"""What the trainings of plans over graphs and over tables share: work that is kept, the weights of the judge beside
the linear score, and figures of questions that nothing was fitted to."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.types import STATED_FROM
from clew.questions.linear import JUDGED, train_linear
from clew.questions.shapes import ShapeClassifier, ShapeExample, train_shapes

if TYPE_CHECKING:
    from clew.core.arrays import Floats

#: Domains and worlds are dealt into so many folds; the first is held out from everything.
FOLDS = 4
#: The curve of right against wrong answers goes to so many percent wrong.
MOST_WRONG = 30


def deal_folds(names: Sequence[str], beside: Sequence[str]) -> dict[str, int]:
    """Return the fold of each domain or world: those that stand ``beside`` the others are never held out."""
    folds = {name: number % FOLDS for number, name in enumerate(names)}
    return folds | {name: 1 + number % (FOLDS - 1) for number, name in enumerate(beside)}


class UnseenShapes:
    """Classifiers of shapes that have not seen some folds. ``examples`` have their folds.

    The shapes of a question are read by one that has not seen its fold: from questions that a classifier was trained
    on, a score would learn to trust it too far.
    """

    def __init__(self, examples: Sequence[tuple[int, ShapeExample]]) -> None:
        self.examples = examples
        self._known: dict[frozenset[int], ShapeClassifier] = {}

    def train_without(self, *folds: int) -> ShapeClassifier:
        """Return the classifier of the examples of all other folds."""
        unseen = frozenset(folds)
        if unseen not in self._known:
            self._known[unseen] = train_shapes([own for fold, own in self.examples if fold not in unseen])
        return self._known[unseen]


def remember(file: Path, make: Callable[[], Any]) -> Any:
    """Return what a file of this training has, made and written where it is not there."""
    if file.is_file():
        return pickle.loads(file.read_bytes())
    value = make()
    temporary = file.with_suffix(".new")
    temporary.write_bytes(pickle.dumps(value))
    temporary.replace(file)
    return value


def fit_mixture_of(
    held_out: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]],
) -> tuple[float, Floats, float]:
    """Return what :func:`fit_mixture` does, of the scores, likenesses and right options of questions."""
    questions = []
    for scores, likeness, own in held_out:
        right = own[:JUDGED]
        features = np.zeros((len(right) + 1, 5))
        features[:-1, 0], features[:-1, 1:4] = scores[:JUDGED], likeness[:JUDGED]
        features[-1, 4] = 1.0
        questions.append((features, np.append(right, not right.any())))
    score = train_linear(questions)
    weights = score.weights / score.scales
    return float(weights[0]), weights[1:4], float(weights[4])


def measure_chances(
    chances: Floats,
    right: NDArray[np.bool_],
    answerable: int,
    total: int,
    stated_from: float = STATED_FROM,
) -> dict[str, Any]:
    """Return figures over ``total`` questions, of which ``answerable`` can be asked: how many first readings are
    right, at which share of wrong ones, how many are stated, and how far the stated probabilities are from that, over
    ten bins."""
    stated, bin_of = chances >= stated_from, np.minimum((chances * 10).astype(int), 9)
    return {
        "questions": answerable,
        "of": total,
        "right first": round(float(right.sum()) / answerable, 4),
        **{
            f"right at {share:.0%} wrong": round(right_at(chances, right, share, total) / answerable, 4)
            for share in (0.05, 0.10)
        },
        "right by percent wrong": [
            round(right_at(chances, right, percent / 100, total) / answerable, 4)
            for percent in range(MOST_WRONG + 1)
        ],
        "stated": {
            "from": stated_from,
            "right": int(right[stated].sum()),
            "wrong": int((~right[stated]).sum()),
        },
        "expected calibration error": round(calibration_error(chances, right), 4),
        "reliability": [
            {
                "questions": int(own.sum()),
                "probability": round(float(chances[own].mean()), 3),
                "right": round(float(right[own].mean()), 3),
            }
            for number in range(10)
            if (own := bin_of == number).any()
        ],
    }


def count_by(names: Sequence[tuple[str, ...]], right: NDArray[np.bool_]) -> dict[str, list[int]]:
    """Return how many questions with each name are right, and how many there are."""
    counts: dict[str, list[int]] = {}
    for own, is_right in zip(names, right.tolist(), strict=True):
        for name in own:
            count = counts.setdefault(name, [0, 0])
            count[0] += is_right
            count[1] += 1
    return dict(sorted(counts.items()))


def calibration_error(chances: Floats, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Return the mean distance of stated probability and share that is right, over bins of equal width."""
    bin_of = np.minimum((chances * bins).astype(int), bins - 1)
    gaps = [
        (own := bin_of == number).sum() * abs(chances[own].mean() - right[own].mean())
        for number in range(bins)
        if (bin_of == number).any()
    ]
    return float(sum(gaps) / len(chances))


def right_at(chances: Floats, right: NDArray[np.bool_], share: float, total: int) -> int:
    """Return how many are right, at most, with a threshold at which at most a share of all is wrong."""
    order = np.argsort(-chances, kind="stable")
    hits, misses = np.cumsum(right[order]), np.cumsum(~right[order])
    allowed = misses <= share * total
    return int(hits[allowed].max(initial=0))
