"""The size and density of a passage graph (the columns of Tables 2 and 4 of the KGP paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.protocols import Graph, Snapshot
from clew.graph.passages import passage_rows

if TYPE_CHECKING:
    from clew.core.arrays import Rows

#: Up to this many passages, every neighbourhood is counted.
EXACT_BELOW = 5_000


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """The size and density of the graph named ``graph``.

    ``edges`` counts distinct undirected edges, and ``density`` is their share of all pairs of ``nodes``.
    ``mean_degree`` is the mean number of neighbours of a node, and ``isolated`` the number of nodes without any.
    ``sampled`` is the number of nodes whose neighbourhoods were counted; where it is less than ``nodes``, the other
    figures are estimates.
    """

    graph: str
    nodes: int
    edges: int
    density: float
    mean_degree: float
    isolated: int
    sampled: int


def compute_statistics(
    snapshot: Snapshot, graph: Graph, sample: int = 2_000, seed: int = 0
) -> GraphStatistics:
    """Count a graph's edges between passages and table rows, one neighbourhood at a time.

    The result is exact for at most :data:`EXACT_BELOW` nodes. Of more, ``sample`` nodes are drawn without replacement
    with ``seed`` and the count is scaled up. A directed edge (KNN) counts once: a pair counts a half for each end
    that has the other as its neighbour, and another half where only one end has.
    """
    rows = passage_rows(snapshot)
    count = len(rows)
    sampled = rows
    if count > EXACT_BELOW and sample < count:
        sampled = np.sort(np.random.default_rng(seed).choice(rows, sample, replace=False))
    if not len(sampled):
        return GraphStatistics(graph.name, 0, 0, 0.0, 0.0, 0, 0)
    is_node = np.zeros(snapshot.size, dtype=np.bool_)
    is_node[rows] = True
    degrees, ends, lonely = 0, 0, 0
    for row in sampled.tolist():
        near = graph.neighbours(row)
        near = near[is_node[near]]
        degrees += len(near)
        lonely += not len(near)
        ends += len(near) + _count_one_sided(graph, row, near)
    scale = count / len(sampled)
    edges, isolated = round(ends / 2 * scale), round(lonely * scale)
    pairs = count * (count - 1) / 2
    density = edges / pairs if pairs else 0.0
    return GraphStatistics(graph.name, count, edges, density, degrees / len(sampled), isolated, len(sampled))


def _count_one_sided(graph: Graph, row: int, near: Rows) -> int:
    """Return how many of the neighbours ``near`` do not have ``row`` as their neighbour."""
    if graph.mutual:
        return 0
    return sum(row not in graph.neighbours(int(other)) for other in near)
