"""Excel workbooks: each sheet is a section with its tables; numbers and dates are written as the sheet shows them.

Read with lxml rather than openpyxl or python-calamine: the first cannot tell a formula without a stored result from
an empty cell and unpacks merged ranges into cells, the second has no number formats (decision 0017).

Number formats are those of ECMA-376 part 1, 18.8.30 and 18.8.31. Formats 14 to 17 and 22 show dates in the order of
the computer's locale. They are written as ISO 8601, so that the text of a document does not depend on where it was
read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from pathlib import PurePath
from typing import IO, TYPE_CHECKING

from clew.core.cell_values import NO_RESULT
from clew.core.errors import UnreadableFile
from clew.core.text import read_count
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Heading,
    LeftOut,
    Note,
    SourceFile,
    Title,
    build_document,
    superscript,
    table_blocks,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.office_package import OfficePackage, attribute_value, local_name, xml_error
from clew.parse.documents.tables import Grid, Row, divide_tables

if TYPE_CHECKING:
    from lxml.etree import _Element

BUILT_IN_FORMATS = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "General", 13: "General", 14: "yyyy-mm-dd", 15: "yyyy-mm-dd", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm",
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: "#,##0;(#,##0);-", 42: "$#,##0;($#,##0);-", 43: "#,##0.00;(#,##0.00);-", 44: "$#,##0.00;($#,##0.00);-",
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "0.0E+0", 49: "@",
}  # fmt: skip
"""The formats that a workbook refers to by number without defining them."""

#: Characters of a number format, at most: Excel's own limit. A longer one could make a page of each number.
_LONGEST_FORMAT = 255
#: Holds all digits that such a format shows of a number below 10**20.
_SHOWN_DIGITS = Context(prec=20 + _LONGEST_FORMAT)
_LITERALS = re.compile(r'"([^"]*)"|\\(.)|_(.)|\*(.)|\[(\$[^\]]*|[^\]]*)\]')
_DATE_PART = re.compile(r"[ymdhs]", re.I)
_TOKEN = re.compile(
    r"\[(?:h+|m+|s+)\]|AM/PM|A/P|y+|m+|d+|h+|s+(?:\.0+)?|\"[^\"]*\"|\\.|\[[^\]]*\]|_.|\*.|.", re.I | re.S
)
_PLACES = re.compile(r"[0#?][0#?,]*(?:\.[0#?]*,*)?(?:E[+-][0#?]+)?|\.[0#?]+,*")
_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def format_number(value: float, code: str, epoch_1904: bool = False) -> str:
    """Return a number as the format ``code`` shows it. ``epoch_1904``: dates count from 1904, as on old Macs.

    >>> [shown(v, c) for v, c in ((1234.5, "#,##0.00"), (0.256, "0.0%"), (-12, "#,##0;(#,##0)"))]
    ['1,234.50', '25.6%', '(12)']
    """
    if code in {"General", "@", ""} or len(code) > _LONGEST_FORMAT:
        return format_general(value)
    if is_date_format(code):
        return _format_date(value, code, epoch_1904)
    return _format_by_sign(value, code)


def format_general(value: float) -> str:
    """Return a number without a format: its significant digits, without the noise of binary fractions."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"


@lru_cache(maxsize=1024)
def is_date_format(code: str) -> bool:
    """Return whether a format shows its number as a date, a time or a duration."""
    if re.search(r"\[(h+|m+|s+)\]", code, re.I):
        return True
    bare = _LITERALS.sub("", code.split(";")[0])
    return (
        bool(_DATE_PART.search(bare))
        and "general" not in bare.lower()
        and not re.search("[0#?]", re.sub(r"s\.0+", "s", bare, flags=re.I))
    )


@lru_cache(maxsize=1024)
def _split_sections(code: str) -> tuple[str, ...]:
    """Return the sections for positive numbers, negative numbers and zero; quoted text may hold semicolons."""
    parts, start = [], 0
    for match in re.finditer(r'"[^"]*"|\\.|(;)', code):
        if match[1]:
            parts.append(code[start : match.start()])
            start = match.end()
    return (*parts, code[start:])


def _format_by_sign(value: float, code: str) -> str:
    sections = _split_sections(code)
    conditional = any(re.search(r"\[[<>=]", section) for section in sections)
    section, number = sections[0], value
    if not conditional and value < 0 and len(sections) > 1:
        section, number = sections[1], -value
    elif not conditional and value == 0 and len(sections) > 2:
        section = sections[2]
    if "general" in section.lower():
        return _with_literals(section, re.compile("general", re.I), format_general(number))
    return _format_section(number, section)


def _with_literals(section: str, place: re.Pattern[str], text: str) -> str:
    """Return ``section`` with its literals resolved and the first match of ``place`` replaced by ``text``."""
    # Literals go first, so that digits in quotes are not taken for places.
    literals: list[str] = []

    def extract_literal(match: re.Match[str]) -> str:
        quoted, escaped, space, fill, bracket = match.groups()
        if bracket is not None:
            literal = bracket[1:].split("-")[0] if bracket.startswith("$") else ""
        else:
            literal = quoted if quoted is not None else escaped or (" " if space else "")
            literal = "" if fill else literal
        literals.append(literal)
        return "\0"

    rest = _LITERALS.sub(extract_literal, section)
    match = place.search(rest)
    filled = rest[: match.start()] + "\1" + place.sub("", rest[match.end() :]) if match else rest
    parts = iter(literals)
    whole = "".join(next(parts) if char == "\0" else text if char == "\1" else char for char in filled)
    return " ".join(whole.split())


def _format_section(number: float, section: str) -> str:
    bare = _LITERALS.sub("\0", section)
    match = _PLACES.search(bare)
    if not match:
        return _with_literals(section, _PLACES, "")
    pattern = match[0]
    amount = Decimal(repr(number))
    # A percent sign scales; one in quotes is text.
    amount = amount.scaleb(2 * bare.count("%"))
    if "E" in pattern.upper():
        decimals = len(re.sub(r"[^0#?]", "", pattern.upper().split("E")[0].partition(".")[2]))
        return _with_literals(section, _PLACES, f"{float(amount):.{decimals}E}")
    # Each comma after the last digit place divides by a thousand.
    scale = len(pattern) - len(pattern.rstrip(","))
    whole, _, fraction = pattern.rstrip(",").partition(".")
    amount = amount.scaleb(-3 * scale)
    rounded = amount
    if abs(amount) < 10**20:
        rounded = amount.quantize(Decimal(1).scaleb(-len(fraction)), ROUND_HALF_UP, _SHOWN_DIGITS)
    text = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    text = _drop_optional_decimals(text, fraction)
    least = whole.count("0")
    sign = "-" if text.startswith("-") else ""
    digits = text.removeprefix("-")
    before, point, after = digits.partition(".")
    if least == 0 and before == "0" and after:
        before = ""
    before = before if "," in before else before.zfill(least)
    if not (before + after).strip("0.,") and sign:
        sign = ""
    return sign + _with_literals(section, _PLACES, before + point + after)


def _drop_optional_decimals(text: str, fraction: str) -> str:
    """Drop the last decimals where the format makes them optional (#)."""
    if "." not in text:
        return text
    fixed = max((place + 1 for place, char in enumerate(fraction) if char == "0"), default=0)
    before, _, after = text.partition(".")
    while len(after) > fixed and after.endswith("0"):
        after = after[:-1]
    return f"{before}.{after}" if after else before


def _format_date(value: float, code: str, epoch_1904: bool) -> str:
    section = _split_sections(code)[0]
    try:
        moment = _to_datetime(value, epoch_1904, 3 if "s.0" in section.lower() else 0)
    except (OverflowError, ValueError):
        return format_general(value)
    tokens = _TOKEN.findall(section)
    twelve_hours = any(token.upper() in {"AM/PM", "A/P"} for token in tokens)
    parts: list[str] = []
    for place, token in enumerate(tokens):
        parts.append(_format_date_part(token, moment, value, twelve_hours, _is_minutes(tokens, place)))
    return " ".join("".join(parts).split())


def _to_datetime(value: float, epoch_1904: bool, digits: int) -> datetime:
    """Return the time of a serial number, its seconds rounded. Excel counts a 29 February 1900 that never was."""
    start = datetime(1904, 1, 1)
    if not epoch_1904:
        start = datetime(1899, 12, 30) if value >= 60 else datetime(1899, 12, 31)
    return start + timedelta(seconds=round(value * 86_400, digits))


def _is_minutes(tokens: list[str], place: int) -> bool:
    """Return whether an m stands for minutes: right after hours or right before seconds."""
    if tokens[place][0] not in "mM":
        return False
    before = next((t[0].lower() for t in reversed(tokens[:place]) if t[0].lower() in "ymdhs["), "")
    after = next((t[0].lower() for t in tokens[place + 1 :] if t[0].lower() in "ymdhs["), "")
    return before == "h" or after == "s" or (before == "[" and after != "y")


def _format_date_part(token: str, moment: datetime, value: float, twelve_hours: bool, minutes: bool) -> str:
    low, size = token.lower(), len(token)
    if low.startswith("["):
        return _format_elapsed(low, value)
    if low in {"am/pm", "a/p"}:
        return ("AM" if moment.hour < 12 else "PM")[: 2 if low == "am/pm" else 1]
    match low[0]:
        case "y":
            return f"{moment.year:04d}" if size > 2 else f"{moment.year % 100:02d}"
        case "m" if minutes:
            return f"{moment.minute:0{min(size, 2)}d}"
        case "m":
            name = _MONTHS[moment.month - 1]
            return {1: str(moment.month), 2: f"{moment.month:02d}", 3: name[:3], 5: name[0]}.get(size, name)
        case "d":
            name = _DAYS[moment.weekday()]
            return {1: str(moment.day), 2: f"{moment.day:02d}", 3: name[:3]}.get(size, name)
        case "h":
            hour = (moment.hour % 12 or 12) if twelve_hours else moment.hour
            return f"{hour:0{min(size, 2)}d}"
        case "s":
            whole, _, fraction = low.partition(".")
            tail = f"{moment.microsecond / 1e6:.{len(fraction)}f}"[1:] if fraction else ""
            return f"{moment.second:0{min(len(whole), 2)}d}{tail}"
    return _unquote(token)


def _unquote(token: str) -> str:
    match token[0]:
        case '"':
            return token[1:-1]
        case "\\":
            return token[1:]
        case "_":
            return " "
        case "*":
            return ""
    return token


def _format_elapsed(token: str, value: float) -> str:
    seconds = round(value * 86_400)
    unit = {"h": 3600, "m": 60, "s": 1}.get(token[1:2])
    return "" if unit is None else str(seconds // unit)


PARSER = "xlsx/3"
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_MAX_ROWS, _MAX_COLUMNS = 1_048_576, 16_384
#: A merged range of more cells than this is decoration: its text is not repeated in its cells.
_MAX_MERGED_CELLS = 2_000
_REFERENCE = re.compile(r"^\$?([A-Z]{1,3})\$?(\d{1,7})$")
#: Names that spreadsheet programs give to sheets, in some of their languages.
_GENERATED_NAME = re.compile(r"^(?:sheet|tabelle|feuil|hoja|foglio|blad|plan|ark|лист|シート)\s*\d*$", re.I)


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an Excel workbook: each sheet becomes a section with its tables. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(_blocks(package, name, limits), source)


FORMAT = DocumentFormat(
    MEDIA_TYPE, "an Excel workbook", (".xlsx", ".xlsm"), parse, zip_folder="xl", parser=PARSER
)


def _blocks(package: OfficePackage, name: str, limits: Limits) -> Iterator[Block]:
    # A sheet's name is no title: the first of several does not describe the others.
    yield Title(package.title() or PurePath(name).stem)
    yield from package.property_blocks()
    count = 0
    for sheet in Workbook(package, limits).sheets():
        count += not sheet.is_hidden
        if sheet.missing_formulas:
            yield Note(
                f"sheet '{sheet.name}': {sheet.missing_formulas:,} formulas have no stored result; "
                "open and save the file in a spreadsheet program"
            )
        yield LeftOut("hidden", sheet.take_hidden())
        if sheet.cells:
            yield Heading(1, sheet.name)
            yield from sheet_blocks(sheet)
    if not count:
        raise UnreadableFile("holds no visible sheet")


def sheet_blocks(sheet: Sheet) -> Iterator[Block]:
    """Yield the tables of a sheet, with the lines above and below them."""
    name = "" if _GENERATED_NAME.match(sheet.name) else sheet.name
    for rows, spanned in divide_tables(_runs_of_rows(sheet)):
        yield from table_blocks(rows, spanned, name, sheet.headers())


def _runs_of_rows(sheet: Sheet) -> Iterator[Grid]:
    """Yield the runs of rows between blank rows, over the columns that the sheet uses."""
    columns = sorted({column for cells in sheet.cells.values() for column in cells})
    place_of = {column: place for place, column in enumerate(columns)}
    rows_with_spans = {top for top, left, _, right in sheet.merged if right > left}
    rows: list[Row] = []
    spanned: set[int] = set()
    last = -1
    for number in sorted(sheet.cells):
        if rows and any(row not in sheet.hidden_rows for row in range(last + 1, number)):
            yield rows, frozenset(spanned)
            rows, spanned = [], set()
        if number in rows_with_spans:
            spanned.add(len(rows))
        row = [""] * len(columns)
        for column, text in sheet.cells[number].items():
            row[place_of[column]] = text
        rows.append(tuple(row))
        last = number
    if rows:
        yield rows, frozenset(spanned)


# Cells


@dataclass(slots=True)
class Sheet:
    """The cells of a sheet: their text by row and column, from 0.

    ``merged`` are ranges of top, left, bottom, right, inclusive, and so are the ranges ``listed`` whose first row is
    declared to name their columns. ``missing_formulas`` counts the formulas whose result is not stored.
    ``hidden_rows`` are those with content; ``hidden_columns`` has 1 for a column that is hidden.
    """

    name: str
    cells: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    listed: list[tuple[int, int, int, int]] = field(default_factory=list)
    missing_formulas: int = 0
    is_hidden: bool = False
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: bytearray = field(default_factory=lambda: bytearray(_MAX_COLUMNS))

    def take_hidden(self) -> str:
        """Remove the hidden rows and columns and return their text."""
        taken: list[str] = []
        for number, cells in list(self.cells.items()):
            for column in list(cells):
                if number in self.hidden_rows or self.hidden_columns[column]:
                    taken.append(cells.pop(column))
            if not cells:
                del self.cells[number]
        return " ".join(text for text in taken if text != NO_RESULT)

    def headers(self) -> frozenset[Row]:
        """Return the filled cells of each row that is declared to name columns."""
        rows = (
            tuple(text for column, text in sorted(self.cells.get(top, {}).items()) if left <= column <= right)
            for top, left, _, right in self.listed
        )
        return frozenset(rows)


class Workbook:
    """An open workbook. Raises UnreadableFile where parts are missing or damaged.

    The dimensions that a sheet claims are never believed: only cells with content are stored, wherever they are.
    """

    def __init__(self, package: OfficePackage, limits: Limits) -> None:
        self._package, self._limits = package, limits
        self._main = package.main_part("xl/workbook.xml")
        self._root = root = package.read_xml(self._main)
        self._epoch_1904 = any(
            attribute_value(child, "date1904") in {"1", "true"}
            for child in root
            if local_name(child) == "workbookPr"
        )
        strings = package.related_part(self._main, "sharedStrings")
        self._strings = list(_read_strings(package, strings, limits)) if strings else []
        styles = package.related_part(self._main, "styles")
        self._formats = _read_formats(package.read_xml(styles)) if styles else []
        self._cell_count = 0

    def sheets(self) -> Iterator[Sheet]:
        """Yield the sheets in the order of their tabs, without charts and macros; all rows of hidden ones are hidden.

        A part is read once, however often it is listed.
        """
        seen = set()
        targets = {name: (kind, part) for kind, part, name in self._package.relationships(self._main)}
        for group in self._root:
            if local_name(group) != "sheets":
                continue
            for entry in group:
                kind, part = targets.get(attribute_value(entry, "id"), ("", ""))
                if kind == "worksheet" and part not in seen:
                    seen.add(part)
                    sheet = self._read_sheet(attribute_value(entry, "name"), part)
                    if attribute_value(entry, "state", "visible") != "visible":
                        sheet.is_hidden, sheet.missing_formulas = True, 0
                        sheet.hidden_rows = set(sheet.cells)
                    yield sheet

    def _read_sheet(self, name: str, part: str) -> Sheet:
        from lxml import etree

        sheet = Sheet(name)
        row_number = -1
        with self._package.open_part(part) as stream:
            try:
                for element in _iterate_elements(
                    stream, ("{*}col", "{*}row", "{*}mergeCell", "{*}autoFilter")
                ):
                    if local_name(element) == "row":
                        row_number = self._read_row(element, row_number + 1, sheet)
                    elif local_name(element) == "col":
                        ends = [read_count(attribute_value(element, end)) or 1 for end in ("min", "max")]
                        first, last = ends[0] - 1, min(ends[1], _MAX_COLUMNS)
                        if _is_hidden(element) and first < last:
                            sheet.hidden_columns[first:last] = b"\1" * (last - first)
                    elif (cells := _parse_range(attribute_value(element, "ref"))) is not None:
                        (sheet.merged if local_name(element) == "mergeCell" else sheet.listed).append(cells)
            except etree.XMLSyntaxError as error:
                raise xml_error(part, error) from error
        for kind, table, _ in self._package.relationships(part):
            if kind != "table" or table not in self._package:
                continue
            root = self._package.read_xml(table)
            has_header = attribute_value(root, "headerRowCount", "1") != "0"
            if has_header and (cells := _parse_range(attribute_value(root, "ref"))) is not None:
                sheet.listed.append(cells)
        fill_merged_cells(sheet)
        return sheet

    def _read_row(self, element: _Element, number: int, sheet: Sheet) -> int:
        """Store the cells of a row that have content; return the row's number."""
        stated_number = read_count(element.get("r", ""))
        if stated_number and stated_number <= _MAX_ROWS:
            number = stated_number - 1
        cells: dict[int, str] = {}
        column = -1
        for cell in element:
            reference = _REFERENCE.match(cell.get("r", ""))
            column = _column_number(reference[1]) if reference else column + 1
            if len(cell) and column < _MAX_COLUMNS and (text := self._cell_text(cell, sheet)):
                cells[column] = text
        if cells:
            self._cell_count += len(cells)
            self._limits.check_cells(self._cell_count)
            sheet.cells[number] = cells
            if _is_hidden(element):
                sheet.hidden_rows.add(number)
        return number

    def _cell_text(self, cell: _Element, sheet: Sheet) -> str:
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
            is_missing = formula is not None and kind != "str"
            sheet.missing_formulas += is_missing
            return NO_RESULT if is_missing else ""
        match kind:
            case "s":
                number = read_count(value)
                return self._strings[number] if number is not None and number < len(self._strings) else ""
            case "b":
                return "TRUE" if value == "1" else "FALSE"
            case "n":
                return self._number_text(value, cell.get("s", "0"))
        return value.strip()

    def _number_text(self, value: str, style: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return value.strip()
        if number != number or number in {float("inf"), float("-inf")}:
            return value.strip()
        index = read_count(style) or 0
        code = self._formats[index] if index < len(self._formats) else "General"
        if value.isdigit() and code in {"General", "@", "0"}:
            return value  # a long one is a number of something, and a float would lose its last digits
        # A format may show nothing at all (";;;"); the number is there all the same.
        return format_number(number, code, self._epoch_1904) or format_general(number)


def _iterate_elements(stream: IO[bytes], tags: tuple[str, ...]) -> Iterator[_Element]:
    """Yield elements as they end; each is freed, with all before it, when the next one is asked for."""
    from lxml import etree

    for _, element in etree.iterparse(
        stream, tag=tags, resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    ):
        yield element
        element.clear()
        parent = element.getparent()
        while parent is not None and element.getprevious() is not None:
            del parent[0]


def _read_strings(package: OfficePackage, part: str, limits: Limits) -> Iterator[str]:
    from lxml import etree

    total = 0
    with package.open_part(part) as stream:
        try:
            for element in _iterate_elements(stream, ("{*}si",)):
                text = _rich_text(element)
                total += len(text)
                limits.check_characters(total)
                yield text
        except etree.XMLSyntaxError as error:
            raise xml_error(part, error) from error


def _rich_text(element: _Element) -> str:
    """Return the text of an element's runs, without the readings above East Asian characters."""
    parts: list[str] = []
    for text in element.iter("{*}t"):
        above = text.getparent()
        if above is not None and local_name(above) == "rPh":
            continue
        is_raised = above is not None and any(
            attribute_value(mark, "val") == "superscript" for mark in above.iter("{*}vertAlign")
        )
        written = text.text or ""
        parts.append(superscript(written, parts[-1] if parts else "") if is_raised else written)
    return "".join(parts).strip()


def _read_formats(root: _Element) -> list[str]:
    """Return the format code of each cell style."""
    codes = dict(BUILT_IN_FORMATS)
    styles: list[str] = []
    for group in root:
        if local_name(group) == "numFmts":
            for entry in group:
                number = read_count(attribute_value(entry, "numFmtId"))
                if number is not None:
                    codes[number] = attribute_value(entry, "formatCode", "General")
        elif local_name(group) == "cellXfs":
            numbers = (read_count(attribute_value(entry, "numFmtId", "0")) for entry in group)
            styles = [codes.get(number or 0, "General") for number in numbers]
    return styles


def _is_hidden(element: _Element) -> bool:
    return attribute_value(element, "hidden") in {"1", "true"}


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _parse_range(reference: str) -> tuple[int, int, int, int] | None:
    first, _, last = reference.partition(":")
    start, end = _REFERENCE.match(first), _REFERENCE.match(last)
    if not start or not end:
        return None
    return int(start[2]) - 1, _column_number(start[1]), int(end[2]) - 1, _column_number(end[1])


def fill_merged_cells(sheet: Sheet) -> None:
    """Repeat the text of each merged range in the cells that it covers, unless the range is too large for a table."""
    for top, left, bottom, right in sheet.merged:
        text = sheet.cells.get(top, {}).get(left, "")
        size = (bottom - top + 1) * (right - left + 1)
        if not text or not 1 < size <= _MAX_MERGED_CELLS:
            continue
        for row in range(top, bottom + 1):
            # A row without cells of its own stays blank: the merged cell is only tall.
            if row in sheet.cells:
                for column in range(left, right + 1):
                    sheet.cells[row].setdefault(column, text)
