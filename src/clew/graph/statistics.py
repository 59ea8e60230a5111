"""How large and how dense a graph is (the columns of the paper's Tables 2 and 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.protocols import Graph, Snapshot
from clew.graph.passages import passage_rows

if TYPE_CHECKING:
    from clew.core.arrays import Rows

#: Up to this many passages every neighbourhood is looked at.
EXACT_BELOW = 5_000


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """``edges`` are distinct and undirected; ``density`` is their share of all pairs of ``nodes``.

    ``mean_degree`` is the mean number of neighbours as the graph gives them, ``isolated`` the number of nodes
    without any. ``sampled`` is the number of nodes whose neighbourhoods were looked at; where it is less than
    ``nodes``, the other figures are estimates.
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

    Exact for at most :data:`EXACT_BELOW` nodes. For more, ``sample`` nodes are drawn without replacement with
    ``seed`` and the count is scaled up. An edge that only one of its ends gives (KNN) counts once: a pair
    weighs a half for each end that gives it, and the other half where the other end does not.
    """
    rows = passage_rows(snapshot)
    count = len(rows)
    chosen = rows
    if count > EXACT_BELOW and sample < count:
        chosen = np.sort(np.random.default_rng(seed).choice(rows, sample, replace=False))
    if not len(chosen):
        return GraphStatistics(graph.name, 0, 0, 0.0, 0.0, 0, 0)
    is_node = np.zeros(snapshot.size, dtype=np.bool_)
    is_node[rows] = True
    degrees, ends, alone = 0, 0, 0
    for row in chosen.tolist():
        near = graph.neighbours(row)
        near = near[is_node[near]]
        degrees += len(near)
        alone += not len(near)
        ends += len(near) + _one_sided(graph, row, near)
    scale = count / len(chosen)
    edges, isolated = round(ends / 2 * scale), round(alone * scale)
    pairs = count * (count - 1) / 2
    density = edges / pairs if pairs else 0.0
    return GraphStatistics(graph.name, count, edges, density, degrees / len(chosen), isolated, len(chosen))


def _one_sided(graph: Graph, row: int, near: Rows) -> int:
    """Return how many of ``near`` do not have ``row`` as a neighbour."""
    if graph.mutual:
        return 0
    return sum(row not in graph.neighbours(int(other)) for other in near)
