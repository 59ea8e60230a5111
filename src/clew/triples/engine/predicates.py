"""Tests of properties, over whole columns where the graph has them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import Floats, Mask, run_offsets
from clew.core.text import fold_name, parse_number, scalar_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.protocols import PropertyColumn, PropertyGraph
    from clew.triples.engine.candidates import RowSet
    from clew.triples.engine.patterns import Predicate

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
    """A predicate on the nodes of one graph."""

    graph: PropertyGraph
    predicate: Predicate

    def holds(self, rows: RowSet) -> Mask:
        """Return for each row of a set whether the predicate holds, (rows,)."""
        column = self.graph.property_values(self.predicate.property)
        matches = self._match_entities(rows) if column is None else self._match_column(column, rows)
        return ~matches if self.predicate.negated else matches

    def match_values(self, values: Sequence[Any]) -> list[bool]:
        """Return for each value whether it passes the test, not regarding ``negated``."""
        if self.is_numeric:
            numbers = np.array([parse_number(value) for value in values], dtype=np.float64)
            days = np.array([is_day(value) for value in values], dtype=np.bool_)
            return [bool(passes) for passes in self.compare(numbers, days)]
        wanted = fold_name(scalar_text(self.predicate.value))
        texts = [fold_name(scalar_text(value)) for value in values]
        if self.predicate.test == "=":
            return [wanted == text for text in texts]
        if self.predicate.test == "says":
            return [f" {wanted} " in f" {text} " for text in texts]
        return [wanted in text for text in texts]

    def _match_entities(self, rows: RowSet) -> Mask:
        """Read the nodes themselves: the graph has no column for the property."""
        matches = np.zeros(len(rows), dtype=np.bool_)
        for place, entity in enumerate(self.graph.entities(rows.astype(np.int64))):
            value = entity.properties.get(self.predicate.property, ())
            matches[place] = any(self.match_values(value if isinstance(value, tuple) else (value,)))
        return matches

    def _match_column(self, column: PropertyColumn, rows: RowSet) -> Mask:
        if not len(column.rows):
            return np.zeros(len(rows), dtype=np.bool_)
        starts = column.rows.searchsorted(rows)
        sizes = column.rows.searchsorted(rows, side="right") - starts
        offsets = run_offsets(sizes)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        owners = np.repeat(np.arange(len(rows)), sizes)
        matches = np.zeros(len(rows), dtype=np.bool_)
        matches[owners[self._match_places(column, places)]] = True
        return matches

    def _match_places(self, column: PropertyColumn, places: NDArray[np.int64]) -> Mask:
        """Return which of a column's values, by their places in it, pass the test."""
        predicate = self.predicate
        if self.is_numeric:
            numbers = column.numbers[places]
            by_year = may_be_year(predicate.value) or may_be_year(predicate.high)
            return self.compare(numbers, _days(column, places, numbers) if by_year else None)
        wanted = np.frombuffer(fold_name(scalar_text(predicate.value)).encode(), dtype=np.uint8)
        starts, ends = column.starts[places], column.starts[places + 1]
        if predicate.test == "=":
            equal: Mask = _begins(column.texts, starts, ends, wanted) & (ends - starts == len(wanted))
            return equal
        return _contains(column.texts, starts, ends, wanted, whole_words=predicate.test == "says")

    @property
    def is_numeric(self) -> bool:
        """Whether the test compares numbers and not texts."""
        test = self.predicate.test
        return test not in ("contains", "says") and (
            test != "=" or not math.isnan(parse_number(self.predicate.value))
        )

    def compare(self, numbers: Floats, days: Mask | None) -> Mask:
        """Return which numbers pass; NaN passes no comparison.

        ``days`` marks the numbers that are days. Against a day, a bare year is the whole year: "after 1990" is after
        its last day, "until 1990" includes it.
        """
        predicate = self.predicate
        years = numbers if days is None else np.where(days, np.floor(numbers), numbers)

        def passes(test: str, value: Any) -> Mask:
            mask: Mask = _ORDER[test](years if may_be_year(value) else numbers, parse_number(value))
            return mask

        if predicate.test == "between":
            return passes(">=", predicate.value) & passes("<=", predicate.high)
        return passes(predicate.test, predicate.value)


def is_day(value: object) -> bool:
    """Return whether a value is a day, written as ``1990-05-04``."""
    return isinstance(value, str) and _DAY.match(value.strip()) is not None


def may_be_year(value: object) -> bool:
    """Return whether a value of a predicate is a whole number, which may be a year."""
    return not is_day(value) and parse_number(value) % 1 == 0


def _days(column: PropertyColumn, places: NDArray[np.int64], numbers: Floats) -> Mask:
    """Return which values of a column are days; 1 January is excluded, because it has the same number as its year."""
    days = np.zeros(len(places), dtype=np.bool_)
    fractional = np.flatnonzero(numbers > np.floor(numbers))
    starts = column.starts[places[fractional]]
    long = column.starts[places[fractional] + 1] - starts >= len("1990 05 04")
    fractional, starts = fractional[long], starts[long]
    # The text of "1990-05-04" is folded to "1990 05 04", that of a number to "1990 5".
    month = (column.texts[starts + 5] <= _NINE) & (column.texts[starts + 6] <= _NINE)
    days[fractional] = (column.texts[starts + 4] == _BLANK) & (column.texts[starts + 7] == _BLANK) & month
    return days


def _begins(
    texts: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], wanted: NDArray[np.uint8]
) -> Mask:
    """Return which texts begin with the wanted bytes, compared byte by byte over all texts that still agree."""
    begins = ends - starts >= len(wanted)
    agreeing = np.flatnonzero(begins)
    for place, byte in enumerate(wanted.tolist()):
        same = texts[starts[agreeing] + place] == byte
        begins[agreeing[~same]] = False
        agreeing = agreeing[same]
    return begins


def _contains(
    texts: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    wanted: NDArray[np.uint8],
    whole_words: bool,
) -> Mask:
    """Return which texts have the wanted bytes somewhere, or as ``whole_words`` between blanks."""
    if not len(wanted):
        return np.ones(len(starts), dtype=np.bool_)
    order = np.argsort(starts)
    offsets = run_offsets((ends - starts)[order])
    sizes = np.diff(offsets)
    positions = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], sizes)
    room = np.repeat(ends[order], sizes) - positions - len(wanted)
    possible = room >= 0
    if whole_words:
        at_start = positions == np.repeat(starts[order], sizes)
        possible &= at_start | (texts[np.maximum(positions - 1, 0)] == _BLANK)
        possible &= (room == 0) | (texts[np.minimum(positions + len(wanted), len(texts) - 1)] == _BLANK)
    matching = positions[possible]
    for place, byte in enumerate(wanted.tolist()):
        matching = matching[texts[matching + place] == byte]
    # Both ascend, so a text contains a match if one lies between its start and its end.
    contains = np.zeros(len(starts), dtype=np.bool_)
    contains[order] = matching.searchsorted(starts[order]) < matching.searchsorted(ends[order])
    return contains
