"""What all passage graphs are built from: the rows of passages, their texts and terms, and the incidence of rows and
keys; also the union of graphs, and the statistics of any.

Two passages are neighbours when they share a key (a keyword, a name, an entity). Written out, that is a quadratic
number of edges. As an incidence matrix and its transpose it takes one number per passage and key, and a neighbourhood
is two steps through it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Hashes, Rows, distinct, find_positions, is_member, run_offsets
from clew.core.component import component
from clew.core.errors import UsageError
from clew.core.languages import ENGLISH
from clew.core.mentions import FOOTNOTE, INITIAL, LABEL_MASK, NAME, linking_names, mentions
from clew.core.protocols import Graph, Snapshot
from clew.core.text import STOPWORDS, add_headings, hash_term, index_terms, title_names
from clew.core.types import KINDS, RETRIEVED_KINDS, Node, ParsedNode, Scope

#: Fewer numbers than this are made distinct by sorting, which is then faster than a mask over all rows.
_SORT_BELOW = 1 << 11


@dataclass(frozen=True, slots=True)
class Incidence:
    """A sparse 0/1 matrix of rows by keys, compressed both ways.

    ``keys`` are the 64-bit names of the keys, ascending; a key's *slot* is its index there. ``row_starts``
    (size + 1) and ``row_slots`` hold the slots of each row, ascending; ``key_starts`` and ``key_rows`` the
    rows of each slot, ascending.
    """

    keys: Hashes
    row_starts: NDArray[np.int64]
    row_slots: NDArray[np.int32]
    key_starts: NDArray[np.int64]
    key_rows: NDArray[np.int32]

    @classmethod
    def from_pairs(
        cls, keys: Hashes, rows: NDArray[np.int32], slots: NDArray[np.int32], size: int
    ) -> Incidence:
        """Return the incidence of distinct (row, slot) pairs in any order; ``size`` is the number of rows."""
        if not _is_ascending(rows, slots):
            rows, slots = _sort_pairs(rows, slots)
        _, by_key = _sort_pairs(slots, rows)
        return cls(
            keys,
            run_offsets(np.bincount(rows, minlength=size)),
            slots,
            run_offsets(np.bincount(slots, minlength=len(keys))),
            by_key,
        )

    @property
    def size(self) -> int:
        """Number of rows, those without a key included."""
        return len(self.row_starts) - 1

    def slots_of(self, row: int) -> NDArray[np.int32]:
        """Return the slots of a row's keys, ascending."""
        return self.row_slots[self.row_starts[row] : self.row_starts[row + 1]]

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows of each slot."""
        return np.diff(self.key_starts)

    def rows_with(self, slots: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Return the rows of each slot."""
        starts, ends = self.key_starts[slots].tolist(), self.key_starts[slots + 1].tolist()
        return [self.key_rows[start:end] for start, end in zip(starts, ends, strict=True)]

    def shared_slots(self, source: int, target: int) -> NDArray[np.int32]:
        """Return the slots that two rows have in common, ascending."""
        return np.intersect1d(self.slots_of(source), self.slots_of(target), assume_unique=True)

    def select_keys(self, selected: NDArray[np.bool_]) -> Incidence:
        """Return the same with only the keys that ``selected`` marks, (number of keys,)."""
        renumbered = np.cumsum(selected, dtype=np.int32) - np.int32(1)
        pairs = selected[self.row_slots]
        rows = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.row_starts))
        return Incidence.from_pairs(
            self.keys[selected], rows[pairs], renumbered[self.row_slots[pairs]], self.size
        )


def distinct_rows(parts: list[NDArray[np.int32]], size: int, excluded: int) -> Rows:
    """Return the distinct rows of ``parts``, ascending, as int64, without ``excluded``; all are below ``size``."""
    total = sum(map(len, parts))
    if total == 0:
        return np.empty(0, dtype=np.int64)
    joined = np.concatenate(parts)
    if total < _SORT_BELOW:
        return distinct(joined[joined != excluded]).astype(np.int64)
    is_row = np.zeros(size, dtype=np.bool_)
    is_row[joined] = True
    is_row[excluded] = False
    return np.flatnonzero(is_row)


def _sort_pairs(
    first: NDArray[np.int32], second: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return pairs of non-negative numbers in ascending order."""
    # Packed into one number per pair: sorting numbers is many times faster than sorting their order.
    packed = np.sort((first.astype(np.int64) << 32) | second)
    return (packed >> 32).astype(np.int32), (packed & 0xFFFFFFFF).astype(np.int32)


def _is_ascending(rows: NDArray[np.int32], slots: NDArray[np.int32]) -> bool:
    later, same = rows[1:] > rows[:-1], rows[1:] == rows[:-1]
    return bool(np.all(later | (same & (slots[1:] > slots[:-1]))))


#: Postings that are read at a time; bounds the memory of a construction, not its result.
_BLOCK = 1 << 20


def passage_rows(snapshot: Snapshot) -> Rows:
    """Return the live rows of the kinds whose text is searched, ascending."""
    return np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)).astype(np.int64)


#: The half-open range of rows of each document, by its first row.
Spans = dict[int, tuple[int, int]]


def document_spans(snapshot: Snapshot) -> Spans:
    """Return the half-open range of rows of each document, by its first row."""
    ranges = (snapshot.document_rows(document.key) for document in snapshot.documents())
    return {start: (start, end) for start, end in ranges}


def texts_with_headings(snapshot: Snapshot, rows: Rows) -> list[str]:
    """Return the texts of passages with the document's title and the headings above them in front.

    It is what an encoder reads of a passage.
    """
    documents = snapshot.nodes(snapshot.column("document")[rows])
    return [
        add_headings(document.name, node.headings, node.text)
        for document, node in zip(documents, snapshot.nodes(rows), strict=True)
    ]


def passage_blocks(snapshot: Snapshot, field: str) -> Iterator[Rows]:
    """Yield the rows of whole documents, ascending, with about a million postings of ``field`` at a time."""
    rows = passage_rows(snapshot)
    if not len(rows):
        return
    document = snapshot.column("document")[rows]
    first = np.flatnonzero(np.r_[True, document[1:] != document[:-1]])
    postings = np.add.reduceat(snapshot.postings(field).lengths(rows), first)
    block = np.cumsum(postings) // _BLOCK
    cuts = first[np.r_[False, block[1:] != block[:-1]]]
    yield from np.split(rows, cuts)


@dataclass(frozen=True, slots=True)
class PostingBlock:
    """The postings of some rows.

    ``vocabulary`` has their terms, ascending. The terms of the ``i``-th row are
    ``vocabulary[term_indices[starts[i]:starts[i + 1]]]``, and ``counts`` says how often each occurs in it.
    """

    rows: Rows
    starts: NDArray[np.int64]
    vocabulary: Hashes
    term_indices: NDArray[np.int32]
    counts: NDArray[np.int32]


def posting_blocks(snapshot: Snapshot, field: str) -> Iterator[PostingBlock]:
    """Yield the postings of all passages, whole documents at a time."""
    postings = snapshot.postings(field)
    for rows in passage_blocks(snapshot, field):
        starts, terms, counts = postings.term_matrix(rows)
        # As np.unique(return_inverse=True) does, but with a single sort.
        order = np.argsort(terms)
        ascending = terms[order]
        is_new = np.r_[ascending[:1] == ascending[:1], ascending[1:] != ascending[:-1]]
        term_indices = np.empty(len(terms), dtype=np.int32)
        term_indices[order] = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
        yield PostingBlock(rows, starts, ascending[is_new], term_indices, counts.astype(np.int32))


def build_incidence(blocks: Iterable[PostingBlock], keys: Hashes, size: int) -> Incidence:
    """Return the incidence of the rows of ``blocks`` and the ``keys`` (ascending) that they contain; ``size`` is the
    snapshot's."""
    row_parts: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    slot_parts: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    for block in blocks:
        slots = find_positions(keys, block.vocabulary).astype(np.int32)[block.term_indices]
        is_key = slots >= 0
        row_parts.append(np.repeat(block.rows.astype(np.int32), np.diff(block.starts))[is_key])
        slot_parts.append(slots[is_key])
    return Incidence.from_pairs(keys, np.concatenate(row_parts), np.concatenate(slot_parts), size)


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Pairs of a row and the label of something that it mentions (:mod:`clew.core.mentions`), in any order."""

    rows: NDArray[np.int64]
    labels: Hashes

    def select(self, selected: NDArray[np.bool_]) -> LabelledRows:
        """Return the pairs that ``selected`` marks."""
        return LabelledRows(self.rows[selected], self.labels[selected])


@dataclass(frozen=True, slots=True)
class MentionPairs:
    """All pairs of a row and a key of the field ``mention``; ``kinds`` and ``labels`` are the parts of the key."""

    rows: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    labels: Hashes

    def of_kinds(self, *kinds: int) -> LabelledRows:
        """Return the pairs of some kinds; of ``INITIAL`` names those that are a ``NAME`` or title elsewhere."""
        selected = np.isin(self.kinds, kinds)
        if INITIAL in kinds:
            is_initial = self.kinds == INITIAL
            names = distinct(self.labels[self.kinds == NAME])
            selected[is_initial] = is_member(self.labels[is_initial], names)
        return LabelledRows(self.rows[selected], self.labels[selected])


def mention_pairs(snapshot: Snapshot, kinds: Sequence[str]) -> MentionPairs:
    """Return what the live nodes of some kinds mention, of labels that two nodes share.

    A label that a single node has can join nothing, so it is left out; titles count as nodes. Footnotes stay in:
    what begins with one is no part of that number.
    """
    postings, column = snapshot.postings("mention"), snapshot.column("kind")
    keys, holders = postings.vocabulary()
    labels = keys & np.uint64(LABEL_MASK)
    unique = distinct(labels)
    slots = find_positions(unique, labels)
    shared = (np.bincount(slots, holders, len(unique)) > 1)[slots] | ((keys >> np.uint64(60)) == FOOTNOTE)
    known, is_name = keys[shared], (keys[shared] >> np.uint64(60)) == NAME
    names = known[is_name] & np.uint64(LABEL_MASK)
    initial = (known >> np.uint64(60)) == INITIAL
    is_known = np.ones(len(known), dtype=np.bool_)
    is_known[initial] = is_member(known[initial] & np.uint64(LABEL_MASK), distinct(names))
    known = known[is_known]
    rows = np.flatnonzero(np.isin(column, [KINDS.index(kind) for kind in kinds]))
    postings.prefetch(rows=rows)
    row_parts, key_parts = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    for part in np.array_split(rows, max(1, -(-len(rows) // _ROWS_AT_ONCE))):
        starts, terms, _ = postings.term_matrix(part)
        positions = find_positions(known, terms)
        row_parts.append(np.repeat(part, np.diff(starts))[positions >= 0])
        key_parts.append(terms[positions >= 0])
    all_keys = np.concatenate(key_parts)
    return MentionPairs(
        np.concatenate(row_parts),
        (all_keys >> np.uint64(60)).astype(np.uint8),
        all_keys & np.uint64(LABEL_MASK),
    )


#: Rows whose mentions are read at a time.
_ROWS_AT_ONCE = 100_000


def documents_by_title(snapshot: Snapshot) -> dict[int, list[str]]:
    """Return for the hash of each name of a title the keys of the documents with that title.

    A title's names are those of :func:`clew.core.text.title_names`; a function word alone is no name.
    """
    documents: dict[int, list[str]] = {}
    for document in snapshot.documents():
        for name in title_names(document.title):
            if name not in STOPWORDS:
                documents.setdefault(hash_term(name), []).append(document.key)
    return documents


def leading_passages(snapshot: Snapshot, count: int) -> dict[str, list[int]]:
    """Return the rows of the first ``count`` passages of each document, by document key."""
    rows = passage_rows(snapshot)
    leading = {}
    for document in snapshot.documents():
        start, end = np.searchsorted(rows, snapshot.document_rows(document.key))
        leading[document.key] = rows[start : min(end, start + count)].tolist()
    return leading


_WORD = re.compile(r"\w(?:[\w'’.,]*\w)?")


def surface_forms(
    text: str,
    words: Sequence[int],
    phrases: Sequence[int] = (),
    limit: int = 5,
    languages: Sequence[str] = (ENGLISH,),
) -> list[str]:
    """Return how ``text`` writes the terms and names with these hashes; at most ``limit``, phrases first.

    Each is returned once, as it first occurs, in the order of the text. A word of several terms (CJK) is returned
    whole only if the hashes of all its terms are given; otherwise the term alone is. ``languages`` are those that the
    text may be in.
    """
    term_hashes, name_hashes = frozenset(words), frozenset(phrases)
    forms: dict[int, str] = {}
    if name_hashes:
        forms = {number: name for number, name in _hashed_names(text).items() if number in name_hashes}
    for word in _WORD.findall(text) if term_hashes else ():
        for terms in dict.fromkeys(tuple(index_terms(word, language)) for language in languages):
            for number, term in ((hash_term(term), term) for term in terms):
                if number in term_hashes and number not in forms:
                    forms[number] = word if len(terms) == 1 else term
    return list(dict.fromkeys(forms.values()))[:limit]


# A walk asks for the names that join one passage to several others.
@lru_cache(maxsize=256)
def _hashed_names(text: str) -> dict[int, str]:
    names: dict[int, str] = {}
    for name, start, end, _ in linking_names(text):
        names.setdefault(hash_term(name), " ".join(text[start:end].split()))
    return names


def mention_forms(node: Node, caption: str) -> dict[int, str]:
    """Return how a passage or row writes what it mentions, by label; ``caption`` is that of a row's table."""
    return _mention_forms(node.kind, node.text, caption)


@lru_cache(maxsize=256)
def _mention_forms(kind: str, text: str, caption: str) -> dict[int, str]:
    forms: dict[int, str] = {}
    for _, label, form in mentions(ParsedNode(kind, text), caption):
        forms.setdefault(hash_term(label) & LABEL_MASK, " ".join(form.split()))
    return forms


@component(
    "union", summary="the edges of two to four graphs, such as union(a=mentions, b=structure, c=keywords)"
)
class UnionGraph:
    """Neighbours are the neighbours in any of the graphs."""

    @classmethod
    def build(cls, a: Graph, b: Graph, c: Graph | None = None, d: Graph | None = None) -> UnionGraph:
        """Return the union of the graphs that are given."""
        return cls([graph for graph in (a, b, c, d) if graph is not None])

    def __init__(self, graphs: Sequence[Graph]) -> None:
        if not graphs:
            raise UsageError("a union of no graphs", "Name at least one")
        self._graphs = tuple(graphs)
        lettered = zip(string.ascii_lowercase, self._graphs, strict=False)
        names = ", ".join(f"{letter}={graph.name}" for letter, graph in lettered)
        self.mutual = all(graph.mutual for graph in self._graphs)
        self.name = f"union({names})"

    def neighbours(self, row: int) -> Rows:
        """Return the rows that an edge of any graph joins to ``row``, ascending, without itself."""
        return distinct(np.concatenate([graph.neighbours(row) for graph in self._graphs]))

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return for each neighbour its strongest edge."""
        strongest = np.zeros(len(neighbours))
        for graph in self._graphs:
            joined = np.isin(neighbours, graph.neighbours(row))
            strongest[joined] = np.maximum(strongest[joined], graph.strengths(row, neighbours[joined]))
        return strongest

    def explain_edge(self, source: int, target: int) -> str:
        """Return what joins two rows in each graph with that edge (``mentions: Ohio; keywords: river``)."""
        reasons = [
            graph.explain_edge(source, target) for graph in self._graphs if target in graph.neighbours(source)
        ]
        return "; ".join(reason for reason in reasons if reason)


#: Up to this many passages, every neighbourhood is counted.
EXACT_BELOW = 5_000


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """The size and density of the graph named ``graph``.

    ``edges`` counts distinct undirected edges, and ``density`` is their share of all pairs of ``nodes``.
    ``mean_degree`` is the mean number of neighbours of a node, and ``isolated`` the number of nodes without any.
    ``sampled`` is the number of nodes whose neighbourhoods were counted; where it is less than ``nodes``, the other
    figures are estimates.
    """

    graph: str
    nodes: int
    edges: int
    density: float
    mean_degree: float
    isolated: int
    sampled: int


def compute_statistics(
    snapshot: Snapshot, graph: Graph, sample: int = 2_000, seed: int = 0
) -> GraphStatistics:
    """Count a graph's edges between passages and table rows, one neighbourhood at a time.

    The result is exact for at most :data:`EXACT_BELOW` nodes. Of more, ``sample`` nodes are drawn without replacement
    with ``seed`` and the count is scaled up. A directed edge (KNN) counts once: a pair counts a half for each end
    that has the other as its neighbour, and another half where only one end has.
    """
    rows = passage_rows(snapshot)
    count = len(rows)
    sampled = rows
    if count > EXACT_BELOW and sample < count:
        sampled = np.sort(np.random.default_rng(seed).choice(rows, sample, replace=False))
    if not len(sampled):
        return GraphStatistics(graph.name, 0, 0, 0.0, 0.0, 0, 0)
    is_node = np.zeros(snapshot.size, dtype=np.bool_)
    is_node[rows] = True
    degrees, ends, lonely = 0, 0, 0
    for row in sampled.tolist():
        near = graph.neighbours(row)
        near = near[is_node[near]]
        degrees += len(near)
        lonely += not len(near)
        # How many of the neighbours ``near`` do not have ``row`` as their neighbour.
        ends += len(near) + (
            0 if graph.mutual else sum(row not in graph.neighbours(int(other)) for other in near)
        )
    scale = count / len(sampled)
    edges, isolated = round(ends / 2 * scale), round(lonely * scale)
    pairs = count * (count - 1) / 2
    density = edges / pairs if pairs else 0.0
    return GraphStatistics(graph.name, count, edges, density, degrees / len(sampled), isolated, len(sampled))
