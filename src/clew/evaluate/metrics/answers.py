"""Measures of an answer's text: exact match, token F1, and whether it contains the gold answer.

Normalisation, exact match and ``token-F1`` are those of SQuAD (Rajpurkar et al., EMNLP 2016), which QASPER and
MuSiQue use too. ``F1`` is HotpotQA's, where ``yes``, ``no`` and ``noanswer`` share no token with another answer. The
best score over aliases and annotators counts.
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
_LABELS_ALONE = frozenset({"yes", "no", "noanswer"})
#: The gold answer of unanswerable questions in QASPER's official script.
UNANSWERABLE = "unanswerable"


def normalise_answer(answer: str) -> str:
    """Return an answer in lower case, without punctuation, articles and extra white space.

    >>> normalise_answer("The  Walt Disney Co.")
    'walt disney co'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> float:
    """Return 1 if both are the same after normalisation, else 0."""
    return float(normalise_answer(answer) == normalise_answer(gold))


def f1(answer: str, gold: str) -> float:
    """Return :func:`token_f1`, but 0 where only one of the two is ``yes``, ``no`` or ``noanswer``."""
    first, second = normalise_answer(answer), normalise_answer(gold)
    if first != second and (first in _LABELS_ALONE or second in _LABELS_ALONE):
        return 0.0
    return token_f1(answer, gold)


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of token precision and recall, counting repetitions.

    >>> token_f1("the first president of Boston", "president")
    0.4
    """
    tokens, gold_tokens = normalise_answer(answer).split(), normalise_answer(gold).split()
    if not tokens or not gold_tokens:
        return float(tokens == gold_tokens)
    shared = sum((Counter(tokens) & Counter(gold_tokens)).values())
    return 2 * shared / (len(tokens) + len(gold_tokens))


def contains_answer(answer: str, gold: str) -> float:
    """Return 1 if the answer contains the words of the gold answer in order, else 0 (cover exact match).

    ``yes`` and ``no`` must be the first word: "there is no doubt that it is" contains "no" and means yes.
    """
    gold_words, answer_words = normalise_answer(gold), normalise_answer(answer)
    if gold_words in _LABELS_ALONE:
        return float(answer_words.split()[:1] == [gold_words])
    return float(bool(gold_words) and f" {gold_words} " in f" {answer_words} ")


def accuracy(result: Result) -> float | None:
    """Return whether the answer contains the gold answer; a label (FEVER) must be the whole answer."""
    return best_score(exact_match if result.example.answer_type == "label" else contains_answer, result)


def best_score(score: Callable[[str, str], float], result: Result) -> float | None:
    """Return the best score over answers, aliases and annotators.

    An unanswerable question scores 1 for abstaining, else 0. None where the data set has no answers, or has only ids
    of nodes (STaRK), which cannot be compared with text.
    """
    scores = [value for _, value in _scores_by_annotator(score, result)]
    return max(scores) if scores else None


def answer_type(result: Result) -> str:
    """Return the type of the gold answer; where annotators differ, that of the annotator with the best F1.

    QASPER's official script breaks F1 down by type in the same way.
    """
    scores = _scores_by_annotator(token_f1, result)
    return max(scores, key=lambda scored: scored[1])[0] if scores else result.example.answer_type


def _scores_by_annotator(score: Callable[[str, str], float], result: Result) -> list[tuple[str, float]]:
    scores: list[tuple[str, float]] = []
    for annotation in result.example.alternatives or (result.example,):
        if (
            annotation.answer_type == "entities"
            and annotation.support
            and not any(piece.entity for piece in annotation.support)
        ):
            continue
        if annotation.answer_type == "unanswerable":
            abstained = result.abstained or normalise_answer(result.answer) == UNANSWERABLE
            scores.append((annotation.answer_type, float(abstained)))
        elif annotation.answers:
            value = (
                0.0 if result.abstained else max(score(result.answer, gold) for gold in annotation.answers)
            )
            scores.append((annotation.answer_type, value))
    return scores
