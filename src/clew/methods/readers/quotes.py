"""Quotes of answers: the sentence or the table row that an answer stands in, with its place and its box on the page.

The text of a row is ``caption. groups: label: column: cell; column: cell``, without its empty cells. The boxes of its
cells, where the format has pages, say which cells are filled; so the parts of the text can be counted from its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.core.text import query_terms, sentence_spans
from clew.core.types import ROW, Box, Hit, Node, Quote, Span

#: A quote longer than this many characters is cut around the answer.
_LONG_QUOTE = 420
_WORD = re.compile(r"[^\W\d_]+")


def quote_cell(node: Node, cell: str, column: int | None = None) -> Quote:
    """Return a row as a quote with one of its cells marked: that with the text ``cell``, in ``column`` if given."""
    span = (0, len(node.text))
    part = None if column is None else _part_of_column(node, column)
    if part is not None and node.text[: part[1]].endswith(cell):
        place = part[1] - len(cell)
    elif column == 0:
        # The label of the row, behind the table's caption.
        place = node.text.find(cell)
    else:
        starts = (node.text.rfind(before + cell) + 2 for before in (": ", "; ") if before + cell in node.text)
        place = next(starts, -1)
    if not cell or place < 0:
        return Quote(node.id, node.text, span)
    box = node.cells[column] if column is not None and column < len(node.cells) else None
    answer = (place, place + len(cell))
    boxes = _cell_boxes(node, answer) if box is None else (box,)
    return Quote(node.id, node.text, span, answer, boxes)


def _cell_boxes(node: Node, answer: tuple[int, int] | None) -> tuple[Box, ...]:
    """Return the box of the cell of a row that has a range of its text within it; none where that is not known."""
    if node.kind != ROW or answer is None:
        return ()
    for column in range(1, len(node.cells)):
        part = _part_of_column(node, column)
        box = node.cells[column]
        if box is not None and part is not None and part[0] <= answer[0] and answer[1] <= part[1]:
            return (box,)
    return ()


def _part_of_column(node: Node, column: int) -> tuple[int, int] | None:
    """Return the range of a cell in the text of its row; None where it is empty, or where the text has more parts
    than the row has cells, so that they cannot be told apart."""
    filled = [number for number, box in enumerate(node.cells) if number and box is not None]
    parts = node.text.split("; ")
    if column not in filled or len(parts) != len(filled):
        return None
    number = filled.index(column)
    start = sum(len(part) + 2 for part in parts[:number])
    return start + (name + 2 if (name := parts[number].rfind(": ")) >= 0 else 0), start + len(parts[number])


def quote_around(node: Node, span: Span, question: str) -> Quote:
    """Return the sentence, or the table row, in which a span stands, with the span marked.

    An answer that is the title of its passage is quoted by the sentence that shares most words with the question.
    """
    if span.kind == "title":
        return _best_sentence(question, node)
    text = node.text
    start, end = next(
        ((first, last) for first, last in _quotable_spans(node) if first <= span.start and span.end <= last),
        (span.start, span.end),
    )
    if end - start > _LONG_QUOTE:
        start = max(start, span.start - _LONG_QUOTE // 2)
        end = min(end, span.end + _LONG_QUOTE // 2)
        start = (
            start
            if start == 0 or text[start - 1].isspace()
            else text.find(" ", start, span.start) + 1 or start
        )
        last_space = text.rfind(" ", span.end, end)
        end = end if end == len(text) or last_space < 0 else last_space
    answer = (span.start, span.end)
    return Quote(node.id, text[start:end], (start, end), answer, _cell_boxes(node, answer))


def _quotable_spans(node: Node) -> list[tuple[int, int]]:
    if node.kind == ROW:
        return [(0, len(node.text))]
    if node.text.startswith("|") or "\n|" in node.text:
        return [match.span() for match in re.finditer(r"[^\n]+", node.text)]
    return sentence_spans(node.text)


def find_supporting_quote(question: str, hits: Sequence[Hit]) -> tuple[Hit, Quote]:
    """Return the sentence or row of all hits that shares most words with a question, which a yes or no rests on."""
    quotes = [(hit, _best_sentence(question, hit.node)) for hit in hits]
    return max(quotes, key=lambda pair: _shared_words(question, pair[1].text))


def _best_sentence(question: str, node: Node) -> Quote:
    start, end = max(
        _quotable_spans(node) or [(0, len(node.text))],
        key=lambda span: _shared_words(question, node.text[slice(*span)]),
    )
    end = min(end, start + _LONG_QUOTE)
    return Quote(node.id, node.text[start:end], (start, end))


def _shared_words(question: str, text: str) -> tuple[int, int]:
    """Return how many of the question's words a text has, and how many of them letter by letter: "effective" is not
    "effectiveness"."""
    forms = frozenset(_WORD.findall(question.casefold()))
    return (
        len(frozenset(query_terms(question)) & frozenset(query_terms(text))),
        len(forms & frozenset(_WORD.findall(text.casefold()))),
    )


def mark_words(text: str, quote: Quote | None) -> str:
    """Return the words of an answer that its quote marks; of one that is a whole sentence they are what is asked."""
    if quote is None or quote.answer is None:
        return text
    return quote.text[quote.answer[0] - quote.span[0] : quote.answer[1] - quote.span[0]] or text
