"""What arrays hold, for type checkers: numpy is not imported to read a signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: Rows of nodes in a snapshot or graph, and other numbers.
    Rows = NDArray[np.int64]
    Floats = NDArray[np.float64]
    #: Terms (:func:`clew.text.hash_term`).
    Hashes = NDArray[np.uint64]
    #: One flag for each row of a snapshot.
    Mask = NDArray[np.bool_]
    #: Unit vectors, (n, dimension).
    Vectors = NDArray[np.float32]
