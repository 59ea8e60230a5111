"""Triples of a graph as evidence: hits like any other, shown and quoted as passages are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.errors import NotFound
from clew.methods.chain.values import Candidate
from clew.protocols import PropertyGraph, Snapshot
from clew.types import TRIPLE, Entity, Hit, Node, Quote

if TYPE_CHECKING:
    from clew.protocols import Rows


def triple_hit(graph: str, head: Entity, relation: str, tail: str, tail_id: str = "", score: float = 1.0) -> Hit:
    """Return a triple as a hit. ``tail`` is its words; ``tail_id`` "" for the value of a property."""
    id = f"{head.id} >> {relation} >> {tail_id.removeprefix(f'{graph}:') or tail}"
    text = f"{head.name} >> {relation} >> {tail}"
    node = Node(id, TRIPLE, text, graph, graph, 0, None, relation, 0, None, (), (0, len(text)))
    return Hit(node, score, (id,))


def quote_triples(hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return the whole text of each triple as a quote: what it says, it says with all its words."""
    triples = (hit for hit in hits if hit.node.kind == TRIPLE)
    return tuple(Quote(hit.node.id, hit.node.text, (0, len(hit.node.text))) for hit in triples)


def source_passages(
    snapshot: Snapshot, graph: PropertyGraph, edge: tuple[int, str, int], score: float
) -> tuple[Hit, ...]:
    """Return the passages that an edge (head, relation, tail) was extracted from, where they are in this base."""
    found: list[Hit] = []
    statements = graph.edge_properties(*edge)
    for id in dict.fromkeys(str(one["passage"]) for one in statements if "passage" in one):
        try:
            (node,) = snapshot.nodes(snapshot.rows([id]))
        except NotFound:  # an extraction that somebody else made, of texts that are not here
            continue
        found.append(Hit(node, score, (id,)))
    return tuple(found)


#: Of so many values the passages are looked up that they were extracted from.
_SAID = 20


@dataclass(frozen=True, slots=True)
class ReachedNodes:
    """The nodes of a graph that one relation leads to from others: all values of an unknown, without their names.

    ``rows`` and ``heads`` are rows of the graph, ascending; ``before`` is how the heads were reached, None where they
    are what a constant of the chain stands for. ``inverse``: the relation was followed from its tails. ``snapshot``
    is where the passages are that a triple was extracted from.
    """

    snapshot: Snapshot
    graph: PropertyGraph
    rows: Rows
    relation: str
    inverse: bool
    heads: Rows
    score: float
    previous: ReachedNodes | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def roots(self) -> Rows:
        """The rows that constants of the chain stand for, from which these were reached."""
        return self.heads if self.previous is None else self.previous.roots

    def candidates(self, most: int) -> tuple[Candidate, ...]:
        """Return the first ``most`` values by id, each with the triples that lead to it, the first hop first."""
        rows = self.rows[:most]
        paths = self._paths(rows)
        return tuple(
            Candidate(one.name, self.score, hits, quote_triples(hits), one.id)
            for one, hits in zip(self.graph.entities(rows), paths, strict=True)
        )

    def _paths(self, rows: Rows) -> list[tuple[Hit, ...]]:
        """Return for each row the triples of one path that leads to it; of several heads the first by id."""
        offsets, near = self.graph.neighbours(rows, self.relation, not self.inverse)
        heads = np.array(
            [
                self._first(near[start:end])
                for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        before = [()] * len(rows) if self.previous is None else self.previous._paths(heads)
        ends = zip(self.graph.entities(heads), self.graph.entities(rows), strict=True)
        said = [
            self._said(*pair) if place < _SAID else ()
            for place, pair in enumerate(zip(heads.tolist(), rows.tolist(), strict=True))
        ]
        return [
            (*path, self._fact(*pair), *passages)
            for path, pair, passages in zip(before, ends, said, strict=True)
        ]

    def _said(self, source: int, target: int) -> tuple[Hit, ...]:
        """Return the passages that a triple was extracted from."""
        head, tail = (target, source) if self.inverse else (source, target)
        return source_passages(self.snapshot, self.graph, (head, self.relation, tail), self.score)

    def _first(self, near: Rows) -> int:
        return int(near[np.isin(near, self.heads)][0])

    def _fact(self, source: Entity, target: Entity) -> Hit:
        head, tail = (target, source) if self.inverse else (source, target)
        return triple_hit(self.graph.name, head, self.relation, tail.name, tail.id, self.score)
