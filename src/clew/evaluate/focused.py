"""What became of a question in the method ``focus``: the answers that it gave for true, what its triples came to, and
by which step a wrong first answer was lost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.metrics import Result, parse_metric

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.types import Answer, RankedAnswer

Loss = Literal["no triples", "not usable", "ranking", "contradiction", "constant", "triples"]
LOSS_DESCRIPTIONS: Mapping[Loss, str] = dict(
    zip(
        get_args(Loss),
        (
            "nothing that the model wrote could be read",
            "of what was written, the graph can hold nothing but types",
            "a right answer meets the constraints, and another is put before it",
            "constraints contradicted each other, and giving some up left no right answer",
            "a name was not found in the graph, and the other triples leave no right answer",
            "everything was found, and what meets it is no right answer",
        ),
        strict=True,
    )
)
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
        return {"given": [sorted(gold.matching_pieces(one.hit.node)) for one in answer.ranking if one.meets_all]}
    return {}


def focus_record(answer: Answer) -> dict[str, Any]:
    """Return as ``focus`` what the trail says of the triples that counted; nothing for other methods.

    ``candidates`` is how many nodes the triples leave, None where nothing restricts them.
    """
    if not any(step.name == "sort" and "kept by the triples" in step.detail for step in answer.trail):
        return {}
    prepared = [dict(step.detail) for step in answer.trail if step.name == "prepare"]
    solved = [dict(step.detail) for step in answer.trail if step.name == "substitute"]
    firm = sum(one.meets_all for one in answer.ranking)
    common = {"kept": firm, "filled": len(answer.ranking) - firm}
    if not prepared:
        return {"focus": {"triples": "", **common}}
    # Of several readings the one that counted left what was sorted.
    kept = {step.detail.get("kept by the triples") for step in answer.trail if step.name == "sort"}
    pairs = list(zip(prepared, solved, strict=False))
    made, left = next((pair for pair in pairs if _count(pair[1]) in kept), pairs[0])
    constants = made.get("constants", {})
    return {
        "focus": {
            "triples": made["triples"],
            "constants": len(constants),
            "unmatched": [name for name, some in constants.items() if not some],
            "dropped": made.get("dropped", {}),
            "usable": any(_usable(one) for one in answer.ranking),
            "candidates": _count(left),
            "given up": left.get("given up", []),
            **common,
        }
    }


def _count(substituted: Mapping[str, Any]) -> int | None:
    found = substituted["candidates"].get(substituted["asked for"])
    return None if found is None else found["count"]


def _usable(one: RankedAnswer) -> bool:
    return any(check.satisfaction is not None and not _TYPE.match(check.text) for check in one.checks)


def triple_statistics(records: Sequence[Mapping[str, Any]], results: Mapping[str, Result]) -> dict[str, str]:
    """Return what became of the triples of all questions that were answered, in words, by what it is.

    ``records`` are those of a run of ``focus``. Shares are of the questions with usable triples, but for the first
    three.
    """
    last = {one["id"]: one for one in records if one["id"] in results}
    every = {id: one["focus"] for id, one in last.items() if "focus" in one}
    usable = {id: one for id, one in every.items() if one.get("usable")}
    constants = sum(one.get("constants", 0) for one in every.values())
    missing = sum(len(one.get("unmatched", [])) for one in every.values())
    counts = [one["candidates"] for one in usable.values() if one["candidates"] is not None]
    right = sum(any(results[id].answer_pieces or ()) for id in usable)
    return {
        "questions": str(len(every)),
        "with triples": _share(sum(bool(one["triples"]) for one in every.values()), len(every)),
        "with usable triples": _share(len(usable), len(every)),
        "constants matched": _share(constants - missing, constants),
        "candidates (least, quartiles, most)": _spread(counts),
        "one candidate": _share(sum(count == 1 for count in counts), len(usable)),
        "a right answer among them": _share(right, len(usable)),
        "relaxed": _share(sum(bool(one["given up"]) for one in usable.values()), len(usable)),
        "filled up": _share(sum(one["filled"] > 0 for one in usable.values()), len(usable)),
    }


def _share(some: int, all_: int) -> str:
    return f"{some:,} of {all_:,}" + (f" ({some / all_:.1%})" if all_ else "")


def _spread(counts: Sequence[int]) -> str:
    if not counts:
        return ""
    return ", ".join(f"{value:,.10g}" for value in np.quantile(counts, [0, 0.25, 0.5, 0.75, 1]))


def classify_loss(result: Result, record: Mapping[str, Any]) -> Loss | None:
    """Return the step of ``focus`` that lost a question, None where the first answer is right or nothing is known."""
    if parse_metric("Hit@1").measure(result) in {1.0, None} or "focus" not in record:
        return None
    said = record["focus"]
    if not said["triples"]:
        return "no triples"
    if not said["usable"]:
        return "not usable"
    if any(result.answer_pieces or ()):
        return "ranking"
    if said["given up"]:
        return "contradiction"
    return "constant" if said["unmatched"] else "triples"
