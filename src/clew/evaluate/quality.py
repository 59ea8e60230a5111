"""How good a graph of passages is for a question (KGP paper, Section 3.3, Figure 5; Figure 9).

The neighbours of a question's seed passages are what a walk can reach in one hop. SF-EM asks whether they and the
seeds hold every piece of gold evidence, precision how many of them hold any: as a graph grows denser the first
rises and the second falls, and the better graph is the one whose curve lies higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.evaluate.corpora import Gold
from clew.graph.statistics import statistics

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.protocols import Graph, Retriever, Snapshot

#: Seeds by TF-IDF, as many as the paper's traverser has (Supplementary 8.2).
SEEDS = 10


@dataclass(frozen=True, slots=True)
class Quality:
    """One graph over one question's corpus. ``neighbours`` counts those of a node on average, ``reached`` the
    seeds and their neighbours together; ``sf_em``, ``coverage`` and ``precision`` are of these."""

    passages: int
    edges: int
    density: float
    neighbours: float
    reached: int
    sf_em: float
    coverage: float
    precision: float


def quality(
    example: Example, snapshot: Snapshot, graph: Graph, seeding: Retriever, seeds: int = SEEDS
) -> Quality:
    """Return the quality of ``graph`` for a question that has gold evidence."""
    from clew.types import Question

    hits = seeding.retrieve(Question(example.question), seeds)
    start = snapshot.rows([hit.node.id for hit in hits])
    near = [graph.neighbours(int(row)) for row in start]
    reached = np.unique(np.concatenate([start, *near])) if len(start) else start
    gold = Gold(example)
    held = [gold.held(node) for node in snapshot.nodes(reached)]
    found = frozenset[int]().union(*held)
    wanted = len(example.pieces)
    size = statistics(snapshot, graph)
    return Quality(
        size.nodes,
        size.edges,
        size.density,
        size.mean_degree,
        len(reached),
        float(len(found) == wanted),
        len(found) / wanted,
        sum(map(bool, held)) / len(held) if held else 0.0,
    )


def averaged(measured: Sequence[Quality]) -> dict[str, float]:
    """Return the means over questions, as the paper's tables and figures give them."""
    names = ("passages", "edges", "density", "neighbours", "reached", "sf_em", "coverage", "precision")
    return {name: float(np.mean([getattr(one, name) for one in measured])) for name in names}
