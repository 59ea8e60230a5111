"""Cells of table rows as quotes: where a cell stands in the text of its row, and in which box on the page.

The text of a row is ``caption. groups: label: column: cell; column: cell``, without its empty cells. The boxes of its
cells, where the format has pages, say which cells are filled; so the parts of the text can be counted from its end.
"""

from __future__ import annotations

from clew.core.types import ROW, Box, Node, Quote


def quote_cell(node: Node, cell: str, column: int | None = None) -> Quote:
    """Return a row as a quote with one of its cells marked: that with the text ``cell``, in ``column`` if given."""
    span = (0, len(node.text))
    part = None if column is None else _part_of_column(node, column)
    if part is not None and node.text[: part[1]].endswith(cell):
        place = part[1] - len(cell)
    else:
        starts = (node.text.rfind(before + cell) + 2 for before in (": ", "; ") if before + cell in node.text)
        place = next(starts, -1)
    if not cell or place < 0:
        return Quote(node.id, node.text, span)
    box = node.cells[column] if column is not None and column < len(node.cells) else None
    answer = (place, place + len(cell))
    boxes = cell_boxes(node, answer) if box is None else (box,)
    return Quote(node.id, node.text, span, answer, boxes)


def cell_boxes(node: Node, answer: tuple[int, int] | None) -> tuple[Box, ...]:
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
