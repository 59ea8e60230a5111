"""Questions over tables: a plain question read by rule, or SQL that a language model writes; else the documents.

Without a model, questions over CSV files and workbooks are read by rule (:mod:`clew.methods.tables.questions`) and
computed where every word of them has its place. With a model, it writes SQL over the tables that search finds, of any
format (:mod:`clew.methods.tables.sql_writer`). What neither answers goes to the documents, and the answer says so.
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
from clew.core.types import KINDS, ROW, TABLE, Answer, FallbackStep, Hit, Plan, Question
from clew.methods.answering import record_stop
from clew.methods.readers.quotes import quote_cell
from clew.methods.tables.query import ResultRow, TableArrays, TableQuery
from clew.methods.tables.questions import TableReading, TableVocabulary
from clew.methods.tables.sql_writer import SqlAnswer, SqlWriter, format_amount, format_value
from clew.parse.data_tables import DATA_TYPES, DataTable, name_tables, table_from_node

#: At most so many tables of such files are read for a question; those whose names it mentions come first.
_MAX_DATA_TABLES = 40
#: A model is shown at most so many tables; they are looked for among so many hits.
_SHOWN_TABLES, _TABLE_HITS = 8, 30
#: Parts of an answer that are printed, and rows that are quoted.
_PRINTED, _QUOTED = 50, 5


@component(
    "tables(documents=kgp)",
    kind="recipe",
    summary="questions over tables as data: plain ones by rule (counts, sums, top n of CSV files and workbooks), "
    "others by SQL that the language model writes, checked against the cells; else the documents",
)
@dataclass(frozen=True, slots=True)
class TableQuestions:
    """Answers questions from tables, and those that no table answers from ``documents``.

    ``search`` finds tables for the model, ``writer`` is None without one.
    """

    snapshot: Snapshot
    documents: Method
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
        """Return the answer of the tables: of a sure reading by rule, else of the model's SQL, else None.

        Where the model gave no usable query, the trail has a step that says so.
        """
        if not question.text.strip() or not self.has_tables(question):
            return None
        reading = self.read(question)
        if reading is not None and reading.is_sure:
            answer = self.execute(question, reading, recorder)
            if answer is not None or self.writer is None:
                return answer
        return None if self.writer is None else self._ask_model(question, recorder)

    # By rule

    def read(self, question: Question) -> TableReading | None:
        """Return how a question reads over the tables of CSV files and workbooks: the reading with most of its words,
        one without doubts before others. None where nothing in it fits a table. No model is asked."""
        readings: list[TableReading] = []
        for id, name in self._data_tables(question):
            vocabulary: TableVocabulary | None = self.snapshot.memoize(
                f"table-words/{id}/{name}", partial(self._open_vocabulary, id, name), documents_only=True
            )
            reading = None if vocabulary is None else vocabulary.read(question.text)
            if reading is not None:
                readings.append(reading)
        readings.sort(key=lambda reading: (not reading.is_sure, -reading.words, len(reading.doubts)))
        if not readings:
            return None
        best = readings[0]
        rivals = [other.table for other in readings[1:] if other.is_sure and other.words == best.words]
        if best.is_sure and rivals:
            return replace(best, doubts=(f"it fits the tables {', '.join([best.table, *rivals])}",))
        return best

    def _open_vocabulary(self, id: str, name: str) -> TableVocabulary | None:
        table = self._open_table(id, name)
        is_usable = len(table.rows) > 1 and len(table.columns) > 1 and not table.table.headers_uncertain
        return TableVocabulary(TableArrays(table)) if is_usable else None

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

    def execute(self, question: Question, reading: TableReading, recorder: TrailRecorder) -> Answer | None:
        """Return the answer to a reading, None where its result is empty."""
        started = time.perf_counter()
        arrays = TableArrays(reading.query.table)
        query = arrays.include_ties(reading.query)
        results = arrays.run(query)
        values = _describe_results(query, results)
        count = sum(len(result.rows) for result in results)
        recorder.add(
            TableQueryStep(
                query.sql,
                "clew's parser",
                query.table.name,
                "answered" if values else "no row fits",
                seconds=time.perf_counter() - started,
            )
        )
        if not values:
            return None
        rows = [place for result in results for place in result.rows[:_QUOTED].tolist()][:_QUOTED]
        shown = query.column if query.column is not None else query.group
        cells = [
            (query.table.rows[place].id, "" if shown is None else query.table.rows[place].cells[shown], shown)
            for place in rows
        ]
        formula = f"from {count:,} row{'s' * (count != 1)} of the table '{query.table.name}'"
        plan = Plan("table", query.sql, query.aggregate)
        return replace(self._make_answer(values, cells, "tables", plan), formula=formula, by_rule=True)

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


def _name_all_tables(snapshot: Snapshot) -> dict[str, str]:
    kinds = snapshot.column("kind")
    nodes = snapshot.nodes(np.flatnonzero(kinds == KINDS.index(TABLE)))
    nodes.sort(key=lambda node: (node.document, node.position))
    return {node.id: name for name, _, node in name_tables(nodes)}


def _describe_results(query: TableQuery, results: Sequence[ResultRow]) -> tuple[str, ...]:
    """Return each row of a result in words; a list of cells has each once."""
    values = []
    for result in results:
        if result.value is None:
            continue
        if query.names_only and result.name:
            values.append(result.name)
            continue
        text = result.value if isinstance(result.value, str) else _describe_number(query, result.value)
        values.append(f"{result.name}: {text}" if result.name else text)
    return tuple(dict.fromkeys(values)) if query.aggregate == "values" else tuple(values)


def _describe_number(query: TableQuery, value: float) -> str:
    if query.aggregate == "share":
        return format_amount(value, "%", 1.0)
    if query.column is None or query.aggregate in {"count", "distinct"}:
        return f"{value:,.0f}"
    column = query.table.columns[query.column]
    return format_value(value, column.header or column.name, column.unit, column.scale)
