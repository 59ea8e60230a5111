"""How right an answer is: exact match, token F1, and whether it holds the answer at all.

Normalisation, exact match and F1 are those of SQuAD (Rajpurkar et al., EMNLP 2016) and, for ``yes``, ``no`` and
``noanswer``, of HotpotQA's official script, where such an answer shares no token with another.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.metrics import Result

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WHOLE = frozenset({"yes", "no", "noanswer"})
#: The answer of a question that has none, as QASPER's official script has it.
NONE = "unanswerable"


def normalised(answer: str) -> str:
    """Return an answer in lower case, without punctuation, articles and extra white space.

    >>> normalised("The  Walt Disney Co.")
    'walt disney co'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact(answer: str, gold: str) -> float:
    """Return 1 if both are the same after normalisation, else 0."""
    return float(normalised(answer) == normalised(gold))


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of token precision and recall, counting repetitions.

    >>> round(f1("the first president of Boston", "president"), 3)
    0.4
    """
    one, other = normalised(answer), normalised(gold)
    if one != other and (one in _WHOLE or other in _WHOLE):
        return 0.0
    tokens, wanted = one.split(), other.split()
    if not tokens or not wanted:
        return float(tokens == wanted)
    shared = sum((Counter(tokens) & Counter(wanted)).values())
    return 2 * shared / (len(tokens) + len(wanted))


def holds(answer: str, gold: str) -> float:
    """Return 1 if the answer contains the gold answer's words in their order, else 0 (cover exact match)."""
    wanted = normalised(gold)
    return float(bool(wanted) and f" {wanted} " in f" {normalised(answer)} ")


def best(score: Callable[[str, str], float], result: Result) -> float | None:
    """Return the best score over answers, aliases and annotators.

    A question without an answer is answered rightly by abstaining and by nothing else. None where the data
    set has no answers at all.
    """
    example = result.example
    annotated = example.alternatives or (example,)
    given = NONE if result.abstained else result.answer
    found = []
    for one in annotated:
        if one.answer_type == "unanswerable":
            found.append(float(result.abstained or normalised(result.answer) == NONE))
        elif one.answers:
            found.append(0.0 if result.abstained else max(score(given, gold) for gold in one.answers))
    return max(found) if found else None
