"""A node as it stands in its document: on the picture of its page, or among the text around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.app.answers.view import TextPiece, excerpt, table_cell_at, table_cells
from clew.app.web.pages.answer import CellPosition, TableRow, row_cell_at
from clew.core.errors import ClewError
from clew.core.types import PAGE, PASSAGE, ROW, SECTION, TABLE, Box, Node, Quote

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.server import Server

#: Pixels to the point in which pages are shown.
SCALE = 1.5
#: Pages of one node that are shown.
_MAX_PAGES = 3
#: Characters of text before and after a node that are shown with it.
_AROUND = 3_000
_PDF = "application/pdf"


@dataclass(frozen=True, slots=True)
class PageSheet:
    """A page, the ``boxes`` that are highlighted on it, and among them those of the ``answers``, the cells that an
    answer is; sizes in points."""

    page: int
    width: float
    height: float
    boxes: tuple[Box, ...]
    answers: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """A part of a document: a heading (``level`` from 1), a paragraph or a table. ``here``: it is the node that is
    shown. ``row`` is the number of the highlighted row of ``cells``, from 1 below the header; 0 for none.
    ``marked_cells`` are the cells that the answer stands in."""

    id: str
    kind: str
    pieces: tuple[TextPiece, ...]
    level: int = 0
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    row: int = 0
    here: bool = False
    marked_cells: tuple[CellPosition, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceView:
    """What is shown of a node. ``problem`` says why a page of it has no picture; ``before`` and ``after`` whether the
    document has more text than is shown."""

    node: Node
    title: str
    sheets: tuple[PageSheet, ...]
    blocks: tuple[SourceBlock, ...]
    problem: str = ""
    before: bool = False
    after: bool = False


def view_source(server: Server, base: ServedBase, id: str, quotes: Sequence[Quote] = ()) -> SourceView:
    """Return what is shown of the node ``id``, with ``quotes`` from its text marked. Raises NotFound."""
    node = base.knowledge_base.node(id)
    document = base.knowledge_base.store.document(node.document)
    tree = base.knowledge_base.tree(node.document)
    title = document.title or document.name
    problem = ""
    if document.media_type == _PDF:
        try:
            sheets = tuple(_page_sheets(server, base, node, quotes))
        except ClewError as error:
            problem = f"{error.problem}. {error.hint}".removesuffix(". ")
        else:
            if sheets:
                return SourceView(node, title, sheets, tuple(_own_blocks(tree, node, quotes)))
    blocks, before, after = _surrounding_blocks(tree, node, quotes)
    return SourceView(node, title, (), tuple(blocks), problem, before, after)


def table_rows(base: ServedBase, ids: Iterable[str]) -> dict[str, TableRow]:
    """Return the table rows among nodes, by id, each below its table's header. Nodes that are gone are left out."""
    trees: dict[str, list[Node]] = {}
    rows = {}
    for id in ids:
        key, _, position = id.rpartition(":")
        try:
            if key not in trees:
                trees[key] = base.knowledge_base.tree(key)
            node = trees[key][int(position)]
        except (ClewError, ValueError, IndexError):
            continue
        table = _table_of(node, trees[key])
        if node.kind != ROW or node.id != id or table is None:
            continue
        cells = table_cells(table.text)
        if number := _row_number(cells, trees[key], node):
            words = node.text.removeprefix(f"{table.name}. ")
            first = cells[number][0].rstrip(":")
            group = words.partition(f": {first}: ")[0] if first and not words.startswith(first) else ""
            rows[id] = TableRow(table.name, (cells[0], cells[number]), group if group != words else "")
    return rows


def _table_of(row: Node, tree: Sequence[Node]) -> Node | None:
    return next((node for node in tree if node.id == row.parent), None)


def _page_sheets(
    server: Server, base: ServedBase, node: Node, quotes: Sequence[Quote] = ()
) -> list[PageSheet]:
    answers = dict.fromkeys(box for quote in quotes for box in quote.boxes)
    pages = sorted({box.page for box in node.boxes}) or ([node.page] if node.page is not None else [])
    sheets = []
    for page in pages[:_MAX_PAGES]:
        # Drawn now, and cached: the browser asks for the picture next.
        image = server.page_images.get(base, node.document, page, SCALE)
        boxes = tuple(box for box in node.boxes if box.page == page)
        own = tuple(box for box in answers if box.page == page)
        sheets.append(PageSheet(page, image.width, image.height, boxes, own))
    return sheets


def _own_blocks(tree: Sequence[Node], node: Node, quotes: Sequence[Quote]) -> list[SourceBlock]:
    """Return the text of a node whose page is shown as a picture; of a row its table."""
    if node.kind == PAGE:
        return []
    shown = _table_of(node, tree) if node.kind == ROW else node
    return [] if shown is None else [_block(shown, tree, node, quotes)]


def _surrounding_blocks(
    tree: Sequence[Node], node: Node, quotes: Sequence[Quote]
) -> tuple[list[SourceBlock], bool, bool]:
    """Return a node among the text before and after it, and whether there is more before and after that."""
    parts = [part for part in tree if part.kind in {SECTION, PASSAGE, TABLE}]
    wanted = node.parent if node.kind == ROW else node.id
    at = next((position for position, part in enumerate(parts) if part.id == wanted), 0)
    first, last = at, at
    for direction in (-1, 1):
        room, position = _AROUND, at + direction
        while 0 <= position < len(parts) and room > 0:
            room -= len(parts[position].text)
            first, last = min(first, position), max(last, position)
            position += direction
    blocks = [_block(part, tree, node, quotes) for part in parts[first : last + 1]]
    return blocks, first > 0, last < len(parts) - 1


def _block(part: Node, tree: Sequence[Node], node: Node, quotes: Sequence[Quote]) -> SourceBlock:
    """Return a part of a document as a block; ``node`` is the node that is shown, ``quotes`` its quotations."""
    here = part.id == node.id
    answers = [quote.answer for quote in quotes if quote.answer is not None]
    if part.kind == TABLE:
        cells = table_cells(part.text)
        inside = node.kind == ROW and node.parent == part.id
        row = _row_number(cells, tree, node) if inside else 0
        if row:
            places = [row_cell_at(node.text, (cells[0], cells[row]), *answer) for answer in answers]
            places = [place and (row if place[0] else 0, place[1]) for place in places]
        else:
            places = [table_cell_at(part.text, *answer) for answer in answers if here]
        marked = tuple(place for place in places if place is not None)
        return SourceBlock(part.id, TABLE, (), 0, cells, part.name, row, inside or here, marked)
    if part.kind == SECTION:
        heading = (TextPiece(part.name or part.text),)
        return SourceBlock(part.id, SECTION, heading, level=part.level, here=here)
    spans = [quote.span for quote in quotes if here]
    return SourceBlock(part.id, part.kind, excerpt(part.text, spans, around=None, answers=answers), here=here)


def _row_number(cells: Sequence[tuple[str, ...]], tree: Sequence[Node], node: Node) -> int:
    """Return which row of its table a node is, from 1 below the header; 0 where that cannot be told."""
    rows = [row for row in tree if row.parent == node.parent and row.kind == ROW]
    if len(rows) == len(cells) - 1:
        return next(number for number, row in enumerate(rows, 1) if row.id == node.id)
    # Empty rows are in the table and have no node.
    matches = (
        number
        for number, row in enumerate(cells[1:], 1)
        if any(row) and all(cell in node.text for cell in row)
    )
    return next(matches, 0)
