"""CSV and TSV: one table, whatever separates its cells."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import PurePath
from typing import Literal

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.delimiters import detect_delimiter
from clew.parse.documents.blocks import Block, Note, SourceFile, build_document, table_blocks
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import Grid, Row, divide_tables

PARSER = "csv/2"
_TAB_SUFFIXES = (".tsv", ".tab")

#: Rows from which the delimiter is guessed.
_SAMPLE = 200
#: A quoted cell with more lines than this begins with a quotation mark that is never closed.
_MAX_CELL_LINES = 500


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a CSV or TSV file. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    is_tsv = PurePath(name).suffix.lower() in _TAB_SUFFIXES
    media_type = "text/tab-separated-values" if is_tsv else "text/csv"
    source = SourceFile(data, name, media_type, PARSER, unit, limits)
    return build_document(_blocks(text, remarks, limits), source)


FORMAT = DocumentFormat("text/csv", "a CSV or TSV table", (".csv", *_TAB_SUFFIXES), parse, parser=PARSER)


def _blocks(text: str, remarks: Sequence[str], limits: Limits) -> Iterator[Block]:
    yield from map(Note, remarks)
    # The reader's own limit is one of a whole process; ours are checked cell by cell and for the whole table.
    csv.field_size_limit(max(csv.field_size_limit(), min(limits.characters, 2**31 - 1)))
    lines = text.split("\n")
    first = lines[0].strip().lower()
    if first.startswith("sep=") and len(first) == 5:  # Excel's own way to declare the delimiter
        delimiter, lines = first[4], lines[1:]
    else:
        sample = islice((line for line in lines if line.strip()), _SAMPLE)
        delimiter = detect_delimiter(list(_with_line_ends(sample)))
    try:
        rows = list(_rows(lines, delimiter, csv.QUOTE_MINIMAL, limits))
    except csv.Error:
        yield Note("a quotation mark is never closed; quotation marks were read as text")
        try:
            rows = list(_rows(lines, delimiter, csv.QUOTE_NONE, limits))
        except csv.Error as error:
            raise UnreadableFile(f"is not a table ({error})") from error
    for table, spanned in divide_tables(_runs_of_rows(rows)):
        yield from table_blocks(table, spanned, "")


def _runs_of_rows(rows: Sequence[Row]) -> Iterator[Grid]:
    """Yield the runs of rows between blank lines, padded to one length: an export may state account and period above
    its table."""
    width = max(map(len, rows), default=0)
    for is_filled, run in groupby(rows, key=any):
        if is_filled:
            yield [row + ("",) * (width - len(row)) for row in run], frozenset()


def _rows(lines: Sequence[str], delimiter: str, quoting: Literal[0, 3], limits: Limits) -> Iterator[Row]:
    """Yield the rows. Raises csv.Error where a quoted cell swallows the lines below it."""
    cells = 0
    for row in csv.reader(_with_line_ends(lines), delimiter=delimiter, quoting=quoting, strict=False):
        cells += len(row)
        limits.check_cells(cells)
        if any("\n" in cell and cell.count("\n") > _MAX_CELL_LINES for cell in row):
            raise csv.Error("unclosed quotation mark")
        yield tuple(cell.strip() for cell in row)


def _with_line_ends(lines: Iterable[str]) -> Iterator[str]:
    # Without its end, a line break in a quoted cell would be lost.
    return (f"{line}\n" for line in lines)
