"""Several graphs as one."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clew.core.component import component
from clew.core.errors import UsageError

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import Graph


@component("union", summary="the edges of two graphs")
class UnionGraph:
    """Neighbours are those of any of the given graphs."""

    @classmethod
    def build(cls, a: Graph, b: Graph) -> UnionGraph:
        """Return the union of two graphs."""
        return cls([a, b])

    def __init__(self, graphs: Sequence[Graph]) -> None:
        if not graphs:
            raise UsageError("a union of no graphs", "Name at least one")
        self._graphs = tuple(graphs)
        parts = zip(string.ascii_lowercase, self._graphs, strict=False)
        named = ", ".join(f"{letter}={graph.name}" for letter, graph in parts)
        self.mutual = all(graph.mutual for graph in self._graphs)
        self.name = f"union({named})"

    def neighbours(self, row: int) -> Rows:
        """Return the rows that an edge of any graph joins to ``row``, ascending, without itself."""
        return np.unique(np.concatenate([graph.neighbours(row) for graph in self._graphs]))

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return for each neighbour its strongest edge."""
        found = np.zeros(len(neighbours))
        for graph in self._graphs:
            joined = np.isin(neighbours, graph.neighbours(row))
            found[joined] = np.maximum(found[joined], graph.strengths(row, neighbours[joined]))
        return found

    def explain_edge(self, source: int, target: int) -> str:
        """Return what joins the two in each graph that does (``mentions: Ohio; keywords: river``)."""
        reasons = [
            graph.explain_edge(source, target) for graph in self._graphs if target in graph.neighbours(source)
        ]
        return "; ".join(reason for reason in reasons if reason)
