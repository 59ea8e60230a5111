"""The lines of pages in reading order, one column after the other, without running headers and footers."""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from statistics import median, median_low

from clew.core.types import Box, union_box
from clew.parse.documents.pdf.ornaments import join_initials
from clew.parse.documents.pdf.words import BOLD, ITALIC, Page, Rule, Word, is_right_to_left

#: A gap of more than this many times the font size separates two cells.
CELL_GAP = 0.9
#: The share of the page's height, at top and bottom, in which running headers and footers stand.
MARGIN = 0.12


@dataclass(frozen=True, slots=True)
class Line:
    """Words on one baseline, left to right."""

    page: int
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words with a space between them, as they are read: in a line from right to left, the last one first."""
        return " ".join(word.text for word in _sort_as_read(self.words))

    @property
    def x0(self) -> float:
        """Left edge."""
        return self.words[0].x0

    @property
    def x1(self) -> float:
        """Right edge."""
        return max(word.x1 for word in self.words)

    @property
    def y(self) -> float:
        """Baseline, from the top."""
        return self.words[0].y

    @property
    def size(self) -> float:
        """The median font size of its words."""
        return median(word.size for word in self.words)

    @property
    def emphasis(self) -> int:
        """The flags, of ITALIC and BOLD, that more than half of its characters have."""
        total = sum(len(word.text) for word in self.words)
        return sum(
            kind
            for kind in (ITALIC, BOLD)
            if 2 * sum(len(word.text) for word in self.words if word.emphasis & kind) > total
        )

    @property
    def is_fixed(self) -> bool:
        """Whether most of its words are in a font of one width, as in listings."""
        return 2 * sum(word.is_fixed for word in self.words) > len(self.words)

    @property
    def box(self) -> Box:
        """The rectangle around it, estimated from baseline and font size."""
        return words_box(self.page, self.words)

    def split_cells(self) -> list[Line]:
        """Return the parts that wide gaps separate."""
        return [Line(self.page, tuple(part)) for part in _split(self.words, CELL_GAP)]


def _sort_as_read(words: Sequence[Word]) -> Sequence[Word]:
    """Return words, left to right, in the order in which they are read: a run against the line's direction is turned
    round. Numbers run with the letters around them, but for a line from right to left, where they are such a run."""
    text = " ".join(word.text for word in words)
    if text.isascii() or not any(is_right_to_left(word.text) for word in words):
        return words
    is_turned = is_right_to_left(text)
    runs = [list(run) for _, run in groupby(words, key=lambda word: is_right_to_left(word.text))]
    runs = [run[::-1] if is_right_to_left(run[0].text) else run for run in runs]
    return [word for run in (runs[::-1] if is_turned else runs) for word in run]


def words_box(page: int, words: Sequence[Word]) -> Box:
    """Return the rectangle around words on one baseline, left to right."""
    size = median(word.size for word in words)
    y = words[0].y
    edges = (words[0].x0, y - 0.85 * size, max(word.x1 for word in words), y + size / 4)
    x0, top, x1, bottom = (round(edge, 1) for edge in edges)
    return Box(page, x0, top, x1, bottom, _mean([word.confidence for word in words]))


def _mean(confidences: Sequence[float | None]) -> float | None:
    """Return the mean of the confidences of what was read from a picture, None where nothing was."""
    known = [confidence for confidence in confidences if confidence is not None]
    return round(sum(known) / len(known), 3) if known else None


def bounding_box(lines: Sequence[Line]) -> Box:
    """Return the rectangle around lines of one page."""
    return union_box([line.box for line in lines])


@dataclass(slots=True)
class PageLines:
    """A page as lines in reading order, without ``margin_lines``; ``label`` is the page number printed on it.

    ``running`` are texts of the margin that stand nowhere before it; ``repeated`` all others.
    """

    page: Page
    lines: list[Line]
    label: str = ""
    margin_lines: list[Line] = field(default_factory=list)
    running: list[tuple[str, Line]] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)


def group_by_baseline(page: Page) -> list[Line]:
    """Return the words of a page as lines, from the top. A superscript belongs to the line that it is set in."""
    lines: list[list[Word]] = []
    for word in sorted(page.words, key=lambda word: (word.y, word.x0)):
        for line in reversed(lines[-4:]):
            size = max(line[-1].size, word.size)
            if abs(line[0].y - word.y) <= (0.25 if word.size > 0.8 * line[0].size else 0.5) * size:
                line.append(word)
                break
        else:
            lines.append([word])
    merged: list[list[Word]] = []
    for line in lines:
        if merged and _is_superscript(merged[-1], line):
            merged[-1] = merged[-1] + line
        else:
            merged.append(line)
    return [Line(page.number, tuple(sorted(line, key=lambda word: word.x0))) for line in merged]


def _is_superscript(above: Sequence[Word], line: Sequence[Word]) -> bool:
    """Return whether the words above are small marks raised over this line, such as footnote letters."""
    size = max(word.size for word in line)
    small = all(word.size < 0.8 * size for word in above)
    return small and 0 < line[0].y - above[0].y < 0.6 * size and sum(len(word.text) for word in above) < 24


def sort_by_reading_order(page: Page, lines: Sequence[Line]) -> list[Line]:
    """Return the lines with one column after the other; a line across the gutter ends both columns."""
    gutter = _find_gutter(page, lines)
    if gutter is None:
        return sort_short_columns(lines, page.rules)
    ordered: list[Line] = []
    left: list[Line] = []
    right: list[Line] = []
    for line in lines:
        parts = _split_at_gutter(line, gutter)
        if parts is None:
            ordered += left + right + [line]
            left, right = [], []
            continue
        for part in parts:
            _append_part(left if part.x1 <= gutter + 2 else right, part)
    return ordered + left + right


def _append_part(column: list[Line], part: Line) -> None:
    """Append a part to its column: to its last line where the two were only separated by the other column."""
    if column and abs(column[-1].y - part.y) <= 0.25 * max(column[-1].size, part.size):
        words = sorted((*column[-1].words, *part.words), key=lambda word: word.x0)
        column[-1] = Line(part.page, tuple(words))
    else:
        column.append(part)


def _split_at_gutter(line: Line, gutter: float) -> list[Line] | None:
    """Return a line's parts left and right of the gutter, None if it runs across."""
    left = [word for word in line.words if (word.x0 + word.x1) / 2 < gutter]
    right = [word for word in line.words if (word.x0 + word.x1) / 2 >= gutter]
    if left and right and right[0].x0 - left[-1].x1 < 0.6 * line.size:
        return None
    if any(word.x0 < gutter - 1 and word.x1 > gutter + 1 for word in line.words):
        return None
    return [Line(line.page, tuple(part)) for part in (left, right) if part]


def _find_gutter(page: Page, lines: Sequence[Line]) -> float | None:
    """Return the position of the gutter on a page of prose in two columns, None on another page.

    It is where, in the middle of the page, most lines have prose on both sides: long parts with few numbers.
    """
    if len(lines) < 12:
        return None
    edges = [word.x0 for line in lines for word in line.words if 0.3 < word.x0 / page.width < 0.7]
    best: tuple[int, float] | None = None
    for edge, _ in Counter(round(edge) for edge in edges).most_common(6):
        gutter = edge - 3.0
        split = [parts for line in lines if (parts := _split_at_gutter(line, gutter)) is not None]
        prose = [[_is_prose(part, page.width) for part in parts] for parts in split if len(parts) == 2]
        sides = min(sum(left for left, _ in prose), sum(right for _, right in prose))
        if sides >= 6 and len(split) >= 0.65 * len(lines):
            best = max(best, (sides, gutter)) if best else (sides, gutter)
    return best[1] if best else None


#: So many places where cells begin are tried as the edge of a column.
_PLACES = 8
#: A line of prose in a column has at least so many words, and is so many times as wide as its letters are high.
_COLUMN_WORDS, _COLUMN_WIDTH = 4, 10
_STOP = re.compile(r"[.:;?!…。！？][\"'”’»)\]]*$")


def sort_short_columns(lines: Sequence[Line], rules: Sequence[Rule]) -> list[Line]:
    """Return the lines of a page with one column after the other wherever a few of them are prose in columns."""
    for start in _cell_starts(lines, 2):
        for first, end in _find_runs(lines, start):
            columns = _divide(lines[first:end])
            if _is_prose_in_columns(columns) and not _is_ruled(columns, rules):
                above, below = lines[:first], lines[end:]
                return [
                    *sort_short_columns(above, rules),
                    *(line for column in columns for line in column),
                    *sort_short_columns(below, rules),
                ]
    return list(lines)


def _cell_starts(lines: Sequence[Line], least: float) -> list[float]:
    """Return where cells of at least so many lines begin, the most common places first."""
    edges = sorted(cell.x0 for line in lines for cell in line.split_cells())
    counts = Counter({edge: bisect(edges, edge + 2) - bisect_left(edges, edge) for edge in edges})
    return [edge for edge, count in counts.most_common(_PLACES) if count >= least]


def _find_runs(lines: Sequence[Line], start: float) -> list[tuple[int, int]]:
    """Return the half-open ranges of lines that stand left and right of the gutter before ``start``, none across it.
    Lines on one side that stand apart above or below the others are not of them."""
    parts = [_split_at_gutter(line, start - 3.0) for line in lines]
    runs = []
    for is_divided, group in groupby(range(len(lines)), lambda place: parts[place] is not None):
        places = list(group) if is_divided else []
        while len(places) > 1 and _stands_off(lines, parts, places[0], places[1]):
            places.pop(0)
        while len(places) > 1 and _stands_off(lines, parts, places[-1], places[-2]):
            places.pop()
        if len(places) > 1:
            runs.append((places[0], places[-1] + 1))
    return runs


def _stands_off(
    lines: Sequence[Line], parts: Sequence[Sequence[Line] | None], outer: int, inner: int
) -> bool:
    size = max(lines[inner].size, 4.0)
    is_apart = abs(lines[outer].y - lines[inner].y) > 1.75 * size
    return len(parts[outer] or ()) < 2 and (is_apart or abs(lines[outer].size - size) > 0.12 * size)


def _divide(lines: Sequence[Line]) -> list[list[Line]]:
    """Return lines as the columns in which the parts of enough of them begin."""
    for start in _cell_starts(lines, max(2, 0.3 * len(lines))):
        parts = [_split_at_gutter(line, start - 3.0) for line in lines]
        columns: tuple[list[Line], list[Line]] = ([], [])
        for part in (part for halves in parts for part in halves or ()):
            _append_part(columns[part.x0 >= start - 3.0], part)
        if all(parts) and all(columns):
            return [*_divide(columns[0]), *_divide(columns[1])]
    return [list(lines)]


def _is_prose_in_columns(columns: Sequence[Sequence[Line]]) -> bool:
    """Return whether columns are sentences that go on down each of them and from each to the next, not the cells of
    a table: most lines that end without a stop go on in lower case, and where the first word of the next line would
    not have fitted; no two sentences begin side by side."""
    if len(columns) < 2 or not all(map(_may_be_column, columns)):
        return False
    flow = [line for column in columns for line in column]
    going = [(before, after) for before, after in pairwise(flow) if not _STOP.search(before.text)]
    lower = sum(_goes_on_within(after.text) for _, after in going)
    full = [_is_full(*pair, column) for column in columns for pair in pairwise(column) if pair in going]
    if lower < 2 or 2 * lower < len(going) or 2 * len(going) < len(flow) - 1 or sum(full) < 0.7 * len(full):
        return False
    starts = [
        after.y
        for column in columns
        for before, after in pairwise(column)
        if _STOP.search(before.text) or not _is_full(before, after, column)
    ]
    return all(after - before > 0.25 * flow[0].size for before, after in pairwise(sorted(starts)))


def _may_be_column(lines: Sequence[Line]) -> bool:
    text = " ".join(line.text for line in lines)
    is_worded = len(text.split()) >= _COLUMN_WORDS * len(lines) or text.upper() == text.lower()
    width = sum(line.x1 - line.x0 for line in lines) / len(lines)
    is_whole = sum(len(line.split_cells()) == 1 for line in lines) >= 0.8 * len(lines)
    letters = sum(character.isalpha() or character.isspace() for character in text)
    return is_worded and is_whole and width > _COLUMN_WIDTH * lines[0].size and letters > 0.8 * len(text)


def _goes_on_within(text: str) -> bool:
    return text[:1].isalpha() and not text[:1].isupper()


def _is_full(before: Line, after: Line, column: Sequence[Line]) -> bool:
    """Return whether the first word of a line would not have fitted into the one before it."""
    word = after.words[0].x1 - after.words[0].x0
    return before.x1 + 0.2 * before.size + word > max(line.x1 for line in column) - 1


def _is_ruled(columns: Sequence[Sequence[Line]], rules: Sequence[Rule]) -> bool:
    """Return whether a rule across the gutter divides lines, as it does the rows of a table."""
    lines = [line for column in columns for line in column]
    top, bottom = min(line.y for line in lines), max(line.y for line in lines)
    edge, start = max(line.x1 for line in columns[0]), min(line.x0 for line in columns[1])
    return any(top < y < bottom and x0 < edge and x1 > start for x0, y, x1, _ in rules)


def _is_prose(part: Line, width: float) -> bool:
    letters = sum(character.isalpha() for character in part.text)
    return part.x1 - part.x0 > 0.2 * width and letters > 0.6 * len(part.text) and len(part.split_cells()) == 1


#: The lines of a page are numbered if at least so many numbers count up in its margin, over this share of its height.
_LINE_NUMBERS, _NUMBERED_HEIGHT = 16, 0.5


def _line_numbers(page: Page) -> frozenset[int]:
    """Return the places, among a page's words, of the numbers of its lines, as manuscripts have them in a margin.

    They count up by one at an equal distance, left or right of all other words, and some of them stand beside a gap
    between these.
    """
    candidates = [n for n, word in enumerate(page.words) if word.text.isdecimal() and len(word.text) < 5]
    by_edge: list[list[int]] = []
    for place in sorted(candidates, key=lambda place: page.words[place].x1):
        if by_edge and page.words[place].x1 - page.words[by_edge[-1][0]].x1 < 2:
            by_edge[-1].append(place)
        else:
            by_edge.append([place])
    for places in sorted(by_edge, key=len, reverse=True)[:2]:
        places.sort(key=lambda place: page.words[place].y)
        numbers = [page.words[place] for place in places]
        steps = [after.y - before.y for before, after in pairwise(numbers)]
        counts = sum(int(after.text) - int(before.text) == 1 for before, after in pairwise(numbers))
        if len(numbers) < _LINE_NUMBERS or counts < 0.95 * len(steps):
            continue
        own = frozenset(places)
        others = [word for place, word in enumerate(page.words) if place not in own]
        is_tall = numbers[-1].y - numbers[0].y > _NUMBERED_HEIGHT * page.height
        is_even = max(steps) < 1.3 * median(steps)
        x0, x1 = min(word.x0 for word in numbers), max(word.x1 for word in numbers)
        beside = [word for word in others if numbers[0].y - 1 < word.y < numbers[-1].y + 1]
        is_outside = all(word.x0 > x1 for word in beside) or all(word.x1 < x0 for word in beside)
        alone = sum(all(abs(word.y - number.y) > 0.15 * number.size for word in beside) for number in numbers)
        if is_tall and is_even and is_outside and 0.1 * len(numbers) < alone:
            return own
    return frozenset()


def _without_line_numbers(page: Page) -> Page:
    numbers = _line_numbers(page)
    if not numbers:
        return page
    return replace(page, words=tuple(word for place, word in enumerate(page.words) if place not in numbers))


def extract_lines(pages: Iterable[Page]) -> list[PageLines]:
    """Return the lines of every page in reading order, without their numbers, running headers and footers apart."""
    numberless = [_without_line_numbers(page) for page in pages]
    raw_pages = [(page, group_by_baseline(join_initials(page, numberless))) for page in numberless]
    running, counting = _running_shapes(raw_pages), _counting_shapes(raw_pages)
    page_lines = []
    for page, lines in raw_pages:
        above = _count_margin_lines(lines, page, running)
        below = _count_margin_lines(lines[above:][::-1], page, running, counting)
        end = len(lines) - below
        margin = [*lines[:above], *lines[end:]]
        labels = [label for line in margin if (label := _page_number(line.text))]
        ordered = sort_by_reading_order(page, lines[above:end])
        page_lines.append(PageLines(page, ordered, labels[-1] if labels else "", margin))
    _add_missing_labels(page_lines)
    _keep_running_lines(page_lines)
    return page_lines


def _keep_running_lines(pages: Sequence[PageLines]) -> None:
    """Keep each running header and footer once, without the number of its page, unless it stands in the text, too."""
    known = {_shape(line.text) for page in pages for line in page.lines}
    for page_lines in pages:
        for line in page_lines.margin_lines:
            text = _strip_page_number(line.text, page_lines)
            if any(map(str.isalpha, text)) and _shape(text) not in known and not _page_number(text):
                known.add(_shape(text))
                page_lines.running.append((text, line))
                page_lines.repeated.append(line.text.replace(text, "", 1))
            else:
                page_lines.repeated.append(line.text)


def _strip_page_number(text: str, page_lines: PageLines) -> str:
    """Return a running line without the number of its page at an end, "Page 3 of 9"."""
    number = "|".join(map(re.escape, {page_lines.label, str(page_lines.page.number)} - {""}))
    parts = rf"(?:page\s+)?(?:{number})(?:\s+(?:of|/)\s*\d+)?"
    return re.sub(rf"^{parts}\b[\W_]*|(?<=\D)[\W_]*\b{parts}$", "", text, flags=re.IGNORECASE).strip()


def _add_missing_labels(pages: Sequence[PageLines]) -> None:
    """Label pages with the number at an end of a running title, if it counts along with the pages."""
    numbers_at_ends = {
        page_lines.page.number: {
            int(text)
            for line in page_lines.margin_lines
            for text in (line.words[0].text, line.words[-1].text)
            if text.isdecimal() and len(text) < 5
        }
        for page_lines in pages
    }
    shifts = Counter(number - page for page, numbers in numbers_at_ends.items() for number in numbers)
    shift, count = shifts.most_common(1)[0] if shifts else (0, 0)
    for page_lines in pages if count > 1 else ():
        number = page_lines.page.number
        if not page_lines.label and number + shift in numbers_at_ends[number]:
            page_lines.label = str(number + shift)


def _count_margin_lines(
    lines: Sequence[Line],
    page: Page,
    running: Container[str],
    counting: Set[tuple[str, int]] = frozenset(),
) -> int:
    """Return how many of the first lines, seen from an edge of the page, are header or footer.

    The rows of a table that runs over pages are alike, too. But they follow each other at their own pitch, while a
    running header stands apart from the text.
    """
    count = 0
    for number, line in enumerate(lines[:3]):
        if number == 0 and len(lines) > 1 and not counting.isdisjoint(_shifts(line, page)):
            count = 1
            continue
        if not _in_margin(line, page):
            break
        if _page_number(line.text) is not None:
            # A year right above the names of columns belongs to them.
            inner = lines[number + 1] if number + 1 < len(lines) else None
            if _YEAR.fullmatch(line.text) and inner and abs(inner.y - line.y) < 1.8 * max(line.size, 4.0):
                break
            count = number + 1
        elif _shape(line.text) not in running:
            break
        elif _stands_apart(lines[number:]):
            count = number + 1
    return count


def _stands_apart(lines: Sequence[Line]) -> bool:
    """Return whether the first line is further from the next than the following ones are from each other."""
    steps = [abs(after.y - before.y) for before, after in pairwise(lines[:6])]
    return len(steps) < 3 or steps[0] > 1.2 * median_low(steps[1:])


def _running_shapes(pages: Sequence[tuple[Page, list[Line]]]) -> set[str]:
    """Return the shapes of lines that stand in the margins of at least three pages, and of a tenth of all; of two
    pages, those in one part that are the same and stand at the same height."""
    if len(pages) == 2:
        on_both = [
            {
                (line.text, round(line.y))
                for line in lines
                if _in_margin(line, page) and len(line.split_cells()) == 1
            }
            for page, lines in pages
        ]
        return {_shape(text) for text, _ in on_both[0] & on_both[1]}
    counts: Counter[str] = Counter()
    for page, lines in pages:
        margin = [line for line in (*lines[:3], *lines[-3:]) if _in_margin(line, page)]
        counts.update({_shape(line.text) for line in margin})
    least = max(3, len(pages) // 10)
    return {shape for shape, count in counts.items() if count >= least}


def _counting_shapes(pages: Sequence[tuple[Page, list[Line]]]) -> set[tuple[str, int]]:
    """Return the shapes of lines that are the last of at least three pages, and of a tenth of all, with a number that
    counts along with the pages, and how far the number is ahead of them.

    On pages that were set as a web page is, the footer follows the text and may stand anywhere.
    """
    counts = Counter(shift for page, lines in pages if len(lines) > 1 for shift in _shifts(lines[-1], page))
    least = max(3, len(pages) // 10)
    return {shift for shift, count in counts.items() if count >= least}


def _shifts(line: Line, page: Page) -> set[tuple[str, int]]:
    """Return the shape of a line with the distance of each of its numbers from the number of the page."""
    numbers = re.findall(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)", line.text)
    return {(_shape(line.text), int(number) - page.number) for number in numbers}


def _in_margin(line: Line, page: Page) -> bool:
    return line.y < MARGIN * page.height or line.y > (1 - MARGIN) * page.height


def _shape(text: str) -> str:
    """Return a line's text without its numbers, which differ from page to page."""
    return re.sub(r"\d+", "#", text.casefold())


_PAGE_NUMBER = re.compile(
    r"^(?:page\s+)?[-–—|]?\s*(\d{1,4}|[ivxl]{1,6}|(?:[A-Z]|\d{1,2})-\d{1,3})\s*[-–—|]?(?:\s+of\s+\d+)?$",
    re.IGNORECASE,
)


_YEAR = re.compile(r"(?:19|20)\d\d")


def _page_number(text: str) -> str | None:
    match = _PAGE_NUMBER.match(text.strip())
    return match[1] if match else None


def _split(words: Sequence[Word], gap: float) -> list[list[Word]]:
    parts: list[list[Word]] = [[words[0]]]
    for word in words[1:]:
        before = parts[-1][-1]
        if word.x0 - before.x1 > gap * max(min(word.size, before.size), 4.0):
            parts.append([])
        parts[-1].append(word)
    return parts
