"""Dense retrieval: nodes by the inner product of their vectors with the question's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.arrays import cosines
from clew.core.component import component
from clew.core.text import add_headings
from clew.core.types import RETRIEVED_KINDS
from clew.retrieve.ranking import as_hits, best_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Hit, Question

#: Rows that are fetched beyond ``k``, because the vector index ranks by float32 sums and breaks ties by row.
_SPARE = 10


@component("dense", summary="nearest vectors (needs an encoder)")
@dataclass(frozen=True, slots=True)
class DenseSearch:
    """Finds the nodes whose unit vectors have the greatest inner product with the question's.

    A node that has no vector yet is never found.
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
        index = self.snapshot.vectors(self.encoder.name)
        vector = self.encoder.encode([query], query=True)
        rows = index.search(vector, k + _SPARE, allowed)[0][0]
        rows = rows[rows >= 0]
        return best_rows(self.snapshot, rows, cosines(index.vectors(rows), vector[0]), k)


def texts_with_headings(snapshot: Snapshot, rows: Rows) -> list[str]:
    """Return the texts of passages with the document's title and the headings above them in front.

    It is what an encoder reads of a passage.
    """
    documents = snapshot.nodes(snapshot.column("document")[rows])
    return [
        add_headings(document.name, node.headings, node.text)
        for document, node in zip(documents, snapshot.nodes(rows), strict=True)
    ]
