"""The words behind hashes, for people: found again in the text that holds them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.text import names, term_hash, terms

_WORD = re.compile(r"\w(?:[\w'’.,]*\w)?")


def surfaces(text: str, words: Sequence[int], phrases: Sequence[int] = (), limit: int = 5) -> list[str]:
    """Return how ``text`` writes the terms and names with these hashes; at most ``limit``, phrases first.

    Each is given once, as it first occurs, in the order of the text. A word of several terms (CJK) stands
    for itself only if all its terms are asked for; otherwise the term stands.
    """
    asked = frozenset(words)
    found = _phrases(text, set(phrases))
    for word in _WORD.findall(text):
        for term in terms(word):
            number = term_hash(term)
            if number in asked and number not in found:
                found[number] = word if len(terms(word)) == 1 else term
    return list(dict.fromkeys(found.values()))[:limit]


def _phrases(text: str, wanted: set[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    if wanted:
        for name, start, end in names(text):
            number = term_hash(name)
            if number in wanted and number not in found:
                found[number] = " ".join(text[start:end].split())
    return found
