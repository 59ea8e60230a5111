"""The cells of a line of a PDF: words that wide gaps separate from others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.types import Box
from clew.parse.documents.pdf.lines import CELL_GAP, Line, words_box
from clew.parse.documents.pdf.words import Word

_NUMBER = re.compile(
    r"^[<>≤≥]?\s?[($€£¥+\-–—−]*\s*[.,]*\d[\d.,]*(?:[eE][+-]?\d{1,3})?\s*[)%]*(?:x|bps|pts?\.?)?(?:\s?\(\w\))?$"
)
_NO_VALUE = re.compile(r"^[$€£]?\s*[-–—−]+\s*%?$|^(?:n/?a|nm|n\.m\.|\*+|n/m)$", re.IGNORECASE)
_YEAR = re.compile(r"^(?:fy)?\s?(?:19|20)\d\d(?:\s?\(\w\))?$", re.IGNORECASE)
_MONTH_AND_DAY = re.compile(
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.? \d{1,2},$", re.IGNORECASE
)
_BULLET = re.compile(
    r"^(?:[•·▪■◦‣*\-–—o]|\(?[a-z0-9ivx]{1,4}[.)]|(?:item|note|part|section)\s+\d{1,2}[a-z]?[.:)]?)$",
    re.IGNORECASE,
)
#: The number with which the caption of a table or figure begins.
_CAPTION_NUMBER = re.compile(
    r"^(?:table|tab\.|figure|fig\.|tabelle|abbildung|tableau|tabla|tabela|tabella)\s+(?:\d+|[A-Z]|[IVX]+)"
    r"(?:[.-]\d+)*(?:[.:](?=\s|$)|$|(?=\s+(?-i:[A-Z])))",
    re.IGNORECASE,
)
_LEADER = re.compile(r"(?:\s?[.·…_]){4,}\s*")
_CURRENCIES = frozenset("$€£¥")
#: Words before a number that belong to it, however far filings set them apart, and words after it.
_OPENING = frozenset({*_CURRENCIES, "($", "(", "$("})
_CLOSING = frozenset({"%", ")", ")%", "%)"})
#: A line that a person typed at a prompt, in a listing of what a program printed.
_COMMAND = re.compile(r"(?:\w{0,3}>{1,3}|In \[\d+\]:)\s+\S")
_CODE = re.compile(r"\w[(\[]|<-|[\w)\]] ?= ?[\w\"']|[a-z]\.[a-z]|\w\$\w")
#: A mark right of a number: of significance, or for its unit.
_MARK = re.compile(r"[*.+%†‡<>≤≥]{1,3}$")
#: More than one space, from glyph to glyph, in the widths of a character, where all have the same width.
_FIXED_GAP = 2.0


def is_number(text: str) -> bool:
    """Return whether a cell's text is a number, or a mark for a missing one."""
    return bool(_NUMBER.match(text) or _NO_VALUE.match(text))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a line: the number of its page, its text and its words."""

    page: int
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

    @property
    def centre(self) -> float:
        """The middle between its edges."""
        return (self.x0 + self.x1) / 2

    @property
    def box(self) -> Box:
        """The rectangle around its words, estimated from baseline and font size."""
        return words_box(self.page, self.words)

    def split(self) -> list[Cell]:
        """Return the parts that are separated by gaps wider than between words, narrower than between cells."""
        parts: list[list[Word]] = [[self.words[0]]]
        for word in self.words[1:]:
            if word.x0 - parts[-1][-1].x1 > 0.5 * word.size:
                parts.append([])
            parts[-1].append(word)
        return [Cell(self.page, _join_words(part), tuple(part)) for part in parts]

    def without_last_word(self) -> Cell:
        """Return the cell of all its words but the last."""
        return Cell(self.page, _join_words(self.words[:-1]), self.words[:-1])

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
    def is_command(self) -> bool:
        """Whether it was typed at a prompt: "> summary(model)", and not "> 10 years"; or goes on: "+ family = f)"."""
        text = self.line.text
        if text.startswith("+ ") and self.line.is_fixed:
            return bool(_CODE.search(text)) or not any(character.isdigit() for character in text)
        return bool(_COMMAND.match(text)) and (self.line.is_fixed or bool(_CODE.search(text)))

    @property
    def is_caption(self) -> bool:
        """Whether it begins the caption of a table or figure: "Table 4", then maybe apart its title."""
        return len(self.cells) <= 2 and bool(_CAPTION_NUMBER.match(self.line.text))

    @property
    def is_tabular(self) -> bool:
        """Whether it looks like a row of a table: several cells, and no list item or heading with its number."""
        if len(self.cells) < 2 or self.is_command:
            return False
        if len(self.cells) == 2 and (_BULLET.match(self.cells[0].text) or self.is_caption):
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
    words = [word for word in line.words if not _LEADER.fullmatch(word.text)]
    numbers = _start_of_numbers(words)
    fixed_gap = _FIXED_GAP * _character_width(words)
    for place, word in enumerate(words):
        if parts and (place < numbers or word.text in _CLOSING) and _joins(parts[-1], word, fixed_gap):
            parts[-1].append(word)
        else:
            parts.append([word])
    cells = [Cell(line.page, _join_words(part), tuple(part)) for part in parts]
    return Row(line, tuple(cell for cell in cells if cell.text))


def _start_of_numbers(words: Sequence[Word]) -> int:
    """Return the place of the first of the numbers that end a line of a listing, at least two; else that of its end.

    A single space separates them in a font of one width.
    """
    place = len(words)
    while place and words[place - 1].is_fixed and _is_number_or_mark(words[place - 1].text):
        place -= 1
    count = sum(bool(_NUMBER.match(word.text)) for word in words[place:])
    return place if count > 1 else len(words)


def _is_number_or_mark(text: str) -> bool:
    return (is_number(text) and not text.endswith(",")) or bool(_MARK.match(text))


def _character_width(words: Sequence[Word]) -> float:
    """Return the width of a character in the font of a line of a listing, estimated from its longer words."""
    widths = [(word.x1 - word.x0) / len(word.text) for word in words if word.is_fixed and len(word.text) > 2]
    return max(widths) if widths else 0.6 * max((word.size for word in words), default=4.0)


def _joins(part: Sequence[Word], word: Word, fixed_gap: float) -> bool:
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
    if (
        len(part) > 1
        and _YEAR.match(word.text.rstrip(".,;"))
        and _MONTH_AND_DAY.match(f"{part[-2].text} {before.text}")
    ):
        return gap < 2 * size  # a date in a line that is filled
    are_numbers = bool(_NUMBER.match(before.text)) and bool(_NUMBER.match(word.text))
    if before.is_fixed and word.is_fixed and not are_numbers:
        return gap <= fixed_gap
    return gap <= (0.45 if are_numbers else CELL_GAP) * size


def _join_words(part: Sequence[Word]) -> str:
    text = _LEADER.sub(" ", " ".join(word.text for word in part)).strip()
    text = re.sub(r"([$€£¥(])\s+(?=[\d(.—–-])", r"\1", text)
    return re.sub(r"(?<=[\d)])\s+([%)])", r"\1", text)
