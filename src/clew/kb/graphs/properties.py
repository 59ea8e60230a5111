"""The properties of a graph's nodes, described from their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.kb.graphs.arrays import GraphArrays
from clew.kb.segments import run_offsets
from clew.types import Property

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import PropertyColumn


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The types of every row: those of row n are ``codes[starts[n]:starts[n + 1]]``, as places in ``names``."""

    names: tuple[str, ...]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]

    @classmethod
    def from_arrays(cls, opened: GraphArrays, size: int) -> RowTypes:
        """Turn round the arrays that have the rows of every type."""
        starts: Any = opened.arrays["types.starts"]
        rows: Any = opened.arrays["types.rows"]
        codes = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        order = np.argsort(rows, kind="stable")
        names = tuple(opened.manifest["types"])
        return cls(names, run_offsets(np.bincount(rows, minlength=size)), codes[order])

    def describe_column(self, column: PropertyColumn) -> Property:
        """Return what a column holds; its example is in the middle, where it is no odd beginning."""
        rows = column.rows.astype(np.int64)
        starts = self.starts[rows]
        sizes = self.starts[rows + 1] - starts
        offsets = run_offsets(sizes)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        counts = np.bincount(self.codes[places], minlength=len(self.names))
        return Property(
            len(rows),
            int(np.count_nonzero(~np.isnan(column.numbers))),
            {name: int(count) for name, count in zip(self.names, counts, strict=True) if count},
            int(rows[len(rows) // 2]),
        )
