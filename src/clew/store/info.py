"""How large a base is, and which derived data it has; read without numpy, and while other processes write."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.types import GraphInfo

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Sizes of a base. ``encoders`` maps an encoder's name to its number of vectors; ``pending`` counts
    documents that are not yet searchable; ``kept`` maps a maker (a summariser) to how many parts of documents it
    made something of; ``imported`` are the graphs that were added or mounted."""

    documents: int
    pages: int
    nodes: dict[str, int]
    bytes: int
    generation: int
    pending: int
    encoders: dict[str, int]
    relations: dict[str, int]
    digest: str
    kept: dict[str, int] = field(default_factory=dict)
    imported: list[GraphInfo] = field(default_factory=list)


def indexed_documents(derived: Path) -> set[tuple[int, int]]:
    """Return which documents (first row, stamp) the manifest of the segments lists."""
    try:
        content = json.loads((derived / "segments" / "segments.json").read_text(encoding="utf-8"))
        return {(first, stamp) for first, stamp in content["documents"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def vector_counts(derived: Path) -> dict[str, int]:
    """Return the number of vectors of each encoder."""
    found = {}
    for path in sorted(derived.glob("vectors/*/vectors.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found[str(content["name"])] = int(content["count"])
        except (OSError, ValueError, KeyError):
            continue
    return found


def manifest_times(derived: Path) -> tuple[tuple[str, int], ...]:
    """Return the manifests of derived data with the time of their last change, in nanoseconds."""
    found = []
    for path in sorted([derived / "segments" / "segments.json", *derived.glob("vectors/*/vectors.json")]):
        with contextlib.suppress(FileNotFoundError):
            found.append((str(path), path.stat().st_mtime_ns))
    return tuple(found)


def folder_size(folder: Path) -> int:
    """Return the bytes of the files in a folder. What another process deletes meanwhile does not count."""
    total = 0
    # os.walk passes over a folder that is gone by the time it is read; Path.rglob raises.
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(f"{place}{os.sep}{name}").st_size
    return total
