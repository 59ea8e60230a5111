"""Predicates on properties, over whole columns where the graph has them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import fold_name, parse_number, scalar_text
from clew.triples.engine.row_sets import run_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask
    from clew.core.protocols import PropertyColumn, PropertyGraph
    from clew.triples.engine.patterns import Predicate
    from clew.triples.engine.row_sets import RowSet

_BLANK, _NINE = ord(" "), ord("9")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ORDER: dict[str, Any] = {
    "=": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class PropertyTest:
    """One predicate on one graph."""

    graph: PropertyGraph
    predicate: Predicate

    def holds(self, rows: RowSet) -> Mask:
        """Return which rows of a set it holds for, (n,)."""
        column = self.graph.property_values(self.predicate.property)
        found = self._asked(rows) if column is None else self._looked_up(column, rows)
        return ~found if self.predicate.negated else found

    def _looked_up(self, column: PropertyColumn, rows: RowSet) -> Mask:
        if not len(column.rows):
            return np.zeros(len(rows), dtype=np.bool_)
        starts = column.rows.searchsorted(rows)
        sizes = column.rows.searchsorted(rows, side="right") - starts
        offsets = run_offsets(sizes)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        owners = np.repeat(np.arange(len(rows)), sizes)
        found = np.zeros(len(rows), dtype=np.bool_)
        found[owners[self._values(column, places)]] = True
        return found

    def _values(self, column: PropertyColumn, places: NDArray[np.int64]) -> Mask:
        """Return which of a column's values pass."""
        if self._on_numbers:
            numbers = column.numbers[places]
            return self._compared(numbers, _days(column, places, numbers) if self._by_year else None)
        wanted = np.frombuffer(fold_name(scalar_text(self.predicate.value)).encode(), dtype=np.uint8)
        starts, ends = column.starts[places], column.starts[places + 1]
        if self.predicate.test == "=":
            equal: Mask = _begins(column.texts, starts, ends, wanted) & (ends - starts == len(wanted))
            return equal
        return _contains(column.texts, starts, ends, wanted, whole=self.predicate.test == "says")

    @property
    def _on_numbers(self) -> bool:
        """Whether the predicate is on numbers, not on texts."""
        test = self.predicate.test
        return test not in ("contains", "says") and (
            test != "=" or not math.isnan(parse_number(self.predicate.value))
        )

    @property
    def _by_year(self) -> bool:
        return _is_year(self.predicate.value) or _is_year(self.predicate.high)

    def _compared(self, numbers: Floats, days: Mask | None) -> Mask:
        """Return which numbers pass; what is no number passes no comparison. Those of ``days`` are days, and against
        a day a bare year is the whole year: "after 1990" is after its last day, "until 1990" includes it."""
        asked = self.predicate
        years = numbers if days is None else np.where(days, np.floor(numbers), numbers)

        def held(test: str, value: Any) -> Mask:
            mask: Mask = _ORDER[test](years if _is_year(value) else numbers, parse_number(value))
            return mask

        if asked.test == "between":
            return held(">=", asked.value) & held("<=", asked.high)
        return held(asked.test, asked.value)

    def _asked(self, rows: RowSet) -> Mask:
        """Read the nodes themselves, where a graph has no columns."""
        entities = self.graph.entities(rows.astype(np.int64))
        found = np.zeros(len(rows), dtype=np.bool_)
        for place, entity in enumerate(entities):
            given = entity.properties.get(self.predicate.property, ())
            found[place] = any(self.match_values(given if isinstance(given, tuple) else (given,)))
        return found

    def match_values(self, values: Sequence[Any]) -> list[bool]:
        """Return which of some values it holds for, whether or not it is negated."""
        if self._on_numbers:
            numbers = np.array([parse_number(one) for one in values], dtype=np.float64)
            days = np.array([_is_day(one) for one in values], dtype=np.bool_)
            return [bool(one) for one in self._compared(numbers, days)]
        wanted = fold_name(scalar_text(self.predicate.value))
        texts = [fold_name(scalar_text(one)) for one in values]
        if self.predicate.test == "=":
            return [wanted == one for one in texts]
        if self.predicate.test == "says":
            return [f" {wanted} " in f" {one} " for one in texts]
        return [wanted in one for one in texts]


def property_tests(graph: PropertyGraph, predicates: Sequence[Predicate]) -> list[PropertyTest]:
    """Return the tests of some predicates."""
    return [PropertyTest(graph, one) for one in predicates]


def _is_day(value: object) -> bool:
    return isinstance(value, str) and _DAY.match(value.strip()) is not None


def _is_year(value: object) -> bool:
    """Return whether a value that is asked for is a whole number, which may be a year."""
    return not _is_day(value) and parse_number(value) % 1 == 0


def _days(column: PropertyColumn, places: NDArray[np.int64], numbers: Floats) -> Mask:
    """Return which of a column's values, of these numbers, are days but the first of a year, which is as its year."""
    found = np.zeros(len(places), dtype=np.bool_)
    parted = np.flatnonzero(numbers > np.floor(numbers))
    starts = column.starts[places[parted]]
    long = column.starts[places[parted] + 1] - starts >= len("1990 05 04")
    parted, starts = parted[long], starts[long]
    # "1990-05-04" is kept as "1990 05 04", a number as "1990 5".
    month = (column.texts[starts + 5] <= _NINE) & (column.texts[starts + 6] <= _NINE)
    found[parted] = (column.texts[starts + 4] == _BLANK) & (column.texts[starts + 7] == _BLANK) & month
    return found


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
    offsets = run_offsets((ends - starts)[order])
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
