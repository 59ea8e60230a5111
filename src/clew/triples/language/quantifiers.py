"""How many: the words of quantifiers and of negation."""

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
#: What each wording says, of one or two numbers.
_SAID = tuple(
    (re.compile(pattern + _AFTER, re.IGNORECASE), made)
    for pattern, made in (
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
#: Words that say only that the tails are different ones, which is counted anyway.
_DIFFERENT = re.compile(r"\A(?:different|distinct|separate|unique)\s+(?=[#\w])", re.IGNORECASE)
_NOUN = re.compile(r"[^\W\d_][\w-]+(?: [^\W\d_][\w-]+){0,2}")
#: What numbers of a property are in.
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
#: "No of pages" is a number of them.
_NEGATED = re.compile(
    rf"(?:(?:{_VERB}{_SPACE})?(?:not|never)|cannot|{_VERB}n['’]?t|(?:(?:has|have|had|is|with){_SPACE})?(?:no|without))"
    rf"{_SPACE}(?!of(?![^\W_]))(?=\S)",
    re.IGNORECASE,
)
_WITHIN = re.compile(rf"{_SPACE}(?:not|never)(?={_SPACE}|\Z)", re.IGNORECASE)
_CAMEL = re.compile(rf"(?:{_VERB})?(?:[nN]ot|[nN]ever|(?<=has)No)(?=[A-Z])")
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def split_quantifier(text: str) -> tuple[Quantifier | None, str]:
    """Return the quantifier that a statement or a term begins with, None where it has none, and the rest.

    "Not" and "only" begin names as well. Before an unknown and before what is quoted they are quantifiers; before a
    bare name where they are not capitalised and the name is: "not David Lynch" has one, "Not Another Teen Movie" and
    "no country for old men" have not.
    """
    only = _ONLY.match(text)
    after = text[only.end() :].lstrip() if only else text
    for pattern, made in _SAID:
        if match := pattern.match(after):
            count: Quantifier = made(*map(_number, match.groups()))
            rest = after[match.end() :].strip()
            if _meant(text, rest):
                rest = _DIFFERENT.sub("", re.sub(r"\Aof\s+(?=[#(\"])", "", rest))
                return replace(count, only=bool(only)), rest
            return None, text
    if only:
        return (ONLY, after) if _meant(text, after) else (None, text)
    if match := _NONE.match(text):
        rest = text[match.end() :].strip()
        return (NOT, rest) if _meant(text, rest) else (None, text)
    return None, text


def parse_counted_tail(tail: str) -> tuple[Quantifier, str] | None:
    """Return how many of what a tail says, None where it does not, or where it measures.

    >>> counted("at least 2 actors"), counted("at least 90 minutes")
    ((Count(least=2, most=None, only=False), 'actors'), None)
    """
    for pattern, made in _SAID:
        if (match := pattern.match(tail)) and match.groups():
            noun = _DIFFERENT.sub("", tail[match.end() :].strip())
            if not _NOUN.fullmatch(noun) or _MEASURE.match(noun):
                return None
            return made(*map(_number, match.groups())), noun
    return None


def split_negation(relation: str) -> tuple[bool, str]:
    """Return whether the words of a relation or a property deny it, and the words without that.

    >>> negated("not_directed_by"), negated("was never directed by"), negated("no_of_pages")
    ((True, 'directed_by'), (True, 'directed by'), (False, 'no_of_pages'))
    """
    spaced = _HUMPS.sub(" ", relation) if _CAMEL.match(relation) else relation
    if match := _NEGATED.match(spaced):
        return True, spaced[match.end() :]
    if match := _WITHIN.search(relation):
        return True, relation[: match.start()] + relation[match.end() :]
    return False, relation


def _meant(text: str, rest: str) -> bool:
    if not rest:
        return False
    if _UNKNOWN_OR_QUOTED.match(rest):
        return True
    # "NOT Bob" is no name, unless all of it is in capitals.
    loud = len(text) > 1 and text[1].isupper() and not rest.isupper()
    return (loud or not text[0].isupper()) and not rest[0].islower()


def _number(said: str) -> int:
    return int(said) if said.isdigit() else NUMBER_WORDS[said.casefold()]
