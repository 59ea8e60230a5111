"""Statistics of runs: bootstrap intervals, paired differences, and the mean rank of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clew.core.arrays import Floats

BOOTSTRAP_SAMPLES = 10_000
#: Samples drawn at a time. It bounds memory; changing it changes the random numbers of a seed.
_BLOCK_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``count`` questions with the ends of its interval."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean paired difference over ``count`` questions with its interval and its p value."""

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
    low, high = np.quantile(_resampled_means(array, seed), [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(array.mean()), float(low), float(high), len(array))


def paired_difference(
    values: Sequence[float], baseline: Sequence[float], seed: int = 0, level: float = 0.95
) -> Difference:
    """Return the mean of ``values`` minus ``baseline``, question by question, with a paired bootstrap.

    ``p`` is two-sided: the share of resampled means, centred at 0, that are at least as far from 0 as the observed
    one (Efron and Tibshirani, 1993, Section 16.4), with 1 added to both counts so that it is never 0.
    """
    paired = np.asarray(values, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    if not len(paired):
        return Difference(float("nan"), float("nan"), float("nan"), float("nan"), 0)
    means = _resampled_means(paired, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    mean = float(paired.mean())
    extreme_count = int((np.abs(means - mean) >= abs(mean) - 1e-12).sum())
    return Difference(mean, float(low), float(high), (extreme_count + 1) / (len(means) + 1), len(paired))


def _resampled_means(values: Floats, seed: int) -> Floats:
    """Return the means of :data:`BOOTSTRAP_SAMPLES` samples with replacement."""
    rng = np.random.default_rng(seed)
    blocks = [
        values[rng.integers(0, len(values), (min(_BLOCK_SIZE, BOOTSTRAP_SAMPLES - start), len(values)))].mean(
            axis=1
        )
        for start in range(0, BOOTSTRAP_SAMPLES, _BLOCK_SIZE)
    ]
    return np.concatenate(blocks)


def mean_ranks(cells: Sequence[Mapping[str, float]], better: Sequence[int]) -> dict[str, float]:
    """Return each method's mean rank over cells (data set x metric): 1 is best, ties share the mean of their ranks.

    ``better`` is 1 for each cell where a higher value is better, else -1. A method is ranked only in the cells that
    have it. The KGP paper's Table 1 ranks in this way, with None and Golden among the methods.
    """
    ranks: dict[str, list[float]] = {}
    for cell, sign in zip(cells, better, strict=True):
        for name, value in cell.items():
            better_count = sum(sign * other > sign * value for other in cell.values())
            equal_count = sum(other == value for other in cell.values())
            ranks.setdefault(name, []).append(better_count + (equal_count + 1) / 2)
    return {name: sum(method_ranks) / len(method_ranks) for name, method_ranks in ranks.items()}
