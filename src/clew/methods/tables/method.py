"""Questions over tables: a plain question read by clew's own models, or SQL that a language model writes; else the
documents.

:class:`clew.questions.table_reading.TableReader` finds the queries over the tables of CSV files and workbooks that a
question may mean, and how likely each is. The likeliest is run exactly as it reads; an empty cell and no row are
answers. With a language model, it writes SQL over the tables that search finds, of any format
(:mod:`clew.methods.tables.sql_writer`), where no reading is likely enough to be stated. What neither answers goes to
the documents, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.core.component import Recipe, Resources, component
from clew.core.errors import BudgetExceeded, MissingExtra, ModelError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Method, Retriever, Snapshot, Trail
from clew.core.text import query_terms
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import (
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
from clew.methods.readers.table_answers import (
    QUOTED,
    answer_reading,
    name_views,
    open_catalogue,
    open_table,
    quote_rows,
)
from clew.methods.tables.sql_engine import import_duckdb
from clew.methods.tables.sql_writer import SqlAnswer, SqlWriter
from clew.parse.data_tables import DATA_TYPES, DataTable, table_from_node
from clew.questions.table_reading import TableReader, TableReading

#: At most so many tables of such files are read for a question; those whose names it mentions come first.
_MAX_DATA_TABLES = 40
#: A model is shown at most so many tables; they are looked for among so many hits.
_SHOWN_TABLES, _TABLE_HITS = 8, 30


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
            catalogue = open_catalogue(id, name, self.snapshot)
            if catalogue is not None:
                catalogues.append(catalogue)
        return self.reader.read(question.text, catalogues, MAX_POSSIBLE) if catalogues else ()

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
        tables = [
            (id, name) for id, name in name_views(self.snapshot).items() if id.rpartition(":")[0] in keys
        ]
        shared = {id: len(words & frozenset(query_terms(name.replace("_", " ")))) for id, name in tables}
        return sorted(tables, key=lambda table: -shared[table[0]])[:_MAX_DATA_TABLES]

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
        return answer_reading(question.text, reading, self.snapshot, recorder, self.recipe, is_data=True)

    # With a model

    def _ask_model(self, question: Question, recorder: TrailRecorder) -> Answer | None:
        assert self.writer is not None and self.search is not None
        hits = retrieve_with_trail(self.search, question, _TABLE_HITS, recorder)
        tables = self._choose_tables(question, hits)
        if not tables:
            return None
        try:
            import_duckdb()  # without it the model's query could not be run
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
        names = name_views(self.snapshot)
        tables = [
            open_table(id, names[id], self.snapshot) for id in chosen[: 2 * _SHOWN_TABLES] if id in names
        ]
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
        quoted = list(cells)[:QUOTED]
        names = name_views(self.snapshot)
        shown = [(id, *self._find_cell(id, column, names)) for id, column in quoted]
        assert self.writer is not None
        plan = Plan("table", answer.sql, "query")
        return quote_rows(answer.values, shown, self.snapshot, self.writer.model.name, plan, self.recipe)

    def _find_cell(self, id: str, column: str, names: Mapping[str, str]) -> tuple[str, int | None]:
        """Return the text and the number of the column of a row's cell; "" and None where there is none."""
        (node,) = self.snapshot.nodes(self.snapshot.rows([id]))
        if not column or node.parent is None or node.parent not in names:
            return "", None
        table = open_table(node.parent, names[node.parent], self.snapshot)
        place = next((n for n, known in enumerate(table.columns) if known.name == column), None)
        row = next((row for row in table.rows if row.id == id), None)
        return ("", None) if row is None or place is None else (row.cells[place], place)


def open_tables(snapshot: Snapshot) -> list[DataTable]:
    """Return the tables of files that are nothing but tables, those alone whose columns have names."""
    data = {document.key for document in snapshot.documents() if document.media_type in DATA_TYPES}
    tables = []
    for id, name in name_views(snapshot).items():
        if id.rpartition(":")[0] in data:
            table = table_from_node(snapshot.nodes(snapshot.rows([id]))[0], name)
            if len(table.rows) > 1 and len(table.columns) > 1 and not table.table.headers_uncertain:
                tables.append(table)
    return tables


def is_stated(readings: Sequence[TableReading]) -> bool:
    """Return whether the first reading is likely enough to be stated."""
    return bool(readings) and readings[0].probability >= STATED_FROM
