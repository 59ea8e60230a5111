"""The learned scorer of readings: a conditional logit over the paths that a question may mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.questions.paths import FEATURES

if TYPE_CHECKING:
    from clew.core.arrays import Floats

#: What the weights are before anything is learned. Training keeps near them what its data does not tell, such as the
#: direction of a relation that leads from packages to packages.
PRIOR: Mapping[str, float] = {
    "hops 1": 0.6,
    "hops 2": 0.0,
    "hops 3": -0.6,
    "least explained hop": 3.0,
    "mean explained hop": 2.0,
    "words unexplained": -2.5,
    "returns at the start, asked for others": 1.5,
    "returns at the start, not asked for": -1.0,
    "returns at the end": -1.5,
    "words beyond hops": -0.7,
    "hops beyond words": -1.0,
    "asked for others, no return": -0.7,
    "focus is last relation": 2.0,
    "focus is last relation, backwards": -1.0,
    "focus is another relation": -1.5,
    "focus names no relation, last hop backwards": 1.0,
    "focus names no relation, last hop forwards": -0.7,
    "focus is type of the end": 2.0,
    "focus is another type": -2.0,
    "person asked and led to": 1.0,
    "person asked, not led to": -1.5,
    "time asked and led to": 1.5,
    "time asked, not led to": -2.5,
    "place asked and led to": 1.0,
    "place asked, not led to": -1.0,
    "first hop is nearest to the name": 0.7,
    "hops out of order": -0.8,
    "direction of the first hop fits": 1.5,
    "direction of the first hop contradicts": -1.5,
    "inverse relation after itself": 0.0,
    "name plausibility": 3.0,
    "words left out of names": -0.8,
    "name not written exactly": -0.7,
    "hops that nothing names": -1.5,
    "hops named by the same words": -4.0,
    "last verb fits": 1.5,
    "last verb contradicts": -1.5,
}
#: Features that the training data cannot teach: all of its paths of three hops go back the way they came, and it has
#: no questions of one hop, no types, no capitals to doubt, and for each name one direction only. Their weights stay
#: those of :data:`PRIOR`.
FIXED = frozenset(
    {
        "hops 1",
        "hops 2",
        "hops 3",
        "returns at the start, not asked for",
        "focus is type of the end",
        "focus is another type",
        "direction of the first hop fits",
        "direction of the first hop contradicts",
        "inverse relation after itself",
        "name plausibility",
        "words left out of names",
        "name not written exactly",
        "hops that nothing names",
        "hops named by the same words",
        "last verb fits",
        "last verb contradicts",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class PathScorer:
    """Scores paths: the weight of each of :data:`clew.triples.questions.paths.FEATURES`, and the temperature by which
    the scores of one question become probabilities that are right as often as they say."""

    weights: Floats
    temperature: float = 1.0

    @classmethod
    def from_mapping(cls, weights: Mapping[str, float], temperature: float = 1.0) -> PathScorer:
        """Return the scorer with weights by name; a feature without one has that of :data:`PRIOR`."""
        merged = {**PRIOR, **weights}
        return cls(np.array([merged[name] for name in FEATURES]), temperature)

    def weight(self, name: str) -> float:
        """Return the weight of a feature."""
        return float(self.weights[FEATURES.index(name)]) / self.temperature

    def scores(self, features: Floats) -> Floats:
        """Return the score of each path, (n,)."""
        return features @ self.weights / self.temperature


@cache
def load_scorer() -> PathScorer:
    """Return the scorer that clew ships, as ``benchmarks/plain_questions.py train`` made it."""
    text = files("clew.triples.questions").joinpath("weights.json").read_text(encoding="utf-8")
    content = json.loads(text)
    return PathScorer.from_mapping(content["weights"], content["temperature"])


def train_scorer(
    questions: Sequence[tuple[Floats, Floats]],
    pull: float = 0.5,
    rounds: int = 400,
    rate: float = 0.05,
    start: PathScorer | None = None,
) -> PathScorer:
    """Return the scorer under which the right paths are likeliest.

    Each question is the features of its candidates, (n, features), and which of them are right, (n,), at least one.
    Maximises the log of the probability of the right ones together, by Adam (Kingma and Ba, ICLR 2015), less
    ``pull`` times the squared distance of the weights from those of ``start``, by default :data:`PRIOR`.
    """
    prior = (start or PathScorer.from_mapping({})).weights
    learned = np.array([name not in FIXED for name in FEATURES])
    weights = prior.copy()
    sizes = np.array([len(right) for _, right in questions])
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    features = np.concatenate([each for each, _ in questions])
    right = np.concatenate([flags for _, flags in questions]).astype(np.float64)
    mean, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, rounds + 1):
        scores = features @ weights
        scores -= np.maximum.reduceat(scores, offsets)[owner]
        likelihood = np.exp(scores)
        total = np.add.reduceat(likelihood, offsets)
        of_right = np.add.reduceat(likelihood * right, offsets) + 1e-300
        change = likelihood * right / of_right[owner] - likelihood / total[owner]
        gradient = features.T @ change / len(sizes) - 2 * pull * (weights - prior) / len(sizes)
        gradient *= learned
        mean = 0.9 * mean + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights = weights + rate * (mean / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return PathScorer(weights)
