"""Measures of evidence: how much of the gold evidence is among the hits, the cited passages, or the answers.

A piece of gold evidence is what the data set names: a sentence, a paragraph, a page. SF-EM, SF-coverage and
support-recall count pieces; recall and all-gold count the paragraphs of the pieces, as retrieval papers do. Each
counts once, at the first hit that matches it. Where several evidence sets each suffice (FEVER's sets, QASPER's
annotators), the best score counts.

- SF-EM is that of Xiong et al. (ICLR 2021), which the KGP paper uses in its Figure 5.
- recall (``R``), Hit (``Success``), MRR (``RR``) and support-precision (``P``) are those of trec_eval.
- recall is also STaRK's Recall@20, whose evaluator (``stark_qa/evaluator.py`` of snap-stanford/stark) is
  torchmetrics'
  ``retrieval_recall``: it divides by the number of relevant items, so a question with more than 20 answers cannot
  reach 1. The words of 4StepFocus ("Proportion of relevant items in the top-k results or the maximum number of
  correct answers", Section 4) can also be read as capped-recall.
- evidence-P, -R and -F1 are those of QASPER (Dasigi et al., NAACL 2021, Section 4). Where an annotator gives no
  evidence, citing none scores 1 and citing any scores 0, as in the official script. The script compares paragraphs by
  their text; we compare the gold pieces that the cited passages match. For passages that are the paper's paragraphs
  both agree; ours also covers sentences, table rows and pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.evaluate.examples import Result


def coverage(result: Result, k: int | None = None) -> float | None:
    """Return the share of the gold pieces among the first ``k`` hits (all hits, if None), None without gold
    evidence."""
    return _share(result, k, range(len(result.example.pieces)))


def full_coverage(result: Result) -> float | None:
    """Return 1 if the hits match every piece of gold evidence, else 0."""
    return _is_complete(coverage(result))


def recall(result: Result, k: int) -> float | None:
    """Return the share of the gold paragraphs of which the first ``k`` hits match a piece."""
    return _share(result, k, result.example.gold_paragraphs)


def all_gold(result: Result, k: int) -> float | None:
    """Return 1 if the first ``k`` hits match a piece of every gold paragraph, else 0."""
    return _is_complete(recall(result, k))


def _share(result: Result, k: int | None, unit: Sequence[int], limit: int | None = None) -> float | None:
    """Return the share of an evidence set's units among the first ``k`` hits, for the set with the best share.

    ``unit[n]`` is the unit of piece ``n``: the piece or its paragraph. With ``limit``, that many units count as all.
    """
    evidence_sets = [{unit[n] for n in pieces} for pieces in result.example.evidence_sets if pieces]
    if not evidence_sets:
        return None
    units_found = {unit[n] for pieces in result.hit_pieces[:k] for n in pieces}
    return max(
        min(1.0, len(units_found & evidence_set) / min(len(evidence_set), limit or len(evidence_set)))
        for evidence_set in evidence_sets
    )


def _is_complete(share: float | None) -> float | None:
    return None if share is None else float(share == 1)


def capped_recall(result: Result, k: int) -> float | None:
    """Return the number of gold paragraphs among the first ``k`` hits, divided by ``k`` if there are more than
    ``k``."""
    return _share(result, k, result.example.gold_paragraphs, k)


def precision(result: Result, k: int) -> float | None:
    """Return the share of the first ``k`` ranks whose hits match gold evidence; a missing hit matches none."""
    return sum(map(bool, result.hit_pieces[:k])) / k if result.example.pieces else None


def hit_precision(result: Result) -> float | None:
    """Return the share of all hits that match gold evidence, 0 without hits (KGP paper, Figure 5)."""
    if not result.example.pieces:
        return None
    return sum(map(bool, result.hit_pieces)) / len(result.hit_pieces) if result.hit_pieces else 0.0


def hit_at(result: Result, k: int) -> float | None:
    """Return 1 if any of the first ``k`` hits matches gold evidence, else 0."""
    return float(any(result.hit_pieces[:k])) if result.example.pieces else None


def reciprocal_rank(result: Result) -> float | None:
    """Return 1 divided by the rank of the first hit that matches gold evidence, 0 without such a hit."""
    if not result.example.pieces:
        return None
    return next((1 / place for place, pieces in enumerate(result.hit_pieces, 1) if pieces), 0.0)


def set_exact_match(result: Result) -> float | None:
    """Return 1 if the set of answers equals the gold set, else 0 (MetaQA).

    None where the method does not return a list of answers, or the question has no gold ones.
    """
    scores = _answer_set_scores(result)
    return None if scores is None else float(scores == (1.0, 1.0))


def set_f1(result: Result) -> float | None:
    """Return the harmonic mean of precision and recall of the set of answers."""
    scores = _answer_set_scores(result)
    if scores is None:
        return None
    return 2 * scores[0] * scores[1] / (scores[0] + scores[1]) if all(scores) else 0.0


def _answer_set_scores(result: Result) -> tuple[float, float] | None:
    """Return precision and recall of the set of answers, both 0 for an empty set."""
    if result.answer_pieces is None or not result.example.pieces:
        return None
    correct = frozenset[int]().union(*result.answer_pieces)
    precision = (
        sum(map(bool, result.answer_pieces)) / len(result.answer_pieces) if result.answer_pieces else 0.0
    )
    return precision, len(correct) / len(result.example.pieces)


def evidence_scores(
    result: Result, passages: Sequence[frozenset[int]] | None = None
) -> tuple[float, float, float] | None:
    """Return precision, recall and F1 of ``passages`` (the cited ones, if None) for the annotator with the best F1.

    A passage is given as the set of gold pieces that it matches. None where the data set has no evidence.
    """
    example = result.example
    if not example.alternatives and not example.support:
        return None
    scores = [
        compare_evidence(result.cited_pieces if passages is None else passages, evidence_set)
        for evidence_set in example.evidence_sets
    ]
    return max(scores, key=lambda triple: triple[2])


def compare_evidence(passages: Sequence[frozenset[int]], gold: frozenset[int]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of passages, each given as the set of gold pieces that it matches."""
    if not gold or not passages:
        score = float(not gold and not passages)
        return score, score, score
    precision = sum(bool(pieces & gold) for pieces in passages) / len(passages)
    recall = len(gold & frozenset[int]().union(*passages)) / len(gold)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0
