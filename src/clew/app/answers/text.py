"""Pieces of text that renderers show: a passage cut around its quotations, and the cells of a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: A cut that saves fewer characters than this is not worth its ellipsis.
_WORTH_CUTTING = 80


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a text; ``marked`` if it is quoted."""

    text: str
    marked: bool = False


def excerpt(
    text: str, spans: Sequence[tuple[int, ...]], around: int | None = 320, first: int = 320
) -> tuple[TextPiece, ...]:
    """Return a text with its ``spans`` marked, cut to ``around`` characters on both sides of them.

    ``around`` None keeps the whole text. The excerpt ends no earlier than ``around`` characters after the first
    ``first`` characters of the text. Overlapping spans are marked once.

    >>> [(piece.text, piece.marked) for piece in excerpt("one two three", [(4, 7)])]
    [('one ', False), ('two', True), (' three', False)]
    """
    inside = sorted((max(0, span[0]), min(len(text), span[1])) for span in spans)
    start, end = 0, len(text)
    if around is not None:
        start = min((begin for begin, _ in inside), default=0) - around
        end = max(first, *(stop for _, stop in inside), 0) + around
        start = 0 if start < _WORTH_CUTTING else start
        end = len(text) if len(text) - end < _WORTH_CUTTING else end
    pieces, at = [TextPiece("… ")] if start else [], start
    for begin, stop in inside:
        if stop <= at:
            continue
        pieces.append(TextPiece(text[at : max(at, begin)]))
        pieces.append(TextPiece(text[max(at, begin) : stop], marked=True))
        at = stop
    pieces.append(TextPiece(text[at:end] + (" …" if end < len(text) else "")))
    return tuple(piece for piece in pieces if piece.text)


def table_cells(text: str) -> tuple[tuple[str, ...], ...]:
    r"""Return the cells of the table in a Markdown text, the header first; empty where there is none.

    >>> table_cells("| a | b |\n| --- | --- |\n| 1 \\| 2 | x |")
    (('a', 'b'), ('1 | 2', 'x'))
    """
    lines = [line for line in text.splitlines() if line.startswith("|")]
    del lines[1:2]  # the rule below the header
    rows = (line.strip()[1:-1].replace("\\|", "\0").split("|") for line in lines)
    return tuple(tuple(cell.replace("\0", "|").strip() for cell in row) for row in rows)
