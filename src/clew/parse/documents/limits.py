"""Limits on one file. A file beyond a limit is refused with a reason; nothing is cut off silently."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from clew.core.errors import UnreadableFile

MIB = 1 << 20
#: What a person can do about a file that is too large, and one that is built too strangely.
SMALLER = "Divide it into smaller files and add those"
SIMPLER = "Export it as PDF or plain text and add that"
#: What to do about files within files.
UNPACK = "Unpack it and add what is inside"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one file. Sizes in bytes, text in characters.

    ``unpacked_ratio`` is checked only for a packed part that unpacks to more than ``ratio_floor``: a small part of
    repeated XML packs a thousandfold and harms nobody. ``depth`` is how deep elements may be nested, ``attributes``
    how many one may have. ``cells`` is how many filled cells the tables of one file may have; a cell counts once for
    each row and column it spans. ``members`` is how many files there may be within a file, ``member_depth`` how deep
    archives and mails may be in each other.
    """

    file_bytes: int = 512 * MIB
    unpacked_bytes: int = 1024 * MIB
    unpacked_ratio: int = 300
    ratio_floor: int = 64 * MIB
    parts: int = 20_000
    depth: int = 1_000
    attributes: int = 1_000
    nodes: int = 2_000_000
    characters: int = 200_000_000
    cells: int = 4_000_000
    members: int = 10_000
    member_depth: int = 3

    def check(self, what: str, value: int, limit: int, unit: str = "", hint: str = SMALLER) -> None:
        """Raise UnreadableFile if ``value`` exceeds ``limit``; ``what`` names the problem."""
        if value > limit:
            raise UnreadableFile(f"{what}: more than {limit:,}{unit and ' ' + unit}", hint)

    def check_nodes(self, count: int) -> None:
        """Refuse a document of more than ``nodes`` passages, rows and sections."""
        self.check("too many passages and table rows", count, self.nodes)

    def check_characters(self, count: int) -> None:
        """Refuse a document with more text than ``characters``."""
        self.check("too much text", count, self.characters, "characters")

    def check_cells(self, count: int) -> None:
        """Refuse tables of more than ``cells`` cells."""
        self.check("tables too large", count, self.cells, "cells")

    def check_depth(self, depth: int) -> None:
        """Refuse elements nested deeper than ``depth``."""
        self.check("nested too deeply", depth, self.depth, "levels", SIMPLER)

    def check_attributes(self, count: int) -> None:
        """Refuse an element of more than ``attributes`` attributes."""
        self.check("an element has too many attributes", count, self.attributes, hint=SIMPLER)


LIMITS = Limits()
"""The default limits."""


def set_processor_limit(seconds: float) -> None:
    """End this process when it has used ``seconds`` more of processor time; 0 lifts the limit.

    The kernel ends it, so that the limit holds within a library too. Windows has no such limit.
    """
    if sys.platform != "win32":
        import resource

        soft = resource.RLIM_INFINITY
        if seconds:
            used = resource.getrusage(resource.RUSAGE_SELF)
            soft = math.ceil(used.ru_utime + used.ru_stime + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def extend_processor_limit(seconds: float) -> None:
    """Allow this process ``seconds`` more of processor time, where it has a limit: a long file takes longer."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_CPU, (soft + math.ceil(seconds), hard))


def limit_memory(limit: int) -> None:
    """Limit the memory to ``limit`` bytes more than the process has now (0: no limit), and write no core dump, which
    would have a person's document in it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # Linux counts the data of a process. Elsewhere there is only the address space, which is mostly libraries.
    kind, present = (resource.RLIMIT_DATA, "VmData") if sys.platform == "linux" else (resource.RLIMIT_AS, "")
    if limit:
        total = limit + (_read_status(present) if present else _ADDRESS_SPACE)
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or total < hard:
            resource.setrlimit(kind, (total, hard))


#: Bytes of address space that the libraries of an idle parser may have.
_ADDRESS_SPACE = 3 << 30


def _read_status(field: str) -> int:
    """Return the bytes of a field of this process's status under Linux."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def extend_memory_limit(size: int) -> None:
    """Allow this process ``size`` bytes more of memory, where it has a limit that it may raise."""
    if sys.platform != "win32":
        import resource

        kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        soft, hard = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            more = soft + size
            resource.setrlimit(kind, (more if hard == resource.RLIM_INFINITY else min(more, hard), hard))


def format_size(size: int) -> str:
    """Return a number of bytes as a person reads it.

    >>> format_size(3 * MIB)
    '3.0 MiB'
    """
    return f"{size / MIB:.1f} MiB" if size >= MIB else f"{size:,} bytes"
