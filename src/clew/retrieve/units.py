"""What surrounds a passage: the names above it, and the page or section it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.retrieve.lexical import row_lengths
from clew.types import KINDS, ROW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Floats, Rows, Snapshot


@dataclass(frozen=True, slots=True)
class ContextUnits:
    """The page, or where there are no pages the section, of every searched node.

    ``of`` has one entry per row of the snapshot: the number of its unit (0 for rows without terms).
    ``length`` counts the terms of each unit and ``average`` is their mean.
    """

    unit_of_row: NDArray[np.int64]
    lengths: Floats
    average_length: float

    @property
    def count(self) -> int:
        """How many units there are."""
        return len(self.lengths)


def context_units(snapshot: Snapshot) -> ContextUnits:
    """Return the units of a snapshot; made once per generation."""
    made: ContextUnits = snapshot.memoize("units/text", lambda: _units(snapshot), documents_only=True)
    return made


def _units(snapshot: Snapshot) -> ContextUnits:
    lengths = row_lengths(snapshot, "text")
    rows = np.flatnonzero(lengths)
    document, page = snapshot.column("document")[rows], snapshot.column("page")[rows]
    parent, kind = snapshot.column("parent"), snapshot.column("kind")[rows]
    above = parent[rows]
    in_table = (kind == KINDS.index(ROW)) & (above >= 0)
    above[in_table] = parent[above[in_table]]
    # A page is known by its document and number, a section by its row.
    place = np.where(page > 0, page, -above - 1)
    order = np.lexsort((place, document))
    document, place = document[order], place[order]
    new = (document[1:] != document[:-1]) | (place[1:] != place[:-1])
    of = np.zeros(snapshot.size, dtype=np.int64)
    of[rows[order]] = np.cumsum(np.r_[False, new])[: len(rows)]
    length = np.bincount(of[rows], lengths[rows]).astype(np.float64)
    return ContextUnits(of, length, float(length.mean()) if len(length) else 1.0)


def mark_rows_below(snapshot: Snapshot, above: Rows) -> NDArray[np.bool_]:
    """Return which searched rows stand below one of ``above``: sections, tables, documents."""
    ends = subtree_ends(snapshot)[above]
    change = np.bincount(above, minlength=snapshot.size + 1) - np.bincount(ends, minlength=snapshot.size + 1)
    found: NDArray[np.bool_] = (np.cumsum(change[:-1]) > 0) & (row_lengths(snapshot, "text") > 0)
    return found


def subtree_ends(snapshot: Snapshot) -> Rows:
    """Return for each row the end of its subtree: its descendants lie from ``row + 1`` up to there.

    Parsers number nodes in reading order, so what lies in between and is no descendant is a page, which is
    not searched. Made once per generation.
    """
    made: Rows = snapshot.memoize(
        "units/ends", lambda: _subtree_ends(snapshot.column("parent")), documents_only=True
    )
    return made


def _subtree_ends(parent: Rows) -> Rows:
    ends = np.arange(1, len(parent) + 1, dtype=np.int64)
    children = np.flatnonzero(parent >= 0)
    while True:
        before = ends.copy()
        np.maximum.at(ends, parent[children], ends[children])
        if np.array_equal(before, ends):
            return ends
