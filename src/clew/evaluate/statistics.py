"""How sure a figure is: bootstrap intervals, paired differences, and the mean rank of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clew.core.arrays import Floats

BOOTSTRAP_SAMPLES = 10_000
#: Numbers drawn at a time: bounds memory, and is part of what a seed stands for.
_BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``count`` questions with the ends of its interval."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean paired difference with its interval, and how probable one as large is if there is none."""

    mean: float
    low: float
    high: float
    p: float
    count: int


def bootstrap_interval(values: Sequence[float], seed: int = 0, level: float = 0.95) -> Estimate:
    """Return the mean with its percentile bootstrap interval (Efron and Tibshirani, 1993, Section 13.3)."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    low, high = np.quantile(_means(array, seed), [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(array.mean()), float(low), float(high), len(array))


def paired_difference(
    values: Sequence[float], baseline: Sequence[float], seed: int = 0, level: float = 0.95
) -> Difference:
    """Return what ``values`` are more than ``baseline``, question by question, with a paired bootstrap.

    ``p`` is two-sided: the share of resampled differences, moved to a mean of 0, that are at least as far
    from 0 (Efron and Tibshirani, 1993, Section 16.4), never less than 1 in the number of samples.
    """
    paired = np.asarray(values, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    if not len(paired):
        return Difference(float("nan"), float("nan"), float("nan"), float("nan"), 0)
    means = _means(paired, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    mean = float(paired.mean())
    as_far = int((np.abs(means - mean) >= abs(mean) - 1e-12).sum())
    return Difference(mean, float(low), float(high), (as_far + 1) / (len(means) + 1), len(paired))


def _means(values: Floats, seed: int) -> Floats:
    """Return the means of ``BOOTSTRAP_SAMPLES`` samples with replacement."""
    rng = np.random.default_rng(seed)
    made = [
        values[rng.integers(0, len(values), (min(_BLOCK, BOOTSTRAP_SAMPLES - start), len(values)))].mean(
            axis=1
        )
        for start in range(0, BOOTSTRAP_SAMPLES, _BLOCK)
    ]
    return np.concatenate(made)


def mean_ranks(cells: Sequence[Mapping[str, float]], better: Sequence[int]) -> dict[str, float]:
    """Return each method's mean rank over cells (data set x metric), the best being 1; ties share their ranks.

    As in Table 1 of the KGP paper, where None and Golden take part. Methods that a cell lacks are not ranked
    in it. ``better`` is 1 or -1 for each cell.
    """
    ranks: dict[str, list[float]] = {}
    for cell, sign in zip(cells, better, strict=True):
        for name, value in cell.items():
            ahead = sum(sign * other > sign * value for other in cell.values())
            tied = sum(other == value for other in cell.values())
            ranks.setdefault(name, []).append(ahead + (tied + 1) / 2)
    return {name: sum(held) / len(held) for name, held in ranks.items()}
