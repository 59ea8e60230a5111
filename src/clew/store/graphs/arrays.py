"""The arrays of a graph: memory-mapped, a pure function of the packed graph, rebuilt where they are missing.

They lie in ``derived/graphs/<digest>``, so a folder belongs to exactly one content of a graph; names and ids of a
removed graph are deleted with its folder.

* ``ids``, ``ids.starts``: the external ids in UTF-8, ascending, one after the other.
* ``types.starts``, ``types.rows``: the rows of each type.
* ``names.hashes``, ``names.owners``, ``names.rows``: the hash of every different folded name and alias, ascending,
  and the rows that have it; ``names.texts``, ``names.starts``: their beginnings, in UTF-8; ``grams.*``: which of them
  contain which three characters (:mod:`clew.store.graphs.spelling_index`).
* ``out.heads``, ``out.starts``, ``out.tails`` and the same with ``in``: the tails of heads and the heads of tails,
  relation after relation. A relation lists the rows that have an edge, unless a quarter of all rows have one;
  then it has a start for every row. So a graph of thousands of relations takes no more space than its edges.
* ``any.out.heads`` and so on: the same for all relations as one, each pair of nodes once.
* ``columns.rows``, ``columns.numbers``, ``columns.texts``, ``columns.starts``: the values of properties, property
  after property (:class:`clew.core.protocols.PropertyColumn`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.arrays import Arrays, DirectedEdges, file_checksum, read_arrays
from clew.core.errors import Damaged
from clew.store.database import refuse_exhaustion

#: Changing the arrays changes this name, and those of every graph are rebuilt.
MAKER = "graphs/4"
MANIFEST = "graph.json"


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """The opened arrays of one graph, and their manifest."""

    manifest: dict[str, Any]
    arrays: Arrays

    def edges(self, relation: int | None, inverse: bool) -> DirectedEdges:
        """Return the edges of the ``relation``-th relation; None: of all as one."""
        direction = "in" if inverse else "out"
        place = self.manifest["any" if relation is None else "places"][direction][relation or 0]
        first, count, at, length, edge, edges = place
        prefix = f"any.{direction}" if relation is None else direction
        starts = self.arrays[f"{prefix}.starts"][at : at + length]
        heads = self.arrays[f"{prefix}.heads"][first : first + count] if count >= 0 else None
        tails = self.arrays[f"{prefix}.tails"][edge : edge + edges]
        return DirectedEdges(heads, starts, tails)  # type: ignore[arg-type]


def arrays_folder(derived: Path, digest: str) -> Path:
    """Return the folder of the arrays of a graph."""
    return derived / "graphs" / digest


def load_arrays(folder: Path) -> GraphArrays | None:
    """Open the arrays in a folder; None where they are missing, of another version, or of the wrong size."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["maker"] != MAKER:
            return None
        return GraphArrays(manifest, read_arrays(folder, manifest["files"]))
    except (OSError, ValueError, KeyError, TypeError, Damaged) as error:
        refuse_exhaustion(error)
        return None


def find_faults(folder: Path, names: Sequence[str] | None = None) -> list[str]:
    """Return the files (of arrays with ``names``, by default of all) that do not match the manifest of a folder; the
    manifest itself where it cannot be read."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        checksums = {str(name): str(entry[1]) for name, entry in files.items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return [MANIFEST]
    return [
        name
        for name, checksum in checksums.items()
        if (names is None or name.removesuffix(".npy") in names)
        and (not (folder / name).is_file() or file_checksum(folder / name) != checksum)
    ]


def delete_stale_arrays(derived: Path, digests: Sequence[str]) -> None:
    """Delete the arrays of graphs other than those with one of ``digests``."""
    for folder in (derived / "graphs").glob("*"):
        if folder.name not in digests:
            shutil.rmtree(folder, ignore_errors=True)
