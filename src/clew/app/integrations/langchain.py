"""A retriever of LangChain over a knowledge base; ``pip install 'clew[langchain]'``."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from clew.app.integrations import hit_metadata
from clew.knowledge_base.knowledge_base import KnowledgeBase


class ClewRetriever(BaseRetriever):
    """Returns the passages that clew's search ranks first for a question.

    ``base`` is an open knowledge base, ``k`` the number of passages, ``retriever`` a recipe of ``clew recipes`` (the
    default searches several hops deep), and ``documents`` restricts the search to names, paths, folders or keys.
    Each document has the passage's text and, as metadata, its score, document, page, section and id.

    >>> retriever = ClewRetriever(base=clew.open("notes.clew"), k=5)  # doctest: +SKIP
    >>> retriever.invoke("When was the bridge opened?")               # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    base: KnowledgeBase
    k: int = 10
    retriever: str = "default"
    documents: list[str] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **_: Any
    ) -> list[Document]:
        hits = self.base.search(query, k=self.k, retriever=self.retriever, documents=self.documents)
        return [
            Document(page_content=hit.node.text, metadata=hit_metadata(hit), id=hit.node.id) for hit in hits
        ]
