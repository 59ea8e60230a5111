"""Finds headings and their levels: by font size, emphasis, numbering, and the file's own outline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.parse.documents.pdf.lines import Line, PageLines

_NUMBERED = re.compile(
    r"^(?P<part>part\s+[ivx]+\b)|^(?P<item>item\s+\d+[a-z]?\b)|^(?P<note>note\s+\d+\b)"
    r"|^(?P<chapter>(?:chapter|appendix|annex|exhibit)\s+[\dA-Zivx]+\b)"
    r"|^(?P<decimal>\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+(?=[A-Z])",
    re.IGNORECASE,
)
_MAX_LEVEL = 6


@dataclass(frozen=True, slots=True)
class HeadingStyle:
    """The size, emphasis and case that headings of one kind have in common."""

    size: float
    emphasis: int
    capitals: bool


@dataclass(frozen=True, slots=True)
class Headings:
    """The headings of one document: its body size, the level of each style, and the levels in its outline.

    ``min_depths`` is the least depth of numbering among the headings of a style ("4" has depth 0, "4.2" 1).
    ``outline`` has levels by page and normalized text.
    """

    body: float
    levels: Mapping[HeadingStyle, int]
    min_depths: Mapping[HeadingStyle, int]
    outline: Mapping[tuple[int, str], int]

    @classmethod
    def from_pages(cls, pages: Sequence[PageLines], outline: Mapping[tuple[int, str], int]) -> Headings:
        """Learn the headings from a document's lines; its body size is that of most characters."""
        sizes: Counter[float] = Counter()
        for page in pages:
            for line in page.lines:
                sizes[_round_size(line.size)] += len(line.text)
        body = sizes.most_common(1)[0][0] if sizes else 10.0
        candidates = [line for page in pages for line in page.lines if _may_be_heading(line, body)]
        styles = {style_of(line) for line in candidates}
        min_depths: dict[HeadingStyle, int] = {}
        for line in candidates:
            if (depth := _number_depth(line.text)) is not None:
                style = style_of(line)
                min_depths[style] = min(depth, min_depths.get(style, depth))
        ranked = sorted(styles, key=lambda style: (-style.size, -style.emphasis, not style.capitals))
        levels = {style: min(number + 1, _MAX_LEVEL) for number, style in enumerate(ranked)}
        return cls(body, levels, min_depths, outline)

    def level_of(self, lines: Sequence[Line]) -> int | None:
        """Return the level of a paragraph as a heading, None if it is no heading."""
        text = " ".join(line.text for line in lines)
        if level := self.outline.get((lines[0].page, normalize_heading(text))):
            return level
        letters = sum(character.isalpha() for character in text)
        if len(lines) > 3 or len(text) > 160 or letters < 3 or letters < 0.5 * len(text):
            return None
        if not all(_may_be_heading(line, self.body) for line in lines):
            return None
        if text.rstrip().endswith((".", ",", ";")) and not _NUMBERED.match(text) and len(text) > 60:
            return None
        style = style_of(lines[0])
        depth = _number_depth(text)
        deeper = depth - self.min_depths[style] if depth is not None and style in self.min_depths else 0
        return min(self.levels.get(style, _MAX_LEVEL) + deeper, _MAX_LEVEL)


def _number_depth(text: str) -> int | None:
    """Return the depth of a heading's number: 0 for "4", 1 for "4.2", None without a number."""
    numbered = _NUMBERED.match(text)
    return numbered["decimal"].count(".") if numbered and numbered["decimal"] else None


def style_of(line: Line) -> HeadingStyle:
    """Return the style of a line."""
    letters = [character for character in line.text if character.isalpha()]
    return HeadingStyle(
        _round_size(line.size), line.emphasis, bool(letters) and all(c.isupper() for c in letters)
    )


def _may_be_heading(line: Line, body: float) -> bool:
    text = line.text.strip()
    # The first check is also true of an empty text, which is no heading either.
    if (
        text[:1] in "•·▪■◦‣●○"
        or len(text) > 120
        or not any(character.isalpha() for character in text)
        or len(line.split_cells()) > 2
    ):
        return False
    if _round_size(line.size) >= 1.15 * body:
        return True
    if line.size < 0.9 * body:
        return False
    return line.emphasis > 0 or (bool(_NUMBERED.match(text)) and style_of(line).capitals and len(text) > 6)


def normalize_heading(text: str) -> str:
    """Return the text of a heading without case, spaces and punctuation, to compare it with the outline's."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _round_size(size: float) -> float:
    return round(size * 2) / 2
