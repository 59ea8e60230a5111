"""CSV and TSV: one table, whatever separates its cells."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Literal

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.delimiters import detect_delimiter as best_delimiter
from clew.parse.documents.blocks import Block, Note, SourceFile, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.detection import CSV, TSV
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import Row, trim_grid
from clew.parse.documents.xlsx import table_blocks

PARSER = "csv/1"

#: Rows from which the delimiter is guessed.
_SAMPLE = 200
#: A quoted cell with more lines than this was opened by a quotation mark that nothing closes.
_LINES = 500


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a CSV or TSV file. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    media_type = TSV if PurePath(name).suffix.lower() in {".tsv", ".tab"} else CSV
    return build_document(
        _document(text, remarks, limits), SourceFile(data, name, media_type, PARSER, unit, limits)
    )


def _document(text: str, remarks: Sequence[str], limits: Limits) -> Iterator[Block]:
    yield from map(Note, remarks)
    # The reader's own limit is one of a whole process; ours are checked cell by cell and in all.
    csv.field_size_limit(max(csv.field_size_limit(), min(limits.characters, 2**31 - 1)))
    lines = text.split("\n")
    first = lines[0].strip().lower()
    if first.startswith("sep=") and len(first) == 5:  # how Excel is told
        delimiter, lines = first[4], lines[1:]
    else:
        sample = islice((line for line in lines if line.strip()), _SAMPLE)
        delimiter = best_delimiter(list(_with_ends(sample)))
    try:
        rows = list(_rows(lines, delimiter, csv.QUOTE_MINIMAL, limits))
    except csv.Error:
        yield Note("a quotation mark is never closed; quotation marks were read as text")
        try:
            rows = list(_rows(lines, delimiter, csv.QUOTE_NONE, limits))
        except csv.Error as error:
            raise UnreadableFile(f"is not a table ({error})") from error
    yield from table_blocks(trim_grid(rows), frozenset(), "")


def _rows(lines: Sequence[str], delimiter: str, quoting: Literal[0, 3], limits: Limits) -> Iterator[Row]:
    """Yield the rows. Raises csv.Error where a quoted cell swallows the rest."""
    used = 0
    for row in csv.reader(_with_ends(lines), delimiter=delimiter, quoting=quoting, strict=False):
        used += len(row)
        limits.check_cells(used)
        if any("\n" in cell and cell.count("\n") > _LINES for cell in row):
            raise csv.Error("unclosed quotation mark")
        yield tuple(cell.strip() for cell in row)


def _with_ends(lines: Iterable[str]) -> Iterator[str]:
    # Without their ends, a line break in a quoted cell would vanish.
    return (f"{line}\n" for line in lines)
