"""Dense retrieval: nodes by the inner product of their vectors with the question's, once or hop by hop.

Besides :class:`DenseSearch` these are two baselines of the KGP paper (Wang et al., AAAI 2024, Supplementary 8.2):
multi-hop dense retrieval (MDR; Xiong et al., ICLR 2021) and KNN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clew.core.arrays import Floats, Mask, Rows, cosines
from clew.core.component import component
from clew.core.protocols import Encoder, Snapshot
from clew.core.text import build_hop_query
from clew.core.types import RETRIEVED_KINDS, Hit, Question
from clew.graph.passages import texts_with_headings
from clew.retrieve.ranking import as_hits, best_rows

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

    With ``pairs``, ``k`` counts pairs and not passages: the KGP paper's MDR reads "the top 30" of 45 pairs
    (Supplementary 8.2), which are 31 to 60 passages.
    """

    snapshot: Snapshot
    encoder: Encoder
    first: int = 15
    then: int = 3
    pairs: bool = False

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` first passages of the best pairs, best first; with ``pairs``, those of the ``k`` best."""
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
        for negative, first_id, id, row in sorted(pairs)[: k if self.pairs else None]:
            best.setdefault(first_id, (row_of_first[first_id], -negative, (first_id,)))
            best.setdefault(id, (row, -negative, (first_id, id)))
        ranked = list(best.values())[: None if self.pairs else k]
        nodes = self.snapshot.nodes(np.array([row for row, *_ in ranked], dtype=np.int64))
        return [
            Hit(node, score, path, ("nearest to question and passage",) if len(path) > 1 else ())
            for node, (_, score, path) in zip(nodes, ranked, strict=True)
        ]


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
