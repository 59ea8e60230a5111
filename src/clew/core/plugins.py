"""Plug-ins: what other installed packages add to clew, found by their entry points.

==================== =================================================================================
group                what an entry point names
==================== =================================================================================
``clew.retrievers``  a class declared with :func:`clew.core.component.component`; so with the next three
``clew.readers``
``clew.methods``
``clew.graphs``
``clew.encoders``    a function from what follows ``NAME:`` in an encoder's name to an encoder
``clew.parsers``     a parser of documents
``clew.commands``    a command, or group of commands, of the command line
==================== =================================================================================

The name of an entry point is the name that people write. Its module is imported when that name is used, or listed.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from clew.core.errors import PluginError

RETRIEVERS = "clew.retrievers"
READERS = "clew.readers"
METHODS = "clew.methods"
GRAPHS = "clew.graphs"
ENCODERS = "clew.encoders"
PARSERS = "clew.parsers"
COMMANDS = "clew.commands"


@cache
def plugin_names(group: str) -> tuple[str, ...]:
    """Return the names of the plug-ins of a group, sorted. Imports none of them."""
    return tuple(sorted(_entries(group)))


def load_plugin(group: str, name: str) -> Any:
    """Return what the plug-in ``name`` of a group is: imported now, at its first use.

    Raises PluginError, which names the package and the reason, for one that cannot be imported.
    """
    entry = _entries(group)[name]
    try:
        return entry.load()
    except Exception as error:  # whatever another package's code may raise while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(
            f"the plug-in '{name}' of {plugin_package(group, name)} cannot be loaded: {reason}",
            "Update or uninstall that package",
        ) from error


def plugin_package(group: str, name: str) -> str:
    """Return the name of the package that a plug-in came with."""
    distribution = _entries(group)[name].dist
    return distribution.name if distribution else "an unknown package"


@cache
def _entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}
