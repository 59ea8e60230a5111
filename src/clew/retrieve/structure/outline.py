"""The structure of one document: its pages, sections, tables and rows by number, label and name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import index_terms, is_stop_term
from clew.core.types import KINDS, PAGE, PASSAGE, ROW, SECTION, TABLE, Document, Node
from clew.retrieve.structure.grammar import parse_roman

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Snapshot

_TABLE_LABEL = re.compile(
    r"^\W*(?:table|tab\.|tabelle|tableau|tabla)(?:\s+(?:no\.?\s*)?|(?=\d))"
    r"(?P<label>[a-z]{0,2}[.-]?\d+[a-z]?(?:[.-]\d+)*|[ivxlc]+|(?-i:[A-Z]))\b",
    re.IGNORECASE,
)
_SECTION_LABEL = re.compile(
    r"^\W*(?:(?P<word>[^\W\d_]{3,}|§)\s*)?(?P<label>[a-z]?\d+[a-z]?(?:\.\d+)*|[a-z]\.\d+(?:\.\d+)*|[ivxlc]+|[a-z])(?=[\s.:)–—-]|$)",
    re.IGNORECASE,
)
#: Words before the number of a heading that are part of its label.
LABEL_WORDS = frozenset(
    "section chapter item part article appendix annex clause exhibit schedule note attachment paragraph §".split()
)
#: The words by which people refer to a heading without a word before its number ("3.2 Data").
_WORDS_FOR_NUMBERED = {"section", "chapter", "clause", "paragraph", "part", "article"}


class Outline:
    """One document's structure. Rows are those of the snapshot."""

    def __init__(self, snapshot: Snapshot, document: Document) -> None:
        self._snapshot = snapshot
        self.document = document
        self.start, self.end = snapshot.document_rows(document.key)
        span = slice(self.start, self.end)
        self._kind = snapshot.column("kind")[span]
        self._page = snapshot.column("page")[span]
        self._parent = snapshot.column("parent")[span]

    @cached_property
    def sections(self) -> list[Node]:
        """The sections in reading order."""
        return self._snapshot.nodes(self.rows_of_kind(SECTION))

    @cached_property
    def tables(self) -> list[Node]:
        """The tables in reading order."""
        return self._snapshot.nodes(self.rows_of_kind(TABLE))

    @property
    def sheets(self) -> list[Node]:
        """The sheets of a workbook."""
        is_workbook = "sheet" in self.document.media_type or "excel" in self.document.media_type
        return [node for node in self.sections if node.level == 1] if is_workbook else []

    def rows_of_kind(self, kind: str) -> Rows:
        """Return the rows of one kind, ascending."""
        return np.flatnonzero(self._kind == KINDS.index(kind)) + self.start

    def pages_of(self, node: Node) -> list[int]:
        """Return the pages that a node stands on: those of its boxes, else the page it starts on."""
        return sorted({box.page for box in node.boxes}) or ([node.page] if node.page is not None else [])

    def find_pages(self, number: int | None, label: str = "") -> list[Node]:
        """Return the page with a number (negative from the end), else the one with a printed label."""
        pages = self._snapshot.nodes(self.rows_of_kind(PAGE))
        if number is not None and number < 0:
            number += self.document.pages + 1
        numbered = [node for node in pages if number is not None and node.page == number]
        return numbered or [node for node in pages if label and node.name.casefold() == label]

    def tables_on(self, page: int | None) -> list[Node]:
        """Return the tables that start or have a row on a page (negative from the end); None for all."""
        if page is None:
            return self.tables
        number = page + self.document.pages + 1 if page < 0 else page
        rows = np.flatnonzero((self._kind == KINDS.index(ROW)) & (self._page == number))
        table_rows = np.array(sorted(set(self._parent[rows].tolist())), dtype=np.int64)
        ids = set(self._snapshot.ids(table_rows))
        return [node for node in self.tables if node.page == number or node.id in ids]

    def rows_of_table(self, table: Node) -> Rows:
        """Return the rows of a table, ascending."""
        row = self.start + table.position
        return np.flatnonzero((self._kind == KINDS.index(ROW)) & (self._parent == row)) + self.start

    def count_rows(self, tables: Sequence[Node]) -> int:
        """Return how many rows tables have together."""
        return sum(len(self.rows_of_table(table)) for table in tables)

    def neighbour_section(self, anchor: Node, relation: str, word: str) -> list[Node]:
        """Return the section that stands ``after`` or ``before`` one, not inside it and not around it.

        With a ``word`` of numbered headings ("item"), only headings that start with it count.
        """
        sections = self.sections
        if word in LABEL_WORDS - {"section"}:
            sections = [node for node in sections if node.name.casefold().lstrip(" (").startswith(word)]
        if relation == "after":
            behind = [node for node in sections if node.position > anchor.position]
            return next(([node] for node in behind if node.level <= anchor.level), behind[:1])
        ahead = [node for node in sections if node.position < anchor.position]
        siblings = [node for node in ahead if node.parent == anchor.parent and node.level == anchor.level]
        return siblings[-1:] or [node for node in ahead if node.level >= anchor.level][-1:]

    def labelled_rows(self, node: Node) -> Rows:
        """Return the rows from a labelled heading ("Exhibit 21") to the next heading with the same word.

        In a file whose heading levels were guessed, what belongs to an exhibit may stand under a heading beside it.
        """
        match = _SECTION_LABEL.match(node.name)
        word = (match["word"] or "").casefold() if match else ""
        if word not in LABEL_WORDS:
            return self.subtree_rows(node)
        following = (
            other.position
            for other in self.sections
            if other.position > node.position and other.name.casefold().startswith(word)
        )
        return np.arange(self.start + node.position, self.start + next(following, len(self._kind)))

    def children(self, node: Node) -> list[Node]:
        """Return the sections directly inside a section, or the outermost ones of a document, its title aside."""
        if node.kind != SECTION:
            return self.outermost_sections
        inside = [child for child in self.sections if child.parent == node.id]
        if inside:
            return inside
        # Headings of a file whose levels were guessed: everything up to the next heading of the same label word.
        rows = self.labelled_rows(node)
        return [
            child for child in self.sections if node.position < child.position <= int(rows[-1]) - self.start
        ]

    @cached_property
    def outermost_sections(self) -> list[Node]:
        """The sections of the outermost level with more than one; a single outermost heading is the title."""
        levels = sorted({node.level for node in self.sections})
        by_level = ([node for node in self.sections if node.level == level] for level in levels)
        return next((nodes for nodes in by_level if len(nodes) > 1), self.sections)

    def sections_with_word(self, word: str) -> list[Node]:
        """Return the sections with a label behind ``word`` ("chapter", "note"), each label once.

        Clauses, sections and the like may be numbered without the word.
        """
        seen: dict[str, Node] = {}
        for node in self.sections:
            match = _SECTION_LABEL.match(node.name)
            if not match or (match["word"] or "").casefold() not in {word, ""}:
                continue
            if not match["word"] and (word not in _WORDS_FOR_NUMBERED or not match["label"][0].isdigit()):
                continue
            seen.setdefault(normalise_label(match["label"]), node)
        return list(seen.values())

    def tables_with_label(self, label: str, tables: list[Node]) -> list[Node]:
        """Return the tables whose caption says "Table <label>"."""
        return [node for node in tables if parse_table_label(node.name) == normalise_label(label)]

    def sections_with_label(self, word: str, label: str) -> list[Node]:
        """Return the sections whose heading starts with a word and label ("Item 1A") or with a label alone."""
        label = normalise_label(label)
        sections = []
        for node in self.sections:
            match = _SECTION_LABEL.match(node.name)
            if match and normalise_label(match["label"]) == label:
                heading_word = (match["word"] or "").casefold()
                # A lone letter or numeral without a word before it may be a word of the heading itself.
                next_character = node.name[match.end() : match.end() + 1]
                is_label = match["label"][0].isdigit() or next_character in set(".:)")
                alone = not heading_word and word in _WORDS_FOR_NUMBERED and is_label
                if heading_word == word or alone:
                    sections.append(node)
        return sections

    @cached_property
    def has_numbered_headings(self) -> bool:
        """Whether any heading is numbered."""
        return any(_SECTION_LABEL.match(node.name) and node.name[:1].isdigit() for node in self.sections)

    def nth_section(self, number: int) -> list[Node]:
        """Return the n-th of the outermost sections, negative from the end."""
        outermost = self.outermost_sections
        index = number if number < 0 else number - 1
        return outermost[index:][:1] if -len(outermost) <= index < len(outermost) else []

    def subtree_rows(self, node: Node) -> Rows:
        """Return the rows of a section with everything inside it, of a whole document, or of any other node alone."""
        row = self.start + node.position
        if node.kind != SECTION:
            return np.arange(row, self.end if row == self.start else row + 1)
        after = slice(node.position + 1, None)
        outside = (self._parent[after] < row) & (self._kind[after] != KINDS.index(PAGE))
        length = int(np.argmax(outside)) if outside.any() else len(outside)
        return np.arange(row, row + 1 + length)

    def evidence_rows(self, rows: Rows) -> Rows:
        """Return the rows among ``rows`` that serve as evidence: passages, and tables as a whole."""
        kinds = self._kind[rows - self.start]
        evidence: Rows = rows[(kinds == KINDS.index(PASSAGE)) | (kinds == KINDS.index(TABLE))]
        return evidence

    def rows_on_page(self, number: int) -> Rows:
        """Return the rows of the passages and tables that start on a page, and of tables that continue there."""
        rows = np.flatnonzero(self._page == number) + self.start
        continued = [self.start + node.position for node in self.tables_on(number)]
        return np.array(sorted({*self.evidence_rows(rows).tolist(), *continued}), dtype=np.int64)


def parse_table_label(caption: str) -> str:
    """Return the label of a caption ("Table IV: Dues" -> "4"), "" for a caption without one."""
    match = _TABLE_LABEL.match(caption)
    return normalise_label(match["label"]) if match else ""


def normalise_label(label: str) -> str:
    """Return the form in which labels are compared: lower case, Roman numerals as digits, "2-3" as "2.3"."""
    folded = label.casefold().strip(" .").replace("-", ".")
    number = parse_roman(folded)
    return re.sub(r"^([a-z])\.?(?=\d)", r"\1", str(number) if number else folded)


def heading_terms(name: str) -> list[str]:
    """Return the terms of a heading or caption in order, without its label and function words."""
    rest = name
    if match := _TABLE_LABEL.match(name):
        rest = name[match.end() :]
    elif match := _SECTION_LABEL.match(name):
        word = (match["word"] or "").casefold()
        # "Apollo 11 landing" is no numbered heading; "Room 3: Losses", "Part II The vessel" and "3.2 Data" are.
        plain = not word and match["label"][:1].isdigit()
        if plain or word in LABEL_WORDS or name[match.end() : match.end() + 1] in {".", ":", ")"}:
            rest = name[match.end() :]
    return [term for term in index_terms(rest) if not is_stop_term(term)] or index_terms(name)
