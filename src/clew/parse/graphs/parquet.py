"""Parquet: triples, and node and edge tables. Needs the extra ``graphs`` (pyarrow)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from clew.core.errors import UnreadableFile, require_packages
from clew.core.protocols import GraphSink
from clew.parse.graphs.columns import (
    are_triples,
    batch_reader,
    columns_of_kind,
    row_reader,
    unknown_columns_error,
)
from clew.parse.graphs.files import BadRow, RowErrors
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions

#: Rows that are read at a time.
_BATCH = 10_000


def _read_parquet(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None],
) -> None:
    """Read a Parquet table; a bad row is named by its number, from 1.

    Raises UnreadableFile, BadRows, MissingExtra.
    """
    require_packages("graphs", "pyarrow", part="pyarrow, which reads Parquet,")
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    size = path.stat().st_size if path.is_file() else 0
    try:
        with ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            columns = columns_of_kind(list(options.columns) or names, options.kind)
            if columns is None:
                raise unknown_columns_error(str(path), names, options.kind)
            read_row = row_reader(columns, sink, typed=True)
            # Edges of three columns of texts are added at once; other cells have types of their own.
            read_rows = batch_reader(columns, sink) if are_triples(columns) else None
            total, done = max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(_BATCH):
                cells_of = [column.to_pylist() for column in batch.columns]
                rows = list(zip(*cells_of, strict=True))
                is_text = read_rows is not None and all(type(cell) is str for cell in chain(*cells_of))
                if not (is_text and read_rows is not None and read_rows(rows)):
                    for number, cells in enumerate(rows, 1):
                        try:
                            read_row(cells)
                        except BadRow as error:
                            errors.add(path, done + number, str(error))
                done += batch.num_rows
                report_progress(size * done // total)
    except (ArrowException, OSError) as error:
        raise UnreadableFile(f"{path}: {str(error).splitlines()[0]}") from error


FORMATS = (
    GraphFormat("parquet", _read_parquet, (".parquet", ".pq"), ("columns", "kind"), package="pyarrow"),
)
