"""Tables of a PDF without a grid, also those that are ruled in one direction only.

They are found from the positions of their cells. Wide gaps separate the cells of a line, after ``$``, ``%`` and
parentheses, which filings set apart, have joined their number. Lines with several cells that follow each other are a
table. The positions of the numbers give its columns, and the lines above the first row of numbers its header
(:mod:`clew.parse.documents.pdf.headers`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from clew.core.cell_values import read_scale
from clew.core.text import read_count
from clew.core.types import Box, RowPlace, Table, union_box
from clew.parse.documents.pdf.cells import Cell, Row, is_number
from clew.parse.documents.pdf.headers import Edges, are_uncertain, is_numbering, read_header, split_label
from clew.parse.documents.pdf.lines import Line, bounding_box
from clew.parse.documents.pdf.words import BOLD, Rule
from clew.parse.documents.tables import place_rows

#: A table has at least so many lines with several cells.
MIN_ROWS = 2
_FOOTNOTE = re.compile(r"\(\w{1,2}\)$")
#: A column that has numbers in fewer than this share of the rows may go without a name.
_SPARSE = 0.2


def find_tables(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the half-open ranges of lines that are tables."""
    tables: list[tuple[int, int]] = []
    start = 0
    while start < len(rows):
        if not rows[start].is_tabular:
            start += 1
            continue
        end, last = start + 1, start
        while (
            end < len(rows)
            and not rows[end].is_command
            and not rows[end].is_caption
            and not _follows_blank_line(rows[end - 1], rows[end])
            and _continues(rows[last], rows[end], end - last)
            and not _introduces_table(rows, end)
        ):
            if rows[end].is_tabular:
                last = end
            end += 1
        while last + 1 < end and _ends_label(rows[last], rows[last + 1]):
            last += 1
        body = [row for row in rows[start : last + 1] if row.is_tabular]
        columns = _find_columns(body) if len(body) >= MIN_ROWS else []
        if columns and tables and _is_same_table(rows, tables[-1], start):
            tables[-1] = (tables[-1][0], last + 1)
        elif columns:
            least = tables[-1][1] if tables else 0
            tables.append((_start_of_header(rows, start, least, columns), last + 1))
        start = last + 1
    return tables


def _follows_blank_line(before: Row, row: Row) -> bool:
    """Return whether a line of a listing stands below a blank one, which ends what a program printed as a table."""
    is_listing = before.line.is_fixed and row.line.is_fixed
    return is_listing and row.line.y - before.line.y > 1.8 * max(row.line.size, 4.0)


def _ends_label(row: Row, following: Row) -> bool:
    """Return whether a line is the rest of the label of a table's last row."""
    size = max(following.line.size, 4.0)
    gap = following.line.y - row.line.y
    is_rest = following.line.text[:1].islower() or row.line.text.count("(") > row.line.text.count(")")
    is_beside = len(following.cells) == 1 and following.line.x1 < row.cells[-1].x0
    return is_beside and (gap < 0.6 * size or (is_rest and gap < 1.4 * size))


def _start_of_header(
    rows: Sequence[Row], start: int, least: int, columns: Sequence[tuple[float, float]]
) -> int:
    """Return the first of the lines right above ``start`` that head columns; nothing in them stands left of these."""
    while start > least:
        line, next_line = rows[start - 1].line, rows[start].line
        size = max(line.size, 4.0)
        is_near = line.page == next_line.page and 0 < next_line.y - line.y < 1.8 * size
        # A name in a listing may be longer than the numbers below it, which are set flush right.
        left = rows[start].cells[0].x1 if line.is_fixed else columns[0][0] - 2 * size
        is_above = line.x0 > left and line.x1 < columns[-1][1] + 2 * size
        is_long = len(line.text) > 80 or rows[start - 1].is_command or rows[start - 1].is_caption
        if not is_near or not is_above or is_long or not rows[start - 1].is_heading_like:
            break
        start -= 1
    return start


def _introduces_table(rows: Sequence[Row], number: int) -> bool:
    """Return whether a line ends a sentence that introduces the table below it, which begins with a header.

    A group of rows of the same table may be introduced, too.
    """
    row = rows[number]
    if len(row.cells) > 1 or not _AS_FOLLOWS.search(row.line.text):
        return False
    below = rows[number + 1] if number + 1 < len(rows) else None
    return below is not None and (not below.numeric_cells or below.is_heading_like)


def _is_same_table(rows: Sequence[Row], before: tuple[int, int], start: int) -> bool:
    """Return whether lines continue the table before them: they have no header, and little is in between."""
    between = rows[before[1] : start]
    first, last = rows[start], rows[before[1] - 1]
    if len(between) > 7 or first.line.page != last.line.page or not 0 < first.line.y - last.line.y < 120:
        return False
    if not first.numeric_cells or first.is_heading_like or any(len(row.line.text) > 200 for row in between):
        return False
    if any(_introduces_table(rows, number) for number in range(before[1], start)):
        return False
    if any(row.is_command or row.is_caption for row in between):
        return False
    if any(_follows_blank_line(above, row) for above, row in pairwise(rows[before[1] - 1 : start + 1])):
        return False
    above = _find_columns([row for row in rows[before[0] : before[1]] if row.is_tabular])
    below = _find_columns([first])
    return bool(below) and all(any(x0 < b and a < x1 for a, b in above) for x0, x1 in below)


def _continues(last_row: Row, row: Row, distance: int) -> bool:
    """Return whether a line continues the table whose last row is ``last_row``, ``distance`` lines above."""
    line, last = row.line, last_row.line
    if line.page != last.page or line.y < last.y:
        return False
    gap = (line.y - last.y) / max(line.size, 4.0)
    if row.is_tabular:
        return gap < 3.2 * distance + 1.5
    # A group heading or the rest of a label: short, close, and few of them in a row.
    is_short = line.x1 - line.x0 < 320 and len(line.text) < 110
    is_label = line.x1 < last_row.cells[1].x0 - 4 and line.x0 < last_row.cells[0].x1 and len(line.text) < 170
    return distance <= 4 and gap < 2.6 * distance + 0.5 and (is_short or is_label)


def _find_columns(body: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the edges of the columns after the first: those of the cells with numbers, else of all cells."""
    value_rows = [row for row in body if not row.is_heading_like]
    left = min((row.line.x0 for row in body), default=0.0)
    # The first cell is a label, even if it is a number, unless it stands apart from where labels begin.
    spans = [
        (cell.x0, cell.x1)
        for row in value_rows
        for cell in row.numeric_cells
        if cell is not row.cells[0] or (cell.x0 > left + 80 and not _FOOTNOTE.match(cell.text))
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


def split_at_headers(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Return the parts of a table with headers of their own: lines of names over columns, below rows of numbers."""
    if _is_of_words(rows):
        return [rows]
    columns = _find_columns([row for row in rows if row.is_tabular])
    starts = [0]
    start: int | None = None  # of the names since the last numbers
    has_numbers = False
    for number, row in enumerate(rows):
        if row.numeric_cells and not row.is_heading_like:
            if start is not None and has_numbers and _heads_part(rows, start, number, columns):
                starts.append(_start_of_title(rows, start))
            start, has_numbers = None, True
        elif start is None and split_label(row, columns)[1]:
            start = number
    return [rows[a:b] for a, b in pairwise([*starts, len(rows)])]


def _start_of_title(rows: Sequence[Row], start: int) -> int:
    """Return the first of the lines right above ``start`` that are the title of the header that begins there: in
    bold or capitals, and set apart from the row above."""
    first = start
    while first > 1 and len(rows[first - 1].cells) == 1 and not rows[first - 1].numeric_cells:
        first -= 1
    title = rows[first].line if first < start else None
    if title is None or title.y - rows[first - 1].line.y < 1.6 * max(title.size, 4.0):
        return start
    return first if title.emphasis & BOLD or title.text.isupper() else start


def split_title(rows: Sequence[Row]) -> tuple[str, Sequence[Row]]:
    """Return the title that stands above the header of a part of a table (:func:`split_at_headers`), and the rows
    below it."""
    count = 0
    while count < len(rows) - 1 and len(rows[count].cells) == 1 and not rows[count].numeric_cells:
        count += 1
    columns = _find_columns([row for row in rows if row.is_tabular])
    while count and columns and split_label(rows[count - 1], columns)[1]:
        count -= 1
    return " ".join(row.line.text for row in rows[:count]), rows[count:]


def _is_of_words(rows: Sequence[Row]) -> bool:
    """Return whether most cells right of the labels are words: then a row without numbers is no header."""
    full = [row for row in rows if len(row.cells) > 2 and row.numeric_cells and not row.is_heading_like]
    words = [sum(not cell.is_numeric for cell in row.cells[1:]) for row in full]
    values = sum(len(row.cells) - 1 for row in full)
    return len(full) > 1 and sum(words) > 0.5 * values


def _heads_part(rows: Sequence[Row], start: int, end: int, columns: Sequence[Edges]) -> bool:
    """Return whether the lines from ``start`` to ``end``, without numbers, are a header of the rows below them.

    They name at least two columns and most of all. In what a program printed, one name is enough where the labels
    begin anew: columns for which the page is too narrow follow below the others.
    """
    names = [split_label(row, columns) for row in rows[start:end]]
    if max(len(cells) for _, cells in names) >= max(2, 0.6 * len(columns)):
        return True
    first = next((row for row in rows[:start] if row.numeric_cells and not row.is_heading_like), None)
    is_listing = first is not None and rows[start].line.is_fixed and rows[end].line.is_fixed
    return (
        first is not None
        and is_listing
        and not any(labels for labels, _ in names)
        and not rows[end].cells[0].is_numeric
        and rows[end].cells[0].text == first.cells[0].text
    )


@dataclass(slots=True)
class _TableRow:
    """A row of a table: its lines, and the cells of its label and of each value column."""

    lines: list[Line]
    slots: list[list[Cell]]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(_join_cells(cells) for cells in self.slots)

    @property
    def label(self) -> str:
        return _join_cells(self.slots[0])

    @property
    def has_values(self) -> bool:
        return any(self.slots[1:])

    @property
    def boxes(self) -> tuple[Box | None, ...]:
        return tuple(union_box([cell.box for cell in cells]) if cells else None for cells in self.slots)


def _join_cells(cells: Sequence[Cell]) -> str:
    joined = ""
    for cell in cells:
        is_divided = joined.endswith("-") and joined[-2:-1].islower() and cell.text[:1].islower()
        joined = f"{joined}{cell.text}" if is_divided else f"{joined} {cell.text}".strip()
    return joined


def build_table(rows: Sequence[Row], caption: str, rules: Sequence[Rule] = ()) -> Table:
    """Return lines as a table: its header, and rows of a label and a cell for each column.

    ``rules`` are the ruling lines of the page on which the table begins.
    """
    columns = _find_columns([row for row in rows if row.is_tabular])
    head = _count_header_lines(rows, columns)
    left = min((row.line.x0 for row in rows[head:]), default=0.0)
    header = read_header(rows[:head], columns, _rules_of_header(rows, head, rules), left)
    body = _join_lines([_TableRow([row.line], _place_cells(row, columns)) for row in rows[head:]])
    cells = tuple(row.texts for row in body)
    has_remark = read_scale(caption) is not None
    remarks = [] if has_remark else [remark for remark in header.remarks if remark not in caption]
    numbers = [
        [row.texts[n] for row in body if any(cell.is_numeric for cell in row.slots[n])]
        for n in range(1, len(columns) + 1)
    ]
    # The sign stands beside the first number of a column, often beside no other.
    header.name_percents([bool(texts) and "%" in texts[0] for texts in numbers])
    header.set_units([_unit_of_column(texts) for texts in numbers])
    counts = [
        len(texts) if column.path or (len(texts) >= _SPARSE * len(body) and not _are_marks(texts)) else 0
        for texts, column in zip(numbers, header.columns[1:], strict=True)
    ]
    return Table(
        header.names,
        cells,
        " ".join(part for part in (caption, *remarks) if part),
        _boxes([row.line for row in rows]),
        tuple(row.lines[-1].page for row in body),
        columns=header.columns,
        row_places=_add_outer_labels(place_rows(cells, _levels(body, columns[0][0])), body),
        cell_boxes=tuple(row.boxes for row in body),
        headers_uncertain=header.is_shared
        or are_uncertain([column.path for column in header.columns[1:]], counts),
    )


def _are_marks(texts: Sequence[str]) -> bool:
    """Return whether all cells of a column are marks, as of significance, which need no name."""
    return all(not any(character.isalnum() for character in text) and "*" in text for text in texts)


def _unit_of_column(texts: Sequence[str]) -> str:
    """Return the currency or "%" that is printed beside the first number of a column, which often is for all."""
    currencies = {sign for text in texts for sign in "$€£¥" if sign in text}
    first = texts[0] if texts else ""
    if "%" in first:
        return "" if currencies else "%"
    return next((sign for sign in currencies if sign in first), "")


def _count_header_lines(rows: Sequence[Row], columns: Sequence[Edges]) -> int:
    """Return how many of the first lines are header."""
    if is_numbering(rows[0]) and len(rows[0].cells) == len(columns) and len(rows) > 1:
        return 1
    head = next(
        (
            n
            for n, row in enumerate(rows)
            if row.is_tabular
            and (
                (row.numeric_cells and not row.is_heading_like)
                or any(_DAY.match(c.text) for c in row.cells)
                or row.cells[0].text.endswith(":")  # the label of a field of a form
            )
        ),
        len(rows),
    )
    if head == len(rows):
        head = 1 if rows[0].is_tabular and len(rows) > 1 else 0
    # A label without values right above the first row of numbers is a group heading, not a header.
    while head > 0:
        labels, cells = split_label(rows[head - 1], columns)
        if cells or not labels or read_scale(labels[0].text) is not None:
            break
        head -= 1
    return head


def _rules_of_header(rows: Sequence[Row], head: int, rules: Sequence[Rule]) -> list[Rule]:
    if not head:
        return []
    top = rows[0].line.y
    bottom = rows[head].line.y if head < len(rows) else rows[-1].line.y
    return [rule for rule in rules if top < rule[1] < bottom and rule[2] - rule[0] > 2 * (rule[3] - rule[1])]


def _split_at_columns(cells: Sequence[Cell], columns: Sequence[Edges]) -> list[Cell]:
    """Return the cells of a row; numbers that follow words closely, each in a column that is free, are cells of
    their own."""
    parts: list[Cell] = []
    for cell in reversed(cells):
        rest = cell
        while len(rest.words) > 1 and not rest.is_numeric and is_number(rest.words[-1].text):
            word = rest.words[-1]
            place = next(
                (edges for edges in columns if edges[0] - 1 <= word.x0 and word.x1 <= edges[1] + 1), None
            )
            before = rest.words[-2]
            is_word = any(character.isalpha() for character in before.text)
            # "2023 - 2042" stays whole.
            follows_words = is_word or before.text[-1].isdigit() or before.text[-1] in ")]:"
            if place is None or before.x1 > place[0] + 0.5 or not follows_words:
                break
            if any(other.x0 < place[1] and other.x1 > place[0] for other in cells if other is not cell):
                break
            parts.append(Cell(cell.page, word.text, (word,)))
            rest = rest.without_last_word()
        parts.append(rest)
    return parts[::-1]


def _place_cells(row: Row, columns: Sequence[Edges]) -> list[list[Cell]]:
    """Return the cells of a row by their place: its label, then each column."""
    left = columns[0][0]
    slots: list[list[Cell]] = [[] for _ in range(len(columns) + 1)]
    for number, cell in enumerate(_split_at_columns(row.cells, columns)):
        over = [n for n, (x0, x1) in enumerate(columns) if cell.x0 < x1 and cell.x1 > x0]
        if not over and cell.text in "$€£¥":
            # A currency far left of its number.
            over = [n for n, (x0, _) in enumerate(columns) if x0 > cell.x0][:1]
        is_label = number == 0 and (cell.x1 <= left + 2 or (cell.x0 < left - 30 and not cell.is_numeric))
        is_currency = cell.text in "$€£¥" and bool(over)
        if not is_currency and (is_label or (not over and cell.x1 <= left + 2)):
            slots[0].append(cell)
            continue
        parts = cell.split() if len(over) > 1 and not cell.is_numeric else [cell]
        if len(parts) == len(over) > 1:
            for n, part in zip(over, parts, strict=True):
                slots[n + 1].append(part)
        else:
            n = min(over or range(len(columns)), key=lambda n: abs(cell.centre - sum(columns[n]) / 2))
            slots[n + 1].append(cell)
    return slots


#: A sentence that introduces a table, in one line. The label of a group of rows may end with a colon, too.
_AS_FOLLOWS = re.compile(r"\b(?:(?:is|are|was|were|as) follows|the following|below)\b.*:\s*$", re.IGNORECASE)
#: A label goes on in the next line after one of these.
_UNFINISHED = re.compile(
    r"(?:[-,/–—(&]|\b(?:and|or|of|the|for|to|from|in|on|by|with|at|net|attributable|related|per|other))$",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d{1,2}/\d{1,2}/(?:\d\d){1,2}$")
_MARK = re.compile(r"(?:\(\w{1,2}\))+")
_BARE_TOTAL = re.compile(r"^(?:sub-?)?totals?$", re.IGNORECASE)


def _join_lines(lines: Sequence[_TableRow]) -> list[_TableRow]:
    """Join the lines of each row: labels, and cells of words, that run over several."""
    steps = [after.lines[0].y - before.lines[0].y for before, after in pairwise(lines) if before.has_values]
    steps = [step for step in steps if 0 < step < 40]
    pitch = median(steps) if steps else 0.0
    rows: list[_TableRow] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else None
        if rows and _goes_on(rows[-1], line, following, pitch):
            rows[-1].lines += line.lines
            for slot, cells in zip(rows[-1].slots, line.slots, strict=True):
                slot += cells
                if len(slot) > 1 and _MARK.fullmatch(slot[0].text) and slot[0].x0 > slot[1].x1 - 2:
                    slot.append(slot.pop(0))  # the mark of a note, raised above the line that it ends
        else:
            rows.append(line)
    return rows


def _goes_on(row: _TableRow, line: _TableRow, following: _TableRow | None, pitch: float) -> bool:
    """Return whether a line belongs to the row above it; ``pitch`` is the usual distance of rows."""
    above, below = row.lines[-1], line.lines[0]
    size = max(above.size, below.size, 4.0)
    gap = below.y - above.y
    if above.page != below.page or not 0 < gap < 1.7 * size:
        return False
    if gap < 0.6 * size:
        return True
    is_indented = bool(row.slots[0] and line.slots[0]) and line.slots[0][0].x0 > row.slots[0][0].x0 + 2
    is_tight = gap < (0.78 if is_indented else 0.87) * pitch and gap < 1.4 * size
    next_gap = following.lines[0].y - below.y if following and following.lines[0].page == below.page else 0.0
    if row.has_values and line.has_values:
        return not line.slots[0] and is_tight and _is_rest_of_words(row, line)
    if not line.slots[0]:
        # Values beside a label of several lines.
        return bool(row.slots[0]) and not row.label.endswith(":") and gap < 1.1 * size
    # Rows that follow each other, indented below a label of its own, are a group below its heading.
    is_group = (
        is_indented
        and following is not None
        and line.has_values
        and following.has_values
        and bool(following.slots[0])
        and abs(following.slots[0][0].x0 - line.slots[0][0].x0) < 1.5
    )
    return _goes_on_below(row, line, is_tight, gap / (next_gap or pitch or gap), is_group)


def _goes_on_below(row: _TableRow, line: _TableRow, is_tight: bool, nearness: float, is_group: bool) -> bool:
    """Return whether the label of a row goes on in a close line below it.

    ``nearness`` is the distance of the line from the row in units of its distance from the line below it;
    ``is_group``: the line and the one below it are indented alike.
    """
    label, rest = row.label, line.label
    if not any(character.isalpha() for character in label):
        return False
    is_open = label.count("(") > label.count(")")
    if (label.endswith(":") and not is_open) or (line.has_values and row.has_values):
        return False
    if is_group and not is_open and not rest[:1].islower() and not row.has_values:
        return False
    if is_open or rest[:1].islower() or (_UNFINISHED.search(label) and not row.has_values):
        return True
    first, second = row.slots[0][0], line.slots[0][0]
    if (first.words[0].emphasis ^ second.words[0].emphasis) & BOLD or second.x0 < first.x0 - 1:
        return False
    if not row.has_values:
        return is_tight
    if line.has_values or rest.endswith(":"):
        return False
    if _BARE_TOTAL.match(label):
        return len(rest.split()) <= 4 and nearness < 0.95
    return is_tight and nearness < 0.87


def _is_rest_of_words(row: _TableRow, line: _TableRow) -> bool:
    """Return whether every cell of a line continues a cell of words of the row above."""
    filled = [n for n, cells in enumerate(line.slots) if cells]
    return all(
        row.slots[n] and not line.slots[n][0].is_numeric and not row.slots[n][-1].is_numeric for n in filled
    )


def _levels(rows: Sequence[_TableRow], left: float) -> list[float]:
    """Return the indentation of each row's label: 0 for the outermost, one more for each further indentation.

    A label in bold among plain ones stands half a level further out, one that is centred over the labels a whole
    level further than all.
    """
    starts = [row.slots[0][0].x0 for row in rows if row.slots[0]]
    if not starts:
        return [0.0] * len(rows)
    least = min(starts)
    edges: list[float] = []
    for start in sorted(starts):
        if not edges or start - edges[-1] > 2.5:
            edges.append(start)
    is_bold = [bool(row.slots[0]) and bool(row.slots[0][0].words[0].emphasis & BOLD) for row in rows]
    marks = 2 * sum(is_bold) < len(rows)
    levels: list[float] = []
    for row, bold in zip(rows, is_bold, strict=True):
        if not row.slots[0]:
            levels.append(levels[-1] if levels else 0.0)
            continue
        first, last = row.slots[0][0], row.slots[0][-1]
        middle = (first.x0 + last.x1) / 2
        if (
            not row.has_values
            and first.x0 > least + 40
            and abs(middle - (least + left) / 2) < 0.15 * (left - least)
        ):
            levels.append(-1.0)
            continue
        level = float(max(n for n, edge in enumerate(edges) if first.x0 >= edge - 0.1))
        levels.append(level - 0.5 * (bold and marks))
    return levels


def _add_outer_labels(places: Sequence[RowPlace], rows: Sequence[_TableRow]) -> tuple[RowPlace, ...]:
    """Return the places of rows. Where labels stand in several columns, and a row leaves out the first of them, which
    are those of the row above, these are groups of it."""
    complete: list[RowPlace] = []
    outer: list[tuple[float, str]] = []
    for place, row in zip(places, rows, strict=True):
        parts = _label_parts(row)
        if not parts or not row.has_values:
            outer = []
        else:
            count = next((n for n, (x0, _) in enumerate(outer) if n and abs(x0 - parts[0][0]) < 2), 0)
            outer = [*outer[:count], *parts]
            if count:
                place = replace(place, groups=(*place.groups, " ".join(text for _, text in outer[:count])))
        complete.append(place)
    return tuple(complete)


def _label_parts(row: _TableRow) -> list[tuple[float, str]]:
    """Return left edge and text of the parts of a row's label: its cells, in a font of one width its words."""
    line = row.lines[0]
    cells = [cell for cell in row.slots[0] if cell.words[0].y == line.y or len(row.lines) == 1]
    if line.is_fixed:
        return [(word.x0, word.text) for cell in cells for word in cell.words]
    return [(cell.x0, cell.text) for cell in cells]


def is_chart(table: Table) -> bool:
    """Return whether a table is really the labels of a chart: numbers beside which nothing is named.

    Rows of a real table may be numbered, but are full.
    """
    values = [cell for row in table.rows for cell in row[1:]]
    has_names = any(column.path for column in table.columns[1:])
    if not has_names and len(table.header) > 2 and 2 * sum(map(bool, values)) <= len(values):
        return True
    rows = [row for row in table.rows if any(row[1:])]
    if any(character.isalpha() for row in rows for character in row[0]):
        return False
    filled = sum(bool(cell) for row in rows for cell in row)
    return len(rows) < 3 or not all(row[0] for row in rows) or filled < 0.5 * len(rows) * len(rows[0])


def is_no_table(rows: Sequence[Row], table: Table) -> bool:
    """Return whether the lines of a table are really an index, numbered lines of code, or numbered equations."""
    return _is_index(rows) or _is_code(rows, table) or _are_equations(rows)


#: Numbers of pages that end an entry of an index, from two on; one alone if its line breaks off after it.
_PAGES = re.compile(r"(?:(?<=[\s.])|^)(?:\d{1,4}(?:[-–]\d{1,4})?, ?)+(?:\d{1,4}(?:[-–]\d{0,4})?)?$")
_DOTS = re.compile(r"(?:[.·…]\s?){4,}")
#: An index has lists of pages in so large a share of its lines.
_INDEX_SHARE = 0.3


def _is_index(rows: Sequence[Row]) -> bool:
    """Return whether lines are entries with the numbers of their pages, in several columns: an index, no table."""
    marked = 0
    for row in rows:
        if len(_DOTS.findall(row.line.text)) > 1:
            marked += 2
        elif any(_lists_pages(cell.text) for cell in row.cells):
            marked += 1
    return marked >= max(2, _INDEX_SHARE * len(rows))


def _lists_pages(text: str) -> bool:
    """Return whether a cell ends with the numbers of pages; a date has no three of them after its words.

    >>> [_lists_pages(text) for text in ("12, 17-19", "164,", "ropes 1, 2, 9", "Balance, July 30, 2022", "1,250")]
    [True, True, True, False, False]
    """
    pages = _PAGES.search(text)
    if not pages or re.search(r"\d,\d", text):
        return False
    return pages.start() == 0 or len(re.findall(r"\d+", pages[0])) > 2


def _is_code(rows: Sequence[Row], table: Table) -> bool:
    """Return whether a table without names of columns is really lines of code beside their numbers, which count up.

    These are not set in the font of the code, as the numbers of rows that a program printed are.
    """
    if any(column.path for column in table.columns[1:]):
        return False
    words = [word for row in rows for word in row.line.words]
    numbers = [
        next(
            (read_count(word.text) for word in row.line.words if word.text.isdecimal() and not word.is_fixed),
            None,
        )
        for row in rows
    ]
    lines = [number for number in numbers if number is not None]
    counts = sum(after - before == 1 for before, after in pairwise(lines))
    is_counting = len(lines) > 2 and counts >= 0.9 * (len(lines) - 1) and 2 * len(lines) > len(rows)
    return is_counting and sum(word.is_fixed for word in words) > 0.4 * len(words)


#: The number of an equation, and a sign that an equation has.
_TAG = re.compile(r"\(\d+(?:\.\d+)*[a-z]?\)$")
_RELATION = re.compile(r"[=<>≤≥≈∈∼~→≡]")


def _are_equations(rows: Sequence[Row]) -> bool:
    """Return whether lines are equations with their numbers, "(16)", at the end, and no table."""
    tagged = [row for row in rows if row.numeric_cells]
    return bool(tagged) and all(
        len(row.numeric_cells) == 1 and _TAG.match(row.cells[-1].text) and _RELATION.search(row.line.text)
        for row in tagged
    )


def _boxes(lines: Sequence[Line]) -> tuple[Box, ...]:
    by_page: dict[int, list[Line]] = {}
    for line in lines:
        by_page.setdefault(line.page, []).append(line)
    return tuple(bounding_box(page_lines) for page_lines in by_page.values())
