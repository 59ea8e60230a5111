"""Excel workbooks as cells: what each sheet shows, where, read as a stream.

Claimed dimensions are never believed: only cells that hold something are kept, wherever they say they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO, TYPE_CHECKING

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import Block, Heading, Note, Paragraph, SourceFile, Title, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.detection import XLSX
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.number_formats import BUILT_IN_FORMATS, format_general, format_number
from clew.parse.documents.office_package import OfficePackage, attribute_value, local_name, xml_error
from clew.parse.documents.tables import (
    Row,
    Table,
    count_filled,
    count_header_rows,
    is_value,
    merge_header,
    split_titles,
    trim_grid,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

_REFERENCE = re.compile(r"^\$?([A-Z]{1,3})\$?(\d{1,7})$")
_ROWS, _COLUMNS = 1_048_576, 16_384
#: A value that is repeated into every cell of a merged range of more cells than this is decoration.
_MERGED = 2_000


@dataclass(slots=True)
class Sheet:
    """A sheet's cells: text by row and column, both from 0. ``merged`` are ranges of top, left, bottom,
    right, inclusive."""

    name: str
    cells: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    missing_formulas: int = 0


class Workbook:
    """An open workbook. Raises UnreadableFile where parts are missing or damaged."""

    def __init__(self, package: OfficePackage, limits: Limits) -> None:
        self._package, self._limits = package, limits
        self._main = package.main_part("xl/workbook.xml")
        root = package.read_xml(self._main)
        self._epoch_1904 = any(
            attribute_value(child, "date1904") in {"1", "true"}
            for child in root
            if local_name(child) == "workbookPr"
        )
        strings = package.related_part(self._main, "sharedStrings")
        self._strings = list(_strings(package, strings, limits)) if strings else []
        styles = package.related_part(self._main, "styles")
        self._formats = _formats(package.read_xml(styles)) if styles else []
        self._used = 0
        self._sheets = root

    def sheets(self) -> Iterator[Sheet]:
        """Yield the visible sheets in the order of their tabs; charts and macros are none."""
        targets = {name: (kind, part) for kind, part, name in self._package.relationships(self._main)}
        for group in self._sheets:
            if local_name(group) != "sheets":
                continue
            for entry in group:
                kind, part = targets.get(attribute_value(entry, "id"), ("", ""))
                if attribute_value(entry, "state", "visible") == "visible" and kind == "worksheet":
                    yield self._sheet(attribute_value(entry, "name"), part)

    def _sheet(self, name: str, part: str) -> Sheet:
        from lxml import etree

        sheet = Sheet(name)
        row_number = -1
        with self._package.open_part(part) as stream:
            try:
                for element in _elements(stream, ("{*}row", "{*}mergeCell")):
                    if local_name(element) == "row":
                        row_number = self._row(element, row_number + 1, sheet)
                    elif (merged := _range(attribute_value(element, "ref"))) is not None:
                        sheet.merged.append(merged)
            except etree.XMLSyntaxError as error:
                raise xml_error(part, error) from error
        _spread(sheet)
        return sheet

    def _row(self, element: _Element, number: int, sheet: Sheet) -> int:
        """Take the cells of a row that hold something; return its number."""
        said = element.get("r", "")
        if said.isdecimal() and 0 < int(said) <= _ROWS:
            number = int(said) - 1
        cells: dict[int, str] = {}
        column = -1
        for cell in element:
            place = _REFERENCE.match(cell.get("r", ""))
            column = _column(place[1]) if place else column + 1
            if len(cell) and column < _COLUMNS:
                text = self._cell(cell, sheet)
                if text:
                    cells[column] = text
        if cells:
            self._used += len(cells)
            self._limits.check_cells(self._used)
            sheet.cells[number] = cells
        return number

    def _cell(self, cell: _Element, sheet: Sheet) -> str:
        value = formula = None
        kind = cell.get("t", "n")
        for child in cell:
            name = local_name(child)
            if name == "v":
                value = child.text
            elif name == "is":
                value = _rich_text(child)
            elif name == "f":
                formula = child
        if value is None or value == "":
            sheet.missing_formulas += formula is not None and kind != "str"
            return ""
        match kind:
            case "s":
                number = int(value) if value.isdecimal() else -1
                return self._strings[number] if 0 <= number < len(self._strings) else ""
            case "b":
                return "TRUE" if value == "1" else "FALSE"
            case "n":
                return self._number(value, cell.get("s", "0"))
        return value.strip()

    def _number(self, value: str, style: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return value.strip()
        if number != number or number in {float("inf"), float("-inf")}:
            return value.strip()
        place = int(style) if style.isdecimal() else 0
        code = self._formats[place] if place < len(self._formats) else "General"
        # A format may show nothing at all (";;;"); the number is there all the same.
        return format_number(number, code, self._epoch_1904) or format_general(number)


def _elements(stream: IO[bytes], tags: tuple[str, ...]) -> Iterator[_Element]:
    """Yield elements as they end, and free them and what came before."""
    from lxml import etree

    for _, element in etree.iterparse(
        stream, tag=tags, resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    ):
        yield element
        element.clear()
        parent = element.getparent()
        while parent is not None and element.getprevious() is not None:
            del parent[0]


def _strings(package: OfficePackage, part: str, limits: Limits) -> Iterator[str]:
    from lxml import etree

    total = 0
    with package.open_part(part) as stream:
        try:
            for element in _elements(stream, ("{*}si",)):
                text = _rich_text(element)
                total += len(text)
                limits.check_characters(total)
                yield text
        except etree.XMLSyntaxError as error:
            raise xml_error(part, error) from error


def _rich_text(element: _Element) -> str:
    """Return the text of its runs, without the readings above East Asian characters."""
    parts = []
    for text in element.iter("{*}t"):
        above = text.getparent()
        if above is None or local_name(above) != "rPh":
            parts.append(text.text or "")
    return "".join(parts).strip()


def _formats(root: _Element) -> list[str]:
    """Return the format code of each cell style."""
    codes = dict(BUILT_IN_FORMATS)
    styles: list[str] = []
    for group in root:
        if local_name(group) == "numFmts":
            for entry in group:
                number = attribute_value(entry, "numFmtId")
                if number.isdecimal():
                    codes[int(number)] = attribute_value(entry, "formatCode", "General")
        elif local_name(group) == "cellXfs":
            numbers = (attribute_value(entry, "numFmtId", "0") for entry in group)
            styles = [codes.get(int(n) if n.isdecimal() else 0, "General") for n in numbers]
    return styles


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _range(reference: str) -> tuple[int, int, int, int] | None:
    first, _, last = reference.partition(":")
    start, end = _REFERENCE.match(first), _REFERENCE.match(last)
    if not start or not end:
        return None
    return int(start[2]) - 1, _column(start[1]), int(end[2]) - 1, _column(end[1])


def _spread(sheet: Sheet) -> None:
    """Repeat the value of a merged range in the cells that it covers, where the range is of a table's size."""
    for top, left, bottom, right in sheet.merged:
        text = sheet.cells.get(top, {}).get(left, "")
        size = (bottom - top + 1) * (right - left + 1)
        if not text or not 1 < size <= _MERGED:
            continue
        for row in range(top, bottom + 1):
            # A row without anything of its own stays blank: the merged cell is only tall.
            if row in sheet.cells:
                for column in range(left, right + 1):
                    sheet.cells[row].setdefault(column, text)


PARSER = "xlsx/1"

#: Names that spreadsheet programs give, in some of their languages.
_UNNAMED = re.compile(r"^(?:sheet|tabelle|feuil|hoja|foglio|blad|plan|ark|лист|シート)\s*\d*$", re.I)
#: A row's only cell with more characters than this is a remark below a table, not a group's heading.
_REMARK = 60


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an Excel workbook. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    return build_document(
        _document(package, name, limits), SourceFile(data, name, XLSX, PARSER, unit, limits)
    )


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


# MERGED: Excel workbooks: each sheet a section with its tables.
