"""Tables of HTML: which of them hold data, and their cells with spans resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Heading,
    Item,
    ListBlock,
    Note,
    Paragraph,
    SourceFile,
    Title,
    build_document,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.detection import HTML
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import Row, Table, count_header_rows, merge_header, trim_grid

if TYPE_CHECKING:
    from lxml.etree import _Element

#: What the HTML standard caps spans at (section 4.9.11).
_COLSPAN, _ROWSPAN = 1_000, 65_534
_SPACES = re.compile(r"\s+")
_BLOCKS = frozenset("p div br li ul ol dl dt dd table tr td th h1 h2 h3 h4 h5 h6 pre".split())
_SKIPPED = frozenset(("script", "style", "noscript", "template"))


def find_layout_tables(root: _Element) -> set[_Element]:
    """Return the tables below ``root`` that arrange a page rather than data.

    Those are tables that hold tables or headings, say so by their role, or have a single row or column and
    neither header cells nor a caption.
    """
    from lxml import etree

    layout: set[_Element] = set()
    open_tables: list[_Shape] = []
    for event, element in etree.iterwalk(root, events=("start", "end"), tag=_WATCHED):
        if event == "start":
            if element.tag == "table":
                if open_tables:
                    open_tables[-1].layout = True
                role = element.get("role") in {"presentation", "none"}
                open_tables.append(_Shape(element, role))
            elif open_tables:
                open_tables[-1].see(element.tag)
        elif element.tag == "table" and open_tables[-1].finish():
            layout.add(open_tables.pop().table)
        elif element.tag == "table":
            open_tables.pop()
    return layout


_WATCHED = ("table", "tr", "td", "th", "caption", "h1", "h2", "h3")


@dataclass(slots=True)
class _Shape:
    table: _Element
    layout: bool
    rows: int = 0
    widest: int = 0
    labelled: bool = False
    _cells: int = 0

    def see(self, tag: str) -> None:
        if tag == "tr":
            self.rows, self._cells = self.rows + 1, 0
        elif tag in {"td", "th"}:
            self._cells += 1
            self.widest = max(self.widest, self._cells)
            self.labelled |= tag == "th"
        elif tag == "caption":
            self.labelled = True
        else:
            self.layout = True

    def finish(self) -> bool:
        return self.layout or (not self.labelled and (self.rows < 2 or self.widest < 2))


@dataclass(slots=True)
class _Grid:
    """Places cells, as the standard's algorithm does (section 4.9.12)."""

    limits: Limits
    used: int
    rows: list[Row] = field(default_factory=list)
    heads: list[bool] = field(default_factory=list)  # rows in <thead>, or of <th> alone
    spanned: set[int] = field(default_factory=set)
    marked: bool = False  # some cell is <th>
    _below: dict[int, tuple[int, str]] = field(default_factory=dict)  # column: rows still covered, text

    def add(self, row: _Element, head: bool) -> None:
        """Add a row of cells."""
        cells: list[str] = []
        all_heads = True
        found = False
        for cell in row:
            if cell.tag not in ("td", "th"):
                continue
            found = True
            all_heads &= cell.tag == "th"
            self.marked |= cell.tag == "th"
            self._fill(cells)
            text = cell_text(cell)
            width = _span(cell.get("colspan"), _COLSPAN)
            height = _span(cell.get("rowspan"), _ROWSPAN)
            if width > 1 and text:
                self.spanned.add(len(self.rows))
            for _ in range(width):
                if height > 1:
                    self._below[len(cells)] = (height - 1, text)
                cells.append(text)
            self.used += width
            self.limits.check_cells(self.used)
        if found or self._below:
            self._fill(cells)
            self.rows.append(tuple(cells))
            self.heads.append(head or (found and all_heads))

    def _fill(self, cells: list[str]) -> None:
        """Repeat the cells above that reach down to the next free column."""
        while (below := self._below.get(len(cells))) is not None:
            left, text = below
            if left == 1:
                del self._below[len(cells)]
            else:
                self._below[len(cells)] = (left - 1, text)
            cells.append(text)
            self.used += 1
            self.limits.check_cells(self.used)


def read_table(element: _Element, limits: Limits, used: int = 0) -> Table:
    """Return a table element as a table; ``used`` cells of the document's allowance are gone already."""
    grid = _Grid(limits, used)
    caption = ""
    for child in element:
        if child.tag == "caption" and not caption:
            caption = cell_text(child)
        elif child.tag == "tr":
            grid.add(child, False)
        elif child.tag in ("thead", "tbody", "tfoot"):
            grid._below.clear()  # a cell does not reach beyond its group
            for row in child:
                if row.tag == "tr":
                    grid.add(row, child.tag == "thead")
    return _table(grid, caption)


def _table(grid: _Grid, caption: str) -> Table:
    kept = [number for number, row in enumerate(grid.rows) if any(row)]
    rows = trim_grid([grid.rows[number] for number in kept])
    marked = 0
    while marked < len(kept) and grid.heads[kept[marked]]:
        marked += 1
    spanned = frozenset(place for place, number in enumerate(kept) if number in grid.spanned)
    if marked == len(rows):  # a table of header cells alone
        marked = min(1, marked)
    # Who marks the names of rows, but not those of columns, has none for columns.
    count = marked if marked or grid.marked else count_header_rows(rows, spanned)
    body = tuple(_unrepeated(row, place in spanned) for place, row in enumerate(rows) if place >= count)
    return Table(merge_header(rows[:count]), body, caption)


def _unrepeated(row: Row, spanned: bool) -> Row:
    """Return a row that one cell spans whole as a row with its first cell only: a group's heading."""
    if spanned and len(set(row)) == 1:
        return (row[0],) + ("",) * (len(row) - 1)
    return row


def _span(value: str | None, most: int) -> int:
    if value is None or not re.fullmatch(r"\s*\d{1,9}\s*", value):
        return 1
    return min(max(int(value), 1), most)


def cell_text(cell: _Element) -> str:
    """Return the text of a cell on one line, whatever is in it."""
    from lxml import etree

    parts: list[str] = []
    walk = etree.iterwalk(cell, events=("start", "end", "comment"))
    for event, element in walk:
        if event == "start":
            if element.tag in _SKIPPED or element.get("aria-hidden") == "true":
                walk.skip_subtree()
                continue
            if element.tag in _BLOCKS:
                parts.append(" ")
            parts.append(element.text or "")
        elif element is not cell:
            if element.tag in _BLOCKS:
                parts.append(" ")
            parts.append(element.tail or "")
    return _SPACES.sub(" ", "".join(parts).replace("\xad", "").replace("\u200b", "")).strip()


PARSER = "html/1"

_DROPPED = frozenset(
    """script style noscript template svg annotation annotation-xml iframe object embed canvas audio video map
    nav aside footer button select input textarea dialog menu head""".split()
)
_DROPPED_ROLES = frozenset(
    "navigation banner contentinfo complementary search menu menubar dialog alert".split()
)
#: Class or id that says boilerplate, as whole words of the attribute only.
_DROPPED_CLASSES = frozenset(
    """nav navbar navigation sidebar breadcrumb breadcrumbs cookie-banner cookie-notice site-header
    site-footer page-footer footer skip-link toc mw-editsection mw-jump-link navbox noprint share-buttons
    social-share advertisement related-posts comments""".split()
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q rp
    rt ruby s samp small span strike strong sub sup time tt u var wbr
    script style noscript template svg button select input textarea
    math mrow mi mn mo ms mtext msup msub msubsup mfrac msqrt semantics annotation annotation-xml""".split()
)
#: Cells of a table that only lays out: one row is one paragraph, unless they hold paragraphs.
_CELLS = frozenset(("td", "th"))
#: What filings put into a cell of its own, before the item.
_BULLETS = frozenset("• · ● ○ ◦ ▪ ■ – — - * o".split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset(("ul", "ol", "dl"))
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.I)
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}
#: Share of the page's text above which an element is content, whatever its class says.
_CONTENT_SHARE = 0.5
#: Share of the page's text that <main> or <article> must hold to be taken for all of it.
_MAIN_SHARE = 0.3


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an HTML page. Raises UnreadableFile."""
    declared = _XML_ENCODING.match(data[:200]) or _META_CHARSET.search(data[:4096])
    text, remarks = decode_text(data, declared[1].decode("ascii") if declared else "")
    source = SourceFile(data, name, HTML, PARSER, unit, limits)
    return build_document(_document(_tree(text, limits), remarks, limits), source)


def fragment_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a piece of HTML, as Markdown embeds it."""
    tree = _tree(text, LIMITS)
    if tree is not None:
        yield from _Walk(tree, LIMITS).blocks()


def _tree(text: str, limits: Limits) -> _Element | None:
    from lxml import etree

    # huge_tree lifts limits that a page with one long line exceeds; ours are checked below.
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        if "depth" in str(error):
            limits.check_depth(limits.depth + 1)
        raise UnreadableFile("holds no text") from error
    # The parser stops where it meets its own limit and would keep quiet about the rest.
    if any(
        entry.type_name == "ERR_RESOURCE_LIMIT" and "depth" in entry.message for entry in parser.error_log
    ):
        limits.check_depth(limits.depth + 1)
    return root


def _document(root: _Element | None, remarks: Sequence[str], limits: Limits) -> Iterator[Block]:
    yield from map(Note, remarks)
    if root is None:
        return
    blocks = list(_Walk(root, limits).blocks())
    if title := _title(root, blocks):
        yield Title(title)
    yield from blocks


def _title(root: _Element, blocks: Sequence[Block]) -> str:
    """Return the page's title, without the site's name where the first heading tells the two apart."""
    title = " ".join((root.findtext(".//title") or "").split())
    heading = next((b.text for b in blocks if isinstance(b, Heading) and b.level == 1), "")
    if heading and re.match(re.escape(heading) + r"\s+[-–—|·:»]\s", title):
        return heading
    if heading and re.search(r"\s[-–—|·:»]\s+" + re.escape(heading) + "$", title):
        return heading
    return title


@dataclass(slots=True)
class _Walk:
    """Turns a tree's events into blocks."""

    root: _Element
    limits: Limits
    _text: list[str] = field(default_factory=list)  # of the paragraph, heading or item in progress
    _items: list[Item] = field(default_factory=list)
    _lists: list[int | None] = field(default_factory=list)  # next number of each open list, None: no numbers
    _marker: str | None = None  # of the item in progress, until it has text
    _heading: int = 0
    _pre: int = 0
    _cells: int = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        from lxml import etree

        start = _main(self.root)
        layout = find_layout_tables(start)
        dropped = _boilerplate(start)
        walk = etree.iterwalk(start, events=("start", "end", "comment"))
        depth = 0
        for event, element in walk:
            if event == "comment":
                self._add(element.tail)
                continue
            if event == "end":
                depth -= 1
                yield from self._end(element)
                if element is not start:
                    self._add(element.tail)
                continue
            depth += 1
            self.limits.check_depth(depth)
            if element in dropped:
                # Its end comes all the same, and with it the text that follows.
                walk.skip_subtree()
            elif element.tag == "table" and element not in layout and not self._lists:
                walk.skip_subtree()
                yield from self._flush()
                table = read_table(element, self.limits, self._cells)
                self._cells += sum(map(len, table.rows))
                yield table
            else:
                yield from self._start(element)
        yield from self._flush()

    def _start(self, element: _Element) -> Iterator[Block]:
        tag = element.tag
        if tag == "br":
            self._text.append("\n")
        elif tag in _INLINE or tag in _CELLS:
            pass
        else:
            yield from self._flush()
            if tag in _HEADINGS and not self._lists:
                self._heading = _HEADINGS[tag]
            elif tag == "pre":
                self._pre += 1
            elif tag in _LISTS:
                self._lists.append(_first_number(element))
            elif tag == "li" or tag == "dt":
                self._marker = self._next_marker(tag)
            elif tag == "dd":
                self._define()
        self._add(element.text)

    def _end(self, element: _Element) -> Iterator[Block]:
        tag = element.tag
        if tag in _INLINE or tag == "br":
            return
        if tag in _CELLS:
            self._text.append(" ")
            return
        yield from self._flush()
        if tag in _HEADINGS:
            self._heading = 0
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        elif tag in _LISTS and self._lists:
            self._lists.pop()
            self._marker = None
            if not self._lists and self._items:
                yield ListBlock(tuple(self._items))
                self._items = []

    def _add(self, text: str | None) -> None:
        if text:
            self._text.append(text if self._pre else _SPACES_html.sub(" ", text))

    def _flush(self) -> Iterator[Block]:
        """End the paragraph, heading or item in progress."""
        text, heading = _tidy("".join(self._text), bool(self._pre)), self._heading
        self._text, self._heading = [], 0
        if not text:
            self._heading = heading
        elif text in _BULLETS and not heading:
            self._text.append(f"{text} ")
        elif self._lists:
            self._item(text)
        elif heading:
            yield Heading(heading, text)
        else:
            yield Paragraph(text)

    def _item(self, text: str) -> None:
        depth = len(self._lists) - 1
        if self._marker is not None or not self._items:
            self._items.append(Item(text, depth, "-" if self._marker is None else self._marker))
            self._marker = None
        else:
            last = self._items[-1]
            joint = " " if last.text.endswith(":") and not last.marker else "\n"
            self._items[-1] = Item(f"{last.text}{joint}{text}", last.depth, last.marker)

    def _define(self) -> None:
        """Join a definition to its term."""
        if self._items and self._marker is None:
            last = self._items[-1]
            if not last.text.endswith(":") and "\n" not in last.text and ": " not in last.text:
                self._items[-1] = Item(f"{last.text}:", last.depth, last.marker)

    def _next_marker(self, tag: str) -> str:
        number = self._lists[-1] if self._lists else None
        if tag == "dt":
            return ""
        if number is None:
            return "-"
        self._lists[-1] = number + 1
        return f"{number}."


_SPACES_html = re.compile(r"[ \t\n\f\v\u00a0]+")


def _tidy(text: str, pre: bool) -> str:
    text = text.translate(_INVISIBLE)
    if pre:
        return text.strip("\n").rstrip()
    return "\n".join(line for part in text.split("\n") if (line := _SPACES_html.sub(" ", part).strip()))


def _first_number(element: _Element) -> int | None:
    if element.tag != "ol":
        return None
    start = element.get("start", "1").strip()
    return int(start) if re.fullmatch(r"-?\d{1,9}", start) else 1


def _main(root: _Element) -> _Element:
    """Return <main>, or the only <article>, if it holds a good part of the page's text; else the page."""
    body = root.find("body") if root.tag == "html" else root
    if body is None:
        return root
    for path in (".//main", ".//*[@role='main']", ".//article"):
        found = body.findall(path)
        if len(found) == 1 and _length(found[0]) >= _MAIN_SHARE * _length(body):
            return found[0]
    return body


def _length(element: _Element) -> int:
    return sum(len(text.strip()) for text in element.itertext("*"))


def _boilerplate(start: _Element) -> set[_Element]:
    """Return the elements to pass over."""
    total = 0
    found = set()
    for element in start.iter("*"):
        if element is start:
            continue
        if _dropped(element):
            found.add(element)
        elif _named_boilerplate(element):
            total = total or _length(start)
            if _length(element) < _CONTENT_SHARE * total:
                found.add(element)
    return found


def _dropped(element: _Element) -> bool:
    tag = element.tag
    if tag in _DROPPED or element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    if (style := element.get("style")) and _HIDDEN.search(style):
        return True
    # A page's header holds the site's name and menu, an article's the headline.
    if tag == "header":
        return not any(above.tag in {"article", "main", "section"} for above in element.iterancestors())
    return element.get("role", "") in _DROPPED_ROLES


def _named_boilerplate(element: _Element) -> bool:
    named = f"{element.get('class', '')} {element.get('id', '')}".lower()
    return not _DROPPED_CLASSES.isdisjoint(named.split())


# MERGED: HTML: what a reader of the page would call its text.
