"""Plans over a table that a question may mean: enumerated from the cells that it may name, its numbers and days, and
the columns that its words are like.

Nothing here knows English. Each family of shapes has its own quota. A plan is a query over one table, or a formula
over two of them: a difference, a change, a ratio, a share.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial, reduce
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from clew.core.text import shorten
from clew.core.values import MONTH_PATTERN, month_number
from clew.questions.shapes import BETWEEN_PARTS
from clew.questions.table_catalogue import CellMatch, read_numbers
from clew.questions.table_query import (
    BOUNDING,
    GROUP,
    Aggregate,
    Condition,
    Operator,
    TableQuery,
    quote_name,
)

if TYPE_CHECKING:
    from clew.questions.table_catalogue import TableCatalogue
    from clew.questions.text import QuestionText, Value

#: Plans of a table that are kept of each family, the likeliest by their slots.
QUOTAS = {
    "cell": 60,
    "rows": 30,
    "pairs": 40,
    "count": 30,
    "distinct": 16,
    "aggregate": 50,
    "ranked": 50,
    "groups": 70,
    "two columns": 44,
    "two rows": 44,
    "differences": 20,
    "along a row": 30,
    "share": 24,
}
#: Columns and cells that are tried together.
BEST_COLUMNS, MOST_COLUMNS, BEST_NUMBERS, BEST_CONDITIONS, BEST_GAPS = 7, 24, 5, 12, 8
#: Sets of conditions of a table that are tried.
MOST_FILTERS = 40
#: What a condition costs that no words name, and a column for the names of rows that are asked for.
UNNAMED = -1.0
#: Values of a condition that are said in words.
_SAID = 3
#: What is made of the numbers of two queries, or of several cells of a row; the mean of the differences of two cells
#: of each row.
DIFFERENCE, CHANGE, RATIO, SHARE, HIGHER, LOWER, SUM, MEAN, EACH, MEAN_DIFFERENCE = (
    "difference", "change", "ratio", "share", "higher", "lower", "sum", "average", "each", "average difference"
)  # fmt: skip
#: The parts of a shape.
PARTS = ("what is computed", "what it is computed of", "the conditions")
#: What a table of a report is called, which has no name that a question could have.
NAMELESS = "table"
#: Columns whose cells are taken together along a row.
MOST_ALONG = 14
_EXTREMES: tuple[Aggregate, ...] = ("maximum", "minimum")
_ACROSS: tuple[Operator, ...] = ("above", "below")
_AGGREGATES: tuple[Aggregate, ...] = ("sum", "average", "maximum", "minimum", "median")


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A query, or a ``formula`` over its number and that of ``other``, or over its cells in the columns ``along`` its
    row: which is the highest or lowest, their sum, their average, or each."""

    query: TableQuery
    formula: str = ""
    other: TableQuery | None = None
    along: tuple[int, ...] = ()

    @property
    def sql(self) -> str:
        """The plan in SQL, as ``clew sql`` takes it."""
        if self.along:
            cells = [quote_name(self.query.table.columns[place].name) for place in self.along]
            together, several = " + ".join(cells), ", ".join(cells)
            return self.query.select(
                {
                    SUM: together,
                    MEAN: f"({together}) / {len(cells)}.0",
                    HIGHER: f"greatest({several})",
                    LOWER: f"least({several})",
                    EACH: several,
                }[self.formula]
            )
        if self.other is None:
            return self.query.sql
        if self.formula == MEAN_DIFFERENCE:
            first, second = (self.query.table.columns[place].name for place in self.measured)
            return self.query.select(f"avg({quote_name(second)} - {quote_name(first)})")
        first, second = (f"({replace(each, group=None).sql})" for each in (self.query, self.other))
        return (
            "select "
            + {
                DIFFERENCE: f"{second} - {first}",
                CHANGE: f"100.0 * ({second} - {first}) / {first}",
                RATIO: f"1.0 * {first} / {second}",
                SHARE: f"100.0 * {first} / {second}",
                SUM: f"{first} + {second}",
                MEAN: f"({first} + {second}) / 2.0",
                HIGHER: f"greatest({first}, {second})",
                LOWER: f"least({first}, {second})",
            }[self.formula]
        )

    @property
    def measured(self) -> tuple[int, ...]:
        """The columns of its numbers."""
        queries = (self.query, self.other)
        return tuple(own.column for own in queries if own is not None and own.column is not None)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other plans over the same table."""
        return (
            self.formula,
            self.along,
            *(_key_query(query) for query in (self.query, self.other) if query is not None),
        )

    @property
    def operation(self) -> str:
        """What is computed."""
        return self.formula or self.query.aggregate

    @property
    def shape(self) -> str:
        """What kind of plan it is, without the names of columns and cells, in :data:`PARTS`: what is computed; of a
        column of which kind, for groups, in which order; under which conditions."""
        query = self.query
        asked = ["along a row"] * bool(self.along)
        if query.column is not None:
            asked.append(_kind_of(query, query.column))
        if query.group is not None and not self.formula:
            asked.append(f"by {_kind_of(query, query.group)}")
        if query.descending is not None:
            asked.append("highest" if query.descending else "lowest")
        asked += ["several"] * ((query.limit or 1) > 1) + ["next"] * (query.offset > 0)
        conditions = sorted(f"{_kind_of(query, each.column)} {each.operator}" for each in query.conditions)
        return BETWEEN_PARTS.join((self.operation, " ".join(asked), " ".join(conditions)))

    def say(self, wording: Wording | None = None) -> str:
        """The plan in words: what is asked, then each condition."""
        wording = Wording() if wording is None else wording
        if self.along:
            named = " and ".join(_say_column(self.query, place, wording) for place in self.along)
            wording = replace(wording, columns={**wording.columns, self.along[0]: named})
            return f"{self.formula} of {say_query(self.query, wording)}"
        if self.other is None:
            return say_query(self.query, wording)
        return f"{self.formula} of {say_query(self.query, wording)} and {say_query(self.other, wording)}"


@dataclass(frozen=True, slots=True)
class Wording:
    """What columns are called, and what the codes of a condition on them stand for, by the place of the column; what
    is missing is said as the table has it."""

    columns: Mapping[int, str] = field(default_factory=dict)
    codes: Mapping[int, str] = field(default_factory=dict)


def _kind_of(query: TableQuery, column: int) -> str:
    return "text" if column == GROUP else query.table.columns[column].type


def _key_query(query: TableQuery) -> tuple[object, ...]:
    return (
        query.aggregate,
        query.column,
        frozenset(query.conditions),
        query.group,
        frozenset(query.part),
        query.descending,
        query.limit,
        query.offset,
    )


def say_query(query: TableQuery, wording: Wording) -> str:
    """Return a query in words."""
    header = "" if query.column is None else _say_column(query, query.column, wording)
    group = "" if query.group is None else _say_column(query, query.group, wording)
    where = " and ".join(_say_condition(query, condition, wording) for condition in query.conditions)
    if query.descending is not None:
        number = f"{query.limit} " if query.limit and query.limit > 1 else ""
        number = f"number {query.offset + 1} " if query.offset else number
        measure = {"count": "number of rows", "values": header}.get(
            query.aggregate, f"{query.aggregate} {header}"
        )
        text = f"{group} with {number}{'highest' if query.descending else 'lowest'} {measure}"
    elif query.aggregate == "values":
        is_asked = group and all(each.column != query.group for each in query.conditions)
        text = f"{group} and {header}" if is_asked else header
    elif query.aggregate == "count":
        name = query.table.name.replace("_", " ")
        text = "number of rows" if name == NAMELESS else f"how many {name}"
    elif query.aggregate == "share":
        part = " and ".join(_say_condition(query, condition, wording) for condition in query.part)
        text = f"percent of {header or 'rows'} with {part}"
    else:
        text = f"{'number of different' if query.aggregate == 'distinct' else query.aggregate} {header}"
    if group and query.descending is None and query.aggregate != "values":
        text += f" for each {group}"
    return f"{text} where {where}" if where else text


def _say_column(query: TableQuery, place: int, wording: Wording) -> str:
    if place == GROUP:
        return "section"
    column = query.table.columns[place]
    return wording.columns.get(place) or column.header or column.name


def _say_value(value: str | float | date) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else str(value)
    return shorten(str(value), 80)


def _say_condition(query: TableQuery, condition: Condition, wording: Wording) -> str:
    name = _say_column(query, condition.column, wording)
    if condition.operator in ("above", "below"):
        return f"{name} is {condition.operator} {_say_column(query, condition.other, wording)}"
    if condition.operator == "=" and condition.column in wording.codes:
        return f"{name} is that of {shorten(wording.codes[condition.column], 80)}"
    values = " or ".join(map(_say_value, condition.values[:_SAID]))
    if len(condition.values) > _SAID:
        values += f" or {len(condition.values) - _SAID} more"
    names = {"=": "is", "<>": "is not", "empty": "is empty", "filled": "is not empty", "month": "in month"}
    return f"{name} {names.get(condition.operator, condition.operator)} {values}".strip()


@dataclass(frozen=True, slots=True)
class TableOption:
    """A plan with the family that proposed it, its slots' log-odds, the ``columns`` and ``cells`` that it uses, and
    the ``values`` of the question that it compares with, by number. The last ``filters`` slots are of conditions."""

    plan: TablePlan
    family: str
    slots: tuple[float, ...]
    columns: frozenset[int]
    cells: tuple[CellMatch, ...] = ()
    values: frozenset[int] = frozenset()
    filters: int = 0

    @property
    def score(self) -> float:
        """The sum of its slots."""
        return sum(self.slots)

    @property
    def conditions(self) -> tuple[float, ...]:
        """The slots of its conditions, which stand behind those of what is asked."""
        return self.slots[len(self.slots) - self.filters :]


#: The sum of the slots of an option, and what makes it: of the tens of thousands over a table few are made.
Draft = tuple[float, "Callable[[], TableOption]"]


@dataclass(frozen=True, slots=True)
class _Filter:
    """Conditions that go together, with their slots and the ``score``, the sum of these."""

    conditions: tuple[Condition, ...] = ()
    slots: tuple[float, ...] = ()
    cells: tuple[CellMatch, ...] = ()
    values: frozenset[int] = frozenset()
    columns: frozenset[int] = field(init=False)
    score: float = field(init=False)

    def __post_init__(self) -> None:
        """Set ``columns``, those whose cells it tests, and ``score`` once: each filter meets hundreds of columns."""
        own = frozenset(column for condition in self.conditions for column in condition.columns)
        object.__setattr__(self, "columns", own)
        object.__setattr__(self, "score", sum(self.slots))

    def is_apart_from(self, other: _Filter) -> bool:
        """Whether they test different columns, with different values of the question."""
        return not self.columns & other.columns and not self.values & other.values

    def joined(self, other: _Filter) -> _Filter:
        """Return both."""
        return _Filter(
            (*self.conditions, *other.conditions),
            (*self.slots, *other.slots),
            (*self.cells, *other.cells),
            self.values | other.values,
        )


def _join_values(filters: Sequence[_Filter]) -> _Filter:
    values = tuple(value for each in filters for value in each.conditions[0].values)
    column = filters[0].conditions[0].column
    return replace(reduce(_Filter.joined, filters), conditions=(Condition(column, "=", values),))


@dataclass(slots=True)
class TablePlanner:
    """Enumerates the plans over one table that a question may mean. ``columns`` are the log-odds of its columns,
    ``cells`` the cells that may be named, with theirs."""

    catalogue: TableCatalogue
    question: QuestionText
    columns: Sequence[float]
    cells: Sequence[tuple[CellMatch, float]]
    _options: dict[tuple[object, ...], TableOption] = field(default_factory=dict)

    def propose(self) -> list[TableOption]:
        """Return the options, the likeliest first."""
        for family, drafts in self._families():
            for _, make in heapq.nlargest(QUOTAS[family], drafts, key=itemgetter(0)):
                option = make()
                known = self._options.get(option.plan.key)
                if known is None or known.score < option.score:
                    self._options[option.plan.key] = option
        return sorted(self._options.values(), key=lambda option: -option.score)

    def _families(self) -> Iterator[tuple[str, Iterator[Draft]]]:
        singles = self._filters()
        several = heapq.nlargest(MOST_FILTERS, self._pairs(singles), key=lambda each: each.score)
        filters = [_Filter(), *sorted([*singles, *several], key=lambda each: -each.score)]
        yield "cell", self._cells(filters)
        yield "rows", self._rows(filters)
        yield "pairs", self._pairs_of_cells(filters[: 2 * BEST_CONDITIONS])
        yield "count", self._counts(filters)
        yield "distinct", self._distinct(filters)
        yield "aggregate", self._aggregates(filters)
        yield "ranked", self._ranked(filters[: 2 * BEST_CONDITIONS])
        yield "groups", self._groups(filters[:BEST_CONDITIONS])
        yield "two columns", self._two_columns(filters)
        yield "two rows", self._two_rows()
        yield "differences", self._differences(filters[: 2 * BEST_CONDITIONS])
        yield "along a row", self._along(filters)
        yield "share", self._shares(singles)

    # Conditions

    def _filters(self) -> list[_Filter]:
        """Return the likeliest single conditions."""
        kinds: list[Iterable[_Filter]] = [
            [self._of_cell(cell, score) for cell, score in self.cells if not cell.is_flag],
            [self._of_cell(cell, score) for cell, score in self.cells if cell.is_flag],
            self._denied(),
            self._of_numbers(),
            self._of_days(),
            self._of_gaps(),
            self._of_signs(),
            self._of_columns(),
        ]
        filters = [
            each
            for kind in kinds
            for each in heapq.nlargest(BEST_CONDITIONS, kind, key=lambda own: own.score)
        ]
        return sorted(filters, key=lambda each: -each.score)

    def _of_cell(self, cell: CellMatch, score: float, operator: Operator = "=") -> _Filter:
        values: tuple[str | float, ...] = (cell.value, *cell.more)
        if cell.column != GROUP and self.catalogue.table.columns[cell.column].type == "number":
            numbers, wanted = self.catalogue.arrays.numbers(cell.column).tolist(), set(values)
            rows = self.catalogue.table.rows
            values = tuple(
                {n for n, row in zip(numbers, rows, strict=True) if row.cells[cell.column] in wanted}
            )
        return _Filter((Condition(cell.column, operator, values),), (score,), (cell,))

    def _denied(self) -> Iterator[_Filter]:
        for cell, score in self.cells[:4]:
            if cell.column not in self.catalogue.names:
                yield self._of_cell(cell, score - 0.7, "<>")

    def _of_numbers(self) -> Iterator[_Filter]:
        in_cells = {place for cell, _ in self.cells if cell.is_exact for place in cell.words}
        for number, value in enumerate(self.question.values):
            places = self.question.value_places[number]
            if value.is_date or not _is_number(value.texts[0]) or (places and places <= in_cells):
                continue
            for column in self._likely(self.catalogue.numbers, BEST_NUMBERS):
                read = partial(read_numbers, self.question, column=self.catalogue.table.columns[column])
                own, numbers = frozenset([number]), read(value)
                following = self.question.values[number + 1 : number + 2]
                if len(numbers) == 1 and following and _is_number(following[0].texts[0]):
                    # "between 3,000 and 4,000"
                    high = read(following[0])[0]
                    if numbers[0] < high:
                        yield self._between(column, numbers[0], high, own | {number + 1})
                if len(numbers) == 2:
                    yield self._between(column, numbers[0], numbers[1], own)
                    continue
                for operator in BOUNDING:
                    condition = Condition(column, operator, (numbers[0],))
                    yield _Filter((condition,), (self.columns[column],), (), own)

    def _between(self, column: int, low: float, high: float, values: frozenset[int]) -> _Filter:
        bounds = (Condition(column, ">=", (low,)), Condition(column, "<=", (high,)))
        return _Filter(bounds, (self.columns[column],), (), values)

    def _of_days(self) -> Iterator[_Filter]:
        values = self.question.values
        for column in self._likely(self.catalogue.days, 3):
            slots = (self.columns[column],)
            for number, value in enumerate(values):
                for bounds in _bound_days(column, value):
                    yield _Filter(bounds, slots, (), frozenset([number]))
            for number, (value, other) in enumerate(itertools.pairwise(values)):
                first, last = _days_of(value), _days_of(other)
                if first and last and first[0] <= last[1]:
                    bounds = (Condition(column, ">=", (first[0],)), Condition(column, "<=", (last[1],)))
                    yield _Filter(bounds, slots, (), frozenset([number, number + 1]))
            for place, word in enumerate(self.question.words):
                month = (
                    month_number(word.text) if re.fullmatch(MONTH_PATTERN, word.text, re.IGNORECASE) else 0
                )
                if month and not any(value.start <= word.start < value.end for value in values):
                    named = CellMatch(column, word.text, frozenset([place]), (0.0,))
                    yield _Filter((Condition(column, "month", (month,)),), slots, (named,))

    def _of_gaps(self) -> Iterator[_Filter]:
        for column in self._likely(range(len(self.columns)), BEST_GAPS):
            empty = self.catalogue.arrays.empty(column)
            if empty.any() and not empty.all():
                yield _Filter((Condition(column, "empty", ()),), (self.columns[column] - 0.5,))
                yield _Filter((Condition(column, "filled", ()),), (self.columns[column] - 1.0,))

    def _of_signs(self) -> Iterator[_Filter]:
        """Yield that a number is below or above zero, of columns that have both: gains and losses."""
        for column in self._likely(self.catalogue.numbers, BEST_NUMBERS):
            numbers = self.catalogue.arrays.numbers(column)
            if (numbers < 0).any() and (numbers > 0).any():
                for operator in BOUNDING[:2]:
                    condition = Condition(column, operator, (0.0,))
                    yield _Filter((condition,), (self.columns[column] - 0.5,))

    def _of_columns(self) -> Iterator[_Filter]:
        """Yield that a cell is above or below that of another column: "below its minimum stock"."""
        for kind in (self.catalogue.numbers, self.catalogue.days):
            for first, second in itertools.combinations(self._likely(kind, BEST_NUMBERS), 2):
                for operator in _ACROSS:
                    condition = Condition(first, operator, (second,))
                    yield _Filter((condition,), (self.columns[first], self.columns[second]))

    def _pairs(self, singles: Sequence[_Filter]) -> Iterator[_Filter]:
        """Yield two or three conditions that go together."""
        cells = [each for each in singles if each.cells][:BEST_CONDITIONS]
        best = [*cells, *[each for each in singles if not each.cells][: 2 * BEST_CONDITIONS]]
        for first, second in itertools.combinations(best, 2):
            words = [cell.words for cell in (*first.cells, *second.cells)]
            shares_words = (
                len(words) == 2
                and bool(words[0] & words[1])
                and (words[0] <= words[1] or words[1] <= words[0])
            )
            if first.is_apart_from(second) and not shares_words:
                yield first.joined(second)
        bounds = [each for each in best if each.values]
        for first, second in itertools.combinations(bounds, 2):
            for cell in cells[:3] if first.is_apart_from(second) else ():
                if cell.is_apart_from(both := first.joined(second)):
                    yield cell.joined(both)
        exact = [each for each in cells if each.cells[0].is_exact][:6]
        for three in itertools.combinations(exact, 3):
            words = [each.cells[0].words for each in three]
            if (
                len(frozenset().union(*words)) == sum(map(len, words))
                and len({each.columns for each in three}) == 3
            ):
                yield three[0].joined(three[1]).joined(three[2])
        yield from self._alternatives([each for each in cells if each.conditions[0].operator == "="])

    def _alternatives(self, cells: Sequence[_Filter]) -> Iterator[_Filter]:
        """Yield one of several cells of a column: two, or all that are named."""
        for first, second in itertools.combinations(cells, 2):
            if first.columns == second.columns and not first.cells[0].words & second.cells[0].words:
                yield _join_values([first, second])
        of_column: dict[int, list[_Filter]] = defaultdict(list)
        for each in cells:
            if each.cells[0].is_exact or each.cells[0].is_rare:
                of_column[each.cells[0].column].append(each)
        for named in of_column.values():
            places = [place for each in named for place in each.cells[0].words]
            if len(named) > 2 and len(places) == len(set(places)):
                # As likely as the least likely of them: each more that is named makes it no less so.
                whole = _join_values(named)
                yield replace(whole, slots=(min(whole.slots),))

    def _likely(self, among: Sequence[int], most: int) -> list[int]:
        return heapq.nlargest(most, among, key=lambda place: self.columns[place])

    def _option(
        self,
        family: str,
        own: _Filter,
        slots: tuple[float, ...],
        aggregate: Aggregate,
        column: int | None = None,
        group: int | None = None,
        **more: Any,
    ) -> Draft:
        """Return a query with the conditions of ``own``."""
        make = partial(self._make, family, own, slots, aggregate, column, group, **more)
        return sum(slots) + own.score, make

    def _make(
        self,
        family: str,
        own: _Filter,
        slots: tuple[float, ...],
        aggregate: Aggregate,
        column: int | None,
        group: int | None,
        **more: Any,
    ) -> TableOption:
        query = TableQuery(self.catalogue.table, aggregate, column, own.conditions, group, **more)
        used = {place for place in (column, group) if place is not None}
        return TableOption(
            TablePlan(query),
            family,
            (*slots, *own.slots),
            own.columns | used,
            own.cells,
            own.values,
            len(own.slots),
        )

    # Families

    def _cells(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield the cells of a column in the rows that a cell names, totals among them."""
        columns = self._likely(range(len(self.columns)), MOST_COLUMNS)
        # Of the row that is likeliest meant any column may be asked: codes ("qty_oh") are like no words.
        named = [own for own in filters if own.cells][:2]
        for own in filters:
            for column in columns[: None if own in named else BEST_COLUMNS] if own.cells else ():
                if column not in own.columns:
                    slots = (self.columns[column],)
                    yield self._option("cell", own, slots, "values", column, with_totals=True)

    def _rows(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield the names of the rows that meet conditions."""
        for own in filters:
            for column in self.catalogue.names:
                if own.conditions and column not in own.columns:
                    yield self._option("rows", own, (max(self.columns[column], UNNAMED),), "values", column)

    def _pairs_of_cells(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield two cells of each row that meets conditions: its name and an amount, who and when. Of a bound the
        amount may be asked for, too."""
        columns = self._likely(range(len(self.columns)), BEST_NUMBERS)
        # A number names no row.
        others = (column for column in columns[:3] if column not in self.catalogue.numbers)
        first = list(dict.fromkeys([*self.catalogue.names[:3], *others]))
        for own in filters:
            equal = {each.column for each in own.conditions if each.operator == "="}
            for name, column in itertools.product(first, columns) if own.conditions else ():
                if name != column and name not in own.columns and column not in equal:
                    slots = (max(self.columns[name], UNNAMED), self.columns[column])
                    yield self._option("pairs", own, slots, "values", column, name)

    def _counts(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        for own in filters:
            yield self._option("count", own, (UNNAMED,), "count")

    def _distinct(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        texts = self._likely([place for place in self.catalogue.text_columns if place != GROUP], 2)
        for own, column in itertools.product(filters, texts):
            if column not in own.columns:
                yield self._option("distinct", own, (self.columns[column],), "distinct", column)

    def _aggregates(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        numbers, days = (
            self._likely(self.catalogue.numbers, BEST_NUMBERS),
            self._likely(self.catalogue.days, 2),
        )
        measures = [
            *((column, aggregate) for column in numbers for aggregate in _AGGREGATES),
            *((column, aggregate) for column in days for aggregate in _EXTREMES),
        ]
        for own in filters:
            for column, aggregate in measures:
                if column not in own.columns:
                    score = self.columns[column] - 0.3 * (aggregate == "median")
                    yield self._option("aggregate", own, (score,), aggregate, column)

    def _ranked(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield the rows with the highest and lowest cells of a column."""
        columns = self._likely([*self.catalogue.numbers, *self.catalogue.days], BEST_NUMBERS)
        ways = self._ways()
        for own in filters:
            for column, name in itertools.product(columns, self.catalogue.names[:3]):
                if not {name, column} & own.columns:
                    slots = (self.columns[column], max(self.columns[name], UNNAMED))
                    for way in ways:
                        yield self._option("ranked", own, slots, "values", column, name, **way)

    def _ways(self) -> list[dict[str, Any]]:
        """Return how sorted rows may be cut: the first, and by each small number of the question the first so many or
        the one at that place."""
        small = [value.texts[0] for value in self.question.values]
        small += [match[1] for word in self.question.words if (match := _ORDINAL.fullmatch(word.text))]
        numbers = dict.fromkeys(int(text) for text in small if _is_small(text))
        cuts = [
            {"limit": 1},
            *({"limit": n} for n in numbers),
            *({"limit": 1, "offset": n - 1} for n in numbers),
        ]
        return [{"descending": way} | cut for way in (True, False) for cut in cuts]

    def _groups(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield what is computed for each cell of a column, and the cells for which it is highest and lowest."""
        most = 0.8 * len(self.catalogue.table.rows)
        texts = [place for place in self.catalogue.text_columns if place != GROUP]
        groups = self._likely([place for place in texts if 1 < len(self.catalogue.distinct(place)) < most], 4)
        measures: list[tuple[Aggregate, int | None, float]] = [("count", None, UNNAMED)]
        for column in self._likely(self.catalogue.numbers, 3):
            measures += [(name, column, self.columns[column]) for name in _AGGREGATES[:4]]
        ways = self._ways()
        for own in filters:
            for group, (aggregate, measured, score) in itertools.product(groups, measures):
                if group not in own.columns:
                    slots = (self.columns[group], score)
                    yield self._option("groups", own, slots, aggregate, measured, group)
                    for way in ways:
                        yield self._option("groups", own, slots, aggregate, measured, group, **way)

    def _two_columns(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield what two cells of one row make together."""
        pairs = [
            *itertools.permutations(self._likely(self.catalogue.numbers, BEST_NUMBERS), 2),
            *itertools.permutations(self._likely(self.catalogue.days, 3), 2),
        ]
        for own, pair in itertools.product(filters, pairs):
            if own.cells and not own.columns & set(pair):
                are_days = self.catalogue.table.columns[pair[0]].type == "date"
                for formula in (DIFFERENCE,) if are_days else (DIFFERENCE, CHANGE, RATIO, SHARE):
                    yield self._of_pair("two columns", own, pair, formula, with_totals=True)

    def _differences(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield the mean of the differences of two cells of each row: how many days it takes on average."""
        pairs = [
            *itertools.permutations(self._likely(self.catalogue.days, 3), 2),
            *itertools.permutations(self._likely(self.catalogue.numbers, 3), 2),
        ]
        for own, pair in itertools.product(filters, pairs):
            if not own.columns & set(pair):
                yield self._of_pair("differences", own, pair, MEAN_DIFFERENCE)

    def _of_pair(
        self, family: str, own: _Filter, pair: tuple[int, int], formula: str, with_totals: bool = False
    ) -> Draft:
        """Return a formula over two columns of the same rows."""
        score = self.columns[pair[0]] + self.columns[pair[1]] + own.score
        return score, partial(self._make_pair, family, own, pair, formula, with_totals)

    def _make_pair(
        self, family: str, own: _Filter, pair: tuple[int, int], formula: str, with_totals: bool
    ) -> TableOption:
        first, second = (
            TableQuery(self.catalogue.table, "values", column, own.conditions, with_totals=with_totals)
            for column in pair
        )
        return TableOption(
            TablePlan(first, formula, second),
            family,
            (*(self.columns[column] for column in pair), *own.slots),
            own.columns | set(pair),
            own.cells,
            own.values,
            len(own.slots),
        )

    def _two_rows(self) -> Iterator[Draft]:
        """Yield what the cells of two rows make together, in one column."""
        exact = [
            (cell, score) for cell, score in self.cells if cell.column in (*self.catalogue.names, GROUP)
        ][:8]
        for (first, score), (second, more) in itertools.permutations(exact, 2):
            if first.column != second.column or first.words <= second.words or second.words <= first.words:
                continue
            for column in self._likely(self.catalogue.numbers, 4):
                queries = [
                    TableQuery(
                        self.catalogue.table,
                        "values",
                        column,
                        (Condition(cell.column, "=", (cell.value,)),),
                        group=cell.column if cell.column != GROUP else None,
                        with_totals=True,
                    )
                    for cell in (first, second)
                ]
                for formula in (DIFFERENCE, CHANGE, RATIO, SHARE, HIGHER, LOWER, SUM, MEAN):
                    if formula in (HIGHER, LOWER, SUM, MEAN) and first.value > second.value:
                        continue
                    slots = (self.columns[column], score, more)
                    yield (
                        sum(slots),
                        partial(
                            TableOption,
                            TablePlan(queries[0], formula, queries[1]),
                            "two rows",
                            slots,
                            frozenset([column, first.column]),
                            (first, second),
                            filters=2,
                        ),
                    )

    def _along(self, filters: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield what the cells of one row make together: in the columns whose headers differ in numbers alone, as
        years do, in those of them that the question gives, and in all columns of numbers."""
        columns = self.catalogue.table.columns
        alike: dict[tuple[str, str], list[int]] = defaultdict(list)
        of_unit: dict[str, list[int]] = defaultdict(list)
        for place in self.catalogue.numbers:
            if place not in self.catalogue.identifiers:
                alike[_DIGITS.sub("", columns[place].header), columns[place].unit].append(place)
                of_unit[columns[place].unit].append(place)
        texts = [text for value in self.question.values for text in value.texts if text.isdigit()]
        given = {text: place for place, text in reversed(list(enumerate(texts)))}
        low, high = (edge(map(int, given), default=0) for edge in (min, max))
        groups = {tuple(own) for own in (*alike.values(), *of_unit.values())}
        is_range = self._gives_range()
        for own_columns in alike.values():
            numbers = {place: set(_DIGITS.findall(self._header(place))) for place in own_columns}
            groups.add(
                tuple(
                    place
                    for place in own_columns
                    if numbers[place] & given.keys()
                    or (is_range and any(low <= int(own) <= high for own in numbers[place]))
                )
            )
        for own, along in itertools.product(filters, groups):
            if not own.cells or not 1 < len(along) <= MOST_ALONG or own.columns & set(along):
                continue
            # In the order in which the question gives them, where it gives them all.
            places = [
                [given[own] for own in _DIGITS.findall(self._header(place)) if own in given]
                for place in along
            ]
            if all(places):
                along = tuple(place for _, place in sorted(zip(map(min, places), along, strict=True)))
            query = TableQuery(self.catalogue.table, "values", along[0], own.conditions, with_totals=True)
            score = sum(self.columns[place] for place in along) / len(along)
            for formula in (SUM, MEAN, HIGHER, LOWER, EACH):
                yield (
                    score + own.score,
                    partial(
                        TableOption,
                        TablePlan(query, formula, along=along),
                        "along a row",
                        (score, *own.slots),
                        own.columns | set(along),
                        own.cells,
                        own.values,
                        len(own.slots),
                    ),
                )

    def _gives_range(self) -> bool:
        """Return whether the last two numbers of the question bound others, as in "2017 to 2019": "and", "or" and a
        comma join numbers that are meant alone."""
        if len(self.question.values) < 2:
            return False
        first, last = self.question.values[-2:]
        between = self.question.text[first.end : last.start]
        return "," not in between and not {"and", "or"} & set(between.casefold().split())

    def _header(self, place: int) -> str:
        column = self.catalogue.table.columns[place]
        return f"{column.header} {column.name}"

    def _shares(self, singles: Sequence[_Filter]) -> Iterator[Draft]:
        """Yield which part of the rows, or of a sum, meets a condition."""
        best = [each for each in singles if each.conditions][:BEST_CONDITIONS]
        columns = (None, *self._likely(self.catalogue.numbers, 4))
        for part in best:
            for whole in (_Filter(), *best):
                if whole.columns & part.columns:
                    continue
                for column in columns:
                    score = UNNAMED if column is None else self.columns[column]
                    make = partial(self._make_share, part, whole, column, score)
                    yield score + part.score + whole.score, make

    def _make_share(self, part: _Filter, whole: _Filter, column: int | None, score: float) -> TableOption:
        query = TableQuery(self.catalogue.table, "share", column, whole.conditions, part=part.conditions)
        return TableOption(
            TablePlan(query),
            "share",
            (score, *part.slots, *whole.slots),
            part.columns | whole.columns | frozenset([] if column is None else [column]),
            (*part.cells, *whole.cells),
            part.values | whole.values,
            len(part.slots) + len(whole.slots),
        )


_DIGITS = re.compile(r"\d+")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).isdigit()


def _is_small(text: str) -> bool:
    return len(text) < 3 and text.isdigit() and 1 < int(text) < 20


def _days_of(value: Value) -> tuple[date, date] | None:
    """Return the first and the last day of a day, period or year of a question; None for another number."""
    if value.is_date:
        return date.fromisoformat(value.texts[0]), date.fromisoformat(value.texts[-1])
    years = [int(text) for text in (value.texts[0], value.texts[-1]) if text.isdigit()]
    if len(years) == 2 and all(1900 <= year <= 2100 for year in years):
        return date(years[0], 1, 1), date(years[1], 12, 31)
    return None


def _bound_days(column: int, value: Value) -> Iterator[tuple[Condition, ...]]:
    """Yield the conditions on days that a day, period or year of a question may mean."""
    days = _days_of(value)
    if days is not None:
        first, last = days
        yield (Condition(column, ">=", (first,)), Condition(column, "<=", (last,)))
        yield (Condition(column, ">", (last,)),)
        yield (Condition(column, "<", (first,)),)
        yield (Condition(column, ">=", (first,)),)
        yield (Condition(column, "<=", (last,)),)
