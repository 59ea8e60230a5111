"""The edges by which exact answers meet the triples of a question, for many answers at once.

The triples that bind the unknowns mostly form a tree, with the unknown that is asked for at its root. After
substitution every candidate of a term is part of a whole match then, so edges are followed from each answer outwards,
without joining anything. Along ``>>+`` the shortest path is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.triples.engine.candidates import is_member
from clew.triples.engine.edges import Edges
from clew.triples.linking.entities import MAX_RELATIONS

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph
    from clew.triples.engine.patterns import DirectedRelation
    from clew.triples.query.question import EdgePattern

#: Edges shown for a triple of an answer, and nodes of a term from which an answer's edges are followed.
SHOWN_EDGES, FOLLOWED_NODES = 3, 50

#: An edge as the graph has it: head, relation, tail.
Edge = tuple[int, str, int]


def find_answer_edges(
    graph: PropertyGraph,
    edges: Sequence[EdgePattern],
    candidates: Mapping[str, Rows | None],
    target: str,
    rows: Sequence[int],
) -> list[dict[EdgePattern, list[Edge]]] | None:
    """Return for each answer the first edges of each triple, of a repeated one the edges of a shortest path.

    ``candidates`` are those of the terms where the target is one of ``rows`` (None: every node). Returns None where
    the edges are no tree.
    """
    answers: list[dict[EdgePattern, list[Edge]]] = [{} for _ in rows]
    bound: dict[str, list[list[int]]] = {target: [[row] for row in rows]}
    waiting = list(edges)
    while waiting:
        edge = next((edge for edge in waiting if set(edge.ends) & bound.keys()), None)
        if edge is None:  # nothing joins this part to the answer
            term = waiting[0].head
            every = candidates.get(term)
            first = (
                range(min(graph.size, FOLLOWED_NODES)) if every is None else every[:FOLLOWED_NODES].tolist()
            )
            bound[term] = [list(first)] * len(rows)
            continue
        if set(edge.ends) <= bound.keys():
            return None
        waiting.remove(edge)
        from_head = edge.head in bound
        near, far = edge.ends if from_head else edge.ends[::-1]
        walk = edge.relations if from_head else tuple(directed.opposite for directed in edge.relations)
        starts = {node for nodes in bound[near] for node in nodes}
        steps = (_Paths if edge.repeated else _Steps)(graph, walk, starts, candidates.get(far))
        bound[far] = []
        for edges_of_answer, nodes in zip(answers, bound[near], strict=True):
            edges_of_answer[edge], reached = steps.follow(nodes)
            bound[far].append(reached)
    return answers


class _Steps:
    """Follows an edge by single steps, in the directions ``walk``, from nodes to candidates."""

    def __init__(
        self,
        graph: PropertyGraph,
        walk: Sequence[DirectedRelation],
        starts: Collection[int],
        candidates: Rows | None,
    ) -> None:
        self._nodes = np.array(sorted(starts), dtype=np.int64)
        ends = None if candidates is None else candidates.astype(np.int64)
        self._runs = [
            (relation, directed.inverse, *self._expand(graph, relation, directed.inverse, ends))
            for directed in walk
            for relation in _names(graph, directed, self._nodes)
        ]

    def _expand(
        self, graph: PropertyGraph, relation: str, inverse: bool, candidates: Rows | None
    ) -> tuple[Any, Any]:
        """Return the candidates at the other ends: offsets for each node, and the ends, ascending for each."""
        nodes = self._nodes
        if candidates is not None and _degree(graph, candidates, relation, not inverse) < _degree(
            graph, nodes, relation, inverse
        ):
            offsets, starts = graph.neighbours(candidates, relation, not inverse)
            ends = np.repeat(candidates, np.diff(offsets))
            is_start = is_member(starts, nodes)
            starts, ends = starts[is_start], ends[is_start]
            order = np.lexsort((ends, starts))
            return np.append(np.searchsorted(starts[order], nodes), len(order)), ends[order]
        offsets, ends = graph.neighbours(nodes, relation, inverse)
        if candidates is None:
            return offsets, ends
        is_candidate = is_member(ends, candidates)
        return np.append(0, np.cumsum(is_candidate))[offsets], ends[is_candidate]

    def follow(self, nodes: Sequence[int]) -> tuple[list[Edge], list[int]]:
        """Return the first edges from some of the nodes, and the nodes at their ends."""
        walked = list(islice(self._walk(nodes), FOLLOWED_NODES))
        edges = [edge for edge, _ in walked[:SHOWN_EDGES]]
        return edges, list(dict.fromkeys(end for _, end in walked))

    def _walk(self, nodes: Sequence[int]) -> Iterator[tuple[Edge, int]]:
        places = np.searchsorted(self._nodes, np.array(nodes, dtype=np.int64)).tolist()
        for relation, inverse, offsets, ends in self._runs:
            for node, place in zip(nodes, places, strict=True):
                for end in ends[offsets[place] : offsets[place + 1]][:FOLLOWED_NODES].tolist():
                    yield (end, relation, node) if inverse else (node, relation, end), end


class _Paths:
    """Follows an edge by one or more steps from nodes to the nearest candidates, by a search from these."""

    def __init__(
        self,
        graph: PropertyGraph,
        walk: Sequence[DirectedRelation],
        starts: Collection[int],
        candidates: Rows | None,
    ) -> None:
        self._is_end = np.zeros(graph.size, dtype=np.bool_)
        self._is_end[slice(None) if candidates is None else candidates] = True
        # The step from each node towards the nearest candidate: the node after it, and the edge.
        self._steps: dict[int, tuple[int, Edge]] = {}
        seen = np.zeros(graph.size, dtype=np.bool_)
        frontier = np.flatnonzero(self._is_end).astype(np.uint32)
        missing = set(starts)
        while len(frontier) and missing:
            reached: list[Any] = []
            for directed in walk:
                owners, nodes = Edges(graph, (directed.opposite,)).expand(frontier)
                is_new = ~seen[nodes]
                nodes, firsts = np.unique(nodes[is_new], return_index=True)
                seen[nodes] = True
                reached.append(nodes)
                relation = directed.relation or ""
                for node, after in zip(
                    nodes.tolist(), frontier[owners[is_new][firsts]].tolist(), strict=True
                ):
                    edge = (after, relation, node) if directed.inverse else (node, relation, after)
                    self._steps[node] = (after, edge)
            frontier = np.concatenate(reached)
            missing.difference_update(frontier.tolist())
            frontier = frontier[~self._is_end[frontier]]

    def follow(self, nodes: Sequence[int]) -> tuple[list[Edge], list[int]]:
        """Return the edges of a shortest path from one of the nodes, and its end."""
        paths = [path for node in nodes if (path := self._path(node))[0]]
        edges, end = min(paths, key=lambda path: len(path[0]), default=([], -1))
        return edges, [end] if edges else []

    def _path(self, node: int) -> tuple[list[Edge], int]:
        edges: list[Edge] = []
        while node in self._steps:
            node, edge = self._steps[node]
            edges.append(edge)
            if self._is_end[node]:
                break
        return edges, node


def _degree(graph: PropertyGraph, rows: Rows, relation: str, inverse: bool) -> float:
    adjacency = graph.adjacency(relation, inverse)
    if adjacency is None:
        return len(rows)
    starts, ends = adjacency.bounds(rows)
    return float((ends - starts).sum())


def _names(graph: PropertyGraph, directed: DirectedRelation, nodes: Rows) -> list[str]:
    if directed.relation is not None:
        return [directed.relation]
    return list(graph.relations()) if len(graph.relations()) <= MAX_RELATIONS else graph.relations_at(nodes)
