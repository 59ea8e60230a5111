"""Values of conditions: numbers and days as they are said."""

from __future__ import annotations

import math
import re
from calendar import month_abbr, month_name, monthrange
from dataclasses import replace

from clew.core.text import parse_number
from clew.triples.language.errors import IncorrectTripleFormatError
from clew.triples.language.quantifiers import NUMBER_WORDS
from clew.triples.language.quantifiers import split_negation as denied
from clew.triples.language.quoting import QUOTED_TEXT, mask_quotes, quote, split_outside_quotes, unquote
from clew.triples.language.typed_chain import Condition

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


CONDITION_HINT = (
    "Write #1.release_year between 1980 and 1990, each condition in a statement of its own; the tests are = < <= > >="
    " between contains says, and numbers are written out (10000000), days as 1990-05-04"
)

_IS = r"(?:(?:is|was|are|were)\s+)?"
_LESS = r"(?:less|fewer|smaller|earlier|lower)\s+than"
_MORE = r"(?:more|greater|larger|later|higher)\s+than"
#: What denies the test that it stands before.
_DENIES = r"(?:(?:is|was|are|were|does|do|did)(?:\s+not|n['’]t)|not|never)\s+"
#: A test as it is said -> the test, and whether it is denied. Words that say more come before those they contain.
#: None: nothing that denies it stands before it.
_TESTS = (
    (rf"{_IS}(?:between|from)\b|{_IS}in\s+the\s+range(?:\s+of)?\b", "between", False),
    (rf">=|=>|≥|{_IS}(?:at\s+least|(?:not|no)\s+(?:before\b|{_LESS})|since)\b", ">=", False),
    (rf"<=|=<|≤|{_IS}(?:at\s+most|(?:not|no)\s+(?:after\b|{_MORE})|until|up\s+to)\b", "<=", False),
    (r"!=|≠|<>|not\s*=", "=", True),
    (rf">|{_IS}(?:after|{_MORE}|above)\b", ">", False),
    (rf"<|{_IS}(?:before|{_LESS}|below)\b", "<", False),
    (rf"{_IS}equals?(?:\s+to)?\b", "=", False),
    (r"(?:is|was|are|were)(?:\s+not|n['’]t)\b", "=", True),
    (r"(?:contain|include|mention)s?\b", "contains", False),
    (r":?==?|(?:is|was)\b", "=", False),
    (r"says?\b", "says", False),
)
_WAYS = [
    pattern if negative else rf"(?P<n{place}>{_DENIES})?(?:{pattern})"
    for place, (pattern, _, negative) in enumerate(_TESTS)
]
_ANY = "|".join(f"(?P<t{place}>{way})" for place, way in enumerate(_WAYS))
#: Those that are said of nothing but a property.
_STRONG = "|".join(f"(?P<t{place}>{way})" for place, way in enumerate(_WAYS[:8])) + "|(?P<t9>:?==?)"
_DOTTED = re.compile(
    rf"#(\d+)(?:\s*\.\s*|['’]s\s+)({QUOTED_TEXT}|[^\s\"=<>≤≥≠!]+(?:\s[^\s\"=<>≤≥≠!]+){{0,5}}?)\s*(?:{_ANY})",
    re.IGNORECASE,
)
_SPACED = re.compile(rf"#(\d+)\s+(\w[\w-]*(?:\s\w+){{0,3}}?)\s*(?:{_STRONG})", re.IGNORECASE)
_CALLED = re.compile(rf"(\w[\w ]*)\(\s*#(\d+)\s*\)\s*(?:{_ANY})", re.IGNORECASE)
_TEST = re.compile(_ANY, re.IGNORECASE)
_SYMBOL = re.compile(r"(?:not\s*)?[<>=≤≥≠!:]", re.IGNORECASE)
_FIRST = re.compile(
    rf"(?P<value>{QUOTED_TEXT}|[^#<>≤≥=]+?)\s*(?P<test><=|>=|≤|≥|<|>)\s*(?P<rest>#\d+\s*(?:\.|['’]s\s).*)",
    re.DOTALL,
)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "≤": ">=", "≥": "<="}
#: Before a further condition: of another unknown, or a test with a number or a day ("> 1931 and < 1934").
_FURTHER = rf"(?=#\d|(?:{_DENIES})?(?:{'|'.join(pattern for pattern, _, _ in _TESTS[:7])}|=)\s*{VALUE_START})"
_JOINED = rf"(?i:(?:\s*,\s*(?:and\s+|but\s+)?|\s+(?:and|but)\s+){_FURTHER})"
_EITHER = re.compile(rf"(?:\s*,\s*|\s+)or\s+{_FURTHER}", re.IGNORECASE)
#: What divides the ends of a range; a day has hyphens of its own.
_BETWEEN = (
    r"(?i:\s+(?:and|to)\s+)",
    r"\s*(?:,(?!\d{3}\b)|\.\.+|–|—)\s*|\s+-\s+",
    r"(?<=\d)\s*-\s*(?=\d)",
)


def parse_conditions(text: str, negated: bool = False) -> tuple[Condition, ...]:
    """Return the conditions that a statement makes, none where it is of another kind: ``#1.year >= 1990``,
    ``#1's year is 1990``, ``#1 year > 1990``, ``year(#1) = 1990``, ``1980 <= #1.year < 1990``,
    ``#1.year > 1980 and < 1990``.

    Raises IncorrectTripleFormatError where a value is missing, or is no number and no day and compared; and where
    conditions are joined by "or", or denied together.
    """
    if (either := _EITHER.search(mask_quotes(text))) and parse_conditions(text[: either.start()], negated):
        raise IncorrectTripleFormatError(f"conditions of which only one need hold: '{text}'", CONDITION_HINT)
    parts = split_outside_quotes(text, _JOINED)
    found = list(_of_one(parts[0], negated))
    if not found:
        return ()
    for part in parts[1:]:
        last = found[-1]
        part = part if part.startswith("#") else f"#{last.unknown}.{quote(last.property)} {part}"
        more = _of_one(part, negated)
        if not more:
            raise IncorrectTripleFormatError(f"not a condition: '{part}'", CONDITION_HINT)
        range = _range(last, more[0])
        found[-1:] = [range] if range else [last, *more]
    if negated and len(found) > 1:
        raise IncorrectTripleFormatError(
            f"several conditions that are denied together: '{text}'", CONDITION_HINT
        )
    return tuple(found)


def parse_tail_conditions(
    unknown: int, property: str, tail: str, negated: bool = False
) -> tuple[Condition, ...]:
    """Return the conditions where the tail of a triple is a test (``#1 >> year >> before 1990``), none where it is
    not. Raises IncorrectTripleFormatError as :func:`conditions` does."""
    match = _matched(_TEST, tail)
    if match is None or tail[0].isupper():  # a name, such as "Between Two Worlds"
        return ()
    test, _, end = _kind(match, tail)
    first = split_outside_quotes(tail, _JOINED)[0]
    ends = _ends(first[end:]) if test == "between" else [first[end:]]
    numbers = all(parse_bound(one) is not None for one in ends)
    # A name may begin with a word; one that begins with "<" is none.
    if not numbers and (test in ("=", "contains", "says") or not _SYMBOL.match(tail)):
        return ()
    return parse_conditions(f"#{unknown}.{quote(property)} {tail}", negated)


def _of_one(text: str, negated: bool) -> tuple[Condition, ...]:
    if match := _FIRST.fullmatch(text):
        return _from_both_sides(match, negated)
    if match := _matched(_DOTTED, text) or _matched(_SPACED, text):
        unknown, property = int(match[1]), text[slice(*match.span(2))]
    elif match := _matched(_CALLED, text):
        unknown, property = int(match[2]), text[slice(*match.span(1))]
    else:
        return ()
    name, marked = unquote(property)
    if not marked:
        not_it, name = denied(name)
        negated = negated != not_it
    return (_made(unknown, name, match, text, negated),)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.match(mask_quotes(text))


def _kind(match: re.Match[str], text: str) -> tuple[str, bool, int]:
    """Return the test, whether it is denied, and where its value begins."""
    found = match.groupdict()
    place = next(int(name[1:]) for name, said in found.items() if name[0] == "t" and said is not None)
    _, test, negative = _TESTS[place]
    start, end = match.span(f"t{place}")
    # "is After Hours" and "is Not Another Teen Movie" are names; "is After 1990" is a test.
    if verb := re.match(r"(?:is|was)\s+(?=[A-Z][a-z])", text[start:end]):
        rest = text[end:].strip().rstrip(".")
        ends = _ends(rest) if test == "between" else [rest]
        named = rest[:1].isupper() if test == "=" else any(parse_bound(one) is None for one in ends)
        if named:
            return "=", False, start + verb.end()
    return test, negative or found.get(f"n{place}") is not None, end


def _made(unknown: int, property: str, match: re.Match[str], text: str, negated: bool) -> Condition:
    test, not_it, end = _kind(match, text)
    said = text[end:].strip()
    said = said if text.endswith('"') else said.rstrip(".")
    negated = negated != not_it
    if test == "between":
        ends = _ends(said)
        if len(ends) != 2 or not all(ends):
            raise IncorrectTripleFormatError(f"between which two values: '{text}'", CONDITION_HINT)
        low, high = _compared(apply_scale(*ends), False, text), _compared(ends[1], True, text)
        return Condition(unknown, property, test, low, high, negated)
    if not said:
        raise IncorrectTripleFormatError(f"a condition without a value: '{text}'", CONDITION_HINT)
    if test in ("contains", "says"):
        return Condition(unknown, property, test, unquote(said)[0], None, negated)
    value = parse_value(said, False) if test == "=" else _compared(said, test in ("<=", ">"), text)
    return Condition(unknown, property, test, value, None, negated)


def _compared(said: str, last: bool, text: str) -> str | float:
    value = parse_bound(said, last)
    if value is None:
        raise IncorrectTripleFormatError(f"compared with no number and no day: '{text}'", CONDITION_HINT)
    return value


def _ends(said: str) -> list[str]:
    said = said.strip("[]() ")
    for divider in _BETWEEN:
        found = split_outside_quotes(said, divider)
        if len(found) > 1:
            return found
    return [said]


def _from_both_sides(match: re.Match[str], negated: bool) -> tuple[Condition, ...]:
    turned, value, rest = _TURNED[match["test"]], match["value"], match["rest"]
    if second := _of_one(rest, negated):
        one = second[0]
        low = _compared(value, turned in ("<=", ">"), match.string)
        first = Condition(one.unknown, one.property, turned, low, None, one.negated)
        if range := _range(first, one):
            return (range,)
        return first, one
    return _of_one(f"{rest} {turned} {value}", negated)


def _range(one: Condition, other: Condition) -> Condition | None:
    """Return two bounds of one property as one condition: of several values one must lie between them."""
    if {one.test, other.test} != {">=", "<="} or one.negated != other.negated:
        return None
    if (one.unknown, one.property) != (other.unknown, other.property):
        return None
    low, high = (one, other) if one.test == ">=" else (other, one)
    return replace(low, test="between", high=high.value)


# MERGED: What a property of an unknown must be, in symbols and in words.
