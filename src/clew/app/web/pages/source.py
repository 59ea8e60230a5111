"""A node as it stands in its document: on the picture of its page, or among the text around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.app.answers.view import TableRow, TextPiece, excerpt, table_cells
from clew.core.errors import ClewError
from clew.core.types import PAGE, PASSAGE, ROW, SECTION, TABLE, Box, Node

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.server import Server

#: Pixels to the point in which pages are shown.
SCALE = 1.5
#: Pages of one node that are shown.
_PAGES = 3
#: Characters of text before and after a node that are shown with it.
_AROUND = 3_000
_PDF = "application/pdf"


@dataclass(frozen=True, slots=True)
class PageSheet:
    """A page with the boxes of what is highlighted on it; sizes in points."""

    page: int
    width: float
    height: float
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """A part of a document: a heading (``level`` from 1), a paragraph or a table. ``here``: it is what was asked for.
    ``row`` is the number of the row of ``cells``, from 1 below the header, that is highlighted; 0 for none."""

    id: str
    kind: str
    pieces: tuple[TextPiece, ...]
    level: int = 0
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    row: int = 0
    here: bool = False


@dataclass(frozen=True, slots=True)
class SourceView:
    """What is shown of a node. ``problem`` says why there is no picture where there should be one."""

    node: Node
    title: str
    sheets: tuple[PageSheet, ...]
    blocks: tuple[SourceBlock, ...]
    problem: str = ""
    before: bool = False
    after: bool = False


def view_source(
    here: Server, opened: ServedBase, id: str, spans: Sequence[tuple[int, int]] = ()
) -> SourceView:
    """Return what is shown of the node ``id``, with ``spans`` of its text marked. Raises NotFound."""
    node = opened.base.node(id)
    document = opened.base.store.document(node.document)
    sheets: tuple[PageSheet, ...] = ()
    problem = ""
    if document.media_type == _PDF:
        try:
            sheets = tuple(_sheets(here, opened, node))
        except ClewError as error:
            problem = f"{error.problem}. {error.hint}".removesuffix(". ")
    tree = opened.base.tree(node.document)
    if sheets:
        blocks, before, after = _own(tree, node, spans), False, False
    else:
        blocks, before, after = _around(tree, node, spans)
    return SourceView(node, document.title or document.name, sheets, tuple(blocks), problem, before, after)


def table_rows(opened: ServedBase, ids: Iterable[str]) -> dict[str, TableRow]:
    """Return the table rows among nodes, by id, each under its table's header. What is gone is left out."""
    trees: dict[str, list[Node]] = {}
    found = {}
    for id in ids:
        key, _, position = id.rpartition(":")
        try:
            if key not in trees:
                trees[key] = opened.base.tree(key)
            node, tree = trees[key][int(position)], trees[key]
        except (ClewError, ValueError, IndexError):
            continue
        table = next((one for one in tree if one.id == node.parent), None)
        if node.kind != ROW or node.id != id or table is None:
            continue
        cells = table_cells(table.text)
        row = _row(cells, [one for one in tree if one.parent == table.id and one.kind == ROW], node)
        if row:
            found[id] = TableRow(table.name, (cells[0], cells[row]))
    return found


def _sheets(here: Server, opened: ServedBase, node: Node) -> list[PageSheet]:
    pages = sorted({box.page for box in node.boxes}) or ([node.page] if node.page is not None else [])
    made = []
    for page in pages[:_PAGES]:
        # Drawn now, and kept: the picture itself is asked for next.
        picture = here.page_images.get(opened, node.document, page, SCALE)
        boxes = tuple(box for box in node.boxes if box.page == page)
        made.append(PageSheet(page, picture.width, picture.height, boxes))
    return made


def _own(tree: Sequence[Node], node: Node, spans: Sequence[tuple[int, int]]) -> list[SourceBlock]:
    """Return the text of a node whose page is shown as a picture; of a row its table."""
    if node.kind == PAGE:
        return []
    if node.kind == ROW:
        table = next((one for one in tree if one.id == node.parent), None)
        return [_block(table, tree, node, spans)] if table is not None else []
    return [_block(node, tree, node, spans)]


def _around(
    tree: Sequence[Node], node: Node, spans: Sequence[tuple[int, int]]
) -> tuple[list[SourceBlock], bool, bool]:
    """Return a node among what stands before and after it, and whether there is more before and after that."""
    shown = [one for one in tree if one.kind in {SECTION, PASSAGE, TABLE}]
    wanted = node.parent if node.kind == ROW else node.id
    at = next((n for n, one in enumerate(shown) if one.id == wanted), 0)
    first, last = at, at
    for step in (-1, 1):
        room = _AROUND
        place = at + step
        while 0 <= place < len(shown) and room > 0:
            room -= len(shown[place].text)
            first, last = min(first, place), max(last, place)
            place += step
    blocks = [_block(one, tree, node, spans) for one in shown[first : last + 1]]
    return blocks, first > 0, last < len(shown) - 1


def _block(one: Node, tree: Sequence[Node], node: Node, spans: Sequence[tuple[int, int]]) -> SourceBlock:
    if one.kind == TABLE:
        cells = table_cells(one.text)
        inside = node.kind == ROW and node.parent == one.id
        row = (
            _row(cells, [row for row in tree if row.parent == one.id and row.kind == ROW], node)
            if inside
            else 0
        )
        return SourceBlock(
            one.id, TABLE, (), cells=cells, caption=one.name, row=row, here=inside or one.id == node.id
        )
    if one.kind == SECTION:
        return SourceBlock(
            one.id, SECTION, (TextPiece(one.name or one.text),), level=one.level, here=one.id == node.id
        )
    pieces = excerpt(one.text, spans if one.id == node.id else (), around=None)
    return SourceBlock(one.id, one.kind, pieces, here=one.id == node.id)


def _row(cells: Sequence[tuple[str, ...]], rows: Sequence[Node], node: Node) -> int:
    """Return which row of a table a node is, from 1 below the header; 0 where that cannot be told."""
    if len(rows) == len(cells) - 1:
        return next(n for n, one in enumerate(rows, 1) if one.id == node.id)
    # Rows that say nothing are in the table and have no node.
    fitting = (n for n, row in enumerate(cells[1:], 1) if any(row) and all(cell in node.text for cell in row))
    return next(fitting, 0)
