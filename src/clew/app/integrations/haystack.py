"""A retriever of Haystack over a knowledge base; ``pip install 'clew[haystack]'``."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

import clew
from clew.app.integrations import hit_metadata


@component
class ClewRetriever:
    """Returns the passages that clew's search ranks first for a question.

    ``base`` is the folder of a knowledge base, ``k`` the number of passages, ``retriever`` a recipe of ``clew
    recipes`` (the default searches several hops deep), and ``documents`` restricts the search to names, paths,
    folders or keys. Each document has the passage's text, its score and, as metadata, its document, page, section
    and id. A pipeline with this component can be saved and loaded.

    >>> pipeline.add_component("retriever", ClewRetriever("notes.clew"))  # doctest: +SKIP
    """

    def __init__(
        self, base: str, k: int = 10, retriever: str = "default", documents: list[str] | None = None
    ) -> None:
        self.base = base
        self.k = k
        self.retriever = retriever
        self.documents = documents
        self._opened: clew.KnowledgeBase | None = None

    def warm_up(self) -> None:
        """Open the base; a pipeline does it before its first run."""
        self._open()

    def _open(self) -> clew.KnowledgeBase:
        if self._opened is None:
            self._opened = clew.open(self.base)
        return self._opened

    @component.output_types(documents=list[Document])
    def run(self, query: str, k: int | None = None, documents: list[str] | None = None) -> dict[str, Any]:
        """Return the passages for ``query``; ``k`` and ``documents`` replace those of the component."""
        hits = self._open().search(
            query, k=k or self.k, retriever=self.retriever, documents=documents or self.documents
        )
        return {
            "documents": [
                Document(id=hit.node.id, content=hit.node.text, meta=hit_metadata(hit), score=hit.score)
                for hit in hits
            ]
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the component, for a saved pipeline."""
        return default_to_dict(
            self, base=self.base, k=self.k, retriever=self.retriever, documents=self.documents
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClewRetriever:
        """Return the component of a saved pipeline."""
        return default_from_dict(cls, data)
