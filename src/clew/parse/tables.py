"""A table as parsers hand it over, and the two ways it is written out: Markdown, and row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.types import Box


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
