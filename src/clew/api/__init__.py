"""The public Python API: one knowledge base, and what a person does with it.

>>> import clew
>>> with clew.open("notes.clew", create=True) as base:        # doctest: +SKIP
...     base.add(["notes/"])
...     answer = base.ask("Who leads the laboratory that built the probe?")
...     print(answer.text, [hit.node.document_name for hit in answer.evidence])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.api.base import LOCAL_GRAPHS, KnowledgeBase, open, open_or_empty
from clew.api.encoders import ENCODER_SETTING
from clew.api.graphs import entity_triples
from clew.api.models import clear_reply_cache, encoder_kinds, estimate_question, reply_cache
from clew.api.shapes import ReplyCache, RoleCost, GraphSize, VectorCounts, DocumentMatches, EntityTriples

if TYPE_CHECKING:
    from clew.kb.graphs.mounting import MountOptions
    from clew.triples import Options

__all__ = [
    "LOCAL_GRAPHS",
    "ENCODER_SETTING",
    "KnowledgeBase",
    "ReplyCache",
    "RoleCost",
    "GraphSize",
    "VectorCounts",
    "DocumentMatches",
    "MountOptions",
    "Options",
    "EntityTriples",
    "clear_reply_cache",
    "encoder_kinds",
    "estimate_question",
    "reply_cache",
    "open",
    "open_or_empty",
    "entity_triples",
]

_HOMES = {"MountOptions": "clew.kb.graphs.mounting", "Options": "clew.triples"}


def __getattr__(name: str) -> Any:
    """Import what needs numpy on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'clew.api' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
