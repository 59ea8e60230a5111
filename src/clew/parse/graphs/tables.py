"""CSV, TSV and Parquet: triples, and node and edge tables. Parquet needs the extra ``graphs`` (pyarrow).

CSV has quotation marks as RFC 4180 says. In TSV a quotation mark is a character like any other, as its registration
says (IANA, text/tab-separated-values): tables of triples are full of them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import MissingExtra, UnreadableFile
from clew.core.protocols import GraphSink
from clew.parse.delimiters import detect_delimiter
from clew.parse.graphs.columns import (
    HEAD,
    RELATION,
    TAIL,
    Column,
    edge_columns,
    node_columns,
    read_identifier,
    row_reader,
    unknown_columns_error,
)
from clew.parse.graphs.files import BadRow, GraphFile, RowErrors

if TYPE_CHECKING:
    from clew.parse.graphs.reader import GraphReadOptions

#: Lines from which the delimiter is guessed.
_SAMPLE = 50
#: Characters of the longest cell: a whole book fits, the rest of a file after an unclosed quotation mark does not.
_MAX_CELL = 1 << 24
#: Rows of Parquet that are read at a time.
_BATCH = 10_000
_ROLES = (HEAD, RELATION, TAIL)


def read_table(file: GraphFile, sink: GraphSink, options: GraphReadOptions, errors: RowErrors) -> None:
    """Read a CSV or TSV table. Raises UnreadableFile, BadRows."""
    lines = file.read_lines(errors)
    sample = list(islice(lines, _SAMPLE))
    is_tsv = options.format == "tsv"
    delimiter = "\t" if is_tsv else detect_delimiter(sample)
    # The limit is one of the whole process. It is set each time, since other readers set theirs.
    csv.field_size_limit(_MAX_CELL)
    rows = csv.reader(
        chain(sample, lines), delimiter=delimiter, quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL
    )
    try:
        _read_rows(rows, sink, file, options, errors)
    except csv.Error as error:
        raise UnreadableFile(
            f"{file.path}: line {rows.line_num:,}: {error}", "Is a quotation mark never closed before that?"
        ) from error


def _read_rows(
    rows: Any, sink: GraphSink, file: GraphFile, options: GraphReadOptions, errors: RowErrors
) -> None:
    read_row: Callable[[Sequence[Any]], None] | None = None
    for cells in rows:
        if not cells or (len(cells) == 1 and not cells[0].strip()):
            continue
        if read_row is None:
            columns, is_header = _find_columns(cells, file, options)
            read_row = _triple_reader(columns, sink) if _are_triples(columns) else row_reader(columns, sink)
            if is_header:
                continue
        try:
            read_row(cells)
        except BadRow as error:
            # The reader is at the row's last line; it began as many lines before as its cells have line breaks.
            breaks = sum(cell.count("\n") for cell in cells)
            errors.add(file.path, rows.line_num - breaks, str(error))


def _find_columns(cells: list[str], file: GraphFile, options: GraphReadOptions) -> tuple[list[Column], bool]:
    """Return the columns of a table, and whether its first row, ``cells``, is their header."""
    header = list(options.columns) or cells
    columns = _columns_of_kind(header, options.kind)
    if options.columns:
        if columns is None:
            raise unknown_columns_error(str(file.path), header, options.kind)
        is_header = _columns_of_kind(cells, "") is not None if options.header is None else options.header
        return columns, is_header
    if options.header is not False and columns:
        return columns, True
    if len(cells) == 3 and options.kind != "nodes":
        return edge_columns(_ROLES) or [], options.header is True
    raise unknown_columns_error(str(file.path), cells, options.kind)


def _columns_of_kind(header: Sequence[str], kind: str) -> list[Column] | None:
    """Return the columns of a header, None where it is that of no table of the ``kind``."""
    if kind != "nodes" and (columns := edge_columns(header)):
        return columns
    return node_columns(header) if kind != "edges" else None


def _are_triples(columns: Sequence[Column]) -> bool:
    has_spaces = any(column.space for column in columns)
    return not has_spaces and sorted(column.role for column in columns) == sorted(_ROLES)


def _triple_reader(columns: Sequence[Column], sink: GraphSink) -> Callable[[Sequence[str]], None]:
    """Return a function that adds a row of head, relation and tail alone: the fast path for millions of rows."""
    h, r, t = ([column.role for column in columns].index(role) for role in _ROLES)
    add_edge = sink.add_edge

    def read_row(cells: Sequence[str]) -> None:
        if len(cells) != 3:
            raise BadRow(f"{len(cells)} cells instead of 3")
        head, relation, tail = cells[h].strip(), cells[r].strip(), cells[t].strip()
        if not (head and relation and tail) or "\n" in head or "\n" in relation or "\n" in tail:
            for cell, role in zip((head, relation, tail), _ROLES, strict=True):
                read_identifier(cell, role)
        add_edge(head, relation, tail)

    return read_row


def read_parquet(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None],
) -> None:
    """Read a Parquet table; a bad row is named by its number, from 1.

    Raises UnreadableFile, BadRows, MissingExtra.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtra("pyarrow, which reads Parquet,", "graphs") from error
    size = path.stat().st_size if path.is_file() else 0
    try:
        with ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            columns = _columns_of_kind(list(options.columns) or names, options.kind)
            if columns is None:
                raise unknown_columns_error(str(path), names, options.kind)
            read_row = row_reader(columns, sink, typed=True)
            total, done = max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(_BATCH):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                for number, cells in enumerate(rows, 1):
                    try:
                        read_row(cells)
                    except BadRow as error:
                        errors.add(path, done + number, str(error))
                done += batch.num_rows
                report_progress(size * done // total)
    except (ArrowException, OSError) as error:
        raise UnreadableFile(f"{path}: {str(error).splitlines()[0]}") from error
