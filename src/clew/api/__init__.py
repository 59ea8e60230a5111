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

from clew.api.base import ALL_GRAPHS, Base, open, open_or_empty
from clew.api.encoders import ENCODER
from clew.api.graphs import triples_of
from clew.api.models import clear_model_cache, encoder_kinds, estimate_question, model_cache
from clew.api.shapes import Cache, Cost, GraphSize, Held, Matches, Triples

if TYPE_CHECKING:
    from clew.kb.graphs.mounting import MountOptions
    from clew.triples import Options

__all__ = [
    "ALL_GRAPHS",
    "ENCODER",
    "Base",
    "Cache",
    "Cost",
    "GraphSize",
    "Held",
    "Matches",
    "MountOptions",
    "Options",
    "Triples",
    "clear_model_cache",
    "encoder_kinds",
    "estimate_question",
    "model_cache",
    "open",
    "open_or_empty",
    "triples_of",
]

_HOMES = {"MountOptions": "clew.kb.graphs.mounting", "Options": "clew.triples"}


def __getattr__(name: str) -> Any:
    """Import what needs numpy on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'clew.api' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
