"""CSV and TSV: triples, and node and edge tables.

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
    Column,
    edge_columns,
    node_columns,
    read_identifier,
    row_reader,
    unknown_columns_error,
)
from clew.parse.graphs.files import BadRow, GraphFile, RowErrors

if TYPE_CHECKING:
    from clew.parse.graphs.reader import Options

_SAMPLE = 50
#: Characters of the longest cell; a whole book fits, a file behind a forgotten quotation mark does not.
_CELL = 1 << 24


def read_table(source: GraphFile, sink: GraphSink, options: Options, faults: RowErrors) -> None:
    """Read a table. Raises UnreadableFile, BadRows."""
    lines = source.read_lines(faults)
    sample = list(islice(lines, _SAMPLE))
    tabs = options.format == "tsv"
    divider = "\t" if tabs else detect_delimiter(sample)
    # A limit of the whole process: it is set each time, since other readers set theirs.
    csv.field_size_limit(_CELL)
    rows = csv.reader(
        chain(sample, lines), delimiter=divider, quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
    )
    try:
        _take_rows(rows, sink, source, options, faults)
    except csv.Error as error:
        raise UnreadableFile(
            f"{source.path}: line {rows.line_num:,}: {error}", "Is a quotation mark never closed before that?"
        ) from error


def _take_rows(rows: Any, sink: GraphSink, source: GraphFile, options: Options, faults: RowErrors) -> None:
    take: Callable[[Sequence[Any]], None] | None = None
    for cells in rows:
        if not cells or (len(cells) == 1 and not cells[0].strip()):
            continue
        if take is None:
            columns, is_header = _columns(cells, source, options)
            take = _triple(sink, columns) if _is_triple(columns) else row_reader(columns, sink)
            if is_header:
                continue
        try:
            take(cells)
        except BadRow as error:
            # A row ends where the reader stands; it began as many lines before as its cells have breaks.
            inside = sum(cell.count("\n") for cell in cells)
            faults.add(source.path, rows.line_num - inside, str(error))


def _columns(cells: list[str], source: GraphFile, options: Options) -> tuple[list[Column], bool]:
    """Return the columns of a table and whether its first row, ``cells``, is their header."""
    header = list(options.columns) or cells
    wanted = {"nodes": (node_columns,), "edges": (edge_columns,), "": (edge_columns, node_columns)}[
        options.kind
    ]
    found = next((one for reader in wanted if (one := reader(header))), None)
    if options.columns:
        if found is None:
            raise unknown_columns_error(str(source.path), header, options.kind)
        named = any(reader(cells) for reader in (edge_columns, node_columns))
        return found, named if options.header is None else options.header
    if options.header is not False and found:
        return found, True
    if len(cells) == 3 and options.kind != "nodes":  # head, relation, tail
        return edge_columns(("head", "relation", "tail")) or [], options.header is True
    raise unknown_columns_error(str(source.path), cells, options.kind)


def _is_triple(columns: Sequence[Column]) -> bool:
    plain = not any(one.space for one in columns)
    return plain and sorted(one.role for one in columns) == ["head", "relation", "tail"]


def _triple(sink: GraphSink, columns: Sequence[Column]) -> Callable[[Sequence[str]], None]:
    """Return what takes rows of nothing but head, relation and tail: millions of them, so without detours."""
    h, r, t = ([one.role for one in columns].index(role) for role in ("head", "relation", "tail"))
    give = sink.add_edge

    def take(cells: Sequence[str]) -> None:
        if len(cells) != 3:
            raise BadRow(f"{len(cells)} cells instead of 3")
        head, relation, tail = cells[h].strip(), cells[r].strip(), cells[t].strip()
        if not (head and relation and tail) or "\n" in head or "\n" in relation or "\n" in tail:
            for cell, what in ((head, "head"), (relation, "relation"), (tail, "tail")):
                read_identifier(cell, what)
        give(head, relation, tail)

    return take


_BATCH = 10_000


def read_parquet(
    path: Path, sink: GraphSink, options: Options, faults: RowErrors, tick: Callable[[int], None]
) -> None:
    """Read a table; a bad row's line is its number, from 1. Raises UnreadableFile, BadRows, MissingExtra."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtra("pyarrow, which reads Parquet,", "graphs") from error
    size = path.stat().st_size if path.is_file() else 0
    try:
        with ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            wanted = {"nodes": (node_columns,), "edges": (edge_columns,)}
            readers = wanted.get(options.kind, (edge_columns, node_columns))
            header = list(options.columns) or names
            columns = next((one for reader in readers if (one := reader(header))), None)
            if columns is None:
                raise unknown_columns_error(str(path), names, options.kind)
            take = row_reader(columns, sink, typed=True)
            total, done = max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(_BATCH):
                for number, cells in enumerate(
                    zip(*(one.to_pylist() for one in batch.columns), strict=True), 1
                ):
                    try:
                        take(cells)
                    except BadRow as error:
                        faults.add(path, done + number, str(error))
                done += batch.num_rows
                tick(size * done // total)
    except (ArrowException, OSError) as error:
        raise UnreadableFile(f"{path}: {str(error).splitlines()[0]}") from error


# MERGED: Parquet: tables of nodes or edges, whose columns have types. Needs the extra ``graphs`` (pyarrow).
