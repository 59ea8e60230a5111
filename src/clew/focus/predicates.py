"""Predicates on properties, over whole columns where the graph has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.focus.sets import offsets_of
from clew.text import folded_name, number_of, said

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.focus.patterns import Predicate
    from clew.focus.sets import Set
    from clew.protocols import Column, Floats, Mask, PropertyGraph

_BLANK = ord(" ")
_ORDER: dict[str, Any] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Test:
    """One predicate on one graph."""

    graph: PropertyGraph
    predicate: Predicate

    def holds(self, rows: Set) -> Mask:
        """Return which rows of a set it holds for, (n,)."""
        column = self.graph.column(self.predicate.property)
        found = self._asked(rows) if column is None else self._looked_up(column, rows)
        return ~found if self.predicate.negated else found

    def _looked_up(self, column: Column, rows: Set) -> Mask:
        if not len(column.rows):
            return np.zeros(len(rows), dtype=np.bool_)
        starts = column.rows.searchsorted(rows)
        sizes = column.rows.searchsorted(rows, side="right") - starts
        offsets = offsets_of(sizes)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        owners = np.repeat(np.arange(len(rows)), sizes)
        found = np.zeros(len(rows), dtype=np.bool_)
        found[owners[self._values(column, places)]] = True
        return found

    def _values(self, column: Column, places: NDArray[np.int64]) -> Mask:
        """Return which of a column's values pass."""
        if (numbers := self._numbers(column.numbers[places])) is not None:
            return numbers
        wanted = np.frombuffer(folded_name(said(self.predicate.value)).encode(), dtype=np.uint8)
        starts, ends = column.starts[places], column.starts[places + 1]
        if self.predicate.test == "=":
            equal: Mask = _begins(column.texts, starts, ends, wanted) & (ends - starts == len(wanted))
            return equal
        return _contains(column.texts, starts, ends, wanted, whole=self.predicate.test == "says")

    def _numbers(self, numbers: Floats) -> Mask | None:
        """Return which numbers pass; None for a predicate on texts. What is no number passes no comparison."""
        asked = self.predicate
        value = number_of(asked.value)
        if asked.test == "between":
            inside: Mask = (numbers >= value) & (numbers <= number_of(asked.high))
            return inside
        if asked.test in _ORDER:
            compared: Mask = _ORDER[asked.test](numbers, value)
            return compared
        if asked.test in ("contains", "says") or math.isnan(value):
            return None
        equal: Mask = numbers == value
        return equal

    def _asked(self, rows: Set) -> Mask:
        """Read the nodes themselves, where a graph has no columns."""
        entities = self.graph.entities(rows.astype(np.int64))
        found = np.zeros(len(rows), dtype=np.bool_)
        for place, entity in enumerate(entities):
            given = entity.properties.get(self.predicate.property, ())
            found[place] = any(self.passing(given if isinstance(given, tuple) else (given,)))
        return found

    def passing(self, values: Sequence[Any]) -> list[bool]:
        """Return which of some values it holds for, whether or not it is negated."""
        numbers = self._numbers(np.array([number_of(one) for one in values], dtype=np.float64))
        if numbers is not None:
            return [bool(one) for one in numbers]
        wanted = folded_name(said(self.predicate.value))
        texts = [folded_name(said(one)) for one in values]
        if self.predicate.test == "=":
            return [wanted == one for one in texts]
        if self.predicate.test == "says":
            return [f" {wanted} " in f" {one} " for one in texts]
        return [wanted in one for one in texts]


def tests(graph: PropertyGraph, predicates: Sequence[Predicate]) -> list[Test]:
    """Return the tests of some predicates."""
    return [Test(graph, one) for one in predicates]


def _begins(
    texts: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], wanted: NDArray[np.uint8]
) -> Mask:
    """Return which of some texts begin with the wanted bytes, compared byte after byte over all that still agree."""
    found = ends - starts >= len(wanted)
    left = np.flatnonzero(found)
    for place, byte in enumerate(wanted.tolist()):
        same = texts[starts[left] + place] == byte
        found[left[~same]] = False
        left = left[same]
    return found


def _contains(
    texts: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    wanted: NDArray[np.uint8],
    whole: bool = False,
) -> Mask:
    """Return which of some texts have the wanted bytes somewhere; as ``whole`` words, which blanks divide."""
    if not len(wanted):
        return np.ones(len(starts), dtype=np.bool_)
    order = np.argsort(starts)
    offsets = offsets_of((ends - starts)[order])
    sizes = np.diff(offsets)
    at = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], sizes)
    room = np.repeat(ends[order], sizes) - at - len(wanted)
    fits = room >= 0
    if whole:
        first = at == np.repeat(starts[order], sizes)
        fits &= first | (texts[np.maximum(at - 1, 0)] == _BLANK)
        fits &= (room == 0) | (texts[np.minimum(at + len(wanted), len(texts) - 1)] == _BLANK)
    left = at[fits]
    for place, byte in enumerate(wanted.tolist()):
        left = left[texts[left + place] == byte]
    # Both ascend: a text has a match where one lies between its beginning and its end.
    found = np.zeros(len(starts), dtype=np.bool_)
    found[order] = left.searchsorted(starts[order]) < left.searchsorted(ends[order])
    return found
