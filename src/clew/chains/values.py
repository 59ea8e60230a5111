"""Values of conditions: numbers and days as they are said."""

from __future__ import annotations

import math
import re
from calendar import month_abbr, month_name, monthrange

from clew.chains.quantifiers import NUMBER_WORDS
from clew.chains.quoting import unquote
from clew.text import parse_number

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,_'’\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_SCALED = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(thousand|million|billion|trillion)\b", re.IGNORECASE)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALES |= {"k": 10**3, "mn": 10**6, "m": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
#: "10m" may be ten metres; after a currency it is ten million.
_SHORT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:(K|k|M|B|(?i:mn|bn|tn|trillion))|(?P<small>[mb]))\b\.?")
_CURRENCY = re.compile(r"(?:US|USD|EUR|GBP)?\s*[$€£]\s*|(?:USD|EUR|GBP)\s*")
#: How a number that is said ends, and one that may have lost this end.
_SCALE = re.compile(r"\d(\s*(?:(?i:thousand|million|billion|trillion|mn|bn|tn)|K|k|M|B))\Z")
_SMALL = re.compile(r"[$€£]?\s*\d{1,3}(?:\.\d+)?")
_UNIT = re.compile(r"(\S+)\s+[^\W\d_]+\.?")
#: The number before what it is of: "50%", "90min", "7/10", "7 out of 10".
_OF = re.compile(
    r"([-+]?\d[\d.,]*)(?:\s*(?:%|percent|per\s+cent)|[^\W\d_]{2,}\.?|\s*/\s*10{1,2}|\s+out\s+of\s+\d+)",
    re.IGNORECASE,
)
_BEFORE_OUR_ERA = re.compile(r"\bB\.?C\.?(?:E\.?)?\Z", re.IGNORECASE)

_MONTHS = {name[:3].casefold(): place for place, name in enumerate(month_abbr) if name}
_MONTH = rf"(?P<month>{'|'.join(name for name in month_name if name)}|(?:{'|'.join(_MONTHS)}|sept)\.?)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DAYS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_MONTH}\s+(?:the\s+)?{_DAY},?\s+(?P<year>\d{{4}})",
        rf"(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH},?\s+(?P<year>\d{{4}})",
        rf"{_MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})",
        r"(?P<year>\d{4})-(?P<month>\d\d)",
    )
)
#: What a number or a day that is said begins with.
VALUE_START = rf"(?:the\s+)?[\"$€£]?\s*[-+.]?(?:\d|{_MONTH.replace('?P<month>', '?:')}\s+\d|US[D$])"


def parse_value(said: str, compared: bool) -> str | float:
    """Return the value that is said: a number where it is one, text where it is quoted or none. Where it is compared,
    the number before a unit counts.

    >>> value_of("1,250,000", False), value_of("2.5 million", False), value_of("90 minutes", True)
    (1250000, 2500000, 90)
    """
    text, marked = unquote(said)
    if marked:
        return text
    number = _number(text)
    if number is None and compared and (match := _UNIT.fullmatch(text)):
        number = _number(match[1])
    return text if number is None else number


def parse_bound(said: str, last: bool = False) -> str | float | None:
    """Return what is compared with: a number, or a day as ``1990-05-04``; None where it is neither. Of a month it is
    the first day, or the ``last``.

    >>> bound("$10M"), bound("50%"), bound("7/10"), bound("May 4, 1990"), bound("May 1990", True), bound("Hours")
    (10000000, 50, 7, '1990-05-04', '1990-05-31', None)
    """
    text, marked = unquote(said)
    text = re.sub(r"\A(?:the\s+)?year\s+(?=\d)", "", text.strip(), flags=re.IGNORECASE)
    if not math.isnan(parse_number(text)) and (marked or _number(text) is None):
        return text if math.isfinite(parse_number(text)) else None
    if text.casefold() in NUMBER_WORDS:
        return NUMBER_WORDS[text.casefold()]
    if (day := _day(text, last)) or _BEFORE_OUR_ERA.search(text):
        return day
    if (number := _number(text)) is None:
        number = _with_unit(text)
    return number


def _with_unit(text: str) -> float | None:
    bare = _CURRENCY.sub("", text, count=1) if _CURRENCY.match(text) else text
    if (number := _number(bare)) is not None:
        return number
    if (match := _SHORT.match(bare)) and (not match["small"] or bare != text):
        return _whole(float(match[1]) * _SCALES[(match[2] or match["small"]).casefold()])
    if (match := _OF.fullmatch(bare)) or (match := _UNIT.fullmatch(bare)):
        return _number(match[1])
    return None


def apply_scale(low: str, high: str) -> str:
    """Return the lower end of a range with the scale that only the higher one has: "between 5 and 10 million".

    >>> scaled("5", "10 million"), scaled("$5", "$10M"), scaled("500,000", "2 million")
    ('5 million', '$5M', '500,000')
    """
    match = _SCALE.search(high)
    return low + match[1] if match and _SMALL.fullmatch(low) else low


def _day(text: str, last: bool) -> str | None:
    for pattern in _DAYS:
        if match := pattern.fullmatch(text):
            said = match.groupdict()
            name = said["month"]
            year, month = int(said["year"]), int(name) if name.isdigit() else _MONTHS[name[:3].casefold()]
            if not (year and 1 <= month <= 12):
                return None
            days = monthrange(year, month)[1]
            day = int(said["day"]) if said.get("day") else days if last else 1
            return f"{year:04}-{month:02}-{day:02}" if 1 <= day <= days else None
    return None


def _number(text: str) -> float | None:
    text = text.lstrip("$€£ ")
    if match := _GROUPED.fullmatch(text):
        text = text.replace(match[1], "")
    if match := _SCALED.fullmatch(text):
        return _whole(float(match[1]) * _SCALES[match[2].casefold()])
    if re.fullmatch(r"[-+]?\d{1,300}", text):
        return int(text)
    return _whole(float(text)) if _NUMBER.fullmatch(text) else None


def _whole(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
