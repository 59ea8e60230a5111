"""Tables of HTML: which of them hold data, and their cells with spans resolved."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.parse.grid import Row, count_header_rows, merge_header, trim_grid
from clew.parse.limits import Limits
from clew.parse.tables import Table

if TYPE_CHECKING:
    from lxml.etree import _Element

#: What the HTML standard caps spans at (section 4.9.11).
_COLSPAN, _ROWSPAN = 1_000, 65_534
_SPACES = re.compile(r"\s+")
_BLOCKS = frozenset("p div br li ul ol dl dt dd table tr td th h1 h2 h3 h4 h5 h6 pre".split())
_SKIPPED = frozenset(("script", "style", "noscript", "template"))


def find_layout_tables(root: _Element) -> set[_Element]:
    """Return the tables below ``root`` that arrange a page rather than data.

    Those are tables that hold tables or headings, say so by their role, or have a single row or column and
    neither header cells nor a caption.
    """
    from lxml import etree

    layout: set[_Element] = set()
    open_tables: list[_Shape] = []
    for event, element in etree.iterwalk(root, events=("start", "end"), tag=_WATCHED):
        if event == "start":
            if element.tag == "table":
                if open_tables:
                    open_tables[-1].layout = True
                role = element.get("role") in {"presentation", "none"}
                open_tables.append(_Shape(element, role))
            elif open_tables:
                open_tables[-1].see(element.tag)
        elif element.tag == "table" and open_tables[-1].finish():
            layout.add(open_tables.pop().table)
        elif element.tag == "table":
            open_tables.pop()
    return layout


_WATCHED = ("table", "tr", "td", "th", "caption", "h1", "h2", "h3")


@dataclass(slots=True)
class _Shape:
    table: _Element
    layout: bool
    rows: int = 0
    widest: int = 0
    labelled: bool = False
    _cells: int = 0

    def see(self, tag: str) -> None:
        if tag == "tr":
            self.rows, self._cells = self.rows + 1, 0
        elif tag in {"td", "th"}:
            self._cells += 1
            self.widest = max(self.widest, self._cells)
            self.labelled |= tag == "th"
        elif tag == "caption":
            self.labelled = True
        else:
            self.layout = True

    def finish(self) -> bool:
        return self.layout or (not self.labelled and (self.rows < 2 or self.widest < 2))


@dataclass(slots=True)
class _Grid:
    """Places cells, as the standard's algorithm does (section 4.9.12)."""

    limits: Limits
    used: int
    rows: list[Row] = field(default_factory=list)
    heads: list[bool] = field(default_factory=list)  # rows in <thead>, or of <th> alone
    spanned: set[int] = field(default_factory=set)
    marked: bool = False  # some cell is <th>
    _below: dict[int, tuple[int, str]] = field(default_factory=dict)  # column: rows still covered, text

    def add(self, row: _Element, head: bool) -> None:
        """Add a row of cells."""
        cells: list[str] = []
        all_heads = True
        found = False
        for cell in row:
            if cell.tag not in ("td", "th"):
                continue
            found = True
            all_heads &= cell.tag == "th"
            self.marked |= cell.tag == "th"
            self._fill(cells)
            text = cell_text(cell)
            width = _span(cell.get("colspan"), _COLSPAN)
            height = _span(cell.get("rowspan"), _ROWSPAN)
            if width > 1 and text:
                self.spanned.add(len(self.rows))
            for _ in range(width):
                if height > 1:
                    self._below[len(cells)] = (height - 1, text)
                cells.append(text)
            self.used += width
            self.limits.check_cells(self.used)
        if found or self._below:
            self._fill(cells)
            self.rows.append(tuple(cells))
            self.heads.append(head or (found and all_heads))

    def _fill(self, cells: list[str]) -> None:
        """Repeat the cells above that reach down to the next free column."""
        while (below := self._below.get(len(cells))) is not None:
            left, text = below
            if left == 1:
                del self._below[len(cells)]
            else:
                self._below[len(cells)] = (left - 1, text)
            cells.append(text)
            self.used += 1
            self.limits.check_cells(self.used)


def read_table(element: _Element, limits: Limits, used: int = 0) -> Table:
    """Return a table element as a table; ``used`` cells of the document's allowance are gone already."""
    grid = _Grid(limits, used)
    caption = ""
    for child in element:
        if child.tag == "caption" and not caption:
            caption = cell_text(child)
        elif child.tag == "tr":
            grid.add(child, False)
        elif child.tag in ("thead", "tbody", "tfoot"):
            grid._below.clear()  # a cell does not reach beyond its group
            for row in child:
                if row.tag == "tr":
                    grid.add(row, child.tag == "thead")
    return _table(grid, caption)


def _table(grid: _Grid, caption: str) -> Table:
    kept = [number for number, row in enumerate(grid.rows) if any(row)]
    rows = trim_grid([grid.rows[number] for number in kept])
    marked = 0
    while marked < len(kept) and grid.heads[kept[marked]]:
        marked += 1
    spanned = frozenset(place for place, number in enumerate(kept) if number in grid.spanned)
    if marked == len(rows):  # a table of header cells alone
        marked = min(1, marked)
    # Who marks the names of rows, but not those of columns, has none for columns.
    count = marked if marked or grid.marked else count_header_rows(rows, spanned)
    body = tuple(_unrepeated(row, place in spanned) for place, row in enumerate(rows) if place >= count)
    return Table(merge_header(rows[:count]), body, caption)


def _unrepeated(row: Row, spanned: bool) -> Row:
    """Return a row that one cell spans whole as a row with its first cell only: a group's heading."""
    if spanned and len(set(row)) == 1:
        return (row[0],) + ("",) * (len(row) - 1)
    return row


def _span(value: str | None, most: int) -> int:
    if value is None or not re.fullmatch(r"\s*\d{1,9}\s*", value):
        return 1
    return min(max(int(value), 1), most)


def cell_text(cell: _Element) -> str:
    """Return the text of a cell on one line, whatever is in it."""
    from lxml import etree

    parts: list[str] = []
    walk = etree.iterwalk(cell, events=("start", "end", "comment"))
    for event, element in walk:
        if event == "start":
            if element.tag in _SKIPPED or element.get("aria-hidden") == "true":
                walk.skip_subtree()
                continue
            if element.tag in _BLOCKS:
                parts.append(" ")
            parts.append(element.text or "")
        elif element is not cell:
            if element.tag in _BLOCKS:
                parts.append(" ")
            parts.append(element.tail or "")
    return _SPACES.sub(" ", "".join(parts).replace("\xad", "").replace("\u200b", "")).strip()
