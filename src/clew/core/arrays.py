"""What arrays hold, for type checkers: numpy is not imported to read a signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

if TYPE_CHECKING:
    Rows = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Hashes = NDArray[np.uint64]
    Mask = NDArray[np.bool_]
    Vectors = NDArray[np.float32]


def sorted_unique(rows: Any) -> Rows:
    """Return some rows ascending, each once; given so, they are returned as they are, (n,)."""
    import numpy as np

    given = np.asarray(rows, dtype=np.int64)
    if len(given) < 2 or bool((given[1:] > given[:-1]).all()):
        return given
    ordered = np.sort(given)
    first = np.empty(len(ordered), dtype=np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: Rows = ordered[first]
    return found


def union(several: Sequence[Rows]) -> Rows:
    """Return the rows of several sets, ascending, each once."""
    import numpy as np

    if len(several) == 1:
        return sorted_unique(several[0])
    return sorted_unique(np.concatenate([np.empty(0, dtype=np.int64), *several]))


def cosines(vectors: Vectors | Floats, query: Vectors | Floats) -> Floats:
    """Return the inner product of each of some unit vectors, (n, dimension), with ``query``, (n,), in float64.

    It is summed one row at a time: BLAS rounds a row differently in another number of rows.
    """
    import numpy as np

    found: Floats = np.einsum(
        "ij,j->i", vectors.astype(np.float64, copy=False), query.astype(np.float64, copy=False)
    )
    return found


def run_offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of consecutive runs of these lengths starts, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


# MERGED: Sets of rows as ascending arrays. ``np.unique`` hashes before it sorts: forty times as long on a
# million rows, most
# MERGED: Vectors compared: what storage, search and guides share.
