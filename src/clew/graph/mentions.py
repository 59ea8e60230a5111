"""The graph of what passages mention: names, defined terms, references, row labels, and the structure around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Hashes, Rows, distinct, find_positions, is_member, range_indices
from clew.core.component import INTERNAL, AtLeast, component
from clew.core.errors import UsageError, unknown_name_error
from clew.core.mentions import (
    ANCHOR,
    CELL,
    DEFINED,
    FOOTNOTE,
    HEADING,
    INITIAL,
    LABEL,
    LABEL_MASK,
    NAME,
    NOTED,
    REFERENCE,
    number_keys,
)
from clew.core.protocols import Snapshot
from clew.core.types import KINDS, PAGE, PASSAGE, ROW, SECTION, TABLE
from clew.graph.passages import (
    Incidence,
    LabelledRows,
    Spans,
    distinct_rows,
    document_spans,
    documents_by_title,
    leading_passages,
    mention_forms,
    mention_pairs,
    passage_rows,
)


@dataclass(frozen=True, slots=True)
class EdgeKind:
    """A kind of edge: how it is called in a trail, and its strength there and back.

    A key that more than ``limit`` passages contain makes no edges of this kind: what everything mentions joins
    nothing. None sets no limit; ``common`` of the graph takes the place of -1.
    """

    words: str
    forward: float
    back: float
    limit: int | None = -1


#: Strengths of 1, 0.7 and 0.5 (``title``, ``name``) were chosen by recall on the multi-hop sets (decision 6).
#: The others were measured on eight filings, and ``term``, ``reference``, ``citation`` and ``edition`` also on
#: licences (``benchmarks/edges.py``, docs/benchmarks/edges.md): the normalised lift ``ln(lift) / ln(1 / chance)`` of
#: the kind as a share of that of ``title``, squared, which gives the chosen ones to 0.1. ``footnote``, ``table`` and
#: ``next`` led to evidence no more often than chance and weigh nothing; ``page`` occurs too rarely to be measured and
#: weighs as much as ``reference``.
EDGE_KINDS = {
    "title": EdgeKind("mentions", 1.0, 0.7, None),
    "cell": EdgeKind("cell", 1.0, 0.7, 100),
    "name": EdgeKind("mentions", 0.5, 0.5),
    "own-name": EdgeKind("mentions", 0.25, 0.25),
    "term": EdgeKind("term", 0.25, 0.25),
    "reference": EdgeKind("reference", 0.3, 0.3),
    "citation": EdgeKind("reference", 0.2, 0.2),
    "page": EdgeKind("reference", 0.3, 0.3),
    "footnote": EdgeKind("footnote", 0.0, 0.0, None),
    "heading": EdgeKind("heading", 0.1, 0.1),
    "label": EdgeKind("row label", 0.4, 0.4),
    "edition": EdgeKind("other edition", 0.7, 0.7, None),
    "table": EdgeKind("structure: table on its page", 0.0, 0.0, None),
    "next": EdgeKind("structure: next to it", 0.0, 0.0, None),
    "container": EdgeKind("structure: one stands in the other", 0.0, 0.0, None),
}


@dataclass(frozen=True, slots=True)
class TypedEdges:
    """Rows that a row is joined to by one kind of edge. ``is_back``: the edge leads from them to the row."""

    kind: str
    is_back: bool
    rows: NDArray[np.int32]


@component(
    "mentions",
    summary="passages joined by names, defined terms, references, row labels and the tables on their pages",
)
class MentionGraph:
    """Neighbours are nodes that a passage (or table row) names or refers to, and those that mention the same.

    Edges are typed, and each kind has a strength of its own in each direction (:data:`EDGE_KINDS`):

    - ``title``: the passage names a document; the edge leads to the first ``leads`` passages of it, since a document
      begins with what it is about.
    - ``cell``: a cell of a table, or an item of a list in it, is the title of a document as a whole, however its
      words are written.
    - ``name``, ``own-name``: both contain a name that occurs in passages of two documents, or of this one alone.
    - ``term``: it uses a term that another passage of the document defines (``the "Hirer"``, ``net operating loss
      (NOL)``).
    - ``reference``, ``citation``, ``page``: it refers to a numbered part ("see Note 5", "Exhibit 10.3", "[12]",
      "page 41"); the edge leads to the first ``leads`` passages of that part, or to those of the page.
    - ``footnote``: the name of a row has a mark that a passage of the page begins with.
    - ``heading``: it names a section of its document in capitals or quotation marks.
    - ``label``: rows of the document with the same name, in another table or year.
    - ``edition``: rows with the same name, and sections with the same heading, in the edition before or after.
      Documents are editions of one another if their names differ in numbers alone.
    - ``container``: a node and the section and page that it stands in, and the tables on its page. The KGP paper
      joins pages to the passages and tables on them (Wang et al., AAAI 2024, Section 3).
    - ``table``, ``next``, only where they are named: a passage and the rows of the tables on its page; the passages
      before and after it.

    Names are those of :func:`clew.core.mentions.linking_names`: a number or a date joins nothing, and a word that
    only ever begins sentences is no name. A key in more than ``common`` passages makes no edges (except titles, which
    lead to few), so that a neighbourhood stays small however large the base is. ``kinds`` selects
    kinds.

    Nothing is stored but postings of keys by passage, so a removed document leaves nothing behind and a new title
    finds old passages. The paper's TAGME graph (Section 3) joins passages by the entities of Wikipedia; this one
    needs no service.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        common: Annotated[int, AtLeast(0)] = 5,
        leads: Annotated[int, AtLeast(0)] = 3,
        kinds: Annotated[Sequence[str] | None, INTERNAL] = None,
    ) -> None:
        if common < 0:
            raise UsageError(f"number of passages: {common}", "It must be 0 (titles alone) or more")
        if leads < 0:
            raise UsageError(f"number of leading passages: {leads}", "It must be 0 or more")
        for kind in kinds or ():
            if kind not in EDGE_KINDS:
                raise unknown_name_error("kind of edge", kind, EDGE_KINDS)
        self._snapshot = snapshot
        self.mutual = True
        self.name = f"mentions(common={common}, leads={leads})"
        measured = [
            name for name, kind in EDGE_KINDS.items() if kind.forward or kind.back or name == "container"
        ]
        self._kinds = tuple(measured if kinds is None else kinds)
        links: dict[str, Link] = snapshot.memoize(
            f"graph/mentions/{leads}/{common}",
            lambda: LinkBuilder(snapshot, leads, common).build(),
            documents_only=True,
        )
        self._links = {
            name: links[name].within(_limit(EDGE_KINDS[name], common))
            for name in self._kinds
            if name in links
        }
        self._tree = _Tree(snapshot)
        self._latest: tuple[int, Rows, Floats] | None = None

    def neighbours(self, row: int) -> Rows:
        """Return the rows joined to ``row``, ascending, without itself; sections, tables and pages are among them."""
        return self._edges(row)[0]

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return the strength of the strongest edge to each neighbour."""
        rows, strengths = self._edges(row)
        positions = np.searchsorted(rows, neighbours)
        positions[positions == len(rows)] = 0
        by_neighbour: Floats = strengths[positions] if len(rows) else np.zeros(len(neighbours))
        return by_neighbour

    def _edges(self, row: int) -> tuple[Rows, Floats]:
        # A walk asks for the neighbours and then for their strengths.
        if self._latest is None or self._latest[0] != row:
            parts = [
                (edges.rows, EDGE_KINDS[edges.kind].back if edges.is_back else EDGE_KINDS[edges.kind].forward)
                for edges in self.typed_edges(row)
            ]
            rows = distinct_rows([part for part, _ in parts], self._snapshot.size, row)
            strengths = np.zeros(len(rows))
            for part, strength in parts:
                places = np.searchsorted(rows, part[part != row])
                strengths[places] = np.maximum(strengths[places], strength)
            self._latest = row, rows, strengths
        return self._latest[1:]

    def typed_edges(self, row: int) -> list[TypedEdges]:
        """Return the edges of a row by kind and direction, in the order of :data:`EDGE_KINDS`; a row may repeat."""
        edges = []
        for kind in self._kinds:
            if kind not in self._links:
                edges.append(TypedEdges(kind, False, self._tree.joined_rows(kind, row).astype(np.int32)))
                continue
            sources, targets = self._links[kind].sources, self._links[kind].targets
            edges += [TypedEdges(kind, False, part) for part in targets.rows_with(sources.slots_of(row))]
            if sources is not targets:
                edges += [TypedEdges(kind, True, part) for part in sources.rows_with(targets.slots_of(row))]
        return [each for each in edges if len(each.rows)]

    def explain_edge(self, source: int, target: int) -> str:
        """Return what joins two rows, as their texts write it (``mentions: Alf Clausen; reference: Note 5``)."""
        reasons: dict[str, dict[str, str]] = {}
        for name in dict.fromkeys(each.kind for each in self.typed_edges(source) if target in each.rows):
            forms = reasons.setdefault(EDGE_KINDS[name].words, {})
            if name in self._links:
                shared = self._links[name].shared_labels(source, target)
                forms |= {form.casefold(): form for form in self._forms(source, target, shared)}
        return "; ".join(
            f"{words}: {', '.join(list(forms.values())[:5])}" if forms else words
            for words, forms in reasons.items()
            if forms or words.startswith("structure") or words == EDGE_KINDS["edition"].words
        )

    def _forms(self, source: int, target: int, labels: set[int]) -> list[str]:
        """Return how the target writes what joins it to the source; what it lacks, as the source writes it."""
        forms: dict[int, str] = {}
        # The target first: the source may only be about the name, and not contain it.
        for row in (target, source):
            if forms.keys() >= labels:
                break
            (node,) = self._snapshot.nodes(np.array([row], dtype=np.int64))
            parent = int(self._tree.parent[row])
            caption = ""
            if parent >= 0 and node.kind == ROW:
                caption = self._snapshot.nodes(np.array([parent]))[0].name
            for label, form in mention_forms(node, caption).items():
                if label in labels:
                    forms.setdefault(label, form)
        return list(forms.values())


def _localise(labels: Hashes, place: NDArray[np.int64]) -> Hashes:
    """Return keys that are equal where label and place are."""
    keys = (labels ^ (place.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(
        0xBF58476D1CE4E5B9
    )
    mixed: Hashes = keys ^ (keys >> np.uint64(31))
    return mixed


def _limit(kind: EdgeKind, common: int) -> int | None:
    return common if kind.limit == -1 else kind.limit


# Construction


@dataclass(frozen=True, slots=True)
class Link:
    """The edges of a kind: from every row of ``sources`` with a key to every row of ``targets`` with it.

    Both have the same keys; where they are one object, the edges join all rows with the key. ``labels`` has the label
    of each key (:func:`clew.core.mentions.name_label`).
    """

    sources: Incidence
    targets: Incidence
    labels: Hashes

    @classmethod
    def from_pairs(cls, sources: KeyedRows, targets: KeyedRows | None, labels: Hashes, size: int) -> Link:
        """Return the edges between rows with equal keys; ``labels`` has the label of each pair of the sources."""
        keys = distinct(sources.keys)
        if targets is not None:
            keys = keys[is_member(keys, distinct(targets.keys))]
        slots = find_positions(keys, sources.keys)
        label_of_key = np.empty(len(keys), dtype=np.uint64)
        label_of_key[slots[slots >= 0]] = labels[slots >= 0]
        incidence = _incidence(keys, sources.rows, slots, size)
        if targets is None:
            return cls(incidence, incidence, label_of_key)
        slots = find_positions(keys, targets.keys)
        return cls(incidence, _incidence(keys, targets.rows, slots, size), label_of_key)

    def within(self, limit: int | None) -> Link:
        """Return the edges of the keys that at most ``limit`` sources contain."""
        if limit is None:
            return self
        rare = self.sources.counts() <= limit
        sources = self.sources.select_keys(rare)
        targets = sources if self.targets is self.sources else self.targets.select_keys(rare)
        return Link(sources, targets, self.labels[rare])

    def shared_labels(self, source: int, target: int) -> set[int]:
        """Return the labels that join two rows, in either direction."""
        slots = [
            np.intersect1d(self.sources.slots_of(start), self.targets.slots_of(end))
            for start, end in ((source, target), (target, source))
        ]
        return set(self.labels[np.concatenate(slots)].tolist())


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Pairs of a row and a key, in any order."""

    rows: NDArray[np.int64]
    keys: Hashes


def _incidence(keys: Hashes, rows: NDArray[np.int64], slots: NDArray[np.int64], size: int) -> Incidence:
    """Return the incidence of pairs of a row and the slot of its key, in any order; of slot -1 none is made."""
    is_key = slots >= 0
    packed = distinct(rows[is_key] << 32 | slots[is_key])
    return Incidence.from_pairs(
        keys, (packed >> 32).astype(np.int32), (packed & 0xFFFFFFFF).astype(np.int32), size
    )


class LinkBuilder:
    """Builds the links of all kinds from the postings of a snapshot, in time linear in their number.

    Names in many more than ``common`` passages are left out; :meth:`Link.within` leaves out the rest.
    """

    def __init__(self, snapshot: Snapshot, leads: int, common: int) -> None:
        self._snapshot, self._leads, self._size = snapshot, leads, snapshot.size
        self._common = common
        self._document, self._page = snapshot.column("document"), snapshot.column("page")
        self._kind = snapshot.column("kind")
        self._passages = passage_rows(snapshot)

    def build(self) -> dict[str, Link]:
        """Return the links of each kind that is made of keys."""
        pairs = mention_pairs(self._snapshot, (SECTION, TABLE, PAGE, ROW, PASSAGE))
        names = pairs.of_kinds(NAME, INITIAL)
        links = self._name_links(names.rows, names.labels, pairs.of_kinds(CELL))
        local = {kind: pairs.of_kinds(kind) for kind in (DEFINED, REFERENCE, ANCHOR, LABEL, HEADING)}
        links["term"] = self._link(names, local[DEFINED], self._document)
        headings = local[HEADING].select(self._kind[local[HEADING].rows] == KINDS.index(SECTION))
        links["heading"] = self._link(names, self._expand(headings), self._document)
        notes = pairs.of_kinds(FOOTNOTE)
        self._add_references(links, local[REFERENCE], local[ANCHOR], notes)
        links["label"] = self._link(local[LABEL], None, self._document)
        on_page = self._document * (int(self._page.max(initial=0)) + 2) + self._page + 1
        links["footnote"] = self._link(pairs.of_kinds(NOTED), notes, on_page)
        links["edition"] = self._edition_link(local[LABEL], headings)
        return links

    def _name_links(self, rows: Rows, labels: Hashes, cells: LabelledRows) -> dict[str, Link]:
        titles = {name & LABEL_MASK: keys for name, keys in documents_by_title(self._snapshot).items()}
        first = leading_passages(self._snapshot, self._leads)
        leads = [(row, name) for name, documents in titles.items() for key in documents for row in first[key]]
        targets = LabelledRows(
            np.array([row for row, _ in leads], dtype=np.int64),
            np.array([name for _, name in leads], np.uint64),
        )
        named = LabelledRows(rows, labels)
        keys = distinct(labels)
        slots = find_positions(keys, labels)
        is_title = is_member(keys, np.array(sorted(titles), dtype=np.uint64))
        # A name in one passage alone joins nothing, nor does one in many. A passage may have it twice, as a name and
        # as an initial word.
        holders = np.bincount(slots, minlength=len(keys))
        joins = (holders > 1) & (holders <= 2 * self._common)
        is_across = self._in_two_documents(keys, slots, rows) | is_title
        return {
            "title": self._link(named.select(is_title[slots]), targets, None),
            "cell": self._link(cells, targets, None),
            "name": self._link(named.select((joins & is_across)[slots]), None, None),
            "own-name": self._link(named.select((joins & ~is_across)[slots]), None, None),
        }

    def _in_two_documents(self, keys: Hashes, slots: NDArray[np.int64], rows: Rows) -> NDArray[np.bool_]:
        lowest = np.full(len(keys), np.iinfo(np.int64).max)
        highest = np.full(len(keys), -1)
        np.minimum.at(lowest, slots, self._document[rows])
        np.maximum.at(highest, slots, self._document[rows])
        in_two: NDArray[np.bool_] = lowest != highest
        return in_two

    def _add_references(
        self, links: dict[str, Link], references: LabelledRows, anchors: LabelledRows, notes: LabelledRows
    ) -> None:
        kind = self._kind[anchors.rows]
        pages = anchors.select(kind == KINDS.index(PAGE))
        # A citation leads to an entry, which is a passage; other anchors are headings, captions and passages.
        # What begins with "(2)" is a footnote or an item of a list, not part 2.
        is_entry = (kind == KINDS.index(PASSAGE)) & ~is_member(anchors.rows, distinct(notes.rows))
        entries = anchors.select(is_entry)
        parts = anchors.select((kind == KINDS.index(SECTION)) | (kind == KINDS.index(TABLE)))
        links["page"] = self._link(references, self._expand_pages(pages), self._document)
        links["citation"] = self._link(self._leave_out_resolved(references, parts), entries, self._document)
        links["reference"] = self._link(references, self._expand(parts), self._document)

    def _leave_out_resolved(self, references: LabelledRows, parts: LabelledRows) -> LabelledRows:
        """Leave out the plain number of a reference ("#5" of "Note 5") where the document has a heading with it: a
        passage that begins with "5." is then something else."""
        keys = [number_keys(number) for number in range(1, _NUMBERS)]
        plain = np.array([key for key, _ in keys], dtype=np.uint64)
        full = np.array([key for _, some in keys for key in some], dtype=np.uint64)
        number_of_full = np.repeat(np.arange(len(keys)), len(full) // len(keys))
        document = self._document[references.rows]
        in_heading = is_member(
            _localise(references.labels, document),
            distinct(_localise(parts.labels, self._document[parts.rows])),
        )
        order, plain_order = np.argsort(full), np.argsort(plain)
        of_full = find_positions(full[order], references.labels)
        of_plain = find_positions(plain[plain_order], references.labels)
        resolved = (of_full >= 0) & in_heading
        scale = np.int64(_NUMBERS)
        resolved_keys = references.rows[resolved] * scale + number_of_full[order[of_full[resolved]]]
        own_keys = references.rows * scale + plain_order[of_plain]
        return references.select(
            ~((of_plain >= 0) & (in_heading | is_member(own_keys, distinct(resolved_keys))))
        )

    def _edition_link(self, labels: LabelledRows, headings: LabelledRows) -> Link:
        """Join rows and sections with equal names in adjacent editions of a document."""
        series, number = self._editions()
        sides = []
        for offset in (0, 1):
            parts = [labels, self._expand(headings)]
            rows = np.concatenate([part.rows for part in parts])
            values = np.concatenate([part.labels for part in parts])
            has_editions = series[rows] > 0
            rows, values = rows[has_editions], values[has_editions]
            keys = _localise(_localise(values, series[rows]), number[rows] + offset)
            sides.append((KeyedRows(rows, keys), values))
        (later, later_labels), (earlier, _) = sides
        return Link.from_pairs(later, earlier, later_labels, self._size)

    def _editions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each row the number of its document's series (0: only one edition), and of its edition in it."""
        by_name: dict[str, list[tuple[list[int], str]]] = {}
        for document in self._snapshot.documents():
            name = _EDITION.sub(" ", document.name.casefold())
            if name != document.name.casefold():
                order = [int(digits) for digits in re.findall(r"\d{1,18}", document.name)]
                by_name.setdefault(" ".join(name.split()), []).append((order, document.key))
        series = np.zeros(self._size, dtype=np.int64)
        number = np.zeros(self._size, dtype=np.int64)
        several = [editions for _, editions in sorted(by_name.items()) if len(editions) > 1]
        for each, editions in enumerate(several, 1):
            for place, (_, key) in enumerate(sorted(editions)):
                start, end = self._snapshot.document_rows(key)
                series[start:end], number[start:end] = each, place
        return series, number

    def _link(self, sources: LabelledRows, targets: LabelledRows | None, place: Rows | None) -> Link:
        """Return the edges between equal labels; where ``place`` is given, only within the same place of rows."""

        def to_keyed_rows(pairs: LabelledRows) -> KeyedRows:
            if place is None:
                return KeyedRows(pairs.rows, pairs.labels)
            return KeyedRows(pairs.rows, _localise(pairs.labels, place[pairs.rows]))

        if targets is not None:
            sources = sources.select(is_member(sources.labels, distinct(targets.labels)))
        return Link.from_pairs(
            to_keyed_rows(sources),
            None if targets is None else to_keyed_rows(targets),
            sources.labels,
            self._size,
        )

    def _expand(self, anchors: LabelledRows) -> LabelledRows:
        """Return the first passages after each heading or caption instead of it."""
        start = np.searchsorted(self._passages, anchors.rows)
        steps = start[:, None] + np.arange(self._leads)
        inside = steps < len(self._passages)
        rows = (
            self._passages[np.minimum(steps, max(len(self._passages) - 1, 0))]
            if len(self._passages)
            else steps
        )
        inside &= self._document[rows] == self._document[anchors.rows][:, None]
        return LabelledRows(rows[inside], np.repeat(anchors.labels, inside.sum(axis=1)))

    def _expand_pages(self, pages: LabelledRows) -> LabelledRows:
        """Return the passages and table rows of each page instead of it."""
        scale = int(self._page.max(initial=0)) + 2
        passages = self._passages[self._page[self._passages] > 0]
        own = self._document[passages] * scale + self._page[passages]
        order = np.argsort(own, kind="stable")
        wanted = self._document[pages.rows] * scale + self._page[pages.rows]
        starts = np.searchsorted(own[order], wanted)
        lengths = np.searchsorted(own[order], wanted, side="right") - starts
        return LabelledRows(passages[order[range_indices(starts, lengths)]], np.repeat(pages.labels, lengths))


#: Plain numbers up to this one are looked up among headings.
_NUMBERS = 100
#: The digits of a name by which editions of a document differ: years, quarters, numbers.
_EDITION = re.compile(r"(?:fy|cy|q)?\d[\d._-]*(?:q[1-4])?")


@dataclass(frozen=True, slots=True)
class _Tree:
    """The relations that are read off the tree of a document."""

    snapshot: Snapshot

    @property
    def parent(self) -> NDArray[np.int64]:
        return self.snapshot.column("parent")

    def joined_rows(self, name: str, row: int) -> Rows:
        """Return the rows that ``table``, ``next`` or ``container`` joins to ``row``, ascending."""
        document = self.snapshot.column("document")
        if document[row] < 0:
            return np.empty(0, dtype=np.int64)
        spans: Spans = self.snapshot.memoize(
            "graph/documents", lambda: document_spans(self.snapshot), documents_only=True
        )
        start, end = spans[int(document[row])]
        kind, page = self.snapshot.column("kind")[start:end], self.snapshot.column("page")[start:end]
        own_kind, own_page = KINDS[int(kind[row - start])], int(page[row - start])
        on_page = (page == own_page) & (own_page > 0)
        if name == "table":
            other = {PASSAGE: ROW, ROW: PASSAGE}.get(own_kind)
            joined = on_page & (kind == KINDS.index(other)) if other else np.zeros(end - start, np.bool_)
        elif name == "next":
            passages: Rows = self.snapshot.memoize(
                "graph/passages", lambda: passage_rows(self.snapshot), documents_only=True
            )
            place = int(np.searchsorted(passages, row))
            beside = passages[max(place - 1, 0) : place + 2]
            is_passage = place < len(passages) and passages[place] == row
            return (
                beside[(beside >= start) & (beside < end) & (beside != row)] if is_passage else passages[:0]
            )
        else:
            joined = self.parent[start:end] == row
            if self.parent[row] >= 0:
                joined[self.parent[row] - start] = True
            if own_kind == PAGE:
                joined |= on_page
            elif own_kind in {PASSAGE, ROW}:
                joined |= on_page & ((kind == KINDS.index(PAGE)) | (kind == KINDS.index(TABLE)))
            elif own_kind == TABLE:
                joined |= on_page & ((kind == KINDS.index(PAGE)) | (kind == KINDS.index(PASSAGE)))
            joined[row - start] = False
        return np.flatnonzero(joined).astype(np.int64) + start
