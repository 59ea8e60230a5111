"""Sets of rows: ascending, each once."""

from __future__ import annotations

import numpy as np
import pytest

from clew.core.arrays import sorted_unique, union


@pytest.mark.parametrize("rows", [[], [3], [1, 2, 9], [9, 2, 1], [2, 2], [1, 2, 2, 3], [5, 1, 5, 1, 0]])
def test_rows_ascend_and_none_is_there_twice(rows) -> None:
    assert sorted_unique(np.array(rows, dtype=np.int64)).tolist() == sorted(set(rows))
    assert union([np.array(rows, dtype=np.int64), np.array([4, 2])]).tolist() == sorted({*rows, 2, 4})


def test_a_set_is_given_back_as_it_is() -> None:
    rows = np.array([1, 5, 7])
    assert sorted_unique(rows) is rows
    assert union([]).tolist() == []
    assert union([np.array([2, 1, 2])]).tolist() == [1, 2]
