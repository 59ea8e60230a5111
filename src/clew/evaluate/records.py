"""The JSON record that a run keeps of an answer, and the result that the metrics read from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from clew.core.errors import UsageError
from clew.core.trail import ExactStep, ExpandStep, FilledStep, PrepareStep, SeedStep, SortStep, SubstituteStep
from clew.core.types import Answer, RankedAnswer, Usage
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.examples import Example, Result
from clew.triples.language.consistency import best_filling
from clew.triples.language.typed_parsing import parse_typed

#: The name of the steps that read evidence; all other steps retrieve it.
READ_STEP = "read"
#: A triple that only states an unknown's type. It filters little, so it does not make the triples usable.
_TYPE_TRIPLE = re.compile(r"#\d+ : ")


def answer_record(example: Example, answer: Answer, seconds: float) -> dict[str, Any]:
    """Return the record of an answer.

    ``hits`` are the passages that the reader was given, ``evidence`` those that the answer cites; ``gold`` and
    ``cited`` are the gold pieces that they match. ``walk_seconds`` is the time spent choosing neighbours (the latency
    of the KGP paper's Figures 6 and 10), None where no graph was walked. ``given`` (:func:`given_answers`),
    ``filling`` (the chain of triples and the values of its unknowns) and ``focus`` (:func:`focus_record`) are there
    for the methods that have them.
    """
    gold = GoldEvidence(example)
    steps = (step for step in answer.trail if isinstance(step, FilledStep))
    filling = best_filling(step.filling.to_dict() for step in steps if step.filling)
    return {
        "id": example.id,
        "answer": answer.text,
        "abstained": answer.abstained,
        "reader": answer.reader,
        "recipe": answer.recipe,
        "hits": [
            {
                "id": hit.node.id,
                "document": hit.node.document_name,
                "page": hit.node.page,
                "score": hit.score,
                "path": list(hit.path),
                "gold": sorted(gold.matching_pieces(hit.node)),
            }
            for hit in answer.context
        ],
        "evidence": [hit.node.id for hit in answer.evidence],
        "cited": [sorted(gold.matching_pieces(hit.node)) for hit in answer.evidence],
        **given_answers(example, answer),
        "usage": answer.usage.to_dict(),
        "retrieval": retrieval_usage(answer).to_dict(),
        "steps": [step.name for step in answer.trail],
        **({} if filling is None else {"filling": filling}),
        **focus_record(answer),
        "walk_seconds": _walk_seconds(answer),
        "seconds": round(seconds, 4),
    }


def given_answers(example: Example, answer: Answer) -> dict[str, Any]:
    """Return ``{"given": ...}``: the gold pieces of each answer in a list of answers, or nothing for other methods.

    Of a ranked list only the answers that meet the constraints count; those that pad it are no claims. Where the gold
    answers are names (MetaQA), all values count, also those beyond the ranked part.
    """
    piece_by_name = {piece.entity: number for number, piece in enumerate(example.pieces) if piece.entity}
    if piece_by_name and (answer.values or answer.ranking):
        pieces = [[piece_by_name[value]] if value in piece_by_name else [] for value in answer.values]
        return {"given": pieces}
    if answer.ranking:
        gold = GoldEvidence(example)
        met = [ranked for ranked in answer.ranking if ranked.meets_all]
        return {"given": [sorted(gold.matching_pieces(ranked.hit.node)) for ranked in met]}
    return {}


def retrieval_usage(answer: Answer) -> Usage:
    """Return the usage of all steps except reading.

    The D3 paper (Section 5) counts retrieval and answering apart. The follow-up questions of Self-Ask belong to
    retrieval, as in its Table 2, where MonoT5, which calls no model, has the calls of Self-Ask alone.
    """
    return sum((step.usage for step in answer.trail if step.name != READ_STEP), Usage())


def focus_record(answer: Answer) -> dict[str, Any]:
    """Return ``{"focus": ...}``: the outcome of the triples of an answer by 4StepFocus; nothing for other methods.

    ``candidates`` is the number of nodes that meet the triples, None where no triple restricts them.
    """
    exact = next((step for step in answer.trail if isinstance(step, ExactStep)), None)
    met_count = sum(ranked.meets_all or ranked.meets_rest for ranked in answer.ranking)
    counts = {"kept": met_count, "filled": len(answer.ranking) - met_count}
    prepared = [step for step in answer.trail if isinstance(step, PrepareStep)]
    if exact is not None and not prepared:
        return {"focus": {**_exact_record(exact), **counts}}
    # The step "sort" counts the candidates that met the triples, None where it sorted others.
    sorted_counts = {step.kept_by_the_triples for step in answer.trail if isinstance(step, SortStep)}
    if not sorted_counts - {None}:
        return {}
    substituted = [step for step in answer.trail if isinstance(step, SubstituteStep)]
    if not prepared:
        return {"focus": {"triples": "", **counts}}
    # Of several interpretations, the one whose candidates were sorted is the one that was used.
    interpretations = list(zip(prepared, substituted, strict=False))
    preparation, substitution = next(
        (pair for pair in interpretations if _candidate_count(pair[1]) in sorted_counts), interpretations[0]
    )
    return {
        "focus": {
            "triples": preparation.triples,
            "constants": len(preparation.constants),
            "unmatched": [name for name, nodes in preparation.constants.items() if not nodes],
            "dropped": dict(preparation.dropped),
            "usable": any(_has_checked_triple(ranked) for ranked in answer.ranking),
            "candidates": _candidate_count(substitution),
            "given up": list(substitution.given_up or ()),
            **counts,
        }
    }


def _exact_record(step: ExactStep) -> dict[str, Any]:
    """Return the outcome of triples that a graph answers exactly: it has all their names, and nothing is given up."""
    (candidates,) = step.candidates.values()
    ends = [end for triple in parse_typed(step.triples).chain.triples for end in (triple.head, triple.tail)]
    return {
        "triples": step.triples,
        "constants": len({end.text for end in ends if not end.unknowns}),
        "unmatched": [],
        "dropped": {},
        "usable": True,
        "candidates": candidates.count,
        "given up": [],
    }


def _candidate_count(step: SubstituteStep) -> int | None:
    candidates = step.candidates.get(step.asked_for)
    return None if candidates is None else candidates.count


def _has_checked_triple(ranked: RankedAnswer) -> bool:
    return any(
        check.satisfaction is not None and not _TYPE_TRIPLE.match(check.text) for check in ranked.checks
    )


def _walk_seconds(answer: Answer) -> float | None:
    if not any(isinstance(step, SeedStep) for step in answer.trail):
        return None
    return round(sum(step.seconds for step in answer.trail if isinstance(step, ExpandStep)), 6)


def read_result(example: Example, record: Mapping[str, Any]) -> Result:
    """Return the result of a record. Raises UsageError for the record of an error."""
    if "error" in record:
        raise UsageError(f"question {example.id} failed: {record['error']}")
    # Older runs have no 'retrieval', and keep the seconds of a walk under 'walk'.
    retrieval = Usage(**record["retrieval"]) if "retrieval" in record else None
    walk_seconds = (
        record["walk_seconds"] if "walk_seconds" in record else (record["walk"] or {}).get("seconds")
    )
    return Result(
        example,
        record["answer"],
        record["abstained"],
        [frozenset(hit["gold"]) for hit in record["hits"]],
        [frozenset(pieces) for pieces in record["cited"]],
        Usage(**record["usage"]),
        record["seconds"],
        walk_seconds=walk_seconds,
        retrieval=retrieval,
        answer_pieces=[frozenset(pieces) for pieces in record["given"]] if "given" in record else None,
    )
