"""The paper's KNN baseline (Wang et al., AAAI 2024, Supplementary 8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.types import RETRIEVED_KINDS
from clew.retrieve.dense import DenseSearch
from clew.retrieve.ranking import as_hits, best_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, Snapshot
    from clew.core.types import Hit, Question

#: Texts that are compared in one go; bounds memory, not results.
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class KnnSearch:
    """Half of the hits by embedding, half by fuzzy matching: "the top-15 passages according to the embedding
    similarity and the top-15 passages according to the fuzzy matching", of 30.

    Fuzzy matching is the normalised Levenshtein similarity of the question and a passage's text (footnote 8
    names the Levenshtein distance). The two kinds of scores are not comparable, so the lists alternate, the
    nearest by embedding first, and a hit's score is 1 / its place. A node that both lists contain comes once;
    the fuzzy list is then read further, so that ``k`` nodes come back where there are as many.
    """

    snapshot: Snapshot
    encoder: Encoder

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return ``k`` hits, ceil(k / 2) of them by embedding."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        half = (k + 1) // 2
        near, _ = DenseSearch(self.snapshot, self.encoder).nearest(question.text, half, allowed)
        fuzzy, _ = self.fuzzy_matches(question.text, k, allowed)
        rest = fuzzy[~np.isin(fuzzy, near)][: k - len(near)]
        rows = interleave(near, rest)
        return as_hits(self.snapshot, rows, 1 / np.arange(1.0, len(rows) + 1))

    def fuzzy_matches(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        """Return the ``k`` allowed rows whose texts are most like ``query``, most similar first.

        Compares every text: seconds on a large base, as the method it transcribes.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        rows = np.flatnonzero(allowed)
        found = [np.empty(0)]
        for start in range(0, len(rows), _BLOCK):
            texts = [node.text for node in self.snapshot.nodes(rows[start : start + _BLOCK])]
            similar = process.cdist(
                [query], texts, scorer=Levenshtein.normalized_similarity, dtype=np.float64
            )
            found.append(similar[0])
        return best_rows(self.snapshot, rows, np.concatenate(found), k)


def interleave(first: Rows, second: Rows) -> Rows:
    """Return the two arrays' elements in turn, then what is left of the longer."""
    places = np.concatenate([np.arange(len(first)) * 2, np.arange(len(second)) * 2 + 1])
    return np.concatenate([first, second])[np.argsort(places, kind="stable")]
