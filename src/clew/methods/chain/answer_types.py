"""Whether an answer can be one to its question, by its kind: a check of what a chain has led to."""

from __future__ import annotations

import re

from clew.methods.chain.value_matching import parse_date, parse_number
from clew.methods.readers.answer_kinds import AnswerKind, contains_answer, expected_kind

_BOOLEAN = re.compile(r"^\W*(?:yes|no|true|false)\b", re.IGNORECASE)
_POLAR = re.compile(r"^\W*(?:are|is|was|were|did|do|does|has|have|had|can|could)\b", re.IGNORECASE)
#: Neither a question with one of these words nor one of two things to choose between wants yes or no.
_OPEN = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how|or)\b", re.IGNORECASE)
#: What a relation leads to, by its words.
_LEADS: tuple[tuple[re.Pattern[str], AnswerKind], ...] = (
    (re.compile(r"\b(?:date|year|when|day|inception)\b", re.IGNORECASE), "date"),
    (
        re.compile(r"\b(?:place|where|location|located|city|town|country|birthplace)\b", re.IGNORECASE),
        "place",
    ),
    (re.compile(r"\b(?:number|how many|population|amount|count)\b", re.IGNORECASE), "amount"),
    (re.compile(r"\b(?:who|whom|person|director|author|father|mother|spouse)\b", re.IGNORECASE), "person"),
)


def relation_answer_kind(relation: str) -> AnswerKind:
    """Return what kind of thing a relation leads to, as far as its words tell."""
    return next((kind for pattern, kind in _LEADS if pattern.search(relation)), "any")


def contradicts_relation(relation: str, value: str) -> bool:
    """Return whether a value cannot be where a relation leads: no date where one is meant, one where a place is.

    >>> contradicts_relation("date of birth", "Lima"), contradicts_relation("born in", "1921")
    (True, False)
    """
    kind = relation_answer_kind(relation)
    if kind == "date":
        return parse_date(value) is None and not contains_answer("date", value, "")
    if kind == "amount":
        return parse_number(value) is None
    return kind in {"place", "person"} and parse_date(value) is not None


def answer_type_mismatch(question: str, answer: str) -> str:
    """Return why ``answer`` cannot be one to ``question``, "" where nothing speaks against it.

    Only what is certain by its form speaks against an answer: a question of when wants a date, one of how many a
    number, one of who no number, and one that begins with a verb yes or no.

    >>> answer_type_mismatch("When was he born?", "Lima")
    'a date is asked for'
    >>> answer_type_mismatch("When was he born?", "3 May 1921")
    ''
    """
    if not answer:
        return "nothing was found"
    kind = expected_kind(question)
    if kind == "date" and parse_date(answer) is None and not contains_answer("date", answer, ""):
        return "a date is asked for"
    if kind == "amount" and parse_number(answer) is None and not contains_answer("amount", answer, ""):
        return "a number is asked for"
    if kind in {"person", "place"} and (parse_date(answer) or re.fullmatch(r"[\W\d]+", answer)):
        return f"a {kind} is asked for"
    if _POLAR.search(question) and not _OPEN.search(question) and not _BOOLEAN.search(answer):
        return "yes or no is asked for"
    return ""
