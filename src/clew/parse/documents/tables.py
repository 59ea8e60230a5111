"""A table as parsers hand it over, and the two ways it is written out: Markdown, and row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clew.core.types import Box


@dataclass(frozen=True, slots=True)
class Table:
    """Cells in reading order. ``header`` may be empty; all rows have the same number of cells.

    ``boxes`` has one box for each page that the table covers; ``row_pages`` the page of each row, or is empty
    where the format has no pages.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    boxes: tuple[Box, ...] = ()
    row_pages: tuple[int, ...] = ()

    def to_markdown(self) -> str:
        """Return the caption and the table as GitHub Markdown."""
        width = max([len(self.header), *map(len, self.rows)], default=0)
        header = self.header or ("",) * width
        lines = [_line(header), "|" + " --- |" * width, *map(_line, self.rows)]
        return "\n".join(([self.caption, ""] if self.caption else []) + lines)

    def row_texts(self) -> Iterator[str]:
        """Yield each row as ``caption. group: row header: column header: cell; ...``.

        A row with only its first cell filled is the group heading ("Operating expenses:") of the rows below
        it, up to the next such row; it is yielded with what it says alone.
        """
        group = ""
        columns = self._columns()
        for row in self.rows:
            first = row[0].strip() if row else ""
            cells = [(name, cell.strip()) for name, cell in zip(columns, row, strict=False)][1:]
            filled = [(name, cell) for name, cell in cells if cell]
            if first and not filled:
                group = first.rstrip(":")
                yield self._prefixed(first)
                continue
            values = "; ".join(f"{name}: {cell}" if name else cell for name, cell in filled)
            head = ": ".join(part for part in (group, first.rstrip(":")) if part)
            yield self._prefixed(f"{head}: {values}" if head and values else head or values)

    def _columns(self) -> tuple[str, ...]:
        width = max(map(len, self.rows), default=0)
        names = tuple(" ".join(name.split()) for name in self.header)
        return names + ("",) * (width - len(names))

    def _prefixed(self, text: str) -> str:
        return f"{self.caption}. {text}" if self.caption else text


def _line(cells: tuple[str, ...]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return "| " + " | ".join(escaped) + " |"


Row = tuple[str, ...]

_NUMBER = re.compile(
    r"^[\s(+\-−–]*(?:[$€£¥₹]|[A-Z]{3}\s)?\s*[(+\-−–]?\s*\d[\d.,'\s]*(?:[eE][+-]?\d+)?\s*[%)x]*\s*(?:[$€£¥]|[A-Z]{3})?$"
)
_DATE = re.compile(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?$|^\d{1,2}:\d{2}(?::\d{2})?$")
_YEAR = re.compile(r"^(?:19|20)\d\d[AEFP]?$")
#: A header's cells are names, not sentences.
_HEADER_LENGTH = 120
#: How many rows a header may have.
_HEADER_ROWS = 4


def is_value(cell: str) -> bool:
    """Return whether a cell holds a number, an amount, a date or a dash that stands for one; a year counts
    as a name, because it heads columns.

    >>> [is_value(cell) for cell in ("1,234.5", "(12)%", "2024-05-01", "2024", "Total", "Q3 2024")]
    [True, True, True, False, False, False]
    """
    cell = cell.strip()
    if not cell or _YEAR.match(cell):
        return False
    return bool(_NUMBER.match(cell) or _DATE.match(cell)) or cell in {"-", "–", "—", "n/a", "N/A"}


def count_filled(row: Iterable[str]) -> int:
    """Return how many cells of a row hold something."""
    return sum(1 for cell in row if cell.strip())


def count_header_rows(rows: Sequence[Row], spanned: frozenset[int] = frozenset()) -> int:
    """Return how many of the first rows are header, 0 where none is.

    ``spanned`` are rows in which a cell spans columns: such a row above a header belongs to it.
    """
    count = 0
    for number, row in enumerate(rows[:_HEADER_ROWS]):
        if not _names(row):
            break
        count = number + 1
        if number not in spanned:
            break
    if count >= len(rows):
        return int(len(rows) == 1)
    return 0 if count == 1 and _pairs(rows) else count


def _pairs(rows: Sequence[Row]) -> bool:
    """Return whether rows of two cells are names with what belongs to them (Born | 3 May 1871), so that the
    first is one of them and no header: nothing in it is shorter or plainer than below."""
    if len(rows[0]) != 2:
        return False
    below = sorted(row[1].strip() for row in rows[1:] if row[1].strip())
    if not below or sum(map(is_value, below)) >= 0.5 * len(below):
        return False
    lengths = sorted(map(len, below))
    first = rows[0][1].strip()
    named = len(first) > 0.5 * lengths[len(lengths) // 2] or any(map(str.isdigit, first))
    return named or rows[0][0].rstrip().endswith(":")


def _names(row: Row) -> bool:
    """Return whether a row looks like column names: mostly filled, nothing measured, no sentences."""
    cells = [cell.strip() for cell in row if cell.strip()]
    if len(cells) < 2 or len(cells) < 0.5 * len(row):
        return False
    return not any(is_value(cell) or len(cell) > _HEADER_LENGTH for cell in cells)


def merge_header(rows: Sequence[Row]) -> Row:
    """Return one header of several rows: each column's names from top to bottom, repetitions once."""
    if not rows:
        return ()
    columns = zip(*rows, strict=True)
    return tuple(" ".join(dict.fromkeys(cell for cell in column if cell.strip())) for column in columns)


def trim_grid(rows: Sequence[Row]) -> list[Row]:
    """Return rows of equal length without the rows and columns that hold nothing."""
    width = max(map(len, rows), default=0)
    padded = [row + ("",) * (width - len(row)) for row in rows if count_filled(row)]
    used = [any(row[column].strip() for row in padded) for column in range(width)]
    if all(used):
        return padded
    return [tuple(cell for cell, keep in zip(row, used, strict=True) if keep) for row in padded]


def split_titles(rows: Sequence[Row]) -> tuple[list[str], int]:
    """Return the title lines above a table and how many rows they take: rows with one cell, above a row with
    several."""
    found: list[str] = []
    for row in rows:
        cells = list(dict.fromkeys(cell.strip() for cell in row if cell.strip()))
        if len(cells) > 1:
            return found, len(found)
        found.extend(cells)
    return [], 0


# MERGED: From a grid of cells to tables: where the title ends, what is header, which cells are merged.
