"""The cells of a line of a PDF: words that wide gaps separate from others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.types import Box
from clew.parse.documents.pdf.lines import CELL_GAP, Line, words_box
from clew.parse.documents.pdf.words import Word

_NUMBER = re.compile(r"^[($€£¥+\-–—−]*\s*[\d.,]*\d[\d.,]*\s*[)%]*[)%]*(?:x|bps|pts?\.?)?(?:\s?\(\w\))?$")
_NO_VALUE = re.compile(r"^[$€£]?\s*[-–—−]+\s*%?$|^(?:n/?a|nm|n\.m\.|\*+|n/m)$", re.IGNORECASE)
_YEAR = re.compile(r"^(?:fy)?\s?(?:19|20)\d\d(?:\s?\(\w\))?$", re.IGNORECASE)
_BULLET = re.compile(
    r"^(?:[•·▪■◦‣*\-–—o]|\(?[a-z0-9ivx]{1,4}[.)]|(?:item|note|part|section)\s+\d{1,2}[a-z]?[.:)]?)$",
    re.IGNORECASE,
)
_LEADER = re.compile(r"(?:\s?[.·…_]){4,}\s*")
_CURRENCIES = frozenset("$€£¥")
#: Words before a number that belong to it, however far filings set them apart, and words after it.
_OPENING = frozenset({*_CURRENCIES, "($", "(", "$("})
_CLOSING = frozenset({"%", ")", ")%", "%)"})


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
    def is_tabular(self) -> bool:
        """Whether it looks like a row of a table: several cells, and no list item or heading with its number."""
        if len(self.cells) < 2:
            return False
        if len(self.cells) == 2 and _BULLET.match(self.cells[0].text):
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
    for word in line.words:
        if _LEADER.fullmatch(word.text):
            continue
        if parts and _joins(parts[-1], word):
            parts[-1].append(word)
        else:
            parts.append([word])
    cells = [Cell(line.page, _join_words(part), tuple(part)) for part in parts]
    return Row(line, tuple(cell for cell in cells if cell.text))


def _joins(part: Sequence[Word], word: Word) -> bool:
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
    are_numbers = bool(_NUMBER.match(before.text)) and bool(_NUMBER.match(word.text))
    return gap <= (0.45 if are_numbers else CELL_GAP) * size


def _join_words(part: Sequence[Word]) -> str:
    text = _LEADER.sub(" ", " ".join(word.text for word in part)).strip()
    text = re.sub(r"([$€£¥(])\s+(?=[\d(.—–-])", r"\1", text)
    return re.sub(r"(?<=[\d)])\s+([%)])", r"\1", text)
