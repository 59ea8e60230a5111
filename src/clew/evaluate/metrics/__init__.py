"""Measures of answers, evidence and cost, each under a canonical name that parses back.

``EM``, ``F1``, ``token-F1``, ``accuracy``, ``Acc`` (graded by a model: :mod:`~clew.evaluate.metrics.grading`),
``SF-EM``, ``SF-coverage``, ``SF-precision``, ``support-recall@5``, ``support-precision@5``, ``recall@5``,
``all-gold@5``, ``capped-recall@20``, ``MRR``, ``Hit@1``, ``set-EM``, ``set-F1``, ``evidence-P``, ``evidence-R``,
``evidence-F1``, ``retrieved-P``, ``retrieved-R``, ``retrieved-F1``, ``tokens``, ``calls``, ``seconds``,
``TAT-EM`` and ``TAT-F1`` (:mod:`~clew.evaluate.metrics.tables`), ``walk-seconds``, ``money``,
``retrieval-tokens``, ``retrieval-calls``, ``answering-tokens``, ``answering-calls``.
``evidence-`` measures the cited passages; ``retrieved-`` measures all passages that the reader was given, in the same
way, as in the D3 paper, whose readers do not cite. ``set-`` compares a set of answers with the gold set.
``walk-seconds`` is the time spent choosing neighbours; methods that walk no graph have none. ``(type=yes/no)`` after
a name restricts it to the questions with that type of answer.

The measures are implemented here because a library would bring 150 MB (``ir-measures`` needs scipy through its
evaluator, ``ranx`` needs numba). The tests compare them with ``ir-measures`` and with cases worked by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from clew.core.errors import UsageError, unknown_name_error
from clew.core.types import Usage
from clew.evaluate.examples import AnswerType, Result
from clew.evaluate.metrics import answers, evidence, tables

#: The measure of one result, None where there is nothing to measure.
Measure = Callable[[Result], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure with its canonical name. ``better`` is 1 where a higher value is better, -1 where a lower one is."""

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
    "TAT-EM": tables.tat_exact_match,
    "TAT-F1": tables.tat_f1,
    "SF-EM": evidence.full_coverage,
    "SF-coverage": evidence.coverage,
    "SF-precision": evidence.hit_precision,
    "MRR": evidence.reciprocal_rank,
    "set-EM": evidence.set_exact_match,
    "set-F1": evidence.set_f1,
    "evidence-P": lambda result: _component(evidence.evidence_scores(result), 0),
    "evidence-R": lambda result: _component(evidence.evidence_scores(result), 1),
    "evidence-F1": lambda result: _component(evidence.evidence_scores(result), 2),
    "retrieved-P": lambda result: _component(evidence.evidence_scores(result, result.hit_pieces), 0),
    "retrieved-R": lambda result: _component(evidence.evidence_scores(result, result.hit_pieces), 1),
    "retrieved-F1": lambda result: _component(evidence.evidence_scores(result, result.hit_pieces), 2),
}
COST_METRICS: Mapping[str, Measure] = {
    "tokens": lambda result: _tokens(result.usage),
    "calls": lambda result: result.usage.calls,
    "retrieval-tokens": lambda result: _split_cost(result, _tokens)[0],
    "retrieval-calls": lambda result: _split_cost(result, lambda usage: usage.calls)[0],
    "answering-tokens": lambda result: _split_cost(result, _tokens)[1],
    "answering-calls": lambda result: _split_cost(result, lambda usage: usage.calls)[1],
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
        measure_at = METRICS_AT_DEPTH[base]
        measure: Measure = lambda result: measure_at(result, depth)  # noqa: E731
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


def _component(scores: Sequence[float] | None, position: int) -> float | None:
    return None if scores is None else scores[position]


def _tokens(usage: Usage) -> int:
    return usage.tokens_in + usage.tokens_out


def _split_cost(result: Result, cost: Callable[[Usage], int]) -> tuple[int, int] | tuple[None, None]:
    """Return the cost of retrieval and of answering, None where they were not recorded separately."""
    if result.retrieval is None:
        return None, None
    retrieval_cost = cost(result.retrieval)
    return retrieval_cost, cost(result.usage) - retrieval_cost
