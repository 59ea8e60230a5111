"""A node as it stands in its document: on the picture of its page, or among the text around it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from clew.app.answers.view import Evidence, TextPiece, excerpt, table_cell_at, table_cells
from clew.app.web.pages.answer import CellPosition, TableRow, row_cell_at
from clew.core.errors import ClewError
from clew.core.text import read_count
from clew.core.types import PAGE, PASSAGE, ROW, SECTION, TABLE, Box, Node, Quote

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.server import Server
    from clew.parse.documents.pdf.page_images import PageWord

#: Pixels to the point in which pages are shown.
SCALE = 1.5
#: Pages of one node that are shown.
_MAX_PAGES = 3
#: Rows of a long table that are shown at a time, and the number of the first row that stands for all of them.
_ROWS_AT_ONCE = 200
ALL_ROWS = -1
#: Characters of text before and after a node that are shown with it.
_AROUND = 3_000
_PDF = "application/pdf"
#: The centres of two numbers beside marks are at least so far apart, in points: a number is 16 wide.
APART = 17


@dataclass(frozen=True, slots=True)
class Mark:
    """What is highlighted on a page: the boxes of a citation (``number``, 0 for none), whose number stands around
    ``x`` and ``y`` in points; ``current``: it is that which was opened."""

    number: int
    boxes: tuple[Box, ...]
    x: float
    y: float
    current: bool = True


@dataclass(frozen=True, slots=True)
class PageSheet:
    """A page with what is highlighted on it, and its words, which can be selected; sizes in points. ``label`` is the
    number that is printed on the page, "" where that is the page's own; ``answers`` are the boxes of the cells that
    the answer is."""

    page: int
    width: float
    height: float
    marks: tuple[Mark, ...] = ()
    words: tuple[PageWord, ...] = ()
    matches: tuple[PageWord, ...] = ()
    label: str = ""
    answers: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """A part of a document: a heading (``level`` from 1), a paragraph or a table. ``here``: it is the node that is
    shown. ``row`` is the number of the highlighted row of ``cells``, from 1 below the header; 0 for none.
    ``marked_cells`` are the cells that the answer stands in. Of a long table ``rows`` says which rows ``cells`` has:
    first, last, and how many there are; ``position`` is the table's in its document."""

    id: str
    kind: str
    pieces: tuple[TextPiece, ...]
    level: int = 0
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    row: int = 0
    here: bool = False
    marked_cells: tuple[CellPosition, ...] = ()
    rows: tuple[int, int, int] | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class SourceView:
    """What is shown of a node. ``problem`` says why a page of it has no picture; ``before`` and ``after`` are the
    positions of the text before and after what is shown, None where there is none. ``pages`` counts the pages of a
    PDF, ``labels`` are the numbers that are printed on them where they differ. ``is_earlier``: this is how the
    document was, before it was changed or removed."""

    node: Node
    title: str
    sheets: tuple[PageSheet, ...]
    blocks: tuple[SourceBlock, ...]
    problem: str = ""
    before: int | None = None
    after: int | None = None
    pages: int = 0
    labels: tuple[str, ...] = ()
    is_earlier: bool = False


def view_earlier(base: ServedBase, id: str, quotes: Sequence[Quote] = ()) -> SourceView | None:
    """Return a node of a document that was changed or removed among the text around it, as it was when it was cited;
    None where that was not kept."""
    key, _, position = id.rpartition(":")
    tree = base.knowledge_base.earlier_nodes(key)
    place = read_count(position)
    if place is None or place >= len(tree):
        return None
    node = tree[place]
    blocks, _, _ = _surrounding_blocks(tree, node, quotes, ALL_ROWS)
    return SourceView(node, tree[0].document_name, (), tuple(blocks), is_earlier=True)


def view_source(
    server: Server,
    base: ServedBase,
    id: str,
    quotes: Sequence[Quote] = (),
    evidence: Sequence[Evidence] = (),
    number: int = 0,
    start: int | None = None,
) -> SourceView:
    """Return what is shown of the node ``id``, with ``quotes`` from its text marked; it is the piece of ``evidence``
    with this ``number``, whose other pieces on the same page are marked too. Of a long table the rows from ``start``
    on are shown. Raises NotFound."""
    node = base.knowledge_base.node(id)
    document = base.knowledge_base.store.document(node.document)
    tree = base.knowledge_base.tree(node.document)
    title = document.title or document.name
    problem = ""
    if document.media_type == _PDF:
        try:
            pages = sorted({box.page for box in node.boxes}) or ([node.page] if node.page is not None else [])
            cited = Cited(number, node, tuple(quotes))
            marked = [cited, *_cited_nodes(base, node.document, evidence, number)]
            # A table over many pages is opened where its row stands.
            sheets = tuple(_page_sheet(server, base, tree, page, marked) for page in pages[:_MAX_PAGES])
            sheets = tuple(sheet for sheet in sheets if any(mark.current for mark in sheet.marks)) or sheets
        except ClewError as error:
            problem = f"{error.problem}. {error.hint}".removesuffix(". ")
        else:
            if sheets:
                own = tuple(_own_blocks(tree, node, quotes, start))
                labels = _page_labels(tree)
                return SourceView(node, title, sheets, own, pages=document.pages, labels=labels)
    blocks, before, after = _surrounding_blocks(tree, node, quotes, start)
    return SourceView(node, title, (), tuple(blocks), problem, before, after)


def view_page(
    server: Server, base: ServedBase, key: str, page: int, evidence: Sequence[Evidence] = (), words: str = ""
) -> SourceView:
    """Return a page of a PDF with the pieces of ``evidence`` on it marked, and the places of ``words``. Raises
    NotFound for a page that the document has not, and UnreadableFile."""
    document = base.knowledge_base.store.document(key)
    tree = base.knowledge_base.tree(key)
    marked = _cited_nodes(base, key, evidence, 0)
    sheet = _page_sheet(server, base, tree, page, marked, words)
    node = next((node for node in tree if node.kind == PAGE and node.page == page), tree[0])
    labels = _page_labels(tree)
    return SourceView(
        node, document.title or document.name, (sheet,), (), pages=document.pages, labels=labels
    )


#: Places that a search in a document lists, and characters of each.
_MAX_PLACES, _AROUND_PLACE = 100, 60


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """A place where words stand in a document: the node's position, its page, and the words around."""

    position: int
    page: int | None
    pieces: tuple[TextPiece, ...]


def find_places(base: ServedBase, key: str, words: str) -> tuple[list[FoundPlace], int]:
    """Return where ``words`` stand in a document, in reading order, at most :data:`_MAX_PLACES`, and how many there
    are in all. Case does not count, nor does white space."""
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.I)
    places: list[FoundPlace] = []
    total = 0
    for node in base.knowledge_base.tree(key) if words.strip() else ():
        # Rows repeat what their table has; a table is found by its rows, which are nearer.
        text = node.name if node.kind == SECTION else node.text
        if node.kind not in {SECTION, PASSAGE, ROW}:
            continue
        for match in pattern.finditer(text):
            total += 1
            if len(places) < _MAX_PLACES:
                pieces = excerpt(text, [match.span()], around=_AROUND_PLACE, first=0)
                places.append(FoundPlace(node.position, node.page, pieces))
    return places, total


@dataclass(frozen=True, slots=True)
class Cited:
    """A node with the quotations from it, and the number of its citation."""

    number: int
    node: Node
    quotes: tuple[Quote, ...]


def _cited_nodes(base: ServedBase, key: str, evidence: Sequence[Evidence], but: int) -> list[Cited]:
    """Return the pieces of evidence of a document, without the one with the number ``but``."""
    cited = []
    for item in evidence:
        if item.node.key == key and item.number != but:
            with suppress(ClewError):
                cited.append(Cited(item.number, base.knowledge_base.node(item.node.id), item.quotes))
    return cited


def _page_labels(tree: Sequence[Node]) -> tuple[str, ...]:
    """Return the numbers that are printed on the pages, where they differ from the pages' own; () where none does."""
    labels = [node.name for node in tree if node.kind == PAGE]
    return tuple(labels) if any(label not in {"", str(n)} for n, label in enumerate(labels, 1)) else ()


def _page_sheet(
    server: Server, base: ServedBase, tree: Sequence[Node], page: int, cited: Sequence[Cited], words: str = ""
) -> PageSheet:
    key = tree[0].document
    image = server.page_images.get(base, key, page, SCALE)
    boxed = [(item, mark_boxes(image.words, tree, item, page)) for item in cited]
    marked = [(item, boxes) for item, boxes in boxed if boxes]
    lines = [
        Box(page, min(box.x0 for box in item.node.boxes if box.page == page), top.y0, top.x1, top.y1)
        for item, (top, *_) in marked
    ]
    places = place_numbers(lines)
    marks = [
        Mark(item.number, boxes, x, y, current=item is cited[0])
        for (item, boxes), (x, y) in zip(marked, places, strict=True)
    ]
    labels = _page_labels(tree)
    label = labels[page - 1] if 0 < page <= len(labels) and labels[page - 1] != str(page) else ""
    matches = locate_text(image.words, words) if words.strip() else ()
    current = [quote for item in cited[:1] if item.number for quote in item.quotes]
    answers = tuple(dict.fromkeys(box for quote in current for box in quote.boxes if box.page == page))
    return PageSheet(page, image.width, image.height, tuple(marks), image.words, matches, label, answers)


def place_numbers(boxes: Sequence[Box]) -> list[tuple[float, float]]:
    """Return the places of the numbers of boxes, x and y in points: left of each box, beside its first line, or
    further down where one before would cover it.

    >>> place_numbers([Box(1, 100, 50, 300, 60), Box(1, 100, 52, 200, 58)])
    [(88, 56), (88, 73)]
    """
    places: list[tuple[float, float]] = []
    for box in boxes:
        x, y = box.x0 - 12, box.y0 + 6
        while near := [other for left, other in places if abs(left - x) < APART and abs(other - y) < APART]:
            y = max(near) + APART
        places.append((x, y))
    return places


def mark_boxes(words: Sequence[PageWord], tree: Sequence[Node], cited: Cited, page: int) -> tuple[Box, ...]:
    """Return the boxes of a citation on a page: of the row or the sentences that are quoted, where the page's words
    have them, else of the whole table or paragraph."""
    boxes = [box for box in cited.node.boxes if box.page == page]
    if not boxes:
        return ()
    inside = [word for word in words if any(_is_inside(word, box) for box in boxes)]
    exact: list[Box] = []
    for text in _quoted_texts(tree, cited):
        exact += _line_boxes(locate_text(inside, text), page)
    if not exact and cited.node.kind == ROW and len({box.page for box in cited.node.boxes}) > 1:
        return ()  # the row stands on another page of its table
    if cited.node.kind == ROW and exact:
        # A row is marked over the whole width of its table.
        left, right = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
        exact += [box for quote in cited.quotes for box in quote.boxes if box.page == page]
        top, bottom = min(box.y0 for box in exact), max(box.y1 for box in exact)
        return (Box(page, left, top, right, bottom),)
    return tuple(exact) or tuple(boxes)


def _quoted_texts(tree: Sequence[Node], cited: Cited) -> list[str]:
    """Return the texts to look for on a page: the cells of a row, or the quotations."""
    node = cited.node
    if node.kind == ROW and (table := _table_of(node, tree)) is not None:
        cells = table_cells(table.text)
        number = _row_number(cells, tree, node)
        return [" ".join(cells[number])] if number else []
    if node.kind == TABLE:
        cells = table_cells(node.text)
        places = [
            table_cell_at(node.text, *quote.answer) for quote in cited.quotes if quote.answer is not None
        ]
        return [" ".join(cells[place[0]]) for place in places if place is not None]
    return [quote.text for quote in cited.quotes]


def _is_inside(word: PageWord, box: Box) -> bool:
    x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
    return box.x0 - 2 <= x <= box.x1 + 2 and box.y0 - 2 <= y <= box.y1 + 2


def locate_text(words: Sequence[PageWord], text: str) -> tuple[PageWord, ...]:
    """Return the words of a page that a text stands in, wherever it does; only letters and digits count, so that a
    hyphen at the end of a line or another quotation mark do no harm."""
    letters = [re.sub(r"[\W_]+", "", word.text).casefold() for word in words]
    wanted = re.sub(r"[\W_]+", "", text).casefold()
    whole = "".join(letters)
    starts = list(accumulate(map(len, letters), initial=0))
    located: list[PageWord] = []
    at = whole.find(wanted) if wanted else -1
    while at >= 0:
        first, last = bisect_right(starts, at) - 1, bisect_left(starts, at + len(wanted))
        located += [
            word for word, letter in zip(words[first:last], letters[first:last], strict=True) if letter
        ]
        at = whole.find(wanted, at + len(wanted))
    return tuple(dict.fromkeys(located))


def _line_boxes(words: Sequence[PageWord], page: int) -> list[Box]:
    """Return a box for each line of words."""
    lines: list[list[PageWord]] = []
    for word in words:
        if (
            lines
            and abs(lines[-1][-1].y1 - word.y1) < (word.y1 - word.y0) / 2
            and word.x0 >= lines[-1][-1].x0
        ):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [
        Box(
            page,
            min(word.x0 for word in line),
            min(word.y0 for word in line),
            max(word.x1 for word in line),
            max(word.y1 for word in line),
        )
        for line in lines
    ]


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


def _own_blocks(
    tree: Sequence[Node], node: Node, quotes: Sequence[Quote], start: int | None
) -> list[SourceBlock]:
    """Return the text of a node whose page is shown as a picture; of a row its table."""
    if node.kind == PAGE:
        return []
    shown = _table_of(node, tree) if node.kind == ROW else node
    return [] if shown is None else [_block(shown, tree, node, quotes, start)]


def _surrounding_blocks(
    tree: Sequence[Node], node: Node, quotes: Sequence[Quote], start: int | None
) -> tuple[list[SourceBlock], int | None, int | None]:
    """Return a node among the text before and after it, and the positions of what comes before and after that."""
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
    blocks = [_block(part, tree, node, quotes, start) for part in parts[first : last + 1]]
    before = parts[first - 1].position if first else None
    after = parts[last + 1].position if last < len(parts) - 1 else None
    return blocks, before, after


def _block(
    part: Node, tree: Sequence[Node], node: Node, quotes: Sequence[Quote], start: int | None = None
) -> SourceBlock:
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
        total = len(cells) - 1
        if total <= _ROWS_AT_ONCE or (start == ALL_ROWS and (inside or here)):
            return SourceBlock(part.id, TABLE, (), 0, cells, part.name, row, inside or here, marked)
        # A long table is shown in parts: that with the row, or from the row that was asked for.
        wanted = row or max((place[0] for place in marked), default=1)
        first = (
            start
            if start is not None and (inside or here)
            else (max(wanted, 1) - 1) // _ROWS_AT_ONCE * _ROWS_AT_ONCE
        )
        first = max(0, min(first, total - 1))
        cells = (cells[0], *cells[first + 1 : first + 1 + _ROWS_AT_ONCE])
        marked = tuple(
            (place[0] and place[0] - first, place[1])
            for place in marked
            if 0 <= place[0] - first < len(cells)
        )
        row = row - first if 0 < row - first < len(cells) else 0
        rows = (first + 1, first + len(cells) - 1, total)
        return SourceBlock(
            part.id, TABLE, (), 0, cells, part.name, row, inside or here, marked, rows, part.position
        )
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
