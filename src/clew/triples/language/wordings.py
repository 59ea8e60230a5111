"""The wordings of typed triples: quantifiers and negation in words, and conditions on properties in symbols and in
words, with their values (numbers, days and text).
"""

from __future__ import annotations

import math
import re
from calendar import month_abbr, month_name, monthrange
from dataclasses import replace

from clew.core.text import parse_number
from clew.triples.language.chain import (
    NOT,
    ONLY,
    QUOTED_TEXT,
    Condition,
    IncorrectTripleFormatError,
    Quantifier,
    TypedChain,
    at_least,
    at_most,
    exactly,
    mask_quotes,
    quote,
    split_outside_quotes,
    unquote,
)

NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_N = rf"(\d{{1,6}}|{'|'.join(NUMBER_WORDS)})"
_AFTER = r"(?=[\s#(\"“]|$)"
#: The wordings of quantifiers, each with what it means for its one or two numbers.
_WORDINGS = tuple(
    (re.compile(pattern + _AFTER, re.IGNORECASE), make)
    for pattern, make in (
        (rf"(?:from|between)\s+{_N}\s+(?:to|and)\s+{_N}", lambda low, high: Quantifier(low, high)),
        (rf"(?:at\s+least|>=|≥|a\s+minimum\s+of)\s*{_N}", at_least),
        (rf"{_N}\s+or\s+more", at_least),
        (rf"(?:more|greater)\s+than\s+{_N}", lambda n: at_least(n + 1)),
        (rf"(?:at\s+most|<=|≤|up\s+to|no\s+more\s+than|a\s+maximum\s+of)\s*{_N}", at_most),
        (rf"{_N}\s+or\s+(?:fewer|less)", at_most),
        (rf"(?:fewer|less)\s+than\s+{_N}", lambda n: at_most(max(n - 1, 0))),
        (rf"(?:exactly|just)\s+{_N}", exactly),
        (r"(?:several|multiple)", lambda: at_least(2)),
    )
)
_ONLY = re.compile(rf"(?:only|nothing\s+but){_AFTER}", re.IGNORECASE)
_NONE = re.compile(
    rf"(?:(?:not|no|none(?:\s+of)?|never|without)(?:\s+any)?{_AFTER}|¬|!(?=\s*[#(]))", re.IGNORECASE
)
_UNKNOWN_OR_QUOTED = re.compile(r"[#(\"“]|[\w /-]{1,40}\s#\d|.{0,40}\s*:\s*#\d")
#: Words that say that the tails are different ones, which is what is counted anyway.
_DIFFERENT = re.compile(r"\A(?:different|distinct|separate|unique)\s+(?=[#\w])", re.IGNORECASE)
_NOUN = re.compile(r"[^\W\d_][\w-]+(?: [^\W\d_][\w-]+){0,2}")
#: Units of a property's numbers.
_MEASURE = re.compile(
    r"(?:thousand|million|billion|trillion|(?:milli|micro)?seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?"
    r"|months?|years?|decades?|centur(?:y|ies)|(?:kilo|centi|milli)?(?:met(?:er|re)|gram|lit(?:er|re))s?|[kcm]?m|[km]?g"
    r"|miles?|feet|foot|ft|inch(?:es)?|yards?|acres?|hectares?|pounds?|lbs?|ounces?|tons?|tonnes?|degrees?|celsius"
    r"|dollars?|euros?|yen|usd|eur|gbp|cents?|per\s?cent|percent|points?|votes?|pages?|words?|kb|mb|gb|bytes?|bits?"
    r"|pixels?|volts?|watts?|[kmg]?hz|bc|ad|bce|ce)\b",
    re.IGNORECASE,
)
_VERB = (
    r"(?:do|does|did|is|are|was|were|be|been|has|have|had|ca|can|could|will|would|wo|should|must|may|might)"
)
_SPACE = r"[\s_-]+"
#: "No of pages" is a number of pages.
_NEGATED = re.compile(
    rf"(?:(?:{_VERB}{_SPACE})?(?:not|never)|cannot|{_VERB}n['’]?t|(?:(?:has|have|had|is|with){_SPACE})?(?:no|without))"
    rf"{_SPACE}(?!of(?![^\W_]))(?=\S)",
    re.IGNORECASE,
)
_WITHIN = re.compile(rf"{_SPACE}(?:not|never)(?={_SPACE}|\Z)", re.IGNORECASE)
_CAMEL = re.compile(rf"(?:{_VERB})?(?:[nN]ot|[nN]ever|(?<=has)No)(?=[A-Z])")
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def split_quantifier(text: str) -> tuple[Quantifier | None, str]:
    """Return the quantifier at the start of a statement or a term, None if there is none, and the rest.

    "Not" and "only" also begin names. They are quantifiers before an unknown and before quotation marks, and before a
    bare name if the name is capitalised and they are not: "not David Lynch" has a quantifier, "Not Another Teen
    Movie" and "no country for old men" have none.
    """
    only = _ONLY.match(text)
    after = text[only.end() :].lstrip() if only else text
    for pattern, make in _WORDINGS:
        if match := pattern.match(after):
            quantifier: Quantifier = make(*map(_number, match.groups()))
            rest = after[match.end() :].strip()
            if _is_quantifier_before(text, rest):
                rest = _DIFFERENT.sub("", re.sub(r"\Aof\s+(?=[#(\"])", "", rest))
                return replace(quantifier, only=bool(only)), rest
            return None, text
    if only:
        return (ONLY, after) if _is_quantifier_before(text, after) else (None, text)
    if match := _NONE.match(text):
        rest = text[match.end() :].strip()
        return (NOT, rest) if _is_quantifier_before(text, rest) else (None, text)
    return None, text


def parse_counted_tail(tail: str) -> tuple[Quantifier, str] | None:
    """Return the quantifier and the noun of a tail that counts something, None for another tail or a measure.

    >>> parse_counted_tail("at least 2 actors"), parse_counted_tail("at least 90 minutes")
    ((Quantifier(least=2, most=None, only=False), 'actors'), None)
    """
    for pattern, make in _WORDINGS:
        if (match := pattern.match(tail)) and match.groups():
            noun = _DIFFERENT.sub("", tail[match.end() :].strip())
            if not _NOUN.fullmatch(noun) or _MEASURE.match(noun):
                return None
            return make(*map(_number, match.groups())), noun
    return None


def split_negation(relation: str) -> tuple[bool, str]:
    """Return whether the words of a relation or a property negate it, and the words without the negation.

    >>> split_negation("not_directed_by"), split_negation("was never directed by"), split_negation("no_of_pages")
    ((True, 'directed_by'), (True, 'directed by'), (False, 'no_of_pages'))
    """
    spaced = _HUMPS.sub(" ", relation) if _CAMEL.match(relation) else relation
    if match := _NEGATED.match(spaced):
        return True, spaced[match.end() :]
    if match := _WITHIN.search(relation):
        return True, relation[: match.start()] + relation[match.end() :]
    return False, relation


def _is_quantifier_before(text: str, rest: str) -> bool:
    """Return whether the start of ``text`` is a quantifier of ``rest``, and not the start of a name."""
    if not rest:
        return False
    if _UNKNOWN_OR_QUOTED.match(rest):
        return True
    # "NOT Bob" is not a name, unless all of it is in capitals.
    in_capitals = len(text) > 1 and text[1].isupper() and not rest.isupper()
    return (in_capitals or not text[0].isupper()) and not rest[0].islower()


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBER_WORDS[text.casefold()]


_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,_'’\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_SCALED = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(thousand|million|billion|trillion)\b", re.IGNORECASE)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALES |= {"k": 10**3, "mn": 10**6, "m": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
#: "10m" may be ten metres; after a currency it is ten million.
_SHORT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:(K|k|M|B|(?i:mn|bn|tn|trillion))|(?P<small>[mb]))\b\.?")
_CURRENCY = re.compile(r"(?:US|USD|EUR|GBP)?\s*[$€£]\s*|(?:USD|EUR|GBP)\s*")
#: The end of a number with a scale, and a number that may have lost it in a range.
_SCALE = re.compile(r"\d(\s*(?:(?i:thousand|million|billion|trillion|mn|bn|tn)|K|k|M|B))\Z")
_SMALL = re.compile(r"[$€£]?\s*\d{1,3}(?:\.\d+)?")
_UNIT = re.compile(r"(\S+)\s+[^\W\d_]+\.?")
#: A number before its unit or its maximum: "50%", "90min", "7/10", "7 out of 10".
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
#: What a comparison of an unknown itself compares: its name.
OWN_VALUE = "value"
#: The beginning of a number or a day.
VALUE_START = rf"(?:the\s+)?[\"$€£]?\s*[-+.]?(?:\d|{_MONTH.replace('?P<month>', '?:')}\s+\d|US[D$])"


def parse_value(text: str, compared: bool) -> str | float:
    """Return the value that is written: a number if it is one, else text; quoted values are text. ``compared``: the
    number before a unit counts.

    >>> parse_value("1,250,000", False), parse_value("2.5 million", False), parse_value("90 minutes", True)
    (1250000, 2500000, 90)
    """
    text, quoted = unquote(text)
    if quoted:
        return text
    number = _parse_number(text)
    if number is None and compared and (match := _UNIT.fullmatch(text)):
        number = _parse_number(match[1])
    return text if number is None else number


def parse_bound(text: str, last: bool = False) -> str | float | None:
    """Return a bound of a comparison: a number, or a day as ``1990-05-04``; None for anything else. A month stands
    for its first day, or its ``last``.

    >>> parse_bound("$10M"), parse_bound("50%"), parse_bound("7/10"), parse_bound("Hours")
    (10000000, 50, 7, None)
    >>> parse_bound("May 4, 1990"), parse_bound("May 1990", last=True)
    ('1990-05-04', '1990-05-31')
    """
    text, quoted = unquote(text)
    text = re.sub(r"\A(?:the\s+)?year\s+(?=\d)", "", text.strip(), flags=re.IGNORECASE)
    if not math.isnan(parse_number(text)) and (quoted or _parse_number(text) is None):
        return text if math.isfinite(parse_number(text)) else None
    if text.casefold() in NUMBER_WORDS:
        return NUMBER_WORDS[text.casefold()]
    if (day := _parse_day(text, last)) or _BEFORE_OUR_ERA.search(text):
        return day
    if (number := _parse_number(text)) is None:
        number = _parse_measure(text)
    return number


def _parse_measure(text: str) -> float | None:
    bare = _CURRENCY.sub("", text, count=1) if _CURRENCY.match(text) else text
    if (number := _parse_number(bare)) is not None:
        return number
    if (match := _SHORT.match(bare)) and (not match["small"] or bare != text):
        return _as_int(float(match[1]) * _SCALES[(match[2] or match["small"]).casefold()])
    if (match := _OF.fullmatch(bare)) or (match := _UNIT.fullmatch(bare)):
        return _parse_number(match[1])
    return None


def apply_scale(low: str, high: str) -> str:
    """Return the lower end of a range with the scale that only the higher one has: "between 5 and 10 million".

    >>> apply_scale("5", "10 million"), apply_scale("$5", "$10M"), apply_scale("500,000", "2 million")
    ('5 million', '$5M', '500,000')
    """
    match = _SCALE.search(high)
    return low + match[1] if match and _SMALL.fullmatch(low) else low


def _parse_day(text: str, last: bool) -> str | None:
    for pattern in _DAYS:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            name = parts["month"]
            year, month = int(parts["year"]), int(name) if name.isdigit() else _MONTHS[name[:3].casefold()]
            if not (year and 1 <= month <= 12):
                return None
            days = monthrange(year, month)[1]
            day = int(parts["day"]) if parts.get("day") else days if last else 1
            return f"{year:04}-{month:02}-{day:02}" if 1 <= day <= days else None
    return None


def _parse_number(text: str) -> float | None:
    text = text.lstrip("$€£ ")
    if match := _GROUPED.fullmatch(text):
        text = text.replace(match[1], "")
    if match := _SCALED.fullmatch(text):
        return _as_int(float(match[1]) * _SCALES[match[2].casefold()])
    if re.fullmatch(r"[-+]?\d{1,300}", text):
        return int(text)
    return _as_int(float(text)) if _NUMBER.fullmatch(text) else None


def _as_int(number: float) -> float | None:
    """Return a whole number as an int, None for one that is not finite."""
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def exclude_named_nodes(typed: TypedChain) -> TypedChain:
    """Add conditions that unknowns differ from the named nodes: films by the director of Kismet do not include
    Kismet.

    An unknown that a triple joins to a name differs from it anyway, so only unknowns further away get a condition.
    """
    names = {
        end.text for triple in typed.chain.triples for end in (triple.head, triple.tail) if not end.unknowns
    }
    joined = {
        (number, end.text)
        for triple in typed.chain.triples
        for number in triple.unknowns
        for end in (triple.head, triple.tail)
    }
    counted = {
        triple.tail.unknown for place, triple in enumerate(typed.chain.triples) if place in typed.quantifiers
    }
    conditions = [
        Condition(number, OWN_VALUE, "=", name, negated=True)
        for number in typed.chain.unknowns
        for name in sorted(names)
        if number not in counted and (number, name) not in joined
    ]
    return replace(typed, conditions=(*typed.conditions, *conditions)) if conditions else typed


CONDITION_HINT = (
    "Write #1.release_year between 1980 and 1990, each condition in a statement of its own; the tests are = < <= > >="
    " between contains says, and numbers are written out (10000000), days as 1990-05-04"
)
_IS = r"(?:(?:is|was|are|were)\s+)?"
_LESS = r"(?:less|fewer|smaller|earlier|lower)\s+than"
_MORE = r"(?:more|greater|larger|later|higher)\s+than"
#: Words that negate the test after them.
_DENIES = r"(?:(?:is|was|are|were|does|do|did)(?:\s+not|n['’]t)|not|never)\s+"
#: The wordings of tests, each with its test and whether it negates it. Longer wordings come before those that they
#: contain.
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
    rf"#(\d{{1,10}}(?!\d))(?:\s*\.\s*|['’]s\s+)({QUOTED_TEXT}|[^\s\"=<>≤≥≠!]+(?:\s[^\s\"=<>≤≥≠!]+){{0,5}}?)\s*(?:{_ANY})",
    re.IGNORECASE,
)
_SPACED = re.compile(rf"#(\d{{1,10}}(?!\d))\s+(\w[\w-]*(?:\s\w+){{0,3}}?)\s*(?:{_STRONG})", re.IGNORECASE)
#: A comparison of an unknown itself, whose name is a number or a day: "#2 >= 1990".
_BARE = re.compile(
    r"#(\d{1,10}(?!\d))\s*(?=(?:not\s+)?(?:<=?|>=?|[≤≥]|between\b)\s*(?:the\s+)?[\"$€£]?\s*[-+.]?\d|\s*(?:not\s*)?(?:!=|≠|<>|==?)\s*\S)",
    re.IGNORECASE,
)
_CALLED = re.compile(rf"(\w[\w ]*)\(\s*#(\d{{1,10}}(?!\d))\s*\)\s*(?:{_ANY})", re.IGNORECASE)
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
    """Return the conditions of a statement, none for another kind of statement: ``#1.year >= 1990``,
    ``#1's year is 1990``, ``#1 year > 1990``, ``year(#1) = 1990``, ``1980 <= #1.year < 1990``,
    ``#1.year > 1980 and < 1990``. ``negated``: the statement is negated.

    Raises IncorrectTripleFormatError for a missing value, a comparison with something that is no number and no day,
    and conditions that are joined by "or" or negated together.
    """
    if (either := _EITHER.search(mask_quotes(text))) and parse_conditions(text[: either.start()], negated):
        raise IncorrectTripleFormatError(f"conditions of which only one need hold: '{text}'", CONDITION_HINT)
    first, *parts = split_outside_quotes(text, _JOINED)
    conditions = list(_parse_condition(first, negated))
    if not conditions:
        return ()
    for part in parts:
        last = conditions[-1]
        part = part if part.startswith("#") else f"#{last.unknown}.{quote(last.property)} {part}"
        further = _parse_condition(part, negated)
        if not further:
            raise IncorrectTripleFormatError(f"not a condition: '{part}'", CONDITION_HINT)
        merged = _merge_bounds(last, further[0])
        conditions[-1:] = [merged] if merged else [last, *further]
    if negated and len(conditions) > 1:
        raise IncorrectTripleFormatError(
            f"several conditions that are denied together: '{text}'", CONDITION_HINT
        )
    return tuple(conditions)


def parse_tail_conditions(
    unknown: int, property: str, tail: str, negated: bool = False
) -> tuple[Condition, ...]:
    """Return the conditions of a triple whose tail is a test (``#1 >> year >> before 1990``), none if it is not a
    test.

    Raises IncorrectTripleFormatError as :func:`parse_conditions` does.
    """
    match = _match(_TEST, tail)
    if match is None or tail[0].isupper():  # a name, such as "Between Two Worlds"
        return ()
    test, _, end = _read_test(match, tail)
    first = split_outside_quotes(tail, _JOINED)[0]
    values = _split_range(first[end:]) if test == "between" else [first[end:]]
    has_bounds = all(parse_bound(value) is not None for value in values)
    # A name may begin with the word of a test, but not with its symbol.
    if not has_bounds and (test in ("=", "contains", "says") or not _SYMBOL.match(tail)):
        return ()
    return parse_conditions(f"#{unknown}.{quote(property)} {tail}", negated)


def _parse_condition(text: str, negated: bool) -> tuple[Condition, ...]:
    """Return the condition of a statement without "and"; two where bounds stand on both sides of the property."""
    if match := _FIRST.fullmatch(text):
        return _parse_both_sides(match, negated)
    if match := _BARE.match(text):
        return _parse_condition(f"#{match[1]}.{OWN_VALUE} {text[match.end() :]}", negated)
    if match := _match(_DOTTED, text) or _match(_SPACED, text):
        unknown, property = int(match[1]), text[slice(*match.span(2))]
    elif match := _match(_CALLED, text):
        unknown, property = int(match[2]), text[slice(*match.span(1))]
    else:
        return ()
    name, quoted = unquote(property)
    if not quoted:
        property_negated, name = split_negation(name)
        negated = negated != property_negated
    return (_condition(unknown, name, match, text, negated),)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.match(mask_quotes(text))


def _read_test(match: re.Match[str], text: str) -> tuple[str, bool, int]:
    """Return the test of a match, whether it is negated, and where its value begins."""
    groups = match.groupdict()
    place = next(int(name[1:]) for name, group in groups.items() if name[0] == "t" and group is not None)
    _, test, negative = _TESTS[place]
    start, end = match.span(f"t{place}")
    # "is After Hours" and "is Not Another Teen Movie" are names; "is After 1990" is a test.
    if verb := re.match(r"(?:is|was)\s+(?=[A-Z][a-z])", text[start:end]):
        value = text[end:].strip().rstrip(".")
        values = _split_range(value) if test == "between" else [value]
        is_name = value[:1].isupper() if test == "=" else any(parse_bound(bound) is None for bound in values)
        if is_name:
            return "=", False, start + verb.end()
    return test, negative or groups.get(f"n{place}") is not None, end


def _condition(unknown: int, property: str, match: re.Match[str], text: str, negated: bool) -> Condition:
    test, test_negated, end = _read_test(match, text)
    value = text[end:].strip()
    value = value if text.endswith('"') else value.rstrip(".")
    negated = negated != test_negated
    if test == "between":
        ends = _split_range(value)
        if len(ends) != 2 or not all(ends):
            raise IncorrectTripleFormatError(f"between which two values: '{text}'", CONDITION_HINT)
        low = _require_bound(apply_scale(*ends), False, text)
        return Condition(unknown, property, test, low, _require_bound(ends[1], True, text), negated)
    if not value:
        raise IncorrectTripleFormatError(f"a condition without a value: '{text}'", CONDITION_HINT)
    if test in ("contains", "says"):
        return Condition(unknown, property, test, unquote(value)[0], None, negated)
    if test == "=":
        return Condition(unknown, property, test, parse_value(value, False), None, negated)
    return Condition(unknown, property, test, _require_bound(value, test in ("<=", ">"), text), None, negated)


def _require_bound(value: str, last: bool, text: str) -> str | float:
    bound = parse_bound(value, last)
    if bound is None:
        raise IncorrectTripleFormatError(f"compared with no number and no day: '{text}'", CONDITION_HINT)
    return bound


def _split_range(text: str) -> list[str]:
    """Return the two ends of a range, or the text alone."""
    text = text.strip("[]() ")
    for separator in _BETWEEN:
        parts = split_outside_quotes(text, separator)
        if len(parts) > 1:
            return parts
    return [text]


def _parse_both_sides(match: re.Match[str], negated: bool) -> tuple[Condition, ...]:
    """Return the conditions of ``1980 <= #1.year < 1990``, or of ``1980 <= #1.year``."""
    test, value, rest = _TURNED[match["test"]], match["value"], match["rest"]
    if further := _parse_condition(rest, negated):
        second = further[0]
        low = _require_bound(value, test in ("<=", ">"), match.string)
        first = Condition(second.unknown, second.property, test, low, None, second.negated)
        merged = _merge_bounds(first, second)
        return (merged,) if merged else (first, second)
    return _parse_condition(f"{rest} {test} {value}", negated)


def _merge_bounds(first: Condition, second: Condition) -> Condition | None:
    """Return two bounds of a property as one condition, since a single one of several values has to lie between them;
    None for conditions that are not such bounds."""
    if {first.test, second.test} != {">=", "<="} or first.negated != second.negated:
        return None
    if (first.unknown, first.property) != (second.unknown, second.property):
        return None
    low, high = (first, second) if first.test == ">=" else (second, first)
    return replace(low, test="between", high=high.value)
