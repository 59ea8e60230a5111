"""How many: the words of quantifiers and of negation."""

from __future__ import annotations

import re
from dataclasses import replace

from clew.chains.typed import NOT, ONLY, Count, at_least, at_most, exactly

WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_N = rf"(\d{{1,6}}|{'|'.join(WORDS)})"
_AFTER = r"(?=[\s#(\"“]|$)"
#: What each wording says, of one or two numbers.
_SAID = tuple(
    (re.compile(pattern + _AFTER, re.IGNORECASE), made)
    for pattern, made in (
        (rf"(?:from|between)\s+{_N}\s+(?:to|and)\s+{_N}", lambda low, high: Count(low, high)),
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
    rf"(?:(?:not|no|none\s+of|never|without)(?:\s+any)?{_AFTER}|¬|!(?=\s*[#(]))", re.IGNORECASE
)
_UNKNOWN_OR_QUOTED = re.compile(r"[#(\"“]|[\w /-]{1,40}\s#\d|.{0,40}\s*:\s*#\d")
_NEGATED = re.compile(
    r"(?:(?:do|does|did|is|are|was|were|has|have)\s+not|not|never|(?:is|does|did|are|was|has|have)n['’]t)\s+(?=\S)",
    re.IGNORECASE,
)


def quantified(text: str) -> tuple[Count | None, str]:
    """Return the quantifier that a statement or a term begins with, None where it has none, and the rest.

    "Not" and "only" begin names as well. Before an unknown and before what is quoted they are quantifiers; before a
    bare name where they are not capitalised and the name is: "not David Lynch" has one, "Not Another Teen Movie" and
    "no country for old men" have not.
    """
    only = _ONLY.match(text)
    after = text[only.end() :].lstrip() if only else text
    for pattern, made in _SAID:
        if match := pattern.match(after):
            count: Count = made(*map(_number, match.groups()))
            rest = after[match.end() :].strip()
            if _meant(text, rest):
                return replace(count, only=bool(only)), re.sub(r"\Aof\s+(?=[#(\"])", "", rest)
            return None, text
    if only:
        return (ONLY, after) if _meant(text, after) else (None, text)
    if match := _NONE.match(text):
        rest = text[match.end() :].strip()
        return (NOT, rest) if _meant(text, rest) else (None, text)
    return None, text


def negated(relation: str) -> tuple[bool, str]:
    """Return whether the words of a relation deny it, and the words without that."""
    match = _NEGATED.match(relation)
    return (True, relation[match.end() :]) if match else (False, relation)


def _meant(text: str, rest: str) -> bool:
    if not rest:
        return False
    return bool(_UNKNOWN_OR_QUOTED.match(rest)) or (not text[0].isupper() and not rest[0].islower())


def _number(said: str) -> int:
    return int(said) if said.isdigit() else WORDS[said.casefold()]
