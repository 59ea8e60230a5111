"""The end of every method: its hits are read, and the answer gets its trail."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from clew.core.errors import BudgetExceeded
from clew.core.protocols import Reader
from clew.core.text import normalise
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Hit, Question, StoppedStep
from clew.methods.readers import NOT_FOUND

#: How many hits an answer that abstains shows as what came nearest.
NEAREST_HITS = 5
#: What a model says that does not know.
_UNKNOWN = frozenset({"unknown", "not known", "i don't know", "i do not know", "cannot be determined"})
#: What an answer says that was cut short: by a spent budget, or by who asked. ``Answer.stopped`` says which.
CUT_SHORT = "Not answered: it was stopped before there was an answer. The evidence found so far is below."


def read_answer(
    reader: Reader,
    question: Question,
    hits: Sequence[Hit],
    record: TrailRecorder,
    recipe: str,
    context: Sequence[Hit] | None = None,
) -> Answer:
    """Return the reader's answer with trail, usage and recipe; one that abstains, with what came nearest.

    ``context`` is every passage that is read, where a hit stands for more than its own.
    """
    try:
        answer = reader.read(question, hits, record)
    except BudgetExceeded as error:
        record_stop(record, error)
        answer = Answer(CUT_SHORT, abstained=True)
    if answer.abstained and not answer.evidence:
        answer = replace(answer, evidence=tuple(hits[:NEAREST_HITS]))
    read = tuple(hits if context is None else context)
    return replace(answer, trail=tuple(record.steps), usage=record.usage(), recipe=recipe, context=read)


def record_stop(record: TrailRecorder, error: BudgetExceeded) -> None:
    """Enter into the trail that the budget ended a step: what is there is used, and it is said."""
    record.add(StoppedStep(error.problem))


def no_answer_text(record: TrailRecorder) -> str:
    """Return what an answer without a text says: that it was stopped, or that nothing was found."""
    return CUT_SHORT if any(isinstance(step, StoppedStep) for step in record.steps) else NOT_FOUND


def model_answer(
    reader: Reader | None,
    question: Question,
    reply: str,
    hits: Sequence[Hit],
    record: TrailRecorder,
    recipe: str,
) -> Answer:
    """Return the reader's answer; without a reader, what the model itself gave as the answer (``said``).

    The published methods take the model's word, which is checked against nothing: all that it was shown is then its
    evidence. Nothing said, or that it is not known, is an answer that abstains.
    """
    if reader is not None:
        return read_answer(reader, question, hits, record, recipe)
    reply = "" if normalise(reply).rstrip(".") in _UNKNOWN else reply
    return Answer(
        reply or no_answer_text(record),
        tuple(hits) if reply else tuple(hits[:NEAREST_HITS]),
        trail=tuple(record.steps),
        usage=record.usage(),
        abstained=not reply,
        reader="model",
        recipe=recipe,
        context=tuple(hits),
    )


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


# MERGED: How the text of an answer came about, in words.
