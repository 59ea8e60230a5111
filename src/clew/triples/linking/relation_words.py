"""The words of relations and of phrases that may name one, and the direction in which they are worded. English only.

A relation or phrase is worded *forwards* if it names the other end: ``director``, ``directed by``, ``has genre``,
``born in``. It is worded *backwards* if it says what the first end does to the other: ``directed``, ``director of``,
``films directed by`` (of a director). Two that are worded the same way mean the same direction of an edge, two that
are worded differently opposite directions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from clew.core.text import index_terms, is_stop_term, stem

_IRI_END = re.compile(r"[^/#]+(?=[/#]?$)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[\W_]+")
#: Verbs of what a person or work does, that end in -ed and are followed by "in", "as" or "for".
_DOING = frozenset(
    "starred acted appeared played performed competed sang wrote directed produced worked voiced".split()
)
_DID = frozenset(
    "wrote sang won made wed led drew built began spoke taught bore sold bought founded".split()
) | {"stars", "writes", "directs", "produces", "plays", "sings", "cites", "owns", "leads", "treats", "causes"}
_AUXILIARY = frozenset("is was are were be been being has have had who what that which the a an".split())


@lru_cache(maxsize=1 << 14)
def verbalise_relation(name: str) -> str:
    """Return a relation's name as words: the readable end of an IRI, camel case and underscores spelled out.

    >>> verbalise_relation("directed_by"), verbalise_relation("http://example.org/ns#placeOfBirth")
    ('directed by', 'place of birth')
    """
    if "://" in name and (match := _IRI_END.search(name)):
        name = match.group()
    elif re.fullmatch(r"[A-Za-z][\w.-]*:\w+", name):
        name = name.partition(":")[2]
    return " ".join(_NOT_WORD.sub(" ", _CAMEL.sub(" ", name)).casefold().split()) or name


def is_backwards(phrase: str) -> bool:
    """Return whether a verbalised phrase is worded backwards.

    >>> phrases = ("directed by", "directed", "films directed by", "born in", "won the prize")
    >>> [is_backwards(phrase) for phrase in phrases]
    [False, True, True, False, False]
    """
    words = _without_auxiliaries(phrase)
    if not words:
        return False
    first, last = words[0], words[-1]
    if len(words) == 1:
        return first in _DID or (first.endswith("ed") and len(first) > 4)
    if last == "by":
        # Films directed by, works by: a plural stands before it. "was directed by" has lost its "was" above.
        return first.endswith("s") and not first.endswith("ss")
    return first in _DOING and words[1] in {"in", "as", "for"}


def head_role(phrase: str) -> str:
    """Return the root of the role that a phrase such as ``director of`` gives the first end, "" for other phrases.

    Such a phrase is backwards only for a relation that is called after the role: the ``citizen of`` a country is not
    asked for by its ``country of citizenship``.

    >>> head_role("the director of"), head_role("director")
    ('direct', '')
    """
    words = _without_auxiliaries(phrase)
    return root_word(" ".join(words[:-1])) if len(words) > 1 and words[-1] == "of" else ""


def root_word(phrase: str) -> str:
    """Return the root of the first word that is not a function word: in a relation, the name of the other end."""
    return next((_root(term) for term in index_terms(phrase) if not is_stop_term(term)), "")


def _without_auxiliaries(phrase: str) -> list[str]:
    words = phrase.split()
    while len(words) > 1 and words[0] in _AUXILIARY:
        words = words[1:]
    return words


@lru_cache(maxsize=1 << 14)
def word_stems(phrase: str) -> frozenset[str]:
    """Return the roots of a phrase's words, without function words.

    >>> sorted(word_stems("directed by")) == sorted(word_stems("the director"))
    True
    """
    roots = {_root(term) for term in index_terms(phrase) if not is_stop_term(term)}
    return frozenset(roots or map(stem, phrase.split()))


def _root(term: str) -> str:
    """Return a Porter2 stem without the endings of agents and actions: director, direction and directed give
    direct."""
    if not term.isascii():
        return term
    for ending in ("ition", "ation", "ion", "or", "er", "ment", "ship", "ant", "ent", "e"):
        if term.endswith(ending) and len(term) - len(ending) >= 4:
            return term[: -len(ending)]
    return term
