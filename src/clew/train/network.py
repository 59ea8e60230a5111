"""Training of the small network that scores options (:class:`clew.questions.linear.NetworkScore`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.questions.linear import FARTHEST, NetworkScore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The settings of a training: ``passes`` over the questions in batches of ``batch``; the rate falls linearly from
    ``learning_rate``, ``decay`` is that of weights (AdamW)."""

    units: int = 32
    passes: int = 10
    batch: int = 64
    learning_rate: float = 0.01
    decay: float = 0.05
    seed: int = 0


def train_network(
    questions: Sequence[tuple[Floats, NDArray[np.bool_]]], settings: NetworkSettings | None = None
) -> NetworkScore:
    """Return the network under which the right options of questions, (features, right), are likeliest: a softmax over
    the options of each, where any right one will do. Its output begins at 0, so that the linear part leads."""
    settings = NetworkSettings() if settings is None else settings
    usable = [(features, right) for features, right in questions if right.any() and not right.all()]
    sizes = np.array([len(features) for features, _ in usable])
    ends = np.cumsum(sizes)
    stacked = np.concatenate([features for features, _ in usable]).astype(np.float32)
    right = np.concatenate([own for _, own in usable])
    means, scales = stacked.mean(axis=0), stacked.std(axis=0) + 1e-6
    scaled = np.clip((stacked - means) / scales, -FARTHEST, FARTHEST)
    rng = np.random.default_rng(settings.seed)
    width = scaled.shape[1]
    weights = [
        np.zeros(width),
        rng.uniform(-1, 1, (width + 1, settings.units)) / np.sqrt(width),
        np.zeros(settings.units),
    ]
    moments = [(np.zeros_like(each), np.zeros_like(each)) for each in weights]
    batches = max(len(usable) // settings.batch, 1)
    for step in range(settings.passes * batches):
        if step % batches == 0:
            order = rng.permutation(len(usable))
        own = order[step % batches * settings.batch :][: settings.batch]
        rows = np.concatenate([np.arange(ends[each] - sizes[each], ends[each]) for each in own])
        gradients = _gradients(scaled[rows], right[rows], sizes[own], weights)
        rate = settings.learning_rate * max(0.02, 1 - step / (settings.passes * batches))
        for values, gradient, (first, second) in zip(weights, gradients, moments, strict=True):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            mean, square = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
            values -= rate * (settings.decay * values + mean / (np.sqrt(square) + 1e-8))
    return NetworkScore(means, scales, *weights)


def _gradients(
    scaled: Floats, right: NDArray[np.bool_], sizes: NDArray[np.int64], weights: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Return the gradients of the mean loss of some questions, whose options stand one after another."""
    linear, hidden, output = weights
    inner = np.tanh(scaled @ hidden[:-1] + hidden[-1])
    scores = scaled @ linear + inner @ output
    starts = np.cumsum([0, *sizes[:-1]])
    chances = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
    mass = np.repeat(np.add.reduceat(chances, starts), sizes)
    right_mass = np.repeat(np.add.reduceat(chances * right, starts), sizes) + 1e-12
    errors = (chances / mass - chances * right / right_mass) / len(sizes)
    back = errors[:, None] * output * (1 - inner**2)
    return scaled.T @ errors, np.concatenate([scaled.T @ back, back.sum(axis=0)[None]]), inner.T @ errors
