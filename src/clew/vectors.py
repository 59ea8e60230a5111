"""Vectors compared: what storage, search and guides share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.protocols import Floats, Vectors


def cosines(vectors: Vectors | Floats, query: Vectors | Floats) -> Floats:
    """Return the inner product of each of some unit vectors, (n, dimension), with ``query``, (n,), in float64.

    It is summed one row at a time: BLAS rounds a row differently in another number of rows.
    """
    import numpy as np

    found: Floats = np.einsum(
        "ij,j->i", vectors.astype(np.float64, copy=False), query.astype(np.float64, copy=False)
    )
    return found
