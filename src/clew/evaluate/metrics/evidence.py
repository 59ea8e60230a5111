"""Evidence precision, recall and F1 of QASPER (Dasigi et al., NAACL 2021, Section 4): sets of paragraphs.

The annotator with the best F1 counts. Where an annotator gives no evidence, giving none is right and giving any
is wrong, as in the official script. Its paragraphs are compared by their text; ours by which gold evidence the
cited passages hold, which is the same for passages that are the paper's paragraphs, and still means something for
sentences, table rows and pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.metrics import Result


def evidence_scores(
    result: Result, passages: Sequence[frozenset[int]] | None = None
) -> tuple[float, float, float] | None:
    """Return precision, recall and F1 of evidence, for the annotator with the best F1.

    The evidence is what was cited, or the passages ``given`` by the gold pieces that each holds. None where the
    data set says nothing about evidence.
    """
    example = result.example
    if not example.alternatives and not example.support:
        return None
    compared_to = [
        compare_evidence(result.cited_pieces if passages is None else passages, wanted) for wanted in example.evidence_sets
    ]
    return max(compared_to, key=lambda three: three[2])


def compare_evidence(passages: Sequence[frozenset[int]], gold: frozenset[int]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of cited passages, each given by the gold pieces that it holds."""
    if not gold or not passages:
        same = float(not gold and not passages)
        return same, same, same
    precision = sum(bool(one & gold) for one in passages) / len(passages)
    recall = len(gold & frozenset[int]().union(*passages)) / len(gold)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0
