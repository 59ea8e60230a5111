"""Search by meaning: the inner product of unit vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.arrays import cosines
from clew.core.text import add_headings
from clew.core.types import RETRIEVED_KINDS
from clew.retrieve.ranking import as_hits, best_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Hit, Question

#: Found beyond ``k``, because the search itself ranks by float32 sums and breaks ties by row.
_SPARE = 10


@dataclass(frozen=True, slots=True)
class DenseSearch:
    """The nodes whose vectors have the greatest inner product with the question's.

    A node whose vector has not been made yet is not found.
    """

    snapshot: Snapshot
    encoder: Encoder

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` nearest nodes, nearest first."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        rows, scores = self.nearest(question.text, k, allowed)
        return as_hits(self.snapshot, rows, scores)

    def nearest(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        """Return at most ``k`` allowed rows and their cosines, nearest first, ties by node id."""
        view = self.snapshot.vectors(self.encoder.name)
        vector = self.encoder.encode([query], query=True)
        found, _ = view.search(vector, k + _SPARE, allowed)
        rows = found[0][found[0] >= 0]
        return best_rows(self.snapshot, rows, cosines(view.vectors(rows), vector[0]), k)


def texts_with_headings(snapshot: Snapshot, rows: Rows) -> list[str]:
    """Return passages as texts that stand for themselves: with the titles and headings above them."""
    titles = snapshot.nodes(snapshot.column("document")[rows])
    return [
        add_headings(title.name, node.headings, node.text)
        for title, node in zip(titles, snapshot.nodes(rows), strict=True)
    ]
