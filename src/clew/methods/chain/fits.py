"""Whether an answer can be one to its question, by its kind: a check of what a chain has led to."""

from __future__ import annotations

import re

from clew.methods.chain.likeness import date_of, number_of
from clew.read.expected import Kind, expected, holds

_BOOLEAN = re.compile(r"^\W*(?:yes|no|true|false)\b", re.IGNORECASE)
_POLAR = re.compile(r"^\W*(?:are|is|was|were|did|do|does|has|have|had|can|could)\b", re.IGNORECASE)
#: Neither a question with one of these words nor one of two things to choose between wants yes or no.
_OPEN = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how|or)\b", re.IGNORECASE)
#: What a relation leads to, by its words.
_LEADS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"\b(?:date|year|when|day|inception)\b", re.IGNORECASE), "date"),
    (
        re.compile(r"\b(?:place|where|location|located|city|town|country|birthplace)\b", re.IGNORECASE),
        "place",
    ),
    (re.compile(r"\b(?:number|how many|population|amount|count)\b", re.IGNORECASE), "amount"),
    (re.compile(r"\b(?:who|whom|person|director|author|father|mother|spouse)\b", re.IGNORECASE), "person"),
)


def leads_to(relation: str) -> Kind:
    """Return what kind of thing a relation leads to, as far as its words tell."""
    return next((kind for pattern, kind in _LEADS if pattern.search(relation)), "any")


def strays(relation: str, value: str) -> bool:
    """Return whether a value cannot be where a relation leads: no date where one is meant, one where a place is.

    >>> strays("date of birth", "Lima"), strays("place of birth", "3 May 1921"), strays("born in", "1921")
    (True, True, False)
    """
    kind = leads_to(relation)
    if kind == "date":
        return date_of(value) is None and not holds("date", value, "")
    if kind == "amount":
        return number_of(value) is None
    return kind in {"place", "person"} and date_of(value) is not None


def misfit(question: str, answer: str) -> str:
    """Return why ``answer`` cannot be one to ``question``, "" where nothing speaks against it.

    Only what is certain by its form speaks against an answer: a question of when wants a date, one of how many a
    number, one of who no number, and one that begins with a verb yes or no.

    >>> misfit("When was he born?", "Lima"), misfit("When was he born?", "3 May 1921")
    ('a date is asked for', '')
    """
    if not answer:
        return "nothing was found"
    kind = expected(question)
    if kind == "date" and date_of(answer) is None and not holds("date", answer, ""):
        return "a date is asked for"
    if kind == "amount" and number_of(answer) is None and not holds("amount", answer, ""):
        return "a number is asked for"
    if kind in {"person", "place"} and (date_of(answer) or re.fullmatch(r"[\W\d]+", answer)):
        return f"a {kind} is asked for"
    if _POLAR.search(question) and not _OPEN.search(question) and not _BOOLEAN.search(answer):
        return "yes or no is asked for"
    return ""
