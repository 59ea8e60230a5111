"""CSV and TSV: triples, and node and edge tables.

CSV has quotation marks as RFC 4180 says. In TSV a quotation mark is a character like any other, as its registration
says (IANA, text/tab-separated-values): tables of triples are full of them.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from clew.core.errors import UnreadableFile
from clew.core.protocols import GraphSink
from clew.parse.delimiters import detect_delimiter
from clew.parse.graphs.columns import (
    HEAD,
    RELATION,
    TAIL,
    Column,
    are_triples,
    batch_reader,
    columns_of_kind,
    edge_columns,
    read_identifier,
    row_reader,
    unknown_columns_error,
)
from clew.parse.graphs.files import BadRow, GraphFile, RowErrors, empty_file_error, open_graph_file
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions
from clew.parse.graphs.plain_blocks import PlainBlocks

#: Lines from which the delimiter is guessed.
_SAMPLE = 50
#: Characters of the longest cell: a whole book fits, the rest of a file after an unclosed quotation mark does not.
_MAX_CELL = 1 << 24
#: Rows of CSV and TSV that are read at a time.
_ROWS = 1 << 14
_ROLES = (HEAD, RELATION, TAIL)


def _read_table(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None],
    *,
    is_tsv: bool,
) -> None:
    """Read a CSV or TSV table. Raises UnreadableFile, BadRows."""
    with open_graph_file(path, report_progress) as file:
        lines = _TableLines(file, errors)
        while len(lines.waiting) < _SAMPLE and (block := lines.next_block()):
            lines.add(block)
        delimiter = "\t" if is_tsv else detect_delimiter(list(lines.waiting)[:_SAMPLE])
        # The limit is one of the whole process. It is set each time, since other readers set theirs.
        csv.field_size_limit(_MAX_CELL)
        rows = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL)
        try:
            _Table(lines, rows, sink, options, errors).read()
        except csv.Error as error:
            raise UnreadableFile(
                f"{path}: line {lines.skipped + rows.line_num:,}: {error}",
                "Is a quotation mark never closed before that?",
            ) from error


class _TableLines:
    """The lines of a table as csv.reader takes them, a block at a time; whole blocks may be read otherwise.

    ``added`` counts the lines that were added for csv.reader, ``skipped`` those of the other blocks.
    """

    def __init__(self, file: GraphFile, errors: RowErrors) -> None:
        self.file, self._errors = file, errors
        self._blocks = file.read_blocks()
        self.waiting: deque[str] = deque()
        self.added = self.skipped = 0

    def next_block(self) -> bytes:
        """Return the next block of whole lines, which is to be added or skipped; nothing at the end."""
        return next(self._blocks, b"")

    def add(self, block: bytes) -> None:
        """Add the lines of a block."""
        lines = self.file.decode_lines(block, self.added + self.skipped + 1, self._errors)
        self.waiting.extend(lines)
        self.added += len(lines)

    def skip(self, block: bytes) -> None:
        """Count the lines of a block that was read otherwise."""
        self.skipped += block.count(b"\n") + (not block.endswith(b"\n"))

    def __iter__(self) -> Iterator[str]:
        """Yield the lines that were added; beyond them, within a cell of several lines, those of further blocks."""
        while True:
            while self.waiting:
                yield self.waiting.popleft()
            if not (block := self.next_block()):
                return
            self.add(block)


class _Table:
    """A table that is read in blocks where it can be, else in batches of rows, else row by row."""

    def __init__(
        self, lines: _TableLines, rows: Any, sink: GraphSink, options: GraphReadOptions, errors: RowErrors
    ) -> None:
        self._lines, self._rows, self._sink, self._options, self._errors = lines, rows, sink, options, errors
        self._columns: list[Column] = []
        self._blocks: PlainBlocks | None = None
        self._read_batch: Callable[[Sequence[Sequence[str]]], bool] | None = None
        self._read_row: Callable[[Sequence[Any]], None] | None = None

    def read(self) -> None:
        """Add all rows to the sink."""
        while True:
            if self._rows.line_num == self._lines.added:
                block = self._lines.next_block()
                if not block:
                    break
                if self._blocks is not None and self._blocks.read(block):
                    self._lines.skip(block)
                    continue
                self._lines.add(block)
            batch = self._next_rows(_ROWS if self._columns else 1)
            if not self._columns and batch.rows and not _is_blank(batch.rows[0]):
                self._find_columns(batch)
            self._add_rows(batch)
            if batch.error is not None:
                raise batch.error
        if not self._columns and not self._errors.count:
            raise empty_file_error(self._lines.file.path)

    def _find_columns(self, batch: _Batch) -> None:
        """Set the columns from the first row, and drop it where it is the header."""
        columns, is_header = _find_columns(batch.rows[0], self._lines.file, self._options)
        self._columns = columns
        self._read_row = (
            _triple_reader(columns, self._sink) if are_triples(columns) else row_reader(columns, self._sink)
        )
        self._read_batch = batch_reader(columns, self._sink)
        if self._read_batch is not None:
            dialect = self._rows.dialect
            is_quoted = dialect.quoting != csv.QUOTE_NONE
            self._blocks = PlainBlocks(columns, dialect.delimiter, is_quoted, self._sink, self._read_batch)
        if is_header:
            batch.rows.clear()

    def _add_rows(self, batch: _Batch) -> None:
        if self._read_row is None:
            return
        if self._read_batch and batch.has_width(len(self._columns)) and self._read_batch(batch.rows):
            return
        for cells, line in batch.numbered_rows():
            try:
                self._read_row(cells)
            except BadRow as error:
                self._errors.add(self._lines.file.path, line, str(error))

    def _next_rows(self, most: int) -> _Batch:
        """Return at most so many rows, which begin before the end of the lines that were added."""
        first = self._rows.line_num
        batch = _Batch([], first + self._lines.skipped)
        try:
            # Each row takes a line at least.
            batch.rows.extend(islice(self._rows, min(most, self._lines.added - first)))
        except csv.Error as error:
            batch.error = error
        batch.last_line = self._rows.line_num + self._lines.skipped
        return batch


@dataclass(slots=True)
class _Batch:
    """Rows of a table: ``first_line`` lines lie before them, ``last_line`` is the number of their last line.

    ``error`` is the error of csv.reader at the row after them.
    """

    rows: list[list[str]]
    first_line: int
    last_line: int = 0
    error: csv.Error | None = None

    def has_width(self, width: int) -> bool:
        """Return whether all rows have so many cells, and there are rows."""
        return set(map(len, self.rows)) == {width}

    def numbered_rows(self) -> Iterator[tuple[list[str], int]]:
        """Yield the rows that are not blank, each with the number of its first line."""
        line = self.first_line
        if self.last_line - line == len(self.rows):  # no cell has several lines, unless it ends the file
            for number, cells in enumerate(self.rows, line + 1):
                if not _is_blank(cells):
                    is_last = number == self.last_line
                    yield cells, number - (sum(cell.count("\n") for cell in cells) if is_last else 0)
            return
        for cells in self.rows:
            breaks = sum(cell.count("\n") for cell in cells)
            # A cell that is never closed may end with a break, after which there is no line.
            end = min(line + 1 + breaks, self.last_line)
            if not _is_blank(cells):
                yield cells, end - breaks
            line = end


def _is_blank(cells: Sequence[str]) -> bool:
    return not cells or (len(cells) == 1 and not cells[0].strip())


def _find_columns(cells: list[str], file: GraphFile, options: GraphReadOptions) -> tuple[list[Column], bool]:
    """Return the columns of a table, and whether its first row, ``cells``, is their header."""
    header = list(options.columns) or cells
    columns = columns_of_kind(header, options.kind)
    if options.columns:
        if columns is None:
            raise unknown_columns_error(str(file.path), header, options.kind)
        is_header = columns_of_kind(cells, "") is not None if options.header is None else options.header
        return columns, is_header
    if options.header is not False and columns:
        return columns, True
    if len(cells) == 3 and options.kind != "nodes":
        return edge_columns(_ROLES) or [], options.header is True
    raise unknown_columns_error(str(file.path), cells, options.kind)


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


_OPTIONS: Final = ("columns", "header", "kind")
FORMATS = (
    GraphFormat("csv", partial(_read_table, is_tsv=False), (".csv", ".txt"), _OPTIONS),
    GraphFormat("tsv", partial(_read_table, is_tsv=True), (".tsv", ".tab"), _OPTIONS),
)
