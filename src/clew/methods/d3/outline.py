"""Outlines: the condensed representation of documents, their sections in preorder (D3, Section 3.3.1, footnote 3).

A section is named by the headings that lead to it, and has the paragraphs directly under it, those of its tables
included. Text before the first heading is a section named by the document's title.

Beyond the paper: a table with a caption is an entry under its section and can be chosen alone. A section of more than
:data:`MAX_SECTION_TERMS` index terms, such as the whole of a document without headings, is split into parts
(:mod:`clew.methods.d3.segments`), each named by its key phrases, so that one entry can also be read as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clew.core.arrays import Rows, Vectors
from clew.core.protocols import Encoder, Snapshot
from clew.core.types import KINDS, PAGE, RETRIEVED_KINDS, ROW, SECTION, TABLE, Document, Node
from clew.methods.d3.segments import key_phrases, segment_starts, word_vectors

#: A section of more index terms than this is split into parts.
MAX_SECTION_TERMS = 1200
#: A table of fewer rows than this is not an entry of its own.
TABLE_ROWS = 3
#: The name of a section without one.
UNNAMED = "(untitled)"


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of an outline: a section, a part of one, a table or a page (``kind``).

    ``id`` is ``<document key>:<place>``; the place is the position of the section or table, or ``first-last`` for the
    paragraphs of a part. ``path`` has the names from the outermost section to its own. ``rows`` are the rows of its
    paragraphs, (n,), in reading order; those of a table are its section's as well. ``pages`` is the first and the
    last page, or None.
    """

    id: str
    kind: str
    path: tuple[str, ...]
    rows: tuple[int, ...]
    pages: tuple[int, int] | None = None

    @property
    def document(self) -> str:
        """The key of its document."""
        return self.id.rpartition(":")[0]

    @property
    def place(self) -> str:
        """The part of the id that is unique within the document."""
        return self.id.rpartition(":")[2]

    @property
    def name(self) -> str:
        """The names along the path, concatenated as in the paper."""
        return " > ".join(self.path)


@dataclass(frozen=True, slots=True)
class Outline:
    """The entries of one document, in preorder."""

    document: Document
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Outlines:
    """The outlines of a snapshot's documents, each made when it is first needed.

    Long sections are split by the vectors of ``encoder``, or by words if there are none. ``pages`` makes every page
    an entry as well, with the paragraphs that begin on it.
    """

    snapshot: Snapshot
    encoder: Encoder | None = None
    max_terms: int = MAX_SECTION_TERMS
    pages: bool = False

    def of(self, key: str) -> Outline:
        """Return the outline of a document. Raises NotFound."""
        by = self.encoder.name if self.encoder is not None else "words"
        name = f"drill/outline/{by}/{self.max_terms}/{self.pages}/{key}"
        outline: Outline = self.snapshot.memoize(name, lambda: self._build(key))
        return outline

    def sections_of(self, key: str, rows: Sequence[int]) -> dict[int, Section]:
        """Return for each of ``rows`` of a document the section (never the table) that has it."""
        wanted = frozenset(rows)
        return {
            row: section
            for section in self.of(key).sections
            if section.kind not in {TABLE, PAGE}
            for row in section.rows
            if row in wanted
        }

    def _build(self, key: str) -> Outline:
        document = documents(self.snapshot)[key]
        first, end = self.snapshot.document_rows(key)
        tree = _Tree.of(self.snapshot, first, end)
        nodes = dict(zip(tree.inner.tolist(), self.snapshot.nodes(tree.inner), strict=True))
        sections: list[Section] = []
        for row in tree.inner.tolist():
            node, paragraphs = nodes[row], tree.paragraphs(row)
            if not len(paragraphs):
                continue
            if node.kind == TABLE:
                if node.name and len(paragraphs) >= TABLE_ROWS:
                    sections.append(self._entry(node, _path(node, document), paragraphs))
            else:
                sections.extend(self._split(node, _path(node, document), paragraphs))
        if self.pages:
            sections.extend(self._pages_of(document, tree.rows))
        # By first paragraph, a page and a table after the section that has it.
        sections.sort(key=lambda each: (each.rows[0], each.kind == PAGE, each.kind == TABLE))
        return Outline(document, tuple(sections))

    def _pages_of(self, document: Document, rows: Rows) -> Iterator[Section]:
        """Yield the pages of a document that has any."""
        page_of_row = self.snapshot.column("page")[rows]
        for page in np.unique(page_of_row[page_of_row > 0]).tolist():
            path = (document.title or document.name, f"page {page}")
            on_page = tuple(rows[page_of_row == page].tolist())
            yield Section(f"{document.key}:page-{page}", PAGE, path, on_page, (page, page))

    def _entry(self, node: Node, path: tuple[str, ...], rows: Rows) -> Section:
        kind = TABLE if node.kind == TABLE else SECTION
        return Section(node.id, kind, path, tuple(rows.tolist()), self._pages(rows))

    def _split(self, node: Node, path: tuple[str, ...], rows: Rows) -> Iterator[Section]:
        """Yield a section whole, or in parts if it is long."""
        lengths = self.snapshot.postings("text").lengths(rows)
        if len(rows) < 2 or lengths.sum() <= self.max_terms:
            yield self._entry(node, path, rows)
            return
        starts = [*segment_starts(self._vectors(rows), lengths, self.max_terms), len(rows)]
        parts = [rows[start:end] for start, end in pairwise(starts)]
        texts = [[paragraph.text for paragraph in self.snapshot.nodes(part)] for part in parts]
        offset = node.position - int(self.snapshot.rows([node.id])[0])
        # Text before the first heading has no name of its own.
        parent_path = path if node.kind == SECTION else path[:-1]
        for part, phrases in zip(parts, key_phrases(texts), strict=True):
            name = " / ".join(phrases) or UNNAMED
            place = f"{part[0] + offset}-{part[-1] + offset}"
            yield Section(
                f"{node.document}:{place}",
                "part",
                (*parent_path, name),
                tuple(part.tolist()),
                self._pages(part),
            )

    def _vectors(self, rows: Rows) -> Vectors:
        if self.encoder is not None:
            vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
            if np.any(vectors, axis=1).all():
                return vectors
        return word_vectors(self.snapshot.postings("text"), rows)

    def _pages(self, rows: Rows) -> tuple[int, int] | None:
        pages = self.snapshot.column("page")[rows]
        pages = pages[pages > 0]
        return (int(pages.min()), int(pages.max())) if len(pages) else None


def documents(snapshot: Snapshot) -> dict[str, Document]:
    """Return the documents by their keys, in the order of the snapshot."""
    by_key: dict[str, Document] = snapshot.memoize(
        "drill/documents", lambda: {document.key: document for document in snapshot.documents()}
    )
    return by_key


def _path(node: Node, document: Document) -> tuple[str, ...]:
    if node.kind == SECTION:
        return (*node.headings, node.name or UNNAMED)
    if node.kind == TABLE:
        return (*node.headings, node.name)
    return (document.title or document.name,)


@dataclass(frozen=True, slots=True)
class _Tree:
    """The tree of one document.

    ``inner`` are the rows of the document itself, its sections and its tables. ``rows`` are its paragraphs in reading
    order; ``section`` and ``table`` have for each the inner row that contains it, -1 for none.
    """

    inner: Rows
    rows: Rows
    section: Rows
    table: Rows

    @classmethod
    def of(cls, snapshot: Snapshot, first: int, end: int) -> _Tree:
        all_rows = np.arange(first, end)
        kind, parent = snapshot.column("kind")[first:end], snapshot.column("parent")[first:end]
        codes = {name: code for code, name in enumerate(KINDS)}
        inner = (kind == codes[SECTION]) | (kind == codes[TABLE]) | (all_rows == first)
        rows = all_rows[np.isin(kind, [codes[name] for name in RETRIEVED_KINDS])]
        above = parent[rows - first]
        in_table = kind[above - first] == codes[TABLE]
        section = np.where(in_table, parent[above - first], above)
        # A table row without a table is a paragraph like any other.
        table = np.where(in_table & (kind[rows - first] == codes[ROW]), above, -1)
        return cls(all_rows[inner], rows, section, table)

    def paragraphs(self, row: int) -> Rows:
        """Return the paragraphs directly under an inner row."""
        rows: Rows = self.rows[(self.section == row) | (self.table == row)]
        return rows
