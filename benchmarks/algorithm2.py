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
        one = list(
            range(graph.size)
        ).__getitem__  # every number once, or 20 million edges do not fit into memory
        for relation in relations:
            for inverse in (False, True):
                offsets, others = graph.neighbours(every, relation, inverse)
                listed, ends = list(map(one, others.tolist())), offsets.tolist()
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
        found: dict[str, set[int]] = {}

        def narrow(name: str, rows: set[int]) -> bool:
            if name in found:
                before = len(found[name])
                found[name] = found[name] & rows
                return len(found[name]) != before
            found[name] = rows - without[name]
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
                    if head in found:
                        changed |= narrow(
                            tail, nothing.union(*(out[one] for one in found[head] if one in out))
                        )
                    if tail in found:
                        changed |= narrow(
                            head, nothing.union(*(back[one] for one in found[tail] if one in back))
                        )
                    if head not in found and tail not in found:
                        changed |= narrow(head, set(out))
        return found[pattern.target]


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
        found = {constant.name: np.array([constant.rows[0]]) for constant in pattern.constants}
        left = list(pattern.triples)
        while left:
            whole = [one for one in left if one.head in found and one.tail in found]
            if whole:
                keep = self._holds(whole[0], found)
                found = {name: rows[keep] for name, rows in found.items()}
                left.remove(whole[0])
                continue
            joined = [one for one in left if one.head in found or one.tail in found]
            one = min(joined, key=lambda one: int(np.subtract(*self._ranges(one, found)[::-1]).sum()))
            found = self._extended(one, found)
            left.remove(one)
        return set(found[pattern.target].tolist())

    def _holds(self, one: TypedTriple, found: dict[str, np.ndarray]) -> np.ndarray:
        keys = self._keys[str(one.relations[0].relation), False]
        head, tail = np.broadcast_arrays(found[one.head], found[one.tail])
        wanted = head << 32 | tail
        holds: np.ndarray = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return holds

    def _ranges(self, one: TypedTriple, found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return where the edges of each match begin and end."""
        known = one.tail if one.tail in found else one.head
        keys, rows = self._keys[str(one.relations[0].relation), known == one.tail], found[known]
        return np.searchsorted(keys, rows << 32), np.searchsorted(keys, rows + 1 << 32)

    def _extended(self, one: TypedTriple, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every match with every edge of it at a triple's known end."""
        known, new = (one.tail, one.head) if one.tail in found else (one.head, one.tail)
        first, last = self._ranges(one, found)
        sizes = last - first
        owners = np.repeat(np.arange(len(first)), sizes)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[owners]
        added = self._keys[str(one.relations[0].relation), known == one.tail][places] & 0xFFFFFFFF
        return {name: rows[owners] for name, rows in found.items()} | {new: added}
