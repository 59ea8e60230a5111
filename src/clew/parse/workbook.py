"""Excel workbooks as cells: what each sheet shows, where, read as a stream.

Claimed dimensions are never believed: only cells that hold something are kept, wherever they say they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from clew.parse.cellformat import BUILT_IN_FORMATS, format_general, format_number
from clew.parse.limits import Limits
from clew.parse.opc import OfficePackage, attribute_value, local_name, xml_error

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
            attribute_value(child, "date1904") in {"1", "true"} for child in root if local_name(child) == "workbookPr"
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
