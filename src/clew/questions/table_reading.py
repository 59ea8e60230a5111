"""A plain question over tables: the plans that it may mean, the likeliest first, each with the probability that it is
meant.

Read as questions over graphs are (:mod:`clew.questions.reading`): options are enumerated for each table, a linear
score keeps the likeliest, these are run exactly as they read, a judge that reads question and plan corrects the
scores of the first dozen, and one fitted function makes of all this the probability of the first reading.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import fold_name
from clew.questions.closed_words import BOUNDS, LESS, MORE
from clew.questions.linear import JUDGED, NetworkScore, correct_scores, log_odds
from clew.questions.shapes import ShapeClassifier, hash_runs, measure_shapes
from clew.questions.slots import OnceEncoder, encode_labels, share_root, write_out
from clew.questions.table_catalogue import CellMatch, TableCatalogue, carry_cells
from clew.questions.table_plans import (
    CHANGE,
    DIFFERENCE,
    EACH,
    HIGHER,
    LOWER,
    MEAN,
    MEAN_DIFFERENCE,
    PARTS,
    QUOTAS,
    RATIO,
    SHARE,
    TableOption,
    TablePlan,
    TablePlanner,
    Wording,
)
from clew.questions.table_query import GROUP, Operator, ResultRow, TableArrays, TableQuery
from clew.questions.text import MOST_MISFIT, QuestionText, is_misfit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PlanJudge

#: Tables whose options are proposed, those that a question is likest to.
MOST_TABLES = 8
#: Options that are run, of those that can be.
MOST_RUN = 48
#: A reading that leaves out a name, a number or a day of the question is at most so likely: what it is about is not
#: in the table.
MOST_WITHOUT = 0.3
#: A cell that stands in the question so is not to be left out.
CERTAIN = 0.5
OPERATIONS = (
    "values", "count", "distinct", "sum", "average", "median", "maximum", "minimum", "share", "ratio", "difference",
    "change", "higher", "lower", MEAN_DIFFERENCE,
)  # fmt: skip
TABLE_FEATURES = (
    "log probability of the shape",
    *(f"log probability of {part}" for part in PARTS),
    "sum of slots",
    "mean of slots",
    "least slot",
    "slots",
    "what is asked",
    "least condition",
    "likeness of the table",
    "rank of the table",
    "words of the table's name",
    "words left out",
    "numbers and days left out",
    "cells left out",
    "cells of other tables left out",
    "bounded as the question says",
    "with or without the bound",
    "bounded without a word",
    "conditions",
    "conditions without words",
    "in the order of the question",
    "in the order of their numbers",
    "place of the column of names",
    "different cells of the column of names",
    "a word of the table's name above the names",
    "other tables know the names",
    "columns left out",
    "what is counted",
    "rows",
    "no row",
    "an empty cell",
    "several values",
    "the answer stands in the question",
    *(f"operation {name}" for name in OPERATIONS),
    *(f"family {name}" for name in QUOTAS),
)
_NUMBERS = re.compile(r"\d+")
#: The words beside which a cell is compared with that of another column.
_ACROSS: Mapping[Operator, frozenset[str]] = {"above": MORE | BOUNDS[">"], "below": LESS | BOUNDS["<"]}
#: From which side operators bound.
_SIDES: Mapping[str, str] = {"<": "above", "<=": "above", ">": "below", ">=": "below"}
_SYMBOLS = re.compile(r"[<>=≤≥%÷]+|(?<=\s)[/+](?=\s)")
#: How many features the shape has: its own and those of its parts.
SHAPES = 1 + len(PARTS)
#: Where the features of what came of a plan begin.
OUTCOMES = TABLE_FEATURES.index("rows")
#: What the probability of a reading is fitted to.
TABLE_CONFIDENCE = (
    "log-odds of its share",
    "log-odds of its share without the judge",
    "the features have it first, too",
    "distance to the next with another answer",
    "log probability of the shape",
    "least slot",
    "words left out",
    "numbers and days left out",
    "cells left out",
    "cells of other tables left out",
    "bounded as the question says",
    "conditions without words",
    "columns left out",
    "what is counted",
    "likeness of the table",
    "no row",
    "an empty cell",
    "several values",
    *(f"family {name}" for name in QUOTAS),
    "correction by the judge",
    "bias",
)


@dataclass(frozen=True, slots=True)
class TableModel:
    """The fitted parts: weights of columns and cells, shapes, the scores of options before and after they are run,
    the weights of the score and of the judge's likenesses beside each other, the score of "none of these", and the
    confidence."""

    columns: Floats
    cells: Floats
    shapes: ShapeClassifier
    before: NetworkScore
    after: NetworkScore
    scale: float
    judge: Floats
    none: float
    confidence: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], source: str = "table") -> TableModel:
        """Return the model of the arrays that :meth:`to_arrays` gives for a source."""
        own = {
            name.removeprefix(f"{source}_"): values
            for name, values in arrays.items()
            if name.startswith(f"{source}_")
        }
        return cls(
            own["columns"],
            own["cells"],
            ShapeClassifier.of_arrays(own),
            NetworkScore.of_arrays(own, "before"),
            NetworkScore.of_arrays(own, "after"),
            float(own["scale"]),
            own["judge"],
            float(own["none"]),
            own["confidence"],
        )

    def to_arrays(self, source: str = "table") -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        arrays = {
            "columns": self.columns,
            "cells": self.cells,
            **self.shapes.to_arrays(),
            **self.before.to_arrays("before"),
            **self.after.to_arrays("after"),
            "scale": np.array(self.scale),
            "judge": self.judge,
            "none": np.array(self.none),
            "confidence": self.confidence,
        }
        return {f"{source}_{name}": values for name, values in arrays.items()}


@dataclass(frozen=True, slots=True)
class TableResult:
    """What came of a plan: the ``rows`` of its query's result, those of the other query, and the ``number`` of a
    formula, None where one of its numbers is missing."""

    rows: tuple[ResultRow, ...]
    others: tuple[ResultRow, ...] = ()
    number: float | None = None

    @property
    def texts(self) -> list[str]:
        """The names or values of the rows, or the number."""
        if self.number is not None:
            return [str(self.number)]
        return [str(row.name or row.value) for row in self.rows]

    @property
    def key(self) -> tuple[object, ...]:
        """What plans that answer the same have in common."""
        number = None if self.number is None else round(self.number, 6)
        return (
            number,
            *(() if number is not None else sorted((row.name, str(row.value)) for row in self.rows)),
        )


def run_table_plan(arrays: TableArrays, plan: TablePlan) -> TableResult:
    """Return what comes of a plan over its table, run exactly as it reads."""
    if plan.along:
        return _run_along(arrays, plan)
    if plan.formula == MEAN_DIFFERENCE:
        return _run_differences(arrays, plan)
    rows = tuple(arrays.run(arrays.include_ties(plan.query)))
    if plan.other is None:
        return TableResult(rows)
    others = tuple(arrays.run(plan.other))
    first, second = (
        _only_number(arrays, query, own) for query, own in ((plan.query, rows), (plan.other, others))
    )
    if first is None or second is None:
        return TableResult(rows, others)
    if plan.formula in (RATIO, SHARE):
        number = None if not second else abs(first / second) * (100 if plan.formula == SHARE else 1)
    elif plan.formula == CHANGE:
        number = None if not first else 100 * (second - first) / abs(first)
    elif plan.formula == DIFFERENCE:
        number = second - first
    else:
        number = {HIGHER: max, LOWER: min}.get(plan.formula, operator.add)(first, second)
        number = number / 2 if plan.formula == MEAN else number
    return TableResult(rows, others, number)


def _run_differences(arrays: TableArrays, plan: TablePlan) -> TableResult:
    """Return the mean of the differences of two cells, with the rows that have both."""
    first, second = (arrays.amounts(column) for column in plan.measured)
    gaps = second - first
    rows = tuple(row for row in arrays.run(plan.query) if not np.isnan(gaps[row.rows]).any())
    places = [place for row in rows for place in row.rows.tolist()]
    return TableResult(rows, number=float(gaps[places].mean()) if places else None)


def _run_along(arrays: TableArrays, plan: TablePlan) -> TableResult:
    """Return what the cells of a row make together, with the header of the highest or lowest as its name; no number
    where one is missing that a sum or an average needs, or there are several rows."""
    queries = [replace(plan.query, column=place) for place in plan.along]
    results = [arrays.run(query) for query in queries]
    headers = [arrays.table.columns[place].header or arrays.table.columns[place].name for place in plan.along]
    if plan.formula == EACH:
        cells = zip(headers, results, strict=True)
        return TableResult(tuple(replace(row, name=name) for name, rows in cells for row in rows))
    numbers = [_only_number(arrays, query, own) for query, own in zip(queries, results, strict=True)]
    known = [(number, header) for number, header in zip(numbers, headers, strict=True) if number is not None]
    is_extreme = plan.formula in (HIGHER, LOWER)
    if len(results[0]) != 1 or not known or (len(known) < len(numbers) and not is_extreme):
        return TableResult(tuple(results[0]))
    name = ""
    if is_extreme:
        number, name = (max if plan.formula == HIGHER else min)(known, key=operator.itemgetter(0))
    else:
        number = math.fsum(own for own, _ in known) / (len(known) if plan.formula == MEAN else 1)
    return TableResult((ResultRow(name, number, results[0][0].rows),), number=number)


def _only_number(arrays: TableArrays, query: TableQuery, rows: Sequence[ResultRow]) -> float | None:
    """Return the only number of a result, for a day that of the day since 1970; None for another result."""
    values = {row.value for row in rows}
    if len(values) != 1:
        return None
    (value,) = values
    column = query.column
    if isinstance(value, str) and column is not None and arrays.table.columns[column].type == "date":
        value = float(arrays.amounts(column)[rows[0].rows[0]])
    return value if isinstance(value, float) and not math.isnan(value) else None


@dataclass(frozen=True, slots=True, eq=False)
class TableCandidate:
    """An option of a table that was run: its features, (:data:`TABLE_FEATURES`,), its score, and what came of it."""

    option: TableOption
    catalogue: TableCatalogue
    features: Floats
    score: float
    result: TableResult

    @property
    def sentence(self) -> str:
        """The plan in words."""
        return self.option.plan.say()

    def say_beside(self, question: QuestionText) -> str:
        """Return the plan in words as the judge reads it beside a question: with the name of its table, headers
        written out, and codes as the cells of another table that lead to them."""
        words = [word.text for word in question.words]
        labels = {place: write_out(self.catalogue.labels[place], words).text for place in self._columns}
        codes = {cell.column: cell.source for cell in self.option.cells if cell.source}
        title = self.catalogue.table.name.replace("_", " ")
        return f"{title}: {self.option.plan.say(Wording(labels, codes))}"

    @property
    def _columns(self) -> set[int]:
        plan = self.option.plan
        queries = [plan.query, *([] if plan.other is None else [plan.other])]
        used = {*plan.along, *(column for query in queries for column in (query.column, query.group))}
        used |= {
            column
            for query in queries
            for each in (*query.conditions, *query.part)
            for column in each.columns
        }
        return {column for column in used if column is not None and column != GROUP}


@dataclass(frozen=True, slots=True, eq=False)
class TableReading:
    """A plan that a question may mean; ``sentence`` says it in words, ``probability`` that it is meant."""

    plan: TablePlan
    sentence: str
    probability: float
    result: TableResult

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.plan.query.table.name


@dataclass(frozen=True, slots=True, eq=False)
class ReadTables:
    """A question beside tables: what its options are measured by."""

    question: QuestionText
    options: list[tuple[TableOption, TableCatalogue]]
    features: Floats
    cells: dict[int, list[tuple[CellMatch, float]]]


class TableReader:
    """Reads plain questions over tables, with the trained parts that ``judge`` holds for those of a ``source``:
    spreadsheets ("table") or reports ("report"). No language model."""

    def __init__(self, judge: PlanJudge, source: str = "table") -> None:
        self.judge = judge
        self.model = TableModel.of_arrays(judge.arrays, source)

    def read(
        self, text: str, catalogues: Sequence[TableCatalogue], most: int = 3
    ) -> tuple[TableReading, ...]:
        """Return the likeliest readings of a question, of those that answer the same only the first; () where no plan
        over the tables fits it."""
        question = QuestionText(text)
        candidates = self.find_candidates(question, catalogues)
        if not candidates:
            return ()
        likeness = self.judge.compare(text, [each.say_beside(question) for each in candidates[:JUDGED]])
        order, shares, features = rank_tables(
            self.model,
            np.array([each.score for each in candidates]),
            np.array([each.features for each in candidates]),
            [each.result.key for each in candidates],
            correct_scores(self.model.judge, likeness, len(candidates)),
        )
        first = float(1 / (1 + np.exp(-(features @ self.model.confidence))))
        likeliest = candidates[order[0]]
        if _leaves_out(question, likeliest.option, likeliest.catalogue):
            first = min(first, MOST_WITHOUT)
        if is_misfit(question, likeliest.result.texts):
            first = min(first, MOST_MISFIT)
        readings: list[TableReading] = []
        seen: set[tuple[object, ...]] = set()
        for place in order:
            candidate = candidates[place]
            if candidate.result.key not in seen and len(readings) < most:
                share = float(shares[place] / max(1 - shares[order[0]], 1e-6))
                chance = first if not readings else min(first, (1 - first) * min(share, 1.0))
                readings.append(
                    TableReading(candidate.option.plan, candidate.sentence, chance, candidate.result)
                )
            seen.add(candidate.result.key)
        return tuple(readings)

    def find_candidates(
        self, question: QuestionText, catalogues: Sequence[TableCatalogue]
    ) -> list[TableCandidate]:
        """Return the likeliest options, run, the likeliest first."""
        model = self.model
        read = read_tables(question, catalogues, model.columns, model.cells, self.judge.encoder)
        if not read.options:
            return []
        buckets, vector = shape_of(read, catalogues, self.judge.encoder)
        shapes = [option.plan.shape for option, _ in read.options]
        add_table_shapes(read.features, model.shapes.log_probabilities(buckets, vector), shapes)
        best = np.argsort(-model.before.scores(read.features), kind="stable").tolist()
        candidates = list(itertools.islice(run_options(read, best), MOST_RUN))
        if not candidates:
            return []
        scores = model.after.scores(np.array([each.features for each in candidates]))
        scored = [replace(each, score=float(score)) for each, score in zip(candidates, scores, strict=True)]
        return sorted(scored, key=lambda each: -each.score)


@dataclass(frozen=True, slots=True, eq=False)
class _AskedTable:
    """A table beside a question: the log-odds of its ``columns``, the ``cells`` that may be named with theirs, the
    likelier first, and how like the question its name and headers are."""

    catalogue: TableCatalogue
    columns: list[float]
    cells: list[tuple[CellMatch, float]]
    likeness: float

    @property
    def weight(self) -> float:
        """How likely the question is about it."""
        return max(self.columns) + (self.cells[0][1] if self.cells else -3.0) + 3 * self.likeness

    def name_cells(self) -> set[frozenset[int]]:
        """Return the places of the words of each cell that the question surely names."""
        return {cell.words for cell, score in self.cells if cell.is_exact and score > CERTAIN}


def read_tables(
    question: QuestionText,
    catalogues: Sequence[TableCatalogue],
    column_weights: Floats,
    cell_weights: Floats,
    encoder: Encoder,
) -> ReadTables:
    """Return the options of a question over the tables that it is likest to, with their features before they are run
    and without the shape's."""
    encoder = OnceEncoder(encoder)
    vector = encoder.encode([question.text])[0]
    tables = []
    for catalogue in catalogues:
        columns = (catalogue.measure_columns(question, encoder) @ column_weights).tolist()
        cells = _rank_cells(catalogue.find_cells(question, columns, encoder), cell_weights)
        headers = ", ".join(label.text for label in catalogue.labels)
        sentence = encode_labels(encoder, (f"{catalogue.title.text}: {headers}",))[0]
        tables.append(_AskedTable(catalogue, columns, cells, float(sentence @ vector)))
    tables.sort(key=lambda table: -table.weight)
    tables = [_add_carried(table, tables[:MOST_TABLES], cell_weights) for table in tables[:MOST_TABLES]]
    tables.sort(key=lambda table: -table.weight)
    options: list[tuple[TableOption, TableCatalogue]] = []
    rows: list[list[float]] = []
    for rank, table in enumerate(tables):
        proposed = TablePlanner(table.catalogue, question, table.columns, table.cells).propose()
        options += [(option, table.catalogue) for option in proposed]
        others = [other for other in tables if other is not table]
        rows += _measure_options(question, table, proposed, rank, others)
    features = np.array(rows).reshape(len(options), len(TABLE_FEATURES))
    return ReadTables(question, options, features, {id(table.catalogue): table.cells for table in tables})


def _rank_cells(cells: Sequence[CellMatch], weights: Floats) -> list[tuple[CellMatch, float]]:
    scores = [float(np.dot(cell.features, weights)) for cell in cells]
    return sorted(zip(cells, scores, strict=True), key=lambda each: -each[1])


def _add_carried(table: _AskedTable, tables: Sequence[_AskedTable], weights: Floats) -> _AskedTable:
    """Return a table with the codes that cells of other tables lead to, but for what the table has itself."""
    cells = [cell for cell, _ in table.cells]
    named = [cell.words for cell in cells if cell.is_exact]
    carried = [
        cell
        for other in tables
        if other is not table
        for cell in carry_cells(
            [each for each, _ in other.cells], other.catalogue, table.catalogue, table.columns
        )
        if not any(cell.words <= own for own in named)
    ]
    return replace(table, cells=_rank_cells([*cells, *carried], weights)) if carried else table


def _list_joined(catalogue: TableCatalogue, others: Sequence[_AskedTable]) -> frozenset[int]:
    """Return the columns that name the rows of a table by what other tables have, too."""
    joined = {own for other in others for _, own, _, _ in catalogue.join(other.catalogue)}
    return frozenset(joined & catalogue.keys.keys())


def _measure_options(
    question: QuestionText,
    table: _AskedTable,
    options: Sequence[TableOption],
    rank: int,
    others: Sequence[_AskedTable],
) -> list[list[float]]:
    """Return the features of options of a table beside ``others``."""
    catalogue, words = table.catalogue, question.words
    joined = _list_joined(catalogue, others)
    in_values = frozenset[int]().union(*question.value_places)
    content = [place for place, word in enumerate(words) if word.is_content and place not in in_values]
    named = {place for place in content if _shares_root(words[place].stem, catalogue.title.stems)}
    of_column = [
        {place for place in content if _shares_root(words[place].stem, label.stems)}
        for label in catalogue.labels
    ]
    of_columns = set[int]().union(*of_column)
    exact, elsewhere = table.name_cells(), {words for other in others for words in other.name_cells()}
    rows = []
    for option in options:
        plan = option.plan
        covered = set(named).union(*(cell.words for cell in option.cells))
        covered |= {place for column in option.columns if column != GROUP for place in of_column[column]}
        conditions = (*plan.query.conditions, *plan.query.part)
        firm = frozenset(place for cell in option.cells if cell.is_exact for place in cell.words)
        row = [
            *[0.0] * SHAPES,
            option.score,
            option.score / max(len(option.slots), 1),
            min(option.slots, default=0.0),
            float(len(option.slots)),
            option.slots[0],
            min(option.conditions, default=0.0),
            table.likeness,
            float(rank),
            len(named) / max(len(content), 1),
            len([place for place in content if place not in covered]) / max(len(content), 1),
            float(len(_left_values(question, option, catalogue))),
            float(sum(not words & firm for words in exact)),
            float(sum(not words <= covered | firm for words in elsewhere)),
            *_compare_bounds(question, option),
            float(len(conditions)),
            float(len(conditions) - len(option.cells) - len(option.values)),
            *_compare_orders(question, option, catalogue),
            *_describe_names(option, catalogue, joined),
            float(len({place for place in of_columns if place not in covered})),
            _compare_counted(question, option, catalogue),
        ]
        row += [0.0] * (len(TABLE_FEATURES) - len(row))
        if plan.operation in OPERATIONS:
            row[TABLE_FEATURES.index(f"operation {plan.operation}")] = 1.0
        row[TABLE_FEATURES.index(f"family {option.family}")] = 1.0
        rows.append(row)
    return rows


def _describe_names(
    option: TableOption, catalogue: TableCatalogue, joined: frozenset[int]
) -> tuple[float, float, float, float]:
    """Return of the column whose cells name what is asked for which of the columns of names it is, counted from 1,
    the share of its cells that are different, whether a word of its header names the table, and whether other tables
    have its cells; 0 without one."""
    query = option.plan.query
    column = query.group
    if column is None and query.aggregate == "values" and query.column in catalogue.names:
        column = query.column
    if column is None or column == GROUP or option.plan.formula:
        return 0.0, 0.0, 0.0, 0.0
    place = catalogue.names.index(column) + 1 if column in catalogue.names else 0
    different = len(catalogue.distinct(column)) / max(len(catalogue.table.rows), 1)
    has_word = bool(catalogue.labels[column].stems & catalogue.title.stems)
    return float(place), different, float(has_word), float(column in joined)


def _compare_counted(question: QuestionText, option: TableOption, catalogue: TableCatalogue) -> float:
    """Return 1 where what a question counts is what a plan gives, the rows of a table by its name or the names of its
    rows, or a column by its header; -1 where it is not, 0 where the question counts nothing."""
    if question.counted is None:
        return 0.0
    query = option.plan.query
    labels = [catalogue.labels[column] for column in (query.column,) if column is not None]
    if query.column is None:
        labels = [catalogue.title, *(catalogue.labels[column] for column in catalogue.names)]
    stem = question.words[question.counted].stem
    return 1.0 if any(_shares_root(stem, label.stems) for label in labels) else -1.0


def _compare_bounds(question: QuestionText, option: TableOption) -> tuple[float, float, float]:
    """Return whether a plan bounds the numbers and days that it has of the question from the side that the words
    beside them say (1, or -1 for another), whether with the bound itself, as they say, and whether it bounds one from
    one side where no word does; 0 where nothing is to be compared."""
    query = option.plan.query
    operators = {each.operator for each in (*query.conditions, *query.part)}
    if across := {each for each in operators if each in _ACROSS}:
        words = {word.text for word in question.words}
        sides = {side for side, own in _ACROSS.items() if own & words}
        return (1.0 if across <= sides else -1.0, 0.0, 0.0) if sides else (0.0, 0.0, 1.0)
    operators = {each for each in operators if each in _SIDES}
    asked = {question.bounds[number] for number in option.values} - {""}
    # A number that is a cell is not bounded.
    asked |= {
        bound
        for places, bound in zip(question.value_places, question.bounds, strict=True)
        if bound and any(places <= cell.words for cell in option.cells)
    }
    own, wanted = ({_SIDES[each] for each in side} for side in (operators, asked))
    if not wanted:
        return 0.0, 0.0, float(bool(option.values) and len(own) == 1)
    if len(own) > 1 and len(option.values) > 1:
        return 0.0, 0.0, 0.0
    if own != wanted:
        return -1.0, 0.0, 0.0
    return 1.0, 1.0 if operators == asked else -1.0, 0.0


def _compare_orders(
    question: QuestionText, option: TableOption, catalogue: TableCatalogue
) -> tuple[float, float]:
    """Return whether the two numbers of a formula come in the order in which the question names their columns or
    rows, and in that of the numbers in their headers or names: 1, -1 for the reverse, 0 where neither is known."""
    plan = option.plan
    if plan.other is None or plan.query.column is None or plan.other.column is None:
        return 0.0, 0.0
    if plan.query.column != plan.other.column:
        columns = [plan.query.column, plan.other.column]
        names = [catalogue.table.columns[place].header for place in columns]
        stems = [catalogue.labels[place].stems for place in columns]
        digits = [frozenset(_NUMBERS.findall(name)) for name in names]
        places = [
            frozenset(
                place
                for place, word in enumerate(question.words)
                if word.text in digits[side] or (word.is_content and _shares_root(word.stem, stems[side]))
            )
            for side in (0, 1)
        ]
    else:
        names = [cell.value for cell in option.cells]
        places = [cell.words for cell in option.cells]
    numbers = [[int(number) for number in _NUMBERS.findall(name)] for name in names]
    own = [min(places[side] - places[1 - side], default=-1) for side in (0, 1)]
    mentioned = 0.0 if min(own) < 0 else float(np.sign(own[1] - own[0]))
    return mentioned, float((numbers[0] < numbers[1]) - (numbers[0] > numbers[1]))


def _leaves_out(question: QuestionText, option: TableOption, catalogue: TableCatalogue) -> bool:
    """Return whether a plan leaves out a name of the question, or a number or a day that the name of its table does
    not have."""
    title = catalogue.title.text
    return _leaves_name_out(question, option, catalogue) or any(
        not any(text in title for text in question.values[number].texts)
        for number in _left_values(question, option, catalogue)
    )


def _left_values(question: QuestionText, option: TableOption, catalogue: TableCatalogue) -> list[int]:
    """Return which numbers and days of a question a plan leaves out: it does not compare with them, nor do they
    stand in its cells or headers, nor say how many rows are asked for."""
    query = option.plan.query
    cuts = {str(number) for number in (query.limit or 1, query.offset + 1) if number > 1}
    return [
        number
        for number, value in enumerate(question.values)
        if number not in option.values
        and not any(question.value_places[number] <= cell.words for cell in option.cells)
        and not _in_headers(value.texts, option, catalogue)
        and value.texts[0] not in cuts
    ]


def _leaves_name_out(question: QuestionText, option: TableOption, catalogue: TableCatalogue) -> bool:
    """Return whether a plan leaves out a name: a word with a capital inside a sentence that is in none of its cells
    and headers, nor in the name of its table."""
    labels = [catalogue.title, *(catalogue.labels[column] for column in option.columns if column != GROUP)]
    covered = frozenset(place for cell in option.cells for place in cell.words)
    return any(
        word.is_content
        and question.text[word.start].isupper()
        and question.text[: word.start].rstrip()[-1:] not in ("", ".", "?", "!")
        and place not in covered
        and not any(place in places for places in question.value_places)
        and not any(_shares_root(word.stem, label.stems) for label in labels)
        for place, word in enumerate(question.words)
    )


def _shares_root(stem: str, stems: frozenset[str]) -> bool:
    return any(share_root(stem, other) for other in stems)


def _in_headers(texts: Sequence[str], option: TableOption, catalogue: TableCatalogue) -> bool:
    headers = " ".join(
        catalogue.table.columns[column].header + " " + catalogue.table.columns[column].name
        for column in option.columns
        if column != GROUP
    )
    return any(text in headers or (len(text) == 4 and text[-2:] in headers) for text in texts)


def shape_of(
    read: ReadTables, catalogues: Sequence[TableCatalogue], encoder: Encoder
) -> tuple[NDArray[np.int64], Floats]:
    """Return what the shape of a question is read from: the buckets of its words, with cells, columns and numbers
    masked, and its vector."""
    question = read.question
    of_cells = {
        place
        for own in read.cells.values()
        for cell, score in own[:6]
        if cell.is_exact and score > CERTAIN
        for place in cell.words
    }
    headers = frozenset(
        stem for catalogue in catalogues for label in catalogue.labels for stem in label.stems
    )
    masked: list[str] = []
    for place, word in enumerate(question.words):
        value = next((each for each in question.values if each.start <= word.start < each.end), None)
        if place in of_cells:
            mark = "" if masked and masked[-1] == "<cell>" else "<cell>"
        elif value is not None:
            mark = ("<date>" if value.is_date else "<number>") if value.start == word.start else ""
        elif word.is_content and word.stem in headers:
            mark = "<column>"
        else:
            mark = word.text
        # "gross > 80000"
        before = question.words[place - 1].end if place else 0
        masked += [*_SYMBOLS.findall(question.text[before : word.start]), *[mark] * bool(mark)]
    ending = "<end?>" if question.text.rstrip().endswith("?") else "<end>"
    return hash_runs(["<start>", *masked, ending]), encoder.encode([question.text])[0]


def add_table_shapes(features: Floats, logs: Mapping[str, float], shapes: Sequence[str]) -> None:
    """Write the log probabilities of the ``shapes`` of options and of their parts into their features."""
    features[:, :SHAPES] = measure_shapes(logs, shapes)


def run_options(read: ReadTables, places: Iterable[int]) -> Iterator[TableCandidate]:
    """Yield some options, run, with the features of what came of them; not formulas over several rows or none."""
    asked = fold_name(read.question.text)
    for place in places:
        option, catalogue = read.options[place]
        result = run_table_plan(catalogue.arrays, option.plan)
        plan = option.plan
        is_formula = plan.formula not in ("", EACH)
        expected = (len(plan.along) if plan.formula == EACH else 1, int(plan.other is not None))
        is_of_cells = plan.formula not in ("", MEAN_DIFFERENCE)
        if is_of_cells and (len(result.rows), len(result.others)) != expected:
            continue
        features = read.features[place].copy()
        values = {str(row.value) for row in result.rows if row.value is not None}
        names = {fold_name(row.name) for row in result.rows if row.name}
        answers = names if option.plan.query.descending is not None else {fold_name(text) for text in values}
        rows = sum(len(row.rows) for row in result.rows)
        features[OUTCOMES : OUTCOMES + 5] = (
            math.log1p(rows),
            rows == 0 or (is_formula and result.number is None),
            rows > 0 and not values,
            math.log1p(len(values)) if option.plan.query.aggregate == "values" else 0.0,
            any(len(text) > 2 and text in asked for text in answers),
        )
        yield TableCandidate(option, catalogue, features, 0.0, result)


def rank_tables(
    model: TableModel, linear: Floats, measured: Floats, answers: Sequence[object], corrections: Floats
) -> tuple[list[int], Floats, Floats]:
    """Return the order of options by the ``linear`` score and the judge's correction together, their shares of the
    probability, and the features of the confidence in the first, (:data:`TABLE_CONFIDENCE`,). ``measured`` are their
    :data:`TABLE_FEATURES`; options with equal ``answers`` answer the same."""
    total = model.scale * linear + corrections
    order = np.argsort(-total, kind="stable").tolist()
    first = order[0]
    alike = np.array([each == answers[first] for each in answers])
    with_none, alone = np.append(total, model.none), np.exp(linear - linear.max())
    chances = np.exp(with_none - with_none.max())
    shares, alone = chances[:-1] / chances.sum(), alone / alone.sum()
    others = total[~alike]
    # Where all answer the same, because nothing else could be computed, nothing speaks for it.
    distance = float(np.clip(total[first] - others.max(), 0, 8)) if len(others) else 0.0
    features = dict(zip(TABLE_FEATURES, measured[first].tolist(), strict=True)) | {
        "log-odds of its share": log_odds(float(shares[alike].sum())),
        "log-odds of its share without the judge": log_odds(float(alone[alike].sum()))
        if len(others)
        else 0.0,
        "the features have it first, too": float(bool(alike[int(np.argmax(linear))])),
        "distance to the next with another answer": distance,
        "correction by the judge": float(corrections[first]),
        "bias": 1.0,
    }
    return order, shares, np.array([features[name] for name in TABLE_CONFIDENCE])
