"""Questions over tables: a plain question read by clew's own models, or SQL that a language model writes; else the
documents.

:class:`clew.questions.table_reading.TableReader` finds the queries over the tables of CSV files and workbooks that a
question may mean, and how likely each is. The likeliest is run exactly as it reads; an empty cell and no row are
answers. With a language model, it writes SQL over the tables that search finds, of any format
(:mod:`clew.methods.tables.sql_writer`), where no reading is likely enough to be stated. What neither answers goes to
the documents, and the answer says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from clew.core.component import Recipe, Resources, component
from clew.core.errors import BudgetExceeded, MissingExtra, ModelError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Method, Retriever, Snapshot, Trail
from clew.core.text import query_terms
from clew.core.trail import TableQueryStep, TrailRecorder, retrieve_with_trail
from clew.core.types import (
    KINDS,
    MAX_POSSIBLE,
    ROW,
    SHOWN_FROM,
    STATED_FROM,
    TABLE,
    Answer,
    FallbackStep,
    Hit,
    Plan,
    Question,
)
from clew.methods.answering import record_stop
from clew.methods.readers.quotes import quote_cell
from clew.methods.tables.sql_writer import SqlAnswer, SqlWriter, format_amount, format_value
from clew.parse.data_tables import DATA_TYPES, DataTable, name_tables, table_from_node
from clew.questions.table_catalogue import TableCatalogue
from clew.questions.table_plans import CHANGE, DIFFERENCE, HIGHER, LOWER, RATIO, SHARE
from clew.questions.table_query import GROUP, ResultRow, TableArrays, TableQuery
from clew.questions.table_reading import TableReader, TableReading
from clew.questions.text import QuestionText

#: At most so many tables of such files are read for a question; those whose names it mentions come first.
_MAX_DATA_TABLES = 40
#: A model is shown at most so many tables; they are looked for among so many hits.
_SHOWN_TABLES, _TABLE_HITS = 8, 30
#: Parts of an answer that are printed, and rows that are quoted.
_PRINTED, _QUOTED = 50, 5


@component(
    "tables(documents=kgp)",
    kind="recipe",
    summary="questions over tables as data: cells, counts, sums, top n, changes and shares of CSV files and "
    "workbooks, read by clew's own models; others by SQL that the language model writes, checked against the cells; "
    "else the documents",
)
@dataclass(frozen=True, slots=True)
class TableQuestions:
    """Answers questions from tables, and those that no table answers from ``documents``.

    ``search`` finds tables for the model, ``writer`` is None without one.
    """

    snapshot: Snapshot
    documents: Method
    reader: TableReader
    search: Retriever | None = None
    writer: SqlWriter | None = None
    recipe: str = "tables"

    @classmethod
    def build(cls, resources: Resources, recipe: str, documents: Recipe) -> TableQuestions:
        """Return the method; ``documents`` is the recipe for what no table answers. Raises UsageError."""
        alone = replace(resources, model=None)
        model = resources.model
        return cls(
            resources.snapshot,
            resources.registry.build("recipe", documents, alone),
            TableReader(resources.tools.plan_judge()),
            None if model is None else resources.retriever(Recipe("search")),
            None if model is None else SqlWriter(model, load_prompt("table-sql")),
            recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer of :meth:`ask`, else that of the documents, read without a model."""
        recorder = TrailRecorder.forwarding_to(trail)
        answer = self.ask(question, recorder)
        if answer is None:
            answer = self.documents.answer(question, recorder)
        return replace(
            answer, trail=tuple(recorder.steps), usage=recorder.usage(), recipe=answer.recipe or self.recipe
        )

    def has_tables(self, question: Question) -> bool:
        """Return whether there is a table in the scope of a question."""
        return bool(np.any(self.snapshot.mask(question.scope, (TABLE,))))

    def ask(self, question: Question, recorder: TrailRecorder) -> Answer | None:
        """Return the answer of the tables: of a reading that is to be stated, else of the model's SQL, else of the
        likeliest readings as possible ones, else None.

        Where the model gave no usable query, the trail has a step that says so.
        """
        if not question.text.strip() or not self.has_tables(question):
            return None
        readings = self.read(question)
        if self.writer is not None and not is_stated(readings):
            answer = self._ask_model(question, recorder)
            if answer is not None:
                return answer
        return self.answer_readings(question, readings, recorder)

    # By clew's own models

    def read(self, question: Question) -> tuple[TableReading, ...]:
        """Return how a question reads over the tables of CSV files and workbooks, the likeliest first; () where
        nothing in them fits it. No model is asked."""
        catalogues = []
        for id, name in self._data_tables(question):
            catalogue: TableCatalogue | None = self.snapshot.memoize(
                f"table-catalogue/{id}/{name}", partial(self._open_catalogue, id, name), documents_only=True
            )
            if catalogue is not None:
                catalogues.append(catalogue)
        return self.reader.read(question.text, catalogues, MAX_POSSIBLE) if catalogues else ()

    def _open_catalogue(self, id: str, name: str) -> TableCatalogue | None:
        table = self._open_table(id, name)
        is_usable = len(table.rows) > 1 and len(table.columns) > 1 and not table.table.headers_uncertain
        return TableCatalogue(TableArrays(table)) if is_usable else None

    def _data_tables(self, question: Question) -> list[tuple[str, str]]:
        """Return the tables of files that are nothing but tables as (id, name)."""
        scope = question.scope.documents
        keys = {
            document.key
            for document in self.snapshot.documents()
            if document.media_type in DATA_TYPES and (scope is None or document.key in scope)
        }
        if not keys:
            return []
        words = frozenset(query_terms(question.text))
        tables = [(id, name) for id, name in self._table_names().items() if id.rpartition(":")[0] in keys]
        shared = {id: len(words & frozenset(query_terms(name.replace("_", " ")))) for id, name in tables}
        return sorted(tables, key=lambda table: -shared[table[0]])[:_MAX_DATA_TABLES]

    def _table_names(self) -> dict[str, str]:
        """Return the names of the views of all tables by the ids of their nodes."""
        names: dict[str, str] = self.snapshot.memoize(
            "table-names", partial(_name_all_tables, self.snapshot), documents_only=True
        )
        return names

    def _open_table(self, id: str, name: str) -> DataTable:
        node = self.snapshot.nodes(self.snapshot.rows([id]))[0]
        table: DataTable = self.snapshot.memoize(
            f"table/{id}", partial(table_from_node, node), documents_only=True
        )
        return replace(table, name=name)

    def answer_readings(
        self, question: Question, readings: Sequence[TableReading], recorder: TrailRecorder
    ) -> Answer | None:
        """Return the answer of the likeliest reading, with those of the next ones where it is not to be stated; None
        where none is likely."""
        likely = [reading for reading in readings if reading.probability >= SHOWN_FROM]
        if not likely:
            return None
        answer = self.answer_reading(question, likely[0], recorder)
        if not is_stated(readings):
            others = (self.answer_reading(question, reading, TrailRecorder()) for reading in likely[1:])
            answer = replace(answer, others=tuple(others))
        return answer

    def answer_reading(self, question: Question, reading: TableReading, recorder: TrailRecorder) -> Answer:
        """Return the answer of a reading, with the rows that it was made of."""
        started = time.perf_counter()
        query, result = reading.plan.query, reading.result
        rows = [row for row in (*result.rows, *result.others) if len(row.rows)]
        values = describe_reading(question.text, reading)
        recorder.add(
            TableQueryStep(
                reading.plan.sql,
                "clew's parser",
                query.table.name,
                "answered" if values else "no row fits" if not rows else "the cell is empty",
                seconds=time.perf_counter() - started,
            )
        )
        places = [place for row in rows for place in row.rows[:_QUOTED].tolist()][:_QUOTED]
        shown = query.column if query.column is not None else query.group
        cells = [
            (
                query.table.rows[place].id,
                "" if shown is None or shown == GROUP else query.table.rows[place].cells[shown],
                None if shown == GROUP else shown,
            )
            for place in places
        ]
        count = sum(len(row.rows) for row in rows)
        source = f"from {count:,} row{'s' * (count != 1)} of the table '{query.table.name}'"
        empty = (
            ""
            if values
            else f"Not given: {'the cell is empty' if rows else 'no row fits'}. Read as: {reading.sentence}"
        )
        plan = Plan("table", reading.plan.sql, reading.plan.operation)
        answer = self._make_answer(values or [empty], cells, "tables", plan)
        return replace(
            answer,
            values=tuple(values),
            empty=not values,
            confidence=reading.probability,
            formula=f"Read as: {reading.sentence}. Computed {source}.",
        )

    def _make_answer(
        self,
        values: Sequence[str],
        cells: Sequence[tuple[str, str, int | None]],
        reader: str,
        plan: Plan,
    ) -> Answer:
        """Return an answer with the rows that it quotes: (id of the row's node, the cell to mark, its column)."""
        printed = "; ".join(values[:_PRINTED])
        more = len(values) - _PRINTED
        nodes = self.snapshot.nodes(self.snapshot.rows([id for id, _, _ in cells])) if cells else []
        hits = tuple(Hit(node, 1.0, (node.id,)) for node in dict.fromkeys(nodes))
        quotes = (
            quote_cell(node, cell, column) for node, (_, cell, column) in zip(nodes, cells, strict=True)
        )
        return Answer(
            f"{printed}; and {more:,} more" if more > 0 else printed,
            hits,
            tuple(dict.fromkeys(quotes)),
            reader=reader,
            values=tuple(values) if len(values) > 1 else (),
            plan=plan,
            context=hits,
            recipe=self.recipe,
        )

    # With a model

    def _ask_model(self, question: Question, recorder: TrailRecorder) -> Answer | None:
        assert self.writer is not None and self.search is not None
        hits = retrieve_with_trail(self.search, question, _TABLE_HITS, recorder)
        tables = self._choose_tables(question, hits)
        if not tables:
            return None
        try:
            answer, problem = self.writer.answer(question.text, tables, recorder)
        except BudgetExceeded as error:
            record_stop(recorder, error)
            return None
        except (MissingExtra, ModelError) as error:
            answer, problem = None, error.problem
        if answer is None:
            recorder.add(
                FallbackStep("query over the tables", f"{problem}; the documents were read without a model")
            )
            return None
        return self._sql_answer(answer)

    def _choose_tables(self, question: Question, hits: Sequence[Hit]) -> list[DataTable]:
        """Return the tables of the best hits and those of data files whose names the question mentions."""
        ids = [hit.node.id if hit.node.kind == TABLE else hit.node.parent or "" for hit in hits
               if hit.node.kind in {TABLE, ROW}]  # fmt: skip
        named = [id for id, _ in self._data_tables(question)]
        chosen = list(dict.fromkeys([*filter(None, ids), *named]))
        names = self._table_names()
        tables = [self._open_table(id, names[id]) for id in chosen[: 2 * _SHOWN_TABLES] if id in names]
        # What a column of an uncertain table means is not known, so nothing can be computed from it.
        return [table for table in tables if table.rows and not table.table.headers_uncertain][:_SHOWN_TABLES]

    def _sql_answer(self, answer: SqlAnswer) -> Answer:
        result = answer.result
        cells: dict[tuple[str, str], None] = {}
        for row in range(len(result.rows)):
            for column in range(len(result.columns)):
                cells |= dict.fromkeys(result.source_cells(row, column))
            if not any(result.source_cells(row, column) for column in range(len(result.columns))):
                cells |= dict.fromkeys((id, "") for id in (result.sources[row] if result.sources else ()))
        quoted = list(cells)[:_QUOTED]
        names = self._table_names()
        shown = [(id, *self._find_cell(id, column, names)) for id, column in quoted]
        assert self.writer is not None
        plan = Plan("table", answer.sql, "query")
        return self._make_answer(answer.values, shown, self.writer.model.name, plan)

    def _find_cell(self, id: str, column: str, names: dict[str, str]) -> tuple[str, int | None]:
        """Return the text and the number of the column of a row's cell; "" and None where there is none."""
        (node,) = self.snapshot.nodes(self.snapshot.rows([id]))
        if not column or node.parent not in names:
            return "", None
        table = self._open_table(node.parent, names[node.parent])
        place = next((n for n, known in enumerate(table.columns) if known.name == column), None)
        row = next((row for row in table.rows if row.id == id), None)
        return ("", None) if row is None or place is None else (row.cells[place], place)


def open_tables(snapshot: Snapshot) -> list[DataTable]:
    """Return the tables of files that are nothing but tables, those alone whose columns have names."""
    data = {document.key for document in snapshot.documents() if document.media_type in DATA_TYPES}
    tables = []
    for id, name in _name_all_tables(snapshot).items():
        if id.rpartition(":")[0] in data:
            table = table_from_node(snapshot.nodes(snapshot.rows([id]))[0], name)
            if len(table.rows) > 1 and len(table.columns) > 1 and not table.table.headers_uncertain:
                tables.append(table)
    return tables


def _name_all_tables(snapshot: Snapshot) -> dict[str, str]:
    kinds = snapshot.column("kind")
    nodes = snapshot.nodes(np.flatnonzero(kinds == KINDS.index(TABLE)))
    nodes.sort(key=lambda node: (node.document, node.position))
    return {node.id: name for name, _, node in name_tables(nodes)}


def is_stated(readings: Sequence[TableReading]) -> bool:
    """Return whether the first reading is likely enough to be stated."""
    return bool(readings) and readings[0].probability >= STATED_FROM


def describe_reading(question: str, reading: TableReading) -> list[str]:
    """Return what a reading answers, each value in words; [] where no row fits or the cells are empty."""
    plan, result = reading.plan, reading.result
    if plan.other is None:
        return list(_describe_results(question, plan.query, result.rows))
    if result.number is None:
        return []
    number = abs(result.number)
    if plan.formula in (HIGHER, LOWER):
        rows = [*result.rows, *result.others]
        best = [row.name for row in rows if row.value == result.number]
        amounts = " and ".join(
            _describe_number(plan.query, row.value) for row in rows if isinstance(row.value, float)
        )
        return [f"{' and '.join(best)} ({amounts})"]
    if plan.formula == RATIO:
        return [format_amount(number, "", 1.0)]
    if plan.formula == SHARE:
        return [format_amount(number, "%", 1.0)]
    column = plan.query.column
    if column is not None and plan.query.table.columns[column].type == "date":
        return [f"{number:,.0f} day{'s' * (number != 1)}"]
    way = "more" if result.number > 0 else "less" if result.number < 0 else ""
    text = format_amount(number, "%", 1.0) if plan.formula == CHANGE else _describe_number(plan.query, number)
    return [f"{text} {way}".strip() if plan.formula in (CHANGE, DIFFERENCE) else text]


def _describe_results(question: str, query: TableQuery, results: Sequence[ResultRow]) -> tuple[str, ...]:
    """Return each row of a result in words; a list of cells has each once, as it is written."""
    values = []
    for result in results:
        if result.value is None:
            continue
        if query.aggregate == "values" and query.column is not None:
            text = query.table.rows[result.rows[0]].cells[query.column]
        elif isinstance(result.value, str):
            text = result.value
        elif query.aggregate == "count":
            text = f"{result.value:,.0f}{_name_counted(question)}"
        else:
            text = _describe_number(query, result.value)
        values.append(f"{result.name}: {text}" if result.name else text)
    return tuple(dict.fromkeys(values)) if query.aggregate == "values" else tuple(values)


def _name_counted(question: str) -> str:
    """Return what a question counts, behind a blank: the word after "how many"; "" where it has none."""
    words = QuestionText(question).words
    for first, second, third in zip(words, words[1:], words[2:], strict=False):
        if (first.text, second.text) == ("how", "many") and third.is_content:
            return f" {question[third.start : third.end]}"
    return ""


def _describe_number(query: TableQuery, value: float) -> str:
    if query.aggregate == "share":
        return format_amount(value, "%", 1.0)
    if query.column is None or query.aggregate in {"count", "distinct"}:
        return f"{value:,.0f}"
    column = query.table.columns[query.column]
    return format_value(value, column.header or column.name, column.unit, column.scale)
