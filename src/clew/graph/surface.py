"""The words behind hashes, for people: found again in the text that holds them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from clew.text import candidate_names, hash_term, index_terms

_WORD = re.compile(r"\w(?:[\w'’.,]*\w)?")


def surface_forms(text: str, words: Sequence[int], phrases: Sequence[int] = (), limit: int = 5) -> list[str]:
    """Return how ``text`` writes the terms and names with these hashes; at most ``limit``, phrases first.

    Each is given once, as it first occurs, in the order of the text. A word of several terms (CJK) stands
    for itself only if all its terms are asked for; otherwise the term stands.
    """
    asked = frozenset(words)
    held = _names_of(text) if len(phrases) else {}
    wanted = frozenset(phrases)
    found = {number: name for number, name in held.items() if number in wanted}
    for word in _WORD.findall(text) if asked else ():
        for term in index_terms(word):
            number = hash_term(term)
            if number in asked and number not in found:
                found[number] = word if len(index_terms(word)) == 1 else term
    return list(dict.fromkeys(found.values()))[:limit]


# A walk asks for the names that join one passage to several others.
@lru_cache(maxsize=256)
def _names_of(text: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, start, end in candidate_names(text):
        found.setdefault(hash_term(name), " ".join(text[start:end].split()))
    return found
