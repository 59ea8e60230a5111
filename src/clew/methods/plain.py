"""Retrieve, then read: the shape of every baseline."""

from __future__ import annotations

from dataclasses import dataclass

from clew.methods.answering import read_answer
from clew.protocols import Reader, Retriever, Trail
from clew.trail import TrailRecorder, retrieve_with_trail
from clew.types import Answer, Question


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
