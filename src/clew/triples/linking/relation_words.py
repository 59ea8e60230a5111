"""The words of relations and of phrases that may name one: spelled out, and which way they are said.

English. A relation or phrase is said *forwards* if what it asks for is what the other end is: ``director``,
``directed by``, ``has genre``, ``born in``. It is said *backwards* if it says what the first does to the other:
``directed``, ``director of``, ``films directed by`` (asked of the director). Two that are said the same way mean
the same direction of an edge, two that are said differently opposite ones; that is all that is made of it.
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

    >>> spelled("directed_by"), spelled("http://example.org/ns#placeOfBirth"), spelled("wdt:P57")
    ('directed by', 'place of birth', 'p57')
    """
    if "://" in name and (found := _IRI_END.search(name)):
        name = found.group()
    elif re.fullmatch(r"[A-Za-z][\w.-]*:\w+", name):
        name = name.partition(":")[2]
    return " ".join(_NOT_WORD.sub(" ", _CAMEL.sub(" ", name)).casefold().split()) or name


def is_backwards(phrase: str) -> bool:
    """Return whether spelled words say what the first does to the other, not what the other is to the first.

    >>> [backwards(one) for one in ("directed by", "directed", "films directed by", "born in", "won the prize")]
    [False, True, True, False, False]
    """
    words = _bare(phrase)
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
    """Return what the first is said to be of the other, as a root: "" unless the words are such as ``director of``.

    Backwards for a relation that is called after that role alone: the ``citizen of`` a country is not asked for by
    its ``country of citizenship``.

    >>> role("the director of"), role("director")
    ('direct', '')
    """
    words = _bare(phrase)
    return root_word(" ".join(words[:-1])) if len(words) > 1 and words[-1] == "of" else ""


def root_word(phrase: str) -> str:
    """Return the root of the first word that is not a function word: of a relation, what it calls the other end."""
    return next((_root(term) for term in index_terms(phrase) if not is_stop_term(term)), "")


def _bare(phrase: str) -> list[str]:
    words = phrase.split()
    while len(words) > 1 and words[0] in _AUXILIARY:
        words = words[1:]
    return words


@lru_cache(maxsize=1 << 14)
def word_stems(phrase: str) -> frozenset[str]:
    """Return the stems of a phrase's words, without function words and with those of one family made one.

    >>> sorted(stems("directed by")) == sorted(stems("the director"))
    True
    """
    found = {_root(term) for term in index_terms(phrase) if not is_stop_term(term)}
    return frozenset(found or map(stem, phrase.split()))


def _root(term: str) -> str:
    """Return a Porter2 stem without the endings of doers and deeds: director, direction and directed are direct."""
    if not term.isascii():
        return term
    for ending in ("ition", "ation", "ion", "or", "er", "ment", "ship", "ant", "ent", "e"):
        if term.endswith(ending) and len(term) - len(ending) >= 4:
            return term[: -len(ending)]
    return term
