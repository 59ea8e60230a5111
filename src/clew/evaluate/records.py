"""What became of a question in the method ``focus``: the answers that it gave for true, what its triples came to, and
by which step a wrong first answer was lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clew.core.errors import UsageError
from clew.core.steps import ExpandStep, FilledStep, PrepareStep, SeedStep, SortStep, SubstituteStep
from clew.core.types import Usage
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.examples import Result
from clew.triples.language.consistency import best_filling

if TYPE_CHECKING:
    from clew.core.types import Answer, RankedAnswer
    from clew.evaluate.examples import Example
#: A statement of an unknown's type, which alone filters little.
_TYPE = re.compile(r"#\d+ : ")


def given_answers(example: Example, answer: Answer) -> dict[str, Any]:
    """Return as ``given`` the gold pieces that each answer given for true is, where answers were given one by one.

    Of a ranked list those count that meet the constraints: what only fills it up is no claim. Where the data set
    knows answers by name, all names count, also beyond the part of the list that was ranked.
    """
    named = {piece.entity: number for number, piece in enumerate(example.pieces) if piece.entity}
    if named and (answer.values or answer.ranking):
        return {"given": [[named[value]] if value in named else [] for value in answer.values]}
    if answer.ranking:
        gold = GoldEvidence(example)
        return {
            "given": [sorted(gold.matching_pieces(one.hit.node)) for one in answer.ranking if one.meets_all]
        }
    return {}


def focus_record(answer: Answer) -> dict[str, Any]:
    """Return as ``focus`` what the trail says of the triples that counted; nothing for other methods.

    ``candidates`` is how many nodes the triples leave, None where nothing restricts them.
    """
    sorts = [step for step in answer.trail if isinstance(step, SortStep)]
    kept = {step.kept_by_the_triples for step in sorts}
    if not kept - {None}:
        return {}
    prepared = [step for step in answer.trail if isinstance(step, PrepareStep)]
    solved = [step for step in answer.trail if isinstance(step, SubstituteStep)]
    firm = sum(one.meets_all for one in answer.ranking)
    common = {"kept": firm, "filled": len(answer.ranking) - firm}
    if not prepared:
        return {"focus": {"triples": "", **common}}
    # Of several readings the one that counted left what was sorted.
    pairs = list(zip(prepared, solved, strict=False))
    reading, candidates = next((pair for pair in pairs if _count(pair[1]) in kept), pairs[0])
    return {
        "focus": {
            "triples": reading.triples,
            "constants": len(reading.constants),
            "unmatched": [name for name, nodes in reading.constants.items() if not nodes],
            "dropped": dict(reading.dropped),
            "usable": any(_usable(one) for one in answer.ranking),
            "candidates": _count(candidates),
            "given up": list(candidates.given_up or ()),
            **common,
        }
    }


def _count(step: SubstituteStep) -> int | None:
    candidates = step.candidates.get(step.asked_for)
    return None if candidates is None else candidates.count


def _usable(one: RankedAnswer) -> bool:
    return any(check.satisfaction is not None and not _TYPE.match(check.text) for check in one.checks)


#: The steps of a trail that answer; all others retrieve.
READ_STEP = "read"


def answer_record(example: Example, answer: Answer, seconds: float) -> dict[str, Any]:
    """Return what is kept of an answer: ``hits`` is what was given to read, ``evidence`` what it rests on.

    ``walk_seconds`` is the time of choosing which neighbours to visit (the latency of the KGP paper's Figures 6
    and 10), None where no graph was walked. ``given`` says of each answer that was given for true which gold it is.
    """
    gold = GoldEvidence(example)
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
        **_filling(answer),
        **focus_record(answer),
        "walk_seconds": _walk_seconds(answer),
        "seconds": round(seconds, 4),
    }


def retrieval_usage(answer: Answer) -> Usage:
    """Return what finding the evidence cost: of all steps but those that read it.

    As in the D3 paper (Section 5) retrieval and answering are counted apart; what Self-Ask asks itself belongs to
    retrieval, as in its Table 2, where MonoT5, which calls no model, has the calls of Self-Ask alone.
    """
    return sum((step.usage for step in answer.trail if step.name != READ_STEP), Usage())


def _filling(answer: Answer) -> dict[str, Any]:
    """Return as ``filling`` the chain that was answered from and what was found for its unknowns."""
    steps = (step for step in answer.trail if isinstance(step, FilledStep))
    found = best_filling(step.filling.to_dict() for step in steps if step.filling)
    return {} if found is None else {"filling": found}


def _walk_seconds(answer: Answer) -> float | None:
    if not any(isinstance(step, SeedStep) for step in answer.trail):
        return None
    return round(sum(step.seconds for step in answer.trail if isinstance(step, ExpandStep)), 6)


def read_result(example: Example, record: Mapping[str, Any]) -> Result:
    """Return a record as what the metrics measure. Raises UsageError for a record of an error."""
    if "error" in record:
        raise UsageError(f"question {example.id} failed: {record['error']}")
    # Older runs did not tell retrieval apart, and kept the seconds of a walk with what it held.
    retrieval = Usage(**record["retrieval"]) if "retrieval" in record else None
    walk_seconds = (
        record["walk_seconds"] if "walk_seconds" in record else (record["walk"] or {}).get("seconds")
    )
    return Result(
        example,
        record["answer"],
        record["abstained"],
        [frozenset(hit["gold"]) for hit in record["hits"]],
        [frozenset(held) for held in record["cited"]],
        Usage(**record["usage"]),
        record["seconds"],
        walk_seconds=walk_seconds,
        retrieval=retrieval,
        answer_pieces=[frozenset(held) for held in record["given"]] if "given" in record else None,
    )
