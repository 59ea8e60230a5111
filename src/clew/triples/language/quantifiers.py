"""The words of quantifiers and of negation."""

from __future__ import annotations

import re
from dataclasses import replace

from clew.triples.language.typed_chain import NOT, ONLY, Quantifier, at_least, at_most, exactly

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
