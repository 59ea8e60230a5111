"""Documents in: every format becomes the same tree of nodes.

The public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.parse.pool import ParsePool as ParsePool
    from clew.parse.read import parse as parse
    from clew.parse.read import read_file as read_file
    from clew.parse.read import is_supported as supported

_HOMES = {
    "ParsePool": "clew.parse.pool",
    "parse": "clew.parse.read",
    "read_file": "clew.parse.read",
    "supported": "clew.parse.read",
}
__all__ = ["ParsePool", "parse", "read_file", "is_supported"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
