"""The header of a table without a grid: which names stand over which columns.

Each cell of a header line covers one column or several neighbouring ones: those over which its underline runs, else
those that it stands over, else those in whose middle it is centred and that have names of their own below. What
covers a column, from top to bottom, is its path. A table whose number columns do not each have a path of their own
has uncertain headers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from clew.core.cell_values import read_scale, read_unit
from clew.core.types import Column
from clew.parse.documents.pdf.cells import Cell, Row
from clew.parse.documents.pdf.words import Rule, Word

#: The left and right edge of a column.
Edges = tuple[float, float]

_REMARK = re.compile(r"^\(?\W*(?:un)?audited\W*\)?$", re.IGNORECASE)
#: The name of a column that says what its numbers are, not whose.
_KIND = re.compile(
    r"^\W*(?:%|\$|€|£|per\s?cent(?:age)?|amount|change|margin|ratio|%\s*of\s+\w+|percent\s+(?:to|of)\s+\w+)\W*$",
    re.I,
)
_OPEN_PERIOD = re.compile(
    r"\b(?:ended|ending|as of|as at|at|years?|months?|quarters?|[A-Z][a-z]+ \d{1,2})\W*$", re.I
)
_PERIOD_NAME = re.compile(
    r"(?:fy\s?)?(?:19|20)\d\d\b|[QH][1-4]\b|(?:\w+ )?(?:quarter|months)\b", re.IGNORECASE
)
_YEAR = re.compile(r"^\W*(?:fy\s?)?(?:19|20)\d\d\b")


@dataclass(frozen=True, slots=True)
class Span:
    """A name over the columns from ``first`` to ``last``; its left and right edge."""

    first: int
    last: int
    text: str
    x0: float = 0.0
    x1: float = 0.0


@dataclass(slots=True)
class Header:
    """The ``columns`` with their names, that of the labels first, and ``remarks``: units and remarks for the table.

    ``is_shared``: two names of one line stand over the same column.
    """

    columns: tuple[Column, ...]
    remarks: list[str] = field(default_factory=list)
    is_shared: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The path of each column as one text."""
        return tuple(" ".join(column.path) for column in self.columns)

    def name_percents(self, are_percents: Sequence[bool]) -> None:
        """Add "%" to the path of each column of percents that shares its name with the column to its left.

        A column of percents without a name, right of one of amounts, shares its name: a header over both stands often
        over the first alone. ``are_percents`` says which of the value columns hold percents.
        """
        paths = [column.path for column in self.columns]
        for number, is_percent in enumerate(are_percents, 1):
            left = paths[number - 1]
            is_shared = number > 1 and bool(left) and not are_percents[number - 2]
            if is_percent and is_shared and (not paths[number] or paths[number] == left):
                paths[number] = (*left, "%")
        self.columns = tuple(
            replace(column, path=path) for column, path in zip(self.columns, paths, strict=True)
        )

    def set_units(self, units: Sequence[str]) -> None:
        """Give each value column its unit of ``units``, unless its names give one."""
        names = [read_unit(" ".join(column.path)) for column in self.columns[1:]]
        values = zip(self.columns[1:], names, units, strict=True)
        self.columns = (
            self.columns[0],
            *(replace(column, unit=name or unit) for column, name, unit in values),
        )


def is_numbering(row: Row) -> bool:
    """Return whether the cells of a line number the columns: 1, 2, 3, ..."""
    texts = [cell.text for cell in row.cells]
    return len(texts) > 1 and texts == [str(number) for number in range(1, len(texts) + 1)]


def read_header(
    rows: Sequence[Row], columns: Sequence[Edges], rules: Sequence[Rule], left: float = 0.0
) -> Header:
    """Return the header of a table from its header lines, the edges of its value columns, and horizontal rules.

    ``left`` is where its rows begin: a line that begins there and runs over columns is about the table.
    """
    underlines = _join_rules(rules)
    edges = _widen_to_rules(columns, underlines)
    label: list[str] = []
    remarks: list[str] = []
    lines: list[list[Span]] = []
    has_name = [False] * len(columns)
    is_shared = False
    row_below: Row | None = None
    for row in reversed(rows):
        labels, cells = split_label(row, columns)
        label = [cell.text for cell in labels] + label
        if len(cells) == 1 and (read_scale(cells[0].text) is not None or _REMARK.match(cells[0].text)):
            remarks.insert(0, cells[0].text)
            continue
        if _is_about_table(row, columns, left):
            remarks.insert(0, row.line.text)
            continue
        below = [_path(lines, number) for number in range(len(columns))]
        if all(path and _YEAR.match(path[-1]) for path in below) and all(
            _YEAR.match(c.text) for c in row.cells
        ):
            break  # years above years are the axis of a chart
        spans = _spans_of_groups(cells, edges, below) or _spans(cells, columns, edges, underlines, has_name)
        if row_below is not None and lines:
            spans = [_as_line_of_name(span, row, row_below, lines[0], columns, underlines) for span in spans]
        is_shared = is_shared or _share_a_column(spans)
        for span in spans:
            has_name[span.first : span.last + 1] = [True] * (span.last - span.first + 1)
            if span.first == span.last:
                x0, x1 = edges[span.first]
                edges[span.first] = (min(x0, span.x0), max(x1, span.x1))
        lines.insert(0, spans)
        row_below = row
    paths = _name_kinds([_path(lines, number) for number in range(len(columns))])
    name = " ".join(label)
    if name and _OPEN_PERIOD.search(name):
        # "Years ended December 31," in the corner goes on in "2022" over a column.
        paths = [
            (name, *path) if path and _YEAR.match(path[0]) and len(path[0]) < 10 else path for path in paths
        ]
    return Header((Column((name,) if name else ()), *map(Column, paths)), remarks, is_shared)


def _is_about_table(row: Row, columns: Sequence[Edges], left: float) -> bool:
    """Return whether a line of the header is running text that begins where the labels do and ends over columns."""
    size = max(row.line.size, 4.0)
    begins_left = row.line.x0 < left + size and columns[0][0] - left > 2 * size
    return len(row.cells) == 1 and begins_left and row.line.x1 > columns[0][0] + size


def _share_a_column(spans: Sequence[Span]) -> bool:
    return any(before.last >= after.first for before, after in pairwise(spans))


def split_label(row: Row, columns: Sequence[Edges]) -> tuple[list[Cell], list[Cell]]:
    """Return the cells of a header line that stand over the labels, and those over columns."""
    left = columns[0][0]
    size = max(row.line.size, 4.0)
    count = 0
    for number, cell in enumerate(row.cells):
        is_left = cell.x1 <= left + 2
        # A name that begins far left of the numbers and ends over the first of them belongs to the labels, unless
        # it is centred over them.
        reaches = cell.x0 < left - 6 * size and abs(cell.centre - sum(columns[0]) / 2) > 3 * size
        reaches = reaches and cell.x1 < columns[0][1] + size and len(row.cells) > number + 1
        if not is_left and not reaches:
            break
        count = number + 1
    labels, cells = list(row.cells[:count]), list(row.cells[count:])
    # A name just left of a narrow column of numbers heads it, if the line has a name for each other column.
    is_name = len(labels) > 1 or bool(labels and _PERIOD_NAME.match(labels[-1].text))
    if is_name and len(cells) == len(columns) - 1 and left - labels[-1].x1 < 6 * size:
        cells.insert(0, labels.pop())
    return labels, cells


def _join_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Return horizontal rules with the pieces joined that touch each other in one line."""
    joined: list[list[float]] = []
    for x0, top, x1, bottom in sorted(rules, key=lambda rule: (round((rule[1] + rule[3]) / 4), rule[0])):
        y = (top + bottom) / 2
        if joined and abs(joined[-1][1] - y) < 1.5 and x0 - joined[-1][2] < 1.0:
            joined[-1][2] = max(joined[-1][2], x1)
        else:
            joined.append([x0, y, x1])
    return [(x0, y, x1, y) for x0, y, x1 in joined]


def _widen_to_rules(columns: Sequence[Edges], underlines: Sequence[Rule]) -> list[Edges]:
    """Return the columns as wide as the rules in the header that each run over one of them alone."""
    edges = list(columns)
    for x0, _, x1, _ in underlines:
        over = [n for n, (left, right) in enumerate(columns) if x0 < right and x1 > left]
        if len(over) == 1:
            left, right = edges[over[0]]
            edges[over[0]] = (min(left, x0), max(right, x1))
    return edges


def _spans(
    cells: Sequence[Cell],
    columns: Sequence[Edges],
    edges: Sequence[Edges],
    underlines: Sequence[Rule],
    has_name: Sequence[bool],
) -> list[Span]:
    """Return the columns that each cell of a header line covers; ``edges`` are the columns with their names.

    A cell over one column is often a line of that column's own name, centred as a name over its neighbours would be.
    It is taken for the latter if a line is drawn below it, or if the cells of its line then cover all columns.
    """
    over = [_columns_below(cell, columns) for cell in cells]
    if len(cells) == len(columns) > 1 and over == [[number] for number in range(len(columns))]:
        return [Span(number, number, cell.text, cell.x0, cell.x1) for number, cell in enumerate(cells)]
    spans: list[Span] = []
    waiting: list[tuple[Cell, list[int]]] = []
    for cell, own in zip(cells, over, strict=True):
        covered = _underlined_columns(cell, cells, columns, underlines)
        parts = cell.split() if len(own) > 1 and not covered else []
        if len(own) > 1 and not covered and len(parts) != len(own):
            is_lowest = not any(has_name[n] for n in own)
            parts = _split_at_edges(cell, [columns[n] for n in own]) if is_lowest else parts
        if len(parts) == 1 and all(_YEAR.fullmatch(word.text) for word in cell.words):
            parts = [Cell(cell.page, word.text, (word,)) for word in cell.words]
        if len(covered) > 1:
            spans.append(Span(covered[0], covered[-1], cell.text, cell.x0, cell.x1))
        elif len(parts) == len(own) > 1:
            spans += [Span(n, n, part.text, part.x0, part.x1) for n, part in zip(own, parts, strict=True)]
        else:
            waiting.append((cell, own))
    taken = {n for span in spans for n in range(span.first, span.last + 1)}
    runs: list[list[int]] = []
    for number, (cell, own) in enumerate(waiting):
        others = taken | {n for place, (_, beside) in enumerate(waiting) if place != number for n in beside}
        free = [has_name[n] and n not in others for n in range(len(columns))]
        runs.append(_centred_columns(cell, edges, free, own))
    covers_all = sorted([*taken, *(n for run in runs for n in run)]) == list(range(len(columns)))
    for (cell, own), run in zip(waiting, runs, strict=True):
        is_wide = len(run) > 1 and (
            covers_all or len(own) > 1 or _is_underlined(cell, run, columns, underlines)
        )
        chosen = run if is_wide else own
        spans.append(Span(chosen[0], chosen[-1], cell.text, cell.x0, cell.x1))
    return sorted(spans, key=lambda span: span.first)


def _split_at_edges(cell: Cell, columns: Sequence[Edges]) -> list[Cell]:
    """Return the parts of a cell that each end where the numbers of a column do; none if they do not.

    Names that a single space separates head columns so, where all are set flush right.
    """
    parts: list[list[Word]] = [[]]
    for word in cell.words:
        parts[-1].append(word)
        tolerance = (0.35 if word.is_fixed else 0.2) * max(word.size, 4.0)
        if len(parts) <= len(columns) and abs(word.x1 - columns[len(parts) - 1][1]) < tolerance:
            parts.append([])
    if parts[-1] or len(parts) != len(columns) + 1:
        return []
    return [Cell(cell.page, " ".join(word.text for word in part), tuple(part)) for part in parts[:-1]]


def _as_line_of_name(
    span: Span,
    row: Row,
    row_below: Row,
    names: Sequence[Span],
    columns: Sequence[Edges],
    underlines: Sequence[Rule],
) -> Span:
    """Return a span over the columns of the name right below it, where it is one more line of that name.

    It is if it is set close above it, in its middle, with no line drawn in between. Where the line below names all
    columns, a name that they share stands in the middle of all. A year has no line above it.
    """
    line, below = row.line, row_below.line
    if not 0 < below.y - line.y < 1.27 * max(line.size, below.size):
        return span
    if any(
        line.y < rule[1] < below.y - 0.6 * below.size and rule[0] < span.x1 and rule[2] > span.x0
        for rule in underlines
    ):
        return span
    centre = (span.x0 + span.x1) / 2
    off_middle = abs((columns[span.first][0] + columns[span.last][1]) / 2 - centre)
    if len(names) >= len(columns) and off_middle <= 5:
        return span
    name = next((n for n in names if abs((n.x0 + n.x1) / 2 - centre) < 2.5 and not _YEAR.match(n.text)), None)
    if name is None or name.last - name.first >= span.last - span.first:
        return span
    return replace(span, first=name.first, last=name.last)


def _spans_of_groups(
    cells: Sequence[Cell], columns: Sequence[Edges], below: Sequence[tuple[str, ...]]
) -> list[Span]:
    """Return the groups of columns that the cells of a header line name, where the names below repeat in each group.

    2022 and 2021 over Balance, Income, Balance, Income name two columns each. Empty where the names do not repeat.
    """
    size = len(columns) // max(len(cells), 1)
    if len(cells) < 2 or size < 2 or size * len(cells) != len(columns) or len(set(below[:size])) < size:
        return []
    spans = []
    for number, cell in enumerate(cells):
        first, last = number * size, (number + 1) * size - 1
        x0, x1 = columns[first][0], columns[last][1]
        if abs((x0 + x1) / 2 - cell.centre) > 0.15 * (x1 - x0):
            return []
        if not all(below[first : last + 1]) or list(below[first : last + 1]) != list(below[:size]):
            return []
        spans.append(Span(first, last, cell.text))
    return spans


def _columns_below(cell: Cell, columns: Sequence[Edges]) -> list[int]:
    """Return the columns that a cell stands over, the nearest where it stands between two."""
    over = [n for n, (x0, x1) in enumerate(columns) if cell.x0 < x1 and cell.x1 > x0]
    return over or [
        min(range(len(columns)), key=lambda n: max(columns[n][0] - cell.x1, cell.x0 - columns[n][1]))
    ]


def _rules_below(cell: Cell, underlines: Sequence[Rule]) -> list[Rule]:
    y, size = cell.words[0].y, max(cell.words[0].size, 4.0)
    return [rule for rule in underlines if -0.2 * size < rule[1] - y < 1.0 * size]


def _underlined_columns(
    cell: Cell, line: Sequence[Cell], columns: Sequence[Edges], underlines: Sequence[Rule]
) -> list[int]:
    """Return the columns over the rule that underlines a cell, and this cell of its line alone."""
    for x0, _, x1, _ in _rules_below(cell, underlines):
        if not (x0 - 4 <= cell.x0 and cell.x1 <= x1 + 4) or x0 < columns[0][0] - 40:
            continue
        if any(other is not cell and x0 < other.centre < x1 for other in line):
            continue
        overlaps = [(min(x1, right) - max(x0, left)) / max(right - left, 0.1) for left, right in columns]
        covered = [n for n, overlap in enumerate(overlaps) if overlap > 0.5]
        # A rule under a whole line of the header says nothing about the only name that stands in it.
        if covered and abs((x0 + x1) / 2 - cell.centre) <= max(4.0, 0.1 * (x1 - x0)):
            return covered
    return []


def _is_underlined(
    cell: Cell, run: Sequence[int], columns: Sequence[Edges], underlines: Sequence[Rule]
) -> bool:
    """Return whether rules run below a cell over most of some columns."""
    rules = _rules_below(cell, underlines)
    covered = sum(
        max(0.0, min(rule[2], columns[n][1]) - max(rule[0], columns[n][0])) for n in run for rule in rules
    )
    return covered > 0.6 * sum(columns[n][1] - columns[n][0] for n in run)


def _centred_columns(
    cell: Cell, columns: Sequence[Edges], free: Sequence[bool], own: Sequence[int]
) -> list[int]:
    """Return the run of free columns, with ``own`` among them, that has the same middle as the cell."""
    candidates: list[tuple[float, list[int]]] = [(math.inf, list(own))]
    for first in range(own[0] + 1):
        for last in range(max(own[-1], first + 1), len(columns)):
            run = list(range(first, last + 1))
            x0, x1 = columns[first][0], columns[last][1]
            offset = abs((x0 + x1) / 2 - cell.centre)
            is_free = all(free[n] or n in own for n in run) and any(free[n] for n in run)
            if is_free and offset <= max(4.0, 0.1 * (x1 - x0)):
                candidates.append((offset, run))
    least = min(offset for offset, _ in candidates)
    return max((run for offset, run in candidates if offset <= least + 4), key=len)


def _path(lines: Sequence[Sequence[Span]], column: int) -> tuple[str, ...]:
    """Return the names over a column from the top; lines of one name are joined."""
    names: list[Span] = []
    for spans in lines:
        for span in spans:
            if not span.first <= column <= span.last:
                continue
            if names and (names[-1].first, names[-1].last) == (span.first, span.last):
                if span.text != names[-1].text:
                    names[-1] = replace(span, text=_join_text(names[-1].text, span.text))
            else:
                names.append(span)
    return tuple(span.text for span in names)


def _join_text(above: str, below: str) -> str:
    return above + below if above.endswith("-") and below[:1].isupper() is False else f"{above} {below}"


def _name_kinds(paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the paths; one that only says "%" or "Change", as others do, also has the path to its left."""
    named: list[tuple[str, ...]] = []
    for number, path in enumerate(paths):
        is_repeated = paths.count(path) > 1
        left = named[number - 1] if number else ()
        if path and is_repeated and _KIND.match(path[-1]) and left and not _KIND.match(left[-1]):
            path = (*(left if len(path) == 1 else left[-1:]), *path)
        named.append(path)
    return named


_ANY_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
#: Shares from one to another ("3% - 6%", those of two lines together): values, which head no column.
_SHARES = re.compile(r"(?:[(\d.,)]+\s?%\s?(?:[-–—]|to)\s?[(\d.,)]+\s?%\s*)+")


def are_uncertain(paths: Sequence[tuple[str, ...]], numbers: Sequence[int]) -> bool:
    """Return whether the columns with numbers do not each have a path of their own, or values in one.

    ``numbers`` has how many numbers each column holds. A single column of numbers needs no name.

    A column is uncertain, too, that shares its name with one for a year, and has no year itself.

    >>> are_uncertain([("2022", "3% - 6%"), ("2021",)], [2, 2]), are_uncertain([("2022",), ("2021",)], [2, 2])
    (True, False)
    >>> are_uncertain([("Rate",), ("Rate", "May 2021")], [2, 2]), are_uncertain([("Rate",), ("Rate", "%")], [2, 2])
    (True, False)
    """
    named = [path for path, count in zip(paths, numbers, strict=True) if count]
    if any(_lacks_year(path, other) for path in named for other in paths):
        return True
    if len(named) < 2:
        return False
    if any(_SHARES.fullmatch(name) for path in named for name in path):
        return True
    return len(set(named)) < len(named) or not all(named)


def _lacks_year(path: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether the names of ``other`` are those of a column and a year of its own."""
    is_below = len(other) == len(path) + 1 and other[: len(path)] == path
    return (
        bool(path) and is_below and bool(_ANY_YEAR.search(other[-1])) and not _ANY_YEAR.search(" ".join(path))
    )
