"""How well the hits hold the gold evidence.

A piece of gold evidence counts once, at the first hit that holds it. Where several sets of evidence each suffice
(FEVER's evidence sets, QASPER's annotators), the one that is served best counts. SF-EM is that of Xiong et al.
(ICLR 2021), which the KGP paper takes for its Figure 5. recall, Hit (``Success``), MRR (``RR``) and
support-precision (``P``) are those of trec_eval over pieces of evidence; the tests compare them with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.metrics import Result


def coverage(result: Result, k: int | None = None) -> float | None:
    """Return the share of the gold evidence that is among the first ``k`` hits (all of them, if None).

    None where there is no gold evidence: there is nothing to find.
    """
    sets = [wanted for wanted in result.example.evidence_sets if wanted]
    if not sets:
        return None
    held = frozenset[int]().union(*result.found[:k])
    return max(len(held & wanted) / len(wanted) for wanted in sets)


def all_found(result: Result, k: int | None = None) -> float | None:
    """Return 1 if all gold evidence is among the first ``k`` hits (all of them, if None), else 0."""
    share = coverage(result, k)
    return None if share is None else float(share == 1)


def precision(result: Result, k: int) -> float | None:
    """Return the share of the first ``k`` places whose hits hold gold evidence; a place left empty holds none."""
    return sum(map(bool, result.found[:k])) / k if result.example.pieces else None


def hit(result: Result, k: int) -> float | None:
    """Return 1 if any of the first ``k`` hits holds gold evidence, else 0."""
    return float(any(result.found[:k])) if result.example.pieces else None


def reciprocal_rank(result: Result) -> float | None:
    """Return 1 divided by the place of the first hit that holds gold evidence; 0 where none does."""
    if not result.example.pieces:
        return None
    return next((1 / place for place, held in enumerate(result.found, 1) if held), 0.0)
