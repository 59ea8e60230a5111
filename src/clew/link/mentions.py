"""Names as questions write them: the ways to look one up, and what it says beside the name."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: What the name without its qualifier, article or "'s" keeps of its likeness.
SHORTENED_WEIGHT = 0.97

_QUALIFIER = re.compile(r"^(?P<name>.*\S)\s*\((?P<said>[^()]+)\)\s*$")
_POSSESSIVE = re.compile(r"['’]s?$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """The ways to look a name up, as it is written first, with what each is worth; what its qualifier says."""

    variants: tuple[tuple[str, float], ...]
    qualifier: str = ""


def parse_mention(name: str) -> Mention:
    """Return how to look a name up: as it is written; without its qualifier, a trailing "'s", a leading article.

    >>> mention_of("24 Hours (1931 film)")
    Mention(ways=(('24 Hours (1931 film)', 1.0), ('24 Hours', 0.97)), qualifier='1931 film')
    """
    name = name.strip().strip('"“”').strip()
    ways = {name: 1.0}
    bare, qualifier = split_qualifier(name)
    ways.setdefault(bare, SHORTENED_WEIGHT)
    for way, worth in list(ways.items()):
        owner = _POSSESSIVE.sub("", way)
        for other in (owner, _ARTICLE.sub("", owner)):
            ways.setdefault(other, worth * SHORTENED_WEIGHT)
    return Mention(tuple((way, worth) for way, worth in ways.items() if way), qualifier)


def split_qualifier(name: str) -> tuple[str, str]:
    """Return a name without what stands in brackets at its end, and that; ("", of course, where nothing does).

    >>> without_qualifier("Kismet (film)"), without_qualifier("Kismet")
    (('Kismet', 'film'), ('Kismet', ''))
    """
    found = _QUALIFIER.match(name)
    return (found["name"], found["said"]) if found else (name, "")
