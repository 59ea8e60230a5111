"""How well the hits hold the gold evidence.

A piece of gold evidence counts once, at the first hit that holds it. SF-EM is that of Xiong et al. (ICLR 2021),
which the KGP paper takes for its Figure 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.metrics import Result


def _held(result: Result, k: int | None = None) -> frozenset[int]:
    return frozenset().union(*result.found[:k])


def all_found(result: Result) -> float | None:
    """Return 1 if all gold evidence is among the hits, else 0; None where there is no gold evidence."""
    wanted = len(result.example.support)
    return float(len(_held(result)) == wanted) if wanted else None


def coverage(result: Result) -> float | None:
    """Return the share of the gold evidence that is among the hits."""
    wanted = len(result.example.support)
    return len(_held(result)) / wanted if wanted else None


def recall(result: Result, k: int) -> float | None:
    """Return the share of the gold evidence that is among the first ``k`` hits."""
    wanted = len(result.example.support)
    return len(_held(result, k)) / wanted if wanted else None


def all_gold(result: Result, k: int) -> float | None:
    """Return 1 if all gold evidence is among the first ``k`` hits, else 0."""
    wanted = len(result.example.support)
    return float(len(_held(result, k)) == wanted) if wanted else None


def precision(result: Result, k: int) -> float | None:
    """Return the share of the first ``k`` places whose hits hold gold evidence; a place left empty holds none."""
    return sum(map(bool, result.found[:k])) / k if result.example.support else None


def hit(result: Result, k: int) -> float | None:
    """Return 1 if any of the first ``k`` hits holds gold evidence, else 0."""
    return float(any(result.found[:k])) if result.example.support else None


def reciprocal_rank(result: Result) -> float | None:
    """Return 1 divided by the place of the first hit that holds gold evidence; 0 where none does."""
    if not result.example.support:
        return None
    return next((1 / place for place, held in enumerate(result.found, 1) if held), 0.0)
