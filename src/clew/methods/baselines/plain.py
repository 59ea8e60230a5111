"""Retrieve, then read: the shape of every baseline."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.steps import GoldenStep, ModelAnswerStep
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question
from clew.methods.answering import read_answer


@dataclass(frozen=True, slots=True)
class RetrieveAndRead:
    """One retrieval of ``k`` hits, one reading of them."""

    retriever: Retriever
    reader: Reader
    k: int = 10
    recipe: str = "read"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in the best hits."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        hits = retrieve_with_trail(self.retriever, question, self.k, record)
        return read_answer(self.reader, question, hits, record, self.recipe)


@dataclass(frozen=True, slots=True)
class Direct:
    """Asks the model for the answer with no evidence at all (``None`` in Table 1 of the KGP paper)."""

    model: LanguageModel
    template: PromptTemplate
    recipe: str = "none"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what the model says from memory. Raises ModelError."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        started = time.perf_counter()
        made = self.model.complete([self.template.render(question=question.text)])[0]
        seconds = time.perf_counter() - started
        record.add(ModelAnswerStep("none", model=made.model, usage=made.usage, seconds=seconds))
        text = made.text.strip()
        return Answer(
            text,
            (),
            trail=tuple(record.steps),
            usage=made.usage,
            abstained=not text,
            reader="none",
            recipe=self.recipe,
        )


@dataclass(frozen=True, slots=True)
class Golden:
    """Reads the gold evidence itself (``Golden`` in Table 1): what a perfect retrieval would give."""

    hits: Sequence[Hit]
    reader: Reader
    recipe: str = "golden"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what the reader makes of the gold evidence."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        record.add(GoldenStep(len(self.hits), hits=tuple(self.hits)))
        return read_answer(self.reader, question, self.hits, record, self.recipe)


# MERGED: The floor and the ceiling of every comparison: no evidence, and the gold evidence.
