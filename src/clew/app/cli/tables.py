"""``clew tables`` and ``clew sql``: the tables of the documents as data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import clew
from clew.app.cli.options import Json, Kb, option
from clew.app.cli.output import format_count, print_grid, print_json, print_line, print_note
from clew.core.text import shorten

if TYPE_CHECKING:
    from clew.parse.data_tables import DataTable

#: Characters of a printed cell; --json prints values as a whole.
_CELL = 60


def list_tables(
    name: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="Show the columns and rows of this table.", show_default=False),
    ] = None,
    document: Annotated[str | None, option("DOCUMENT", "Only this document.", "--document", "-d")] = None,
    rows: Annotated[int, typer.Option(min=0, metavar="N", help="Print at most N rows of a table.")] = 20,
    export: Annotated[
        Path | None, option("FILE", "Write the table to a .csv, .xlsx or .parquet file.", "--export")
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """List the tables of the documents with their names, or show one with its typed columns.

    The names are those that clew sql uses. Each column has a type (number, date, text), and numbers have a unit and a
    scale where the table names them.

      clew tables

      clew tables sales                      its columns and first rows

      clew tables sales --export sales.xlsx
    """
    with clew.open(kb) as base:
        editions: Sequence[DataTable] = ()
        if name is None:
            tables = base.tables.list(document)
        else:
            tables = [base.tables.get(name) if export is None else base.tables.export(name, export)]
            if export is None:
                editions = base.tables.editions(name)
    if as_json:
        described = [table.to_dict() for table in tables]
        if name is not None:
            from clew.parse.arithmetic import check_arithmetic

            totals = check_arithmetic(tables[0].table).totals
            ids = {row.number: row.id for row in tables[0].rows}
            described[0]["totals"] = [{"row": ids[total.row], "outcome": total.outcome} for total in totals]
            described[0]["editions"] = [edition.name for edition in editions]
        print_json({"tables": described})
    elif name is None:
        _print_list(tables)
    elif export is None:
        _print_columns(tables[0], rows)
        if editions:
            print_note(f"the same table in other editions: {', '.join(edition.name for edition in editions)}")
    else:
        print_line(f"{format_count(len(tables[0].rows), 'row')} written to {export}")


def _print_list(tables: Sequence[DataTable]) -> None:
    for table in tables:
        place = table.document_name + (f", page {table.page}" if table.page is not None else "")
        size = f"{format_count(len(table.rows), 'row')}, {format_count(len(table.columns), 'column')}"
        print_line(f"{table.name}  ({size})  {place}")
        if table.table.caption:
            print_line(f"    {shorten(' '.join(table.table.caption.split()), 100)}")
    if not tables:
        print_line("no tables; add documents that have some: clew add FOLDER")


def _print_columns(table: DataTable, limit: int) -> None:
    from clew.parse.arithmetic import check_arithmetic
    from clew.parse.data_tables import SCALE_NAMES

    if table.table.caption:
        print_line(table.table.caption, "")
    for column in table.columns:
        kind = " ".join(
            part
            for part in (
                column.type,
                column.scale != 1 and f"in {SCALE_NAMES.get(column.scale, column.scale)}s",
                column.unit,
            )
            if part
        )
        header = f"  '{column.header}'" if column.header and column.header != column.name else ""
        print_line(f"  {column.name}  {kind}{header}")
    totals = check_arithmetic(table.table).totals
    if totals:
        right = sum(total.outcome == "adds up" for total in totals)
        print_note(f"{right} of {format_count(len(totals), 'total')} {'adds' if right == 1 else 'add'} up")
    print_line()
    print_grid(
        [column.name for column in table.columns], [row.cells for row in table.rows[:limit]], _CELL, "no rows"
    )
    if len(table.rows) > limit:
        print_note(
            f"... {len(table.rows) - limit:,} more; see --rows, or: clew sql 'select * from {table.name}'"
        )


def sql(
    query: Annotated[str, typer.Argument(metavar="SELECT", help="The query.", show_default=False)],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most N rows.")] = 100,
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Stop the query after this time.")
    ] = 10.0,
    memory: Annotated[int, typer.Option(min=16, metavar="MIB", help="The most memory it may use.")] = 512,
    sources: Annotated[
        bool,
        typer.Option("--sources", help="Print below each row the rows of documents that it was made of."),
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Run a SELECT over the tables of the documents (DuckDB's SQL). Nothing can be written, and no file read.

    clew tables lists the names of tables and columns. A name that begins with a digit is quoted: "2023". Every table
    also has the columns _row (the id that clew show prints), _group (the heading above the row) and _total.

      clew sql 'select region, sum(amount) from sales group by region'

      clew sql 'select label, "2023" - "2022" as change from report_t4 where not _total' --sources

    Needs DuckDB, the extra tables of clew.
    """
    from clew.methods.tables.sql_process import QueryLimits

    with clew.open(kb) as base:
        result = base.tables.query(query, QueryLimits(timeout, memory, limit))
    if as_json:
        print_json(result.to_dict())
        return
    cells = [[_format_value(value) for value in row] for row in result.rows]
    if sources and result.sources:
        cells = [[*row, ", ".join(ids)] for row, ids in zip(cells, result.sources, strict=True)]
        print_grid([*result.columns, "sources"], cells, 10_000, "no rows")
    else:
        print_grid(result.columns, cells, _CELL, "no rows")
    if sources and not result.sources:
        print_note("note: the rows of this query cannot be traced; select _row where it is needed")
    if result.more:
        print_note("... there are more; see --limit")


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return (
            f"{value:,.0f}"
            if value.is_integer()
            else f"{value:,.6g}"
            if abs(value) < 1
            else f"{value:,.4f}".rstrip("0")
        )
    return str(value)
