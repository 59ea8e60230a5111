"""How well the hits hold the gold evidence.

A piece of gold evidence is what the data set names: a sentence, a paragraph, a page. SF-EM, SF-coverage and
support-recall count pieces; recall and all-gold count the paragraphs that they lie in, as retrieval papers do. Each
counts once, at the first hit that holds it. Where several sets of evidence each suffice (FEVER's evidence sets,
QASPER's annotators), the one that is served best counts. SF-EM is that of Xiong et al. (ICLR 2021), which the KGP
paper takes for its Figure 5. recall (``R``), Hit (``Success``), MRR (``RR``) and support-precision (``P``) are those
of trec_eval; the tests compare them with it. recall is STaRK's Recall@20, whose evaluator
(``stark_qa/evaluator.py`` of snap-stanford/stark) is torchmetrics' ``retrieval_recall``: it divides by all that is
relevant, so that a question with more than 20 answers cannot reach 1. What 4StepFocus says it measures ("Proportion
of relevant items in the top-k results or the maximum number of correct answers", Section 4) can also be read as
capped-recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.examples import Result


def coverage(result: Result, k: int | None = None) -> float | None:
    """Return the share of the pieces of gold evidence held by the first ``k`` hits (by all of them, if None).

    None where there is no gold evidence: there is nothing to find.
    """
    return _share(result, k, range(len(result.example.pieces)))


def full_coverage(result: Result) -> float | None:
    """Return 1 if the hits hold every piece of gold evidence, else 0."""
    return _whole(coverage(result))


def recall(result: Result, k: int) -> float | None:
    """Return the share of the gold paragraphs of which the first ``k`` hits hold a piece."""
    return _share(result, k, result.example.gold_paragraphs)


def all_gold(result: Result, k: int) -> float | None:
    """Return 1 if the first ``k`` hits hold a piece of every gold paragraph, else 0."""
    return _whole(recall(result, k))


def _share(result: Result, k: int | None, unit: Sequence[int], most: int | None = None) -> float | None:
    """Return the share of the units (``unit[n]`` is that of piece ``n``) of the set that is served best; of no more
    than ``most`` of them."""
    sets = [{unit[n] for n in wanted} for wanted in result.example.evidence_sets if wanted]
    if not sets:
        return None
    held = {unit[n] for found in result.hit_pieces[:k] for n in found}
    return max(min(1.0, len(held & wanted) / min(len(wanted), most or len(wanted))) for wanted in sets)


def _whole(share: float | None) -> float | None:
    return None if share is None else float(share == 1)


def capped_recall(result: Result, k: int) -> float | None:
    """Return the share of the gold paragraphs that the first ``k`` hits hold, of as many as ``k`` hits can hold."""
    return _share(result, k, result.example.gold_paragraphs, k)


def precision(result: Result, k: int) -> float | None:
    """Return the share of the first ``k`` places whose hits hold gold evidence; a place left empty holds none."""
    return sum(map(bool, result.hit_pieces[:k])) / k if result.example.pieces else None


def hit_precision(result: Result) -> float | None:
    """Return the share of all hits that hold gold evidence, 0 where there is no hit (KGP paper, Figure 5)."""
    if not result.example.pieces:
        return None
    return sum(map(bool, result.hit_pieces)) / len(result.hit_pieces) if result.hit_pieces else 0.0


def hit_at(result: Result, k: int) -> float | None:
    """Return 1 if any of the first ``k`` hits holds gold evidence, else 0."""
    return float(any(result.hit_pieces[:k])) if result.example.pieces else None


def reciprocal_rank(result: Result) -> float | None:
    """Return 1 divided by the place of the first hit that holds gold evidence; 0 where none does."""
    if not result.example.pieces:
        return None
    return next((1 / place for place, held in enumerate(result.hit_pieces, 1) if held), 0.0)


def set_exact_match(result: Result) -> float | None:
    """Return 1 if the answers that were given are the right ones, all of them and no other, else 0 (MetaQA).

    None where no answers were given one by one, or none are right ones.
    """
    scores = _of_sets(result)
    return None if scores is None else float(scores == (1.0, 1.0))


def set_f1(result: Result) -> float | None:
    """Return the harmonic mean of precision and recall of the answers that were given, each counting once."""
    scores = _of_sets(result)
    if scores is None:
        return None
    return 2 * scores[0] * scores[1] / (scores[0] + scores[1]) if all(scores) else 0.0


def _of_sets(result: Result) -> tuple[float, float] | None:
    """Return precision and recall of the answers that were given; 0 both where there are none."""
    if result.answer_pieces is None or not result.example.pieces:
        return None
    right = frozenset[int]().union(*result.answer_pieces)
    precision = (
        sum(map(bool, result.answer_pieces)) / len(result.answer_pieces) if result.answer_pieces else 0.0
    )
    return precision, len(right) / len(result.example.pieces)


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
        compare_evidence(result.cited_pieces if passages is None else passages, wanted)
        for wanted in example.evidence_sets
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


# MERGED: Evidence precision, recall and F1 of QASPER (Dasigi et al., NAACL 2021, Section 4): sets of paragraphs.
