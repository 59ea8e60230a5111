"""Neighbours by the tree of the document: what stands in the same section, page or table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from clew.core.component import INTERNAL, component
from clew.core.errors import unknown_name_error
from clew.core.protocols import Snapshot
from clew.core.types import KINDS, PAGE, ROW, SECTION, TABLE
from clew.graph.passages import passage_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows

#: The relations of the tree, in the order in which :meth:`Structure.why` names the first that holds.
RELATIONS = ("next", "parent", "table", "section", "page")


@component("structure", summary="the same section, page or table; the passages before and after")
class StructureGraph:
    """Neighbours are nodes of the same document that its structure joins to a node.

    - ``next``: the passage or table row before and after it in reading order
    - ``parent``: the section, table or document it stands in, and the nodes that stand in it
    - ``table``: the rows of the same table
    - ``section``: what stands directly in the same section
    - ``page``: what starts on the same page, and the page itself

    The paper joins pages to the passages and tables on them (Section 3); the other relations are what a
    document's tree says besides. Unlike the other graphs this one also leads to sections, pages and tables.
    ``relations`` chooses some of them.
    """

    def __init__(self, snapshot: Snapshot, relations: Annotated[Sequence[str], INTERNAL] = RELATIONS) -> None:
        for relation in relations:
            if relation not in RELATIONS:
                raise unknown_name_error("structural relation", relation, RELATIONS)
        self.mutual = True
        self._relations = tuple(name for name in RELATIONS if name in relations)
        everything = self._relations == RELATIONS
        self.name = "structure" if everything else f"structure(relations={'+'.join(self._relations)})"
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
        """Return the rows that the chosen relations join to ``row``, ascending, without itself."""
        if self._document[row] < 0:
            return np.empty(0, dtype=np.int64)
        start, end = self._spans[int(self._document[row])]
        joined = np.zeros(end - start, dtype=np.bool_)
        for relation in self._relations:
            joined |= self._related(relation, row, start, end)
        joined[row - start] = False
        return np.flatnonzero(joined).astype(np.int64) + start

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each: what stands together stands together."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return the closest relation that joins two rows (``structure: same table``)."""
        if self._document[source] >= 0 and self._document[source] == self._document[target]:
            start, end = self._spans[int(self._document[source])]
            for relation in self._relations:
                if self._related(relation, source, start, end)[target - start]:
                    return f"structure: {_WORDS[relation]}"
        return ""

    def _related(self, relation: str, row: int, start: int, end: int) -> NDArray[np.bool_]:
        """Return which rows of the document (``start`` to ``end``) the relation joins to ``row``."""
        parent, kind = self._parent[start:end], KINDS[int(self._kind[row])]
        joined = np.zeros(end - start, dtype=np.bool_)
        above = int(self._parent[row])
        siblings = np.flatnonzero(parent == above) if above >= 0 else np.empty(0, dtype=np.int64)
        if relation == "next":
            joined[self._beside(row, start, end) - start] = True
        elif relation == "parent":
            joined[parent == row] = True
            if above >= 0:
                joined[above - start] = True
        elif relation == "table" and kind == ROW:
            joined[siblings] = True
        elif relation == "section" and kind not in (ROW, PAGE):
            joined[siblings[self._kind[start + siblings] != _PAGE]] = True
        elif relation == "page" and self._page[row] >= 0:
            joined[self._page[start:end] == self._page[row]] = True
        return joined

    def _beside(self, row: int, start: int, end: int) -> Rows:
        """Return the passages or table rows of the document before and after ``row``, itself with them."""
        at = int(np.searchsorted(self._passages, row))
        if at == len(self._passages) or self._passages[at] != row:
            return self._passages[:0]
        near = self._passages[max(at - 1, 0) : at + 2]
        return near[(near >= start) & (near < end)]


Spans = dict[int, tuple[int, int]]


def document_spans(snapshot: Snapshot) -> Spans:
    """Return the half-open range of rows of each document, by its first row."""
    ranges = (snapshot.document_rows(document.key) for document in snapshot.documents())
    return {start: (start, end) for start, end in ranges}


_PAGE = KINDS.index(PAGE)
_WORDS = {
    "next": "next to it",
    "parent": "one stands in the other",
    "table": f"same {TABLE}",
    "section": f"same {SECTION}",
    "page": f"same {PAGE}",
}
