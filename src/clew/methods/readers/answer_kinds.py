"""Kinds of answers: which one a question asks for, and which texts have an answer of it.

They help to choose between texts; a question that the rules do not know expects ``any``, which costs precision, never
an answer. All rules are for English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from clew.core.text import candidate_names
from clew.core.values import MONTH_PATTERN

AnswerKind = Literal["person", "place", "date", "amount", "name", "reason", "any"]

#: Enough of a date to see that a text has one: a year from 1000 to 2099, a day of a month, a time, a fiscal year.
_DATE = re.compile(
    rf"\b(?:1[0-9]\d\d|20\d\d)\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH_PATTERN}\b|\b{MONTH_PATTERN}\s+\d{{1,2}}\b"
    rf"|\b\d\d?:\d\d\b|\b(?:FY|Q[1-4])\s?\d\d",
    re.IGNORECASE,
)
#: A month with its day and year, as far as they are given: a date, and no count of things.
_DATE_BY_MONTH = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?{MONTH_PATTERN}\b\.?(?:\s+\d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,?\s+\d{{4}})?",
    re.IGNORECASE,
)
#: All of a date, from its day to its year, as it is given for an answer.
_WHOLE_DATE = re.compile(rf"{_DATE_BY_MONTH.pattern}|\b(?:1[0-9]\d\d|20\d\d)\b", re.IGNORECASE)
#: Words that join two names and are part of neither.
_BETWEEN = re.compile(r"\s(?:in|and|for|on|at|to|by)\s")
_WORDS = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand"
    r"|million|half|dozen|twice|both|none|nil)"
)
_AMOUNT = re.compile(rf"[$€£¥]\s?\d|\d[\d,.]*\s?%|\b\d[\d,]*(?:\.\d+)?\b|\b{_WORDS}\b", re.IGNORECASE)
_REASON = re.compile(
    r"\b(?:because|since|due to|so that|in order to|caused|reason|owing to|as a result|led to)\b", re.I
)
#: A place stands behind such a word and begins with a capital.
_PLACED = re.compile(r"\b(?:in|at|near|from|to|on|of|off|above|below|between)\s+(?:the\s+)?[A-Z]")
#: Words of a question and the kind of answer that they ask for. The first pattern that matches counts.
_ASKS: tuple[tuple[re.Pattern[str], AnswerKind], ...] = (
    (
        re.compile(
            r"\bhow (?:many|much|long|far|tall|high|deep|wide|thick|old|large|big|heavy|fast|often)\b"
            r"|\b(?:what|which) (?:\w+ ){0,5}?(?:number|amount|percentage|percent|share|rate|ratio|price|cost|total"
            r"|height|length|depth|width|size|value|sum|weight|distance|temperature|margin|population)\b"
        ),
        "amount",
    ),
    (re.compile(r"\b(?:what|which) (?:year|date|day|month|century|decade|time)\b|\bwhen\b"), "date"),
    (re.compile(r"\bwho(?:m|se)?\b"), "person"),
    (
        re.compile(
            r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|town|country|place|state|village|river|street)\b"
        ),
        "place",
    ),
    (re.compile(r"\bwhy\b"), "reason"),
    (re.compile(r"\bwhich\b|\bwhat(?: is|'s| was)? the name\b"), "name"),
)


def expected_kind(question: str) -> AnswerKind:
    """Return the kind of answer that ``question`` expects.

    >>> expected_kind("How much did the bridge cost?"), expected_kind("In which year was it built?")
    ('amount', 'date')
    """
    folded = " ".join(question.casefold().split())
    return next((kind for pattern, kind in _ASKS if pattern.search(folded)), "any")


def contains_answer(kind: AnswerKind, text: str, question: str) -> bool:
    """Return whether ``text`` has an answer of ``kind`` that is not in the question itself."""
    return next(_answers(kind, text, question), None) is not None


def _answers(kind: AnswerKind, text: str, question: str) -> Iterator[str]:
    """Yield the possible answers of a kind that are not in the question."""
    folded = question.casefold()
    if kind == "any":
        return
    if kind in {"date", "amount"}:
        pattern = _DATE if kind == "date" else _AMOUNT
        matches = (match.group() for match in pattern.finditer(text))
        yield from (words for words in matches if words.casefold() not in folded)
        return
    if kind == "reason":
        yield from _REASON.findall(text)
        return
    if kind == "place" and not _PLACED.search(text):
        return
    for name, start, end in candidate_names(text):
        # The first word of a sentence is capitalised whatever it is.
        if name not in folded and not name[0].isdigit() and (start > 0 or " " in text[start:end]):
            yield name


def answer_spans(kind: AnswerKind, text: str) -> Iterator[tuple[int, int]]:
    """Yield the character ranges of possible answers of ``kind`` in ``text``.

    A date is one range with its day and month, an amount with the sign of its unit. For all other kinds they are
    names: whole ones ("University of Ohio"), but not two names joined by words such as "in" or "and".
    """
    if kind in {"date", "amount"}:
        pattern = _WHOLE_DATE if kind == "date" else _AMOUNT
        yield from (match.span() for match in pattern.finditer(text))
        return
    names = [
        (start, end)
        for name, start, end in candidate_names(text)
        if not name[0].isdigit()
        and (start > 0 or " " in text[start:end])
        and not _BETWEEN.search(text[start:end])
    ]
    last_end = -1
    for start, end in sorted(names, key=lambda span: (span[0], -span[1])):
        if end > last_end:  # not within the name before
            yield start, end
            last_end = end
