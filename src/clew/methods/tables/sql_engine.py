"""SQL over tables: DuckDB in memory, with every table as a view, and nothing else within reach.

A query is parsed before anything is loaded. It must be one SELECT; it may name only tables that it was given and
table functions that make numbers (``range``, ``generate_series``, ``unnest``). Only then are the tables that it names
loaded, into a database in memory of a process of its own (:mod:`clew.methods.tables.sql_process`), which has no
access to files, networks, extensions or variables of Python, whose settings are locked. Time, memory and the size of
the result are limited.

Each table also has the columns ``_row`` (the id of the row's node), ``_group`` (the heading of its group of rows) and
``_total`` (whether the row holds a total of others). Of a query over tables and joins the rows that each result row
was made of are traced: the syntax tree, which DuckDB gives as JSON, gets the rows' ids as one more output column.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.core.errors import MissingExtra, UsageError, unknown_name_error
from clew.core.types import Box, boxes_to_lists
from clew.methods.tables.sql_process import (
    EngineTable,
    QueryLimits,
    QueryTask,
    describe_failure,
    quote_identifier,
    run_in_process,
)
from clew.methods.tables.syntax import check_grounded, output_origins, walk
from clew.questions.table_query import find_step

if TYPE_CHECKING:
    import duckdb

    from clew.parse.data_tables import DataTable

#: Table functions that read nothing.
_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})
#: Functions that tell of the process or its settings, or that write.
_REFUSED_FUNCTIONS = frozenset(
    "current_setting getvariable getenv write_log nextval currval set_config query query_table setseed"
    " current_database current_schema current_schemas current_user current_query version txid_current"
    " in_search_path pg_typeof parse_path".split()
)
_REFUSED_PREFIXES = ("pg_", "duckdb_", "read_", "has_", "sniff_", "pragma_", "parquet_", "json_execute")
#: At most so many source rows are listed for a row of a result.
SOURCE_LIMIT = 64
_SOURCES = "_sources"


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a table: the view, the column's name, unit and scale; the rows of the table are the nodes of
    ``document`` from position ``first`` to ``last``."""

    view: str
    column: str
    unit: str
    scale: float
    document: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """The columns that a column of a result is made of. ``keeps_unit``: its numbers have their unit and scale."""

    columns: tuple[SourceColumn, ...]
    keeps_unit: bool


@dataclass(frozen=True, slots=True)
class SqlResult:
    """The result of a query. ``sources`` has for each row the ids of the row nodes that it was made of, at most
    :data:`SOURCE_LIMIT`; it is empty where they cannot be traced (subqueries, set operations, DISTINCT). ``more``:
    there are more rows than the limit. ``tables`` are the views that the query reads. ``origins`` has for each column
    the columns that it is made of, where that can be told."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    sources: tuple[tuple[str, ...], ...]
    tables: tuple[str, ...]
    more: bool
    seconds: float
    origins: tuple[ResultOrigin, ...] = ()
    boxes: Mapping[tuple[str, str], Box] = field(default_factory=dict)

    def all_source_cells(self) -> list[tuple[str, str]]:
        """Return the source cells of all values, each once."""
        places = ((row, column) for row in range(len(self.rows)) for column in range(len(self.columns)))
        return list(dict.fromkeys(cell for place in places for cell in self.source_cells(*place)))

    def source_cells(self, row: int, column: int) -> tuple[tuple[str, str], ...]:
        """Return the cells that a cell of the result was made of, as (id of the row's node, name of the column).

        It is empty where the query cannot be traced, and for a count of rows.
        """
        if not self.sources or not self.origins:
            return ()
        cells = []
        for id in self.sources[row]:
            key, _, position = id.rpartition(":")
            for part in self.origins[column].columns:
                if part.document == key and part.first <= int(position) <= part.last:
                    cells.append((id, part.column))
        return tuple(cells)

    def to_dict(self) -> dict[str, Any]:
        """Return the result; days and times as ISO 8601."""
        return {
            "columns": list(self.columns),
            "rows": [[_to_json(value) for value in row] for row in self.rows],
            "sources": [list(ids) for ids in self.sources],
            "cells": [
                [
                    [list(cell) for cell in self.source_cells(row, column)]
                    for column in range(len(self.columns))
                ]
                for row in range(len(self.rows) if self.sources and self.origins else 0)
            ],
            "boxes": [
                {"row": id, "column": column, "page": box.page, "box": boxes_to_lists([box])[0][1:]}
                for (id, column), box in self.boxes.items()
            ],
            "tables": list(self.tables),
            "more": self.more,
            "seconds": round(self.seconds, 3),
        }


def _to_json(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def import_duckdb() -> Any:
    """Return the module. Raises MissingExtra."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtra("DuckDB, which runs SQL over tables,", "tables") from error
    return duckdb


#: Returns a table by the name of its view.
TableLoader = Callable[[str], "DataTable"]


def run_query(
    text: str,
    names: Mapping[str, str],
    load: TableLoader,
    limits: QueryLimits | None = None,
    grounded: Collection[str] | None = None,
) -> SqlResult:
    """Return the result of one SELECT over tables.

    ``names`` maps the names of all views, in lower case, to their names; ``load`` gives the table of one that the
    query names. With ``grounded``, a result may hold nothing but cells, what is computed from cells, and these words
    (:func:`~clew.methods.tables.syntax.check_grounded`). Raises UsageError for a query that is refused, wrong or over
    a limit, MissingExtra without DuckDB.
    """
    duckdb = import_duckdb()
    limits = limits or QueryLimits()
    started = time.perf_counter()
    connection = duckdb.connect(":memory:", config={"autoload_known_extensions": "false", "threads": "1"})
    try:
        tree = _parse(connection, text)
        used = _check(tree, names)
        if grounded is not None:
            check_grounded(tree, grounded)
        tables = {name: load(name) for name in used}
        traced = tuple(_traced_queries(connection, tree))
    except duckdb.Error as error:
        raise describe_failure(error) from error
    finally:
        connection.close()
    engine_tables = tuple(_to_engine(table) for table in tables.values())
    result = run_in_process(QueryTask(text, traced, engine_tables, limits))
    rows, sources = result.rows, result.sources
    more = len(rows) > limits.rows
    return SqlResult(
        result.columns,
        tuple(rows[: limits.rows]),
        tuple(sources[: limits.rows]),
        tuple(used),
        more,
        time.perf_counter() - started,
        _find_origins(tree, tables) if sources else (),
    )


def _find_origins(tree: dict[str, Any], tables: Mapping[str, DataTable]) -> tuple[ResultOrigin, ...]:
    """Return the source columns of each column of the result."""
    views = _aliased_views(tree["statements"][0]["node"].get("from_table"))
    by_name = {name.lower(): table for name, table in tables.items()}
    origins = []
    for origin in output_origins(tree):
        parts: list[SourceColumn] = []
        for alias, name in origin.columns:
            for view in dict.fromkeys([views[alias]] if alias in views else views.values()):
                parts += _source_columns(by_name[view], name)
        units = {(part.unit, part.scale) for part in parts}
        origins.append(ResultOrigin(tuple(parts), origin.keeps_unit and len(units) == 1))
    return tuple(origins)


def _source_columns(table: DataTable, name: str) -> list[SourceColumn]:
    if not table.rows:
        return []
    key = table.rows[0].id.rpartition(":")[0]
    first, last = (int(row.id.rpartition(":")[2]) for row in (table.rows[0], table.rows[-1]))
    return [
        SourceColumn(table.name, column.name, column.unit, column.scale, key, first, last)
        for column in table.columns
        if column.name.lower() == name.lower()
    ]


def _aliased_views(table: dict[str, Any] | None) -> dict[str, str]:
    """Return the views of a FROM clause by the names under which the query knows them, all in lower case."""
    if table is None or table.get("type") not in {"BASE_TABLE", "JOIN"}:
        return {}
    if table["type"] == "BASE_TABLE":
        return {(table.get("alias") or table["table_name"]).lower(): table["table_name"].lower()}
    return {**_aliased_views(table["left"]), **_aliased_views(table["right"])}


def _parse(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    """Return the syntax tree of one SELECT. Raises UsageError for anything else."""
    if not text.strip():
        raise UsageError("the query is empty", 'For example: clew sql "select * from my_table limit 5"')
    statements = connection.extract_statements(text)
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        kind = next((kind for kind in kinds if kind != "SELECT"), "")
        what = f"{kind} is refused" if kind else f"{len(kinds)} statements"
        raise UsageError(f"{what}: a query is one SELECT", "The tables of a knowledge base are read-only")
    tree = _serialize(connection, statements[0].query)
    if tree.get("error") or len(tree.get("statements", ())) != 1:
        raise UsageError(f"the query cannot be read: {tree.get('error_message', 'not a SELECT')}")
    return tree


def _serialize(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    """Return DuckDB's syntax tree of a query."""
    tree: dict[str, Any] = json.loads(
        connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0]
    )
    return tree


def _check(tree: dict[str, Any], names: Mapping[str, str]) -> list[str]:
    """Return the names of the views that a query reads, sorted. Raises UsageError for anything out of bounds."""
    nodes = list(walk(tree))
    common = {
        entry["key"].lower()
        for node in nodes
        for entry in (node.get("cte_map") or {}).get("map", ())
        if isinstance(entry, dict)
    }
    used: set[str] = set()
    for node in nodes:
        kind = node.get("type")
        if kind == "TABLE_FUNCTION":
            function = str(node.get("function", {}).get("function_name", "")).lower()
            if function not in _TABLE_FUNCTIONS:
                raise UsageError(f"the function {function} is refused", "A query reads tables alone")
        elif node.get("class") == "FUNCTION":
            function = str(node.get("function_name", "")).lower()
            if function in _REFUSED_FUNCTIONS or function.startswith(_REFUSED_PREFIXES):
                raise UsageError(f"the function {function} is refused", "A query reads tables alone")
        elif kind == "BASE_TABLE":
            table = str(node.get("table_name", ""))
            if node.get("schema_name") or node.get("catalog_name"):
                raise UsageError(f"'{node.get('schema_name')}.{table}' is refused", "See: clew tables")
            if table.lower() in common:
                continue
            if table.lower() not in names:
                raise unknown_name_error("table", table, names.values())
            used.add(names[table.lower()])
        elif kind == "SHOW_REF":
            raise UsageError("SHOW and DESCRIBE are refused: a query reads tables alone", "See: clew tables")
    return sorted(used)


def _to_engine(table: DataTable) -> EngineTable:
    """Return a table as the engine takes it, with the columns that tell of its rows."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for place, column in enumerate(table.columns):
        values = table.values(place)
        if column.type == "number":
            numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
            arrays[f"c{place}"] = np.ma.masked_invalid(numbers)
        elif column.type == "date":
            arrays[f"c{place}"] = np.array(["NaT" if value is None else value for value in values], "M8[us]")
        else:
            arrays[f"c{place}"] = np.array([*values, None], dtype=object)[:-1]
    arrays["row"] = np.array([*(row.id for row in table.rows), None], dtype=object)[:-1]
    arrays["group"] = np.array([*(row.group or None for row in table.rows), None], dtype=object)[:-1]
    arrays["total"] = np.array([row.is_total for row in table.rows], dtype=np.bool_)
    listed = [
        f"c{place}{_sql_cast(column.type, arrays[f'c{place}'])} AS {quote_identifier(column.name)}"
        for place, column in enumerate(table.columns)
    ]
    listed += ["row::VARCHAR AS _row", '"group"::VARCHAR AS _group', "total AS _total"]
    return EngineTable(table.name, arrays, tuple(listed))


def _sql_cast(type: str, values: Any) -> str:
    """Return the cast of a column to its type. Numbers are decimals where they can be, with more digits for medians
    and quantiles, which DuckDB cuts to those of the column, and wide enough that products do not overflow."""
    if type != "number":
        return {"date": "::DATE", "text": "::VARCHAR"}[type]
    step = find_step(values.filled(math.nan))
    if step is None:
        return "::DOUBLE"
    places = round(math.log10(step))
    return f"::DECIMAL({_WIDTH}, {places})::DECIMAL({_WIDTH}, {places + _MORE_DECIMALS})"


#: Digits of a decimal: above 18, a product may have up to 38.
_WIDTH, _MORE_DECIMALS = 30, 3


def _traced_queries(connection: duckdb.DuckDBPyConnection, tree: dict[str, Any]) -> Iterator[str]:
    """Yield the query with one more column, the ids of the rows that a result row was made of: for plain rows, then
    for groups of rows. Nothing is yielded for a query that cannot be traced so."""
    node = tree["statements"][0]["node"]
    if node.get("type") != "SELECT_NODE" or any(
        modifier.get("type") == "DISTINCT_MODIFIER" for modifier in node.get("modifiers", ())
    ):
        return
    aliases = _base_aliases(node.get("from_table"))
    if not aliases or node["cte_map"]["map"]:
        return
    ids = ", ".join(f"{quote_identifier(alias)}._row" for alias in aliases)
    for extra in (f"[{ids}]", _GROUPED.format(ids=ids)):
        extra_tree = _serialize(connection, f"SELECT {extra} AS {_SOURCES}")
        columns = extra_tree["statements"][0]["node"]["select_list"]
        traced = {**node, "select_list": [*node["select_list"], *columns]}
        statement = {**tree["statements"][0], "node": traced}
        serialized = json.dumps({**tree, "statements": [statement]})
        yield str(connection.execute("SELECT json_deserialize_sql(?)", [serialized]).fetchall()[0][0])


_GROUPED = f"list_slice(list_distinct(flatten(list([{{ids}}]))), 1, {SOURCE_LIMIT})"


def _base_aliases(table: dict[str, Any] | None) -> list[str]:
    """Return the names by which the tables of a FROM clause are known, none if it has anything but tables and
    joins."""
    if table is None:
        return []
    if table.get("type") == "BASE_TABLE":
        return [table.get("alias") or table["table_name"]]
    if table.get("type") == "JOIN":
        left, right = _base_aliases(table["left"]), _base_aliases(table["right"])
        return [*left, *right] if left and right else []
    return []
