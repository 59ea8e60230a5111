"""Multi-hop dense retrieval (MDR; Xiong et al., ICLR 2021), as the KGP paper runs it (Supplementary 8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import build_hop_query
from clew.core.types import RETRIEVED_KINDS, Hit
from clew.retrieve.dense import texts_with_headings

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Question


@dataclass(frozen=True, slots=True)
class TwoHopSearch:
    """Pairs of passages by the product of two inner products.

    The ``first`` passages nearest to the question, and for each the ``then`` nearest to the question followed
    by it; pairs are ranked by the product of both scores, and each passage stands where the best pair that has
    it stands. The path of a pair's second passage is the pair. Any encoder serves; one that was not trained
    for it is no MDR but the same search.
    """

    snapshot: Snapshot
    encoder: Encoder
    first: int = 15
    then: int = 3

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` first passages of the best pairs, best first."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        view = self.snapshot.vectors(self.encoder.name)
        vector = self.encoder.encode([question.text], query=True)
        rows, scores = (found[0] for found in view.search(vector, self.first, allowed))
        rows, scores = rows[rows >= 0], scores[rows >= 0]
        if not len(rows):
            return []
        firsts = self.snapshot.nodes(rows)
        queries = [
            build_hop_query(question.text, [text]) for text in texts_with_headings(self.snapshot, rows)
        ]
        asked = self.encoder.encode(queries, query=True)
        # One more, since a passage is nearest to a question that ends with itself.
        nexts, nearness = view.search(asked, self.then + 1, allowed)
        pairs: list[tuple[float, str, str, int]] = []
        for node, row, score, after, near in zip(firsts, rows, scores, nexts, nearness, strict=True):
            other = (after >= 0) & (after != row)
            chosen = after[other][: self.then]
            ids = self.snapshot.ids(chosen)
            pairs += [
                (round(-float(score * one), 9), node.id, id, int(next_row))
                for one, id, next_row in zip(near[other][: self.then], ids, chosen, strict=True)
            ]
        found: dict[str, tuple[int, float, tuple[str, ...]]] = {}
        start = dict(zip((node.id for node in firsts), rows.tolist(), strict=True))
        for negative, before, id, row in sorted(pairs):
            found.setdefault(before, (start[before], -negative, (before,)))
            found.setdefault(id, (row, -negative, (before, id)))
        best = list(found.values())[:k]
        nodes = self.snapshot.nodes(np.array([row for row, *_ in best], dtype=np.int64))
        return [
            Hit(node, score, path, ("nearest to question and passage",) if len(path) > 1 else ())
            for node, (_, score, path) in zip(nodes, best, strict=True)
        ]
