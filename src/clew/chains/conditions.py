"""What a property of an unknown must be, in symbols and in words."""

from __future__ import annotations

import re

from clew.chains.errors import IncorrectTripleFormatError
from clew.chains.quoting import QUOTED, blanked, pieces, unquoted
from clew.chains.typed import Condition

HINT = "Write #1.release_year between 1980 and 1990; the tests are = < <= > >= between contains says"

#: A test as it is said -> the test, and whether it is denied. Words that say more come before those they contain.
_TESTS = (
    (r"(?:is\s+|was\s+)?(?:between|from)\b|(?:is\s+)?in\s+the\s+range(?:\s+of)?\b", "between", False),
    (r">=|=>|≥|(?:is\s+|was\s+)?(?:at\s+least|not\s+before|since)\b", ">=", False),
    (r"<=|=<|≤|(?:is\s+|was\s+)?(?:at\s+most|not\s+after|until|up\s+to)\b", "<=", False),
    (r"!=|≠|<>|not\s*=|(?:is|was)\s+not\b|(?:does\s+)?not\s+equals?(?:\s+to)?\b", "=", True),
    (r">|(?:is\s+|was\s+)?(?:after|(?:more|greater|larger|later|higher)\s+than|above)\b", ">", False),
    (r"<|(?:is\s+|was\s+)?(?:before|(?:less|fewer|smaller|earlier|lower)\s+than|below)\b", "<", False),
    (r"(?:does\s+)?not\s+(?:contain|include|mention)s?\b", "contains", True),
    (r"(?:contain|include|mention)s?\b", "contains", False),
    (r":?==?|(?:is\s+)?equals?(?:\s+to)?\b|(?:is|was)\b", "=", False),
    (r"(?:does\s+)?not\s+say\b", "says", True),
    (r"says?\b", "says", False),
)
_ANY = "|".join(f"(?P<t{place}>{pattern})" for place, (pattern, _, _) in enumerate(_TESTS))
#: Those that are said of nothing but a property.
_STRONG = (
    "|".join(f"(?P<t{place}>{pattern})" for place, (pattern, _, _) in enumerate(_TESTS[:6]))
    + "|(?P<t8>:?==?)"
)
_DOTTED = re.compile(
    rf"#(\d+)(?:\s*\.\s*|['’]s\s+)({QUOTED}|[^\s\"=<>≤≥≠!]+(?:\s[^\s\"=<>≤≥≠!]+){{0,5}}?)\s*(?:{_ANY})",
    re.IGNORECASE,
)
_SPACED = re.compile(rf"#(\d+)\s+(\w[\w-]*(?:\s\w+){{0,3}}?)\s*(?:{_STRONG})", re.IGNORECASE)
_CALLED = re.compile(rf"(\w[\w ]*)\(\s*#(\d+)\s*\)\s*(?:{_ANY})", re.IGNORECASE)
_TEST = re.compile(_ANY, re.IGNORECASE)
_FIRST = re.compile(
    rf"(?P<value>{QUOTED}|[^#<>≤≥=]+?)\s*(?P<test><=|>=|≤|≥|<|>)\s*(?P<rest>#\d+\s*(?:\.|['’]s\s).*)",
    re.DOTALL,
)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "≤": ">=", "≥": "<="}
_AND = r"\s+(?:and|to)\s+|\s*(?:,(?!\d{3}\b)|\.\.+|–|—)\s*|(?<=\d)\s*-\s*(?=\d)"

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,_'’\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_SCALED = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(thousand|million|billion)\b", re.IGNORECASE)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_UNIT = re.compile(r"(\S+)\s+[^\W\d_]+\.?")


def conditions(text: str, negated: bool = False) -> tuple[Condition, ...]:
    """Return the conditions that a statement makes, none where it is of another kind: ``#1.year >= 1990``,
    ``#1's year is 1990``, ``#1 year > 1990``, ``year(#1) = 1990``, ``1980 <= #1.year < 1990``.

    Raises IncorrectTripleFormatError where a value is missing.
    """
    if match := _FIRST.fullmatch(text):
        return _from_both_sides(match, negated)
    if match := _matched(_DOTTED, text) or _matched(_SPACED, text):
        unknown, property = int(match[1]), text[slice(*match.span(2))]
    elif match := _matched(_CALLED, text):
        unknown, property = int(match[2]), text[slice(*match.span(1))]
    else:
        return ()
    return (_made(unknown, unquoted(property)[0], match, text, negated),)


def tail_condition(unknown: int, property: str, tail: str, negated: bool = False) -> Condition | None:
    """Return the condition where the tail of a triple is a test (``#1 >> year >> before 1990``), else None."""
    match = _matched(_TEST, tail)
    if match is None or tail[0].isupper():  # a name, such as "Between Two Worlds"
        return None
    ends = _ends(tail[match.end() :]) if _kind(match)[0] == "between" else [tail[match.end() :]]
    if not all(isinstance(value_of(one, True), (int, float)) for one in ends):
        return None
    return _made(unknown, property, match, tail, negated)


def value_of(said: str, compared: bool) -> str | float:
    """Return the value that is said: a number where it is one, text where it is quoted or none. Where it is compared,
    the number before a unit counts.

    >>> value_of("1,250,000", False), value_of("2.5 million", False), value_of("90 minutes", True)
    (1250000, 2500000, 90)
    """
    text, marked = unquoted(said)
    if marked:
        return text
    number = _number(text)
    if number is None and compared and (match := _UNIT.fullmatch(text)):
        number = _number(match[1])
    return text if number is None else number


def _number(text: str) -> float | None:
    text = text.lstrip("$€£ ")
    if match := _GROUPED.fullmatch(text):
        text = text.replace(match[1], "")
    if match := _SCALED.fullmatch(text):
        number = float(match[1]) * _SCALES[match[2].casefold()]
    elif re.fullmatch(r"[-+]?\d{1,400}", text):
        return int(text)
    elif _NUMBER.fullmatch(text):
        number = float(text)
    else:
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.match(blanked(text))


def _kind(match: re.Match[str]) -> tuple[str, bool]:
    place = next(int(name[1:]) for name, found in match.groupdict().items() if found is not None)
    return _TESTS[place][1:]


def _made(unknown: int, property: str, match: re.Match[str], text: str, negated: bool) -> Condition:
    test, denied = _kind(match)
    said = text[match.end() :].strip().rstrip(".") if not text.endswith('"') else text[match.end() :].strip()
    negated = negated != denied
    if test == "between":
        ends = _ends(said)
        if len(ends) != 2 or not all(ends):
            raise IncorrectTripleFormatError(f"between which two values: '{text}'", HINT)
        return Condition(unknown, property, test, value_of(ends[0], True), value_of(ends[1], True), negated)
    if not said:
        raise IncorrectTripleFormatError(f"a condition without a value: '{text}'", HINT)
    if test in ("contains", "says"):
        return Condition(unknown, property, test, unquoted(said)[0], None, negated)
    return Condition(unknown, property, test, value_of(said, test != "="), None, negated)


def _ends(said: str) -> list[str]:
    return pieces(said.strip("[]() "), _AND)


def _from_both_sides(match: re.Match[str], negated: bool) -> tuple[Condition, ...]:
    turned, value, rest = _TURNED[match["test"]], match["value"], match["rest"]
    if second := conditions(rest, negated):
        one = second[0]
        first = Condition(one.unknown, one.property, turned, value_of(value, True), None, negated)
        if {turned, one.test} == {">=", "<="}:
            low, high = (first, one) if turned == ">=" else (one, first)
            return (Condition(one.unknown, one.property, "between", low.value, high.value, negated),)
        return first, one
    return conditions(f"{rest} {turned} {value}", negated)
