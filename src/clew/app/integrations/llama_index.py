"""A retriever of LlamaIndex over a knowledge base. Needs the extra ``llama-index``."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from clew.app.integrations import hit_metadata
from clew.core.sources import Sources
from clew.knowledge_base.knowledge_base import KnowledgeBase

#: What of a passage's metadata goes into the prompt of a language model.
_SHOWN = ("document", "page", "section")


class ClewRetriever(BaseRetriever):
    """Returns the passages that clew's search ranks first for a question.

    ``base`` is an open knowledge base, ``k`` the number of passages, ``retriever`` a recipe of ``clew recipes`` (the
    default searches several hops deep), and ``documents`` restricts the search to names, paths, folders or keys.
    Each node has the passage's text and, as metadata, its document, page, section and id; a prompt has those of them
    that a reader understands.

    >>> engine = RetrieverQueryEngine(ClewRetriever(clew.open("notes.clew")))  # doctest: +SKIP
    """

    def __init__(
        self,
        base: KnowledgeBase,
        k: int = 10,
        retriever: str = "default",
        documents: Sources | None = None,
    ) -> None:
        self._base = base
        self._k = k
        self._retriever = retriever
        self._documents = documents
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._base.search(
            query_bundle.query_str, k=self._k, retriever=self._retriever, documents=self._documents
        )
        nodes = []
        for hit in hits:
            metadata = hit_metadata(hit)
            metadata.pop("score")  # the node's own
            hidden = [name for name, value in metadata.items() if name not in _SHOWN or value in {None, ""}]
            node = TextNode(
                id_=hit.node.id,
                text=hit.node.text,
                metadata=metadata,
                excluded_llm_metadata_keys=hidden,
                excluded_embed_metadata_keys=hidden,
            )
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes
