"""Matching values as people write them: names, dates and numbers; and whether a value is of the kind that its
question or relation asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clew.core.text import fold_name, normalise_name
from clew.methods.readers.extractive import AnswerKind, contains_answer, expected_kind

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
_NAMED = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + r"|sept)\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{1,4})(?P<era>\s*(?:bc|bce)\b)?"
_ABOUT = r"(?:c\.|ca\.?|circa|about|around)?\s*"
_DATES = [
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>-?\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:T.*)?(?P<era>)",
        rf"{_ABOUT}{_DAY}\s+(?:of\s+)?{_NAMED},?\s+{_YEAR}",
        rf"{_ABOUT}{_NAMED}\s+{_DAY},?\s+{_YEAR}",
        rf"{_ABOUT}{_NAMED},?\s+{_YEAR}",
        rf"{_ABOUT}{_YEAR}",
    )
]
_SCALE = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "bn": 1e9}
_NUMBER = re.compile(
    r"[^\d.,+-]{0,4}?(?P<digits>[+-]?\d[\d,]*(?:\.\d+)?)\s*(?P<scale>[a-z]+)?\b", re.IGNORECASE
)
_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}


@dataclass(frozen=True, slots=True)
class Date:
    """A date. An unknown month or day is 0; years before Christ are negative."""

    year: int
    month: int = 0
    day: int = 0

    def compare(self, other: Date) -> int | None:
        """Return -1 if this date is earlier, 0 if it is the same day, 1 if it is later, None if that is not known."""
        own, others = (self.year, self.month, self.day), (other.year, other.month, other.day)
        for own_part, other_part in zip(own, others, strict=True):
            if not own_part or not other_part:
                return None
            if own_part != other_part:
                return -1 if own_part < other_part else 1
        return 0


def parse_date(text: str) -> Date | None:
    """Return the date that a text consists of, or None.

    >>> parse_date("March 1, 1963"), parse_date("c. 44 BC"), parse_date("Lima")
    (Date(year=1963, month=3, day=1), Date(year=-44, month=0, day=0), None)
    """
    for pattern in _DATES:
        match = pattern.fullmatch(text.strip().rstrip("."))
        if match is None:
            continue
        parts = match.groupdict()
        name = parts.get("month") or "0"
        month = int(name) if name.isdigit() else _MONTH[name[:3].lower()]
        day = int(parts.get("day") or 0)
        year = -int(parts["year"]) if parts["era"] else int(parts["year"])
        return Date(year, month, day) if month <= 12 and day <= 31 else None
    return None


def parse_number(text: str) -> float | None:
    """Return the number that a text begins with, or None.

    >>> parse_number("$1,250.5"), parse_number("3.2 million people"), parse_number("two"), parse_number("Lima")
    (1250.5, 3200000.0, 2.0, None)
    """
    text = text.strip()
    if text.lower() in _WORDS:
        return float(_WORDS[text.lower()])
    match = _NUMBER.match(text)
    if match is None:
        return None
    return float(match["digits"].replace(",", "")) * _SCALE.get((match["scale"] or "").lower(), 1.0)


def same_value(first: str, second: str) -> bool:
    """Return whether two values say the same: equal names, one within the other, dates that do not contradict, or
    equal numbers.

    >>> same_value("André Berthomieu", "Andre Berthomieu"), same_value("10 April 1960", "1960"), same_value("3", "4")
    (True, True, False)
    """
    names = _normalise(first), _normalise(second)
    if names[0] == names[1]:
        return True
    dates = parse_date(first), parse_date(second)
    if dates[0] and dates[1]:
        return dates[0].year == dates[1].year and dates[0].compare(dates[1]) in {0, None}
    numbers = parse_number(first), parse_number(second)
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0] == numbers[1]
    shorter, longer = sorted((f" {name} " for name in names), key=len)
    return bool(shorter.strip()) and shorter in longer


def mentions_name(name: str, text: str) -> bool:
    """Return whether a text mentions a name, in any case, with or without the words in brackets after it."""
    words = f" {_normalise(text)} "
    bare = re.sub(r"\s*\([^)]*\)\s*$", "", name)
    return any(f" {_normalise(form)} " in words for form in (name, bare) if form.strip())


def _normalise(name: str) -> str:
    return normalise_name(fold_name(name))


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
