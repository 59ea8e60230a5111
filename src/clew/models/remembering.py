"""An encoder that reads each passage once, for evaluations: a paragraph comes up in many questions' corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clew.protocols import Encoder, Vectors


@dataclass(frozen=True, slots=True)
class RememberingEncoder:
    """Keeps the vectors of passages in memory, for as long as the process lives: 4 bytes times the dimension each.

    Nothing changes but the time, since a vector depends on its text alone. Those of questions are made anew every
    time: what a search costs is measured.
    """

    encoder: Encoder
    _known: dict[str, Vectors] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The encoder's own name."""
        return self.encoder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.encoder.dimension

    @property
    def objective(self) -> str:
        """As the encoder's own."""
        return self.encoder.objective

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. Raises ModelError."""
        if query or not texts:
            return self.encoder.encode(texts, query)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self.encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])
