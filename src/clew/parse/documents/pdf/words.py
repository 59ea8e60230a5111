"""The words of a PDF page with their positions, sizes and emphasis, and its ruling lines, through pdfium.

pdfium is asked once per word rather than per character: it already separates words and lines, and a call costs
about a microsecond. Coordinates are PDF points from the page's top left.
"""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pypdfium2.raw as raw

from clew.parse.documents.blocks import superscript
from clew.parse.documents.pdf.visibility import Visibility

#: A rectangle or line: x0, top, x1, bottom.
Rule = tuple[float, float, float, float]

# pdfium marks a hyphen at a line's end (U+0002 or U+FFFE) and puts no white space after it.
_WORD = re.compile(r"[^\s\x02\ufffe]+[\x02\ufffe]?")
_BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
_ITALIC = re.compile(r"ital|obli", re.IGNORECASE)
_FIXED = re.compile(
    r"mono|nimbusmon|courier|typewriter|\bcmtt|\bec?tt|s[fl]tt|sf[is]t\d|consol|menlo|inconsolata"
    r"|\bpcr|txtt|lmtt|fixed",
    re.IGNORECASE,
)
#: Why words of a page are left out.
HIDDEN, TURNED, WATERMARK = "hidden", "turned", "watermark"
#: Words in letters of more points, slanted by this share of a quarter turn or more, are a watermark or a stamp.
_LARGE, _SLANT = 24.0, 0.1
#: So many times as large as its text is the letter that begins a paragraph over several of its lines.
INITIAL = 2.2
#: On white paper, text is light if it darkens it by less than this share.
_LIGHT = 0.4
#: Flags for the emphasis of a word; they add up.
ITALIC, BOLD = 1, 2
#: The flag of a font of a file (PDF 32000-1, table 123) whose characters are all of one width.
_FIXED_PITCH = 1
#: A page of text has no more characters; further ones are left out.
MAX_CHARACTERS = 60_000
#: So many objects of a page are searched for ruling lines.
MAX_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its text, left and right edge, baseline, font size as seen, and emphasis (ITALIC, BOLD, both).

    ``confidence`` is how sure text recognition is of it, None where it is text of the file. ``is_fixed``: its font
    gives all characters the same width, as in listings. ``is_light``: it is paler than text that is to be read.
    """

    text: str
    x0: float
    x1: float
    y: float
    size: float
    emphasis: int
    confidence: float | None = None
    is_fixed: bool = False
    is_light: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its size, its words, and its horizontal and vertical ruling lines.

    ``quarters``: a page whose text runs up or down, such as a table across it, is turned by so many quarters
    counter-clockwise for its text to be upright; size, words and rules are those of the page so turned.
    ``left_out`` are the words that are no text of it, with the reason.
    """

    number: int
    width: float
    height: float
    words: tuple[Word, ...]
    rules: tuple[Rule, ...]
    quarters: int = 0
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PageView:
    """Maps the file's coordinates to points from the top left of the page as it is shown.

    The map ``(a*x + c*y + e, b*x + d*y + f)`` turns a rotated page upright and starts at its crop box.
    """

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    @classmethod
    def from_page(cls, page: Any) -> PageView:
        """Return the view of a pypdfium2 page, from where pdfium shows three points."""
        width, height = page.get_size()
        resolution, distance = 64, 1000.0
        x, y = ctypes.c_int(), ctypes.c_int()
        points = []
        for place in ((0.0, 0.0), (distance, 0.0), (0.0, distance)):
            size = (round(width * resolution), round(height * resolution))
            raw.FPDF_PageToDevice(page.raw, 0, 0, *size, 0, *place, ctypes.byref(x), ctypes.byref(y))
            points.append((x.value / resolution, y.value / resolution))
        (e, f), (right, right_y), (up, up_y) = points
        a, b, c, d = (float(round(value / distance)) for value in (right - e, right_y - f, up - e, up_y - f))
        return cls(a, b, c, d, e, f)

    def turn(self, quarters: int, width: float, height: float) -> PageView:
        """Return the view of the page turned by quarters counter-clockwise; its size is that before."""
        match quarters % 4:
            case 1:
                return PageView(self.b, -self.a, self.d, -self.c, self.f, width - self.e)
            case 2:
                return PageView(-self.a, -self.b, -self.c, -self.d, width - self.e, height - self.f)
            case 3:
                return PageView(-self.b, self.a, -self.d, self.c, height - self.f, self.e)
        return self

    def map_point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is shown."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def map_box(self, x0: float, y0: float, x1: float, y1: float) -> Rule:
        """Return the rectangle between two shown points."""
        return bounding_rule(self.map_point(x0, y0), self.map_point(x1, y1))


def bounding_rule(a: tuple[float, float], b: tuple[float, float]) -> Rule:
    """Return the rectangle or line between two points."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])


def read_page(page: Any, number: int) -> Page:
    """Return the words and the ruling lines of a pypdfium2 page, upright; text that runs otherwise, or that nobody
    sees, is left out."""
    words: list[Word] = []
    left_out: list[tuple[str, str]] = []
    width, height = page.get_size()
    textpage = page.get_textpage()
    try:
        quarters = _quarters_to_upright(textpage, page.get_rotation())
        view = PageView.from_page(page).turn(quarters, width, height)
        if quarters % 2:
            width, height = height, width
        seen = Visibility.from_page(page)
        for word, reason in _read_words(textpage, view, quarters, page.get_rotation(), seen):
            is_off = word.x1 < 0 or word.x0 > width or word.y < 0 or word.y - word.size > height
            if reason or is_off:
                left_out.append((reason or HIDDEN, word.text))
            else:
                words.append(word)
    finally:
        textpage.close()
    rules = tuple(_read_rules(page, view))
    phrases = tuple(
        (reason, " ".join(text for _, text in group)) for reason, group in groupby(left_out, itemgetter(0))
    )
    return Page(number, width, height, tuple(words), rules, quarters, phrases)


#: The direction of text is that of one in so many characters; most of at least so many have to agree on a page's.
_DIRECTION_STEP, _DIRECTION_COUNT, _DIRECTION_SHARE = 7, 20, 0.8


def _quarters_to_upright(textpage: Any, rotation: int) -> int:
    """Return by how many quarters counter-clockwise to turn a page, shown with its own rotation in degrees, for most
    of its text to be upright."""
    count = min(raw.FPDFText_CountChars(textpage.raw), MAX_CHARACTERS)
    directions: Counter[int] = Counter()
    for index in range(0, count, _DIRECTION_STEP):
        if not chr(raw.FPDFText_GetUnicode(textpage.raw, index)).isspace():
            directions[_direction(textpage.raw, index, rotation)] += 1
    if directions.total() < _DIRECTION_COUNT:
        return 0
    direction, share = directions.most_common(1)[0]
    return direction if share >= _DIRECTION_SHARE * directions.total() else 0


def _direction(handle: Any, index: int, rotation: int) -> int:
    """Return by how many quarters, clockwise, a character is turned on the page as it is shown."""
    angle: float = raw.FPDFText_GetCharAngle(handle, index)
    return (round(angle / (math.pi / 2)) + rotation // 90) % 4


def _is_slanted(handle: Any, index: int) -> bool:
    """Return whether a character stands on a line that is neither level nor upright."""
    quarters = raw.FPDFText_GetCharAngle(handle, index) / (math.pi / 2)
    return bool(abs(quarters - round(quarters)) > _SLANT)


def _read_words(
    textpage: Any, view: PageView, quarters: int, rotation: int, seen: Visibility
) -> Iterator[tuple[Word, str]]:
    """Yield the words of a page, each with the reason why it is left out, "" for what is read."""
    handle = textpage.raw
    count = min(raw.FPDFText_CountChars(handle), MAX_CHARACTERS)
    if count <= 0:
        return
    buffer = (ctypes.c_ushort * (count + 1))()
    raw.FPDFText_GetText(handle, 0, count, buffer)
    # UTF-16 code units, so that positions stay those of pdfium's characters.
    text = "".join(map(chr, buffer[:count]))
    box = [ctypes.c_double() for _ in range(4)]
    x, y = ctypes.c_double(), ctypes.c_double()
    edges = [ctypes.byref(value) for value in box]
    emphasis, is_fixed, scale, last_end, last_size = 0, False, 1.0, -1, 0.0
    for match in _WORD.finditer(text):
        first, last = match.start(), match.end() - 1
        if not raw.FPDFText_GetCharBox(handle, first, *edges):
            continue
        # pdfium gives left, right, bottom, top.
        begin = (box[0].value, box[2].value, box[1].value, box[3].value)
        raw.FPDFText_GetCharBox(handle, last, *edges)
        end = (box[0].value, box[2].value, box[1].value, box[3].value)
        x0, x1 = view.map_box(*begin)[0], view.map_box(*end)[2]
        if is_from_right := x1 <= x0 and is_right_to_left(match.group()):
            x0, x1 = view.map_box(*end)[0], view.map_box(*begin)[2]
        first += _has_initial(handle, match)  # such a word stands where its rest does
        # A size below 0 is that of letters which the matrix of the text turns back.
        font_size = abs(raw.FPDFText_GetFontSize(handle, first))
        raw.FPDFText_GetCharOrigin(handle, first, ctypes.byref(x), ctypes.byref(y))
        if first != last_end + 2 or "\n" in text[last_end + 1 : first] or font_size != last_size:
            # The sign before a number may be of a font of symbols.
            sign = len(match.group()) > 1 and match.group()[0] in "−–-"
            emphasis, is_fixed = _read_font(handle, first + sign)
            scale = _scale(handle, first)
        last_end, last_size = last, font_size
        size = font_size * scale
        reason = ""
        if quarters and _direction(handle, first, rotation) != quarters:
            reason = TURNED  # the running header of a page that a table is turned on
        elif x1 <= x0 and len(match.group()) > 1:
            reason = TURNED  # or mirrored: an axis label, a stamp
        elif size > _LARGE and _is_slanted(handle, first):
            reason = WATERMARK
        elif seen.hides_word(textpage, first, _union(begin, end), size):
            reason = HIDDEN
        written = match.group()
        if len(written) > 1 and not is_from_right and (digits := _LAST_DIGITS.search(written)):
            written = _raise_digits(handle, written, digits, match.start(), size)
        if clean := _clean_text(written):
            baseline = view.map_point(x.value, y.value)[1]
            is_light = size > _LARGE and _is_light(handle, first)
            yield Word(clean, x0, max(x1, x0), baseline, size, emphasis, None, is_fixed, is_light), reason


def _has_initial(handle: Any, word: re.Match[str]) -> bool:
    """Return whether a word begins with a letter that is set over several lines."""
    if len(word[0]) < 2 or not word[0][0].isupper():
        return False
    first, second = (abs(raw.FPDFText_GetFontSize(handle, word.start() + n)) for n in (0, 1))
    return bool(first > INITIAL * second > 0)


def _union(a: Rule, b: Rule) -> Rule:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


#: Letters of scripts that run from right to left: Hebrew, Arabic, Syriac, Thaana and others.
_FROM_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def is_right_to_left(text: str) -> bool:
    """Return whether most letters of a text run from right to left."""
    if text.isascii() or not _FROM_RIGHT.search(text):
        return False
    kinds = Counter(unicodedata.bidirectional(character) for character in text)
    return kinds["R"] + kinds["AL"] > kinds["L"]


#: Digits at the end of a word, which may be a power or the mark of a note; those in brackets are told apart as it is.
_LAST_DIGITS = re.compile(r"(?:(?<=[^\W_])|(?<=[)\].%”’]))[+−-]?\d{1,3}(?=[.,;:)\]]*$)")
#: A raised character has this share of the size of those before it, and stands so many of their sizes higher.
_RAISED_SIZE, _RAISED_BY = (0.5, 0.95), (0.15, 0.7)


def _raise_digits(handle: Any, word: str, digits: re.Match[str], first: int, size: float) -> str:
    """Return a word with its last digits raised if they stand above its line: 10⁶ is not 106."""
    x, y, base = ctypes.c_double(), ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(handle, first, ctypes.byref(x), ctypes.byref(base))
    start = digits.end()
    while start > digits.start():
        index = first + start - 1
        raw.FPDFText_GetCharOrigin(handle, index, ctypes.byref(x), ctypes.byref(y))
        if not _RAISED_BY[0] * size < y.value - base.value < _RAISED_BY[1] * size:
            break
        share = raw.FPDFText_GetFontSize(handle, index) * _scale(handle, index) / size
        if not _RAISED_SIZE[0] <= share <= _RAISED_SIZE[1]:
            break
        start -= 1
    raised = word[start : digits.end()]
    return word[:start] + superscript(raised) + word[digits.end() :] if raised else word


def _clean_text(text: str) -> str:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\x02", "-").replace("\ufffe", "-").replace("\x00", "").replace("\xad", "-")


def _read_font(handle: Any, index: int) -> tuple[int, bool]:
    """Return the emphasis of a character, and whether all characters of its font have the same width."""
    buffer = ctypes.create_string_buffer(96)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(handle, index, buffer, 96, ctypes.byref(flags))
    name = buffer.value.decode("utf-8", "ignore")
    bold = raw.FPDFText_GetFontWeight(handle, index) >= 600 or bool(_BOLD.search(name))
    is_fixed = bool(flags.value & _FIXED_PITCH or _FIXED.search(name))
    return BOLD * bold + ITALIC * bool(_ITALIC.search(name)), is_fixed


def _is_light(handle: Any, index: int) -> bool:
    colour = [ctypes.c_uint() for _ in range(4)]
    if not raw.FPDFText_GetFillColor(handle, index, *map(ctypes.byref, colour)):
        return False
    red, green, blue, alpha = (part.value / 255 for part in colour)
    return alpha * (1 - (red + green + blue) / 3) < _LIGHT


def _scale(handle: Any, index: int) -> float:
    """Return the factor by which the page's matrix scales font sizes: some files set everything in size 1."""
    matrix = raw.FS_MATRIX()
    if not raw.FPDFText_GetMatrix(handle, index, ctypes.byref(matrix)):
        return 1.0
    return math.hypot(matrix.c, matrix.d) or 1.0


def _read_rules(page: Any, view: PageView) -> list[Rule]:
    rules: list[Rule] = []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    edges = [ctypes.byref(value) for value in (left, bottom, right, top)]
    for index in range(min(raw.FPDFPage_CountObjects(page.raw), MAX_OBJECTS)):
        item = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_PATH:
            continue
        if not raw.FPDFPageObj_GetBounds(item, *edges):
            continue
        rule = view.map_box(left.value, bottom.value, right.value, top.value)
        if _is_ruling_line(rule):
            rules.append(rule)
        elif len(rules) < MAX_OBJECTS and _is_stroked(item):
            rules += [line for line in _segments(item, view) if _is_ruling_line(line)]
    return rules


def _is_ruling_line(rule: Rule) -> bool:
    width, height = rule[2] - rule[0], rule[3] - rule[1]
    return (height <= 2.5 and width >= 8) or (width <= 2.5 and height >= 6)


def _is_stroked(path: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    return bool(raw.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke)) and stroke.value)


def _segments(path: Any, view: PageView) -> Iterator[Rule]:
    """Yield the straight segments of a path: a whole grid may be one path, and a box is one."""
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
