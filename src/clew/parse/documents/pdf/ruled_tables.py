"""Tables whose cells are ruled: a grid of lines, each cell the words inside it, however many lines they take.

A grid is what horizontal and vertical rules make that touch each other. Cells between which a piece of rule is
missing are one merged cell. pdfplumber does the same from the same lines at a tenth of the speed, so that a
dependency is saved; tables ruled in one direction only are left to :mod:`clew.parse.documents.pdf.aligned_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.types import Box
from clew.parse.documents.pdf.aligned_tables import is_number
from clew.parse.documents.pdf.words import Page, Rule, Word
from clew.parse.documents.tables import Table

#: Rules whose ends or positions differ by no more, in points, are taken to meet.
SNAP = 3.0
#: A grid of more lines in one direction is a drawing.
MAX_LINES = 400


@dataclass(frozen=True, slots=True)
class Grid:
    """The lines of a grid: ``xs`` and ``ys``, ascending, and the rules that make them."""

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
    across = [rule for rule in page.rules if rule[2] - rule[0] >= rule[3] - rule[1]]
    down = [rule for rule in page.rules if rule[2] - rule[0] < rule[3] - rule[1]]
    if len(across) < 3 or len(down) < 3:
        return []
    found = []
    for some_across, some_down in _touching(across, down):
        ys = _places([(rule[1] + rule[3]) / 2 for rule in some_across])
        xs = _places([(rule[0] + rule[2]) / 2 for rule in some_down])
        if 3 <= len(xs) <= MAX_LINES and 3 <= len(ys) <= MAX_LINES:
            found.append(Grid(page.number, xs, ys, tuple(some_across), tuple(some_down)))
    found = [grid for grid in found if _is_table(grid, page.words)]
    return sorted(found, key=lambda grid: (grid.ys[0], grid.xs[0]))


def read_grid(grid: Grid, words: Sequence[Word], caption: str) -> Table:
    """Return the cells of a grid as a table: what is merged downwards, or in the header, is in each cell."""
    area = _areas(grid)
    texts = _texts(grid, area, words)
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


def _touching(across: list[Rule], down: list[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Return the groups of rules of which each meets another of its group that runs the other way."""
    flat, tall = np.array(across), np.array(down)
    meet = (
        (flat[:, None, 0] - SNAP <= tall[None, :, 2])
        & (flat[:, None, 2] + SNAP >= tall[None, :, 0])
        & (tall[None, :, 1] - SNAP <= flat[:, None, 3])
        & (tall[None, :, 3] + SNAP >= flat[:, None, 1])
    )
    # Labels spread along the crossings until nothing changes: the smallest number of a group wins.
    label = np.arange(len(across))
    while True:
        of_tall = np.where(meet, label[:, None], len(across)).min(axis=0)
        spread = np.minimum(label, np.where(meet, of_tall[None, :], len(across)).min(axis=1))
        if np.array_equal(spread, label):
            break
        label = spread
    groups = []
    for number in np.unique(label):
        flats = [across[n] for n in np.flatnonzero(label == number)]
        talls = [down[n] for n in np.flatnonzero(of_tall == number)]
        if talls:
            groups.append((flats, talls))
    return groups


def _places(values: Sequence[float]) -> tuple[float, ...]:
    """Return the values with those that nearly agree as one, ascending."""
    places: list[list[float]] = []
    for value in sorted(values):
        if places and value - places[-1][-1] <= SNAP:
            places[-1].append(value)
        else:
            places.append([value])
    return tuple(sum(some) / len(some) for some in places)


def _areas(grid: Grid) -> NDArray[np.int64]:
    """Return for each cell, (rows, columns), the number of the merged cell that it is part of."""
    xs, ys = np.array(grid.xs), np.array(grid.ys)
    x, y = (xs[1:] + xs[:-1]) / 2, (ys[1:] + ys[:-1]) / 2
    walled = np.zeros((len(y), len(x) - 1), dtype=np.bool_)
    for x0, top, x1, bottom in grid.vertical:
        column = int(np.argmin(np.abs(xs - (x0 + x1) / 2))) - 1
        if 0 <= column < len(x) - 1:
            walled[(y > top - SNAP) & (y < bottom + SNAP), column] = True
    floored = np.zeros((len(y) - 1, len(x)), dtype=np.bool_)
    for x0, top, x1, bottom in grid.horizontal:
        row = int(np.argmin(np.abs(ys - (top + bottom) / 2))) - 1
        if 0 <= row < len(y) - 1:
            floored[row, (x > x0 - SNAP) & (x < x1 + SNAP)] = True
    area = np.arange(len(y) * len(x)).reshape(len(y), len(x))
    while True:
        before = area.copy()
        lower = np.minimum(area[:, 1:], area[:, :-1])
        area[:, 1:][~walled], area[:, :-1][~walled] = lower[~walled], lower[~walled]
        lower = np.minimum(area[1:], area[:-1])
        area[1:][~floored], area[:-1][~floored] = lower[~floored], lower[~floored]
        if np.array_equal(before, area):
            return area


def _texts(grid: Grid, area: NDArray[np.int64], words: Sequence[Word]) -> dict[int, str]:
    inside: dict[int, list[Word]] = {int(number): [] for number in np.unique(area)}
    for word in words:
        if grid.contains(word):
            x, y = word_centre(word)
            row, column = np.searchsorted(grid.ys, y) - 1, np.searchsorted(grid.xs, x) - 1
            inside[int(area[row, column])].append(word)
    return {number: _text(some) for number, some in inside.items()}


def _text(words: Sequence[Word]) -> str:
    """Return the words of a cell in reading order, one divided at a line's end put together."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (word.y, word.x0)):
        if lines and word.y - lines[-1][0].y < 0.5 * word.size:
            lines[-1].append(word)
        else:
            lines.append([word])
    joined = ""
    for line in lines:
        text = " ".join(word.text for word in sorted(line, key=lambda word: word.x0))
        divided = joined.endswith("-") and joined[-2:-1].islower() and text[:1].islower()
        joined = joined[:-1] + text if divided else f"{joined} {text}".strip()
    return joined


def _header_rows(area: NDArray[np.int64], texts: dict[int, str]) -> int:
    """Return how many rows head the columns: the first, those merged with it, and no row with a number
    beyond its first column."""
    first = 1
    while first < len(area) and np.intersect1d(area[first - 1], area[first]).size:
        first += 1
    values = [any(is_number(texts[n]) for n in row[1:].tolist()) for row in area]
    return first if first < len(area) and not any(values[:first]) else 0


def _is_table(grid: Grid, words: Sequence[Word]) -> bool:
    """Return whether at least two rows, and half of them, have words in two cells: a chart's lines do not."""
    area = _areas(grid)
    texts = _texts(grid, area, words)
    filled = [sum(bool(texts[n]) for n in set(row.tolist())) >= 2 for row in area]
    return sum(filled) >= max(2, len(filled) / 2)
