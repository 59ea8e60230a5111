"""Queries over one table: what a plain question asks of it, computed with numpy, and written as SQL.

``clew sql`` gives the same result for the SQL of a query; the two are compared in the tests.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clew.parse.data_tables import MOST_DECIMALS, DataTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask

Aggregate = Literal["count", "distinct", "sum", "average", "median", "maximum", "minimum", "share", "values"]
Operator = Literal["=", "<>", ">", ">=", "<", "<=", "month", "empty", "filled", "above", "below"]
#: The operators that bound a number or a day from one side.
BOUNDING: tuple[Operator, ...] = (">", "<", ">=", "<=")
#: In place of a column: the heading of the group of rows that a row stands in.
GROUP = -1

#: Conditions of a table whose rows are remembered.
_REMEMBERED = 256
_FUNCTIONS = {"sum": "sum", "average": "avg", "median": "median", "maximum": "max", "minimum": "min"}
_COMPUTE: Mapping[str, Callable[[Floats], np.floating[Any]]] = {
    "sum": np.sum, "average": np.mean, "median": np.median, "maximum": np.max, "minimum": np.min
}  # fmt: skip
_ACROSS = {"above": operator.gt, "below": operator.lt}
_COMPARE = {"=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the rows: one of ``values`` (for ``<>`` none of them), a bound, a month (1 to 12) of a day, or
    that the cell is empty or filled, or that it is ``above`` or ``below`` the cell of another column of its row,
    whose place is the value.

    Values of a text column are cells as they are spelled. ``column`` may be :data:`GROUP`.
    """

    column: int
    operator: Operator
    values: tuple[str | float | date, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns whose cells it needs."""
        return (self.column, self.other) if self.operator in _ACROSS else (self.column,)

    @property
    def other(self) -> int:
        """The column that the cell is compared with."""
        (column,) = self.values
        assert isinstance(column, int)
        return column


@dataclass(frozen=True, slots=True)
class TableQuery:
    """What is asked of a table.

    ``aggregate`` is computed of ``column`` (None for a count of rows) over the rows that meet all ``conditions``, for
    each value of ``group`` where that is given. ``values`` are the cells of ``column``, with the cell of ``group``
    beside each. ``share`` is the percentage of the rows, or of the sum of ``column``, that also meets ``part``. Rows
    of totals count only for cells ``with_totals``. ``descending`` sorts by what is computed, ``limit`` cuts, and
    ``offset`` passes over as many before: the second highest is the first behind one.
    """

    table: DataTable
    aggregate: Aggregate
    column: int | None = None
    conditions: tuple[Condition, ...] = ()
    group: int | None = None
    part: tuple[Condition, ...] = ()
    descending: bool | None = None
    limit: int | None = None
    offset: int = 0
    with_totals: bool = False

    @property
    def cut(self) -> slice:
        """Which of the sorted rows are the result."""
        return slice(self.offset, None if self.limit is None else self.offset + self.limit)

    @property
    def sql(self) -> str:
        """The query in SQL, as ``clew sql`` takes it."""
        return self.select(self._sql_value())

    def select(self, value: str) -> str:
        """Return the query in SQL with another ``value`` in SQL in place of what is computed."""
        columns = self.table.columns
        group = "" if self.group is None else quote_name(columns[self.group].name)
        wheres = [self._sql_condition(condition) for condition in self.conditions]
        if not self.with_totals and any(row.is_total for row in self.table.rows):
            wheres.append("not _total")
        text = f"select {f'{group}, ' if group else ''}{value} from {quote_name(self.table.name)}"
        text += f" where {' and '.join(wheres)}" if wheres else ""
        text += f" group by {group}" if group and self.aggregate != "values" else ""
        if self.descending is not None:
            text += f" order by {value} {'desc' if self.descending else 'asc'} nulls last"
        text += f" limit {self.limit}" if self.limit else ""
        return text + (f" offset {self.offset}" if self.offset else "")

    def _sql_value(self) -> str:
        name = "" if self.column is None else quote_name(self.table.columns[self.column].name)
        match self.aggregate:
            case "values":
                return name
            case "count":
                return "count(*)"
            case "distinct":
                return f"count(distinct {name})"
            case "share":
                whole = f"sum({name})" if name else "count(*)"
                part = " and ".join(self._sql_condition(condition) for condition in self.part)
                return f"100.0 * coalesce({whole} filter (where {part}), 0) / {whole}"
            case _:
                return f"{_FUNCTIONS[self.aggregate]}({name})"

    def _sql_condition(self, condition: Condition) -> str:
        is_group = condition.column == GROUP
        name = "_group" if is_group else quote_name(self.table.columns[condition.column].name)
        if condition.operator in {"empty", "filled"}:
            return f"{name} is {'not ' * (condition.operator == 'filled')}null"
        if condition.operator in _ACROSS:
            other = quote_name(self.table.columns[condition.other].name)
            return f"{name} {'>' if condition.operator == 'above' else '<'} {other}"
        values = [_sql_literal(value) for value in condition.values]
        if condition.operator == "month":
            return f"month({name}) = {values[0]}"
        if len(values) > 1:
            return f"{name} {'not ' if condition.operator == '<>' else ''}in ({', '.join(values)})"
        return f"{name} {condition.operator} {values[0]}"


def quote_name(name: str) -> str:
    """Return a name as SQL writes it, in quotation marks where it needs them.

    >>> quote_name("region"), quote_name("2023")
    ('region', '"2023"')
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain and name not in _KEYWORDS else '"' + name.replace('"', '""') + '"'


_KEYWORDS = frozenset(
    "all and any as asc by case cast column desc distinct else end false for from group having in into is join"
    " lateral left like limit not null offset on or order outer right select some table then to true union unique"
    " using values when where window with check collate constraint default do except fetch foreign grant initially"
    " intersect natural only primary references returning show symmetric trailing user variadic full inner"
    " cross".split()
)


def _sql_literal(value: str | float | date) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"date '{value}'" if isinstance(value, date) else f"{value:.15g}"


def find_step(numbers: Floats) -> float | None:
    """Return the power of ten by which numbers are whole, so that they are added up exactly; None where they have
    more decimals than money and measures have, or too many digits.

    >>> find_step(np.array([0.1, 0.25, np.nan])), find_step(np.array([1 / 3]))
    (100.0, None)
    """
    known = numbers[~np.isnan(numbers)]
    for places in range(MOST_DECIMALS + 1):
        step = 10.0**places
        units = np.rint(known * step)
        if np.abs(units).max(initial=0) >= _EXACT:
            return None
        if np.array_equal(units / step, known):
            return step
    return None


#: Up to this size, a float times a power of ten is nearest to the whole number that it stands for.
_EXACT = 2.0**50


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of a result: the ``name`` of its group ("" without groups), the ``value`` (None where no row has one),
    and the positions of the table's rows that it was computed from, ascending."""

    name: str
    value: float | str | None
    rows: NDArray[np.int64]


class TableArrays:
    """The columns of a table as arrays, made when they are needed."""

    def __init__(self, table: DataTable) -> None:
        self.table = table
        self.numbers = cache(self._numbers)
        self.days = cache(self._days)
        self.texts = cache(self._texts)
        self.empty = cache(self._empty)
        self._places = cache(self._place_texts)
        # Most of the plans that a question may mean share their conditions.
        self._meets = lru_cache(_REMEMBERED)(self._compare)
        self._lacks_result = cache(self._find_lacking)
        self._step = cache(lambda column: find_step(self.numbers(column)))
        self._is_total = np.array([row.is_total for row in table.rows], dtype=np.bool_)

    def _numbers(self, column: int) -> Floats:
        values = self.table.values(column)
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    def _days(self, column: int) -> NDArray[np.datetime64]:
        return np.array(
            ["NaT" if value is None else value for value in self.table.values(column)], dtype="M8[D]"
        )

    def amounts(self, column: int) -> Floats:
        """Return the numbers of a column, for days that of the day since 1970; NaN for none."""
        if self.table.columns[column].type != "date":
            return self.numbers(column)
        days = self.days(column)
        return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))

    def _empty(self, column: int) -> Mask:
        """Return which rows have no value in a column."""
        return np.array([value is None for value in self.table.values(column)], dtype=np.bool_)

    def _find_lacking(self, column: int) -> Mask:
        """Return which rows have a formula without a stored result in a column."""
        return np.array([self.table.lacks_result(row, column) for row in self.table.rows], dtype=np.bool_)

    def _place_texts(self, column: int) -> dict[str, int]:
        """Return the positions of the distinct cells of a column."""
        return {name: place for place, name in enumerate(self.texts(column)[0])}

    def _texts(self, column: int) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct cells of a column, sorted, and for each row the position of its cell, -1 for none."""
        cells = [row.group if column == GROUP else row.cells[column] for row in self.table.rows]
        names = sorted({cell for cell in cells if cell})
        places = {name: place for place, name in enumerate(names)}
        return names, np.array([places.get(cell, -1) for cell in cells], dtype=np.int64)

    def rows_with(self, column: int, cell: str) -> NDArray[np.int64]:
        """Return the positions of the rows with a cell of a column, as it is spelled."""
        place = self._places(column).get(cell)
        return np.flatnonzero(self.texts(column)[1] == place) if place is not None else np.empty(0, np.int64)

    def _mask(self, conditions: Sequence[Condition]) -> Mask:
        mask = np.ones(len(self.table.rows), dtype=np.bool_)
        for condition in conditions:
            mask &= self._meets(condition)
        return mask

    def _compare(self, condition: Condition) -> Mask:
        kind = "text" if condition.column == GROUP else self.table.columns[condition.column].type
        result: Mask
        if condition.operator in {"empty", "filled"}:
            values = self.table.values(condition.column)
            return np.array(
                [(value is None) == (condition.operator == "empty") for value in values], np.bool_
            )
        if condition.operator in _ACROSS:
            amounts = [self.amounts(place) for place in (condition.column, condition.other)]
            return np.asarray(_ACROSS[condition.operator](*amounts), dtype=np.bool_)
        if condition.operator == "month":
            days = self.days(condition.column)
            months = days.astype("M8[M]").astype(np.int64) % 12 + 1
            return np.asarray(~np.isnat(days) & (months == condition.values[0]), dtype=np.bool_)
        if kind == "text":
            codes, places = self.texts(condition.column)[1], self._places(condition.column)
            wanted = np.isin(codes, [places[str(value)] for value in condition.values])
            return (codes >= 0) & ~wanted if condition.operator == "<>" else wanted
        if kind == "date":
            days = self.days(condition.column)
            bounds = np.array(condition.values, dtype="M8[D]")
            if condition.operator in {"=", "<>"}:
                result = np.isin(days, bounds) ^ (condition.operator == "<>")
                return result & ~np.isnat(days)
            return np.asarray(_COMPARE[condition.operator](days, bounds[0]), dtype=np.bool_)
        numbers = self.numbers(condition.column)
        if condition.operator in {"=", "<>"}:
            result = np.isin(numbers, np.array(condition.values, dtype=np.float64))
            return (result ^ (condition.operator == "<>")) & ~np.isnan(numbers)
        return np.asarray(_COMPARE[condition.operator](numbers, condition.values[0]), dtype=np.bool_)

    def run(self, query: TableQuery) -> list[ResultRow]:
        """Return the result of a query over this table. Rows without a group have none in the result; groups are in
        the order of their names, unless the query sorts them."""
        rows = np.flatnonzero(self._mask(query.conditions) & (~self._is_total | query.with_totals))
        if query.aggregate == "values":
            return self._cells(query, rows)
        if query.group is None:
            results = [self._aggregate(query, "", rows)]
        else:
            names, codes = self.texts(query.group)
            rows = rows[codes[rows] >= 0]
            order = np.argsort(codes[rows], kind="stable")
            ordered = rows[order]
            starts = np.flatnonzero(np.diff(codes[ordered], prepend=-1))
            results = [
                self._aggregate(query, names[codes[part[0]]], part)
                for part in np.split(ordered, starts[1:])
                if len(part)
            ]
        if query.descending is not None:
            unknown = [row for row in results if row.value is None and len(row.rows)]
            if unknown:  # none of the others is the first for sure
                return unknown
            sign = -1 if query.descending else 1
            results.sort(key=lambda row: sign * row.value if isinstance(row.value, float) else np.inf)
        return results[query.cut]

    def include_ties(self, query: TableQuery) -> TableQuery:
        """Return a query with as large a limit as it takes to leave out nothing that equals the last row."""
        if query.limit is None or query.descending is None or query.offset:
            return query
        size = query.limit + 16
        while True:
            values = [row.value for row in self.run(replace(query, limit=size))]
            limit = query.limit
            while 0 < limit < len(values) and values[limit] == values[limit - 1]:
                limit += 1
            if limit < size:
                return replace(query, limit=limit)
            size *= 4

    def _cells(self, query: TableQuery, rows: NDArray[np.int64]) -> list[ResultRow]:
        assert query.column is not None
        kind = self.table.columns[query.column].type
        if query.descending is not None:
            lacking = rows[self._lacks_result(query.column)[rows]]
            if lacking.size:  # none of the others is the first for sure
                return [ResultRow("", None, lacking)]
            amounts = self.amounts(query.column)[rows]
            rows = rows[np.argsort(-amounts if query.descending else amounts, kind="stable")]
        rows = rows[query.cut]
        cells = [self.table.rows[place].cells for place in rows.tolist()]
        names = [""] * len(cells) if query.group is None else [own[query.group] for own in cells]
        values: list[float | str | None] = [own[query.column] or None for own in cells]
        if kind == "number":
            numbers = self.numbers(query.column)[rows].tolist()
            values = [None if math.isnan(number) else number for number in numbers]
        return [
            ResultRow(name, value, rows[number : number + 1])
            for number, (name, value) in enumerate(zip(names, values, strict=True))
        ]

    def _aggregate(self, query: TableQuery, name: str, rows: NDArray[np.int64]) -> ResultRow:
        if query.aggregate == "count":
            return ResultRow(name, float(len(rows)), rows)
        if query.column is not None and query.aggregate != "distinct":
            lacking = rows[self._lacks_result(query.column)[rows]]
            if lacking.size:
                return ResultRow(name, None, lacking)
        if query.aggregate == "share":
            part = rows[self._mask(query.part)[rows]]
            whole = rows.size if query.column is None else np.nansum(self.numbers(query.column)[rows])
            share = part.size if query.column is None else np.nansum(self.numbers(query.column)[part])
            return ResultRow(name, float(100 * share / whole) if whole else None, part)
        assert query.column is not None
        if query.aggregate == "distinct":
            cells = {self.table.rows[place].cells[query.column] for place in rows.tolist()} - {""}
            return ResultRow(name, float(len(cells)), rows)
        if self.table.columns[query.column].type == "date":
            days = self.days(query.column)[rows]
            rows, days = rows[~np.isnat(days)], days[~np.isnat(days)]
            if len(rows):
                rows = rows[days == (days.max() if query.aggregate == "maximum" else days.min())]
            return ResultRow(name, self.table.rows[rows[0]].cells[query.column] if len(rows) else None, rows)
        numbers = self.numbers(query.column)[rows]
        rows, numbers = rows[~np.isnan(numbers)], numbers[~np.isnan(numbers)]
        if not len(rows):
            return ResultRow(name, None, rows)
        step = self._step(query.column)
        value = float(_COMPUTE[query.aggregate](np.rint(numbers * step) if step else numbers)) / (step or 1.0)
        if query.aggregate in {"maximum", "minimum"}:
            rows = rows[numbers == value]
        return ResultRow(name, value, rows)
