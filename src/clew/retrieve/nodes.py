"""The nodes of graphs that answer a question, ranked by their texts: STaRK's baselines (Wu et al., NeurIPS 2024,
Section 4; 4StepFocus, Boer et al., 2024, Section 2).

Nothing but what a question needs is embedded. :class:`NodeVectorSearch` ranks some nodes of one graph, or all;
where they
are more than ``cap`` and not every node that may answer has a vector yet, the ``cap`` that are best by words are
embedded and ranked and the others are not looked at, which is said. What is found then follows from the question and
the graph alone, and not from the questions that were asked before. ``clew graph encode`` embeds all, and then all are
ranked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clew.core.arrays import cosines, sorted_unique, union
from clew.core.component import component
from clew.core.errors import unknown_name_error
from clew.core.protocols import Encoder, Snapshot
from clew.core.steps import NodeCounts, RankNodesStep
from clew.core.text import count_terms
from clew.core.trail import TrailRecorder
from clew.core.types import ENTITY, Entity, Hit, Node
from clew.retrieve.lexical import QueryTerms, TermSum, lucene_idf
from clew.retrieve.node_texts import NodeTexts, node_texts
from clew.retrieve.ranking import DECIMALS

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows, Vectors
    from clew.core.protocols import Postings, PropertyGraph, Trail
    from clew.core.types import Question

#: Nodes that are embedded for one question at the most.
EMBEDDING_CAP = 500
#: A graph up to this size has its words counted when they are first needed; a larger one by ``clew graph encode``,
#: and until then some candidates are read.
COUNT_LIMIT = 100_000
#: Candidates whose texts are read to choose among them, in a graph whose words are not counted.
READING_LIMIT = 5_000
#: How many chunks of a node count, those most like the question (STaRK: ``top3_avg``).
TOP_CHUNKS = 3


def node_hit(graph: str, entity: Entity, text: str, score: float) -> Hit:
    """Return a node of a graph as a hit: its text is ``text``, its document the graph."""
    node = Node(entity.id, ENTITY, text, graph, graph, 0, None, entity.name, 0, None, (), (0, len(text)))
    return Hit(node, score, (entity.id,))


@dataclass(frozen=True, slots=True)
class RankedRows:
    """Rows of a graph, best first, with their scores; ``counts`` says how many were looked at, for the trail."""

    rows: Rows
    scores: Floats
    counts: NodeCounts | None = None


class NodeRanker(Protocol):
    """Ranks nodes of one graph."""

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of ``among`` (None: of all nodes), best first, ties by id."""
        ...


@dataclass(frozen=True, slots=True)
class NodeBM25:
    r"""BM25 over the documents of nodes, as :class:`clew.retrieve.lexical.BM25` has it; the words of a graph are
    counted once and kept beside it."""

    texts: NodeTexts
    k1: float = 1.2
    b: float = 0.75

    def postings(self, make: bool = True) -> Postings | None:
        """Return the words of every node; with ``make``, they are counted where they are not yet."""
        return self.texts.graph.node_postings(
            self.texts.document_name, self.texts.single_texts if make else None
        )

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of the nodes that share a word with the query."""
        postings = self.postings()
        assert postings is not None
        return self.rank_by_postings(postings, query, k, among)

    def rank_by_postings(self, postings: Postings, query: str, k: int, among: Rows | None) -> RankedRows:
        """Return the same from words that are counted."""
        terms = QueryTerms.from_text(query)
        weights = terms.counts * lucene_idf(postings, terms.hashes) * (self.k1 + 1)
        flat, slope = self.k1 * (1 - self.b), self.k1 * self.b / (postings.average_length or 1.0)

        def gain(rows: Rows, counts: Any) -> Floats:
            found: Floats = counts / (counts + flat + slope * postings.lengths(rows))
            return found

        wanted = TermSum(postings, terms.hashes, weights, gain, self.texts.graph.size)
        count = self.texts.graph.size
        if among is None:
            scores = wanted.for_all_rows()
            rows = np.flatnonzero(scores)
        else:
            rows = sorted_unique(among)
            scores = np.zeros(self.texts.graph.size)
            scores[rows] = wanted.for_rows(rows) if wanted.is_cheap_for(rows) else wanted.for_all_rows()[rows]
            count = len(rows)
            rows = rows[scores[rows] > 0]
        return top_rows(rows, scores[rows], k, NodeCounts(count, len(rows)))

    def rank_by_reading(self, query: str, k: int, rows: Rows) -> RankedRows:
        """Return the ``k`` best of ``rows``, ascending, whose documents are read for it: BM25 with their statistics
        alone."""
        terms = QueryTerms.from_text(query)
        counted = [count_terms(text) for text in self.texts.documents(rows)]
        lengths = np.array([sum(one.values()) for one in counted], dtype=np.float64)
        held = [[one.get(term, 0) for term in terms.hashes.tolist()] for one in counted]
        counts = np.array(held, dtype=np.float64).reshape(len(rows), -1)
        holders = (counts > 0).sum(axis=0)
        weights = terms.counts * np.log1p((len(rows) - holders + 0.5) / (holders + 0.5)) * (self.k1 + 1)
        norms = self.k1 * (1 - self.b + self.b * lengths / (lengths.mean() or 1.0))
        scores = (counts / (counts + norms[:, None]) * weights).sum(axis=1)
        sharing = scores > 0
        return top_rows(rows[sharing], scores[sharing], k, NodeCounts(len(rows), int(sharing.sum())))


@dataclass(frozen=True, slots=True)
class NodeVectorSearch:
    """Vector similarity search over the documents of the nodes of one graph (``vss``).

    ``cap`` bounds what one question embeds; ``counted`` is the size up to which a graph's words are counted for it.
    """

    encoder: Encoder
    texts: NodeTexts
    cap: int = EMBEDDING_CAP
    count_limit: int = COUNT_LIMIT

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` nearest of ``among`` (None: of all nodes), nearest first, ties by id."""
        vectors = self.texts.graph.node_vectors(self.encoder, self.texts.document_name)
        rows, counts = self.prepare_rows(query, among)
        vector = self.encoder.encode([query], query=True)[0]
        size = self.texts.graph.size
        whole = len(rows) == size
        if not whole and len(rows) <= self.cap:
            return top_rows(rows, cosines(vectors.vectors(rows)[1], vector), k, counts)
        mask = None
        if not whole:
            mask = np.zeros(size, dtype=np.bool_)
            mask[rows] = True
        found, scores = vectors.search(vector, k, mask)
        return RankedRows(found, scores, counts)

    def prepare_rows(self, query: str, among: Rows | None = None) -> tuple[Rows, NodeCounts]:
        """Return the rows that can be ranked, each with its vector made, and what was done for it."""
        graph, started = self.texts.graph, time.perf_counter()
        rows = np.arange(graph.size) if among is None else sorted_unique(among)
        vectors = graph.node_vectors(self.encoder, self.texts.document_name)
        counts = NodeCounts(len(rows))
        # Of all that may answer, not of these rows: the same question must not find more once others have been asked.
        if len(rows) > self.cap and len(vectors.rows_without_vectors(answer_rows(graph))) > 0:
            without = len(vectors.rows_without_vectors(rows))
            rows, looked_at = self._proposed(query, rows, among is None)
            hint = f"clew graph encode {graph.name}"
            counts = replace(counts, without_a_vector=without, looked_at=looked_at, hint=hint)
        made = vectors.encode_missing(rows, self.texts.single_texts)
        if made:
            seconds = round(time.perf_counter() - started, 3)
            counts = replace(counts, embedded=made, embedding_seconds=seconds)
        return rows, counts

    def _proposed(self, query: str, rows: Rows, every: bool) -> tuple[Rows, str]:
        """Return the nodes to embed, ascending, and how they were chosen."""
        words = NodeBM25(self.texts)
        postings = words.postings(make=self.texts.graph.size <= self.count_limit)
        if postings is not None:
            found, of = words.rank_by_postings(postings, query, self.cap, None if every else rows).rows, ""
        else:
            found = words.rank_by_reading(query, self.cap, rows[:READING_LIMIT]).rows
            of = f" of the first {READING_LIMIT:,} by id" if len(rows) > READING_LIMIT else ""
        rest = rows[: self.cap + len(found)]
        rest = rest[~np.isin(rest, found)][: self.cap - len(found)]
        how = [f"the best {len(found):,} by words{of}"] if len(found) else []
        how += [f"the first {len(rest):,} {'of the others ' if how else ''}by id"] if len(rest) else []
        return np.sort(np.concatenate([found, rest])), ", ".join(how)


@dataclass(frozen=True, slots=True)
class NodeChunkSearch:
    """Multi-vector search (``multi-vss``): of the ``first`` nodes that :class:`NodeVectorSearch` finds, the
    chunks of text
    and relations are embedded apart, and the mean of the ``top`` most like the question counts (1: the best alone).

    As in STaRK's code: chunks of nodes that the plain search does not find are never made.
    """

    search: NodeVectorSearch
    first: int = 50
    top: int = TOP_CHUNKS

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of ``among`` (None: of all nodes), best first, ties by id."""
        texts, encoder = self.search.texts, self.search.encoder
        found = self.search.rank(query, max(k, self.first), among)
        rows = np.sort(found.rows)
        kept = texts.graph.node_vectors(encoder, texts.chunk_name)
        made = kept.encode_missing(rows, texts.chunks)
        offsets, vectors = kept.vectors(rows)
        scores = mean_of_top(offsets, vectors, encoder.encode([query], query=True)[0], self.top)
        counts = found.counts or NodeCounts(len(rows))
        return top_rows(rows, scores, k, replace(counts, chunks=len(vectors), embedded_in_chunks=made))


def mean_of_top(offsets: Rows, vectors: Vectors, query: Vectors, top: int) -> Floats:
    """Return for each row the mean cosine of its ``top`` vectors most like the query; (n,)."""
    scores = cosines(vectors, query)
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-scores, owner))
    place = np.arange(len(order)) - offsets[owner[order]]
    kept = order[place < top]
    sums = np.bincount(owner[kept], scores[kept], len(offsets) - 1)
    found: Floats = sums / np.maximum(np.bincount(owner[kept], minlength=len(offsets) - 1), 1)
    return found


def top_rows(rows: Rows, scores: Floats, k: int, counts: NodeCounts | None = None) -> RankedRows:
    """Return the ``k`` best of ``rows``, ascending, by rounded scores; ties by row, which is by id."""
    scores = scores.round(DECIMALS) + 0.0
    if k < len(rows):
        kept = scores >= np.partition(scores, -k)[-k] if k > 0 else np.zeros(len(rows), dtype=np.bool_)
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))[:k]
    return RankedRows(rows[order], scores[order], counts)


def rank_and_pad(
    ranking: NodeRanker,
    query: str,
    filtered: Rows,
    k_max: int,
    among: Rows | None = None,
    filling: NodeRanker | None = None,
) -> tuple[RankedRows, RankedRows]:
    """Return the filtered candidates, best first, and what fills up where they are fewer than ``k_max``: the next
    best of ``among`` (None: of all nodes), which belong below them (4StepFocus, Algorithm 1, line 3, and Section 3).

    Of more filtered candidates than ``ranking`` looks at, the best of those are returned, and its counts say so.
    ``filling``, where there are any, finds what fills up; by default ``ranking`` does.
    """
    filtered = sorted_unique(filtered)
    none = RankedRows(filtered[:0], np.empty(0))
    firm = ranking.rank(query, len(filtered), filtered) if len(filtered) else none
    if len(filtered) >= k_max:
        return firm, none
    ranking = filling if filling is not None and len(filtered) else ranking
    if among is None:
        # Fewer than k_max of the best k_max are filtered ones, so what is left suffices.
        found = ranking.rank(query, k_max)
        others = ~np.isin(found.rows, filtered)
        rest = RankedRows(found.rows[others], found.scores[others], found.counts)
    else:
        rest = ranking.rank(query, k_max, among[~np.isin(among, filtered)])
    room = k_max - len(filtered)
    return firm, RankedRows(rest.rows[:room], rest.scores[:room], rest.counts)


#: Makes what ranks the nodes of the graph whose texts it is given.
RankerFactory = Callable[[NodeTexts], NodeRanker]


@dataclass(frozen=True, slots=True)
class NodeRetriever:
    """Ranks the nodes of the graphs in a question's scope; hits are of kind ``entity``.

    ``ranking`` makes what ranks the nodes of a graph; ``types`` restricts to nodes of those types, by default to the
    question's kinds, else to the types that the graph declares as answers. ``graphs`` are the names of the graphs
    that are searched, none for all; mounted graphs, whose nodes have no texts here, are passed over, and it is said.
    """

    snapshot: Snapshot
    name: str
    ranking: RankerFactory
    types: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes of all graphs together."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same; how many nodes of each graph were looked at goes to the trail."""
        found: list[Hit] = []
        for name in self.graphs or self.snapshot.graphs():
            if question.scope.graphs is not None and name not in question.scope.graphs:
                continue
            graph, started = self.snapshot.graph(name), time.perf_counter()
            if graph.is_mounted:
                trail.add(RankNodesStep(self.name, name, passed_over="it is mounted"))
                continue
            texts = node_texts(self.snapshot, graph)
            ranked = self.ranking(texts).rank(question.text, k, self.allowed_rows(graph, question))
            hits = node_hits(texts, ranked)
            seconds = time.perf_counter() - started
            trail.add(RankNodesStep(self.name, name, counts=ranked.counts, hits=tuple(hits), seconds=seconds))
            found += hits
        return sorted(found, key=lambda hit: (-hit.score, hit.node.id))[:k]

    def allowed_rows(self, graph: PropertyGraph, question: Question) -> Rows | None:
        """Return the rows that may answer, ascending; None for all."""
        return answer_rows(graph, self.types or tuple(sorted(question.scope.kinds or ())))


def answer_rows(graph: PropertyGraph, types: Sequence[str] = ()) -> Rows | None:
    """Return the rows of ``types``, else of the types that the graph declares as answers, ascending; None for all.

    Raises UsageError for a type that the graph does not have.
    """
    wanted = types or graph.answer_types()
    if not wanted:
        return None
    known = graph.types()
    for one in wanted:
        if one not in known:
            raise unknown_name_error(
                f"type of nodes in the graph '{graph.name}'", one, known or {"(none)": 0}
            )
    rows = [graph.rows_of_type(one) for one in wanted]
    return union(rows)


def answer_rows_or_all(graph: PropertyGraph) -> Rows:
    """Return the rows that may answer, as :func:`answer_rows` does; of all nodes where no types are declared."""
    rows = answer_rows(graph)
    return np.arange(graph.size) if rows is None else rows


def node_hits(texts: NodeTexts, ranked: RankedRows) -> list[Hit]:
    """Return ranked nodes as hits with their documents."""
    graph = texts.graph
    entities, documents = graph.entities(ranked.rows), texts.documents(ranked.rows)
    return [
        node_hit(graph.name, entity, text, score)
        for entity, text, score in zip(entities, documents, ranked.scores.tolist(), strict=True)
    ]


@component(
    "vss",
    summary="nodes of graphs by the vector of their text and relations (needs an encoder)",
    traits=["ranks-nodes", "embeds-nodes"],
)
class NodeVectorRetriever(NodeRetriever):
    """Nodes of graphs by :class:`NodeVectorSearch`: STaRK's baseline VSS."""

    __slots__ = ()

    @classmethod
    def build(
        cls, snapshot: Snapshot, encoder: Encoder, graphs: str = "", types: str = "", cap: int = EMBEDDING_CAP
    ) -> NodeVectorRetriever:
        """Return the retriever over graphs and types by name, ``a|b`` for several; "" for all that may answer."""

        def ranking(texts: NodeTexts) -> NodeRanker:
            return NodeVectorSearch(encoder, texts, cap)

        return cls(snapshot, "vss", ranking, _split(types), _split(graphs))


@component(
    "multi-vss",
    summary="nodes of graphs by the vectors of the chunks of their text and relations (needs an encoder)",
    traits=["ranks-nodes", "embeds-nodes"],
)
class NodeChunkRetriever(NodeRetriever):
    """Nodes of graphs by :class:`NodeChunkSearch`: STaRK's baseline Multi-VSS."""

    __slots__ = ()

    @classmethod
    def build(
        cls,
        snapshot: Snapshot,
        encoder: Encoder,
        graphs: str = "",
        types: str = "",
        cap: int = EMBEDDING_CAP,
        first: int = 50,
        top: int = 3,
    ) -> NodeChunkRetriever:
        """Return the retriever over graphs and types by name, ``a|b`` for several; "" for all that may answer."""

        def ranking(texts: NodeTexts) -> NodeRanker:
            return NodeChunkSearch(NodeVectorSearch(encoder, texts, cap), first, top)

        return cls(snapshot, "multi-vss", ranking, _split(types), _split(graphs))


@component(
    "bm25-nodes",
    summary="nodes of graphs by the words of their text and relations (Okapi BM25)",
    traits=["ranks-nodes"],
)
class NodeWordRetriever(NodeRetriever):
    """Nodes of graphs by :class:`NodeBM25`: STaRK's baseline BM25."""

    __slots__ = ()

    @classmethod
    def build(
        cls, snapshot: Snapshot, graphs: str = "", types: str = "", k1: float = 1.2, b: float = 0.75
    ) -> NodeWordRetriever:
        """Return the retriever over graphs and types by name, ``a|b`` for several; "" for all that may answer."""

        def ranking(texts: NodeTexts) -> NodeRanker:
            return NodeBM25(texts, k1, b)

        return cls(snapshot, "bm25-nodes", ranking, _split(types), _split(graphs))


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split("|") if name.strip())
