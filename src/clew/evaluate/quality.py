"""How good a graph of passages is for a question (KGP paper, Section 3.3, Figure 5; Figure 9), and how large.

The neighbours of a question's seed passages are what a walk can reach in one hop. SF-EM asks whether they and the
seeds hold every piece of gold evidence, precision how many of them hold any: as a graph grows denser the first
rises and the second falls, and the better graph is the one whose curve lies higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from clew.evaluate.corpora import GoldEvidence
from clew.graph.passages import passage_rows
from clew.graph.statistics import compute_statistics

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.protocols import Graph, Retriever, Snapshot

#: Seeds by TF-IDF, as many as the paper's traverser has (Supplementary 8.2).
SEED_COUNT = 10


@dataclass(frozen=True, slots=True)
class GraphQuality:
    """One graph over one question's corpus of ``documents`` with ``passages`` of ``words`` words (means: Tables 2
    and 4). ``neighbours`` counts those of a node on average, ``reached`` the
    seeds and their neighbours together; ``sf_em``, ``coverage`` and ``precision`` are of these."""

    documents: int
    passages: int
    words: float
    edges: int
    density: float
    neighbours: float
    reached: int
    sf_em: float
    coverage: float
    precision: float


def measure_graph_quality(
    example: Example, snapshot: Snapshot, graph: Graph, seeding: Retriever, seeds: int = SEED_COUNT
) -> GraphQuality:
    """Return the quality of ``graph`` for a question that has gold evidence."""
    from clew.types import Question

    hits = seeding.retrieve(Question(example.question), seeds)
    start = snapshot.rows([hit.node.id for hit in hits])
    near = [graph.neighbours(int(row)) for row in start]
    reached = np.unique(np.concatenate([start, *near])) if len(start) else start
    gold = GoldEvidence(example)
    held = [gold.matching_pieces(node) for node in snapshot.nodes(reached)]
    found = frozenset[int]().union(*held)
    wanted = len(example.pieces)
    size = compute_statistics(snapshot, graph)
    return GraphQuality(
        len(snapshot.documents()),
        size.nodes,
        mean_passage_words(snapshot),
        size.edges,
        size.density,
        size.mean_degree,
        len(reached),
        float(len(found) == wanted),
        len(found) / wanted,
        sum(map(bool, held)) / len(held) if held else 0.0,
    )


def mean_passage_words(snapshot: Snapshot) -> float:
    """Return the mean number of indexed words of passages and table rows, 0 where there are none."""
    rows = passage_rows(snapshot)
    return float(snapshot.postings("text").lengths(rows).mean()) if len(rows) else 0.0


def average_quality(measured: Sequence[GraphQuality]) -> dict[str, float]:
    """Return the means over questions, as the paper's tables and figures give them."""
    return {one.name: float(np.mean([getattr(of, one.name) for of in measured])) for one in fields(GraphQuality)}
