"""Comparisons with numbers in a question: "after 1990", "between 3 and 5", "in the 1920s", "over 500"."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

_NUMBER = r"(?P<{}>\d[\d,]*(?:\.\d+)?)"
_RANGE = re.compile(
    rf"\b(?:between|from)\s+{_NUMBER.format('low')}\s+(?:and|to)\s+{_NUMBER.format('high')}", re.I
)
_COMPARISON = re.compile(
    r"\b(?P<words>after|since|before|until|in|during|over|above|more than|greater than|larger than|at least|"
    r"less than|under|below|fewer than|smaller than|at most|later than|earlier than)\s+"
    + _NUMBER.format("value")
    + r"\b",
    re.I,
)
_OF_YEAR = re.compile(r"\bfrom\s+(?P<value>(?:1[0-9]|20)\d\d)\b(?!s|\s+(?:to|until|and)\b)", re.I)
_DECADE = re.compile(r"\b(?:(?:in|from|of|during)\s+)?(?:the\s+)?(?P<decade>1[0-9]\d0|20\d0)['’]?s\b", re.I)
_TESTS = {
    "after": ">",
    "since": ">=",
    "before": "<",
    "until": "<=",
    "in": "=",
    "during": "=",
    "over": ">",
    "above": ">",
    "more than": ">",
    "greater than": ">",
    "larger than": ">",
    "later than": ">",
    "at least": ">=",
    "less than": "<",
    "under": "<",
    "below": "<",
    "fewer than": "<",
    "smaller than": "<",
    "earlier than": "<",
    "at most": "<=",
}
_OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
_OF_TIME = frozenset({"after", "since", "before", "until", "in", "during", "later than", "earlier than"})


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """A comparison with a number in a question, such as "after 1990" or "in the 1920s": the characters from ``start``
    to ``end``, and the test. ``is_year``: it says when something was."""

    start: int
    end: int
    test: str
    low: float
    high: float | None
    is_year: bool

    def holds(self, value: float) -> bool:
        """Return whether a number passes the test."""
        if self.high is not None:
            return self.low <= value <= self.high
        return bool(_OPERATORS[self.test](value, self.low))


def find_comparisons(question: str) -> list[NumberComparison]:
    """Return the comparisons with numbers in a question.

    >>> [(each.test, each.low, each.high) for each in find_comparisons("films from the 1920s with over 500 votes")]
    [('between', 1920.0, 1929.0), ('>', 500.0, None)]
    """
    matches = [(match, "between") for match in _RANGE.finditer(question)]
    matches += [(match, "decade") for match in _DECADE.finditer(question)]
    matches += [(match, "in") for match in _OF_YEAR.finditer(question)]
    matches += [
        (match, match["words"].casefold())
        for match in _COMPARISON.finditer(question)
        if not any(match.start() < other.end() and other.start() < match.end() for other, _ in matches)
    ]
    comparisons = []
    for match, words in matches:
        low, high = _bounds(match, words)
        is_year = 1000 <= low <= 2200 and (words in _OF_TIME or high is not None) and low.is_integer()
        test = _TESTS[words] if high is None else "between"
        comparisons.append(NumberComparison(*match.span(), test, low, high, is_year))
    return comparisons


def _bounds(match: re.Match[str], words: str) -> tuple[float, float | None]:
    """Return the number of a comparison, or both of a range; None in place of the second where there is no range."""
    if words == "decade":
        return float(match["decade"]), float(match["decade"]) + 9
    if words == "between":
        return _value(match["low"]), _value(match["high"])
    return _value(match["value"]), None


def _value(text: str) -> float:
    return float(text.replace(",", ""))
