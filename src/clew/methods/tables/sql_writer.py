"""A language model writes SQL for a question about tables; what comes back is checked before it is an answer.

The model is shown tables with their columns, types, units and some of their cells, as many as fit its context. Its
query is one SELECT that reads tables alone, within limits of time and memory. The answer is the result of the query:
nothing that the model says, and no value that is neither a cell nor computed from cells
(:func:`~clew.methods.tables.syntax.check_grounded`). A query that fails is returned to the model once, with the
reason.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from clew.core.errors import BadCompletion, UsageError
from clew.core.prompts.templates import Template
from clew.core.protocols import LanguageModel, Trail
from clew.core.text import shorten
from clew.core.trail import TableQueryStep
from clew.core.types import Usage
from clew.methods.prompting import make_passages_optional
from clew.methods.readers.table_answers import format_number, format_value
from clew.methods.tables.sql_engine import SqlResult, run_query
from clew.methods.tables.sql_process import QueryLimits
from clew.parse.data_tables import SCALE_NAMES, DataColumn, DataTable

#: Limits on a query of a model, and on what is shown to it: cells of a column, labels of a statement, columns.
LIMITS = QueryLimits(seconds=5.0, memory=256, rows=100)
_EXAMPLES, _LABELS, _COLUMNS, _CELL = 4, 40, 60, 40
_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """What a query gave: its text, its result, and the values of the answer, each in words."""

    sql: str
    result: SqlResult
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Asks ``model`` for SQL by the prompt ``template`` (``table-sql``)."""

    model: LanguageModel
    template: Template
    limits: QueryLimits = LIMITS

    def answer(
        self, question: str, tables: Sequence[DataTable], trail: Trail
    ) -> tuple[SqlAnswer | None, str]:
        """Return the answer, or None and why there is none. Raises ModelError, MissingExtra, BudgetExceeded.

        ``tables`` are the most relevant first; those that do not fit the model's context are left out.
        """
        shown = [describe_table(table) for table in tables]
        prompt = self.template.render(question=question, tables="\n\n".join(shown))
        prompt = make_passages_optional(prompt, shown)
        by_name = {table.name.lower(): table for table in tables}
        usage, problem, sql, first_problem = Usage(), "", "", ""
        started = time.perf_counter()
        answer: SqlAnswer | None = None
        for is_repair in (False, True):
            again = "" if not is_repair else (
                f"\n\nYour last query was: {sql or '(none)'}\nIt cannot be used: {problem}\n"
                "Reply with the corrected JSON object alone."
            )  # fmt: skip
            completion = self.model.complete([replace(prompt, user=prompt.user + again)])[0]
            usage += completion.usage
            try:
                reply = self.template.parse(completion.text)
            except BadCompletion as error:
                first_problem, problem, sql = first_problem or error.problem, error.problem, ""
                continue
            sql = str(reply["sql"]).strip().rstrip(";").strip()
            if reply["abstain"] or not sql:
                problem = "the model says that the tables do not hold the answer"
                break
            try:
                answer = self._run(sql, question, by_name)
                break
            except UsageError as error:
                problem = error.problem
                first_problem = first_problem or problem
        trail.add(
            TableQueryStep(
                sql,
                self.model.name,
                ", ".join(table.name for table in tables),
                "answered" if answer else problem,
                first_problem or None,
                usage=usage,
                seconds=time.perf_counter() - started,
            )
        )
        return answer, "" if answer else problem

    def _run(self, sql: str, question: str, by_name: dict[str, DataTable]) -> SqlAnswer:
        """Return the answer of a query. Raises UsageError for one that is refused, fails, or has no result."""
        known = {word.lower().replace(",", "") for word in _WORD.findall(question)}
        names = {name: table.name for name, table in by_name.items()}
        result = run_query(sql, names, lambda name: by_name[name.lower()], self.limits, known)
        if not result.tables:
            raise UsageError("the query reads no table")
        if not any(value is not None for row in result.rows for value in row):
            raise UsageError("the result is empty: no row meets the conditions")
        if result.more:
            raise UsageError(f"the result has more than {self.limits.rows} rows")
        return SqlAnswer(sql, result, _describe_rows(result))


def describe_table(table: DataTable) -> str:
    """Return a table as a model is shown it: name, place, caption, columns with types, units and some of their cells,
    and the labels of a table whose first column names its rows."""
    size = f"{len(table.rows):,} rows"
    lines = [f"table {table.name}  ({size}, from {shorten(table.document_name, 80)})"]
    if table.table.caption:
        lines.append(f"  about: {shorten(' '.join(table.table.caption.split()), 160)}")
    for place, column in enumerate(table.columns[:_COLUMNS]):
        lines.append(f"  {_describe_column(table, place, column)}")
    if len(table.columns) > _COLUMNS:
        lines.append(f"  ... {len(table.columns) - _COLUMNS} more columns")
    if any(row.is_total for row in table.rows):
        lines.append("  _total boolean: the row holds a total of others")
    groups = list(dict.fromkeys(row.group for row in table.rows if row.group))
    if groups:
        lines.append(f"  _group text: {_quote_cells(groups[:_LABELS])}")
    return "\n".join(lines)


def _describe_column(table: DataTable, place: int, column: DataColumn) -> str:
    name = column.name if column.name.isidentifier() else f'"{column.name}"'
    words = [name, column.type]
    if column.header and column.header != column.name:
        words.append(f"'{shorten(column.header, 80)}'")
    if column.unit or column.scale != 1.0:
        scale = SCALE_NAMES.get(column.scale, f"{column.scale:g}")
        words.append(f"in {' '.join(filter(None, (scale and f'{scale}s', column.unit)))}")
    cells = list(dict.fromkeys(row.cells[place] for row in table.rows if row.cells[place]))
    limit = _LABELS if column.type == "text" and len(cells) <= _LABELS else _EXAMPLES
    distinct = f"{len(cells):,} values, such as " if len(cells) > limit else ""
    return f"{' '.join(words)}: {distinct}{_quote_cells(cells[:limit])}"


def _quote_cells(cells: Sequence[str]) -> str:
    return ", ".join("'" + shorten(" ".join(cell.split()), _CELL).replace("'", "''") + "'" for cell in cells)


def _describe_rows(result: SqlResult) -> tuple[str, ...]:
    """Return each row of a result in words: its values with their units, joined by a colon after the first."""
    rows = []
    for row in result.rows:
        parts = [describe_value(value, result, place) for place, value in enumerate(row) if value is not None]
        first, *others = parts or ["none"]
        rows.append(f"{first}: {', '.join(others)}" if others else first)
    return tuple(rows)


def describe_value(value: Any, result: SqlResult, place: int) -> str:
    """Return a value of a result with the unit and the scale that it has from its columns."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value.isoformat() if isinstance(value, date) else str(value)
    origin = result.origins[place] if result.origins else None
    if origin is None or not origin.keeps_unit:
        return format_number(float(value))
    source = origin.columns[0]
    return format_value(float(value), source.column, source.unit, source.scale)
