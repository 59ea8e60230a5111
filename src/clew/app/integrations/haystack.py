"""A retriever of Haystack over a knowledge base. Needs the extra ``haystack``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

import clew
from clew.app.integrations import hit_metadata
from clew.core.errors import NotFound, UsageError
from clew.core.sources import Sources, list_sources

#: clew's operator for each of Haystack's that compares with one value.
_COMPARISONS = {"==": "=", "!=": "!=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}


@component
class ClewRetriever:
    """Returns the passages that clew's search ranks first for a question.

    ``base`` is the folder of a knowledge base, ``k`` the number of passages (also ``top_k``, as Haystack calls it),
    ``retriever`` a recipe of ``clew recipes`` (the default searches several hops deep), and ``documents`` restricts
    the search to names, paths, folders or keys. So do ``filters``, in Haystack's form, by the fields of documents
    (:func:`filters_to_condition`). Each document has the passage's text, its score and, as metadata, its document,
    page, section and id. A pipeline with this component can be saved and loaded.

    >>> pipeline.add_component("retriever", ClewRetriever("notes.clew"))  # doctest: +SKIP
    """

    def __init__(
        self,
        base: str,
        k: int = 10,
        retriever: str = "default",
        documents: Sources | None = None,
        *,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
    ) -> None:
        self.base = base
        self.k = k if top_k is None else top_k
        self.retriever = retriever
        self.documents = None if documents is None else list_sources(documents)
        self.filters = filters
        self._opened: clew.KnowledgeBase | None = None

    def warm_up(self) -> None:
        """Open the base; a pipeline does it before its first run."""
        self._open()

    def _open(self) -> clew.KnowledgeBase:
        if self._opened is None:
            self._opened = clew.open(self.base)
        return self._opened

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        k: int | None = None,
        documents: list[str] | None = None,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the passages for ``query``; the others replace those of the component. With no document that meets
        ``filters``, there are none. Raises UsageError for filters that have no meaning."""
        count = next((number for number in (top_k, k, self.k) if number is not None), 0)
        if count < 0:
            raise UsageError(f"there are no {count} passages", "Give top_k a number from 0 on")
        base, within = self._open(), self.documents if documents is None else documents
        if condition := filters_to_condition(filters or self.filters or {}):
            keys = None if within is None else base.document_keys(within)
            try:
                within = list(base.select_documents(condition, keys))
            except NotFound:  # no document meets them
                return {"documents": []}
        hits = base.search(query, k=count, retriever=self.retriever, documents=within)
        return {
            "documents": [
                Document(id=hit.node.id, content=hit.node.text, meta=hit_metadata(hit), score=hit.score)
                for hit in hits
            ]
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the component, for a saved pipeline."""
        names = ("base", "k", "retriever", "documents", "filters")
        return default_to_dict(self, **{name: getattr(self, name) for name in names})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClewRetriever:
        """Return the component of a saved pipeline."""
        return default_from_dict(cls, data)


def filters_to_condition(filters: Mapping[str, Any]) -> str:
    """Return Haystack's filters as a condition on the fields of documents (:mod:`clew.core.document_filter`).

    The fields are those of documents, such as ``meta.author`` or ``meta.date``; ``meta.document`` is the name. Raises
    UsageError for an operator or a value that has no meaning.

    >>> filters_to_condition({"field": "meta.date", "operator": ">=", "value": 2021})
    'date >= "2021"'
    """
    if not filters:
        return ""
    operator = filters.get("operator")
    if operator in {"AND", "OR", "NOT"} and filters.get("conditions"):
        word = " or " if operator == "OR" else " and "
        joined = word.join(map(filters_to_condition, filters["conditions"]))
        return f"{'not ' if operator == 'NOT' else ''}({joined})"
    field, value = str(filters.get("field", "")).removeprefix("meta."), filters.get("value")
    field = "name" if field == "document" else field
    if not re.fullmatch(r"[^\s()<>=!~,\"']+", field):
        raise UsageError(f"no meaning in the filters: {dict(filters)}", "Give field, operator and value")
    if operator in {"in", "not in"} and isinstance(value, list | tuple | set) and value:
        return f"{'not ' * (operator == 'not in')}{field} in ({', '.join(map(_quote, value))})"
    if operator not in _COMPARISONS:
        raise UsageError(
            f"no operator '{operator}' for a filter", f"Known: {', '.join(_COMPARISONS)}, in, not in"
        )
    return f"{field} {_COMPARISONS[operator]} {_quote(value)}"


def _quote(value: Any) -> str:
    """Return a value as a condition has it; None is a field without a value."""
    text = "" if value is None else value.isoformat()[:10] if isinstance(value, date) else str(value)
    mark = "'" if '"' in text else '"'
    if mark in text:
        raise UsageError(f"no filter can have both quotation marks: {text}", "Leave one of them out")
    return f"{mark}{text}{mark}"
