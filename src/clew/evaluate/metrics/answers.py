"""How right an answer is: exact match, token F1, and whether it holds the answer at all.

Normalisation, exact match and ``token-F1`` are those of SQuAD (Rajpurkar et al., EMNLP 2016); QASPER and MuSiQue
take them as they are. ``F1`` is HotpotQA's, where ``yes``, ``no`` and ``noanswer`` share no token with another
answer. The best over aliases and annotators counts.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.examples import Result

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WHOLE = frozenset({"yes", "no", "noanswer"})
#: The answer of a question that has none, as QASPER's official script has it.
UNANSWERABLE = "unanswerable"


def normalise_answer(answer: str) -> str:
    """Return an answer in lower case, without punctuation, articles and extra white space.

    >>> normalised("The  Walt Disney Co.")
    'walt disney co'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> float:
    """Return 1 if both are the same after normalisation, else 0."""
    return float(normalise_answer(answer) == normalise_answer(gold))


def f1(answer: str, gold: str) -> float:
    """Return :func:`token_f1`, but 0 where one of the two is ``yes``, ``no`` or ``noanswer`` and not both."""
    one, other = normalise_answer(answer), normalise_answer(gold)
    if one != other and (one in _WHOLE or other in _WHOLE):
        return 0.0
    return token_f1(answer, gold)


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of token precision and recall, counting repetitions.

    >>> token_f1("the first president of Boston", "president")
    0.4
    """
    tokens, wanted = normalise_answer(answer).split(), normalise_answer(gold).split()
    if not tokens or not wanted:
        return float(tokens == wanted)
    shared = sum((Counter(tokens) & Counter(wanted)).values())
    return 2 * shared / (len(tokens) + len(wanted))


def contains_answer(answer: str, gold: str) -> float:
    """Return 1 if the answer contains the gold answer's words in their order, else 0 (cover exact match).

    ``yes`` and ``no`` must be its first word: "there is no doubt that it is" contains a "no" and means yes.
    """
    wanted, given = normalise_answer(gold), normalise_answer(answer)
    if wanted in _WHOLE:
        return float(given.split()[:1] == [wanted])
    return float(bool(wanted) and f" {wanted} " in f" {given} ")


def accuracy(result: Result) -> float | None:
    """Return whether the answer holds the right one; a label (FEVER) must be the whole answer."""
    return best_score(exact_match if result.example.answer_type == "label" else contains_answer, result)


def best_score(score: Callable[[str, str], float], result: Result) -> float | None:
    """Return the best score over answers, aliases and annotators; None where answers are known by id alone (STaRK),
    which no text has.

    A question without an answer is answered rightly by abstaining and by nothing else. None where the data
    set has no answers at all.
    """
    found = [value for _, value in _by_annotator(score, result)]
    return max(found) if found else None


def answer_type(result: Result) -> str:
    """Return what kind of answer the question has: where annotators differ, that of the one with the best F1.

    So QASPER's official script counts its F1 by type.
    """
    found = _by_annotator(token_f1, result)
    return max(found, key=lambda one: one[1])[0] if found else result.example.answer_type


def _by_annotator(score: Callable[[str, str], float], result: Result) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for one in result.example.alternatives or (result.example,):
        if one.answer_type == "entities" and one.support and not any(piece.entity for piece in one.support):
            continue
        if one.answer_type == "unanswerable":
            said = result.abstained or normalise_answer(result.answer) == UNANSWERABLE
            found.append((one.answer_type, float(said)))
        elif one.answers:
            value = 0.0 if result.abstained else max(score(result.answer, gold) for gold in one.answers)
            found.append((one.answer_type, value))
    return found
