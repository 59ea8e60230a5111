"""Which paragraphs are headings, and of which level: by size, weight, numbering, and the file's own outline."""

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
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class HeadingStyle:
    """What tells one kind of heading from another."""

    size: float
    emphasis: int
    capitals: bool


@dataclass(frozen=True, slots=True)
class Headings:
    """The headings of one document: body size, the level of each style, and what the outline says.

    ``dots`` is the least depth of numbering among the headings of a style ("4" has none, "4.2" one).
    """

    body: float
    levels: Mapping[HeadingStyle, int]
    min_depths: Mapping[HeadingStyle, int]
    outline: Mapping[tuple[int, str], int]

    @classmethod
    def from_pages(cls, sheets: Sequence[PageLines], outline: Mapping[tuple[int, str], int]) -> Headings:
        """Look at a document's lines: the body is what most characters are set in."""
        sizes: Counter[float] = Counter()
        for sheet in sheets:
            for line in sheet.lines:
                sizes[_rounded(line.size)] += len(line.text)
        body = sizes.most_common(1)[0][0] if sizes else 10.0
        heads = [line for sheet in sheets for line in sheet.lines if _may_head(line, body)]
        styles = {style_of(line) for line in heads}
        dots: dict[HeadingStyle, int] = {}
        for line in heads:
            if (depth := _dots(line.text)) is not None:
                dots[style_of(line)] = min(depth, dots.get(style_of(line), depth))
        ranked = sorted(styles, key=lambda style: (-style.size, -style.emphasis, not style.capitals))
        levels = {style: min(number + 1, _DEEPEST) for number, style in enumerate(ranked)}
        return cls(body, levels, dots, outline)

    def level_of(self, lines: Sequence[Line]) -> int | None:
        """Return the level of a paragraph as a heading; None if it is none."""
        text = " ".join(line.text for line in lines)
        if known := self.outline.get((lines[0].page, normalize_heading(text))):
            return known
        letters = sum(character.isalpha() for character in text)
        if len(lines) > 3 or len(text) > 160 or letters < 3 or letters < 0.5 * len(text):
            return None
        if not all(_may_head(line, self.body) for line in lines):
            return None
        if text.rstrip().endswith((".", ",", ";")) and not _NUMBERED.match(text) and len(text) > 60:
            return None
        style = style_of(lines[0])
        depth = _dots(text)
        deeper = depth - self.min_depths[style] if depth is not None and style in self.min_depths else 0
        return min(self.levels.get(style, _DEEPEST) + deeper, _DEEPEST)


def _dots(text: str) -> int | None:
    """Return how deep a heading's number goes: 0 for "4", 1 for "4.2"; None without one."""
    numbered = _NUMBERED.match(text)
    return numbered["decimal"].count(".") if numbered and numbered["decimal"] else None


def style_of(line: Line) -> HeadingStyle:
    """Return the style of a line."""
    letters = [character for character in line.text if character.isalpha()]
    return HeadingStyle(
        _rounded(line.size), line.emphasis, bool(letters) and all(c.isupper() for c in letters)
    )


def _may_head(line: Line, body: float) -> bool:
    text = line.text.strip()
    # An empty text is in every string, and no heading either.
    if (
        text[:1] in "•·▪■◦‣●○"
        or len(text) > 120
        or not any(character.isalpha() for character in text)
        or len(line.split_cells()) > 2
    ):
        return False
    if _rounded(line.size) >= 1.15 * body:
        return True
    if line.size < 0.9 * body:
        return False
    return line.emphasis > 0 or (bool(_NUMBERED.match(text)) and style_of(line).capitals and len(text) > 6)


def normalize_heading(text: str) -> str:
    """Return a heading's text as it is compared with the outline's."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _rounded(size: float) -> float:
    return round(size * 2) / 2
