"""Parquet: tables of nodes or edges, whose columns have types. Needs the extra ``graphs`` (pyarrow)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import MissingExtra, UnreadableFile
from clew.protocols import GraphSink
from clew.triples.columns import edge_columns, node_columns, unknown_columns_error, row_reader
from clew.triples.rows import BadRow, RowErrors

if TYPE_CHECKING:
    from clew.triples.read import Options

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
