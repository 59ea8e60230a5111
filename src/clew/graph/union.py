"""The union of several graphs."""

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
    """Neighbours are the neighbours in any of the graphs."""

    @classmethod
    def build(cls, a: Graph, b: Graph) -> UnionGraph:
        """Return the union of two graphs."""
        return cls([a, b])

    def __init__(self, graphs: Sequence[Graph]) -> None:
        if not graphs:
            raise UsageError("a union of no graphs", "Name at least one")
        self._graphs = tuple(graphs)
        lettered = zip(string.ascii_lowercase, self._graphs, strict=False)
        names = ", ".join(f"{letter}={graph.name}" for letter, graph in lettered)
        self.mutual = all(graph.mutual for graph in self._graphs)
        self.name = f"union({names})"

    def neighbours(self, row: int) -> Rows:
        """Return the rows that an edge of any graph joins to ``row``, ascending, without itself."""
        return np.unique(np.concatenate([graph.neighbours(row) for graph in self._graphs]))

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return for each neighbour its strongest edge."""
        strongest = np.zeros(len(neighbours))
        for graph in self._graphs:
            joined = np.isin(neighbours, graph.neighbours(row))
            strongest[joined] = np.maximum(strongest[joined], graph.strengths(row, neighbours[joined]))
        return strongest

    def explain_edge(self, source: int, target: int) -> str:
        """Return what joins two rows in each graph with that edge (``mentions: Ohio; keywords: river``)."""
        reasons = [
            graph.explain_edge(source, target) for graph in self._graphs if target in graph.neighbours(source)
        ]
        return "; ".join(reason for reason in reasons if reason)
