"""Tables: how a table is written as text, and how a grid of cells becomes a table (title lines, header, spans)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clew.core.cell_values import NO_RESULT, label_overrides, read_cell, read_scale, read_unit
from clew.core.text import sentence_spans
from clew.core.types import HEADERS_UNCERTAIN, Column, RowPlace, Table

Row = tuple[str, ...]
#: Rows, and the numbers of those in which a cell spans columns.
Grid = tuple[list[Row], frozenset[int]]

_NUMBER = re.compile(
    r"^[\s(+\-−–]*(?:[$€£¥₹]|[A-Z]{3}\s)? ?[(+\-−–]?"
    r" ?\d[\d.,'\s]*(?:[eE][+-]?\d+)? ?[%)x]* ?(?:[$€£¥]|[A-Z]{3})?[⁰¹²³⁴-⁹]*$"
)
_DATE = re.compile(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?$|^\d{1,2}:\d{2}(?::\d{2})?$")
_YEAR = re.compile(r"^(?:19|20)\d\d[AEFP]?$")
#: The cells of a header are names, not sentences: they have at most so many characters.
_MAX_NAME_LENGTH = 120
_MAX_HEADER_ROWS = 4


#: An introduction with more characters is not repeated in the text of each row.
_MAX_INTRODUCTION = 240
_TOTAL = re.compile(r"^(?:(?:sub|grand\s*)?-?total|net total|totals)\b|\btotals?:?$", re.IGNORECASE)
#: A heading that is a period and nothing else.
_PERIOD_HEADING = re.compile(
    r"(?:(?:as )?(?:of|at) |fiscal |(?:years?|quarters?|months) ended |[A-Za-z]+ \d{1,2},? |\d{1,2} [A-Za-z]+ )*"
    r"(?:19|20)\d\d:?(?: ?\(\w\))?:?",
    re.IGNORECASE,
)
_PERIOD = re.compile(r"\b(?:19|20)\d\d\b|\b(?:months?|quarters?|years?) ended\b", re.IGNORECASE)


#: A total without a label is looked for below at most so many rows.
_MAX_PARTS = 60
_INTRODUCES = re.compile(
    r":\s*$|\b(?:following|below|as follows)\b|\b(?:table|schedule)s?\b.*\b(?:summari[sz]|show|present|provid|set)",
    re.IGNORECASE | re.DOTALL,
)
#: A line above a table that gives its scale ("In thousands") has fewer characters.
SCALE_LINE = 60


def introducing_sentence(text: str) -> str:
    """Return the last sentence of the paragraph above a table, if it introduces a table; "" otherwise.

    >>> introducing_sentence("We sell ropes. Sales were as follows (in millions):")
    'Sales were as follows (in millions):'
    """
    sentence = text[slice(*sentence_spans(text)[-1])] if text.strip() else ""
    return sentence if _INTRODUCES.search(sentence) else ""


def complete_table(table: Table) -> Table:
    """Return a table with ``columns`` and ``row_places``: derived from header, caption and labels where missing."""
    width = max([len(table.header), *map(len, table.rows)], default=0)
    columns = table.columns or tuple(Column((name,) if name.strip() else ()) for name in table.header)
    columns = columns + (Column(),) * (width - len(columns))
    above = " ".join((table.caption, table.introduction, " ".join(columns[0].path) if columns else ""))
    scale, unit = read_scale(above), ""
    if scale is not None:
        unit = read_unit(above)
    columns = tuple(
        _with_unit(column, unit if number else "", scale) for number, column in enumerate(columns)
    )
    return replace(table, columns=columns, row_places=table.row_places or place_rows(table.rows))


def _with_unit(column: Column, unit: str, scale: float | None) -> Column:
    """Return a column with the unit and scale that its names give it, else with those of the table."""
    names = " ".join(column.path)
    own_unit, own_scale = (read_unit(names), read_scale(names)) if names else ("", None)
    unit = column.unit or own_unit or unit
    if column.scale != 1.0 or (unit == "%" and own_scale is None):
        return replace(column, unit=unit)
    return replace(column, unit=unit, scale=own_scale or scale or 1.0)


def place_rows(rows: Sequence[Row], levels: Sequence[float] = ()) -> tuple[RowPlace, ...]:
    """Return the place of each row: what kind it is, and in which groups it stands.

    A row with its label alone heads the group of rows below it. The group ends with the next heading that is not
    indented more; where labels are indented (``levels``, one per row) with the first row that is indented no more
    than its heading; else with a total. A total stands in the groups around the one that it closes; one that does not
    say of what stands in the innermost group whose rows add up to it. A row without a label is a total where the rows
    since the last heading or total add up to it.
    """
    places: list[RowPlace] = []
    headings: list[_Group] = []
    is_heading = [bool(row and row[0].strip()) and not any(cell.strip() for cell in row[1:]) for row in rows]
    heads_group = _heads_groups(rows, is_heading, levels)
    over_others = frozenset() if levels else _headings_over_others(rows, is_heading)
    first_part = 0
    for number, row in enumerate(rows):
        level = levels[number] if levels else 0
        label = row[0].strip() if row else ""
        if is_heading[number]:
            while headings and headings[-1].level >= level and heads_group[number]:
                if headings[-1].start in over_others and number not in over_others:
                    break
                headings.pop()
            places.append(RowPlace("heading", _whole(level), tuple(group.name for group in headings)))
            first_part = number + 1
            if heads_group[number]:
                below = levels[number + 1] if levels and number + 1 < len(rows) else level
                name = label.rstrip(": ")
                headings.append(_Group(name, level, number, below, *label_overrides(name)))
            continue
        is_total = bool(_TOTAL.search(label)) or (
            not label and number - first_part <= _MAX_PARTS and _adds_up(rows, first_part, number)
        )
        kind: Literal["values", "total"] = "total" if is_total else "values"
        if kind == "total":
            first_part = number + 1
            headings = _close_groups(headings, label, level, rows, number)
        else:
            while headings and headings[-1].ends_before(level):
                headings.pop()
        unit, scale = label_overrides(label) if label else ("", None)
        if scale is None and headings:
            unit, scale = headings[-1].unit, headings[-1].scale
        place = RowPlace(kind, _whole(level), tuple(group.name for group in headings), unit, scale)
        places.append(_PLAIN if place == _PLAIN else place)
    return tuple(places)


def _heads_groups(rows: Sequence[Row], is_heading: Sequence[bool], levels: Sequence[float]) -> list[bool]:
    """Return which headings head a group.

    Where some rows are indented below a heading, those of any group are, but for a heading with a colon right above
    a row of values.
    """
    if not levels:
        return list(is_heading)
    below = zip(rows, is_heading, levels, [*is_heading[1:], True], [*levels[1:], -2.0], strict=True)
    indents, heads = False, []
    for row, heading, level, is_next_heading, next_level in below:
        indents = indents or (heading and next_level > level)
        heads.append(
            heading and (next_level > level or (row[0].rstrip().endswith(":") and not is_next_heading))
        )
    return heads if indents else list(is_heading)


def _headings_over_others(rows: Sequence[Row], is_heading: Sequence[bool]) -> frozenset[int]:
    """Return the numbers of the headings that are periods, where a table without indentation begins with one and has
    others below it: "2022" above "Revenues" and "Costs"."""
    headings = [number for number, heading in enumerate(is_heading) if heading]
    periods = [number for number in headings if _PERIOD_HEADING.fullmatch(rows[number][0].strip())]
    return frozenset(periods) if len(periods) > 1 and periods[0] == headings[0] else frozenset()


def _whole(level: float) -> int:
    return max(0, math.ceil(level))


#: Most rows of a long table share this place.
_PLAIN = RowPlace()


@dataclass(slots=True)
class _Group:
    """A heading, its level, the number of its row, the level of the row below it, and the unit and scale that it
    gives to numbers."""

    name: str
    level: float
    start: int
    below: float
    unit: str
    scale: float | None

    def ends_before(self, level: float) -> bool:
        """Return whether a row of values at ``level`` stands outside."""
        if math.ceil(self.below) > math.ceil(self.level):
            return math.ceil(level) <= math.ceil(self.level)
        return level < self.level or (self.below > self.level and level <= self.level)


def _close_groups(
    headings: Sequence[_Group], label: str, level: float, rows: Sequence[Row], number: int
) -> list[_Group]:
    """Return the groups that a total stands in: without the one that it closes, or that it is no part of."""
    remaining = list(headings)
    words = set(re.findall(r"\w{3,}", label.casefold())) - {
        "total",
        "totals",
        "subtotal",
        "net",
        "and",
        "the",
    }
    if not words:
        while remaining and not _adds_up(rows, remaining[-1].start + 1, number):
            remaining.pop()
        return remaining or [group for group in headings if level > group.level or _PERIOD.search(group.name)]
    while remaining:
        group = remaining[-1]
        names_group = bool(words & set(re.findall(r"\w{3,}", group.name.casefold())))
        if _PERIOD.search(group.name) and not group.ends_before(level):
            break
        if level > group.level and not names_group:
            break
        remaining.pop()
        if names_group and remaining and not remaining[-1].ends_before(level):
            break
    return remaining


def _adds_up(rows: Sequence[Row], start: int, total: int) -> bool:
    """Return whether the rows from ``start`` add up to the row ``total``: in one column at least, and in none not."""
    agreements = 0
    for column in range(1, len(rows[total])):
        whole = read_cell(rows[total][column])
        values = [read_cell(row[column]).number for row in rows[start:total]]
        parts = [value for value in values if value is not None]
        if whole.number is None or len(parts) < 2:
            continue
        decimals = len(re.sub(r"\D", "", whole.text.partition(".")[2]))
        if abs(sum(parts) - whole.number) > 0.51 * len(parts) * 10**-decimals:
            return False
        agreements += 1
    return agreements > 0


def table_to_markdown(table: Table) -> str:
    """Return the introduction, the caption and the table as GitHub Markdown."""
    width = max([len(table.header), *map(len, table.rows)], default=0)
    caption = f"{table.caption} {HEADERS_UNCERTAIN}".strip() if table.headers_uncertain else table.caption
    header = table.header or ("",) * width
    lines = [_line(header), "|" + " --- |" * width, *map(_line, table.rows)]
    above = [part for part in (table.introduction, caption) if part]
    return "\n".join([*(line for part in above for line in (part, "")), *lines])


def row_texts(table: Table) -> Iterator[str]:
    """Yield each row as ``caption. groups: row header: column header: cell; ...``.

    A row that heads a group is yielded without cells. Where the headers are uncertain, cells have none.
    """
    table = complete_table(table)
    corner = table.columns[0].path if table.columns else ()
    # What the corner says of all columns ("Years ended December 31,") is in the title of the row once.
    paths = [
        column.path[len(corner) :] if column.path[:1] == corner else column.path for column in table.columns
    ]
    names = ["" if table.headers_uncertain else " ".join(" ".join(path).split()) for path in paths]
    title = _row_title(table)
    for row, place in zip(table.rows, table.row_places, strict=True):
        label = row[0].strip().rstrip(":") if row else ""
        cells = zip(names[1:], row[1:], strict=False)
        values = "; ".join(
            f"{name}: {cell.strip()}" if name else cell.strip() for name, cell in cells if cell.strip()
        )
        if place.kind == "heading":
            yield f"{title}{row[0].strip()}"
            continue
        head = ": ".join(part for part in (*place.groups, label) if part)
        yield title + (f"{head}: {values}" if head and values else head or values)


def _row_title(table: Table) -> str:
    introduction = table.introduction if len(table.introduction) <= _MAX_INTRODUCTION else ""
    corner = " ".join(table.columns[0].path) if table.columns else ""
    says_scale = read_scale(corner) is not None and read_scale(table.caption) is None
    says_period = any(column.path[:1] == (corner,) and column.path[1:] for column in table.columns[1:])
    mark = HEADERS_UNCERTAIN if table.headers_uncertain else ""
    parts = [introduction, table.caption, corner if says_scale or says_period else "", mark]
    return "".join(f"{part.rstrip(':.')}. " for part in parts if part)


def is_value(cell: str) -> bool:
    """Return whether a cell holds a number, an amount, a date, or a dash in place of one.

    A year counts as a name, because years head columns.

    >>> [is_value(cell) for cell in ("1,234.5", "(12)%", "2024-05-01", "2024", "Total", "Q3 2024")]
    [True, True, True, False, False, False]
    """
    cell = " ".join(cell.split())
    if not cell or _YEAR.match(cell):
        return False
    return bool(_NUMBER.match(cell) or _DATE.match(cell)) or cell in {"-", "–", "—", "n/a", "N/A", NO_RESULT}


def _line(cells: tuple[str, ...]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return "| " + " | ".join(escaped) + " |"


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
    values = [row[1].strip() for row in rows[1:] if len(row) > 1 and row[1].strip()]
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


def max_distinct_cells(rows: Sequence[Row]) -> int:
    """Return the largest number of different filled cells in a row."""
    return max((len({cell for cell in row if cell.strip()}) for row in rows), default=0)


def divide_tables(runs: Iterable[Grid]) -> Iterator[Grid]:
    """Yield tables: a run of rows continues the one before it, unless it has a header of its own.

    Before a row of several cells there are only titles so far.
    """
    table: list[Row] = []
    table_spans: set[int] = set()
    cells = 0
    for rows, spanned in runs:
        if cells > 1 and _has_header(rows):
            yield trim_grid(table), frozenset(table_spans)
            table, table_spans, cells = [], set(), 0
        table_spans.update(len(table) + row for row in spanned)
        table.extend(rows)
        cells = max(cells, max_distinct_cells(rows))
    if table:
        yield trim_grid(table), frozenset(table_spans)


def _has_header(rows: Sequence[Row]) -> bool:
    """Return whether a run of rows begins like a table of its own: column names above values."""
    _, count = split_titles(rows)
    body = rows[count:]
    header = count_header_rows(body)
    return 0 < header < len(body) and any(map(is_value, body[header])) and count_filled(body[0]) > 1


def table_from_grid(
    rows: Sequence[Row], spanned: frozenset[int], header: int = 0, caption: str = ""
) -> Table:
    """Return the table of a text document whose grid of cells is ``rows``, merged cells filled.

    ``spanned`` has the numbers of the rows in which a cell spans columns. The first ``header`` rows are marked as
    header rows; where none or all are, the header is recognised by its cells.
    """
    numbers = [number for number, row in enumerate(rows) if any(cell.strip() for cell in row)]
    spans = frozenset(place for place, number in enumerate(numbers) if number in spanned)
    marked = sum(number < header for number in numbers)
    grid = trim_grid(rows)
    count = marked if 0 < marked < len(grid) else count_header_rows(grid, spans)
    body = tuple(
        collapse_group_heading(row) if number in spans else row
        for number, row in enumerate(grid)
        if number >= count
    )
    return Table(merge_header(grid[:count]), body, caption)


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
