"""Tables as data: typed columns, read from the Markdown that a table node has as its text.

Nothing is stored twice. A document's table nodes hold every cell as printed, so a :class:`DataTable` is a function of
one node, and goes with its document. The rows of a table follow its node in the document's order, so the n-th row
(from 1) of the table ``key:p`` is the node ``key:p+n``: each value has a source that can be shown.

Numbers keep the size that is printed; what they count in (``$``, ``%``, ``million``) belongs to their column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from clew.core.types import Node

ColumnType = Literal["number", "date", "text"]
Value = float | date | str | None

_SEPARATOR = re.compile(r"^\|(?: --- \|)+$", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\) \| ")
_DASHES = frozenset({"-", "–", "—", "−", "--", "---", "- -"})
_NO_VALUE = frozenset({"", "n/a", "na", "nm", "n.m.", "n/m", "*", "**", "nil"}) | _DASHES
_CURRENCY = r"US\$|A\$|C\$|HK\$|S\$|NT\$|RMB|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|[$€£¥₹₩]"
_AMOUNT = re.compile(
    rf"^(?P<sign>[-−–+(]?)\s*(?P<unit>{_CURRENCY})?\s*(?P<inner>[-−–+(]?)\s*"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:[' \u00a0\u202f]\d{3})+(?:\.\d+)?"
    r"|\d+(?:\.\d+)?|\.\d+)(?:[eE](?P<exponent>[+-]?\d+))?\s*\)?\s*"
    rf"(?P<after>%|percent|bps|x|{_CURRENCY})?\s*\)?\s*"
    r"(?P<scale>thousands?|millions?|billions?|trillions?|mn|bn|k|m|b)?\s*(?P<note>\(\w{1,2}\)|\[\w{1,2}\]|\*+)?$",
    re.IGNORECASE,
)
#: A scale as it is written in captions and headers: "(in millions)", "$ million", "€m", "in thousands of dollars".
_SCALE = re.compile(
    r"\b(?:in|of|us)?\s*(?:[$€£¥]|US\$|RMB|USD|EUR|dollars in)?\s*"
    r"(?:(?P<thousand>thousands?|000s|000['’]s)|(?P<million>millions?|mn|mm)|(?P<billion>billions?|bn))\b"
    r"|[$€£¥]\s?(?:(?P<k>k|'?000)|(?P<m>m))(?![a-z\d])",
    re.IGNORECASE,
)
_SCALES = {
    "thousand": "thousand",
    "k": "thousand",
    "million": "million",
    "m": "million",
    "billion": "billion",
}
_WORDS_OF_SCALE = {"t": "thousand", "k": "thousand", "m": "million", "b": "billion"}
SCALE_FACTORS = {"": 1.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "percent": 0.01}
_UNIT = re.compile(rf"(?:{_CURRENCY})|%")
_TOTAL = re.compile(r"^(?:grand |sub-?|net )?totals?\b", re.IGNORECASE)
_YEAR = re.compile(r"^(?:FY ?)?(?:19|20)\d\d[AEFP]?$")
_MONTHS = {
    name: number
    for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)
}
_DATES = (
    re.compile(r"^(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?:[T ]00:00(?::00)?)?$"),
    re.compile(r"^(?P<name>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})$"),
    re.compile(r"^(?P<day>\d{1,2})\.? (?P<name>[A-Za-z]{3,9})\.?,? (?P<year>\d{4})$"),
)
#: A column is one of numbers, or dates, if at least this share of its filled cells is.
_TYPED_SHARE = 0.75
#: Names of views and columns are cut to so many characters.
_NAME_LENGTH = 48


@dataclass(frozen=True, slots=True)
class Amount:
    """A number as a table prints it: ``value`` with its sign, ``unit`` (``$``, ``%``, "" for none), ``scale``
    (``million``, "" for none), and how many ``decimals`` are printed."""

    value: float
    unit: str = ""
    scale: str = ""
    decimals: int = 0


def parse_amount(text: str) -> Amount | None:
    """Return the number that a cell consists of, None for another cell. Parentheses are a minus sign.

    >>> parse_amount("$ (1,452.4)").value, parse_amount("(12)%").unit, parse_amount("€5.2m").scale, parse_amount("Q3")
    (-1452.4, '%', 'million', None)
    """
    match = _AMOUNT.match(text.strip())
    if match is None:
        return None
    digits = match["digits"]
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+", digits):  # 1.234.567,8
        digits = digits.replace(".", "").replace(",", ".")
    digits = re.sub(r"[,' \u00a0\u202f]", "", digits)
    value = float(digits + (f"e{match['exponent']}" if match["exponent"] else ""))
    negative = bool({match["sign"], match["inner"]} & {"-", "−", "–", "("})
    after = (match["after"] or "").lower()
    unit = "%" if after == "percent" else after if after in {"%", "bps", "x"} else match["unit"] or after
    scale = _WORDS_OF_SCALE.get((match["scale"] or " ")[0].lower(), "")
    if (match["scale"] or "").lower().startswith("tr"):
        scale = "trillion"
    return Amount(-value if negative else value, unit, scale, len(digits.partition(".")[2]))


def parse_day(text: str) -> date | None:
    """Return the day that a cell consists of, None for another cell.

    >>> parse_day("2023-05-01"), parse_day("May 1, 2023"), parse_day("2023")
    (datetime.date(2023, 5, 1), datetime.date(2023, 5, 1), None)
    """
    for form in _DATES:
        if match := form.match(text.strip()):
            parts = match.groupdict()
            month = _MONTHS.get((parts.get("name") or "")[:3].lower()) or int(parts.get("month") or 0)
            try:
                return date(int(parts["year"]), month, int(parts["day"]))
            except ValueError:
                return None
    return None


def find_scale(text: str) -> str:
    """Return the scale that a caption, header or sentence announces: thousand, million, billion, or "".

    >>> find_scale("Sales (in millions)"), find_scale("$ million"), find_scale("US$'000"), find_scale("Sales")
    ('million', 'million', 'thousand', '')
    """
    match = _SCALE.search(text)
    return _SCALES[match.lastgroup] if match and match.lastgroup else ""


def read_markdown(text: str) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Return caption, header and rows of the Markdown of a table; three empty values for another text."""
    separator = _SEPARATOR.search(text)
    if separator is None:
        return "", (), []
    caption, _, header = text[: separator.start()].rstrip("\n").rpartition("\n")
    lines = text[separator.end() :].strip("\n").split("\n")
    rows = [_split_line(line) for line in lines if line.startswith("|")]
    return caption.strip(), _split_line(header), rows


def _split_line(line: str) -> tuple[str, ...]:
    inner = line[2:-2]
    if "\\|" not in inner:
        return tuple(inner.split(" | "))
    return tuple(cell.replace("\\|", "|") for cell in _CELL_END.split(inner))


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``name`` is its identifier in SQL, ``header`` what is printed above it. ``unit`` and ``scale`` are
    those of its numbers, "" where they have none or several."""

    name: str
    header: str
    type: ColumnType
    unit: str = ""
    scale: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the fields."""
        return {
            "name": self.name,
            "header": self.header,
            "type": self.type,
            "unit": self.unit,
            "scale": self.scale,
        }


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: the id of its node, its cells as printed, the heading of the group of rows that it is in ("" for none),
    and whether it holds the total of others."""

    id: str
    cells: tuple[str, ...]
    group: str = ""
    is_total: bool = False

    @property
    def label(self) -> str:
        """The first cell."""
        return self.cells[0] if self.cells else ""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table of a document as typed columns. ``name`` is its view in SQL, ``number`` counts the tables of the
    document from 1. Rows that only head a group are not among ``rows``: the rows below have them as ``group``."""

    name: str
    id: str
    document: str
    document_name: str
    number: int
    page: int | None
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    def values(self, position: int) -> list[Value]:
        """Return the typed values of a column, one for each row; None for an empty cell or one of another type."""
        return convert_column([row.cells[position] for row in self.rows], self.columns[position].type)

    def to_dict(self) -> dict[str, Any]:
        """Return the place and the columns, and how many rows there are."""
        return {
            "table": self.name,
            "id": self.id,
            "document": self.document_name,
            "number": self.number,
            "page": self.page,
            "caption": self.caption,
            "rows": len(self.rows),
            "columns": [column.to_dict() for column in self.columns],
        }


def convert_column(cells: Sequence[str], type: ColumnType) -> list[Value]:
    """Return the cells of a column as values of a type. A dash is no value: what it stands for, the table says."""
    if type == "text":
        return [cell or None for cell in cells]
    known: dict[str, Value] = {}
    for cell in set(cells):
        if type == "date":
            known[cell] = parse_day(cell)
        else:
            amount = parse_amount(cell)
            known[cell] = None if amount is None else amount.value
    return [known[cell] for cell in cells]


def table_from_node(node: Node, name: str = "", number: int = 0, context: str = "") -> DataTable:
    """Return the table of a table node. ``context`` is text that may announce a scale: the sentence above it."""
    caption, header, rows = read_markdown(node.text)
    key, _, position = node.id.rpartition(":")
    ids = [f"{key}:{int(position) + place}" for place in range(1, len(rows) + 1)]
    table = build_table(header, rows, caption=caption, ids=ids, context=context)
    return replace(
        table,
        name=name,
        id=node.id,
        document=node.document,
        document_name=node.document_name,
        number=number,
        page=node.page,
    )


def build_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    ids: Sequence[str] = (),
    context: str = "",
) -> DataTable:
    """Return a table of cells as typed columns; ``ids`` are those of the nodes of its rows, if there are any."""
    width = max([len(header), *map(len, rows)], default=0)
    padded = [tuple(row) + ("",) * (width - len(row)) for row in rows]
    headers = [*header, *[""] * (width - len(header))]
    body = tuple(_group_rows(padded, list(ids) or [""] * len(padded)))
    scale = find_scale(" ".join((caption, *headers[:1], *context.split("\n")[-1:])))
    names = _column_names(headers)
    columns = tuple(
        _describe_column(names[place], headers[place], [row.cells[place] for row in body], scale)
        for place in range(width)
    )
    return DataTable("", "", "", "", 0, None, caption, columns, body)


def _group_rows(rows: Sequence[tuple[str, ...]], ids: Sequence[str]) -> Iterator[TableRow]:
    """Yield the rows that hold values, each with the heading of its group. A total closes its group."""
    group = ""
    has_groups = any(len(row) > 1 and not any(cell.strip() for cell in row[1:]) for row in rows)
    for row, id in zip(rows, ids, strict=True):
        if has_groups and len(row) > 1 and row[0].strip() and not any(cell.strip() for cell in row[1:]):
            group = row[0].strip().rstrip(":")
            continue
        is_total = bool(_TOTAL.match(row[0])) if row else False
        yield TableRow(id, row, group, is_total)
        if is_total:
            group = ""


def _describe_column(name: str, header: str, cells: Sequence[str], scale: str) -> Column:
    distinct = Counter(cell for cell in cells if cell.strip().lower() not in _NO_VALUE)
    total = sum(distinct.values())
    if not total:
        return Column(name, header, "text")
    amounts = {cell: amount for cell in distinct if (amount := parse_amount(cell)) is not None}
    # 00501 is a code: as a number it would lose its zeros.
    is_code = any(len(cell) > 1 and cell[0] == "0" and cell.isdigit() for cell in distinct)
    if not is_code and sum(distinct[cell] for cell in amounts) >= _TYPED_SHARE * total:
        units = Counter(unit for amount in amounts.values() if (unit := amount.unit))
        scales = {amount.scale for amount in amounts.values() if amount.scale}
        in_header = _UNIT.search(header)
        unit = in_header[0] if in_header else next(iter(units)) if len(units) == 1 else ""
        only_scale = next(iter(scales)) if len(scales) == 1 else ""
        are_years = all(_YEAR.match(cell) for cell in amounts)
        own_scale = only_scale or find_scale(header) or ("" if unit in {"%", "x"} or are_years else scale)
        return Column(name, header, "number", unit, own_scale)
    if sum(count for cell, count in distinct.items() if parse_day(cell)) >= _TYPED_SHARE * total:
        return Column(name, header, "date")
    return Column(name, header, "text")


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
