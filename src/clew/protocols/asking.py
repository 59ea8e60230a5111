"""Finding, reading, answering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clew.types import Answer, Hit, Question, Step


class Trail(Protocol):
    """Receives the steps of an answer as they happen."""

    def add(self, step: Step) -> None:
        """Take the next step."""
        ...

    def should_stop(self) -> bool:
        """Return whether the caller wants no more steps; asked between steps."""
        ...


class Retriever(Protocol):
    """Finds nodes for a question."""

    def retrieve(self, question: Question, k: int) -> Sequence[Hit]:
        """Return at most ``k`` hits, best first."""
        ...


class Explorer(Retriever, Protocol):
    """A retriever whose search has steps and costs of its own; its ``retrieve`` is the same with no one watching."""

    def explore(self, question: Question, k: int, trail: Trail) -> Sequence[Hit]:
        """Return at most ``k`` hits, best first; each step of the search goes to the trail."""
        ...


class Reader(Protocol):
    """Makes an answer of a question and hits; it does not retrieve."""

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the answer; its trail and recipe are left to the method."""
        ...


class Method(Protocol):
    """Answers a question: retrieves and reads."""

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with evidence, trail and usage."""
        ...
