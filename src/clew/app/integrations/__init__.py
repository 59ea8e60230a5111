"""clew's search as a retriever of LangChain, LlamaIndex and Haystack, one module each; each needs its extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.core.types import Hit


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """Return what a framework keeps beside a passage: score, document, key, page, section, kind, and the node's id.

    The values are strings, numbers or None, as vector stores accept them.
    """
    place = hit.to_dict()
    names = ("score", "document", "key", "page", "section", "kind", "id")
    return {name: place[name] for name in names}
