"""Names as people write them from memory: what the benchmarks of linking change in a name."""

from __future__ import annotations

import random
import re
import string
import unicodedata
from collections.abc import Callable

_QUALIFIER = re.compile(r"\s*\([^)]*\)\s*$")


def case(name: str, draw: random.Random) -> str:
    """All small, or all capitals."""
    return name.lower() if draw.random() < 0.5 else name.upper()


def plain(name: str, _: random.Random) -> str:
    """Without diacritics, and without letters that are not ASCII."""
    return unicodedata.normalize("NFD", name).encode("ascii", "ignore").decode()


def typo(name: str, draw: random.Random) -> str:
    """One letter left out, put in, replaced, or swapped with the next."""
    places = [place for place, letter in enumerate(name) if letter.isalnum()]
    place = draw.choice(places)
    letter = draw.choice(string.ascii_lowercase)
    kind = draw.choice(("leave out", "put in", "replace", "swap"))
    if kind == "leave out":
        return name[:place] + name[place + 1 :]
    if kind == "put in":
        return name[:place] + letter + name[place:]
    if kind == "swap" and place + 1 < len(name):
        return name[:place] + name[place + 1] + name[place] + name[place + 2 :]
    return name[:place] + letter + name[place + 1 :]


def two_typos(name: str, draw: random.Random) -> str:
    """:func:`typo`, twice."""
    once = typo(name, draw)
    return typo(once, draw) if any(letter.isalnum() for letter in once) else once


def order(name: str, draw: random.Random) -> str:
    """The last word first, with a comma or without."""
    *others, last = name.split()
    return f"{last}{',' if draw.random() < 0.5 else ''} {' '.join(others)}" if others else name


def partial(name: str, draw: random.Random) -> str:
    """One word left out."""
    words = name.split()
    words.pop(draw.randrange(len(words)))
    return " ".join(words)


Change = Callable[[str, random.Random], str]
#: By name: the change, and to which names it can be made.
CHANGES: dict[str, tuple[Change, Callable[[str], bool]]] = {
    "as given": (lambda name, _: name, lambda name: True),
    "case": (case, lambda name: name.lower() != name.upper()),
    "no diacritics": (plain, lambda name: not name.isascii() and len(plain(name, random.Random(0))) > 2),
    "one typo": (typo, lambda name: sum(map(str.isalnum, name)) > 3),
    "two typos": (two_typos, lambda name: sum(map(str.isalnum, name)) > 5),
    "word order": (order, lambda name: len(name.split()) > 1),
    "one word left out": (partial, lambda name: len(name.split()) > 1),
}
