"""The values of table cells: numbers with sign, unit and scale, dates, and cells without a value.

Filings print a negative number in parentheses, its unit beside it or once for a column, and its scale ("in millions")
in the title, in a header or in the label of a row. :func:`cell_value` puts these together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from clew.core.types import Column, RowPlace, Table

_CURRENCY = r"US\$|[A-Z]{1,2}\$|[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|CAD|AUD)(?![A-Za-z])"
_AMOUNT = re.compile(
    rf"(?P<open>\()? ?(?P<sign>[+\-−–—])? ?(?P<unit>{_CURRENCY})? ?(?P<inner>\()? ?(?P<sign2>[+\-−–])? ?"
    rf"(?P<digits>\d{{1,3}}(?:[,'’\s\u00a0]\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?"
    rf"|\.\d+)(?P<exponent>[eE][+-]?\d+)?"
    rf" ?(?P<after>%|{_CURRENCY}|x\b|bps\b|pts?\b\.?|basis points|million|billion|thousand|trillion"
    rf"|bn\b|mn?\b|k\b)?"
    rf"(?P<close>[\s)]*)(?P<percent>%?) ?(?P<note>(?:\(\w{{1,2}}\)|[*†‡§]|(?<!10)(?<![⁰¹²³⁴-⁹])[⁰¹²³⁴-⁹]{{1,2}})*)",
    re.IGNORECASE,
)
#: Stands in the cell of a formula whose result the file does not hold.
NO_RESULT = "(formula without stored result)"
#: What stands where a value is missing or zero.
_EMPTY = re.compile(
    rf"(?:[$€£]\s*)?[-–—−]+\s*%?|n/?a|n/m|nm|\*+|\.{{2,}}|{re.escape(NO_RESULT)}|", re.IGNORECASE
)
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?\s+(?:\d{1,2},?\s+)?(?:19|20)\d\d"
    r"|\d{1,2}\.?\s+(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?,?\s+(?:19|20)\d\d",
    re.IGNORECASE,
)
_SCALES = {
    "thousand": 1e3, "k": 1e3, "000": 1e3, "million": 1e6, "m": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9,
    "trillion": 1e12,
}  # fmt: skip
_SCALE = re.compile(
    rf"\b(?:in|expressed in|amounts? in|figures in)\s+(?:{_CURRENCY}|us\s+|u\.s\.\s+|dollars?\s+"
    rf"|euros?\s+)*\s*"
    r"(?P<word>thousand|million|billion|trillion)s?\b"
    rf"|\b(?P<bare>thousands|millions|billions)\s+of\s+(?:u\.?s\.?\s+)?(?:dollars|euros?|pounds|yen"
    rf"|shares|tons|tonnes)"
    rf"|\((?:{_CURRENCY})?\s*(?P<bracket>thousands?|millions?|billions?)\b"
    rf"|(?:{_CURRENCY})\s*(?P<currency>thousands?|millions?|billions?|bn|mn?|000)s?\b"
    r"|\((?P<zeros>000)(?:['’]?s|\s+omitted)?\)|\b(?P<zeros2>000)['’]s\b"
    r"|(?:\b(?:USD|EUR|GBP|RMB|CHF|A|US)|[$€£]){1,3} ?['’‘](?P<zeros3>000|million|thousand)\b"
    r"|\b(?P<joined>inthousands|inmillions)\b|\b(?:USD|EUR|GBP|RMB|CHF|DKK|SEK|NOK) ?(?P<code>mn?|bn|k)\b",
    re.IGNORECASE,
)
_UNITS = (
    ("%", re.compile(r"%|\bper\s?cent(?:age)?\b(?!\s+points?)", re.IGNORECASE)),
    ("$", re.compile(r"\$|\bU\.?S\.?\s+dollars?\b|\bdollars?\b|\bUSD\b", re.IGNORECASE)),
    ("€", re.compile(r"€|\beuros?\b|\bEUR\b")),
    ("£", re.compile(r"£|\bGBP\b|\bpounds sterling\b")),
    ("¥", re.compile(r"¥|\bJPY\b|\byen\b")),
)
_SHARES = re.compile(
    r"\b(?:number|thousands|millions) of (?:shares|units|awards|options)\b|^(?:shares|units)$", re.I
)
#: Rows whose numbers are not in the table's scale.
_UNSCALED = re.compile(
    r"\bper\s+(?:common\s+|ordinary\s+|diluted\s+|basic\s+|class\s+\w\s+)?(?:share|unit|ads|barrel|ton|tonne|day|room)\b"
    r"|\bratios?\b|\bmargin\b|\bper\s?cent(?:age)?\b|%|\brates?\W*(?:$|\()"
    r"|\b(?:number|headcount) of employees\b|\bbasis points\b|\bEPS\b",
    re.IGNORECASE,
)
_PERCENT_LABEL = re.compile(r"%|\bper\s?cent(?:age)?\b|\bmargin\b", re.IGNORECASE)
#: Rows of counts, in which a currency of the column does not hold.
_COUNT = re.compile(
    r"\bshares\s+(?:used|outstanding)\b|\b(?:average|potential|dilutive|number of)[\w\s-]*\bshares\b"
    r"|\bnumber of\b|\b(?:employees|headcount|in years|\(years\))",
    re.IGNORECASE,
)
_PER_SHARE = re.compile(r"\bper\s+(?:\w+\s+){0,2}share\b|\bEPS\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CellValue:
    """The value of a cell. ``number`` is the printed number with its sign: "(3,485)" is -3485. An ``empty`` cell is
    blank or has a mark for a missing value ("—", "n/a"). ``text`` is the printed text. ``unit`` and ``scale`` come
    from the cell, else from its row, else from its column; percents have scale 1."""

    kind: Literal["empty", "number", "date", "text"]
    text: str
    number: float | None = None
    unit: str = ""
    scale: float = 1.0

    @property
    def amount(self) -> float | None:
        """The number times the scale."""
        return None if self.number is None else self.number * self.scale


def read_cell(text: str) -> CellValue:
    """Return what a cell says by itself.

    >>> [read_cell(text).amount for text in ("(3,485)", "$ 1.2 million", "(4.1)%", "-", "Total")]
    [-3485.0, 1200000.0, -4.1, None, None]
    """
    text = " ".join(text.split())
    if _EMPTY.fullmatch(text):
        return CellValue("empty", text)
    if _DATE.fullmatch(text):
        return CellValue("date", text)
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return CellValue("text", text)
    is_negative = bool(match["sign"] in {"-", "−", "–", "—"} or match["sign2"] in {"-", "−", "–"})
    is_negative ^= bool((match["open"] or match["inner"]) and ")" in match["close"])
    digits = re.sub(r"[,'’\s]", "", match["digits"]) + (match["exponent"] or "")
    after = (match["after"] or "").rstrip(".").lower()
    is_scale = after in _SCALES and (len(after) > 1 or bool(match["unit"]))  # "5 m" is a length, "$5m" is not
    scale = _SCALES[after] if is_scale else 1.0
    unit = "%" if "%" in {after, match["percent"]} else match["unit"] or ("" if is_scale else after)
    number = float(digits)
    names = {"us$": "$", "usd": "$", "eur": "€", "gbp": "£", "jpy": "¥", "pt": "points", "pts": "points"}
    return CellValue("number", text, -number if is_negative else number, names.get(unit.lower(), unit), scale)


def read_scale(text: str) -> float | None:
    """Return the scale that a title or header gives, None where it gives none.

    >>> read_scale("(in millions, except per share data)"), read_scale("$000s"), read_scale("Revenue")
    (1000000.0, 1000.0, None)
    """
    match = _SCALE.search(text)
    if match is None:
        return None
    word = next(filter(None, match.groups())).lower().removeprefix("in")
    return _SCALES.get(word) or _SCALES[word.removesuffix("s")]


def read_unit(text: str) -> str:
    """Return the unit that a title or header gives: "%", a currency, "shares"; "" where it gives none or several.

    >>> read_unit("(in millions of U.S. dollars)"), read_unit("% Change"), read_unit("2022")
    ('$', '%', '')
    """
    if _SHARES.search(text):
        return "shares"
    units = [unit for unit, pattern in _UNITS if pattern.search(text)]
    return units[0] if len(units) == 1 else ""


def label_overrides(label: str) -> tuple[str, float | None]:
    """Return the unit and the scale that the label of a row, or a heading above it, gives its numbers.

    >>> label_overrides("Diluted earnings per share"), label_overrides("Gross margin (%)"), label_overrides("Revenue")
    (('', 1.0), ('%', 1.0), ('', None))
    """
    scale = read_scale(label)
    if scale is not None:
        return read_unit(label), scale
    if _COUNT.search(label) and not _PER_SHARE.search(label):
        return ("shares" if "shares" in label.casefold() else "count"), (
            1.0 if "years" in label.casefold() else None
        )
    if not _UNSCALED.search(label):
        return "", None
    return ("%" if _PERCENT_LABEL.search(label) and not _PER_SHARE.search(label) else ""), 1.0


def cell_value(table: Table, row: int, column: int) -> CellValue:
    """Return what a cell of a table says, with the unit and the scale of its row and column."""
    value = read_cell(table.rows[row][column])
    if value.kind != "number":
        return value
    place = table.row_places[row] if table.row_places else RowPlace()
    head = table.columns[column] if table.columns else Column()
    own_scale = value.scale if value.scale != 1.0 else None
    unit = value.unit or ("" if place.unit == "count" else place.unit or head.unit)
    if unit == "%":
        return CellValue("number", value.text, value.number, unit)
    scale = next(scale for scale in (own_scale, place.scale, head.scale) if scale is not None)
    return CellValue("number", value.text, value.number, unit, scale)
