"""Rank the nodes of graphs by their texts: the baselines of STaRK (Wu et al., NeurIPS 2024, Section 4; 4StepFocus,
Boer et al., 2024, Section 2).

A question has only the nodes embedded that it needs. :class:`NodeVectorSearch` ranks some nodes of one graph, or all.
Where they are more than ``cap`` and some node that may answer has no vector yet, only the ``cap`` best by words are
embedded and ranked; the trail says so. The result then depends on the question and the graph alone, and not on the
questions that were asked before. ``clew graph encode`` embeds all nodes, and from then on all are ranked.

The document of a node (:class:`NodeTexts`) is written as STaRK does (Wu et al., Section 2 and Appendix;
``get_doc_info`` with relations): name, type, properties, text, and its relations with the names of the nodes at their
other ends. There are two deviations. One form serves every graph, instead of one for each benchmark. Of a relation
with many ends the first by id are named and the others counted, where STaRK draws some at random, so that a node
always has the same text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from clew.core.arrays import Floats, Rows, Vectors, cosines, sorted_unique, union
from clew.core.component import component
from clew.core.errors import unknown_name_error
from clew.core.protocols import Encoder, Postings, PropertyGraph, Snapshot, Trail
from clew.core.text import count_terms
from clew.core.trail import NodeCounts, RankNodesStep, TrailRecorder
from clew.core.types import ENTITY, Entity, Hit, Node, Question
from clew.retrieve.lexical import QueryTerms, TermSum, lucene_idf
from clew.retrieve.ranking import DECIMALS

#: Raise it when documents or chunks are written differently: stored vectors and words are then made again.
VERSION = 1
#: In a graph with more relations, the relations of the given nodes are looked up first.
MANY_RELATIONS = 64
#: At most this many names of nodes are remembered.
_MAX_NAMES = 200_000


@dataclass(frozen=True, slots=True)
class NodeTexts:
    """Writes the texts of the nodes of one graph.

    At most ``ends_per_relation`` other ends of a relation are named. A document has at most ``characters``, of which
    the relations get at least a third where the text is too long. A chunk has at most ``chunk_size`` characters.
    """

    graph: PropertyGraph
    ends_per_relation: int = 10
    characters: int = 6000
    chunk_size: int = 400
    _names: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def document_name(self) -> str:
        """The name under which vectors and words computed from the documents are stored."""
        return f"document/{VERSION} {self.ends_per_relation} {self.characters}"

    @property
    def chunk_name(self) -> str:
        """The name under which the vectors of chunks are stored."""
        return f"chunks/{VERSION} {self.ends_per_relation} {self.characters} {self.chunk_size}"

    def documents(self, rows: Rows) -> list[str]:
        """Return the document of each node."""
        return [
            join_document(description, relations, self.characters)
            for description, relations in zip(*self._parts(rows), strict=True)
        ]

    def single_texts(self, rows: Rows) -> list[list[str]]:
        """Return the document of each node in a list of its own, as :class:`clew.core.protocols.NodeVectors` takes
        the texts of nodes."""
        return [[document] for document in self.documents(rows)]

    def chunks(self, rows: Rows) -> list[list[str]]:
        """Return the chunks of each node's document, each after the node's name.

        A chunk never mixes what describes the node with its relations.
        """
        entities = self.graph.entities(rows)
        return [
            [
                f"{entity.name}: {piece}"
                for part in (description, relations)
                for piece in split_text(
                    part[: self.characters], max(self.chunk_size - len(entity.name) - 2, 1)
                )
            ]
            for entity, description, relations in zip(entities, *self._parts(rows, entities), strict=True)
        ]

    @property
    def field_name(self) -> str:
        """The name under which the vectors of fields are stored."""
        return f"fields/{VERSION} {self.ends_per_relation} {self.chunk_size}"

    def fields(self, rows: Rows) -> list[dict[str, str]]:
        """Return the fields of each node with their texts, cut at ``chunk_size`` characters.

        They are its name with aliases, its types, each property, its text, and each relation with the names of the
        other ends.
        """
        entities = self.graph.entities(rows)
        fields = []
        for entity, lines in zip(
            entities, self._relation_lines(np.asarray(rows, dtype=np.int64)), strict=True
        ):
            described = describe_fields(entity)
            described |= {name: ends for name, _, ends in (line.partition(": ") for line in lines)}
            fields.append({name: text[: self.chunk_size] for name, text in described.items() if text})
        return fields

    def field_texts(self, rows: Rows) -> list[list[str]]:
        """Return the fields of each node as texts, in the order of :meth:`fields`."""
        return [[f"{name}: {text}" for name, text in of_node.items()] for of_node in self.fields(rows)]

    def _parts(self, rows: Rows, entities: Sequence[Entity] | None = None) -> tuple[list[str], list[str]]:
        """Return for each node its description, and the text of its relations."""
        rows = np.asarray(rows, dtype=np.int64)
        if entities is None:
            entities = self.graph.entities(rows)
        return [describe_entity(entity) for entity in entities], [
            "\n".join(lines) and "relations:\n" + "\n".join(lines) for lines in self._relation_lines(rows)
        ]

    def _relation_lines(self, rows: Rows) -> list[list[str]]:
        """Return a line for each relation of each node; those with the node as their head come first."""
        relations: Sequence[str] = list(self.graph.relations())
        if len(relations) > MANY_RELATIONS:
            relations = self.graph.relations_at(rows)
        # For each node: the words for the relation, the first ends, and the number of all ends.
        lines: list[list[tuple[str, list[int], int]]] = [[] for _ in range(len(rows))]
        all_ends: set[int] = set()
        for relation in relations:
            forward, backward = (
                _first_ends(*self.graph.neighbours(rows, relation, inverse), self.ends_per_relation)
                for inverse in (False, True)
            )
            for place, (tails, heads) in enumerate(zip(forward, backward, strict=True)):
                # A relation that is stored in both directions, as undirected ones are, is written once.
                for words, (ends, count) in (
                    (relation, tails),
                    (f"{relation} of", heads if heads != tails else ([], 0)),
                ):
                    if ends:
                        lines[place].append((words, ends, count))
                        all_ends.update(ends)
        names = self._node_names(all_ends)
        return [
            [
                f"{words}: {', '.join(names[end] for end in ends)}"
                + (f" and {count - len(ends):,} more" if count > len(ends) else "")
                for words, ends, count in sorted(node_lines, key=lambda line: line[0].endswith(" of"))
            ]
            for node_lines in lines
        ]

    def _node_names(self, rows: set[int]) -> dict[int, str]:
        # Copied at once: threads share the remembered names.
        known = {row: name for row in rows if (name := self._names.get(row)) is not None}
        missing = np.array(sorted(rows - known.keys()), dtype=np.int64)
        entities = self.graph.entities(missing)
        new = {row: entity.name for row, entity in zip(missing.tolist(), entities, strict=True)}
        if len(self._names) + len(new) > _MAX_NAMES:
            self._names.clear()
        self._names.update(new)
        return known | new


def node_texts(snapshot: Snapshot, graph: PropertyGraph) -> NodeTexts:
    """Return the writer of a graph's node texts; the same object for one snapshot."""
    texts: NodeTexts = snapshot.memoize(f"node texts/{graph.name}", lambda: NodeTexts(graph))
    return texts


def _first_ends(offsets: Rows, ends: Rows, limit: int) -> Iterator[tuple[list[int], int]]:
    """Yield the first ends of each row, at most ``limit``, and the number of all."""
    for start, end in pairwise(offsets.tolist()):
        yield ends[start : min(end, start + limit)].tolist(), end - start


def describe_entity(entity: Entity) -> str:
    """Return the description of a node without its relations: name, aliases, types, properties and text, a line
    each."""
    types = ", ".join(type for type in (entity.type, *entity.more_types) if type)
    lines = [f"name: {entity.name}"]
    if entity.aliases:
        lines.append(f"also: {'; '.join(entity.aliases)}")
    if types:
        lines.append(f"type: {types}")
    lines += [f"{key}: {value}" for key, value in _property_texts(entity).items()]
    if entity.text:
        lines.append(entity.text)
    return "\n".join(lines)


def describe_fields(entity: Entity) -> dict[str, str]:
    """Return the fields of a node without its relations, by name; no property is called like another field."""
    types = ", ".join(type for type in (entity.type, *entity.more_types) if type)
    own = {"name": "; ".join((entity.name, *entity.aliases)), "type": types, "text": entity.text}
    return _property_texts(entity) | {name: text for name, text in own.items() if text}


def _property_texts(entity: Entity) -> dict[str, str]:
    return {
        key: "; ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        for key, value in sorted(entity.properties.items())
    }


def join_document(description: str, relations: str, characters: int) -> str:
    """Return a document of at most ``characters``.

    Where it is too long, the end of the description is cut first, until the relations have a third of the space.
    """
    if not relations:
        return description[:characters]
    room = max(characters - len(relations) - 1, characters * 2 // 3)
    return f"{description[:room].rstrip()}\n{relations}"[:characters]


def split_text(text: str, size: int) -> list[str]:
    """Return a text in chunks of at most ``size`` characters, with as many whole lines as fit; a longer line is cut
    between words."""
    chunks: list[str] = []
    for line in text.splitlines():
        for part in _cut_line(line, size):
            if chunks and len(chunks[-1]) + 1 + len(part) <= size:
                chunks[-1] += f"\n{part}"
            else:
                chunks.append(part)
    return chunks


def _cut_line(line: str, size: int) -> Iterator[str]:
    while len(line) > size:
        space = line.rfind(" ", 0, size + 1)
        end = space if space > 0 else size
        yield line[:end].rstrip()
        line = line[end:].lstrip()
    if line:
        yield line


#: At most this many nodes are embedded for one question.
EMBEDDING_CAP = 500
#: The words of a graph up to this size are counted when they are first needed. Those of a larger one are counted by
#: ``clew graph encode``; until then the texts of some candidates are read.
COUNT_LIMIT = 100_000
#: In a graph whose words are not counted, the texts of at most this many candidates are read.
READING_LIMIT = 5_000
#: A node is scored by this many of its chunks, those most like the question (STaRK: ``top3_avg``).
TOP_CHUNKS = 3


def node_hit(graph: str, entity: Entity, text: str, score: float) -> Hit:
    """Return a node of a graph as a hit: its text is ``text``, its document the graph."""
    node = Node(entity.id, ENTITY, text, graph, graph, 0, None, entity.name, 0, None, (), (0, len(text)))
    return Hit(node, score, (entity.id,))


@dataclass(frozen=True, slots=True)
class RankedRows:
    """Rows of a graph, best first, with their scores; ``counts`` says in the trail how many were looked at."""

    rows: Rows
    scores: Floats
    counts: NodeCounts | None = None


class NodeRanker(Protocol):
    """Ranks nodes of one graph."""

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of ``among`` (None: of all nodes), best first, ties by id."""


@dataclass(frozen=True, slots=True)
class NodeBM25:
    """BM25 over the documents of nodes (the formula of :class:`clew.retrieve.lexical.BM25`).

    The words of a graph are counted once and stored beside it.
    """

    texts: NodeTexts
    k1: float = 1.2
    b: float = 0.75

    def postings(self, make: bool = True) -> Postings | None:
        """Return the counted words of every node.

        Where they are not counted yet, they are counted now with ``make``, else None is returned.
        """
        return self.texts.graph.node_postings(
            self.texts.document_name, self.texts.single_texts if make else None
        )

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of the nodes that share a word with the query."""
        postings = self.postings()
        assert postings is not None
        return self.rank_by_postings(postings, query, k, among)

    def rank_by_postings(self, postings: Postings, query: str, k: int, among: Rows | None) -> RankedRows:
        """Return the ``k`` best of ``among`` that share a word with the query, by counted words."""
        terms = QueryTerms.from_text(query)
        weights = terms.counts * lucene_idf(postings, terms.hashes) * (self.k1 + 1)
        flat, slope = self.k1 * (1 - self.b), self.k1 * self.b / (postings.average_length or 1.0)

        def gain(rows: Rows, counts: Any) -> Floats:
            saturated: Floats = counts / (counts + flat + slope * postings.lengths(rows))
            return saturated

        size = self.texts.graph.size
        term_sum = TermSum(postings, terms.hashes, weights, gain, size)
        if among is None:
            count, scores = size, term_sum.for_all_rows()
            rows = np.flatnonzero(scores)
        else:
            rows = sorted_unique(among)
            count, scores = len(rows), np.zeros(size)
            scores[rows] = (
                term_sum.for_rows(rows) if term_sum.is_cheap_for(rows) else term_sum.for_all_rows()[rows]
            )
            rows = rows[scores[rows] > 0]
        return top_rows(rows, scores[rows], k, NodeCounts(count, len(rows)))

    def rank_by_reading(self, query: str, k: int, rows: Rows) -> RankedRows:
        """Return the ``k`` best of ``rows``, ascending, that share a word with the query, by reading their documents.

        It is BM25 with the statistics of ``rows`` alone.
        """
        scores = _bm25_of_texts(query, self.texts.documents(rows), self.k1, self.b)
        sharing = scores > 0
        return top_rows(rows[sharing], scores[sharing], k, NodeCounts(len(rows), int(sharing.sum())))


@dataclass(frozen=True, slots=True)
class NodeVectorSearch:
    """Vector similarity search over the documents of the nodes of one graph (``vss``).

    At most ``cap`` nodes are embedded for one question. ``count_limit`` is the size up to which a graph's words are
    counted to choose them.
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
        allowed = None
        if len(rows) < size:
            if len(rows) <= self.cap:
                return top_rows(rows, cosines(vectors.vectors(rows)[1], vector), k, counts)
            allowed = np.zeros(size, dtype=np.bool_)
            allowed[rows] = True
        best, scores = vectors.search(vector, k, allowed)
        return RankedRows(best, scores, counts)

    def prepare_rows(self, query: str, among: Rows | None = None) -> tuple[Rows, NodeCounts]:
        """Return the rows that can be ranked, after their vectors were made, and what that took for the trail."""
        graph, started = self.texts.graph, time.perf_counter()
        rows = np.arange(graph.size) if among is None else sorted_unique(among)
        vectors = graph.node_vectors(self.encoder, self.texts.document_name)
        counts = NodeCounts(len(rows))
        # Looks at all nodes that may answer, not at ``rows``: what other questions had embedded must change nothing.
        if len(rows) > self.cap and len(vectors.rows_without_vectors(answer_rows(graph))) > 0:
            missing = len(vectors.rows_without_vectors(rows))
            rows, looked_at = self._choose_rows(query, rows, among is None)
            hint = f"clew graph encode {graph.name}"
            counts = replace(counts, without_a_vector=missing, looked_at=looked_at, hint=hint)
        if embedded := vectors.encode_missing(rows, self.texts.single_texts):
            seconds = round(time.perf_counter() - started, 3)
            counts = replace(counts, embedded=embedded, embedding_seconds=seconds)
        return rows, counts

    def _choose_rows(self, query: str, rows: Rows, is_whole_graph: bool) -> tuple[Rows, str]:
        """Return ``cap`` nodes to embed, ascending, and in words how they were chosen."""
        words = NodeBM25(self.texts)
        postings = words.postings(make=self.texts.graph.size <= self.count_limit)
        pool = ""
        if postings is not None:
            best = words.rank_by_postings(postings, query, self.cap, None if is_whole_graph else rows).rows
        else:
            best = words.rank_by_reading(query, self.cap, rows[:READING_LIMIT]).rows
            if len(rows) > READING_LIMIT:
                pool = f" of the first {READING_LIMIT:,} by id"
        others = rows[: self.cap + len(best)]
        others = others[~np.isin(others, best)][: self.cap - len(best)]
        how = [f"the best {len(best):,} by words{pool}"] if len(best) else []
        if len(others):
            how.append(f"the first {len(others):,} {'of the others ' if how else ''}by id")
        return np.sort(np.concatenate([best, others])), ", ".join(how)


@dataclass(frozen=True, slots=True)
class NodeChunkSearch:
    """Multi-vector search (``multi-vss``): nodes by the vectors of the chunks of their text and relations.

    Of the ``first`` nodes that :class:`NodeVectorSearch` returns, each chunk is embedded on its own. A node's score
    is the mean cosine of the ``top`` chunks most like the question (1: the best chunk alone). As in STaRK's code,
    chunks of nodes that the plain search does not return are never made.
    """

    search: NodeVectorSearch
    first: int = 50
    top: int = TOP_CHUNKS

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of ``among`` (None: of all nodes), best first, ties by id."""
        texts, encoder = self.search.texts, self.search.encoder
        candidates = self.search.rank(query, max(k, self.first), among)
        rows = np.sort(candidates.rows)
        chunks = texts.graph.node_vectors(encoder, texts.chunk_name)
        embedded = chunks.encode_missing(rows, texts.chunks)
        offsets, vectors = chunks.vectors(rows)
        scores = mean_of_top(offsets, vectors, encoder.encode([query], query=True)[0], self.top)
        counts = candidates.counts or NodeCounts(len(rows))
        counts = replace(counts, chunks=len(vectors), embedded_in_chunks=embedded)
        return top_rows(rows, scores, k, counts)


#: The weights of fields, of :class:`FieldWeights`: printed by ``python benchmarks/focus_variants.py fields``.
FIELD_SHARPNESS, LEXICAL_BIAS = 10.0, -1.0
#: Scores of a field that deviate less are all the same: vectors are rounded.
SAME = 1e-4


@dataclass(frozen=True, slots=True)
class FieldWeights:
    """G(q, f, m) of mFAR: the weight of the score of a field f by a scorer m for a question q.

    It is the softmax over all fields and both scorers of ``sharpness`` times the cosine of the question and the name
    of the field, plus ``lexical_bias`` where words score.
    """

    sharpness: float = FIELD_SHARPNESS
    lexical_bias: float = LEXICAL_BIAS

    def __call__(self, likeness: Floats) -> Floats:
        """Return the weights of the fields, dense and lexical, (2, fields), by their cosines, (fields,)."""
        logits = self.sharpness * np.vstack([likeness, likeness])
        logits[1] += self.lexical_bias
        weights: Floats = np.exp(logits - logits.max())
        weights /= weights.sum()
        return weights


@dataclass(frozen=True, slots=True)
class NodeFieldSearch:
    """Nodes by the scores of their fields, by vector and by words, weighted for the question.

    Source: mFAR (Li et al., "Multi-field adaptive retrieval", ICLR 2025), ``s(q, d) = sum over f and m of
    G(q, f, m) s_m(q, d_f)``. Followed: documents as named fields, a dense and a lexical scorer for each, scores
    that are normalised, weights by a softmax that the question conditions, rescoring of what a first search returns.
    Different: mFAR learns a vector for each field and scorer, and the encoder with them, on questions of the same
    knowledge base; here the name of the field takes the place of the learned vector (:class:`FieldWeights`), so that
    any graph can be asked. Scores are standardised over the candidates where mFAR learns a batch normalisation. The
    first search is that by whole documents; candidates beyond its ``first`` keep its order below the others.
    """

    search: NodeVectorSearch
    first: int = 50
    weights: FieldWeights = field(default_factory=FieldWeights)

    def rank(self, query: str, k: int, among: Rows | None = None) -> RankedRows:
        """Return the ``k`` best of ``among`` (None: of all nodes), best first, ties by id.

        Scores are from 0 to 1, and below 0 beyond ``first``.
        """
        candidates = self.search.rank(query, max(k, self.first), among)
        rows = np.sort(candidates.rows[: self.first])
        names, scores, embedded = self.score_fields(query, rows)
        rest = slice(self.first, None)
        combined = np.einsum("mf,mfn->n", self.weights(names), scores)
        counts = replace(candidates.counts or NodeCounts(len(rows)), embedded_in_chunks=embedded)
        all_rows = np.concatenate([rows, candidates.rows[rest]])
        all_scores = np.concatenate([1 / (1 + np.exp(-combined)), candidates.scores[rest] - 2])
        order = np.argsort(all_rows)
        return top_rows(all_rows[order], all_scores[order], k, counts)

    def score_fields(self, query: str, rows: Rows) -> tuple[Floats, Floats, int]:
        """Return the likeness of the question and each field's name, (fields,), the standardised scores of ``rows``,
        ascending, dense and lexical, (2, fields, rows), and how many nodes were embedded."""
        texts, encoder = self.search.texts, self.search.encoder
        vectors_of = texts.graph.node_vectors(encoder, texts.field_name)
        embedded = vectors_of.encode_missing(rows, texts.field_texts)
        vectors = vectors_of.vectors(rows)[1]
        fields = texts.fields(rows)
        names = list(dict.fromkeys(name for of_node in fields for name in of_node))
        place = {name: number for number, name in enumerate(names)}
        owners = np.repeat(np.arange(len(rows)), [len(of_node) for of_node in fields])
        columns = np.array([place[name] for of_node in fields for name in of_node], dtype=np.int64)
        vector = encoder.encode([query], query=True)[0]
        scores = np.full((2, len(names), len(rows)), np.nan)
        scores[0, columns, owners] = cosines(vectors, vector) if len(columns) else []
        scores[1] = 0.0
        field_texts = [text for of_node in fields for text in of_node.values()]
        for column in range(len(names)):
            cells = np.flatnonzero(columns == column)
            scores[1, column, owners[cells]] = _bm25_of_texts(
                query, [field_texts[cell] for cell in cells.tolist()]
            )
        name_vectors = (
            encoder.encode([name.replace("_", " ") for name in names]) if names else np.empty((0, 1))
        )
        likeness: Floats = np.asarray(name_vectors @ vector, dtype=np.float64) if names else np.empty(0)
        return likeness, _standardise(scores), embedded


def _bm25_of_texts(query: str, texts: Sequence[str], k1: float = 1.2, b: float = 0.75) -> Floats:
    """Return the BM25 scores of texts, with the statistics of these texts alone, (n,)."""
    terms = QueryTerms.from_text(query)
    term_counts = [count_terms(text) for text in texts]
    lengths = np.array([sum(counts.values()) for counts in term_counts], dtype=np.float64)
    counts = np.array(
        [[counts.get(term, 0) for term in terms.hashes.tolist()] for counts in term_counts], dtype=np.float64
    ).reshape(len(texts), -1)
    frequency = (counts > 0).sum(axis=0)
    weights = terms.counts * np.log1p((len(texts) - frequency + 0.5) / (frequency + 0.5)) * (k1 + 1)
    norms = k1 * (1 - b + b * lengths / (lengths.mean() or 1.0))
    scores: Floats = (counts / (counts + norms[:, None]) * weights).sum(axis=1)
    return scores


def _standardise(scores: Floats) -> Floats:
    """Return scores with mean 0 and deviation 1 over the last axis; a missing score (NaN) is the lowest there."""
    lowest = np.nanmin(scores, axis=-1, keepdims=True, initial=np.inf)
    filled = np.where(np.isnan(scores), lowest, scores)
    deviation = filled.std(axis=-1, keepdims=True)
    standardised: Floats = (filled - filled.mean(axis=-1, keepdims=True)) / np.where(
        deviation > SAME, deviation, 1.0
    )
    return standardised


def mean_of_top(offsets: Rows, vectors: Vectors, query: Vectors, top: int) -> Floats:
    """Return for each of ``n`` nodes the mean cosine of its ``top`` vectors most like the query, (n,).

    The vectors of node ``i`` are ``vectors[offsets[i]:offsets[i + 1]]``.
    """
    scores = cosines(vectors, query)
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-scores, owner))
    place = np.arange(len(order)) - offsets[owner[order]]
    best = order[place < top]
    sums = np.bincount(owner[best], scores[best], len(offsets) - 1)
    means: Floats = sums / np.maximum(np.bincount(owner[best], minlength=len(offsets) - 1), 1)
    return means


def top_rows(rows: Rows, scores: Floats, k: int, counts: NodeCounts | None = None) -> RankedRows:
    """Return the ``k`` best of ``rows`` (ascending) by rounded scores, ties by row, that is, by id."""
    scores = scores.round(DECIMALS) + 0.0
    if k < len(rows):
        among_best = scores >= np.partition(scores, -k)[-k] if k > 0 else np.zeros(len(rows), dtype=np.bool_)
        rows, scores = rows[among_best], scores[among_best]
    order = np.lexsort((rows, -scores))[:k]
    return RankedRows(rows[order], scores[order], counts)


def rank_and_pad(
    ranker: NodeRanker,
    query: str,
    candidates: Rows,
    k_max: int,
    among: Rows | None = None,
    pad_ranker: NodeRanker | None = None,
) -> tuple[RankedRows, RankedRows]:
    """Return the candidates, best first, and the nodes that pad a list shorter than ``k_max``.

    The padding is the next best of ``among`` (None: of all nodes) and belongs below the candidates (4StepFocus,
    Algorithm 1, line 3, and Section 3). Where there are more candidates than ``ranker`` looks at, only the best of
    those are returned, and the counts say so. ``pad_ranker`` ranks the padding of a list with candidates; by default
    ``ranker`` does.
    """
    candidates = sorted_unique(candidates)
    empty = RankedRows(candidates[:0], np.empty(0))
    ranked = ranker.rank(query, len(candidates), candidates) if len(candidates) else empty
    if len(candidates) >= k_max:
        return ranked, empty
    if pad_ranker is None or not len(candidates):
        pad_ranker = ranker
    if among is None:
        # Fewer than k_max of the best k_max are candidates, so enough others are left.
        best = pad_ranker.rank(query, k_max)
        is_new = ~np.isin(best.rows, candidates)
        padding = RankedRows(best.rows[is_new], best.scores[is_new], best.counts)
    else:
        padding = pad_ranker.rank(query, k_max, among[~np.isin(among, candidates)])
    room = k_max - len(candidates)
    return ranked, RankedRows(padding.rows[:room], padding.scores[:room], padding.counts)


#: Returns the ranker of the graph whose node texts it is given.
RankerFactory = Callable[[NodeTexts], NodeRanker]


@dataclass(frozen=True, slots=True)
class NodeRetriever:
    """Ranks the nodes of the graphs in a question's scope; hits are of kind ``entity``.

    ``ranking`` returns the ranker of a graph. ``types`` restricts the nodes to those types; without it the question's
    kinds do, else the types that the graph declares as answers. ``graphs`` names the graphs to search; empty means
    all. Mounted graphs are skipped, since their nodes have no texts here, and a step says so.
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
        """Return the same; a step per graph goes to ``trail`` and says how many nodes were looked at."""
        best: list[Hit] = []
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
            best += hits
        return sorted(best, key=lambda hit: (-hit.score, hit.node.id))[:k]

    def allowed_rows(self, graph: PropertyGraph, question: Question) -> Rows | None:
        """Return the rows that may answer, ascending; None for all."""
        return answer_rows(graph, self.types or tuple(sorted(question.scope.kinds or ())))


def answer_rows(graph: PropertyGraph, types: Sequence[str] = ()) -> Rows | None:
    """Return the rows of ``types``, else of the types that the graph declares as answers, ascending; None for all.

    Raises UsageError for a type that the graph does not have.
    """
    types = types or graph.answer_types()
    if not types:
        return None
    known = graph.types()
    for type in types:
        if type not in known:
            raise unknown_name_error(
                f"type of nodes in the graph '{graph.name}'", type, known or {"(none)": 0}
            )
    return union([graph.rows_of_type(type) for type in types])


def answer_rows_or_all(graph: PropertyGraph) -> Rows:
    """Return the rows of the types that the graph declares as answers, ascending; all rows where it declares none."""
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
    "fields",
    summary="nodes of graphs by the vectors and words of their fields, weighted by the question, as mFAR has them "
    "(needs an encoder)",
    paper="Li et al., ICLR 2025",
    traits=["ranks-nodes", "embeds-nodes"],
)
class NodeFieldRetriever(NodeRetriever):
    """Nodes of graphs by :class:`NodeFieldSearch`."""

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
    ) -> NodeFieldRetriever:
        """Return the retriever over graphs and types by name, ``a|b`` for several; "" for all that may answer."""

        def ranking(texts: NodeTexts) -> NodeRanker:
            return NodeFieldSearch(NodeVectorSearch(encoder, texts, cap), first)

        return cls(snapshot, "fields", ranking, _split(types), _split(graphs))


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
