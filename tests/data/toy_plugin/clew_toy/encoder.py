"""An encoder: how often each letter occurs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clew.core.arrays import Vectors


class Letters:
    """``letters:abc`` counts the letters a, b and c."""

    objective = ""

    def __init__(self, letters: str) -> None:
        self.letters = letters
        self.name = f"letters:{letters}"
        self.dimension = len(letters) + 1

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32."""
        counts = [[1, *(text.count(letter) for letter in self.letters)] for text in texts]
        vectors = np.array(counts, dtype=np.float32).reshape(len(texts), self.dimension)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
