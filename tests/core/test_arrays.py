"""Operations on arrays: sets of rows, inner products, ranges."""

from __future__ import annotations

import numpy as np
import pytest

from clew.core.arrays import (
    cosines,
    distinct,
    find_positions,
    is_member,
    range_indices,
    run_offsets,
    sorted_unique,
    union,
)


@pytest.mark.parametrize("rows", [[], [3], [1, 2, 9], [9, 2, 1], [2, 2], [1, 2, 2, 3], [5, 1, 5, 1, 0]])
def test_sorted_unique_and_union_equal_python_sets(rows) -> None:
    assert sorted_unique(np.array(rows, dtype=np.int64)).tolist() == sorted(set(rows))
    assert union([np.array(rows, dtype=np.int64), np.array([4, 2])]).tolist() == sorted({*rows, 2, 4})


@pytest.mark.parametrize("type", [np.int32, np.int64, np.uint32, np.uint64])
def test_distinct_and_is_member_equal_python_sets_in_each_type(type) -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 50, 1000):
        numbers, others = (rng.integers(0, 300, size).astype(type) for _ in range(2))
        members = distinct(others)
        assert members.dtype == type and members.tolist() == sorted(set(others.tolist()))
        assert is_member(numbers, members).tolist() == [n in set(others.tolist()) for n in numbers.tolist()]
        place = {number: n for n, number in enumerate(members.tolist())}
        assert find_positions(members, numbers).tolist() == [place.get(n, -1) for n in numbers.tolist()]
    greatest = np.array([2**64 - 1, 0, 2**64 - 1], dtype=np.uint64)
    assert distinct(greatest).tolist() == [0, 2**64 - 1]


def test_a_sorted_array_is_returned_unchanged() -> None:
    rows = np.array([1, 5, 7])
    assert sorted_unique(rows) is rows
    assert union([]).tolist() == []
    assert union([np.array([2, 1, 2])]).tolist() == [1, 2]


def test_cosines_do_not_depend_on_the_number_of_vectors() -> None:
    vectors = np.random.default_rng(0).normal(size=(7, 33)).astype(np.float32)
    products = cosines(vectors, vectors[0])
    assert np.allclose(products, vectors.astype(np.float64) @ vectors[0].astype(np.float64))
    assert [cosines(vectors[n : n + 1], vectors[0])[0] for n in range(7)] == products.tolist()


def test_range_indices_list_every_range() -> None:
    starts, lengths = np.array([5, 0, 9]), np.array([2, 0, 3])
    assert run_offsets(lengths).tolist() == [0, 2, 2, 5]
    assert range_indices(starts, lengths).tolist() == [5, 6, 9, 10, 11]
    assert range_indices(starts[:0], lengths[:0]).tolist() == []
