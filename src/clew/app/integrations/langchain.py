"""A retriever of LangChain over a knowledge base. Needs the extra ``langchain``."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import BeforeValidator, ConfigDict

from clew.app.integrations import hit_metadata
from clew.core.sources import Sources, list_sources
from clew.knowledge_base.knowledge_base import KnowledgeBase


def _list_documents(given: Sources | None) -> list[str] | None:
    return None if given is None else list_sources(given)


class ClewRetriever(BaseRetriever):
    """Returns the passages that clew's search ranks first for a question.

    ``base`` is an open knowledge base, ``k`` the number of passages, ``retriever`` a recipe of ``clew recipes`` (the
    default searches several hops deep), and ``documents`` restricts the search to names, paths, folders or keys. The
    last three, and ``where``, may be given with a question, too. Each document has the passage's text and, as
    metadata, its score, document, page, section and id.

    >>> retriever = ClewRetriever(base=clew.open("notes.clew"), k=5)  # doctest: +SKIP
    >>> retriever.invoke("When was the bridge opened?")               # doctest: +SKIP
    >>> retriever.invoke("When was the bridge opened?", k=1)          # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    base: KnowledgeBase
    k: int = 10
    retriever: str = "default"
    documents: Annotated[list[str] | None, BeforeValidator(_list_documents)] = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        own: dict[str, Any] = {"k": self.k, "retriever": self.retriever, "documents": self.documents}
        hits = self.base.search(query, **own | options)
        return [
            Document(page_content=hit.node.text, metadata=hit_metadata(hit), id=hit.node.id) for hit in hits
        ]
