"""A table's own arithmetic: totals that add up, columns of changes and totals that follow from those beside them.

A row that is called a total is compared with sums of the rows above it: back to the start of its group, subtotals in
place of their parts. A column that is called a change, a percentage of change or a total is compared with what the
columns beside it give, row by row. Where that holds for the columns a place further left or right, and not for those
that the header names, the header is shifted. pdfplumber, Camelot and other extractors check nothing of the kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.cell_values import read_cell
from clew.core.types import Table

Numbers = NDArray[np.float64]
Outcome = Literal["adds up", "partly", "unknown"]

#: A total has at most so many rows above it that may be its parts.
_MAX_PARTS = 60
#: A column is confirmed if its arithmetic holds in this share of at least so many rows, and contradicted if it holds
#: in no more than that share of them.
_CONFIRMED, _CONTRADICTED, _MIN_ROWS = 0.8, 0.2, 3
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_CHANGE = re.compile(
    r"\b(?:change|variance|difference|growth|increase|decrease|versus|vs|over)\b|\bincr?\.", re.IGNORECASE
)
_TOTAL_COLUMN = re.compile(r"^(?:total|totals|consolidated|total company)$", re.IGNORECASE)
#: Columns whose numbers are not added up.
_NO_SUM = re.compile(
    r"%|\b(?:percent\w*|rates?|average|yield|margin|price|ratio|life|years?\)|per)\b", re.IGNORECASE
)
_LESS = re.compile(r"^\W*less\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TotalCheck:
    """A row of a total: its number, the first of the rows that add up to it (None where none do), and the columns in
    which they do and do not. ``misplaced``: where they do not, the number stands a column further left or right."""

    row: int
    start: int | None
    agreeing: tuple[int, ...] = ()
    other: tuple[int, ...] = ()
    misplaced: bool = False

    @property
    def outcome(self) -> Outcome:
        """``adds up`` in all columns, ``partly`` in some, or ``unknown``."""
        if not self.agreeing:
            return "unknown"
        return "partly" if self.other else "adds up"


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """A column of changes or totals: its number, the columns that it follows from by its header, the rows in which it
    does (``agreeing`` of ``rows``), and whether it does so for columns further left or right instead."""

    column: int
    sources: tuple[int, ...]
    agreeing: int
    rows: int
    shifted: bool = False

    @property
    def is_confirmed(self) -> bool:
        """Whether the header is right by its own arithmetic."""
        return self.agreeing >= _CONFIRMED * self.rows


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a table's own arithmetic says of it."""

    totals: tuple[TotalCheck, ...] = ()
    columns: tuple[ColumnCheck, ...] = field(default=())

    @property
    def contradicts_headers(self) -> bool:
        """Whether a number stands under another header than that under which it adds up."""
        return any(total.misplaced for total in self.totals) or any(column.shifted for column in self.columns)


def check_arithmetic(table: Table) -> Arithmetic:
    """Return the checks of a table whose columns and row places are known."""
    if len(table.rows) < 2 or len(table.columns) < 2 or len(table.rows) > 500:
        return Arithmetic()
    cells = [[read_cell(cell) for cell in row] for row in table.rows]
    numbers = np.array(
        [
            [np.nan if cell.number is None else cell.number if cell.text else np.nan for cell in row]
            for row in cells
        ]
    )
    is_dash = np.array([[cell.kind == "empty" and bool(cell.text) for cell in row] for row in cells])
    filled = np.where(is_dash, 0.0, numbers)
    filled[:, 0] = np.nan
    decimals = np.array([[_decimals(cell.text) for cell in row] for row in cells])
    is_sum = np.array(
        [column.unit != "%" and not _NO_SUM.search(" ".join(column.path)) for column in table.columns]
    )
    is_percent = np.array([[cell.unit == "%" for cell in row] for row in cells])
    amounts = np.where(is_percent | ~is_sum[None, :], np.nan, filled)
    return Arithmetic(
        _check_totals(table, amounts, decimals), _check_columns(table, filled, is_percent, decimals)
    )


def _decimals(text: str) -> int:
    return len(re.sub(r"\D", "", text.partition(".")[2]))


def _check_totals(table: Table, numbers: Numbers, decimals: NDArray[np.int64]) -> tuple[TotalCheck, ...]:
    signs = np.array([-1.0 if _LESS.match(row[0]) else 1.0 for row in table.rows])
    signed = np.where(signs[:, None] < 0, -np.abs(numbers), numbers)
    starts: dict[int, int] = {}
    checks: list[TotalCheck] = []
    for row, place in enumerate(table.row_places):
        if place.kind != "total":
            continue
        columns = np.flatnonzero(~np.isnan(numbers[row]))
        if not columns.size:
            continue
        check = _check_total(row, columns, numbers, signed, decimals, starts)
        if check.start is not None:
            starts[row] = check.start
        checks.append(check)
    return tuple(checks)


def _check_total(
    row: int,
    columns: NDArray[np.int64],
    numbers: Numbers,
    signed: Numbers,
    decimals: NDArray[np.int64],
    starts: dict[int, int],
) -> TotalCheck:
    """Return the check of one total: the start of the rows above it that add up to it in most columns."""
    whole = numbers[row, columns]
    best: tuple[int, int | None, NDArray[np.bool_], Numbers] = (0, None, np.zeros(len(columns), bool), whole)
    sums, parts = np.zeros(len(columns)), np.zeros(len(columns), dtype=np.int64)
    place = row - 1
    while place >= max(0, row - _MAX_PARTS):
        values = signed[place, columns]
        has_value = ~np.isnan(values)
        sums = sums + np.where(has_value, values, 0.0)
        parts = parts + has_value
        start = starts.get(place, place)
        unit = 10.0 ** -decimals[row, columns]
        # Each part is rounded; of many parts the errors rarely all go one way.
        tolerance = 0.51 * unit * np.minimum(parts, 4)
        agrees = (parts > 1) & (np.abs(sums - whole) <= tolerance) & (whole != 0)
        if agrees.sum() > best[0]:
            best = (int(agrees.sum()), start, agrees, sums)
            if agrees.all():
                break
        place = start - 1
    count, first, agrees, sums = best
    others = (whole != 0) & ~agrees
    misplaced = _is_misplaced(whole, sums, others)
    # One column of several may add up by chance.
    if first is None or (count < 2 and others.any() and not misplaced):
        return TotalCheck(row, None)
    return TotalCheck(row, first, tuple(columns[agrees].tolist()), tuple(columns[others].tolist()), misplaced)


def _is_misplaced(whole: Numbers, sums: Numbers, others: NDArray[np.bool_]) -> bool:
    """Return whether each number that does not add up is the sum of a neighbouring column, and not of its own."""
    for place in np.flatnonzero(others):
        neighbours = [n for n in (place - 1, place + 1) if 0 <= n < len(whole)]
        if not any(abs(sums[n] - whole[place]) < 1e-9 and sums[n] != sums[place] for n in neighbours):
            return False
    return bool(others.any())


def _check_columns(
    table: Table, numbers: Numbers, is_percent: NDArray[np.bool_], decimals: NDArray[np.int64]
) -> tuple[ColumnCheck, ...]:
    paths = [" ".join(column.path) for column in table.columns]
    checks: list[ColumnCheck] = []
    for column, path in enumerate(paths):
        if not column or not path:
            continue
        if _CHANGE.search(path):
            percents = is_percent[:, column] | ("%" in path or "percent" in path.lower())
            check = _check_change(column, paths, numbers, percents, decimals)
        elif _TOTAL_COLUMN.match(table.columns[column].path[-1].strip()):
            check = _check_total_column(column, table, numbers, decimals)
        else:
            check = None
        if check is not None:
            checks.append(check)
    return tuple(checks)


def _check_change(
    column: int,
    paths: Sequence[str],
    numbers: Numbers,
    is_percent: NDArray[np.bool_],
    decimals: NDArray[np.int64],
) -> ColumnCheck | None:
    """Return the check of a change: by the columns of the two years that it names, else by the two nearest columns
    of years to its left."""
    years = {
        n: sorted(set(_YEAR.findall(paths[n]))) for n in range(1, column) if not _CHANGE.search(paths[n])
    }
    plain = [n for n, named in years.items() if len(named) == 1]
    asked = list(dict.fromkeys(_YEAR.findall(paths[column])))
    if len(asked) == 2:
        plain = [next((n for n in reversed(plain) if year in years[n]), 0) for year in asked]
    if len(plain) != 2 or not all(plain):
        return None  # without its years, a change of more than two columns may be that of any
    first, second = sorted(plain)
    rows, agreeing = _count_changes(column, first, second, numbers, is_percent, decimals)
    if rows < _MIN_ROWS:
        return None
    shifted = False
    for step in (-1, 1) if agreeing <= _CONTRADICTED * rows else ():
        pair = (first + step, second + step)
        if min(pair) >= 1 and max(pair) < numbers.shape[1] and column not in pair:
            other_rows, others = _count_changes(column, *pair, numbers, is_percent, decimals)
            shifted = shifted or (other_rows >= _MIN_ROWS and others >= _CONFIRMED * other_rows)
    newer, older = sorted((first, second), key=lambda n: years[n], reverse=True)
    swapped = years[newer] != years[older] and _is_swapped(
        numbers[:, newer], numbers[:, older], np.where(is_percent, numbers[:, column], np.nan)
    )
    return ColumnCheck(column, (first, second), agreeing, rows, shifted or swapped)


def _is_swapped(newer: Numbers, older: Numbers, percents: Numbers) -> bool:
    """Return whether percentages of change are those from the newer column to the older one, in at least three rows
    that tell the two ways apart."""
    with np.errstate(divide="ignore", invalid="ignore"):
        forward, backward = 100 * (newer - older) / np.abs(older), 100 * (older - newer) / np.abs(newer)
        off, back = np.abs(np.abs(forward) - np.abs(percents)), np.abs(np.abs(backward) - np.abs(percents))
    tells = np.isfinite(off) & np.isfinite(back) & (np.abs(off - back) > 2.0)
    right, wrong = int((tells & (off < 1.1)).sum()), int((tells & (back < 1.1)).sum())
    return wrong >= _MIN_ROWS and wrong >= _CONFIRMED * int(tells.sum()) and right <= _CONTRADICTED * wrong


def _count_changes(
    column: int,
    first: int,
    second: int,
    numbers: Numbers,
    is_percent: NDArray[np.bool_],
    decimals: NDArray[np.int64],
) -> tuple[int, int]:
    """Return in how many rows a change can be computed from two columns, and in how many it is what is printed: as an
    amount, or as a percentage of either."""
    a, b, change = numbers[:, first], numbers[:, second], np.abs(numbers[:, column])
    unit = 10.0 ** -decimals[:, column]
    usable = ~np.isnan(a) & ~np.isnan(b) & ~np.isnan(change) & (change != 0)
    # Numbers of one digit are too coarse for a percentage of change.
    smallest = np.minimum(np.abs(a), np.abs(b))
    usable &= ~is_percent | (smallest >= 10)
    amount = np.abs(np.abs(a - b) - change) <= 1.01 * unit
    with np.errstate(divide="ignore", invalid="ignore"):
        percents = np.stack([100 * np.abs((a - b) / b), 100 * np.abs((a - b) / a)])
        percent = np.nanmin(np.nan_to_num(np.abs(percents - change), nan=np.inf), axis=0)
    fits = (amount & ~is_percent) | ((smallest > 0) & (percent <= 0.6 * unit + 0.02 * change))
    return int(usable.sum()), int((usable & fits).sum())


def _check_total_column(
    column: int, table: Table, numbers: Numbers, decimals: NDArray[np.int64]
) -> ColumnCheck | None:
    """Return the check of a column of totals by those columns under the same names, left of it or right of it, that
    add up to it in most rows."""
    group = table.columns[column].path[:-1]
    own = [n for n in range(1, numbers.shape[1]) if table.columns[n].path[: len(group)] == group]
    left, right = [n for n in own if n < column], [n for n in own if n > column]
    runs = [left[start:] for start in range(len(left) - 1)]
    runs += [right[:end] for end in range(2, len(right) + 1)]
    best: ColumnCheck | None = None
    for parts in runs:
        # In how many rows a column and at least two of its parts have numbers, and in how many they add up.
        values, whole = numbers[:, parts], numbers[:, column]
        usable = ~np.isnan(whole) & ((~np.isnan(values)).sum(axis=1) > 1) & (whole != 0)
        tolerance = 0.51 * 10.0 ** -decimals[:, column] * min(len(parts), 4)
        fits = np.abs(np.nansum(values, axis=1) - whole) <= tolerance
        rows, agreeing = int(usable.sum()), int((usable & fits).sum())
        if rows >= _MIN_ROWS and (best is None or agreeing > best.agreeing):
            best = ColumnCheck(column, tuple(parts), agreeing, rows)
    return best
