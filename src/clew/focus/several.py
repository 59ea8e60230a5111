"""Many questions at once: those of one form share every look at the edges (:mod:`clew.focus.pairs`).

:func:`substitute_all` takes patterns as :func:`clew.focus.substitute` does and finds out which differ in the rows of
their terms alone (an evaluation). :func:`substitute_rows` takes one pattern and a column of rows for its constants,
and gives the answers as arrays: nothing is made for each question, which is what a table of a million names needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.errors import UsageError, unknown_name_error
from clew.focus.pairs import ROW, PairFixpoint, are_trees, paired
from clew.focus.patterns import Constant, Pattern
from clew.focus.sets import run_offsets
from clew.focus.substitution import Substitution, substitute
from clew.rows import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from clew.focus.pairs import Pairs
    from clew.protocols import PropertyGraph, Rows

#: Questions that are taken together at most: a bound on memory.
TOGETHER = 512


@dataclass(frozen=True, slots=True, eq=False)
class SubstitutedRows:
    """The answers of many questions: those of the n-th are ``rows[offsets[n]:offsets[n + 1]]``, ascending, exact."""

    offsets: NDArray[np.int64]
    rows: Rows

    def __len__(self) -> int:
        """How many questions there were."""
        return len(self.offsets) - 1

    def of(self, question: int) -> Rows:
        """Return the rows of the target for one question, counted from 0."""
        return self.rows[self.offsets[question] : self.offsets[question + 1]]


def substitute_rows(
    graph: PropertyGraph,
    pattern: Pattern,
    constants: Mapping[str, Rows],
    without: Mapping[str, Rows] | None = None,
) -> SubstitutedRows:
    """Return the rows of the target for many questions that differ in their constants alone.

    ``constants`` has a row for each question, (n,), by the name of a constant of the pattern, which stands in place
    of that constant's own rows; -1: no such node, so no answer. ``without`` has a row for each question, (n,), that
    a variable is not, besides what its own ``without`` says; -1: none. Everything else is the pattern's, the same
    for all. Where its triples form trees, each with a constant, and none counts, the questions are taken together;
    else one by one. Raises UsageError for columns of different lengths, for names that are no constant or variable
    of the pattern, and where nothing restricts the target.
    """
    columns = _checked(pattern, constants, without or {})
    number = len(next(iter(columns[0].values())))
    if graph.adjacency(None) is None or not are_trees(pattern):
        return _joined([_one(graph, pattern, columns, n) for n in range(number)])
    parts = []
    for first in range(0, number, TOGETHER):
        given, out = (
            {name: rows[first : first + TOGETHER] for name, rows in some.items()} for some in columns
        )
        parts.append(_together(graph, pattern, given, out, min(TOGETHER, number - first)))
    if len(parts) == 1:
        return SubstitutedRows(run_offsets(parts[0][0]), parts[0][1])
    nothing = np.empty(0, dtype=np.int64)
    sizes = np.concatenate([nothing, *(sizes for sizes, _ in parts)])
    return SubstitutedRows(run_offsets(sizes), np.concatenate([nothing, *(rows for _, rows in parts)]))


def _checked(
    pattern: Pattern, constants: Mapping[str, Rows], without: Mapping[str, Rows]
) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """Return the columns as arrays. Raises UsageError."""
    if not constants:
        raise UsageError("no column of constants", "One pattern alone: substitute(graph, pattern)")
    for kind, given, known in (
        ("constant", constants, [one.name for one in pattern.constants]),
        ("variable", without, [one.name for one in pattern.variables]),
    ):
        for name in given:
            if name not in known:
                raise unknown_name_error(kind, name, known)
    made = tuple(
        {name: np.asarray(rows, dtype=np.int64) for name, rows in given.items()}
        for given in (constants, without)
    )
    if len({rows.shape for some in made for rows in some.values()}) > 1 or any(
        rows.ndim != 1 for rows in made[0].values()
    ):
        raise UsageError("columns of different lengths", "One row for each question in every column")
    return made[0], made[1]


def _one(
    graph: PropertyGraph, pattern: Pattern, columns: tuple[dict[str, Rows], dict[str, Rows]], number: int
) -> Rows:
    """Return the answers of one of the questions."""
    rows = {name: int(column[number]) for name, column in columns[0].items()}
    out = {name: int(column[number]) for name, column in columns[1].items() if column[number] >= 0}
    asked = replace(
        pattern,
        constants=tuple(
            Constant(one.name, (rows[one.name],) if rows[one.name] >= 0 else ()) if one.name in rows else one
            for one in pattern.constants
        ),
        variables=tuple(
            replace(one, excluded=(*one.excluded, out[one.name])) if one.name in out else one
            for one in pattern.variables
        ),
    )
    found = substitute(graph, asked).rows
    if found is None:
        raise UsageError(f"nothing restricts {pattern.target}", "Every node would answer every question")
    return found


def _joined(answers: Sequence[Rows]) -> SubstitutedRows:
    sizes = np.fromiter(map(len, answers), dtype=np.int64, count=len(answers))
    return SubstitutedRows(run_offsets(sizes), np.concatenate([np.empty(0, dtype=np.int64), *answers]))


def _together(
    graph: PropertyGraph, pattern: Pattern, given: dict[str, Rows], out: dict[str, Rows], number: int
) -> tuple[NDArray[np.int64], Rows]:
    """Return how many answers each of some questions has, and these, one after the other."""
    questions = np.arange(number)
    sets = {}
    for one in pattern.constants:
        if one.name in given:
            rows = given[one.name]
            there = rows >= 0
            known = bool(there.all())
            sets[one.name] = paired(rows if known else rows[there], questions if known else questions[there])
        else:
            rows = sorted_unique(one.rows)
            sets[one.name] = paired(np.tile(rows, number), np.repeat(questions, len(rows)))
    state = PairFixpoint(
        graph, pattern, sets, {name: (rows, None) for name, rows in out.items()}, whole=False
    )
    state.run()
    offsets, there = state.offsets(number)
    pairs, at = state.sets[pattern.target], offsets[pattern.target]
    sizes = at[1:] - at[:-1]
    if not there.all():
        pairs = pairs[there.repeat(sizes)]
        sizes = np.where(there, sizes, 0)
    return sizes, pairs & ROW


def substitute_all(graph: PropertyGraph, patterns: Sequence[Pattern]) -> list[Substitution]:
    """Return for each pattern what :func:`clew.focus.substitute` does; ``seconds`` is its share of those taken
    together."""
    found: list[Substitution | None] = [None] * len(patterns)
    groups: dict[Hashable, list[int]] = {}
    for number, pattern in enumerate(patterns):
        groups.setdefault(_form(pattern), []).append(number)
    arrays = graph.adjacency(None) is not None
    for numbers in groups.values():
        several = arrays and len(numbers) > 1 and _comparable(patterns[numbers[0]])
        for first in range(0, len(numbers), TOGETHER if several else 1):
            some = numbers[first : first + TOGETHER] if several else [numbers[first]]
            asked = [patterns[n] for n in some]
            made = _solved(graph, asked) if several else [substitute(graph, asked[0])]
            for number, one in zip(some, made, strict=True):
                found[number] = one
    return [one for one in found if one is not None]


def _form(pattern: Pattern) -> Hashable:
    """Return what patterns have in common that are taken together: all but the rows of their terms. Of strings, whose
    hash is remembered."""
    if pattern.predicates or pattern.answer_rows is not None:
        return id(pattern)
    parts: list[Hashable] = [pattern.target]
    for variable in pattern.variables:
        parts += variable.name, variable.types, variable.rows is None
    for constant in pattern.constants:
        parts.append(constant.name)
    for triple in pattern.triples:
        parts += triple.head, triple.tail, triple.quantifier
        for way in triple.relations:
            parts += way.relation, way.inverse
    return tuple(parts)


def _comparable(pattern: Pattern) -> bool:
    """Return whether patterns of this one's form can be taken together."""
    if pattern.predicates or pattern.answer_rows is not None:
        return False
    return are_trees(pattern, [one.name for one in pattern.variables if one.rows is not None])


class _Sets(Mapping[str, "Rows"]):
    """The sets of one pattern of several: slices of theirs, made when they are asked for."""

    __slots__ = ("_every", "_number")

    def __init__(self, every: Mapping[str, tuple[Rows, Rows]], number: int) -> None:
        self._every, self._number = every, number

    def __getitem__(self, name: str) -> Rows:
        rows, offsets = self._every[name]
        return rows[offsets[self._number] : offsets[self._number + 1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)


def _solved(graph: PropertyGraph, patterns: Sequence[Pattern]) -> list[Substitution]:
    """Return what the terms of patterns of one form can be."""
    started = time.perf_counter()
    form, number = patterns[0], len(patterns)
    sets = {
        one.name: _pairs([of.constants[place].rows for of in patterns])
        for place, one in enumerate(form.constants)
    }
    out = {}
    for place, one in enumerate(form.variables):
        if any(of.variables[place].excluded for of in patterns):
            out[one.name] = None, _pairs([of.variables[place].excluded for of in patterns])
        if one.rows is not None:
            sets[one.name] = _pairs([of.variables[place].rows for of in patterns])
    bare = replace(form, variables=tuple(replace(one, rows=None, excluded=()) for one in form.variables))
    state = PairFixpoint(graph, bare, sets, out, whole=True)
    state.run()
    offsets, there = state.offsets(number)
    every = {name: (pairs & ROW, offsets[name]) for name, pairs in state.sets.items()}
    nothing = dict.fromkeys(every, np.empty(0, dtype=np.int64))
    share = (time.perf_counter() - started) / number
    return [
        Substitution(form.target, _Sets(every, n) if holds else nothing, state.rounds, share)
        for n, holds in enumerate(there.tolist())
    ]


def _pairs(rows: Sequence[Any]) -> Pairs:
    """Return the pairs of some rows for each pattern."""
    sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    every = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(sizes.sum()))
    return paired(every, np.repeat(np.arange(len(rows)), sizes))
