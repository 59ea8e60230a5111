"""Reads a graph file in columns and row by row, and asserts that both make the same graph and the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from clew.core.errors import ClewError
from clew.parse.graphs import csv, files
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.formats import GraphReadOptions
from clew.parse.graphs.reader import has_iri_ids, read_graph
from clew.store.graphs.builder import GraphBuilder

#: Digest, nodes, edges, nodes that only edges name, the error, the number of bad rows, and the first of them.
Outcome = tuple[str, int, int, int, str, int, list[str]]


class RowSink:
    """A builder that takes only one node or edge at a time."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.add_node, self.add_edge, self.has_node = builder.add_node, builder.add_edge, builder.has_node


def read_both_ways(name: str, content: bytes, skip: bool, **options: Any) -> Outcome:
    """Return what a file makes, after asserting that both ways to read it agree."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        in_columns, by_row = (
            _read(path, is_columnar, skip, GraphReadOptions(**options)) for is_columnar in (True, False)
        )
    assert in_columns == by_row
    return in_columns


def _read(path: Path, is_columnar: bool, skip: bool, options: GraphReadOptions) -> Outcome:
    builder = GraphBuilder("g", path.parent, iris=has_iri_ids(path, options.format))
    errors, failure = RowErrors(skip), ""
    try:
        read_graph(path, builder if is_columnar else RowSink(builder), options, errors)
    except ClewError as error:
        failure = str(error)
    undescribed = builder.count_undescribed()
    packed = builder.pack()
    packed.close()
    builder.close()
    return packed.digest, packed.nodes, packed.edges, undescribed, failure, errors.count, errors.messages


@contextmanager
def small_blocks() -> Iterator[None]:
    """Read blocks and batches of a few rows, so that short files have several of each."""
    with patch.object(files, "_BLOCK", 40), patch.object(csv, "_ROWS", 3):
        yield
