"""Documents in: every format becomes the same tree of nodes.

The public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.parse.documents.pool import ParsePool
    from clew.parse.documents.reader import is_supported, parse, read_file

__all__ = ["ParsePool", "is_supported", "parse", "read_file"]

_HOMES = {
    "ParsePool": "clew.parse.documents.pool",
    "parse": "clew.parse.documents.reader",
    "read_file": "clew.parse.documents.reader",
    "is_supported": "clew.parse.documents.reader",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
