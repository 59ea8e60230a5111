"""Whether a value can answer its question or relation, by its kind: a date, a number, a name, yes or no."""

from __future__ import annotations

import re

from clew.methods.chain.value_matching import parse_date, parse_number
from clew.methods.readers.answer_kinds import AnswerKind, contains_answer, expected_kind

_BOOLEAN = re.compile(r"^\W*(?:yes|no|true|false)\b", re.IGNORECASE)
_POLAR = re.compile(r"^\W*(?:are|is|was|were|did|do|does|has|have|had|can|could)\b", re.IGNORECASE)
#: A question with one of these words is not answered by yes or no.
_OPEN = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how|or)\b", re.IGNORECASE)
#: The kind of value that a relation leads to, by its words.
_KINDS: tuple[tuple[re.Pattern[str], AnswerKind], ...] = (
    (re.compile(r"\b(?:date|year|when|day|inception)\b", re.IGNORECASE), "date"),
    (
        re.compile(r"\b(?:place|where|location|located|city|town|country|birthplace)\b", re.IGNORECASE),
        "place",
    ),
    (re.compile(r"\b(?:number|how many|population|amount|count)\b", re.IGNORECASE), "amount"),
    (re.compile(r"\b(?:who|whom|person|director|author|father|mother|spouse)\b", re.IGNORECASE), "person"),
)


def relation_answer_kind(relation: str) -> AnswerKind:
    """Return the kind of value that a relation leads to, by its words; ``any`` if they do not tell."""
    return next((kind for pattern, kind in _KINDS if pattern.search(relation)), "any")


def contradicts_relation(relation: str, value: str) -> bool:
    """Return whether a value is of another kind than the relation leads to: a date for a place, a name for a date.

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
    """Return why ``answer`` cannot answer ``question``, "" if nothing speaks against it.

    Only its form can speak against an answer: "when" asks for a date, "how many" for a number, "who" for anything but
    a number, and a question that begins with a verb for yes or no.

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
