"""The candidates of one term, and the operations on the sets of rows that they are.

A set of rows is an ascending uint32 array without repetition. The candidates of a variable that nothing has narrowed
yet are all nodes, and are not listed: only the rows that are looked at are tested for their type, as the note in
Algorithm 3 (line 2) of 4StepFocus has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Mask, Number, distinct, is_member, sorted_unique
from clew.core.protocols import PropertyGraph
from clew.triples.engine.patterns import Constant, Pattern, Variable
from clew.triples.engine.predicates import PropertyTest

RowSet = NDArray[np.uint32]


NO_ROWS: RowSet = np.empty(0, dtype=np.uint32)
#: Rows are put in order by a flag for each row of the graph instead of by sorting where they are at least 1 in so
#: many.
_FLAGGED = 16
#: A flag for every row of the graph is worth making to look up at least 1 / 2**this of all rows.
_FLAG_SHIFT = 8
#: More answer rows than this are tested where a triple leads, not listed to begin with.
_LISTED_ANSWERS = 4096


def as_set(rows: Any) -> RowSet:
    """Return ``rows``, in any order and perhaps repeated, as a set."""
    array = np.asarray(rows)
    if array.dtype == np.uint32 and (len(array) < 2 or bool((array[1:] > array[:-1]).all())):
        return array
    ordered: RowSet = sorted_unique(array).astype(np.uint32)
    return ordered


def unique_rows(rows: NDArray[Number], size: int) -> NDArray[Number]:
    """Return ``rows``, in any order, as a set; ``size`` is the number of rows in the graph, 0 if unknown."""
    if size and len(rows) * _FLAGGED > size:
        flags = np.zeros(size, dtype=np.bool_)
        flags[rows] = True
        return np.flatnonzero(flags).astype(rows.dtype)
    return distinct(rows)


def intersect(left: RowSet, right: RowSet) -> RowSet:
    """Return the intersection of two sets."""
    small, large = (left, right) if len(left) <= len(right) else (right, left)
    return small[is_member(small, large)]


def union(sets: Sequence[RowSet], size: int) -> RowSet:
    """Return the union of sets; ``size`` as for :func:`unique_rows`."""
    return sets[0] if len(sets) == 1 else unique_rows(np.concatenate(sets), size)


def count_per_run(flags: Mask, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many flags are set in each run, (runs,)."""
    sums = np.empty(len(flags) + 1, dtype=np.int64)
    sums[0] = 0
    flags.cumsum(out=sums[1:])
    ends = sums.take(offsets)
    counts: NDArray[np.int64] = ends[1:] - ends[:-1]
    return counts


class Candidates:
    """The rows that a term can be; ``rows`` None: every row that passes its tests.

    ``dense``: the graph is in memory, so that flags for all its rows may be made. ``version`` changes with ``rows``.
    """

    __slots__ = ("_flags", "_graph", "_tests", "_types", "dense", "rows", "version")

    def __init__(self, graph: PropertyGraph, dense: bool) -> None:
        self._graph, self.dense = graph, dense
        self._tests: list[Callable[[RowSet], Mask]] = []
        self._types: tuple[str, ...] = ()
        self._flags: Mask | None = None
        self.rows: RowSet | None = None
        self.version = 0

    def __len__(self) -> int:
        """How many candidates there are; an upper bound where they are not listed."""
        if self.rows is not None:
            return len(self.rows)
        if self._types:
            counts = self._graph.types()
            return min(self._graph.size, sum(counts.get(type, 0) for type in self._types))
        return self._graph.size

    @property
    def is_restricted(self) -> bool:
        """Whether some node may be no candidate."""
        return self.rows is not None or bool(self._tests)

    def add_test(self, passes: Callable[[RowSet], Mask]) -> None:
        """Keep only rows that pass a test. To be called before the candidates are listed."""
        self._tests.append(passes)

    def select(self, rows: RowSet) -> RowSet:
        """Return the rows of a set that are candidates."""
        if self.rows is None:
            for passes in self._tests:
                if len(rows):
                    rows = rows[passes(rows)]
            return rows
        if self.dense and self._flags is not None:
            return rows[self._flags[rows]]
        small, large = sorted((rows, self.rows), key=len)
        if not self.dense or len(large) > len(small) << 3 or len(small) << _FLAG_SHIFT < self._graph.size:
            return intersect(small, large)
        flags = np.zeros(self._graph.size, dtype=np.bool_)
        flags[large] = True
        common: RowSet = small[flags[small]]
        return common

    def contains(self, rows: RowSet) -> Mask:
        """Return for each row, in any order, whether it is a candidate, (rows,)."""
        if self.rows is None:
            if not self._tests:
                return np.ones(len(rows), dtype=np.bool_)
            if not self.dense:  # a test may be a query to another machine
                return is_member(rows, self.select(unique_rows(rows, 0)))
            passed = self._tests[0](rows)
            for passes in self._tests[1:]:
                passed = passed & passes(rows)
            return passed
        if self._flags is None and self.dense and len(rows) << _FLAG_SHIFT > self._graph.size:
            self._flags = np.zeros(self._graph.size, dtype=np.bool_)
            self._flags[self.rows] = True
        return is_member(rows, self.rows) if self._flags is None else self._flags[rows]

    def narrow_to(self, rows: RowSet) -> bool:
        """Replace the candidates by a subset of them; return whether it is smaller."""
        if self.rows is not None and len(rows) == len(self.rows):
            return False
        self.rows, self._flags = rows, None
        self.version += 1
        return True

    def materialise(self, base: RowSet | None = None) -> None:
        """List all candidates: those among ``base``, by default among all nodes. Does nothing if they are listed."""
        if self.rows is not None:
            return
        if base is None and self._types:
            of_types = [self._graph.rows_of_type(type) for type in self._types]
            base = as_set(of_types[0].astype(np.uint32) if len(of_types) == 1 else np.concatenate(of_types))
        if base is None:
            base = np.arange(self._graph.size, dtype=np.uint32)
        self.narrow_to(self.select(base))

    def restrict_to_types(self, types: Sequence[str]) -> None:
        """Keep only nodes of one of ``types``; empty: of any."""
        if not types:
            return
        self._types = tuple(types)
        graph = self._graph

        def has_type(rows: RowSet) -> Mask:
            passed = graph.has_type(rows, types[0])  # type: ignore[arg-type]
            for type in types[1:]:
                passed = passed | graph.has_type(rows, type)  # type: ignore[arg-type]
            return passed

        self.add_test(has_type)


def constant_candidates(graph: PropertyGraph, constant: Constant, dense: bool) -> Candidates:
    """Return the candidates of a constant."""
    candidates = Candidates(graph, dense)
    candidates.rows = as_set(np.array(constant.rows, dtype=np.uint32)) if constant.rows else NO_ROWS
    return candidates


def variable_candidates(
    graph: PropertyGraph, pattern: Pattern, variable: Variable, dense: bool
) -> Candidates:
    """Return the candidates of a variable before any triple narrows them: by its types, rows and predicates."""
    candidates = Candidates(graph, dense)
    if variable.excluded:
        excluded = as_set(np.array(variable.excluded, dtype=np.uint32))
        if len(excluded) == 1:
            candidates.add_test(lambda rows: rows != excluded[0])
        else:
            candidates.add_test(lambda rows: ~is_member(rows, excluded))
    candidates.restrict_to_types(variable.types)
    for predicate in pattern.predicates:
        if predicate.variable == variable.name:
            candidates.add_test(PropertyTest(graph, predicate).holds)
    base = None if variable.rows is None else as_set(variable.rows)
    if pattern.answer_rows is not None and variable.name == pattern.target:
        answers = as_set(pattern.answer_rows)
        listed = base is not None or (
            len(answers) << 1 <= graph.size and not (dense and len(answers) > _LISTED_ANSWERS)
        )
        if listed:
            base = answers if base is None else intersect(base, answers)
        else:
            candidates.add_test(lambda rows: is_member(rows, answers))
    if base is not None:
        candidates.materialise(base)
    return candidates
