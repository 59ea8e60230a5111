"""TAT-QA's measures: exact match and numeracy-focused F1, with the scale (Zhu et al., ACL 2021, section 5.1).

An answer is a list of values and a scale. Numbers are compared with their scale multiplied in, rounded to two
decimals before; a percentage is divided by 100. Other values are text with their scale appended. ``TAT-EM`` is 1 if
both lists are the same. ``TAT-F1`` is that of DROP (Dua et al., NAACL 2019, section 5): the values of both lists are
aligned one to one so that the sum of their token F1 is greatest, and the sum is divided by the length of the longer
list. A pair whose gold value has numbers, none of which the other has, scores 0; for computed answers F1 is EM.

Answers here are text: several values are joined by ``; ``, and a scale or a percent sign stands behind the number.
Where gold has a percentage, a prediction without a sign counts with it, as the published script allows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from clew.evaluate.metrics.answers import normalise_answer

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.evaluate.examples import Result

_FACTORS = {"": 1.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "percent": 0.01}
_NUMBER = re.compile(
    r"^(?P<open>\()? ?(?P<sign>[-−–])? ?(?:US)?[$€£¥]? ?(?P<inner>[(\-−])? ?(?P<digits>\d[\d,]*(?:\.\d+)?|\.\d+) ?\)?"
    r" ?(?P<percent>%)? ?\)? ?(?P<scale>thousand|million|billion|percent)?s?$",
    re.IGNORECASE,
)


def canonical_value(value: str, scale: str = "") -> str:
    """Return a value in the form in which values are compared.

    >>> canonical_value("$1,496.5", "million"), canonical_value("(12.6)"), canonical_value("-22.22%")
    ('1496500000.0000', '-12.6000', '-0.2222')
    >>> canonical_value("The Americas")
    'americas'
    """
    match = _NUMBER.match(" ".join(value.split()))
    if match is None:
        return normalise_answer(f"{value} {scale}")
    number = float(match["digits"].replace(",", ""))
    if match["sign"] or match["open"] or match["inner"]:
        number = -number
    if match["percent"]:
        return f"{round(number, 2) * 0.01:.4f}"
    factor = _FACTORS[(match["scale"] or scale).lower()]
    return f"{round(number, 2) * factor:.4f}"


def split_values(answer: str) -> list[str]:
    """Return the values of an answer that are joined by ``; ``."""
    return [value for value in answer.split("; ") if value.strip()]


def tat_exact_match(result: Result) -> float | None:
    """Return TAT-QA's exact match; None for a question of another data set."""
    return _best(result, lambda answer, gold: float(Counter(answer) == Counter(gold)))


def tat_f1(result: Result) -> float | None:
    """Return TAT-QA's F1; None for a question of another data set."""
    if result.example.answer_type == "number":
        return tat_exact_match(result)
    return _best(result, _aligned_f1)


def _best(result: Result, score: Callable[[list[str], list[str]], float]) -> float | None:
    meta = result.example.meta
    if "values" not in meta:
        return None
    if result.abstained:
        return 0.0
    scale = str(meta["scale"])
    gold = [canonical_value(value, scale) for value in meta["values"]]
    answers = [[canonical_value(value) for value in split_values(result.answer)]]
    if scale == "percent":
        answers.append([canonical_value(value, "percent") for value in split_values(result.answer)])
    return max(score(answer, gold) for answer in answers)


def _aligned_f1(answer: list[str], gold: list[str]) -> float:
    """Return the F1 of two lists of values, aligned greedily where both are long, else in the best way."""
    if not answer or not gold:
        return float(answer == gold)
    scores = np.array([[_bag_f1(value, other) for other in answer] for value in gold])
    return float(_best_assignment(scores) / max(len(answer), len(gold)))


def _best_assignment(scores: Floats) -> float:
    """Return the greatest sum of a one-to-one choice of cells: exact up to 12 values on the shorter side."""
    if scores.shape[0] < scores.shape[1]:
        scores = scores.T
    if scores.shape[1] > 12:
        total = 0.0
        for _ in range(scores.shape[1]):
            place = np.unravel_index(scores.argmax(), scores.shape)
            total += max(float(scores[place]), 0.0)
            scores[place[0], :] = scores[:, place[1]] = -1.0
        return total
    best = np.full(1 << scores.shape[1], -np.inf)
    best[0] = 0.0
    for row in scores:
        following = best.copy()
        for column, score in enumerate(row):
            bit = 1 << column
            free = np.flatnonzero(~np.arange(len(best)) & bit)
            following[free | bit] = np.maximum(following[free | bit], best[free] + score)
        best = following
    return float(best.max())


def _bag_f1(answer: str, gold: str) -> float:
    words, gold_words = set(answer.split()), set(gold.split())
    numbers, gold_numbers = ({word for word in bag if _is_number(word)} for bag in (words, gold_words))
    if gold_numbers and not numbers & gold_numbers:
        return 0.0
    shared = len(words & gold_words)
    return 2 * shared / (len(words) + len(gold_words)) if shared else 0.0


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-?\d+(?:\.\d+)?", word) is not None
