"""A method: retrieve once, read once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.component import component
from clew.core.protocols import Reader, Retriever, Trail
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Question


@component(
    "echo(retriever=first-lines, reader=shout)", summary="the best passage of the first lines, in capitals"
)
@dataclass(frozen=True, slots=True)
class Echo:
    """Reads the ``k`` best hits of a retriever."""

    retriever: Retriever
    reader: Reader
    recipe: str
    k: int = 3

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what the reader finds in the hits."""
        recorder = TrailRecorder.forwarding_to(trail)
        hits = retrieve_with_trail(self.retriever, question, self.k, recorder)
        answer = self.reader.read(question, hits, recorder)
        return replace(answer, trail=tuple(recorder.steps), recipe=self.recipe)
