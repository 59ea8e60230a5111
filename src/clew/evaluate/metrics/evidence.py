"""Evidence precision, recall and F1 of QASPER (Dasigi et al., NAACL 2021, Section 4): sets of paragraphs.

The best over the annotators counts. Where an annotator gives no evidence, giving none is right and giving any
is wrong, as in the official script.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.metrics import Result


def scores(result: Result, which: int) -> float | None:
    """Return precision (0), recall (1) or F1 (2) of the paragraphs; that of the annotator with the best F1."""
    annotated = result.example.alternatives or (result.example,)
    if not any(one.support for one in annotated) and not result.example.alternatives:
        return None
    given = {" ".join(text.split()) for text in result.texts}
    found = [compared(given, {" ".join(one.text.split()) for one in each.support}) for each in annotated]
    return max(found, key=lambda three: three[2])[which]


def compared(given: Collection[str], gold: Collection[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of one set of paragraphs against another."""
    if not gold or not given:
        same = float(not gold and not given)
        return same, same, same
    shared = len(set(given) & set(gold))
    precision, recall = shared / len(given), shared / len(gold)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0
