"""Lines into headings, paragraphs and tables, over all pages of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.core.types import Box
from clew.parse.documents.builder import DocumentBuilder
from clew.parse.documents.pdf.aligned_tables import bounding_box, build_table, find_tables, split_line
from clew.parse.documents.pdf.headings import Headings
from clew.parse.documents.pdf.lines import Line, PageLines
from clew.parse.documents.pdf.ruled_tables import SNAP, Grid, find_grids, read_grid
from clew.parse.documents.tables import Table

_BULLET = re.compile(r"^(?:[•·▪■◦‣●○]|\(?[a-z0-9ivx]{1,3}[.)])\s", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[a-z])[-\u2010]$")
#: Lines above a table that may be its caption.
MAX_CAPTION_LINES = 4


@dataclass(slots=True)
class Block:
    """A paragraph, with a level if it is a heading, or a table."""

    lines: list[Line]
    level: int | None = None
    table: Table | None = None
    grid: Grid | None = None

    @property
    def text(self) -> str:
        """The paragraph's words, with words divided at a line's end put together."""
        joined = ""
        for line in self.lines:
            joined = (
                _HYPHEN.sub("", joined) + line.text
                if _divided(joined, line.text)
                else f"{joined} {line.text}"
            )
        return joined.strip()

    @property
    def boxes(self) -> tuple[Box, ...]:
        """One box for each page."""
        pages = dict.fromkeys(line.page for line in self.lines)
        return tuple(bounding_box([line for line in self.lines if line.page == page]) for page in pages)


def _divided(before: str, after: str) -> bool:
    return bool(_HYPHEN.search(before)) and after[:1].islower()


def add_pages(sheets: Sequence[PageLines], headings: Headings, builder: DocumentBuilder) -> None:
    """Put every page's headings, paragraphs and tables into ``builder``, in reading order."""
    pages = [_blocks(sheet, headings) for sheet in sheets]
    _join_tables(pages)
    _join_paragraphs(pages)
    for sheet, blocks in zip(sheets, pages, strict=True):
        page = sheet.page
        builder.add_page(
            page.number, sheet.label, Box(page.number, 0, 0, round(page.width, 1), round(page.height, 1))
        )
        for block in blocks:
            if block.table is not None:
                builder.add_table(block.table)
            elif block.level is not None:
                builder.add_heading(block.level, block.text, block.boxes)
            else:
                builder.add_paragraph(block.text, block.boxes)


def _blocks(sheet: PageLines, headings: Headings) -> list[Block]:
    blocks: list[Block] = []
    lines: list[Line] = []
    waiting = find_grids(sheet.page)
    for line in sheet.lines:
        grid = next((grid for grid in waiting if any(map(grid.contains, line.words))), None)
        outside = tuple(word for word in line.words if not any(one.contains(word) for one in waiting))
        if grid is not None and not any(block.grid is grid for block in blocks):
            # The table stands where its first line does, after what has been gathered.
            blocks += _unruled(lines, headings)
            lines = []
            words = [word for one in sheet.lines for word in one.words]
            blocks.append(Block([], table=read_grid(grid, words, _caption(blocks, line)), grid=grid))
        if outside:
            lines.append(line if grid is None else replace(line, words=outside))
        if grid is not None:
            of_grid = next(block for block in blocks if block.grid is grid)
            of_grid.lines.append(line)
    return blocks + _unruled(lines, headings)


def _unruled(lines: Sequence[Line], headings: Headings) -> list[Block]:
    rows = [split_line(line) for line in lines]
    blocks: list[Block] = []
    position = 0
    for start, end in find_tables(rows):
        blocks += _paragraphs(lines[position:start], headings)
        caption = _caption(blocks, rows[start].line)
        blocks.append(
            Block([row.line for row in rows[start:end]], table=build_table(rows[start:end], caption))
        )
        position = end
    return blocks + _paragraphs(lines[position:], headings)


def _paragraphs(lines: Sequence[Line], headings: Headings) -> list[Block]:
    blocks: list[Block] = []
    for group in _groups(lines):
        blocks.append(Block(list(group), headings.level_of(group)))
    return blocks


def _groups(lines: Sequence[Line]) -> Iterator[list[Line]]:
    group: list[Line] = []
    for line in lines:
        if group and _breaks(group, line):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _breaks(group: Sequence[Line], line: Line) -> bool:
    """Return whether ``line`` starts a new paragraph after ``group``."""
    before = group[-1]
    size = max(before.size, 4.0)
    if line.page != before.page or line.y < before.y - 1:
        # The next column, or the next page: goes on if the sentence does.
        return not _goes_on(before, line)
    if (
        line.y - before.y > 1.75 * size
        or abs(line.size - before.size) > 0.12 * size
        or line.emphasis != before.emphasis
    ):
        return True
    if _BULLET.match(line.text):
        return True
    indented = (
        line.x0 - before.x0 > 0.9 * size and len(group) > 0 and before.text.rstrip().endswith((".", ":", "?"))
    )
    short = before.x1 < max(one.x1 for one in (*group, line)) - 6 * size
    return indented or (short and before.text.rstrip().endswith((".", ":", "?", "!")))


def _goes_on(before: Line, line: Line) -> bool:
    return (
        not before.text.rstrip().endswith((".", ":", "?", "!", ";"))
        and line.text[:1].islower()
        and abs(line.size - before.size) < 0.6
        and line.emphasis == before.emphasis
    )


def _caption(blocks: list[Block], first: Line) -> str:
    """Return the title lines right above a table: headings stay sections, other short lines move to it."""
    parts: list[str] = []
    lowest = first
    while blocks and len(parts) < MAX_CAPTION_LINES:
        last = blocks[-1]
        if last.table is not None or last.lines[-1].page != first.page or len(last.lines) > 3:
            break
        if lowest.y - last.lines[-1].y > 4 * max(lowest.size, 6.0) or len(last.text) > 160:
            break
        if last.level is not None:
            parts.append(last.text)
            break
        if last.text.rstrip().endswith((".", ";", ",")) and not re.match(
            r"^\s*table\s", last.text, re.IGNORECASE
        ):
            break
        parts.append(last.text)
        lowest = last.lines[0]
        blocks.pop()
    return " ".join(reversed(parts)).rstrip(":")


def _join_tables(pages: list[list[Block]]) -> None:
    """Make one of tables that run over pages: the last of a page and the first of the next, alike in columns."""
    open_block: Block | None = None
    for blocks in pages:
        if open_block is not None and blocks and blocks[0].table is not None and open_block.table is not None:
            going_on = _going_on(open_block.table, open_block.grid, blocks[0].table, blocks[0].grid)
            joined = _joined(open_block.table, going_on)
            if joined is not None:
                open_block.table = joined
                open_block.lines += blocks.pop(0).lines
                if not blocks:
                    continue
        open_block = blocks[-1] if blocks and blocks[-1].table is not None else None


def _going_on(first: Table, one: Grid | None, table: Table, other: Grid | None) -> Table:
    """Return a table; where its grid has the columns of the one before but another header, that is a row."""
    if one is None or other is None or len(one.xs) != len(other.xs) or table.caption:
        return table
    alike = all(abs(a - b) <= SNAP for a, b in zip(one.xs, other.xs, strict=True))
    if not alike or table.header == first.header or not any(table.header):
        return table
    return replace(
        table,
        header=("",) * len(table.header),
        rows=(table.header, *table.rows),
        row_pages=(other.page, *table.row_pages),
    )


def _joined(first: Table, second: Table) -> Table | None:
    if len(first.header) != len(second.header):
        return None
    bare = not any(second.header)
    if not bare and second.header != first.header:
        return None
    if bare and second.caption and second.caption != first.caption:
        return None
    return replace(
        first,
        rows=first.rows + second.rows,
        boxes=first.boxes + second.boxes,
        row_pages=first.row_pages + second.row_pages,
    )


def _join_paragraphs(pages: list[list[Block]]) -> None:
    """Join a paragraph that goes on at the top of the next page."""
    before: Block | None = None
    for blocks in pages:
        first = blocks[0] if blocks else None
        prose = before and first and first.table is None and first.level is None
        if prose and before and first and _goes_on(before.lines[-1], first.lines[0]):
            before.lines += first.lines
            blocks.pop(0)
        last = blocks[-1] if blocks else None
        before = last if last and last.table is None and last.level is None else None
