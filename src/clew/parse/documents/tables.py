"""Tables: how a table is written as text, and how a grid of cells becomes a table (title lines, header, spans)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clew.core.types import Box

Row = tuple[str, ...]

_NUMBER = re.compile(
    r"^[\s(+\-−–]*(?:[$€£¥₹]|[A-Z]{3}\s)?\s*[(+\-−–]?\s*\d[\d.,'\s]*(?:[eE][+-]?\d+)?\s*[%)x]*\s*(?:[$€£¥]|[A-Z]{3})?$"
)
_DATE = re.compile(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?$|^\d{1,2}:\d{2}(?::\d{2})?$")
_YEAR = re.compile(r"^(?:19|20)\d\d[AEFP]?$")
#: The cells of a header are names, not sentences: they have at most so many characters.
_MAX_NAME_LENGTH = 120
_MAX_HEADER_ROWS = 4


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its cells in reading order. All rows have the same number of cells; ``header`` may be empty.

    ``boxes`` has one box for each page that the table covers. ``row_pages`` has the page of each row; it is empty
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

        A row with only its first cell filled heads the group of rows below it ("Operating expenses:"), up to the
        next such row. It is yielded without cells.
        """
        group = ""
        width = max(map(len, self.rows), default=0)
        columns = [" ".join(name.split()) for name in self.header] + [""] * (width - len(self.header))
        for row in self.rows:
            first = row[0].strip() if row else ""
            cells = [(name, cell.strip()) for name, cell in zip(columns, row, strict=False)][1:]
            filled = [(name, cell) for name, cell in cells if cell]
            if first and not filled:
                group = first.rstrip(":")
                yield self._with_caption(first)
                continue
            values = "; ".join(f"{name}: {cell}" if name else cell for name, cell in filled)
            head = ": ".join(part for part in (group, first.rstrip(":")) if part)
            yield self._with_caption(f"{head}: {values}" if head and values else head or values)

    def _with_caption(self, text: str) -> str:
        return f"{self.caption}. {text}" if self.caption else text


def _line(cells: tuple[str, ...]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return "| " + " | ".join(escaped) + " |"


def is_value(cell: str) -> bool:
    """Return whether a cell holds a number, an amount, a date, or a dash in place of one.

    A year counts as a name, because years head columns.

    >>> [is_value(cell) for cell in ("1,234.5", "(12)%", "2024-05-01", "2024", "Total", "Q3 2024")]
    [True, True, True, False, False, False]
    """
    cell = cell.strip()
    if not cell or _YEAR.match(cell):
        return False
    return bool(_NUMBER.match(cell) or _DATE.match(cell)) or cell in {"-", "–", "—", "n/a", "N/A"}


def count_filled(row: Iterable[str]) -> int:
    """Return how many cells of a row are not blank."""
    return sum(1 for cell in row if cell.strip())


def count_header_rows(rows: Sequence[Row], spanned: frozenset[int] = frozenset()) -> int:
    """Return how many of the first rows are header rows, 0 where there is no header.

    ``spanned`` has the numbers of the rows in which a cell spans columns: above a header, such a row belongs to it.
    """
    count = 0
    for number, row in enumerate(rows[:_MAX_HEADER_ROWS]):
        if not _looks_like_names(row):
            break
        count = number + 1
        if number not in spanned:
            break
    if count >= len(rows):
        return int(len(rows) == 1)
    return 0 if count == 1 and _is_key_value_list(rows) else count


def _is_key_value_list(rows: Sequence[Row]) -> bool:
    """Return whether rows of two cells are names and their values (Born | 3 May 1871).

    Then the first row is such a pair, too, and no header: its value is not shorter or plainer than those below.
    """
    if len(rows[0]) != 2:
        return False
    values = [row[1].strip() for row in rows[1:] if row[1].strip()]
    if not values or sum(map(is_value, values)) >= 0.5 * len(values):
        return False
    lengths = sorted(map(len, values))
    first = rows[0][1].strip()
    is_alike = len(first) > 0.5 * lengths[len(lengths) // 2] or any(map(str.isdigit, first))
    return is_alike or rows[0][0].rstrip().endswith(":")


def _looks_like_names(row: Row) -> bool:
    """Return whether a row could name columns: mostly filled, without values and without sentences."""
    cells = [cell.strip() for cell in row if cell.strip()]
    if len(cells) < 2 or len(cells) < 0.5 * len(row):
        return False
    return not any(is_value(cell) or len(cell) > _MAX_NAME_LENGTH for cell in cells)


def merge_header(rows: Sequence[Row]) -> Row:
    """Return header rows as one: each column's names from top to bottom, without repetitions."""
    if not rows:
        return ()
    columns = zip(*rows, strict=True)
    return tuple(" ".join(dict.fromkeys(cell for cell in column if cell.strip())) for column in columns)


def trim_grid(rows: Sequence[Row]) -> list[Row]:
    """Return the rows padded to one length, without blank rows and columns."""
    width = max(map(len, rows), default=0)
    padded = [row + ("",) * (width - len(row)) for row in rows if count_filled(row)]
    used = [any(row[column].strip() for row in padded) for column in range(width)]
    if all(used):
        return padded
    return [tuple(cell for cell, in_use in zip(row, used, strict=True) if in_use) for row in padded]


def split_titles(rows: Sequence[Row]) -> tuple[list[str], int]:
    """Return the title lines above a table and how many rows they take.

    A title line is a row with one filled cell; there is none where no row below has several.
    """
    lines: list[str] = []
    for row in rows:
        cells = list(dict.fromkeys(cell.strip() for cell in row if cell.strip()))
        if len(cells) > 1:
            return lines, len(lines)
        lines.extend(cells)
    return [], 0


def collapse_group_heading(row: Row) -> Row:
    """Return a row that one cell spans whole, which heads a group of rows, with its first cell alone filled."""
    return (row[0],) + ("",) * (len(row) - 1) if len(set(row)) == 1 else row
