"""The structure of one document: its pages, sections, tables and rows by number, label and name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import index_terms, is_stop_term
from clew.core.types import KINDS, PAGE, PASSAGE, ROW, SECTION, TABLE, Document, Node
from clew.retrieve.structure.query import FIGURE, parse_roman

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Snapshot

_TABLE_LABEL = re.compile(
    r"^\W*(?:table|tab\.|tabelle|tableau|tabla)(?:\s+(?:no\.?\s*)?|(?=\d))"
    r"(?P<label>[a-z]{0,2}[.-]?\d+[a-z]?(?:[.-]\d+)*|[ivxlc]+|(?-i:[A-Z]))\b",
    re.IGNORECASE,
)
_FIGURE_LABEL = re.compile(
    r"^\W*(?:fig(?:ure)?|abb(?:ildung)?|figura)\b\.?\s*(?P<label>[a-z]?[.-]?\d+[a-z]?(?:[.-]\d+)*|[ivxlc]+)\b",
    re.IGNORECASE,
)
#: A numbered paragraph that is no heading: "12.5. In the event of a tied vote".
_PARAGRAPH_LABEL = re.compile(r"^\W*(?P<label>\d+(?:\.\d+)+|[a-z]?\d+[a-z]?(?=[.)]))", re.IGNORECASE)
_SECTION_LABEL = re.compile(
    r"^\W*(?:(?P<word>[^\W\d_]{3,}|§)(?:\s+|(?=\d)))?(?P<label>[a-z]?\d+[a-z]?(?:\.\d+)*|[a-z]\.\d+(?:\.\d+)*|[ivxlc]+|[a-z])(?=[\s.:)–—-]|$)",
    re.IGNORECASE,
)
_CELL_BORDER = re.compile(r"(?<!\\)\|")
#: Words before the number of a heading that are part of its label.
LABEL_WORDS = frozenset(
    "section chapter item part article appendix annex clause exhibit schedule note attachment paragraph §".split()
)
#: The words by which people refer to a heading without a word before its number ("3.2 Data").
_WORDS_FOR_NUMBERED = {"section", "chapter", "clause", "paragraph", "part", "article"}


class Outline:
    """The structure of one document. Rows are rows of the snapshot."""

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

    @cached_property
    def figures(self) -> list[Node]:
        """The captions of figures in reading order: passages or headings that begin with a figure's label, the first
        of each label; a list of figures in the front has each of them too, so that the last with a label counts."""
        rows = np.sort(np.concatenate([self.rows_of_kind(PASSAGE), self.rows_of_kind(SECTION)]))
        captions: dict[str, Node] = {}
        for node in self._snapshot.nodes(rows):
            if label := parse_figure_label(node.text):
                captions.pop(label, None)
                captions[label] = node
        return list(captions.values())

    @property
    def sheets(self) -> list[Node]:
        """The sheets of a workbook."""
        is_workbook = "sheet" in self.document.media_type or "excel" in self.document.media_type
        return [node for node in self.sections if node.level == 1] if is_workbook else []

    def rows_of_kind(self, kind: str) -> Rows:
        """Return the rows of one kind, ascending."""
        return np.flatnonzero(self._kind == KINDS.index(kind)) + self.start

    def pages_of(self, node: Node) -> list[int]:
        """Return the pages of a node: the pages of its boxes, else the page it starts on."""
        return sorted({box.page for box in node.boxes}) or ([node.page] if node.page is not None else [])

    @cached_property
    def pages(self) -> list[Node]:
        """The pages in order."""
        return self._snapshot.nodes(self.rows_of_kind(PAGE))

    def find_pages(self, number: int | None, label: str = "") -> list[Node]:
        """Return the page with a number (negative from the end), else the one with a printed label."""
        if number is not None and number < 0:
            number += self.document.pages + 1
        numbered = [node for node in self.pages if number is not None and node.page == number]
        return numbered or [node for node in self.pages if label and _same_label(node.name, label)]

    def tables_on(self, page: int | None) -> list[Node]:
        """Return the tables that start or have a row on a page (negative from the end); None for all."""
        if page is None:
            return self.tables
        number = page + self.document.pages + 1 if page < 0 else page
        rows = np.flatnonzero((self._kind == KINDS.index(ROW)) & (self._page == number))
        table_rows = np.array(sorted(set(self._parent[rows].tolist())), dtype=np.int64)
        ids = set(self._snapshot.ids(table_rows))
        return [node for node in self.tables if node.page == number or node.id in ids]

    def within(self, kind: str, places: Sequence[Node] | None) -> list[Node]:
        """Return the tables, figures or sections of the document, or those inside pages, sections or tables."""
        nodes = {TABLE: self.tables, FIGURE: self.figures}.get(kind, self.sections)
        if places is None:
            return nodes
        inside: dict[str, Node] = {}
        for place in places:
            if place.kind == PAGE:
                own = (
                    self.tables_on(place.page)
                    if kind == TABLE
                    else [n for n in nodes if n.page == place.page]
                )
            else:
                rows = set(self.subtree_rows(place).tolist())
                own = [node for node in nodes if self.start + node.position in rows and node.id != place.id]
            inside |= {node.id: node for node in own}
        return sorted(inside.values(), key=lambda node: node.position)

    def label_of(self, node: Node) -> str:
        """Return the printed label of a table or figure, "" for one without: it stands in the caption or, of a
        table, in the heading right above it."""
        if node.kind != TABLE:
            return parse_figure_label(node.text)
        return parse_table_label(node.name) or parse_table_label("".join(node.headings[-1:]))

    def find_neighbour(self, kind: str, anchors: Sequence[Node], relation: str, word: str = "") -> list[Node]:
        """Return the page, table, figure or section that stands ``after`` or ``before`` other structures."""
        first, last = anchors[0], anchors[-1]
        if kind == PAGE:
            pages = [number for node in anchors for number in self.pages_of(node)]
            number = 0 if not pages else max(pages) + 1 if relation == "after" else min(pages) - 1
            return self.find_pages(number) if number > 0 else []
        if kind == SECTION and first.kind == SECTION:
            return self.neighbour_section(first, relation, word)
        nodes = self.within(kind, None)
        if last.kind == PAGE:
            after = [node for node in nodes if (node.page or 0) > (last.page or 0)]
            before = [node for node in nodes if (node.page or 0) < (first.page or 0)]
        else:
            after = [node for node in nodes if node.position > last.position]
            before = [node for node in nodes if node.position < first.position]
        return after[:1] if relation == "after" else before[-1:]

    def rows_of_table(self, table: Node) -> Rows:
        """Return the rows of a table, ascending."""
        row = self.start + table.position
        return np.flatnonzero((self._kind == KINDS.index(ROW)) & (self._parent == row)) + self.start

    def named_rows(self, table: Node) -> list[tuple[str, int]]:
        """Return the rows of a table with their first cells, which are their names."""
        cells = read_cells(table)[1:]
        return [
            (cells[place][0] if place < len(cells) else "", row)
            for place, row in enumerate(self.rows_of_table(table).tolist())
        ]

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
        """Return the sections with a label behind ``word`` ("chapter", "note"), each label once; where there are
        none, those with a label of their own below a heading with that word, or, of "section" and the like, any."""
        if worded := [node for node in self.sections if self._heading_word(node) == word]:
            return self._each_label_once(worded)
        numbered = [
            node for node in self.sections if self._heading_word(node) == "" and self._is_numbered(node)
        ]
        below = []
        if numbered and _has_word([node.name for node in self.sections], word):
            below = [node for node in numbered if _has_word(self._headings_before(node), word)]
        return self._each_label_once(below or (numbered if word in _WORDS_FOR_NUMBERED else []))

    @staticmethod
    def _heading_word(node: Node) -> str | None:
        """Return the word before the label of a heading, "" where there is none, None without a label."""
        match = _SECTION_LABEL.match(node.name)
        return None if match is None else (match["word"] or "").casefold()

    @staticmethod
    def _is_numbered(node: Node) -> bool:
        match = _SECTION_LABEL.match(node.name)
        return match is not None and match["label"][:1].isdigit()

    @staticmethod
    def _each_label_once(nodes: Sequence[Node]) -> list[Node]:
        seen: dict[str, Node] = {}
        for node in nodes:
            if match := _SECTION_LABEL.match(node.name):
                seen.setdefault(normalise_label(match["label"]), node)
        return list(seen.values())

    def sections_with_label(self, word: str, label: str) -> list[Node]:
        """Return the sections whose heading starts with a word and label ("Item 1A"), or with a label alone; below a
        heading with the word where it is none for numbered headings ("3. Liquidity" of "Notes to the accounts"); else
        the numbered paragraphs."""
        label = normalise_label(label)
        own = []
        for node in self.sections:
            match = _SECTION_LABEL.match(node.name)
            if match and normalise_label(match["label"]) == label:
                # A lone letter or numeral without a word before it may be a word of the heading itself.
                following = node.name[match.end() : match.end() + 1]
                own.append((node, match["word"], match["label"][0].isdigit() or following in set(".:)")))
        worded = [node for node, heading_word, _ in own if (heading_word or "").casefold() == word]
        alone = [node for node, heading_word, is_label in own if not heading_word and is_label]
        below = [node for node in alone if _has_word(self._headings_before(node), word)]
        if meant := worded or below or (alone if word in _WORDS_FOR_NUMBERED else []):
            return meant
        if word not in _WORDS_FOR_NUMBERED:
            return []
        passages = self._snapshot.nodes(self.rows_of_kind(PASSAGE))
        return [
            node
            for node in passages
            if (match := _PARAGRAPH_LABEL.match(node.text)) and normalise_label(match["label"]) == label
        ][:1]

    def _headings_before(self, node: Node) -> list[str]:
        """Return the headings around a section, and the earlier headings of its level or above, in case levels were
        guessed."""
        before = [
            each.name for each in self.sections if each.position < node.position and each.level <= node.level
        ]
        return [*node.headings, *before]

    @cached_property
    def has_numbered_headings(self) -> bool:
        """Whether any heading is numbered."""
        return any(self._is_numbered(node) and node.name[:1].isdigit() for node in self.sections)

    def nth_section(self, number: int | None, word: str = "", has_label: bool = False) -> list[Node]:
        """Return the n-th of the sections that a word names, negative from the end: those with a label behind it, or
        the outermost ones. "Section 3" is counted only where no heading has a printed number."""
        labelled = self.sections_with_word(word)
        if number is None or (has_label and (labelled or self.has_numbered_headings)):
            return []
        sections = labelled
        if not labelled or word in {"", "section"}:
            sections = self.outermost_sections if word in {"", "section", "chapter", "part", "sheet"} else []
        index = number if number < 0 else number - 1
        return sections[index:][:1] if -len(sections) <= index < len(sections) else []

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


def read_cells(table: Node) -> list[list[str]]:
    """Return the cells of a table as its Markdown has them, the header first."""
    lines = [line for line in table.text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in _CELL_BORDER.split(line.strip().strip("|"))] for line in lines]
    return [*rows[:1], *rows[2:]]


def heading_label(name: str) -> tuple[str, str]:
    """Return the word before the label of a heading, and the label ("Item 1A. Risks" -> "item", "1A"); "" where there
    is none. A lone letter or numeral that nothing sets off is a word of the heading."""
    match = _SECTION_LABEL.match(name)
    if match is None:
        return "", ""
    word, following = (match["word"] or "").casefold(), name[match.end() : match.end() + 1]
    is_label = match["label"][0].isdigit() or following in set(".:)") or word in LABEL_WORDS
    return (word, match["label"]) if is_label else ("", "")


def parse_table_label(caption: str) -> str:
    """Return the label of a caption ("Table IV: Dues" -> "4"), "" for a caption without one."""
    match = _TABLE_LABEL.match(caption)
    return normalise_label(match["label"]) if match else ""


def parse_figure_label(caption: str) -> str:
    """Return the label of a figure's caption ("Fig. 3. Traps" -> "3"), "" for a text that is none."""
    match = _FIGURE_LABEL.match(caption)
    return normalise_label(match["label"]) if match else ""


def _same_label(name: str, label: str) -> bool:
    """Return whether two printed page labels are the same: "6-15" and "6–15", "IV" and "iv", but not "4" and "iv"."""
    first, second = (re.sub(r"\W+", "-", each.casefold()) for each in (name, label))
    return first == second


def _has_word(names: Sequence[str], word: str) -> bool:
    """Return whether a heading has a word, in the singular or plural."""
    own = set(index_terms(word))
    return bool(own) and any(own <= set(index_terms(name)) for name in names)


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
