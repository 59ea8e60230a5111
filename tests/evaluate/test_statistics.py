"""Intervals, paired differences and ranks."""

import itertools
import math

import numpy as np
import pytest

from clew.evaluate.statistics import bootstrap_interval, mean_ranks, paired_difference

#: Table 1 of the KGP paper (Wang et al., AAAI 2024): Acc, EM, F1 on four data sets.
TABLE_1 = {
    "None": "41.80 19.00 30.50 19.50 8.60 13.17 44.40 18.60 25.07 30.40 4.60 10.58",
    "KNN": "71.57 40.73 57.97 43.82 25.15 37.24 52.40 31.20 42.13 44.70 18.86 30.04",
    "TF-IDF": "76.64 45.97 64.64 47.47 27.22 40.80 58.40 34.60 44.50 44.40 21.59 32.50",
    "BM25": "71.95 41.46 59.73 41.93 23.48 35.55 55.80 30.80 40.55 44.47 21.11 31.15",
    "DPR": "73.43 43.61 62.11 48.11 26.89 41.85 62.40 35.60 51.10 44.27 20.32 31.64",
    "MDR": "75.30 45.55 65.16 50.84 27.52 43.47 63.00 36.00 52.44 48.39 23.49 37.03",
    "IRCoT": "74.36 45.29 64.12 49.78 27.73 41.65 61.81 37.75 50.17 45.14 22.46 34.21",
    "KGP-T5": "76.53 46.51 66.77 48.28 26.94 41.54 63.50 39.80 53.50 50.92 27.90 41.19",
    "Golden": "82.19 50.20 71.06 62.68 35.64 54.76 72.60 40.20 59.69 57.00 30.60 47.75",
}
RANKS = {"None": 9.00, "KNN": 7.33, "TF-IDF": 5.00, "BM25": 7.25, "DPR": 5.50, "MDR": 3.08, "IRCoT": 4.08}
RANKS |= {"KGP-T5": 2.75, "Golden": 1.00}


def test_mean_ranks_are_those_that_the_paper_prints_for_its_table_1():
    values = {name: [float(cell) for cell in row.split()] for name, row in TABLE_1.items()}
    cells = [{name: row[n] for name, row in values.items()} for n in range(12)]
    result = mean_ranks(cells, [1] * 12)
    assert {name: round(rank, 2) for name, rank in result.items()} == RANKS


def test_ties_share_their_ranks_and_less_may_be_better():
    assert mean_ranks([{"a": 1.0, "b": 1.0, "c": 0.0}], [1]) == {"a": 1.5, "b": 1.5, "c": 3}
    assert mean_ranks([{"a": 10.0, "b": 5.0}], [-1]) == {"a": 2, "b": 1}
    assert mean_ranks([{"a": 1.0, "b": 0.0}, {"b": 1.0}], [1, 1]) == {"a": 1, "b": 1.5}


@pytest.mark.slow
def test_the_interval_is_the_normal_one_for_many_values():
    values = np.random.default_rng(1).normal(5, 2, 2_000)
    result = bootstrap_interval(values, seed=3)
    width = 1.96 * values.std() / math.sqrt(len(values))
    assert result.mean == pytest.approx(values.mean()) and result.count == 2_000
    assert result.low == pytest.approx(values.mean() - width, abs=0.02)
    assert result.high == pytest.approx(values.mean() + width, abs=0.02)
    assert bootstrap_interval(values, seed=3) == result != bootstrap_interval(values, seed=4)


def test_values_that_are_all_the_same_have_no_width_and_none_have_no_mean():
    assert (bootstrap_interval([0.5] * 9).low, bootstrap_interval([0.5] * 9).high) == (0.5, 0.5)
    assert math.isnan(bootstrap_interval([]).mean) and bootstrap_interval([]).count == 0


def test_a_difference_is_paired():
    rng = np.random.default_rng(0)
    hard = rng.random(200) < 0.5
    first, other = np.where(hard, 0.0, 0.9), np.where(hard, 0.1, 1.0)
    result = paired_difference(other, first)
    # Unpaired, the spread of the questions would hide it.
    assert result.mean == pytest.approx(0.1) and result.low > 0.09 and result.p < 0.001
    same = paired_difference(first, first)
    assert (same.mean, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_p_is_about_a_half_where_the_mean_is_a_deviation_and_a_bit():
    values = np.random.default_rng(2).normal(0, 1, 400)
    values += 0.6745 / 20 * values.std() - values.mean()
    assert paired_difference(values, np.zeros(400)).p == pytest.approx(0.5, abs=0.03)


def test_the_interval_is_that_of_all_samples_there_are():
    values = [0.0, 0.2, 0.5, 1.0]
    every = np.array([np.mean(sample) for sample in itertools.product(values, repeat=4)])
    result = bootstrap_interval(values, level=0.8)
    assert (result.low, result.high) == pytest.approx(np.quantile(every, [0.1, 0.9]), abs=0.026)


def test_p_is_that_of_all_samples_there_are():
    values = [0.4, -0.1, 0.3, 0.2, -0.2]
    every = np.array([np.mean(sample) for sample in itertools.product(values, repeat=5)])
    exact = np.mean(np.abs(every - np.mean(values)) >= abs(np.mean(values)) - 1e-12)
    assert paired_difference(values, [0.0] * 5).p == pytest.approx(exact, abs=0.015)
