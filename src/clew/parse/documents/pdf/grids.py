"""Tables of a PDF whose cells are ruled.

Horizontal and vertical rules that touch each other make a grid; each cell has the words between its ruling lines.
Cells between which a piece of rule is missing are one merged cell. pdfplumber finds the same tables from the same
lines at a tenth of the speed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from clew.core.cell_values import read_cell
from clew.core.types import Box, Column, Table
from clew.parse.documents.pdf.cells import is_number
from clew.parse.documents.pdf.headers import are_uncertain
from clew.parse.documents.pdf.hyphens import Hyphens
from clew.parse.documents.pdf.words import Page, Rule, Word

#: A range of amounts or percentages, as no name of a column has.
_AMOUNTS = re.compile(r"[$€£]\s?\d.*[$€£]\s?\d|\d\s?%.*\d\s?%")
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


def read_grid(
    grid: Grid, words: Sequence[Word], caption: str, hyphens: Hyphens
) -> tuple[Table, list[float | None]]:
    """Return the cells of a grid as a table, and where the label of each row begins, None if it has none.

    The text of a cell that is merged downwards, or in the header, is in each of its cells; that of one that is merged
    across the body is in the first.
    """
    area = _merged_cells(grid)
    texts = _cell_texts(grid, area, words, hyphens)
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
    paths = [
        tuple(dict.fromkeys(part for part in column if part)) for column in zip(*cells[:head], strict=True)
    ] or [()] * columns
    body = [row for row in range(head, rows) if any(cells[row])]
    texts_of_body = tuple(tuple(cells[row]) for row in body)
    numbers = [
        sum(is_number(row[column]) for row in texts_of_body if row[column]) for column in range(1, columns)
    ]
    words_of = _words_of_cells(grid, area, words)
    starts = [min((word.x0 for word in words_of[int(area[row, 0])]), default=None) for row in body]
    table = Table(
        tuple(" ".join(path) for path in paths),
        texts_of_body,
        caption,
        (grid.box,),
        (grid.page,) * len(body),
        columns=tuple(map(Column, paths)),
        cell_boxes=tuple(
            tuple(
                _cell_box(grid, area, row, column) if cells[row][column] else None
                for column in range(columns)
            )
            for row in body
        ),
        headers_uncertain=are_uncertain(paths[1:], numbers),
    )
    return table, starts


#: Labels are indented at most so many times.
_MAX_LEVELS = 4


def label_levels(starts: Sequence[float | None]) -> list[float]:
    """Return the indentation of labels from where they begin; empty if they are not indented, but centred, say.

    Indented labels begin at few places, each of which others have too.
    """
    edges: dict[float, int] = {}
    for x in sorted(start for start in starts if start is not None):
        edge = next((edge for edge in edges if x - edge <= SNAP), x)
        edges[edge] = edges.get(edge, 0) + 1
    if not 1 < len(edges) <= _MAX_LEVELS or min(edges.values()) < 2 or next(iter(edges.values())) < 3:
        return []
    levels: list[float] = []
    for start in starts:
        above = levels[-1] if levels else 0.0
        levels.append(above if start is None else float(sum(edge <= start + 0.1 for edge in edges) - 1))
    return levels


def _cell_box(grid: Grid, area: NDArray[np.int64], row: int, column: int) -> Box:
    """Return the rectangle of a cell, of the whole merged cell that it is part of."""
    rows, columns = np.nonzero(area == area[row, column])
    edges = (grid.xs[columns.min()], grid.ys[rows.min()], grid.xs[columns.max() + 1], grid.ys[rows.max() + 1])
    return Box(grid.page, *(round(edge, 1) for edge in edges))


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


def _cell_texts(
    grid: Grid, area: NDArray[np.int64], words: Sequence[Word], hyphens: Hyphens
) -> dict[int, str]:
    words_of = _words_of_cells(grid, area, words)
    return {number: _cell_text(cell_words, hyphens) for number, cell_words in words_of.items()}


def _words_of_cells(grid: Grid, area: NDArray[np.int64], words: Sequence[Word]) -> dict[int, list[Word]]:
    words_of: dict[int, list[Word]] = {int(number): [] for number in np.unique(area)}
    for word in words:
        if grid.contains(word):
            x, y = word_centre(word)
            row, column = np.searchsorted(grid.ys, y) - 1, np.searchsorted(grid.xs, x) - 1
            words_of[int(area[row, column])].append(word)
    return words_of


def _cell_text(words: Sequence[Word], hyphens: Hyphens) -> str:
    """Return the words of a cell in reading order; a word divided at a line's end is joined."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (word.y, word.x0)):
        if lines and word.y - lines[-1][0].y < 0.5 * word.size:
            lines[-1].append(word)
        else:
            lines.append([word])
    texts = (" ".join(word.text for word in sorted(line, key=lambda word: word.x0)) for line in lines)
    return reduce(hyphens.join, texts, "")


def _header_rows(area: NDArray[np.int64], texts: dict[int, str]) -> int:
    """Return how many rows are header: the first and those merged with it, 0 if one has values."""
    first = 1
    while first < len(area) and np.intersect1d(area[first - 1], area[first]).size:
        first += 1
    has_numbers = [
        any(is_number(texts[n]) or _AMOUNTS.search(texts[n]) for n in row[1:].tolist()) for row in area
    ]
    if first < len(area) and (not any(has_numbers[:first]) or _names_years(area, texts, first)):
        return first
    return 1 if _has_open_corner(area, texts) else 0


#: A year or a date at the top of a column: "FY 2021", "2021 (1)", "31.12.2021".
_PERIOD = re.compile(
    r"(?:[fc]y\s?)?(?:19|20)\d\d(?:\s?\(\w\))?|\d{1,2}[./]\d{1,2}[./](?:19|20)?\d\d", re.IGNORECASE
)


def _names_years(area: NDArray[np.int64], texts: dict[int, str], head: int) -> bool:
    """Return whether the numbers of the first ``head`` rows are years that name columns: two or more, all different,
    each above numbers that are no years."""
    periods: dict[str, int] = {}
    for column in range(1, area.shape[1]):
        above = [texts[n] for n in dict.fromkeys(area[:head, column].tolist())]
        numbers = [text for text in above if is_number(text) or _AMOUNTS.search(text)]
        if not numbers:
            continue
        cells = [texts[n] for n in area[head:, column].tolist()]
        below = [text for text in cells if is_number(text) or read_cell(text).kind == "number"]
        if not all(map(_PERIOD.fullmatch, numbers)) or not below or all(map(_PERIOD.fullmatch, below)):
            return False
        name = " ".join(above)
        periods[name] = periods.get(name, 0) + 1
    return len(periods) > 1 and max(periods.values()) == 1


def _has_open_corner(area: NDArray[np.int64], texts: dict[int, str]) -> bool:
    """Return whether the first row names columns, be it by numbers: no label stands beside it, but beside the others.

    Its names are different, and no amounts.
    """
    labels = [texts[n] for n in area[:, 0].tolist()]
    names = [name for n in dict.fromkeys(area[0].tolist()) if (name := texts[n])]
    body = [
        label for label, row in zip(labels[1:], area[1:].tolist(), strict=True) if any(texts[n] for n in row)
    ]
    is_filled = len(names) >= max(2, 0.7 * (area.shape[1] - 1)) and len(set(names)) == len(names)
    has_labels = len(body) > 1 and sum(map(bool, body)) >= 0.9 * len(body)
    return (
        not labels[0] and is_filled and has_labels and not any(re.search(r"[$€£¥%]", name) for name in names)
    )


def _is_table(grid: Grid, words: Sequence[Word]) -> bool:
    """Return whether at least two rows, and half of all, have words in two cells. The lines of a chart do not."""
    area = _merged_cells(grid)
    texts = _cell_texts(grid, area, words, Hyphens(Counter()))
    is_filled = [sum(bool(texts[n]) for n in set(row.tolist())) >= 2 for row in area]
    return sum(is_filled) >= max(2, len(is_filled) / 2)
