"""Builds the tree of a document from its headings, paragraphs, tables and pages in reading order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from clew.core.text import clean_name, clean_text, sentence_spans
from clew.core.types import (
    DOCUMENT,
    PAGE,
    PASSAGE,
    ROW,
    SECTION,
    TABLE,
    Box,
    ParsedDocument,
    ParsedNode,
    Table,
    union_box,
)
from clew.parse.documents.fields import normalise_field
from clew.parse.documents.tables import complete_table, row_texts, table_to_markdown

PassageUnit = Literal["paragraph", "sentence"]
"""The unit of text that becomes one passage."""


def document_key(data: bytes, media_type: str, parser: str) -> str:
    """Return the key of a document: a hash of its bytes, media type, and parser with version and options."""
    digest = hashlib.blake2b(data, digest_size=16)
    digest.update(f"\0{media_type}\0{parser}".encode())
    return digest.hexdigest()


#: Characters of the name of a document or section. What looks names up, and shows them, has them several times.
MAX_NAME = 2_000


@dataclass(slots=True)
class DocumentBuilder:
    """Takes headings, paragraphs, tables and pages in reading order; returns a :class:`ParsedDocument`.

    The document's text is its headings, paragraphs and tables, joined by blank lines; every span refers to it.
    ``notes`` are remarks for the person who adds the file.
    """

    unit: PassageUnit = "paragraph"
    _nodes: list[ParsedNode] = field(default_factory=lambda: [ParsedNode(DOCUMENT, "")])
    _pieces: list[str] = field(default_factory=list)
    _length: int = 0
    _open: list[int] = field(default_factory=lambda: [0])  # the document and the sections that are open
    _page: int | None = None
    notes: list[str] = field(default_factory=list)
    fields: dict[tuple[str, str], None] = field(default_factory=dict)
    _left_out: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add_field(self, name: str, value: str) -> None:
        """Add what the file says of itself. A date that cannot be read, and an empty value, is left out."""
        for text in normalise_field(name, value):
            self.fields[name, text] = None

    def leave_out(self, reason: str, text: str) -> None:
        """Keep a text that is not added, with the reason."""
        self._left_out[reason, " ".join(text.split())] += 1

    def add_page(self, number: int, label: str = "", box: Box | None = None) -> None:
        """Start page ``number`` (from 1); ``label`` is the page number printed on it, where that differs."""
        self._page = number
        boxes = (box,) if box else ()
        span = (self._length,) * 2
        self._nodes.append(ParsedNode(PAGE, "", 0, clean_name(label), page=number, span=span, boxes=boxes))

    def add_heading(self, level: int, text: str, boxes: Sequence[Box] = ()) -> None:
        """Start a section of ``level`` (1 is outermost); open sections of this and deeper levels end."""
        text = " ".join(text.split())
        if not text:
            return
        while len(self._open) > 1 and self._nodes[self._open[-1]].level >= level:
            self._open.pop()
        span = self._append(text)
        page = boxes[0].page if boxes else self._page
        node = ParsedNode(
            SECTION, text, self._open[-1], clean_name(text)[:MAX_NAME], level, page, span, tuple(boxes)
        )
        self._nodes.append(node)
        self._open.append(len(self._nodes) - 1)

    def add_paragraph(self, text: str, boxes: Sequence[Box] = ()) -> None:
        """Add a paragraph: one passage, or one per sentence where sentences are the unit."""
        text = text.strip()
        if not text:
            return
        start, end = self._append(text)
        page = boxes[0].page if boxes else self._page
        spans = sentence_spans(text) if self.unit == "sentence" else [(0, end - start)]
        for first, last in spans:
            span = (start + first, start + last)
            self._nodes.append(
                ParsedNode(PASSAGE, text[first:last], self._open[-1], "", 0, page, span, tuple(boxes))
            )

    def add_table(self, table: Table) -> None:
        """Add a table and its rows."""
        if not table.rows and not table.header:
            return
        header = tuple(map(clean_text, table.header))
        table = complete_table(replace(table, caption=clean_text(table.caption), header=header))
        text = table_to_markdown(table)
        span = self._append(text)
        page = table.boxes[0].page if table.boxes else self._page
        self._nodes.append(
            ParsedNode(TABLE, text, self._open[-1], table.caption, 0, page, span, table.boxes, table)
        )
        parent = len(self._nodes) - 1
        for number, row in enumerate(row_texts(table)):
            row_page = table.row_pages[number] if table.row_pages else page
            cells = table.cell_boxes[number] if table.cell_boxes else ()
            own = [box for box in cells if box is not None]
            boxes = (union_box(own),) if own else tuple(box for box in table.boxes if box.page == row_page)
            cells = tuple(box and replace(box, page=row_page or box.page) for box in cells) if own else ()
            self._nodes.append(ParsedNode(ROW, row, parent, "", 0, row_page, span, boxes, cells=cells))

    @property
    def is_empty(self) -> bool:
        """Whether no text was added."""
        return not self._pieces

    def finish(
        self, *, data: bytes, title: str, media_type: str, parser: str, pages: int = 0
    ) -> ParsedDocument:
        """Return the document. ``parser`` is the parser's name and version (``html/1``)."""
        title = clean_name(" ".join(title.split()))
        if len(title) > MAX_NAME:
            self.notes.append(f"its title has {len(title):,} characters; the first {MAX_NAME:,} are its name")
            title = title[:MAX_NAME]
        maker = f"{parser}(passages={self.unit})"
        root = replace(self._nodes[0], text=title, name=title, span=(0, self._length))
        return ParsedDocument(
            document_key(data, media_type, maker),
            title,
            media_type,
            maker,
            "\n\n".join(self._pieces),
            (root, *self._nodes[1:]),
            pages,
            tuple(self.notes),
            fields=tuple(sorted(self.fields)),
            left_out=tuple((reason, text, times) for (reason, text), times in self._left_out.items() if text),
        )

    def _append(self, text: str) -> tuple[int, int]:
        start = self._length + (2 if self._pieces else 0)
        self._pieces.append(text)
        self._length = start + len(text)
        return start, self._length
