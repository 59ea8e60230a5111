"""Measures of answers, evidence and cost, each under a canonical name that parses back.

``EM``, ``F1``, ``token-F1``, ``accuracy``, ``Acc`` (graded by a model: :mod:`~clew.evaluate.metrics.grading`),
``SF-EM``, ``SF-coverage``, ``SF-precision``, ``support-recall@5``, ``support-precision@5``, ``recall@5``,
``all-gold@5``, ``capped-recall@20``, ``MRR``, ``Hit@1``, ``set-EM``, ``set-F1``, ``evidence-P``, ``evidence-R``,
``evidence-F1``, ``retrieved-P``, ``retrieved-R``, ``retrieved-F1``, ``tokens``, ``calls``, ``seconds``,
``walk-seconds``, ``money``, ``retrieval-tokens``, ``retrieval-calls``, ``answering-tokens``, ``answering-calls``.
``evidence-`` measures what the answer rests on, ``retrieved-`` all that was given to read, in the same way: the
evidence of the D3 paper, whose readers say nothing of what they used. ``set-`` measures a set of answers against the
gold one. ``walk-seconds`` is the time of choosing which neighbours to visit; a method that walks no graph has none.
``(type=yes/no)`` after a name takes it over the questions with that kind of answer.

All are our own few lines rather than a library's, which would bring 150 MB (``ir-measures`` needs scipy through
its evaluator, ``ranx`` needs numba); the tests compare them with ``ir-measures`` and with cases worked by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field  # noqa: F401
from typing import get_args

from clew.core.errors import UsageError, unknown_name_error
from clew.core.types import Usage
from clew.evaluate.examples import AnswerType, Example, Result  # noqa: F401
from clew.evaluate.metrics import answers, evidence

#: A measure of one question: a number, or None where the question has nothing to measure.
Measure = Callable[["Result"], "float | None"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure with its canonical name. ``better`` is 1 where more is better, -1 where less is."""

    name: str
    measure: Measure
    better: int = 1


_NAME = re.compile(r"^(?P<base>[A-Za-z][A-Za-z0-9-]*)(?:@(?P<k>\d+))?(?:\(type=(?P<type>[^)]+)\))?$")

METRICS: Mapping[str, Measure] = {
    "EM": lambda result: answers.best_score(answers.exact_match, result),
    "F1": lambda result: answers.best_score(answers.f1, result),
    "token-F1": lambda result: answers.best_score(answers.token_f1, result),
    "accuracy": answers.accuracy,
    "Acc": lambda result: result.grade,
    "SF-EM": evidence.full_coverage,
    "SF-coverage": evidence.coverage,
    "SF-precision": evidence.hit_precision,
    "MRR": evidence.reciprocal_rank,
    "set-EM": evidence.set_exact_match,
    "set-F1": evidence.set_f1,
    "evidence-P": lambda result: _one(evidence.evidence_scores(result), 0),
    "evidence-R": lambda result: _one(evidence.evidence_scores(result), 1),
    "evidence-F1": lambda result: _one(evidence.evidence_scores(result), 2),
    "retrieved-P": lambda result: _one(evidence.evidence_scores(result, result.hit_pieces), 0),
    "retrieved-R": lambda result: _one(evidence.evidence_scores(result, result.hit_pieces), 1),
    "retrieved-F1": lambda result: _one(evidence.evidence_scores(result, result.hit_pieces), 2),
}
COST_METRICS: Mapping[str, Measure] = {
    "tokens": lambda result: _tokens(result.usage),
    "calls": lambda result: result.usage.calls,
    "retrieval-tokens": lambda result: _apart(result, _tokens)[0],
    "retrieval-calls": lambda result: _apart(result, lambda usage: usage.calls)[0],
    "answering-tokens": lambda result: _apart(result, _tokens)[1],
    "answering-calls": lambda result: _apart(result, lambda usage: usage.calls)[1],
    "seconds": lambda result: result.seconds,
    "walk-seconds": lambda result: result.walk_seconds,
    "money": lambda result: result.usage.money,
}
METRICS_AT_DEPTH: Mapping[str, Callable[[Result, int], float | None]] = {
    "recall": evidence.recall,
    "capped-recall": evidence.capped_recall,
    "support-recall": evidence.coverage,
    "support-precision": evidence.precision,
    "all-gold": evidence.all_gold,
    "Hit": evidence.hit_at,
}


def parse_metric(name: str) -> Metric:
    """Return the metric of that canonical name. Raises UsageError for any other name."""
    match = _NAME.match(name)
    base = match["base"] if match else name
    if match is None or base not in {*METRICS, *COST_METRICS, *METRICS_AT_DEPTH}:
        raise unknown_name_error(
            "metric", name, [*METRICS, *COST_METRICS, *(f"{known}@5" for known in METRICS_AT_DEPTH)]
        )
    if (match["k"] is not None) != (base in METRICS_AT_DEPTH):
        raise UsageError(f"metric '{name}' {'takes no' if match['k'] else 'needs a'} depth", f"{base}@5")
    if base in METRICS_AT_DEPTH:
        depth = int(match["k"])
        if depth < 1:
            raise UsageError(f"metric '{name}' at no depth", f"{base}@1 is the least")
        at = METRICS_AT_DEPTH[base]
        measure: Measure = lambda result: at(result, depth)  # noqa: E731
    else:
        measure = METRICS.get(base) or COST_METRICS[base]
    kind = match["type"]
    if kind is not None and kind not in get_args(AnswerType):
        raise unknown_name_error("kind of answer", kind, get_args(AnswerType))
    if kind is None:
        return Metric(name, measure, -1 if base in COST_METRICS else 1)
    return Metric(
        name,
        lambda result: measure(result) if answers.answer_type(result) == kind else None,
        -1 if base in COST_METRICS else 1,
    )


def _one(three: Sequence[float] | None, which: int) -> float | None:
    return None if three is None else three[which]


def _tokens(usage: Usage) -> int:
    return usage.tokens_in + usage.tokens_out


def _apart(result: Result, cost: Callable[[Usage], int]) -> tuple[int, int] | tuple[None, None]:
    """Return a cost of retrieval and of answering, None where they were not told apart."""
    if result.retrieval is None:
        return None, None
    found = cost(result.retrieval)
    return found, cost(result.usage) - found
