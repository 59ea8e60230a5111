"""Number formats: numbers and dates as a spreadsheet shows them (ECMA-376 part 1, 18.8.30 and 18.8.31).

Formats 14 to 17 and 22 show dates in the order of the computer's locale. They are written as ISO 8601, so that the
text of a document does not depend on where it was read.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

BUILT_IN_FORMATS = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "General", 13: "General", 14: "yyyy-mm-dd", 15: "yyyy-mm-dd", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm",
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: "#,##0;(#,##0);-", 42: "$#,##0;($#,##0);-", 43: "#,##0.00;(#,##0.00);-", 44: "$#,##0.00;($#,##0.00);-",
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "0.0E+0", 49: "@",
}  # fmt: skip
"""The formats that a workbook refers to by number without defining them."""

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
    if code in {"General", "@", ""}:
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
    rounded = (
        amount.quantize(Decimal(1).scaleb(-len(fraction)), ROUND_HALF_UP) if abs(amount) < 10**20 else amount
    )
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
