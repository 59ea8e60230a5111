"""Words of a PDF page with where and how they are set, through pdfium.

Asked once per word rather than per character: pdfium already separates words and lines, and a call costs about
a microsecond. Coordinates are PDF points from the page's top left.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as raw

#: A thin straight line: x0, top, x1, bottom.
Rule = tuple[float, float, float, float]

# pdfium marks a hyphen at a line's end (U+0002 or U+FFFE) and puts no white space after it.
_WORD = re.compile(r"[^\s\x02\ufffe]+[\x02\ufffe]?")
_BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
_ITALIC = re.compile(r"ital|obli", re.IGNORECASE)
#: How a word stands out from plain text; the numbers add up.
ITALIC, BOLD = 1, 2
#: More characters than this on a page are no page of text; the rest is left out.
MAX_CHARACTERS = 60_000
#: Objects of a page that are looked at for ruling lines.
MAX_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its text, left and right edge, baseline, font size as seen, and stress (ITALIC, BOLD, both)."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    emphasis: int


@dataclass(frozen=True, slots=True)
class Page:
    """What is on a page. ``rules`` are its horizontal and vertical lines."""

    number: int
    width: float
    height: float
    words: tuple[Word, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class PageView:
    """How a page is shown: from the file's coordinates to points from its top left, ``(a*x + c*y + e,
    b*x + d*y + f)``. It turns a rotated page and cuts off what lies outside the crop box."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    @classmethod
    def from_page(cls, page: Any) -> PageView:
        """Ask pdfium where three points come to lie."""
        width, height = page.get_size()
        fine, far = 64, 1000.0
        x, y = ctypes.c_int(), ctypes.c_int()
        shown = []
        for place in ((0.0, 0.0), (far, 0.0), (0.0, far)):
            size = (round(width * fine), round(height * fine))
            raw.FPDF_PageToDevice(page.raw, 0, 0, *size, 0, *place, ctypes.byref(x), ctypes.byref(y))
            shown.append((x.value / fine, y.value / fine))
        (e, f), (right, right_y), (up, up_y) = shown
        a, b, c, d = (float(round(value / far)) for value in (right - e, right_y - f, up - e, up_y - f))
        return cls(a, b, c, d, e, f)

    def map_point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is shown."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def map_box(self, x0: float, y0: float, x1: float, y1: float) -> Rule:
        """Return the rectangle between two shown points."""
        return bounding_rule(self.map_point(x0, y0), self.map_point(x1, y1))


def bounding_rule(one: tuple[float, float], other: tuple[float, float]) -> Rule:
    """Return the rectangle, or line, that two points span."""
    return min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])


def read_page(page: Any, number: int) -> Page:
    """Return the upright words and the ruling lines of a pypdfium2 page."""
    view = PageView.from_page(page)
    textpage = page.get_textpage()
    try:
        words = tuple(_words(textpage, view))
    finally:
        textpage.close()
    width, height = page.get_size()
    return Page(number, width, height, words, tuple(_rules(page, view)))


def _words(textpage: Any, view: PageView) -> list[Word]:
    handle = textpage.raw
    count = min(raw.FPDFText_CountChars(handle), MAX_CHARACTERS)
    if count <= 0:
        return []
    buffer = (ctypes.c_ushort * (count + 1))()
    raw.FPDFText_GetText(handle, 0, count, buffer)
    # UTF-16 code units, so that positions stay those of pdfium's characters.
    text = "".join(map(chr, buffer[:count]))
    box = [ctypes.c_double() for _ in range(4)]
    x, y = ctypes.c_double(), ctypes.c_double()
    references = [ctypes.byref(value) for value in box]
    found: list[Word] = []
    stress, scale, last_end = 0, 1.0, -1
    for match in _WORD.finditer(text):
        first, last = match.start(), match.end() - 1
        if not raw.FPDFText_GetCharBox(handle, first, *references):
            continue
        # pdfium gives left, right, bottom, top.
        x0 = view.map_box(box[0].value, box[2].value, box[1].value, box[3].value)[0]
        raw.FPDFText_GetCharBox(handle, last, *references)
        x1 = view.map_box(box[0].value, box[2].value, box[1].value, box[3].value)[2]
        raw.FPDFText_GetCharOrigin(handle, first, ctypes.byref(x), ctypes.byref(y))
        if first != last_end + 2 or "\n" in text[last_end + 1 : first]:
            stress, scale = _stress(handle, first), _scale(handle, first)
        last_end = last
        size = raw.FPDFText_GetFontSize(handle, first) * scale
        if x1 <= x0 and len(match.group()) > 1:
            continue  # rotated or mirrored: an axis label, a stamp
        clean = _clean(match.group())
        if clean:
            found.append(Word(clean, x0, max(x1, x0), view.map_point(x.value, y.value)[1], size, stress))
    return found


def _clean(text: str) -> str:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\x02", "-").replace("\ufffe", "-").replace("\x00", "").replace("\xad", "-")


def _stress(handle: Any, index: int) -> int:
    buffer = ctypes.create_string_buffer(96)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(handle, index, buffer, 96, ctypes.byref(flags))
    name = buffer.value.decode("utf-8", "ignore")
    bold = raw.FPDFText_GetFontWeight(handle, index) >= 600 or bool(_BOLD.search(name))
    return BOLD * bold + ITALIC * bool(_ITALIC.search(name))


def _scale(handle: Any, index: int) -> float:
    """Return what the page's own matrix makes of a font size: some files set everything in a font of 1."""
    matrix = raw.FS_MATRIX()
    if not raw.FPDFText_GetMatrix(handle, index, ctypes.byref(matrix)):
        return 1.0
    return math.hypot(matrix.c, matrix.d) or 1.0


def _rules(page: Any, view: PageView) -> list[Rule]:
    found: list[Rule] = []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    edges = [ctypes.byref(value) for value in (left, bottom, right, top)]
    for index in range(min(raw.FPDFPage_CountObjects(page.raw), MAX_OBJECTS)):
        item = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_PATH:
            continue
        if not raw.FPDFPageObj_GetBounds(item, *edges):
            continue
        rule = view.map_box(left.value, bottom.value, right.value, top.value)
        if _thin(rule):
            found.append(rule)
        elif len(found) < MAX_OBJECTS and _stroked(item):
            found += [line for line in _segments(item, view) if _thin(line)]
    return found


def _thin(rule: Rule) -> bool:
    width, tall = rule[2] - rule[0], rule[3] - rule[1]
    return (tall <= 2.5 and width >= 8) or (width <= 2.5 and tall >= 6)


def _stroked(path: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    return bool(raw.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke)) and stroke.value)


def _segments(path: Any, view: PageView) -> Iterator[Rule]:
    """Yield the straight pieces of a path: a grid may be one path, and so is a box."""
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(path, ctypes.byref(matrix)):
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    before = start = (0.0, 0.0)
    for index in range(min(raw.FPDFPath_CountSegments(path), MAX_OBJECTS)):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        if not raw.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y)):
            continue
        kind = raw.FPDFPathSegment_GetType(segment)
        point = view.map_point(
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield bounding_rule(before, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield bounding_rule(point, start)
        before = point
