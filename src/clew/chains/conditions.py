"""What a property of an unknown must be, in symbols and in words."""

from __future__ import annotations

import re
from dataclasses import replace

from clew.chains.errors import IncorrectTripleFormatError
from clew.chains.quantifiers import split_negation as denied
from clew.chains.quoting import QUOTED_TEXT, mask_quotes, split_outside_quotes, quote, unquote
from clew.chains.typed import Condition
from clew.chains.values import VALUE_START, parse_bound, apply_scale, parse_value

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
        raise IncorrectTripleFormatError(f"several conditions that are denied together: '{text}'", CONDITION_HINT)
    return tuple(found)


def parse_tail_conditions(unknown: int, property: str, tail: str, negated: bool = False) -> tuple[Condition, ...]:
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
