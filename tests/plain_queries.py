"""A reader of questions about structure for tests: it reads every question as the queries that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.core.protocols import Snapshot
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.retrieve.structure.lookup import StructureResult, StructureSearch
from clew.retrieve.structure.query import Query, Selector


@dataclass(frozen=True)
class Fixed:
    """What was read: a query, and how likely it is meant."""

    query: Query
    probability: float = 1.0


class FixedReader:
    """Reads all questions as the same query; as content where it is None."""

    def __init__(self, query: Query | None = None, probability: float = 1.0) -> None:
        self.readings = () if query is None else (Fixed(query, probability),)

    def read(self, text: str, snapshot: Snapshot, scope: Scope) -> Sequence[Fixed]:
        return self.readings


def find(
    snapshot: Snapshot, query: Query | None, question: str = "", scope: Scope | None = None
) -> StructureResult:
    """Return what a query is answered with."""
    search = StructureSearch(snapshot, FixedReader(query))
    return search.find(Question(question, scope or Scope()), TrailRecorder())


def show(*selectors: Selector) -> Query:
    return Query("show", selectors)


def page(number: int | None = None, label: str = "", document: str = "", **more: Any) -> Selector:
    return Selector("page", number, label, document=document, **more)


def table(number: int | None = None, label: str = "", document: str = "", **more: Any) -> Selector:
    return Selector("table", number, label, document=document, **more)


def section(label: str = "", word: str = "section", document: str = "", **more: Any) -> Selector:
    number = int(label) if label.isdigit() else None
    return Selector("section", number, label, word, document=document, **more)
