"""What the engine of ``focus`` is compared with: Algorithm 2 of 4StepFocus on Python sets, and a join of tables.

:class:`Algorithm2` is the corrected algorithm as the paper has it: adjacency as dictionaries of sets, ``substitute``
lazily all nodes (the note in Algorithm 3), lines 2 to 21 repeated until no set changes, unions by
``set().union(*...)``. It gets its constants as nodes, as the engine does.

:class:`Tables` finds every assignment of a pattern's terms, and shares no code with the engine: a table of matches is
joined with one triple's table of edges after the other, by binary search in the sorted edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from clew.core.protocols import PropertyGraph
from clew.triples.engine.patterns import Pattern, TypedTriple


class Algorithm2:
    """Algorithm 2, lines 14 and 19 put right, on dictionaries of Python sets."""

    def __init__(self, graph: PropertyGraph, relations: Iterable[str]) -> None:
        self.neighbours: dict[tuple[str, bool], dict[int, set[int]]] = {}
        every = np.arange(graph.size)
        item = list(
            range(graph.size)
        ).__getitem__  # every number once, or 20 million edges do not fit into memory
        for relation in relations:
            for inverse in (False, True):
                offsets, others = graph.neighbours(every, relation, inverse)
                listed, ends = list(map(item, others.tolist())), offsets.tolist()
                self.neighbours[relation, inverse] = {
                    row: set(listed[start:end])
                    for row, (start, end) in enumerate(pairwise(ends))
                    if end > start
                }

    def substitute(self, pattern: Pattern) -> set[int]:
        """Return the rows of the target."""
        nothing: set[int] = set()
        constants = {constant.name: constant.rows[0] for constant in pattern.constants}
        without = {variable.name: set(variable.excluded) for variable in pattern.variables}
        triples = [
            (
                triple.head,
                self.neighbours[str(triple.relations[0].relation), False],
                self.neighbours[str(triple.relations[0].relation), True],
                triple.tail,
            )
            if not triple.relations[0].inverse
            else (
                triple.head,
                self.neighbours[str(triple.relations[0].relation), True],
                self.neighbours[str(triple.relations[0].relation), False],
                triple.tail,
            )
            for triple in pattern.triples
        ]
        results: dict[str, set[int]] = {}

        def narrow(name: str, rows: set[int]) -> bool:
            if name in results:
                before = len(results[name])
                results[name] = results[name] & rows
                return len(results[name]) != before
            results[name] = rows - without[name]
            return True

        changed = True
        while changed:
            changed = False
            for head, out, back, tail in triples:
                if head in constants:
                    changed |= narrow(tail, out.get(constants[head], nothing))
                elif tail in constants:
                    changed |= narrow(head, back.get(constants[tail], nothing))
                else:
                    # An unrestricted side is every node; its neighbours are all that has an edge.
                    if head in results:
                        changed |= narrow(
                            tail, nothing.union(*(out[item] for item in results[head] if item in out))
                        )
                    if tail in results:
                        changed |= narrow(
                            head, nothing.union(*(back[item] for item in results[tail] if item in back))
                        )
                    if head not in results and tail not in results:
                        changed |= narrow(head, set(out))
        return results[pattern.target]


class Tables:
    """All edges of each relation as (head, tail), packed and ascending, and as (tail, head)."""

    def __init__(self, graph: PropertyGraph, relations: Iterable[str]) -> None:
        every = np.arange(graph.size)
        self._keys: dict[tuple[str, bool], np.ndarray] = {}
        for relation in relations:
            offsets, tails = graph.neighbours(every, relation)
            heads = np.repeat(every, np.diff(offsets))
            self._keys[relation, False] = np.sort(heads << 32 | tails)
            self._keys[relation, True] = np.sort(tails << 32 | heads)

    def answers(self, pattern: Pattern) -> set[int]:
        """Return the rows of the target over all assignments of rows to terms of which every triple holds."""
        matches = {constant.name: np.array([constant.rows[0]]) for constant in pattern.constants}
        left = list(pattern.triples)
        while left:
            whole = [value for value in left if value.head in matches and value.tail in matches]
            if whole:
                keep = self._holds(whole[0], matches)
                matches = {name: rows[keep] for name, rows in matches.items()}
                left.remove(whole[0])
                continue
            joined = [value for value in left if value.head in matches or value.tail in matches]
            item = min(joined, key=lambda value: int(np.subtract(*self._ranges(value, matches)[::-1]).sum()))
            matches = self._extended(item, matches)
            left.remove(item)
        return set(matches[pattern.target].tolist())

    def _holds(self, item: TypedTriple, found: dict[str, np.ndarray]) -> np.ndarray:
        keys = self._keys[str(item.relations[0].relation), False]
        head, tail = np.broadcast_arrays(found[item.head], found[item.tail])
        wanted = head << 32 | tail
        holds: np.ndarray = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return holds

    def _ranges(self, item: TypedTriple, found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return where the edges of each match begin and end."""
        known = item.tail if item.tail in found else item.head
        keys, rows = self._keys[str(item.relations[0].relation), known == item.tail], found[known]
        return np.searchsorted(keys, rows << 32), np.searchsorted(keys, rows + 1 << 32)

    def _extended(self, item: TypedTriple, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every match with every edge of it at a triple's known end."""
        known, new = (item.tail, item.head) if item.tail in found else (item.head, item.tail)
        first, last = self._ranges(item, found)
        sizes = last - first
        owners = np.repeat(np.arange(len(first)), sizes)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[owners]
        added = self._keys[str(item.relations[0].relation), known == item.tail][places] & 0xFFFFFFFF
        return {name: rows[owners] for name, rows in found.items()} | {new: added}
