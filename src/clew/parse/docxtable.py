"""Tables of Word documents: merged cells resolved, header rows found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.parse.docxtext import Footnotes, element_text
from clew.parse.grid import Row, count_header_rows, merge_header, trim_grid
from clew.parse.limits import Limits
from clew.parse.opc import attribute_value, local_name
from clew.parse.tables import Table

if TYPE_CHECKING:
    from lxml.etree import _Element

_WRAPPERS = frozenset("sdt sdtContent customXml ins".split())


def is_layout_table(table: _Element) -> bool:
    """Return whether a table only arranges text: one row, one column, or tables within it."""
    rows = list(_inside(table, "tr"))
    if len(rows) < 2 or all(len(list(_inside(row, "tc"))) < 2 for row in rows):
        return True
    return any(len(list(_inside(nested, "tr"))) > 1 for nested in table.iter("{*}tbl") if nested is not table)


def read_table(table: _Element, notes: Footnotes, limits: Limits, used: int = 0) -> Table:
    """Return a table; ``used`` cells of the document's allowance are gone already."""
    rows: list[Row] = []
    marked: list[bool] = []
    spanned: set[int] = set()
    for row in _inside(table, "tr"):
        above = rows[-1] if rows else ()
        cells, spans = _cells(row, above, notes, limits, used)
        used += len(cells)
        if not any(cells):
            continue
        if spans:
            spanned.add(len(rows))
        rows.append(cells)
        marked.append(_is_header(row))
    spans_at = frozenset(spanned)
    rows = trim_grid(rows)
    count = 0
    while count < len(rows) and marked[count]:
        count += 1
    if not count or count == len(rows):
        count = count_header_rows(rows, spans_at)
    body = tuple(_group(row, place in spans_at) for place, row in enumerate(rows) if place >= count)
    return Table(merge_header(rows[:count]), body)


def _group(row: Row, spanned: bool) -> Row:
    """Return a row that one cell spans whole as a row with its first cell only: a group's heading."""
    return (row[0],) + ("",) * (len(row) - 1) if spanned and len(set(row)) == 1 else row


def _cells(row: _Element, above: Row, notes: Footnotes, limits: Limits, used: int) -> tuple[Row, bool]:
    """Return a row's cells, each as often as it spans columns, and whether one does."""
    cells: list[str] = [""] * _skipped(row)
    spans = False
    for cell in _inside(row, "tc"):
        width, merge = 1, ""
        for properties in cell:
            if local_name(properties) != "tcPr":
                continue
            for said in properties:
                if local_name(said) == "gridSpan":
                    width = _count(attribute_value(said, "val"))
                elif local_name(said) == "vMerge":
                    merge = attribute_value(said, "val", "continue")
        limits.check_cells(used + len(cells) + width)
        text = " ".join(element_text(cell, notes).split())
        if merge == "continue":
            for _ in range(width):
                cells.append(above[len(cells)] if len(cells) < len(above) else "")
        else:
            cells.extend([text] * width)
            spans |= width > 1 and bool(text)
    return tuple(cells), spans


def _skipped(row: _Element) -> int:
    """Return how many columns a row leaves out at its start."""
    for properties in row:
        if local_name(properties) == "trPr":
            for said in properties:
                if local_name(said) == "gridBefore":
                    return _count(attribute_value(said, "val"), 0)
    return 0


def _is_header(row: _Element) -> bool:
    for properties in row:
        if local_name(properties) == "trPr":
            return any(
                local_name(said) == "tblHeader" and attribute_value(said, "val", "1") not in {"0", "false", "off"}
                for said in properties
            )
    return False


def _count(text: str, default: int = 1) -> int:
    return min(int(text), 1_000) if re.fullmatch(r"\d{1,6}", text) else default


def _inside(element: _Element, name: str) -> Iterator[_Element]:
    """Yield the children called ``name``, out of the content controls and insertions around them."""
    waiting = list(element)[::-1]
    while waiting:
        child = waiting.pop()
        if local_name(child) == name:
            yield child
        elif local_name(child) in _WRAPPERS:
            waiting.extend(list(child)[::-1])
