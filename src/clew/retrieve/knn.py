"""The KNN baseline of the KGP paper (Wang et al., AAAI 2024, Supplementary 8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.component import component
from clew.core.types import RETRIEVED_KINDS
from clew.retrieve.dense import DenseSearch
from clew.retrieve.ranking import as_hits, best_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Hit, Question

#: Texts that are compared at a time; bounds memory, not results.
_BLOCK = 4096


@component(
    "knn",
    summary="half by embedding, half by Levenshtein similarity (needs an encoder)",
    paper="Wang et al., AAAI 2024",
)
@dataclass(frozen=True, slots=True)
class KnnSearch:
    """Half of the hits by embedding, half by fuzzy matching.

    Of 30 passages, "the top-15 passages according to the embedding similarity and the top-15 passages according to
    the fuzzy matching". Fuzzy matching is the normalised Levenshtein similarity of the question and a passage's text
    (footnote 8 names the Levenshtein distance). The two kinds of scores cannot be compared, so the lists alternate,
    the nearest by embedding first, and the score of a hit is 1 / rank. A node on both lists comes once, and the fuzzy
    list is then read further, so that ``k`` nodes are returned where there are as many.
    """

    snapshot: Snapshot
    encoder: Encoder

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return ``k`` hits, ceil(k / 2) of them by embedding."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        near, _ = DenseSearch(self.snapshot, self.encoder).nearest(question.text, (k + 1) // 2, allowed)
        fuzzy, _ = self.fuzzy_matches(question.text, k, allowed)
        rest = fuzzy[~np.isin(fuzzy, near)][: k - len(near)]
        rows = interleave(near, rest)
        return as_hits(self.snapshot, rows, 1 / np.arange(1.0, len(rows) + 1))

    def fuzzy_matches(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        """Return the ``k`` allowed rows whose texts are most like ``query``, most similar first.

        Compares every text, which takes seconds on a large knowledge base, as it does in the paper.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        rows = np.flatnonzero(allowed)
        similarities = [np.empty(0)]
        for start in range(0, len(rows), _BLOCK):
            texts = [node.text for node in self.snapshot.nodes(rows[start : start + _BLOCK])]
            matrix = process.cdist([query], texts, scorer=Levenshtein.normalized_similarity, dtype=np.float64)
            similarities.append(matrix[0])
        return best_rows(self.snapshot, rows, np.concatenate(similarities), k)


def interleave(first: Rows, second: Rows) -> Rows:
    """Return the elements of two arrays in turn, then the rest of the longer one."""
    places = np.concatenate([np.arange(len(first)) * 2, np.arange(len(second)) * 2 + 1])
    return np.concatenate([first, second])[np.argsort(places, kind="stable")]
