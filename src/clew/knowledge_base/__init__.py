"""The public Python API: one knowledge base, and what a person does with it.

>>> import clew
>>> with clew.open("notes.clew", create=True) as base:        # doctest: +SKIP
...     base.add("notes/")
...     answer = base.ask("Who leads the laboratory that built the probe?")
...     print(answer.text, [hit.node.document_name for hit in answer.evidence])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.knowledge_base.graphs import entity_triples
from clew.knowledge_base.knowledge_base import (
    ENCODER_SETTING,
    LOCAL_GRAPHS,
    KnowledgeBase,
    open,
    open_or_empty,
)
from clew.knowledge_base.models import clear_reply_cache, encoder_kinds, estimate_question, reply_cache
from clew.knowledge_base.results import (
    DocumentMatches,
    EntityTriples,
    GraphSize,
    ReplyCache,
    RoleCost,
    VectorCounts,
)

if TYPE_CHECKING:
    from clew.parse.graphs.formats import GraphReadOptions
    from clew.store.graphs.graph_edits import GraphEdits
    from clew.store.sparql.mount_options import MountOptions

__all__ = [
    "ENCODER_SETTING",
    "LOCAL_GRAPHS",
    "DocumentMatches",
    "EntityTriples",
    "GraphEdits",
    "GraphReadOptions",
    "GraphSize",
    "KnowledgeBase",
    "MountOptions",
    "ReplyCache",
    "RoleCost",
    "VectorCounts",
    "clear_reply_cache",
    "encoder_kinds",
    "entity_triples",
    "estimate_question",
    "open",
    "open_or_empty",
    "reply_cache",
]

_HOMES = {
    "GraphEdits": "clew.store.graphs.graph_edits",
    "GraphReadOptions": "clew.parse.graphs.formats",
    "MountOptions": "clew.store.sparql.mount_options",
}


def __getattr__(name: str) -> Any:
    """Import the options of graphs on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'clew.knowledge_base' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
