"""Multi-hop dense retrieval (MDR; Xiong et al., ICLR 2021), as the KGP paper runs it (Supplementary 8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.component import component
from clew.core.text import build_hop_query
from clew.core.types import RETRIEVED_KINDS, Hit
from clew.retrieve.dense import texts_with_headings

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Question


@component(
    "twohop",
    summary="pairs of passages by the product of two inner products, as MDR searches (needs an encoder)",
    paper="Xiong et al., ICLR 2021",
)
@dataclass(frozen=True, slots=True)
class TwoHopSearch:
    """Ranks pairs of passages by the product of two inner products.

    The first passage of a pair is one of the ``first`` nearest to the question, the second one of the ``then``
    nearest to the question followed by the first passage. A passage is ranked by the best pair that contains it, and
    the path of a second passage is the pair. Any encoder can be used, but with one that was not trained for two hops
    this is no longer MDR.
    """

    snapshot: Snapshot
    encoder: Encoder
    first: int = 15
    then: int = 3

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` first passages of the best pairs, best first."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        index = self.snapshot.vectors(self.encoder.name)
        vector = self.encoder.encode([question.text], query=True)
        rows, scores = (result[0] for result in index.search(vector, self.first, allowed))
        rows, scores = rows[rows >= 0], scores[rows >= 0]
        if not len(rows):
            return []
        first_nodes = self.snapshot.nodes(rows)
        queries = [
            build_hop_query(question.text, [text]) for text in texts_with_headings(self.snapshot, rows)
        ]
        query_vectors = self.encoder.encode(queries, query=True)
        # One more than asked for, since a passage is nearest to a question that ends with the passage itself.
        second_rows, second_scores = index.search(query_vectors, self.then + 1, allowed)

        # Pairs as (negative score, first id, second id, second row), so that sorting ranks them.
        pairs: list[tuple[float, str, str, int]] = []
        for node, row, score, nexts, next_scores in zip(
            first_nodes, rows, scores, second_rows, second_scores, strict=True
        ):
            others = (nexts >= 0) & (nexts != row)
            seconds = nexts[others][: self.then]
            pairs += [
                (round(-float(score * next_score), 9), node.id, id, int(next_row))
                for next_score, id, next_row in zip(
                    next_scores[others][: self.then], self.snapshot.ids(seconds), seconds, strict=True
                )
            ]

        # Of each passage the best pair that contains it: its row, score and path.
        row_of_first = dict(zip((node.id for node in first_nodes), rows.tolist(), strict=True))
        best: dict[str, tuple[int, float, tuple[str, ...]]] = {}
        for negative, first_id, id, row in sorted(pairs):
            best.setdefault(first_id, (row_of_first[first_id], -negative, (first_id,)))
            best.setdefault(id, (row, -negative, (first_id, id)))
        ranked = list(best.values())[:k]
        nodes = self.snapshot.nodes(np.array([row for row, *_ in ranked], dtype=np.int64))
        return [
            Hit(node, score, path, ("nearest to question and passage",) if len(path) > 1 else ())
            for node, (_, score, path) in zip(nodes, ranked, strict=True)
        ]
