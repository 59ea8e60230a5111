"""Tables of a PDF: those with ruled cells, and those whose columns are only aligned.

Horizontal and vertical rules that touch each other make a grid; each cell has the words between its ruling lines.
Cells between which a piece of rule is missing are one merged cell. pdfplumber finds the same tables from the same
lines at a tenth of the speed.

Tables without a grid, also those that are ruled in one direction only, are found from the positions of their cells.
Wide gaps separate the cells of a line, after ``$``, ``%`` and parentheses, which filings set apart, have joined their
number. Lines with several cells that follow each other are a table. The positions of the numbers give its columns,
and the lines above the first row of numbers its header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.types import Box, Table
from clew.parse.documents.pdf.lines import CELL_GAP, Line
from clew.parse.documents.pdf.words import Page, Rule, Word

#: Rules meet if their ends or positions differ by no more than this, in points.
SNAP = 3.0
#: A grid with more lines in one direction is a drawing.
MAX_LINES = 400


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid: the positions of its lines (``xs`` and ``ys``, ascending), and the rules that form them."""

    page: int
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    horizontal: tuple[Rule, ...]
    vertical: tuple[Rule, ...]

    def contains(self, word: Word) -> bool:
        """Return whether a word stands inside the grid."""
        x, y = word_centre(word)
        return self.xs[0] < x < self.xs[-1] and self.ys[0] < y < self.ys[-1]

    @property
    def box(self) -> Box:
        """The rectangle around it."""
        edges = (self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])
        return Box(self.page, *(round(edge, 1) for edge in edges))


def word_centre(word: Word) -> tuple[float, float]:
    """Return the middle of a word, a third of its size above the baseline."""
    return (word.x0 + word.x1) / 2, word.y - word.size / 3


def find_grids(page: Page) -> list[Grid]:
    """Return the ruled grids of a page that hold a table, from the top."""
    horizontal = [rule for rule in page.rules if rule[2] - rule[0] >= rule[3] - rule[1]]
    vertical = [rule for rule in page.rules if rule[2] - rule[0] < rule[3] - rule[1]]
    if len(horizontal) < 3 or len(vertical) < 3:
        return []
    grids = []
    for rows, columns in _group_touching(horizontal, vertical):
        ys = _merge_positions([(rule[1] + rule[3]) / 2 for rule in rows])
        xs = _merge_positions([(rule[0] + rule[2]) / 2 for rule in columns])
        if 3 <= len(xs) <= MAX_LINES and 3 <= len(ys) <= MAX_LINES:
            grids.append(Grid(page.number, xs, ys, tuple(rows), tuple(columns)))
    grids = [grid for grid in grids if _is_table(grid, page.words)]
    return sorted(grids, key=lambda grid: (grid.ys[0], grid.xs[0]))


def read_grid(grid: Grid, words: Sequence[Word], caption: str) -> Table:
    """Return the cells of a grid as a table.

    The text of a cell that is merged downwards, or in the header, is in each of its cells; that of one that is merged
    across the body is in the first.
    """
    area = _merged_cells(grid)
    texts = _cell_texts(grid, area, words)
    rows, columns = area.shape
    head = _header_rows(area, texts)
    cells = [
        [
            texts[area[row, column]]
            if row < head or column == 0 or area[row, column] != area[row, column - 1]
            else ""
            for column in range(columns)
        ]
        for row in range(rows)
    ]
    header = tuple(
        " ".join(dict.fromkeys(part for part in column if part)) for column in zip(*cells[:head], strict=True)
    )
    body = [row for row in cells[head:] if any(row)]
    return Table(
        header or ("",) * columns,
        tuple(tuple(row) for row in body),
        caption,
        (grid.box,),
        (grid.page,) * len(body),
    )


def _group_touching(horizontal: list[Rule], vertical: list[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Return the groups of rules in which each rule meets another one that runs the other way."""
    rows, columns = np.array(horizontal), np.array(vertical)
    meets = (
        (rows[:, None, 0] - SNAP <= columns[None, :, 2])
        & (rows[:, None, 2] + SNAP >= columns[None, :, 0])
        & (columns[None, :, 1] - SNAP <= rows[:, None, 3])
        & (columns[None, :, 3] + SNAP >= rows[:, None, 1])
    )
    # Labels spread along the crossings until nothing changes: the smallest number of a group wins.
    label = np.arange(len(horizontal))
    while True:
        column_label = np.where(meets, label[:, None], len(horizontal)).min(axis=0)
        row_label = np.where(meets, column_label[None, :], len(horizontal)).min(axis=1)
        new_label = np.minimum(label, row_label)
        if np.array_equal(new_label, label):
            break
        label = new_label
    groups = []
    for number in np.unique(label):
        group_rows = [horizontal[n] for n in np.flatnonzero(label == number)]
        group_columns = [vertical[n] for n in np.flatnonzero(column_label == number)]
        if group_columns:
            groups.append((group_rows, group_columns))
    return groups


def _merge_positions(values: Sequence[float]) -> tuple[float, ...]:
    """Return the values in ascending order, with the mean in place of those that nearly agree."""
    groups: list[list[float]] = []
    for value in sorted(values):
        if groups and value - groups[-1][-1] <= SNAP:
            groups[-1].append(value)
        else:
            groups.append([value])
    return tuple(sum(group) / len(group) for group in groups)


def _merged_cells(grid: Grid) -> NDArray[np.int64]:
    """Return for each cell, in an array (rows, columns), the number of the merged cell that it is part of."""
    xs, ys = np.array(grid.xs), np.array(grid.ys)
    x, y = (xs[1:] + xs[:-1]) / 2, (ys[1:] + ys[:-1]) / 2
    has_wall = np.zeros((len(y), len(x) - 1), dtype=np.bool_)
    for x0, top, x1, bottom in grid.vertical:
        column = int(np.argmin(np.abs(xs - (x0 + x1) / 2))) - 1
        if 0 <= column < len(x) - 1:
            has_wall[(y > top - SNAP) & (y < bottom + SNAP), column] = True
    has_floor = np.zeros((len(y) - 1, len(x)), dtype=np.bool_)
    for x0, top, x1, bottom in grid.horizontal:
        row = int(np.argmin(np.abs(ys - (top + bottom) / 2))) - 1
        if 0 <= row < len(y) - 1:
            has_floor[row, (x > x0 - SNAP) & (x < x1 + SNAP)] = True
    area = np.arange(len(y) * len(x)).reshape(len(y), len(x))
    while True:
        before = area.copy()
        lower = np.minimum(area[:, 1:], area[:, :-1])
        area[:, 1:][~has_wall], area[:, :-1][~has_wall] = lower[~has_wall], lower[~has_wall]
        lower = np.minimum(area[1:], area[:-1])
        area[1:][~has_floor], area[:-1][~has_floor] = lower[~has_floor], lower[~has_floor]
        if np.array_equal(before, area):
            return area


def _cell_texts(grid: Grid, area: NDArray[np.int64], words: Sequence[Word]) -> dict[int, str]:
    words_of: dict[int, list[Word]] = {int(number): [] for number in np.unique(area)}
    for word in words:
        if grid.contains(word):
            x, y = word_centre(word)
            row, column = np.searchsorted(grid.ys, y) - 1, np.searchsorted(grid.xs, x) - 1
            words_of[int(area[row, column])].append(word)
    return {number: _cell_text(cell_words) for number, cell_words in words_of.items()}


def _cell_text(words: Sequence[Word]) -> str:
    """Return the words of a cell in reading order; a word divided at a line's end is joined."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (word.y, word.x0)):
        if lines and word.y - lines[-1][0].y < 0.5 * word.size:
            lines[-1].append(word)
        else:
            lines.append([word])
    joined = ""
    for line in lines:
        text = " ".join(word.text for word in sorted(line, key=lambda word: word.x0))
        is_divided = joined.endswith("-") and joined[-2:-1].islower() and text[:1].islower()
        joined = joined[:-1] + text if is_divided else f"{joined} {text}".strip()
    return joined


def _header_rows(area: NDArray[np.int64], texts: dict[int, str]) -> int:
    """Return how many rows are header: the first and those merged with it, 0 if one has values."""
    first = 1
    while first < len(area) and np.intersect1d(area[first - 1], area[first]).size:
        first += 1
    has_numbers = [any(is_number(texts[n]) for n in row[1:].tolist()) for row in area]
    return first if first < len(area) and not any(has_numbers[:first]) else 0


def _is_table(grid: Grid, words: Sequence[Word]) -> bool:
    """Return whether at least two rows, and half of all, have words in two cells. The lines of a chart do not."""
    area = _merged_cells(grid)
    texts = _cell_texts(grid, area, words)
    is_filled = [sum(bool(texts[n]) for n in set(row.tolist())) >= 2 for row in area]
    return sum(is_filled) >= max(2, len(is_filled) / 2)


_NUMBER = re.compile(r"^[($€£¥+\-–—−]*\s*[\d.,]*\d[\d.,]*\s*[)%]*[)%]*(?:x|bps|pts?\.?)?(?:\s?\(\w\))?$")
_NO_VALUE = re.compile(r"^[$€£]?\s*[-–—−]+\s*%?$|^(?:n/?a|nm|\*+|n/m)$", re.IGNORECASE)
_YEAR = re.compile(r"^(?:fy)?\s?(?:19|20)\d\d(?:\s?\(\w\))?$", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[•·▪■◦‣*\-–—o]|\(?[a-z0-9ivx]{1,4}[.)])$", re.IGNORECASE)
_LEADER = re.compile(r"(?:\s?[.·…_]){4,}\s*")
_CURRENCIES = frozenset("$€£¥")
#: Words before a number that belong to it, however far filings set them apart, and words after it.
_OPENING = frozenset({*_CURRENCIES, "($", "(", "$("})
_CLOSING = frozenset({"%", ")", ")%", "%)"})
#: A table has at least so many lines with several cells.
MIN_ROWS = 2


def is_number(text: str) -> bool:
    """Return whether a cell's text is a number, or a mark for a missing one."""
    return bool(_NUMBER.match(text) or _NO_VALUE.match(text))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a line: its words and their text."""

    text: str
    words: tuple[Word, ...]

    @property
    def x0(self) -> float:
        """Left edge."""
        return self.words[0].x0

    @property
    def x1(self) -> float:
        """Right edge."""
        return self.words[-1].x1

    def split(self) -> list[Cell]:
        """Return the parts that are separated by gaps wider than between words, narrower than between cells."""
        parts: list[list[Word]] = [[self.words[0]]]
        for word in self.words[1:]:
            if word.x0 - parts[-1][-1].x1 > 0.5 * word.size:
                parts.append([])
            parts[-1].append(word)
        return [Cell(_join_words(part), tuple(part)) for part in parts]

    @property
    def is_numeric(self) -> bool:
        """Whether it is a number, or a mark for a missing one."""
        return is_number(self.text)


@dataclass(frozen=True, slots=True)
class Row:
    """A line as cells."""

    line: Line
    cells: tuple[Cell, ...]

    @property
    def is_tabular(self) -> bool:
        """Whether it looks like a row of a table: several cells, and no list item or heading with its number."""
        if len(self.cells) < 2:
            return False
        if len(self.cells) == 2 and _BULLET.match(self.cells[0].text):
            return False
        short = all(len(cell.text) <= 60 for cell in self.cells[1:])
        return short or any(cell.is_numeric for cell in self.cells[1:])

    @property
    def numeric_cells(self) -> list[Cell]:
        """The cells that hold numbers."""
        return [cell for cell in self.cells if cell.is_numeric]

    @property
    def is_heading_like(self) -> bool:
        """Whether it has no numbers but years, so that it heads columns rather than fills them."""
        return all(_YEAR.match(cell.text) for cell in self.numeric_cells)


def split_line(line: Line) -> Row:
    """Return a line as cells."""
    parts: list[list[Word]] = []
    for word in line.words:
        if _LEADER.fullmatch(word.text):
            continue
        if parts and _joins(parts[-1], word):
            parts[-1].append(word)
        else:
            parts.append([word])
    cells = [Cell(_join_words(part), tuple(part)) for part in parts]
    return Row(line, tuple(cell for cell in cells if cell.text))


def _joins(part: Sequence[Word], word: Word) -> bool:
    """Return whether a word belongs to the cell whose words so far are ``part``."""
    before = part[-1]
    gap = word.x0 - before.x1
    size = max(min(before.size, word.size), 4.0)
    if before.text in _OPENING and (word.text[:1].isdigit() or word.text.startswith(("(", "-", "—", "–"))):
        return gap < 12 * size
    if word.text in _CLOSING and (before.text[-1:].isdigit() or before.text.endswith((")", "—", "–"))):
        return gap < 3 * size
    if word.text in {"$", "€", "£"}:
        return False
    are_numbers = bool(_NUMBER.match(before.text)) and bool(_NUMBER.match(word.text))
    return gap <= (0.45 if are_numbers else CELL_GAP) * size


def _join_words(part: Sequence[Word]) -> str:
    text = _LEADER.sub(" ", " ".join(word.text for word in part)).strip()
    text = re.sub(r"([$€£¥(])\s+(?=[\d(.—–-])", r"\1", text)
    return re.sub(r"(?<=[\d)])\s+([%)])", r"\1", text)


def find_tables(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the half-open ranges of lines that are tables."""
    tables: list[tuple[int, int]] = []
    start = 0
    while start < len(rows):
        if not rows[start].is_tabular:
            start += 1
            continue
        end, last = start + 1, start
        while end < len(rows) and _continues(rows[last].line, rows[end], end - last):
            if rows[end].is_tabular:
                last = end
            end += 1
        body = [row for row in rows[start : last + 1] if row.is_tabular]
        columns = _find_columns(body) if len(body) >= MIN_ROWS else []
        if columns and tables and _is_same_table(rows, tables[-1], start):
            tables[-1] = (tables[-1][0], last + 1)
        elif columns:
            least = tables[-1][1] if tables else 0
            tables.append((_start_of_header(rows, start, least, columns), last + 1))
        start = last + 1
    return tables


def _start_of_header(
    rows: Sequence[Row], start: int, least: int, columns: Sequence[tuple[float, float]]
) -> int:
    """Return the first of the lines right above ``start`` that head columns; nothing in them stands left of these."""
    while start > least:
        line, next_line = rows[start - 1].line, rows[start].line
        size = max(line.size, 4.0)
        is_near = line.page == next_line.page and 0 < next_line.y - line.y < 1.8 * size
        is_above = line.x0 > columns[0][0] - 2 * size and line.x1 < columns[-1][1] + 2 * size
        if not is_near or not is_above or len(line.text) > 80 or not rows[start - 1].is_heading_like:
            break
        start -= 1
    return start


def _is_same_table(rows: Sequence[Row], before: tuple[int, int], start: int) -> bool:
    """Return whether lines continue the table before them: they have no header, and little is in between."""
    between = rows[before[1] : start]
    first, last = rows[start], rows[before[1] - 1]
    if len(between) > 4 or first.line.page != last.line.page or not 0 < first.line.y - last.line.y < 120:
        return False
    if not first.numeric_cells or first.is_heading_like or any(len(row.line.text) > 200 for row in between):
        return False
    above = _find_columns([row for row in rows[before[0] : before[1]] if row.is_tabular])
    below = _find_columns([first])
    return bool(below) and all(any(x0 < b and a < x1 for a, b in above) for x0, x1 in below)


def _continues(last: Line, row: Row, distance: int) -> bool:
    """Return whether a line continues the table whose last row is ``last``, ``distance`` lines above."""
    line = row.line
    if line.page != last.page or line.y < last.y:
        return False
    gap = (line.y - last.y) / max(line.size, 4.0)
    if row.is_tabular:
        return gap < 3.2 * distance + 1.5
    # A group heading or the rest of a label: short, close, and few of them in a row.
    return distance <= 3 and gap < 2.6 * distance + 0.5 and line.x1 - line.x0 < 320 and len(line.text) < 110


def _find_columns(body: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the edges of the columns after the first: those of the cells with numbers, else of all cells."""
    value_rows = [row for row in body if not row.is_heading_like]
    spans = [
        (cell.x0, cell.x1) for row in value_rows for cell in row.numeric_cells if cell is not row.cells[0]
    ]
    if len(spans) < len(body) * 0.5:
        spans = [(cell.x0, cell.x1) for row in body for cell in row.cells[1:]]
    columns = _merge_overlapping(spans)
    # Columns of words stand apart from each other only in rows that have a cell in every column.
    if not body:
        return columns
    usual, count = Counter(len(row.cells) for row in body).most_common(1)[0]
    if usual - 1 > len(columns) and count >= max(2, len(body) / 2):
        full_rows = [row for row in body if len(row.cells) == usual]
        full = _merge_overlapping([(cell.x0, cell.x1) for row in full_rows for cell in row.cells[1:]])
        if len(full) == usual - 1:
            return full
    return columns


def _merge_overlapping(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the unions of overlapping intervals, in ascending order."""
    merged: list[list[float]] = []
    for x0, x1 in sorted(spans):
        if merged and x0 < merged[-1][1] - 0.5:
            merged[-1][1] = max(merged[-1][1], x1)
        else:
            merged.append([x0, x1])
    return [(x0, x1) for x0, x1 in merged]


def build_table(rows: Sequence[Row], caption: str) -> Table:
    """Return lines as a table: its header, and rows of a label and a cell for each column."""
    columns = _find_columns([row for row in rows if row.is_tabular])
    left = columns[0][0]
    placed = [_place_cells(row, columns, left) for row in rows]
    head = next(
        (n for n, row in enumerate(rows) if row.is_tabular and row.numeric_cells and not row.is_heading_like),
        len(rows),
    )
    if head == len(rows):
        head = 1 if rows[0].is_tabular and len(rows) > 1 else 0
    # A label without values right above the first row of numbers is a group heading, not a header.
    while head > 0 and not any(placed[head - 1][1:]) and placed[head - 1][0]:
        head -= 1
    _repeat_centred_headers(placed[:head], rows[:head], columns)
    header = tuple(" ".join(part for part in column if part) for column in zip(*placed[:head], strict=True))
    body = _join_labels(placed[head:], [row.line.page for row in rows[head:]])
    boxes = _boxes([row.line for row in rows])
    return Table(
        header if head else ("",) * (len(columns) + 1),
        tuple(tuple(cells) for cells, _ in body),
        caption,
        boxes,
        tuple(page for _, page in body),
    )


def _place_cells(row: Row, columns: Sequence[tuple[float, float]], left: float) -> list[str]:
    """Return the texts of a row: its label, then one per column. A cell over several columns is in each of them."""
    placed: list[list[str]] = [[] for _ in range(len(columns) + 1)]
    for number, cell in enumerate(row.cells):
        over = [n for n, (x0, x1) in enumerate(columns) if cell.x0 < x1 and cell.x1 > x0]
        is_label = number == 0 and (cell.x1 <= left + 2 or (cell.x0 < left - 30 and not cell.is_numeric))
        if is_label:
            placed[0].append(cell.text)
        elif over and (cell.is_numeric or len(row.cells) == 1):
            centre = (cell.x0 + cell.x1) / 2
            best = min(over, key=lambda n: abs(centre - sum(columns[n]) / 2)) if cell.is_numeric else None
            for n in over if best is None else [best]:
                placed[n + 1].append(cell.text)
        elif over:
            # Headers of neighbouring columns may stand so close that they look like one cell over both.
            parts = cell.split()
            apart = len(over) > 1 and len(parts) == len(over)
            for place, n in enumerate(over):
                placed[n + 1].append(parts[place].text if apart else cell.text)
        elif cell.x1 <= left + 2:
            placed[0].append(cell.text)
        else:
            centre = (cell.x0 + cell.x1) / 2
            n = min(range(len(columns)), key=lambda n: abs(centre - sum(columns[n]) / 2))
            placed[n + 1].append(cell.text)
    return [" ".join(parts) for parts in placed]


def _repeat_centred_headers(
    placed: list[list[str]], rows: Sequence[Row], columns: Sequence[tuple[float, float]]
) -> None:
    """Write each header that is centred over several columns into all of them, from the lowest line up.

    They are the columns around its middle that have a header of their own below and none beside it.
    """
    below = [False] * len(columns)
    for cells, row in zip(reversed(placed), reversed(rows), strict=True):
        filled = [bool(text) for text in cells[1:]]
        for cell in row.cells:
            own = [n for n, text in enumerate(cells[1:]) if text == cell.text]
            free = [below[n] and (n in own or not filled[n]) for n in range(len(columns))]
            for n in _columns_under(cell, columns, free, own):
                cells[n + 1] = cell.text
        below = [a or bool(text) for a, text in zip(below, cells[1:], strict=True)]


def _columns_under(
    cell: Cell, columns: Sequence[tuple[float, float]], free: Sequence[bool], own: Sequence[int]
) -> range:
    """Return the longest run of free columns, with ``own`` among them, that has the same middle as the cell."""
    middle = (cell.x0 + cell.x1) / 2
    best = range(0)
    for first in range(len(columns)):
        for last in range(first + 1, len(columns)):
            run = range(first, last + 1)
            x0, x1 = columns[first][0], columns[last][1]
            if not all(free[n] for n in run) or not all(n in run for n in own):
                continue
            if abs((x0 + x1) / 2 - middle) <= max(4.0, 0.08 * (x1 - x0)) and len(run) > len(best):
                best = run
    return best


def _join_labels(placed: Sequence[list[str]], pages: Sequence[int]) -> list[tuple[list[str], int]]:
    """Join labels that run over several lines, and return the rows with their pages.

    A label goes on in the next line if that begins in lower case, and one of the two has no values.
    """
    joined: list[tuple[list[str], int]] = []
    for cells, page in zip(placed, pages, strict=True):
        before = joined[-1][0] if joined else None
        is_label_only = not any(cells[1:])
        if before and is_label_only and cells[0][:1].islower() and any(before[1:]):
            before[0] = f"{before[0]} {cells[0]}"
        elif before and not any(before[1:]) and not before[0].endswith(":") and cells[0][:1].islower():
            joined[-1] = ([f"{before[0]} {cells[0]}", *cells[1:]], page)
        else:
            joined.append((list(cells), page))
    return joined


def _boxes(lines: Sequence[Line]) -> tuple[Box, ...]:
    by_page: dict[int, list[Line]] = {}
    for line in lines:
        by_page.setdefault(line.page, []).append(line)
    return tuple(bounding_box(page_lines) for page_lines in by_page.values())


def bounding_box(lines: Sequence[Line]) -> Box:
    """Return the rectangle around lines of one page."""
    boxes = [line.box for line in lines]
    return Box(
        boxes[0].page,
        min(box.x0 for box in boxes),
        min(box.y0 for box in boxes),
        max(box.x1 for box in boxes),
        max(box.y1 for box in boxes),
    )
