"""Retrieve, then read: the shape of every baseline."""

from __future__ import annotations

from dataclasses import dataclass

from clew.methods.answering import answered
from clew.protocols import Reader, Retriever, Trail
from clew.trail import Recorder, retrieved
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
        record = Recorder(watch=trail.add, stop=trail.stopped)
        hits = retrieved(self.retriever, question, self.k, record)
        return answered(self.reader, question, hits, record, self.recipe)
