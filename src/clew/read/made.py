"""How the text of an answer came about, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable

UNCHECKED_ANSWER = "the model's own words, checked against nothing"
_HOW = {
    "extractive": "sentences taken from the evidence; no language model wrote them",
    "none": UNCHECKED_ANSWER,
    "model": UNCHECKED_ANSWER,
    "chain": "filled in hop by hop, each hop from the evidence",
    "focus": "what meets the question's triples in the graph, best first",
}


def describe_origin(reader: str, remembered: Collection[str], by: Iterable[str]) -> str:
    """Say how an answer's text came about: ``reader`` is that of the answer, any that is none of ours a model's name.

    ``remembered`` is what of it is the model's memory alone; ``by`` says what each of its ranked answers comes by.
    """
    if reader == "chain" and remembered:
        return "filled in hop by hop, in part from the model's memory"
    if reader == "focus" and "read" in by:
        return "read where no graph has it"
    # Of an address and a model, the model.
    return _HOW.get(reader, f"written by {reader.rpartition('#')[2]}, from the evidence")
