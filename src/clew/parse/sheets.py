"""Excel workbooks: each sheet a section with its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from clew.errors import UnreadableFile
from clew.parse.blocks import Block, Heading, Note, Paragraph, SourceFile, Title, build_document
from clew.parse.build import PassageUnit
from clew.parse.detect import XLSX
from clew.parse.grid import Row, count_filled, count_header_rows, is_value, merge_header, split_titles, trim_grid
from clew.parse.limits import LIMITS, Limits
from clew.parse.opc import OfficePackage
from clew.parse.tables import Table
from clew.parse.workbook import Sheet, Workbook
from clew.types import ParsedDocument

PARSER = "xlsx/1"

#: Names that spreadsheet programs give, in some of their languages.
_UNNAMED = re.compile(r"^(?:sheet|tabelle|feuil|hoja|foglio|blad|plan|ark|лист|シート)\s*\d*$", re.I)
#: A row's only cell with more characters than this is a remark below a table, not a group's heading.
_REMARK = 60


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an Excel workbook. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    return build_document(_document(package, name, limits), SourceFile(data, name, XLSX, PARSER, unit, limits))


def _document(package: OfficePackage, name: str, limits: Limits) -> Iterator[Block]:
    # A sheet's name is no title: the first of several says little of the others.
    yield Title(package.title() or PurePath(name).stem)
    count = 0
    for sheet in Workbook(package, limits).sheets():
        count += 1
        if sheet.missing_formulas:
            yield Note(
                f"sheet '{sheet.name}': {sheet.missing_formulas:,} formulas have no stored result; "
                "open and save the file in a spreadsheet program"
            )
        if sheet.cells:
            yield Heading(1, sheet.name)
            yield from _sheet(sheet)
    if not count:
        raise UnreadableFile("holds no visible sheet")


def _sheet(sheet: Sheet) -> Iterator[Block]:
    name = "" if _UNNAMED.match(sheet.name) else sheet.name
    tables = _tables(_blocks(sheet))
    for rows, spanned in tables:
        yield from table_blocks(rows, spanned, name)


def table_blocks(rows: Sequence[Row], spanned: frozenset[int], name: str) -> Iterator[Block]:
    """Yield a grid as a table with its title lines as caption, and remarks below it as paragraphs.

    ``name`` is the caption where the grid has no title; ``spanned`` the rows in which a cell spans columns.
    """
    above, count = split_titles(rows)
    body = list(rows[count:])
    if max_distinct_cells(rows) < 2 or not body:
        yield from (Paragraph(next(cell for cell in row if cell.strip())) for row in rows)
        return
    remarks: list[str] = []
    while len(body) > 1 and _is_remark(body[-1]):
        remarks.insert(0, next(cell for cell in body.pop() if cell.strip()))
    header_spans = frozenset(row - count for row in spanned if row >= count)
    header = count_header_rows(body, header_spans)
    grouped = (_group(row, place in header_spans) for place, row in enumerate(body) if place >= header)
    yield Table(merge_header(body[:header]), tuple(grouped), " – ".join(above) or name)
    yield from map(Paragraph, remarks)


def max_distinct_cells(rows: Sequence[Row]) -> int:
    """Return the largest number of different filled cells in a row."""
    return max((len({cell for cell in row if cell.strip()}) for row in rows), default=0)


def _is_remark(row: Row) -> bool:
    cells = {cell for cell in row if cell.strip()}
    return len(cells) == 1 and len(next(iter(cells))) > _REMARK


def _group(row: Row, spanned: bool) -> Row:
    return (row[0],) + ("",) * (len(row) - 1) if spanned and len(set(row)) == 1 else row


def _blocks(sheet: Sheet) -> Iterator[tuple[list[Row], frozenset[int]]]:
    """Yield the runs of rows between blank ones, as rows over the sheet's used columns."""
    used = sorted({column for cells in sheet.cells.values() for column in cells})
    place = {column: number for number, column in enumerate(used)}
    wide = {top for top, left, _, right in sheet.merged if right > left}
    block: list[Row] = []
    spanned: set[int] = set()
    last = -1
    for number in sorted(sheet.cells):
        if block and number > last + 1:
            yield block, frozenset(spanned)
            block, spanned = [], set()
        if number in wide:
            spanned.add(len(block))
        row = [""] * len(used)
        for column, text in sheet.cells[number].items():
            row[place[column]] = text
        block.append(tuple(row))
        last = number
    if block:
        yield block, frozenset(spanned)


def _tables(
    blocks: Iterator[tuple[list[Row], frozenset[int]]],
) -> Iterator[tuple[list[Row], frozenset[int]]]:
    """Join blocks that blank rows only space out: one starts a new table if it brings its own header."""
    held: list[Row] = []
    spans: set[int] = set()
    for rows, spanned in blocks:
        if held and _starts_table(rows, held):
            yield trim_grid(held), frozenset(spans)
            held, spans = [], set()
        spans.update(len(held) + row for row in spanned)
        held.extend(rows)
    if held:
        yield trim_grid(held), frozenset(spans)


def _starts_table(rows: Sequence[Row], before: Sequence[Row]) -> bool:
    """Return whether a block begins like a table of its own: column names above values."""
    if max_distinct_cells(before) < 2:
        return False  # only titles so far
    _, count = split_titles(rows)
    body = rows[count:]
    header = count_header_rows(body)
    return 0 < header < len(body) and any(map(is_value, body[header])) and count_filled(body[0]) > 1
