"""HTML: the text of a page as its reader sees it.

One pass over the events of the tree, without recursion, so that depth costs nothing. Navigation, asides, forms,
scripts and hidden elements are left out. Tables of data have their spans resolved; tables that only arrange the page
are read as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import TYPE_CHECKING, Any, cast

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument, Table
from clew.parse.documents.blocks import (
    Block,
    Field,
    Heading,
    Item,
    LeftOut,
    ListBlock,
    Note,
    Paragraph,
    SourceFile,
    Title,
    build_document,
    superscript,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.formulas import mathml_text
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import (
    Row,
    collapse_group_heading,
    count_header_rows,
    merge_header,
    trim_grid,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

PARSER = "html/4"
MEDIA_TYPE = "text/html"

_DROPPED = frozenset(
    """script style noscript template svg annotation annotation-xml iframe object embed canvas audio video map
    nav aside footer button select input textarea dialog menu head""".split()
)
#: What is the site's on a page, and the author's in a book.
_CONTENT_OF_BOOKS = frozenset(("aside", "header", "footer"))
_DROPPED_ROLES = frozenset(
    "navigation banner contentinfo complementary search menu menubar dialog alert".split()
)
#: Words of a class or id that mark boilerplate.
_DROPPED_CLASSES = frozenset(
    """nav navbar navigation sidebar breadcrumb breadcrumbs cookie-banner cookie-notice site-header
    site-footer page-footer footer skip-link toc mw-editsection mw-jump-link navbox noprint share-buttons
    social-share advertisement related-posts comments""".split()
)
#: Parts of a class or id that mark boilerplate where an element is nothing but links.
_LINK_CLASSES = re.compile(
    r"nav|menu|footer|header|related|breadcrumb|sidebar|social|share|toc|tags|pager|pagination"
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_FONT_SIZE = re.compile(r"font-size\s*:\s*([\w.%-]+)", re.I)
_NO_SIZE = re.compile(r"0*\.?0+(?:[a-z]+|%)?", re.I)
_STRUCK = frozenset(("s", "del", "strike"))
_STRUCK_STYLE = re.compile(r"text-decoration(?:-line)?\s*:[^;]*line-through", re.I)
_INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q rp
    rt ruby s samp small span strike strong sub sup time tt u var wbr
    script style noscript template svg button select input textarea math""".split()
)
#: Cells of a table that arranges the page: a row is one paragraph, unless its cells hold paragraphs.
_CELLS = frozenset(("td", "th"))
#: Filings put the bullet of an item into a table cell of its own.
_BULLETS = frozenset("• · ● ○ ◦ ▪ ■ – — - * o".split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset(("ul", "ol", "dl"))
_NOTE_NUMBER = re.compile(r"\d{1,3}")
_BEFORE_NOTES = ".,;:!?)\"'’”»%"
_HTML_START = re.compile(
    rb"(?>\s+|<!--.*?-->|<\?xml[^>]*\?>)*+<(?:!doctype\s+html|html|head|body|title|meta)[\s>]", re.I | re.S
)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.I)
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_SPACES = re.compile(r"[ \t\n\f\v\u00a0]+")
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}
#: An element with this share of the page's text is content, whatever its class says.
_CONTENT_SHARE = 0.5
#: <main> or <article> is the whole content if it has at least this share of the page's text.
_MAIN_SHARE = 0.3


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an HTML page. Raises UnreadableFile."""
    text, remarks = decode_page(data)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    blocks = list(_blocks(_parse_tree(text, limits), remarks, limits))
    if "<script" in text and all(isinstance(block, Title | Field | Note) for block in blocks):
        raise UnreadableFile(
            "holds no text: its scripts write it in a browser", "Print it to a PDF there, and add that"
        )
    return build_document(blocks, source)


FORMAT = DocumentFormat(
    MEDIA_TYPE,
    "an HTML page",
    (".html", ".htm", ".xhtml"),
    parse,
    matches=lambda start: bool(_HTML_START.match(start)),
    parser=PARSER,
)


def decode_page(data: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the text of a page and remarks, as :func:`decode_text` does. Raises UnreadableFile.

    ``declared`` is the encoding that was stated outside of the page; else the page's own statement counts.
    """
    stated = _XML_ENCODING.match(data[:200]) or _META_CHARSET.search(data[:4096])
    return decode_text(data, declared or (stated[1].decode("ascii") if stated else ""))


def fragment_blocks(text: str, limits: Limits = LIMITS, *, is_book: bool = False) -> Iterator[Block]:
    """Yield the blocks of HTML that is embedded in a document of another format. Raises UnreadableFile.

    In a book, asides hold its notes and boxes, and no class marks boilerplate.
    """
    # A page within a book begins with an XML declaration, which the parser would take for text.
    tree = _parse_tree(_XML_DECLARATION.sub("", text), limits)
    if tree is not None:
        yield from _TreeWalker(tree, limits, is_book).blocks()


#: Bytes of a page that can hold no harmful number of attributes.
_HARMLESS = 100_000


class _Attributes:
    """Counts the most attributes that an element of a page has, as a target of lxml's parser."""

    def __init__(self) -> None:
        self.most = 0

    def start(self, tag: str | bytes, attributes: Mapping[Any, Any]) -> None:
        self.most = max(self.most, len(attributes))

    def close(self) -> None:
        """Do nothing: lxml asks for it."""


def _parse_tree(text: str, limits: Limits) -> _Element | None:
    from lxml import etree

    # huge_tree lifts limits that a page with one long line exceeds; ours are checked below.
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_pis=True)
    data = text.encode("utf-8", "replace")
    try:
        # A tree takes the square of the number of an element's attributes to build; events do not.
        if len(data) > _HARMLESS:
            counter = _Attributes()
            etree.fromstring(
                data, etree.HTMLParser(encoding="utf-8", huge_tree=True, target=cast(Any, counter))
            )
            limits.check_attributes(counter.most)
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if "depth" in str(error):
            limits.check_depth(limits.depth + 1)
        raise UnreadableFile("holds no text") from error
    # Where the parser meets its own limit it stops, and only logs that it did.
    if any(
        entry.type_name == "ERR_RESOURCE_LIMIT" and "depth" in entry.message for entry in parser.error_log
    ):
        limits.check_depth(limits.depth + 1)
    return root


def _blocks(root: _Element | None, remarks: Sequence[str], limits: Limits) -> Iterator[Block]:
    yield from map(Note, remarks)
    if root is None:
        return
    blocks = list(_TreeWalker(root, limits).blocks())
    if title := _title(root, blocks):
        yield Title(title)
    for element in root.iter("meta"):
        stated = str(element.get("name") or element.get("property") or "")
        yield from starmap(Field, field_pairs({stated: str(element.get("content") or "")}))
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
class _TreeWalker:
    """Turns the elements of a page into blocks, in one pass over their starts and ends."""

    root: _Element
    limits: Limits
    is_book: bool = False
    _text: list[str] = field(default_factory=list)  # of the paragraph, heading or item in progress
    _raised: int | None = None  # where the raised text in progress begins
    _items: list[Item] = field(default_factory=list)
    _lists: list[int | None] = field(default_factory=list)  # next number of each open list, None: bullets
    _marker: str | None = None  # of the item in progress, until it has text
    _heading: int = 0
    _pre: int = 0
    _cells: int = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        from lxml import etree

        start = _main_content(self.root)
        dropped = _find_boilerplate(start, self.is_book)
        yield from _name_boilerplate(start, dropped)
        yield from _take_unseen(start, dropped)
        layout = find_layout_tables(start)
        walk = etree.iterwalk(start, events=("start", "end", "comment"))
        depth = 0
        for event, element in walk:
            if event == "comment":
                self._add_text(element.tail)
                continue
            if event == "end":
                depth -= 1
                yield from self._end(element)
                if element is not start:
                    self._add_text(element.tail)
                continue
            depth += 1
            self.limits.check_depth(depth)
            if element in dropped:
                # Its end comes all the same, and with it the text that follows.
                walk.skip_subtree()
            elif element.tag == "math":
                walk.skip_subtree()
                self._text.append(mathml_text(element))
            elif element.tag == "table" and element not in layout and not self._lists:
                walk.skip_subtree()
                yield from self._end_block()
                table = read_table(element, self.limits, self._cells)
                self._cells += sum(map(len, table.rows))
                yield table
            else:
                yield from self._start(element)
        yield from self._end_block()

    def _start(self, element: _Element) -> Iterator[Block]:
        tag = element.tag
        if tag == "br":
            self._text.append("\n")
        elif tag in _INLINE or tag in _CELLS:
            if is_raised(element):
                self._raised = len(self._text)
        else:
            yield from self._end_block()
            if tag in _HEADINGS and not self._lists:
                self._heading = _HEADINGS[tag]
            elif tag == "pre":
                self._pre += 1
            elif tag in _LISTS:
                self._lists.append(_first_number(element))
            elif tag == "li" or tag == "dt":
                self._marker = self._next_marker(tag)
            elif tag == "dd":
                self._begin_definition()
        self._add_text(element.text)

    def _end(self, element: _Element) -> Iterator[Block]:
        tag = element.tag
        if tag in _INLINE or tag == "br":
            if self._raised is not None and is_raised(element):
                raised = "".join(self._text[self._raised :])
                before = self._text[self._raised - 1] if 0 < self._raised <= len(self._text) else ""
                self._text[self._raised :] = [raise_text(element, raised, before)]
                self._raised = None
            return
        if tag in _CELLS:
            self._text.append(" ")
            return
        yield from self._end_block()
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

    def _add_text(self, text: str | None) -> None:
        if text:
            self._text.append(text if self._pre else _SPACES.sub(" ", text))

    def _end_block(self) -> Iterator[Block]:
        """End the paragraph, heading or item in progress, and yield it unless it is an item."""
        text, heading = _clean_text("".join(self._text), bool(self._pre)), self._heading
        self._text, self._heading = [], 0
        if not text:
            self._heading = heading
        elif text in _BULLETS and not heading:
            self._text.append(f"{text} ")
        elif self._lists:
            self._add_item_text(text)
        elif heading:
            yield Heading(heading, text)
        else:
            yield Paragraph(text)

    def _add_item_text(self, text: str) -> None:
        depth = len(self._lists) - 1
        if self._marker is not None or not self._items:
            self._items.append(Item(text, depth, "-" if self._marker is None else self._marker))
            self._marker = None
        else:
            last = self._items[-1]
            joint = " " if last.text.endswith(":") and not last.marker else "\n"
            self._items[-1] = Item(f"{last.text}{joint}{text}", last.depth, last.marker)

    def _begin_definition(self) -> None:
        """Put a colon after the term that is defined."""
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


def is_raised(element: _Element) -> bool:
    """Return whether an element is raised (a power, an ordinal, the mark of a note), or leads to a note."""
    return element.tag == "sup" or _is_note_link(element)


def _is_note_link(element: _Element | None) -> bool:
    """Return whether an element is a link to a note: one that is marked as such, or a number with a place as its
    target that stands right behind a word, a number or what ends a sentence."""
    if element is None or element.tag != "a":
        return False
    if element.get("epub:type") == "noteref" or element.get("role") == "doc-noteref":
        return True
    if "#" not in (element.get("href") or "") or not _NOTE_NUMBER.fullmatch(_text_of(element).strip()):
        return False
    before, above = element.getprevious(), element.getparent()
    text = before.tail if before is not None else above.text if above is not None else ""
    if not text and before is not None and before.tag in _INLINE:
        text = _text_of(before)
    last = (text or " ")[-1]
    return last.isalnum() or last in _BEFORE_NOTES


def raise_text(element: _Element, text: str, before: str) -> str:
    """Return the text of a raised element, after the text ``before`` it; a link to a note as [1]."""
    links = [element, element.getparent(), *element] if _NOTE_NUMBER.fullmatch(text.strip()) else []
    if any(_is_note_link(link) or _is_link_within(link) for link in links):
        return f"[{text.strip()}]"
    return superscript(text, before) if element.tag == "sup" else text


def _is_link_within(element: _Element | None) -> bool:
    return element is not None and element.tag == "a" and (element.get("href") or "").startswith("#")


def _clean_text(text: str, pre: bool) -> str:
    text = text.translate(_INVISIBLE)
    if pre:
        return text.strip("\n").rstrip()
    return "\n".join(line for part in text.split("\n") if (line := _SPACES.sub(" ", part).strip()))


def _first_number(element: _Element) -> int | None:
    if element.tag != "ol":
        return None
    start = element.get("start", "1").strip()
    return int(start) if re.fullmatch(r"-?\d{1,9}", start) else 1


def _main_content(root: _Element) -> _Element:
    """Return <main>, or the only <article>, if it has a good part of the page's text; else the body."""
    body = root.find("body") if root.tag == "html" else root
    if body is None:
        return root
    for path in (".//main", ".//*[@role='main']", ".//article"):
        elements = body.findall(path)
        if len(elements) == 1 and _text_length(elements[0]) >= _MAIN_SHARE * _text_length(body):
            return elements[0]
    return body


def _name_boilerplate(start: _Element, dropped: set[_Element]) -> Iterator[LeftOut]:
    """Yield the words of the page around its main content, and of elements in it that are left out."""
    outside = [other for above in start.iterancestors() for other in above if start not in other.iter()]
    for element in (*outside, *dropped):
        is_part = isinstance(element.tag, str) and element.tag != "head"
        if is_part and dropped.isdisjoint(element.iterancestors()) and (words := cell_text(element)):
            yield LeftOut("menus and the like", words)


def _take_unseen(start: _Element, dropped: set[_Element]) -> Iterator[LeftOut]:
    """Yield the text that is hidden or struck out, outside of elements that are left out anyway, and take it out of
    the tree."""
    from lxml import etree

    unseen: list[tuple[_Element, str]] = []
    walk = etree.iterwalk(start, events=("start",), tag="*")
    for _, element in walk:
        reason = "" if element is start else _unseen_reason(element)
        if element in dropped or reason:
            walk.skip_subtree()
        if reason and element not in dropped:
            unseen.append((element, reason))
    for element, reason in unseen:
        yield LeftOut(reason, cell_text(element))
        tail = element.tail
        element.clear()
        element.tail = tail
        # It holds the text that follows; as what it was, it would still be a cell or a numbered item.
        element.tag = "template"
        dropped.add(element)


def _unseen_reason(element: _Element) -> str:
    """Return why the text of an element is no text of the document, "" where it is."""
    style = element.get("style") or ""
    if element.get("hidden") is not None or _HIDDEN.search(style) or _has_no_size(element, style):
        return "hidden"
    return "struck out" if element.tag in _STRUCK or _STRUCK_STYLE.search(style) else ""


def _has_no_size(element: _Element, style: str) -> bool:
    """Return whether the letters of an element have no size, nor those within it: mails set the gaps between columns
    to nothing, and state the size of the text within."""
    size = _FONT_SIZE.search(style)
    if not size or not _NO_SIZE.fullmatch(size[1]):
        return False
    inner = (_FONT_SIZE.search(child.get("style") or "") for child in element.iter("*"))
    return all(size is None or _NO_SIZE.fullmatch(size[1]) for size in inner)


def _text_of(element: _Element) -> str:
    return "".join(map(str, element.itertext("*")))


def _text_length(element: _Element) -> int:
    return sum(len(text.strip()) for text in element.itertext("*"))


def _find_boilerplate(start: _Element, is_book: bool = False) -> set[_Element]:
    """Return the elements that are left out."""
    total = 0
    dropped = set() if is_book else _find_link_lists(start)
    for element in start.iter("*"):
        if element is start or element in dropped:
            continue
        if is_book and element.tag in _CONTENT_OF_BOOKS:
            continue
        if _is_dropped(element):
            dropped.add(element)
        elif not is_book and _has_boilerplate_class(element):
            total = total or _text_length(start)
            if _text_length(element) < _CONTENT_SHARE * total:
                dropped.add(element)
    return dropped


#: The least number of links of a list of links, and their least share of its text.
_LINKS, _LINK_SHARE = 4, 0.9


def _find_link_lists(start: _Element) -> set[_Element]:
    """Return the elements that are nothing but links, and whose class, or that around them, says so; none where
    little else is on the page."""
    from lxml import etree

    lists: dict[_Element, int] = {}
    counts: list[list[int]] = [[0, 0, 0]]  # of each open element: its text, that of links, and the links
    depth = 0  # of links
    for event, element in etree.iterwalk(start, events=("start", "end"), tag="*"):
        is_link = element.tag == "a"
        if event == "start":
            depth += is_link
            length = len((element.text or "").strip())
            counts.append([length, length if depth else 0, int(is_link)])
            continue
        text, linked, links = counts.pop()
        depth -= is_link
        names = f"{element.get('class', '')} {element.get('id', '')}".lower()
        if links >= _LINKS and linked >= _LINK_SHARE * text and _LINK_CLASSES.search(names):
            lists[element] = text
        above = counts[-1]
        tail = len((element.tail or "").strip()) if element is not start else 0
        above[0] += text + tail
        above[1] += linked + (tail if depth else 0)
        above[2] += links
    # An index of links is what its page is about.
    others = counts[0][0] - counts[0][1]
    return set(lists) if others >= _MIN_OTHER_TEXT else set()


#: Characters outside of links that a page has, whose lists of links are boilerplate.
_MIN_OTHER_TEXT = 60


def _is_dropped(element: _Element) -> bool:
    tag = element.tag
    if tag in _DROPPED or _is_ornament(element):
        return True
    if tag == "a" and (element.get("role") == "doc-backlink" or "footnote-back" in element.get("class", "")):
        return True
    # A page's header holds the site's name and menu, an article's the headline.
    if tag == "header":
        return not any(above.tag in {"article", "main", "section"} for above in element.iterancestors())
    return element.get("role", "") in _DROPPED_ROLES


def _is_ornament(element: _Element) -> bool:
    """Return whether an element is an icon, or the twin of words for those who listen; a block of text is seen."""
    return element.get("aria-hidden") == "true" and element.tag in _INLINE


def _has_boilerplate_class(element: _Element) -> bool:
    names = f"{element.get('class', '')} {element.get('id', '')}".lower()
    return not _DROPPED_CLASSES.isdisjoint(names.split())


# Tables

#: The largest spans that the HTML standard allows (section 4.9.11).
_MAX_COLSPAN, _MAX_ROWSPAN = 1_000, 65_534
_WHITE_SPACE = re.compile(r"\s+")
_BLOCK_TAGS = frozenset("p div br li ul ol dl dt dd table tr td th h1 h2 h3 h4 h5 h6 pre".split())
_SKIPPED_IN_CELLS = frozenset(("script", "style", "noscript", "template"))
#: The elements that tell a table of data from one that arranges the page.
_TABLE_TAGS = ("table", "tr", "td", "th", "caption", "h1", "h2", "h3")


def find_layout_tables(root: _Element) -> set[_Element]:
    """Return the tables below ``root`` that arrange a page rather than data.

    Such a table holds tables or headings, has the role of a presentation, or has a single row or column and neither
    header cells nor a caption.
    """
    from lxml import etree

    layout: set[_Element] = set()
    open_tables: list[_TableShape] = []
    for event, element in etree.iterwalk(root, events=("start", "end"), tag=_TABLE_TAGS):
        if event == "start":
            if element.tag == "table":
                if open_tables:
                    open_tables[-1].is_layout = True
                open_tables.append(_TableShape(element, element.get("role") in {"presentation", "none"}))
            elif open_tables:
                open_tables[-1].count_element(element.tag)
        elif element.tag == "table":
            shape = open_tables.pop()
            if shape.is_layout or (not shape.has_labels and (shape.rows < 2 or shape.widest < 2)):
                layout.add(shape.table)
    return layout


@dataclass(slots=True)
class _TableShape:
    """The size of an open table, and whether it has header cells or a caption."""

    table: _Element
    is_layout: bool
    rows: int = 0
    widest: int = 0
    has_labels: bool = False
    _cells: int = 0

    def count_element(self, tag: str) -> None:
        """Note the start of an element of ``_TABLE_TAGS`` in the table."""
        if tag == "tr":
            self.rows, self._cells = self.rows + 1, 0
        elif tag in {"td", "th"}:
            self._cells += 1
            self.widest = max(self.widest, self._cells)
            self.has_labels |= tag == "th"
        elif tag == "caption":
            self.has_labels = True
        else:
            self.is_layout = True


@dataclass(slots=True)
class _Grid:
    """Places the cells of a table as the standard's algorithm does (section 4.9.12).

    ``cells`` counts those of the whole document so far.
    """

    limits: Limits
    cells: int
    rows: list[Row] = field(default_factory=list)
    is_header: list[bool] = field(default_factory=list)  # by row: it is in <thead>, or has only <th>
    spanned: set[int] = field(default_factory=set)  # rows in which a cell spans columns
    has_header_cells: bool = False
    _open: dict[int, tuple[int, str]] = field(default_factory=dict)  # column: rows still covered, text

    def add_row(self, row: _Element, in_head: bool) -> None:
        """Add a row of cells. Raises UnreadableFile for more cells than are allowed."""
        cells: list[str] = []
        tags: set[str] = set()
        for cell in row:
            if cell.tag not in ("td", "th"):
                continue
            tags.add(cell.tag)
            self._repeat_cells_above(cells)
            text = cell_text(cell)
            width = _parse_span(cell.get("colspan"), _MAX_COLSPAN)
            height = _parse_span(cell.get("rowspan"), _MAX_ROWSPAN)
            if width > 1 and text:
                self.spanned.add(len(self.rows))
            for _ in range(width):
                if height > 1:
                    self._open[len(cells)] = (height - 1, text)
                cells.append(text)
            self._count_cells(width)
        self.has_header_cells |= "th" in tags
        if tags or self._open:
            self._repeat_cells_above(cells)
            self.rows.append(tuple(cells))
            self.is_header.append(in_head or tags == {"th"})

    def end_row_group(self) -> None:
        """End all cells: none reaches beyond its <thead>, <tbody> or <tfoot>."""
        self._open.clear()

    def _count_cells(self, count: int) -> None:
        self.cells += count
        self.limits.check_cells(self.cells)

    def _repeat_cells_above(self, cells: list[str]) -> None:
        """Append the cells of rows above that cover the next columns."""
        while (cell := self._open.get(len(cells))) is not None:
            left, text = cell
            if left == 1:
                del self._open[len(cells)]
            else:
                self._open[len(cells)] = (left - 1, text)
            cells.append(text)
            self._count_cells(1)


def read_table(element: _Element, limits: Limits, cells: int = 0) -> Table:
    """Return a table element as a table; ``cells`` counts those of the document's tables before it."""
    grid = _Grid(limits, cells)
    caption = ""
    for child in element:
        if child.tag == "caption" and not caption:
            caption = cell_text(child)
        elif child.tag == "tr":
            grid.add_row(child, False)
        elif child.tag in ("thead", "tbody", "tfoot"):
            grid.end_row_group()
            for row in child:
                if row.tag == "tr":
                    grid.add_row(row, child.tag == "thead")
    return _table_of(grid, caption)


def _table_of(grid: _Grid, caption: str) -> Table:
    numbers = [number for number, row in enumerate(grid.rows) if any(row)]
    rows = trim_grid([grid.rows[number] for number in numbers])
    spanned = frozenset(place for place, number in enumerate(numbers) if number in grid.spanned)
    count = 0
    while count < len(numbers) and grid.is_header[numbers[count]]:
        count += 1
    if count == len(rows):  # a table of header cells alone
        count = min(1, count)
    # A table that marks the names of rows, but not those of columns, has none for columns.
    if not count and not grid.has_header_cells:
        count = count_header_rows(rows, spanned)
    body = tuple(
        collapse_group_heading(row) if place in spanned else row
        for place, row in enumerate(rows)
        if place >= count
    )
    return Table(merge_header(rows[:count]), body, caption)


def _parse_span(value: str | None, largest: int) -> int:
    if value is None or not re.fullmatch(r"\s*\d{1,9}\s*", value):
        return 1
    return min(max(int(value), 1), largest)


def cell_text(cell: _Element) -> str:
    """Return the text of a cell on one line, with that of everything in it."""
    from lxml import etree

    parts: list[str] = []
    walk = etree.iterwalk(cell, events=("start", "end", "comment"))
    for event, element in walk:
        if event == "start":
            if element.tag in _SKIPPED_IN_CELLS or _is_ornament(element):
                walk.skip_subtree()
                continue
            if element.tag in _BLOCK_TAGS:
                parts.append(" ")
            elif element.tag == "math":
                parts.append(mathml_text(element))
                walk.skip_subtree()
                continue
            elif is_raised(element):
                text = "".join(element.itertext("*"))
                parts.append(raise_text(element, text, parts[-1] if parts else ""))
                walk.skip_subtree()
                continue
            parts.append(element.text or "")
        elif element is not cell:
            if element.tag in _BLOCK_TAGS:
                parts.append(" ")
            parts.append(element.tail or "")
    return _WHITE_SPACE.sub(" ", "".join(parts).replace("\xad", "").replace("\u200b", "")).strip()
