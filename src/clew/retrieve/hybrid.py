"""Several retrievers combined by the ranks that they give."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from clew.core.component import component
from clew.core.protocols import Retriever, Trail
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import Hit, Question
from clew.retrieve.ranking import merge_hits


@component(
    "hybrid(a=bm25, b=dense)",
    summary="reciprocal rank fusion of two retrievers",
    paper="Cormack, Clarke and Büttcher, SIGIR 2009",
)
@dataclass(frozen=True, slots=True)
class HybridSearch:
    r"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).

    .. math:: \sum_{r \in R} \frac{1}{c + rank_r(d)}

    with ranks from 1 and ``c`` = 60 as in the paper; a list without the node adds nothing. Only ranks count, so any
    retrievers can be combined, whatever their scores mean. Each is asked for ``depth`` hits. A hit keeps the path of
    the first retriever that found it.
    """

    retrievers: tuple[Retriever, ...]
    c: float = 60.0
    depth: int = 100

    @classmethod
    def build(cls, a: Retriever, b: Retriever, c: float = 60) -> HybridSearch:
        """Return the fusion of two retrievers."""
        return cls((a, b), c)

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best hits of all retrievers together."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same; the steps of the retrievers go to ``trail``."""
        depth = max(k, self.depth)
        lists = [explore_retriever(retriever, question, depth, trail) for retriever in self.retrievers]
        scores: dict[str, float] = defaultdict(float)
        for hits in lists:
            for rank, hit in enumerate(hits, start=1):
                scores[hit.node.id] += 1 / (self.c + rank)
        return merge_hits(lists, scores, k)
