"""Questions over tables with their meaning, prepared for training: the options of each, and which are right.

A folder has ``tables/`` with files as people have them and ``questions.jsonl``: ``question``, ``sql`` over clean
views of the tables, and its ``result``. An option is right if it is over the table that the SQL names, gives its
result, and uses no column that this SQL does not name but another of the folder does: a clean view may call columns
otherwise.

A part of TAT-QA (Zhu et al., ACL 2021) is asked beside the table of each context and two others. An option over its
own table is right if it gives the answer; what a paragraph answers no table does.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import UsageError
from clew.evaluate.datasets.tables import read_tatqa
from clew.knowledge_base.knowledge_base import ENCODER_SETTING, encoder_setting
from clew.knowledge_base.knowledge_base import open as open_base
from clew.parse.data_tables import build_data_table, parse_day
from clew.questions.slots import OnceEncoder
from clew.questions.table_catalogue import CELL_FEATURES, COLUMN_FEATURES, TableCatalogue
from clew.questions.table_plans import CHANGE, DIFFERENCE, EACH, HIGHER, LOWER, NAMELESS, TableOption
from clew.questions.table_query import GROUP, TableArrays
from clew.questions.table_reading import (
    TABLE_FEATURES,
    TableResult,
    read_tables,
    run_options,
    shape_of,
)
from clew.questions.text import QuestionText

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder
    from clew.evaluate.examples import Example

#: The folder of a world's tables.
TABLES = "tables"
#: Options of a question that are kept for training, besides the right ones: the likeliest by their slots, and others.
LIKELY, SAMPLED = 250, 250


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question over the tables of a ``world``, the SQL that it means and the ``result`` of it; "" and () where it
    cannot be asked. ``context`` is that of TAT-QA, where there is no SQL but the derivation of the answer."""

    world: str
    question: str
    sql: str
    result: tuple[tuple[str, ...], ...]
    kind: str
    wording: str
    context: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TableSlots:
    """The features of the columns and cells of all tables for a question, and which of them its SQL names;
    ``cell_columns`` has the row of each cell's column, -1 for the heading of a group."""

    columns: Floats
    named_columns: NDArray[np.bool_]
    cells: Floats
    named_cells: NDArray[np.bool_]
    cell_columns: NDArray[np.int64]

    def with_columns(self, columns: Floats) -> Floats:
        """Return the features of cells with the log-odds of the column of each."""
        features = self.cells.copy()
        features[:, CELL_FEATURES.index("log-odds of the column")] = columns
        return features


@dataclass(slots=True, eq=False)
class TableExample:
    """A question with its options: their ``features`` after they are run, (options, :data:`TABLE_FEATURES`), their
    shapes, their answers, which are ``right``, and how they are said; ``buckets`` and ``vector`` are what its shape
    is read from."""

    question: TableQuestion
    features: Floats
    shapes: list[str]
    answers: list[int]
    right: NDArray[np.bool_]
    sentences: list[str]
    buckets: NDArray[np.int64]
    vector: Floats

    @property
    def meant(self) -> str:
        """The shape of the first right option."""
        return self.shapes[int(np.flatnonzero(self.right)[0])]


def read_world(folder: Path) -> list[TableQuestion]:
    """Return the questions of a folder. Raises UsageError for a folder without them."""
    file = folder / "questions.jsonl"
    if not file.is_file() or not (folder / TABLES).is_dir():
        raise UsageError(f"no questions over tables in {folder}", "It needs tables/ and questions.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        TableQuestion(
            folder.name,
            row["question"],
            row["sql"],
            tuple(tuple(map(str, cells)) for cells in row["result"]),
            row["kind"],
            row["wording"],
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where questions over tables are taken from: the folder of a world, or one of the :data:`PARTS` of the file of
    TAT-QA."""

    path: Path
    part: int = 0

    @property
    def name(self) -> str:
        """The name of the world, or "TAT-QA" with the number of the part."""
        return self.path.name if self.is_world else f"{TAT_QA} {self.part}"

    @property
    def is_world(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    def read(self) -> list[TableQuestion]:
        """Return its questions. Raises UsageError."""
        return read_world(self.path) if self.is_world else [each for _, each in read_contexts(self)]

    def open(self, encoder: Encoder) -> TableBase:
        """Return its tables, to be closed."""
        return World(self.path, encoder) if self.is_world else Contexts(self, encoder)


#: The file of TAT-QA and its parts: of every fifth context ``benchmarks/tables.py`` gives figures.
TAT_QA, CONTEXTS, PARTS = "TAT-QA", "dev.json", 10


def read_contexts(source: TableSource) -> list[tuple[Example, TableQuestion]]:
    """Return the questions of a part of TAT-QA."""
    examples = list(read_tatqa(source.path))
    titles = list(dict.fromkeys(example.corpus[0].title for example in examples))
    order = list(range(len(titles)))
    random.Random(0).shuffle(order)
    own = {title for place, title in zip(order, titles, strict=True) if place % PARTS == source.part}
    questions = []
    for example in examples:
        title, meta = example.corpus[0].title, example.meta
        if title in own:
            result: tuple[tuple[str, ...], ...] = ()
            if meta["source"] != "text":
                result = tuple((_plain_number(value),) for value in meta["values"])
            meant = str(meta["derivation"]) or TAT_QA if result else ""
            asked = TableQuestion(
                source.name, example.question, meant, result, str(meta["kind"]), TAT_QA, title
            )
            questions.append((example, asked))
    return questions


def _plain_number(text: str) -> str:
    """Return a number without currency, separators and parentheses; any other text as it is."""
    plain = text.strip("$€£¥()%−- ").replace(",", "")
    sign = "-" if text.strip("$€£¥ ")[:1] in ("-", "−", "(") else ""
    return sign + plain if plain.replace(".", "", 1).isdigit() else text


class TableBase(ABC):
    """Tables that questions are asked of: all ``catalogues`` of a source."""

    def __init__(self, encoder: Encoder, catalogues: Sequence[TableCatalogue]) -> None:
        self.encoder, self.catalogues = encoder, catalogues
        self.closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.close()

    @abstractmethod
    def choose_tables(self, question: TableQuestion) -> Sequence[TableCatalogue]:
        """Return the tables that a question is asked beside."""

    @abstractmethod
    def slots(self, question: TableQuestion) -> TableSlots:
        """Return what the weights of columns and cells are fitted to."""

    @abstractmethod
    def uses(self, option: TableOption, catalogue: TableCatalogue, question: TableQuestion) -> bool:
        """Return whether an option uses what the question means, if its result is right."""

    def prepare(self, question: TableQuestion, columns: Floats, cells: Floats) -> TableExample:
        """Return a question with its options, run."""
        text, catalogues = QuestionText(question.question), self.choose_tables(question)
        read = read_tables(text, catalogues, columns, cells, self.encoder)
        buckets, vector = shape_of(read, catalogues, self.encoder)
        order = np.argsort(-np.array([option.score for option, _ in read.options])).tolist()
        # The score chooses among all options, not among the likeliest by their slots alone.
        chooser, likely, others = random.Random(question.question), order[:LIKELY], order[LIKELY:]
        likely += chooser.sample(others, min(SAMPLED, len(others)))
        fitting = [
            place
            for place, (option, catalogue) in enumerate(read.options)
            if question.sql and self.uses(option, catalogue, question)
        ]
        candidates = list(run_options(read, dict.fromkeys([*fitting, *likely])))
        fits = {id(read.options[place][0]) for place in fitting}
        right = [
            id(each.option) in fits
            and gives_result(each.result, each.option, question.result, bool(question.context))
            for each in candidates
        ]
        return TableExample(
            question,
            np.array([each.features for each in candidates], dtype=np.float64).reshape(
                -1, len(TABLE_FEATURES)
            ),
            [each.option.plan.shape for each in candidates],
            [hash((id(each.catalogue), each.result.key)) for each in candidates],
            np.array(right, dtype=bool),
            [each.say_beside(text) for each in candidates],
            buckets,
            vector,
        )


class Contexts(TableBase):
    """The tables of a part of TAT-QA. What its questions name is not known, so that no weights of columns and cells
    are fitted to it."""

    def __init__(self, source: TableSource, encoder: Encoder) -> None:
        read = read_contexts(source)
        tables = {example.corpus[0].title: example.corpus[0].table for example, _ in read}
        built = {title: build_data_table(table) for title, table in tables.items() if table is not None}
        self._by_title = {
            title: TableCatalogue(TableArrays(replace(table, name=NAMELESS)))
            for title, table in built.items()
            if len(table.rows) > 1 and len(table.columns) > 1 and not table.table.headers_uncertain
        }
        super().__init__(encoder, list(self._by_title.values()))

    def choose_tables(self, question: TableQuestion) -> Sequence[TableCatalogue]:
        """Return the table of the question's context and two others, in random order."""
        chooser = random.Random(question.question)
        own = self._by_title.get(question.context)
        others = [each for each in self.catalogues if each is not own]
        tables = [*chooser.sample(others, min(2, len(others))), *([] if own is None else [own])]
        return chooser.sample(tables, len(tables))

    def slots(self, question: TableQuestion) -> TableSlots:
        """Return nothing."""
        nothing = np.zeros((0, len(CELL_FEATURES)))
        none = np.zeros(0, dtype=bool)
        return TableSlots(
            np.zeros((0, len(COLUMN_FEATURES))), none, nothing, none, np.zeros(0, dtype=np.int64)
        )

    def uses(self, option: TableOption, catalogue: TableCatalogue, question: TableQuestion) -> bool:
        """Return whether an option is over the table of the question's context."""
        return catalogue is self._by_title.get(question.context)


class World(TableBase):
    """The tables of a folder in a base in a temporary folder until it is closed."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        from clew.methods.tables.method import open_tables

        temporary = tempfile.TemporaryDirectory()
        base = open_base(
            Path(temporary.name) / "base",
            create=True,
            settings={ENCODER_SETTING: encoder_setting("none")},
        )
        base.add(folder / TABLES)
        self._is_named = cache(partial(_names, "\n".join(each.sql for each in read_world(folder))))
        tables = open_tables(base.store.snapshot())
        super().__init__(encoder, [TableCatalogue(TableArrays(table)) for table in tables])
        self.closing.callback(temporary.cleanup)
        self.closing.callback(base.close)

    def choose_tables(self, question: TableQuestion) -> Sequence[TableCatalogue]:
        """Return all tables."""
        return self.catalogues

    def slots(self, question: TableQuestion) -> TableSlots:
        """Return what the weights of columns and cells are fitted to."""
        text, sql = QuestionText(question.question), _fold(question.sql)
        columns: list[Floats] = []
        named_columns: list[bool] = []
        cells: list[tuple[float, ...]] = []
        named_cells: list[bool] = []
        cell_columns: list[int] = []
        encoder = OnceEncoder(self.encoder)
        for catalogue in self.catalogues:
            start = len(named_columns)
            own = catalogue.measure_columns(text, encoder)
            is_asked = bool(sql) and _fold(catalogue.table.name) in sql
            names = [is_asked and _names(question.sql, column.header) for column in catalogue.table.columns]
            columns.append(own)
            named_columns += names
            for cell in catalogue.find_cells(text, [0.0] * len(own), encoder):
                is_group = cell.column == GROUP
                cells.append(cell.features)
                cell_columns.append(-1 if is_group else start + cell.column)
                named = is_asked and (is_group or names[cell.column])
                named_cells.append(named and _gives(question.sql, cell.value))
        return TableSlots(
            np.concatenate([np.zeros((0, len(COLUMN_FEATURES))), *columns]),
            np.array(named_columns, dtype=bool),
            np.array(cells).reshape(-1, len(CELL_FEATURES)),
            np.array(named_cells, dtype=bool),
            np.array(cell_columns, dtype=np.int64),
        )

    def uses(self, option: TableOption, catalogue: TableCatalogue, question: TableQuestion) -> bool:
        """Return whether the SQL names the table of an option and all columns that the option uses, of those that the
        clean views have under their name."""
        sql = question.sql
        if _fold(catalogue.table.name) not in _fold(sql):
            return False
        headers = [catalogue.table.columns[column].header for column in option.columns if column != GROUP]
        return all(not header or _names(sql, header) or not self._is_named(header) for header in headers)


def _fold(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _names(sql: str, header: str) -> bool:
    """Return whether SQL names a column: in quotation marks, or as a word."""
    name = re.escape(header)
    return bool(header) and bool(re.search(rf'"{name}"|(?<![\w"]){name}(?![\w"])', sql, re.IGNORECASE))


def _gives(sql: str, value: str) -> bool:
    """Return whether SQL gives a value of a cell, as a text or a number."""
    literals = re.findall(r"'((?:[^']|'')*)'|(?<![\w\"'])(-?\d+(?:\.\d+)?)(?![\w\"'])", sql)
    wanted = {_fold(text or number) for text, number in literals}
    return _fold(value) in wanted


def gives_result(
    result: TableResult, option: TableOption, wanted: Sequence[tuple[str, ...]], is_signed: bool = False
) -> bool:
    """Return whether what came of an option is the result of the SQL: as many rows, each of whose values stand in a
    row of it. Of a difference the sign has to be right where it ``is_signed``, of a change in percent always."""
    if not wanted:
        return False
    plan = option.plan
    if result.number is not None and plan.formula not in (HIGHER, LOWER):
        fits = len(wanted) == 1 and any(_same(cell, result.number) for cell in wanted[0])
        # Whether something grew or shrank is part of the answer, where there is but one.
        is_signed = plan.formula == CHANGE or (plan.formula == DIFFERENCE and is_signed)
        return fits and (not is_signed or wanted[0][0].startswith("-") == (result.number < 0))
    if plan.formula in (HIGHER, LOWER):
        if result.number is None:
            return False
        rows = [row for row in (*result.rows, *result.others) if row.value == result.number]
        return (
            len(wanted) == 1
            and len(rows) == 1
            and any(_fold(cell) == _fold(rows[0].name) for cell in wanted[0])
        )
    if plan.formula not in ("", EACH):
        return False
    if wanted == (("",),):
        return bool(result.rows) and all(row.value is None for row in result.rows)
    own = {(row.name, row.value) for row in result.rows if row.value is not None}
    if plan.query.aggregate == "values" and plan.query.group is None and len(wanted[0]) == 1:
        own = {("", value) for _, value in own}
    expected = set(wanted)
    if len(own) != len(expected):
        return False
    return all(any(_fits(name, value, row) for row in expected) for name, value in own)


def _fits(name: str, value: float | str | None, row: tuple[str, ...]) -> bool:
    """Return whether a row of a result is one of the SQL: its name and its value, or, where the SQL gives one cell of
    each row, or the result has no names, that."""
    if not name:
        return _same(row[0], value)
    if len(row) == 1:
        return _fold(row[0]) == _fold(name)
    return any(_fold(cell) == _fold(name) for cell in row) and any(_same(cell, value) for cell in row)


def _same(cell: str, value: float | str | None) -> bool:
    """Return whether a cell of a result has a value, whatever the sign: what is lost may be written as negative."""
    if isinstance(value, str):
        # Of a time the SQL gives the seconds, too.
        parts, others = (
            sorted(map(int, re.findall(r"\d+", re.sub(r"(?<=\d:\d\d):00$", "", text))))
            for text in (cell, value)
        )
        is_time = len(parts) in (3, 5) and parts == others
        is_day = is_time or _is_day(cell, value, others)
        return is_day or _fold(cell) == _fold(value) or bool(_numbers(cell) & _numbers(value))
    try:
        number = float(cell)
    except ValueError:
        return False
    assert value is not None
    number, value = abs(number), abs(value)
    decimals = len(cell.partition(".")[2])
    return abs(number - value) <= 0.51 * 10.0**-decimals if decimals else abs(number - value) < 1e-6


def _is_day(cell: str, value: str, parts: Sequence[int]) -> bool:
    """Return whether a day of a result, in ISO form, is what a cell says with the name of a month, or stands for the
    month that the cell has in digits."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", cell[:10]):
        return False
    return str(parse_day(value)) == cell[:10] or list(parts) == [int(cell[5:7]), int(cell[:4])]


def _numbers(text: str) -> set[float]:
    """Return the numbers that a text may be: 1.234 is 1234, too."""
    digits = re.sub(r"[^\d.,-]", "", text)
    numbers = set()
    for point, mark in ((".", ","), (",", ".")):
        try:
            numbers.add(float(digits.replace(mark, "").replace(point, ".")))
        except ValueError:
            continue
    return numbers
