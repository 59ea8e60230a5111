"""Words of a PDF page with where and how they are set, through pdfium.

Asked once per word rather than per character: pdfium already separates words and lines, and a call costs about
a microsecond. Coordinates are PDF points from the page's top left.
"""

from __future__ import annotations

import ctypes
import math
import re
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as raw

# pdfium marks a hyphen at a line's end (U+0002 or U+FFFE) and puts no white space after it.
_WORD = re.compile(r"[^\s\x02\ufffe]+[\x02\ufffe]?")
_BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
_ITALIC = re.compile(r"ital|obli", re.IGNORECASE)
#: How a word stands out from plain text; the numbers add up.
ITALIC, BOLD = 1, 2
#: More characters than this on a page are no page of text; the rest is left out.
MOST_CHARACTERS = 60_000
#: Objects of a page that are looked at for ruling lines.
MOST_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its text, left and right edge, baseline, font size as seen, and stress (ITALIC, BOLD, both)."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    stress: int


@dataclass(frozen=True, slots=True)
class Page:
    """What is on a page. ``rules`` are thin horizontal and vertical lines as (x0, top, x1, bottom)."""

    number: int
    width: float
    height: float
    words: tuple[Word, ...]
    rules: tuple[tuple[float, float, float, float], ...]


def read_page(page: Any, number: int) -> Page:
    """Return the upright words and the ruling lines of a pypdfium2 page."""
    width, height = page.get_size()
    textpage = page.get_textpage()
    try:
        words = tuple(_words(textpage, height))
    finally:
        textpage.close()
    return Page(number, width, height, words, tuple(_rules(page, height)))


def _words(textpage: Any, height: float) -> list[Word]:
    handle = textpage.raw
    count = min(raw.FPDFText_CountChars(handle), MOST_CHARACTERS)
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
        x0 = box[0].value
        raw.FPDFText_GetCharBox(handle, last, *references)
        x1 = box[1].value
        raw.FPDFText_GetCharOrigin(handle, first, ctypes.byref(x), ctypes.byref(y))
        if first != last_end + 2 or "\n" in text[last_end + 1 : first]:
            stress, scale = _stress(handle, first), _scale(handle, first)
        last_end = last
        size = raw.FPDFText_GetFontSize(handle, first) * scale
        if x1 <= x0 and len(match.group()) > 1:
            continue  # rotated or mirrored: an axis label, a stamp
        clean = _clean(match.group())
        if clean:
            found.append(Word(clean, x0, max(x1, x0), height - y.value, size, stress))
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


def _rules(page: Any, height: float) -> list[tuple[float, float, float, float]]:
    found = []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(raw.FPDFPage_CountObjects(page.raw), MOST_OBJECTS)):
        item = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_PATH:
            continue
        if not raw.FPDFPageObj_GetBounds(
            item, ctypes.byref(left), ctypes.byref(bottom), ctypes.byref(right), ctypes.byref(top)
        ):
            continue
        width, tall = right.value - left.value, top.value - bottom.value
        if (tall <= 2.5 and width >= 20) or (width <= 2.5 and tall >= 8):
            found.append((left.value, height - top.value, right.value, height - bottom.value))
    return found
