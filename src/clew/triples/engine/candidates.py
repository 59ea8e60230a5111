"""The candidates of one term. Those of a variable that nothing has narrowed yet are all nodes, and no array: only
what is looked at is tested for its type, as the note in Algorithm 3 has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.engine.predicates import PropertyTest, property_tests
from clew.triples.engine.row_sets import NO_ROWS, as_set, intersect, is_member, unique_rows

if TYPE_CHECKING:
    from clew.core.arrays import Mask
    from clew.core.protocols import PropertyGraph
    from clew.triples.engine.patterns import Constant, Pattern, Variable
    from clew.triples.engine.row_sets import RowSet

#: From this share of all rows looked up on, 1 in 2 to the power of it, a flag for every row is worth making.
_WORTH = 8
#: More rows that may answer are tested, not begun with.
_FEW = 4096


class Candidates:
    """The rows that a term can be; ``rows`` None: every one that its tests let through."""

    __slots__ = ("_flags", "_graph", "_tests", "_types", "dense", "rows", "version")

    def __init__(self, graph: PropertyGraph, dense: bool) -> None:
        self._graph, self.dense = graph, dense
        self._tests: list[Callable[[RowSet], Mask]] = []
        self._types: tuple[str, ...] = ()
        self._flags: Mask | None = None
        self.rows: RowSet | None = None
        self.version = 0

    def __len__(self) -> int:
        """How many there are, or at most are."""
        if self.rows is not None:
            return len(self.rows)
        if self._types:
            counts = self._graph.types()
            return min(self._graph.size, sum(counts.get(type, 0) for type in self._types))
        return self._graph.size

    @property
    def is_restricted(self) -> bool:
        """Whether not every node can be one."""
        return self.rows is not None or bool(self._tests)

    def add_test(self, holds: Callable[[RowSet], Mask]) -> None:
        """Let nothing through but what ``holds``."""
        self._tests.append(holds)

    def select(self, found: RowSet) -> RowSet:
        """Return those of a set that are candidates."""
        if self.rows is not None:
            if self.dense and self._flags is not None:
                return found[self._flags[found]]
            small, large = sorted((found, self.rows), key=len)
            if not self.dense or len(large) > len(small) << 3 or len(small) << _WORTH < self._graph.size:
                return intersect(small, large)
            flags = np.zeros(self._graph.size, dtype=np.bool_)
            flags[large] = True
            chosen: RowSet = small[flags[small]]
            return chosen
        for holds in self._tests:
            if len(found):
                found = found[holds(found)]
        return found

    def contains(self, others: RowSet) -> Mask:
        """Return which of some rows, in any order, are candidates."""
        if self.rows is None:
            if not self._tests:
                return np.ones(len(others), dtype=np.bool_)
            if not self.dense:  # a test may be a question to somebody
                return is_member(others, self.select(unique_rows(others, 0)))
            marks = self._tests[0](others)
            for holds in self._tests[1:]:
                marks = marks & holds(others)
            return marks
        if self._flags is None and self.dense and len(others) << _WORTH > self._graph.size:
            self._flags = np.zeros(self._graph.size, dtype=np.bool_)
            self._flags[self.rows] = True
        return is_member(others, self.rows) if self._flags is None else self._flags[others]

    def narrow_to(self, rows: RowSet) -> bool:
        """Take a set in place of what was there, which it is a part of; return whether that is less."""
        if self.rows is not None and len(rows) == len(self.rows):
            return False
        self.rows, self._flags = rows, None
        self.version += 1
        return True

    def materialise(self, base: RowSet | None = None) -> None:
        """Write down all candidates: those of ``base``, or of all nodes."""
        if self.rows is not None:
            return
        if base is None and self._types:
            every = [self._graph.rows_of_type(type) for type in self._types]
            base = as_set(every[0].astype(np.uint32) if len(every) == 1 else np.concatenate(every))
        if base is None:
            base = np.arange(self._graph.size, dtype=np.uint32)
        self.narrow_to(self.select(base))

    def restrict_to_types(self, types: Sequence[str]) -> None:
        """Let only nodes of one of some types through."""
        if not types:
            return
        self._types = tuple(types)
        graph = self._graph

        def typed(rows: RowSet) -> Mask:
            marks = graph.has_type(rows, types[0])  # type: ignore[arg-type]
            for type in types[1:]:
                marks = marks | graph.has_type(rows, type)  # type: ignore[arg-type]
            return marks

        self.add_test(typed)


def constant_candidates(graph: PropertyGraph, constant: Constant, dense: bool) -> Candidates:
    """Return the candidates of a constant."""
    made = Candidates(graph, dense)
    made.rows = as_set(np.array(constant.rows, dtype=np.uint32)) if constant.rows else NO_ROWS
    return made


def variable_candidates(
    graph: PropertyGraph, pattern: Pattern, variable: Variable, dense: bool
) -> Candidates:
    """Return the candidates of a variable: what it may be by itself."""
    made = Candidates(graph, dense)
    if variable.excluded:
        out = as_set(np.array(variable.excluded, dtype=np.uint32))
        made.add_test(
            (lambda rows: rows != out[0]) if len(out) == 1 else (lambda rows: ~is_member(rows, out))
        )
    made.restrict_to_types(variable.types)
    own: list[PropertyTest] = property_tests(
        graph, [one for one in pattern.predicates if one.variable == variable.name]
    )
    for one in own:
        made.add_test(one.holds)
    base = None if variable.rows is None else as_set(variable.rows)
    if pattern.answer_rows is not None and variable.name == pattern.target:
        answers = as_set(pattern.answer_rows)
        if base is None and ((dense and len(answers) > _FEW) or len(answers) << 1 > graph.size):
            # A type's worth of nodes: tested where a triple leads, not written down to begin with.
            made.add_test(lambda rows: is_member(rows, answers))
        else:
            base = answers if base is None else intersect(base, answers)
    if base is not None:
        made.materialise(base)
    return made
