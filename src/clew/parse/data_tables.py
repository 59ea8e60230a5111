"""Tables as data: typed columns, read from the Markdown that a table node has as its text.

Nothing is stored twice. A document's table nodes hold every cell as printed, so a :class:`DataTable` is a function of
one node, and goes with its document. The rows of a table follow its node in the document's order, so the n-th row
(from 1) of the table ``key:p`` is the node ``key:p+n``: each value has a source that can be shown.

Numbers keep the size that is printed; what they count in (``$``, ``%``, millions) belongs to their column.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Literal

from clew.core.cell_values import NO_RESULT, CellValue, cell_value, read_cell, read_scale
from clew.core.types import HEADERS_UNCERTAIN, Node, RowPlace, Table
from clew.core.values import month_number
from clew.parse.documents.tables import complete_table, split_titles, trim_grid

ColumnType = Literal["number", "date", "text"]
Notation = Literal["", "decimal comma", "decimal point", "day first", "month first", "digits"]
Value = float | date | str | None

#: The media types of files that are nothing but tables.
DATA_TYPES = frozenset(
    {
        "text/csv",
        "text/tab-separated-values",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
_SEPARATOR = re.compile(r"^\|(?: --- \|)+$", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\) \| ")
#: A number that needs no closer look. A leading zero marks a code.
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)(?:\.\d+)?")
_DATES = (
    re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?:[T ]00:00(?::00)?)?"),
    re.compile(r"(?P<name>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})"),
    re.compile(r"(?P<day>\d{1,2})\.? (?P<name>[A-Za-z]{3,9})\.?,? (?P<year>\d{4})"),
    re.compile(r"(?P<day>\d{1,2})-(?P<name>[A-Za-z]{3,9})-(?P<year>\d{4}|\d{2})"),
)
#: A column is one of numbers, or dates, if at least this share of its filled cells is.
_TYPED_SHARE = 0.75
#: The type of a column follows from so many different cells, besides plain numbers.
_TYPE_SAMPLE = 2_000
#: A number of more digits is a code, too: it would lose the last ones.
_MOST_DIGITS = 15
#: Identifiers have at least so many digits, so many with a check digit; fewer cells do not show what they are.
_LEAST_DIGITS, _CHECKED_DIGITS, _FEWEST_IDENTIFIERS = 7, 12, 3
#: Names of views and columns are cut to so many characters.
_NAME_LENGTH = 48
#: How scales are named.
SCALE_NAMES = {1.0: "", 1e3: "thousand", 1e6: "million", 1e9: "billion", 1e12: "trillion"}


def parse_day(text: str) -> date | None:
    """Return the day that a cell consists of, None for another cell.

    >>> parse_day("2023-05-01"), parse_day("1-May-23"), parse_day("2023")
    (datetime.date(2023, 5, 1), datetime.date(2023, 5, 1), None)
    """
    for form in _DATES:
        if match := form.fullmatch(text.strip()):
            parts = match.groupdict()
            month = month_number(parts.get("name") or "") or int(parts.get("month") or 0)
            try:
                return date(_whole_year(parts["year"]), month, int(parts["day"]))
            except ValueError:
                return None
    return None


def read_markdown(text: str) -> Table | None:
    """Return the table of the Markdown of a table node, None for another text. What stands above the header is its
    caption."""
    separator = _SEPARATOR.search(text)
    if separator is None:
        return None
    above, _, header = text[: separator.start()].rstrip("\n").rpartition("\n")
    lines = text[separator.end() :].strip("\n").split("\n")
    rows = tuple(_split_line(line) for line in lines if line.startswith("|"))
    return Table(
        _split_line(header),
        rows,
        above.replace(HEADERS_UNCERTAIN, "").strip(),
        headers_uncertain=HEADERS_UNCERTAIN in above,
    )


def _split_line(line: str) -> tuple[str, ...]:
    inner = line[2:-2]
    if "\\|" not in inner:
        return tuple(inner.split(" | "))
    return tuple(cell.replace("\\|", "|") for cell in _CELL_END.split(inner))


def names_years(header: str) -> bool:
    """Return whether a header, or the identifier of a column, says that its numbers are years.

    >>> names_years("Fiscal year"), names_years("year_of_release"), names_years("yearly sales")
    (True, True, False)
    """
    return re.search(r"\byears?\b", header.replace("_", " "), re.IGNORECASE) is not None


_NUMBERS = re.compile(r"(?:fy|cy|q)?\d[\d._-]*(?:q[1-4])?")


def series_name(document_name: str) -> str:
    """Return the name of a document without the years and numbers by which its editions differ; "" without any.

    >>> series_name("ferry-2021.pdf") == series_name("Ferry-2022.pdf"), series_name("ferry.pdf")
    (True, '')
    """
    folded = document_name.casefold()
    series = " ".join(_NUMBERS.sub(" ", folded).split())
    return series if series != folded else ""


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column: ``name`` is its identifier in SQL, ``header`` what is printed above it. ``unit`` is that of its
    numbers ("$", "%"; "" where they have none or several), and they are multiples of ``scale``. ``notation`` is how
    its numbers or days are written, "" as in English or ISO 8601."""

    name: str
    header: str
    type: ColumnType
    unit: str = ""
    scale: float = 1.0
    notation: Notation = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return {
            "name": self.name,
            "header": self.header,
            "type": self.type,
            "unit": self.unit,
            "scale": self.scale,
        }


@dataclass(frozen=True, slots=True)
class DataRow:
    """A row: its number in the table (from 0), the id of its node, its cells as printed, its place."""

    number: int
    id: str
    cells: tuple[str, ...]
    place: RowPlace

    @property
    def label(self) -> str:
        """The first cell."""
        return self.cells[0] if self.cells else ""

    @property
    def group(self) -> str:
        """The headings of the groups that it is in, outermost first, joined by ``: ``; "" for none."""
        return ": ".join(self.place.groups)

    @property
    def is_total(self) -> bool:
        """Whether it holds the total of others."""
        return self.place.kind == "total"


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table of a document as typed columns. ``name`` is its view in SQL, ``number`` counts the tables of the
    document from 1. Rows that only head a group are not among ``rows``; the rows below have them as groups."""

    name: str
    id: str
    document: str
    document_name: str
    number: int
    page: int | None
    table: Table
    columns: tuple[DataColumn, ...]
    rows: tuple[DataRow, ...]

    def values(self, position: int) -> list[Value]:
        """Return the typed values of a column, one for each row; None for an empty cell or one of another type."""
        column = self.columns[position]
        return convert_column([row.cells[position] for row in self.rows], column.type, column.notation)

    def cell(self, row: DataRow, position: int) -> CellValue:
        """Return what a cell says, with its unit and scale."""
        return cell_value(self.table, row.number, position)

    def count_decimals(self, position: int, rows: Iterable[int]) -> int:
        """Return the most decimals with which the numbers of a column are printed in rows; 0 where they are the noise
        of binary fractions."""
        mark = "," if self.columns[position].notation == "decimal comma" else "."
        ends = (_DECIMALS[mark].search(cell) for cell in {self.rows[row].cells[position] for row in rows})
        most = max((len(end[1]) for end in ends if end), default=0)
        return most if most <= MOST_DECIMALS else 0

    def lacks_result(self, row: DataRow, position: int) -> bool:
        """Return whether a cell holds a formula whose result is not stored: no other number stands for it."""
        return self.table.rows[row.number][position] == NO_RESULT

    def to_dict(self) -> dict[str, Any]:
        """Return the place and the columns, and how many rows there are."""
        return {
            "table": self.name,
            "id": self.id,
            "document": self.document_name,
            "number": self.number,
            "page": self.page,
            "caption": self.table.caption,
            "headers_uncertain": self.table.headers_uncertain,
            "rows": len(self.rows),
            "columns": [column.to_dict() for column in self.columns],
        }


_DECIMALS = {mark: re.compile(rf"{re.escape(mark)}(\d+)(?![\d.,eE])") for mark in ".,"}
#: Numbers with more decimals are not added up exactly, nor shown with all of them.
MOST_DECIMALS = 9


def convert_column(cells: Sequence[str], type: ColumnType, notation: Notation = "") -> list[Value]:
    """Return the cells of a column as values of a type. A dash is no value: what it stands for, the table says."""
    if type == "text":
        return [cell or None for cell in cells]
    convert: Callable[[str], Value] = parse_day if type == "date" else _read_number
    if notation:
        convert = partial(_NOTATIONS[notation], notation=notation)
    known = {cell: convert(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


_GROUPED = {
    "decimal comma": re.compile(r"\d{1,3}(?:[. '’]\d{3})+(?:,\d+)?|\d+(?:,\d+)?"),
    "decimal point": re.compile(
        r"\d{1,3}(?:[, '’]\d{3})+(?:\.\d+)?|\d{1,2}(?:,\d{2})*,\d{3}(?:\.\d+)?|\d+(?:\.\d+)?"
    ),
}
#: A number with a short unit before or behind it: "CHF 145.–", "8 412,6 Kč", "(1,17,100)", "+4,9 %".
_MARKED_NUMBER = re.compile(
    r"(?P<open>\()? ?(?P<sign>[-+−–]?) ?(?:[^\W\d_]{1,3}\.? |[$€£¥₹])? ?(?P<sign2>[-+−–]?) ?"
    r"(?P<digits>\d[\d.,'’ ]*?)(?:[.,][-–—]{1,3})?(?: [^\W\d_]{1,3}\.?| ?[$€£¥₹%‰])? ?\)?(?P<last>[-−–]?)"
    r"(?: ?[*†‡§¹²³]+| \d{1,2}\))?"  # the mark of a note
)
_NUMERIC_DAY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})")
#: A day in digits alone: 20240702.
_DIGITS_DAY = re.compile(r"((?:19|20)\d{2})(\d{2})(\d{2})")


def _read_marked_number(cell: str, notation: Notation) -> float | None:
    match = _MARKED_NUMBER.fullmatch(" ".join(cell.split()))
    if match is None or not _GROUPED[notation].fullmatch(match["digits"]):
        return None
    mark = "," if notation == "decimal comma" else "."
    digits = "".join(character for character in match["digits"] if character.isdigit() or character == mark)
    is_negative = any(match[part] and match[part] not in "+" for part in ("open", "sign", "sign2", "last"))
    return float(digits.replace(",", ".")) * (-1 if is_negative else 1)


def _read_numeric_day(cell: str, notation: Notation) -> date | None:
    match = _NUMERIC_DAY.fullmatch(cell.strip())
    if match is None:
        return None
    day, month = int(match[1]), int(match[3])
    try:
        return date(_whole_year(match[4]), *((month, day) if notation == "day first" else (day, month)))
    except ValueError:
        return None


def _whole_year(digits: str) -> int:
    """Return a year; two digits are one from 1930 to 2029, as spreadsheets read them."""
    return int(digits) + (0 if len(digits) > 2 else 2000 if int(digits) < 30 else 1900)


def write_year(cell: str) -> str:
    """Return a day as it is written, with all digits of its year.

    >>> write_year("01.05.24"), write_year("5/1/1999")
    ('01.05.2024', '5/1/1999')
    """
    match = _NUMERIC_DAY.fullmatch(cell.strip())
    return cell.strip()[: match.start(4)] + str(_whole_year(match[4])) if match else cell


def _read_digits_day(cell: str, notation: Notation) -> date | None:
    match = _DIGITS_DAY.fullmatch(cell.strip())
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


_NOTATIONS: dict[str, Callable[..., Value]] = {
    "decimal comma": _read_marked_number,
    "decimal point": _read_marked_number,
    "day first": _read_numeric_day,
    "month first": _read_numeric_day,
    "digits": _read_digits_day,
}


def _vote_for_notation(counts: Counter[str]) -> tuple[ColumnType, Notation] | None:
    """Return the type and the notation of a column that is neither of English numbers nor of ISO days: those that
    read most of its filled cells. Where days fit both ways, the day comes first."""
    filled = {cell: count for cell, count in counts.items() if read_cell(cell).kind != "empty"}
    least = max(_TYPED_SHARE * sum(filled.values()), 1)
    votes: list[tuple[int, ColumnType, Notation]] = [
        (
            sum(count for cell, count in filled.items() if _NOTATIONS[notation](cell, notation) is not None),
            type,
            notation,
        )
        for type, notation in _VOTERS
    ]
    count, type, notation = max(votes, key=lambda vote: vote[0])
    return (type, notation) if count >= least else None


_VOTERS: tuple[tuple[ColumnType, Notation], ...] = (
    ("date", "day first"),
    ("date", "month first"),
    ("number", "decimal point"),
    ("number", "decimal comma"),
)


def _is_code(cell: str) -> bool:
    """Return whether a cell is a code of digits: 00501 as a number would lose its zeros."""
    return cell.isdigit() and (len(cell) > _MOST_DIGITS or (len(cell) > 1 and cell[0] == "0"))


def _are_identifiers(counts: Counter[str]) -> bool:
    """Return whether cells are numbers that count or measure nothing: whole, long, of one length, not all round, and
    either close together, as those of a series are, or all with a check digit. A table that refers to rows of another
    repeats them."""
    cells = [cell for cell in counts if cell.isdecimal()]
    are_alike = all(len(cell) == len(cells[0]) >= _LEAST_DIGITS for cell in cells)
    if not are_alike or len(cells) < _FEWEST_IDENTIFIERS or all(cell.endswith("00") for cell in cells):
        return False
    if any(read_cell(cell).kind != "empty" for cell in counts if not cell.isdecimal()):
        return False
    numbers = sorted(map(int, cells))
    are_checked = len(cells[0]) >= _CHECKED_DIGITS and any(
        all(_has_check_digit(cell, added) for cell in cells) for added in _CHECKS
    )
    return are_checked or numbers[-1] - numbers[0] < numbers[0] / 100


#: What each digit in an even place, from the right, adds to a sum that ends in 0: of article numbers (ISBN, GTIN), of
#: numbers of cards.
_CHECKS = "0369258147", "0246813579"


def _has_check_digit(digits: str, added: str) -> bool:
    own = (added[int(digit)] if place % 2 else digit for place, digit in enumerate(reversed(digits)))
    return sum(map(int, own)) % 10 == 0


def _read_number(cell: str) -> float | None:
    return float(cell.replace(",", "")) if _PLAIN_NUMBER.fullmatch(cell) else read_cell(cell).number


def table_from_node(node: Node, name: str = "", number: int = 0) -> DataTable:
    """Return the table of a table node; ``name`` is its view, ``number`` its number in its document."""
    key, _, position = node.id.rpartition(":")
    table = build_data_table(read_markdown(node.text) or Table((), ()), f"{key}:", int(position) + 1)
    return replace(
        table,
        name=name,
        id=node.id,
        document=node.document,
        document_name=node.document_name,
        number=number,
        page=node.page,
    )


#: A table of more rows is a list of records: no row heads a group or holds a total.
_MAX_STATEMENT = 5_000
_RECORD = RowPlace()


def build_data_table(table: Table, prefix: str = "", first: int = 0) -> DataTable:
    """Return a table as typed columns. The id of the n-th row (from 0) is ``prefix`` and ``first + n``."""
    width = max([len(table.header), *map(len, table.rows)], default=0)
    padded = tuple(row + ("",) * (width - len(row)) for row in table.rows)
    header = table.header + ("",) * (width - len(table.header))
    count = 0 if table.columns or table.headers_uncertain else _count_more_header_rows(header, padded)
    header = _join_header([header, *padded[:count]])
    places = (_RECORD,) * (len(padded) - count) if len(padded) > _MAX_STATEMENT else table.row_places
    table = complete_table(replace(table, header=header, rows=padded[count:], row_places=places))
    body = tuple(
        DataRow(
            number,
            f"{prefix}{first + count + number}",
            tuple("" if cell == NO_RESULT else cell for cell in row) if NO_RESULT in row else row,
            place,
        )
        for number, (row, place) in enumerate(zip(table.rows, table.row_places, strict=True))
        if place.kind != "heading"
    )
    headers = [" ".join(" ".join(column.path).split()) for column in table.columns]
    if table.headers_uncertain:
        headers = [""] * width
    columns = tuple(
        _describe_column(name, headers[place], [row.cells[place] for row in body], table, place)
        for place, name in enumerate(_column_names(headers))
    )
    columns = _agree_on_notation(columns, body)
    return DataTable("", "", "", "", 0, None, table, columns, _mark_total(columns, body))


def _mark_total(columns: Sequence[DataColumn], rows: tuple[DataRow, ...]) -> tuple[DataRow, ...]:
    """Return rows of which the last or first is a total, whatever it is called, if no row is one by its name and
    several of its numbers are the sums of those of all others."""
    if not 3 < len(rows) <= _MAX_STATEMENT or any(row.is_total for row in rows):
        return rows
    numbers = [
        convert_column([row.cells[place] for row in rows], "number", column.notation)
        for place, column in enumerate(columns)
        if column.type == "number"
    ]
    for place in (len(rows) - 1, 0):
        totals = [own[place] for own in numbers]
        sums = [
            math.fsum(value for value in own[:place] + own[place:][1:] if isinstance(value, float))
            for own in numbers
        ]
        matches = [
            isinstance(total, float) and bool(total) and math.isclose(total, own)
            for total, own in zip(totals, sums, strict=True)
        ]
        if sum(matches) > 1:
            total = replace(rows[place], place=replace(rows[place].place, kind="total"))
            return (*rows[:place], total, *rows[place + 1 :])
    return rows


def _agree_on_notation(columns: tuple[DataColumn, ...], rows: Sequence[DataRow]) -> tuple[DataColumn, ...]:
    """Return columns of which those with points before three digits alone ("1.046") are read as the columns with a
    decimal comma beside them are."""
    if not any(column.notation == "decimal comma" for column in columns):
        return columns
    agreed = []
    for place, column in enumerate(columns):
        pointed = [row.cells[place] for row in rows if "." in row.cells[place]]
        if column.type == "number" and not column.notation and all(map(_POINTED.fullmatch, pointed)):
            column = replace(column, notation="decimal comma")
        agreed.append(column)
    return tuple(agreed)


_POINTED = re.compile(r"\D*\d{1,3}(?:\.\d{3})+\D*")


#: A cell of a header: a period, or a remark on units.
_HEADER_CELL = re.compile(
    r"(?:FY ?|F)?(?:19|20)\d\d[AEFP]?|FY? ?\d\d|[A-Za-z]+\.? \d{1,2},? (?:19|20)\d\d|\D*\b(?:19"
    r"|20)\d\d\b\D*|.*(?:in (?:thousand|million|billion)|000).*|[$€£¥]m?|\W+",
    re.IGNORECASE,
)
#: A period that heads a column.
_PERIOD_CELL = re.compile(
    r"(?:[A-Za-z]+\.? \d{1,2},? |FY ?|F|(?:fiscal|calendar|year) |[A-Za-z]+ |Q[1-4] )?(?:(?:19|20)\d\d"
    r"|(?<=F)\d\d|(?<=FY)\d\d)"
    r"[AEFP]?(?: ?\(\w{1,2}\))*",
    re.IGNORECASE,
)
_MAX_HEADER_ROWS = 5


def _count_more_header_rows(header: Sequence[str], rows: Sequence[tuple[str, ...]]) -> int:
    """Return how many of the first rows belong to the header: they have no label, or one that names a unit or heads
    periods, and no value. The rows of units below the periods ("£m") are such rows. A row with a label that fills no
    blank of the header has nothing but periods, or it is one of the table: a year may stand in it."""
    count = 0
    has_names = any(cell.strip() for cell in header[1:])
    has_periods = any(_PERIOD_CELL.fullmatch(cell.strip()) for cell in header[1:])
    for row in rows[:_MAX_HEADER_ROWS]:
        label, cells = row[0].strip() if row else "", [cell.strip() for cell in row[1:] if cell.strip()]
        names_unit = bool(read_scale(label)) or label.startswith("(")
        periods = [bool(_PERIOD_CELL.fullmatch(cell)) for cell in cells]
        are_names = all(
            is_period or _HEADER_CELL.fullmatch(cell) or _is_name(cell)
            for is_period, cell in zip(periods, cells, strict=True)
        )
        are_periods = are_names and any(periods)
        if label and not names_unit:
            # The row of the periods may be labelled ("Quarters ended"), and so may the only row of names. A row that
            # names every column which the header leaves blank, the first among them, stands below headings of groups.
            above = [header, *rows[:count]]
            blank = [place for place in range(len(row)) if not any(each[place].strip() for each in above)]
            names_blank = 2 * len(blank) > len(row) and blank[0] == 0 and all(row[place] for place in blank)
            is_header = are_names and (
                (are_periods and not has_periods and (all(periods) or _fills_blank(header, row)))
                or (not has_names and len(cells) > 1)
                or (has_names and names_blank and read_cell(label).kind == "text")
            )
        else:
            is_header = bool(cells or names_unit) and are_names
        if not is_header:
            break
        has_names, has_periods = True, has_periods or are_periods
        count += 1
    return count if count < len(rows) else 0


def _fills_blank(header: Sequence[str], row: Sequence[str]) -> bool:
    return any(cell.strip() and not name.strip() for name, cell in zip(header, row, strict=True))


def _is_name(cell: str) -> bool:
    """Return whether a cell is neither a number nor a day, in whatever notation; "VAT 19 %" is a name."""
    is_value = _MARKED_NUMBER.fullmatch(cell) or _NUMERIC_DAY.fullmatch(cell)
    return read_cell(cell).kind == "text" and not (is_value and not any(map(str.isalpha, cell)))


def _join_header(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return header rows as one: each column's names from top to bottom. A name with blanks to its right spans the
    columns below which the next row has names of their own."""
    if len(rows) == 1:
        return tuple(rows[0])
    spread: list[list[str]] = []
    for number, row in enumerate(rows):
        cells, below = list(row), rows[number + 1 :]
        for place in range(2, len(cells)):
            if (
                not cells[place].strip()
                and cells[place - 1].strip()
                and any(under[place].strip() for under in below)
            ):
                cells[place] = cells[place - 1]
        spread.append(cells)
    return tuple(
        " ".join(dict.fromkeys(name for name in column if name.strip()))
        for column in zip(*spread, strict=True)
    )


def table_from_grid(rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of bare cells: title lines become its caption, the first rows its header."""
    grid = trim_grid([tuple(cell.strip() for cell in row) for row in rows])
    titles, count = split_titles(grid)
    body = tuple(grid[count:])
    width = max(map(len, body), default=0)
    count = _count_more_header_rows(("",) * width, body)
    header = _join_header([("",) * width, *body[:count]])
    return Table(header if any(header) else (), body[count:], " – ".join(titles))


def _describe_column(name: str, header: str, cells: Sequence[str], table: Table, place: int) -> DataColumn:
    counts = Counter(cells)
    plain = sum(count for cell, count in counts.items() if _PLAIN_NUMBER.fullmatch(cell))
    unread = [cell for cell in counts if not _PLAIN_NUMBER.fullmatch(cell)]
    if (
        len(unread) > _TYPE_SAMPLE
    ):  # evenly spread; the cells that are left out count like those that are read
        share = len(unread) // _TYPE_SAMPLE
        unread, counts = unread[::share], Counter({cell: count * share for cell, count in counts.items()})
    others = {cell: read_cell(cell) for cell in unread}
    filled = plain + sum(counts[cell] for cell, value in others.items() if value.kind != "empty")
    numbers = plain + sum(counts[cell] for cell, value in others.items() if value.kind == "number")
    is_code = any(map(_is_code, counts)) or _are_identifiers(counts)
    days = [_read_digits_day(cell, "digits") for cell in counts if _PLAIN_NUMBER.fullmatch(cell)]
    if days and plain == filled and all(days):
        return DataColumn(name, header, "date", notation="digits")
    if filled and not is_code and numbers >= _TYPED_SHARE * filled:
        units = {value.unit for value in others.values() if value.unit}
        scales = {value.scale for value in others.values() if value.kind == "number"} or {1.0}
        column = table.columns[place]
        unit = next(iter(units)) if len(units) == 1 else "" if units else column.unit
        printed = next(iter(scales)) if len(scales) == 1 else 1.0
        are_years = names_years(header)
        return DataColumn(
            name,
            header,
            "number",
            unit,
            1.0 if unit in {"%", "x"} or are_years else printed if printed != 1.0 else column.scale,
        )
    if filled and sum(counts[cell] for cell in others if parse_day(cell)) >= _TYPED_SHARE * filled:
        return DataColumn(name, header, "date")
    if not is_code and (vote := _vote_for_notation(counts)):
        type, notation = vote
        column = table.columns[place]
        unit, scale = (column.unit, column.scale) if type == "number" else ("", 1.0)
        return DataColumn(name, header, type, unit, scale, notation)
    return DataColumn(name, header, "text")


def _column_names(headers: Sequence[str]) -> list[str]:
    """Return SQL names for columns: ``label`` for a first column without a header, each name once."""
    names: list[str] = []
    for place, header in enumerate(headers):
        name = identifier(header) or ("label" if place == 0 else f"column_{place + 1}")
        candidate, count = name, 2
        while candidate in names:
            candidate, count = f"{name}_{count}", count + 1
        names.append(candidate)
    return names


def identifier(text: str) -> str:
    """Return a text as a name for SQL: lower case, words joined by ``_``; "" for a text without letters and digits.

    >>> identifier("Net sales (in $ millions)"), identifier("2019")
    ('net_sales_in_millions', '2019')
    """
    name = re.sub(r"[^\w]+", "_", text.lower()).strip("_")
    return (
        name if len(name) <= _NAME_LENGTH else name[:_NAME_LENGTH].rpartition("_")[0] or name[:_NAME_LENGTH]
    )


def name_tables(nodes: Iterable[Node]) -> list[tuple[str, int, Node]]:
    """Return for table nodes, in document order, the name of its view, its number in its document, and the node.

    The name is that of the file; with several tables the caption is added (of a workbook the sheet), or, where it is
    long, missing or not unique, ``t`` and the number. Files of the same name have the beginning of their keys added.
    The names follow from what the base holds now, not from how it came to hold it.
    """
    by_document: dict[str, list[Node]] = {}
    for node in nodes:
        by_document.setdefault(node.document, []).append(node)
    stems = {key: _file_stem(tables[0].document_name) for key, tables in by_document.items()}
    shared = {stem for stem, count in Counter(stems.values()).items() if count > 1}
    named: list[tuple[str, int, Node]] = []
    names: set[str] = set()
    for key in sorted(by_document, key=lambda key: (stems[key], key)):
        stem = f"{stems[key]}_{key[:6]}" if stems[key] in shared else stems[key]
        tables = by_document[key]
        parts = [_table_part(node) for node in tables]
        counts = Counter(parts)
        for number, (node, part) in enumerate(zip(tables, parts, strict=True), start=1):
            name = stem if len(tables) == 1 else f"{stem}_{part}" if part and counts[part] == 1 else ""
            if not name or name in names:
                name = f"{stem}_t{number}"
            names.add(name)
            named.append((name, number, node))
    return named


#: A caption that is longer than this, as a name, names no view.
_PART_LENGTH = 32


def _table_part(node: Node) -> str:
    is_sheet = node.document_name.lower().endswith((".xlsx", ".xlsm"))
    part = identifier(node.headings[-1] if is_sheet and node.headings else node.name)
    return part if len(part) <= _PART_LENGTH else ""


def _file_stem(name: str) -> str:
    stem = identifier(name.rpartition(".")[0] or name) or "table"
    return f"t_{stem}" if stem[0].isdigit() else stem
