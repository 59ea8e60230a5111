"""Neighbours by the tree of the document: what stands in the same section, page or table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Rows
from clew.core.component import INTERNAL, component
from clew.core.errors import unknown_name_error
from clew.core.protocols import Snapshot
from clew.core.types import KINDS, PAGE, ROW, SECTION, TABLE
from clew.graph.passages import Spans, document_spans, passage_rows

#: The relations, closest first; :meth:`StructureGraph.explain_edge` names the first that holds.
RELATIONS = ("next", "parent", "table", "section", "page")


@component("structure", summary="the same section, page or table; the passages before and after")
class StructureGraph:
    """Neighbours are nodes of the same document that are close to a node in the document's structure.

    - ``next``: the passages or table rows before and after it in reading order
    - ``parent``: the section, table or document that it stands in, and the nodes that stand in it
    - ``table``: the rows of the same table
    - ``section``: the nodes directly in the same section
    - ``page``: the nodes that start on the same page, and the page itself

    The KGP paper joins pages to the passages and tables on them (Wang et al., AAAI 2024, Section 3); the other
    relations are added here. Unlike the other graphs this one also leads to sections, pages and tables. ``relations``
    selects some of the relations.
    """

    def __init__(self, snapshot: Snapshot, relations: Annotated[Sequence[str], INTERNAL] = RELATIONS) -> None:
        for relation in relations:
            if relation not in RELATIONS:
                raise unknown_name_error("structural relation", relation, RELATIONS)
        self.mutual = True
        self._relations = tuple(name for name in RELATIONS if name in relations)
        has_all = self._relations == RELATIONS
        self.name = "structure" if has_all else f"structure(relations={'+'.join(self._relations)})"
        self._document = snapshot.column("document")
        self._parent = snapshot.column("parent")
        self._page = snapshot.column("page")
        self._kind = snapshot.column("kind")
        self._passages: Rows = snapshot.memoize(
            "graph/passages", lambda: passage_rows(snapshot), documents_only=True
        )
        self._spans: Spans = snapshot.memoize(
            "graph/documents", lambda: document_spans(snapshot), documents_only=True
        )

    def neighbours(self, row: int) -> Rows:
        """Return the rows that the relations join to ``row``, ascending, without itself."""
        if self._document[row] < 0:
            return np.empty(0, dtype=np.int64)
        start, end = self._spans[int(self._document[row])]
        joined = np.zeros(end - start, dtype=np.bool_)
        for relation in self._relations:
            joined |= self._joined_rows(relation, row, start, end)
        joined[row - start] = False
        return np.flatnonzero(joined).astype(np.int64) + start

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return the closest relation that joins two rows (``structure: same table``)."""
        if self._document[source] >= 0 and self._document[source] == self._document[target]:
            start, end = self._spans[int(self._document[source])]
            for relation in self._relations:
                if self._joined_rows(relation, source, start, end)[target - start]:
                    return f"structure: {_WORDS[relation]}"
        return ""

    def _joined_rows(self, relation: str, row: int, start: int, end: int) -> NDArray[np.bool_]:
        """Return which rows of the document, (end - start,), a relation joins to ``row``."""
        parent, kind = self._parent[start:end], KINDS[int(self._kind[row])]
        joined = np.zeros(end - start, dtype=np.bool_)
        own_parent = int(self._parent[row])
        siblings = np.flatnonzero(parent == own_parent) if own_parent >= 0 else np.empty(0, dtype=np.int64)
        if relation == "next":
            joined[self._adjacent_rows(row, start, end) - start] = True
        elif relation == "parent":
            joined[parent == row] = True
            if own_parent >= 0:
                joined[own_parent - start] = True
        elif relation == "table" and kind == ROW:
            joined[siblings] = True
        elif relation == "section" and kind not in (ROW, PAGE):
            joined[siblings[self._kind[start + siblings] != _PAGE]] = True
        elif relation == "page" and self._page[row] >= 0:
            joined[self._page[start:end] == self._page[row]] = True
        return joined

    def _adjacent_rows(self, row: int, start: int, end: int) -> Rows:
        """Return ``row`` with the passages or table rows of the document before and after it."""
        place = int(np.searchsorted(self._passages, row))
        if place == len(self._passages) or self._passages[place] != row:
            return self._passages[:0]
        rows = self._passages[max(place - 1, 0) : place + 2]
        return rows[(rows >= start) & (rows < end)]


_PAGE = KINDS.index(PAGE)
_WORDS = {
    "next": "next to it",
    "parent": "one stands in the other",
    "table": f"same {TABLE}",
    "section": f"same {SECTION}",
    "page": f"same {PAGE}",
}
