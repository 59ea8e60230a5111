"""The guide `trained`: ours, a conditional logit over what is known of a step of the walk.

It needs no language model, but the multi-hop encoder that comes with clew. For each candidate it adds up what
`residual` says of it, the parts of that, its cosines with the encoder's query, with the question and with the last
passage of the path, the words it shares with that passage, and the edges that lead to it, each with a learned
coefficient; the softmax of the sums is the probability that the candidate is the next passage. A candidate that only
repeats the question or the path so counts less than one that answers what is left.

Its probabilities and those of `residual` are mixed half and half. What is learned on paragraphs of an encyclopaedia
is too sure of itself elsewhere, and in questions that compare; a mixture follows it where it has found the next
passage, and keeps the order of `residual` where it has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Rows, Vectors, cosines
from clew.core.component import Resources
from clew.core.errors import UsageError
from clew.core.protocols import Graph, Retriever
from clew.core.types import Question
from clew.graph.mentions import MentionGraph
from clew.methods.kgp.guides import (
    MDR,
    Calibration,
    NeighbourScores,
    OpenCandidates,
    Opinion,
    ResidualGuide,
)
from clew.retrieve.contextual import ContextualSearch
from clew.retrieve.lexical import TfIdf

#: Kinds of edges that count beside the strength, with their direction (true: back).
_EDGES = (("title", False), ("title", True), ("name", False))
#: What is known of a candidate, with its coefficient, and that for a path that the encoder made no query of. *Later*:
#: the path has two passages or more. Learned from 2,046 steps of 700 questions of HotpotQA, MuSiQue and
#: 2WikiMultihopQA, each with an encoder that had not seen the question
#: (``python benchmarks/trained_guide.py --folds FOLDER --out FOLDER --report``).
_LEARNED = {
    "residual": (10.47, 21.28),
    "words left open": (44.37, 35.82),
    "words": (-42.12, -45.09),
    "document": (-1.19, -12.01),
    "question, rest of it": (1.27, -0.3),
    "question": (-4.85, -4.51),
    "last passage": (-8.62, -9.99),
    "words of the last passage": (3.75, 3.31),
    "strength": (5.34, 2.34),
    "title": (2.43, 2.31),
    "title, back": (0.49, 0.33),
    "name": (1.41, 1.31),
    "names shared": (-0.02, -0.04),
    "strength, later": (-0.99, -0.79),
    "words left open, later": (5.38, 7.35),
    "question, later": (-9.59, -7.76),
    "query": (10.84, 0),
    "query, later": (11.15, 0),
    "query and edge": (-7.57, 0),
}
FEATURES = tuple(_LEARNED)
#: The features before this one need no query of the encoder.
WITHOUT_QUERY = FEATURES.index("query")


@dataclass(frozen=True, slots=True)
class KnownCandidates:
    """What is known of the candidates of a path: their rows, (n,), and features, (n, m), and whether the encoder made
    a query of the path. The first feature is the score of `residual`."""

    rows: Rows
    features: Floats
    has_query: bool


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The coefficients of all features, and of those before ``query`` for paths that are not encoded."""

    with_query: NDArray[np.float64]
    without: NDArray[np.float64]


COEFFICIENTS = Coefficients(
    np.array([with_query for with_query, _ in _LEARNED.values()]),
    np.array([without for _, without in _LEARNED.values()][:WITHOUT_QUERY]),
)
#: How much steeper than learned the opinion is, since a walk multiplies its steps: chosen among 1 and 1.5, before the
#: mixture, which was given equal shares without a trial.
_STEEPNESS, _TRUST = 1.5, 0.5


@dataclass(frozen=True, slots=True)
class TrainedGuide:
    """Scores candidates by `residual`, and by learned coefficients as a second opinion with the share ``trust``.

    ``residual`` proposes the candidates, and says what is missing.
    """

    residual: ResidualGuide
    graph: MentionGraph
    words: TfIdf
    coefficients: Coefficients = COEFFICIENTS
    steepness: float = _STEEPNESS
    trust: float = _TRUST

    def score_neighbours(
        self,
        question: Question,
        paths: Sequence[Sequence[int]],
        neighbours: Sequence[Rows],
        open_candidates: OpenCandidates,
    ) -> NeighbourScores:
        """Score the candidates of each path by `residual`, with the learned opinion beside it."""
        scores, opinions = [], []
        # What an edge is worth is among the features.
        calibration = Calibration(self.steepness, 0.0)
        for known in self.describe(question, paths, neighbours, open_candidates):
            learnt = self.coefficients.with_query if known.has_query else self.coefficients.without
            scores.append((known.rows, known.features[:, 0]))
            opinions.append(Opinion(known.features[:, : len(learnt)] @ learnt, calibration, self.trust))
        return NeighbourScores(scores, opinions=opinions)

    def missing(self, question: Question, paths: Sequence[Sequence[int]]) -> list[float]:
        """Return what `residual` says."""
        return self.residual.missing(question, paths)

    def describe(
        self,
        question: Question,
        paths: Sequence[Sequence[int]],
        neighbours: Sequence[Rows],
        open_candidates: OpenCandidates,
    ) -> Iterator[KnownCandidates]:
        """Yield what is known of the candidates of each path."""
        queries = self.residual.hop_vectors(question, paths)
        pools = self.residual.score_neighbours(question, paths, neighbours, open_candidates, queries).scores
        for path, (rows, scores), query in zip(paths, pools, queries, strict=True):
            yield self._describe_path(question, path, rows, scores, query)

    def _describe_path(
        self, question: Question, path: Sequence[int], rows: Rows, scores: Floats, query: Vectors | None
    ) -> KnownCandidates:
        search = self.residual.search
        weighed = search.weigh_question(question)
        every = np.unique(np.concatenate([rows, np.array(path, np.int64)]))
        selector = search.coverage_selector(weighed, every)
        assert selector.meaning is not None
        assert search.encoder is not None
        on_path, places = np.searchsorted(every, path).tolist(), np.searchsorted(every, rows)
        weights, documents = selector.left_after(on_path, self.residual.covered, self.residual.fading)
        left = (selector.matched @ weights)[places]
        vectors, last = selector.meaning.vectors[places], selector.meaning.vectors[on_path[-1]]
        rest = selector.meaning.gains(on_path)[places] / selector.meaning.weight
        hop = np.zeros(len(rows)) if query is None else cosines(vectors, query)
        (passage,) = search.snapshot.nodes(np.array([path[-1]]))
        strength, kinds = self._describe_edges(path[-1], rows)
        later = float(len(path) > 1)
        features = np.stack(
            [
                scores,
                left,
                (selector.matched @ selector.weights)[places],
                (documents + selector.lead)[places],
                rest,
                cosines(vectors, selector.meaning.question),
                cosines(vectors, last),
                self.words.scores(passage.text, rows),
                strength,
                *kinds,
                later * strength,
                later * left,
                later * rest,
                hop,
                later * hop,
                strength * hop,
            ],
            axis=1,
        )
        return KnownCandidates(rows, features, query is not None)

    def _describe_edges(self, row: int, rows: Rows) -> tuple[Floats, list[Floats]]:
        """Return the strength of the edges from a row to others, 0 without one, whether each kind is among them, and
        the logarithm of 1 and the number of names they share."""
        near = np.isin(rows, self.graph.neighbours(row))
        strength = np.zeros(len(rows))
        strength[near] = self.graph.strengths(row, rows[near])
        kinds = {kind: np.zeros(len(rows)) for kind in _EDGES}
        shared = np.zeros(len(rows))
        for edges in self.graph.typed_edges(row):
            if (kind := (edges.kind, edges.is_back)) in kinds:
                kinds[kind][np.isin(rows, edges.rows)] = 1.0
            if edges.kind == "name":
                times = Counter(edges.rows.tolist())
                shared += np.log1p([times[other] for other in rows.tolist()])
        return strength, [*kinds.values(), shared]


def fits_trained_guide(resources: Resources, graph: Graph) -> bool:
    """Return whether the guide can walk here: with a multi-hop encoder, over the graph that it was trained on."""
    encoder = resources.encoder
    return encoder is not None and encoder.objective == MDR and isinstance(graph, MentionGraph)


def create_trained_guide(resources: Resources, seeding: Retriever, graph: Graph) -> TrainedGuide:
    """Return the guide for a walk over a graph. Raises UsageError without a multi-hop encoder, and for another graph
    than `mentions`."""
    encoder = resources.require_encoder("guide=trained")
    if encoder.objective != MDR:
        raise UsageError(
            f"'guide=trained' needs a multi-hop encoder: {encoder.name}",
            "Set one: clew encoder set clew:hops",
        )
    if not isinstance(graph, MentionGraph):
        raise UsageError(f"'guide=trained' was trained on another graph: {graph.name}", "Use graph=mentions")
    search = (
        seeding if isinstance(seeding, ContextualSearch) else ContextualSearch(resources.snapshot, encoder)
    )
    words = TfIdf(resources.snapshot)
    words.prefetch()
    return TrainedGuide(ResidualGuide(search), graph, words)
