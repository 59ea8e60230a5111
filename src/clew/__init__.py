"""clew: grounded question answering over your own documents, every answer with its thread.

>>> import clew
>>> base = clew.open("notes.clew", create=True)          # doctest: +SKIP
>>> base.add("notes/")                                   # doctest: +SKIP
>>> base.ask("When was the bridge opened?").text         # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.core.errors import ClewError
    from clew.core.types import Answer, Document, Hit, Node, Question, Scope
    from clew.knowledge_base.knowledge_base import KnowledgeBase, open

__all__ = ["Answer", "ClewError", "Document", "Hit", "KnowledgeBase", "Node", "Question", "Scope", "open"]

_HOMES = {
    "KnowledgeBase": "clew.knowledge_base",
    "open": "clew.knowledge_base",
    "ClewError": "clew.core.errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562), so that ``import clew`` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'clew' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "clew.core.types")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
