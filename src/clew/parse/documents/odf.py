"""OpenDocument files (ISO/IEC 26300): texts, spreadsheets and presentations, read from their XML.

Read like DOCX, XLSX and PPTX: the numbers that are printed before headings and list items are counted, notes follow
the block that cites them, deleted text and remarks are left out, a slide is a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from pathlib import PurePath
from typing import TYPE_CHECKING

from clew.core.errors import UnreadableFile
from clew.core.text import read_count
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Caption,
    Field,
    Heading,
    Item,
    LeftOut,
    ListBlock,
    Note,
    PageStart,
    Paragraph,
    SourceFile,
    Title,
    build_document,
    superscript,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.docx import LEVELS, format_list_number
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.formulas import mathml_text
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.office_package import OfficePackage, attribute_value, local_name
from clew.parse.documents.tables import Row, table_from_grid
from clew.parse.documents.xlsx import Sheet, fill_merged_cells, sheet_blocks

if TYPE_CHECKING:
    from lxml.etree import _Element

_MIMETYPE = "application/vnd.oasis.opendocument."
_NUMBER_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
#: Elements that may stand between the body and a paragraph, list or table.
_WRAPPERS = frozenset("section g a text-box index-body".split())
#: Shapes of drawings and slides that have paragraphs in them.
_SHAPES = frozenset("custom-shape rect ellipse circle polygon path line polyline connector caption".split())
_INDEXES = frozenset(
    """table-of-content alphabetical-index illustration-index table-index object-index user-index
    tracked-changes forms""".split()
)
#: What is in a paragraph and not in its text.
_UNSEEN = frozenset(
    "annotation annotation-end ruby-text note frame title desc hidden-paragraph hidden-text script".split()
)
#: Elements whose text may be struck out by a style of its own.
_TEXT = frozenset("p h span a".split())
_BREAKS = {"tab": " ", "line-break": "\n"}
_FOOTERS = frozenset("footer header date-time page-number notes".split())
_CAPTION_STYLES = frozenset(("Caption", "Table", "TableCaption", "FigureCaption"))
_SPACES = re.compile(r"[ \t\n\r\u00a0]+")
_LINE_BREAK = "\v"
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}
#: Rows and columns of the largest sheet that a spreadsheet program makes.
_MAX_ROWS, _MAX_COLUMNS = 1_048_576, 16_384


TEXT_PARSER, SPREADSHEET_PARSER, PRESENTATION_PARSER = "odt/4", "ods/2", "odp/4"


def parse_text(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an OpenDocument text. Raises UnreadableFile."""
    package = _open_package(data, limits)
    source = SourceFile(data, name, f"{_MIMETYPE}text", TEXT_PARSER, unit, limits)
    return build_document(_text_blocks(package, limits), source)


def parse_spreadsheet(
    data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS
) -> ParsedDocument:
    """Parse an OpenDocument spreadsheet: each sheet becomes a section with its tables. Raises UnreadableFile."""
    package = _open_package(data, limits)
    source = SourceFile(data, name, f"{_MIMETYPE}spreadsheet", SPREADSHEET_PARSER, unit, limits)
    return build_document(_spreadsheet_blocks(package, name, limits), source)


def parse_presentation(
    data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS
) -> ParsedDocument:
    """Parse an OpenDocument presentation: each slide is a page and a section. Raises UnreadableFile."""
    package = _open_package(data, limits)
    source = SourceFile(data, name, f"{_MIMETYPE}presentation", PRESENTATION_PARSER, unit, limits)
    return build_document(_presentation_blocks(package, limits), source)


FORMATS = tuple(
    DocumentFormat(
        f"{_MIMETYPE}{kind}", label, suffixes, parse, zip_mimetype=f"{_MIMETYPE}{kind}", parser=parser
    )
    for kind, label, suffixes, parse, parser in (
        ("text", "an OpenDocument text", (".odt", ".ott"), parse_text, TEXT_PARSER),
        (
            "spreadsheet",
            "an OpenDocument spreadsheet",
            (".ods", ".ots"),
            parse_spreadsheet,
            SPREADSHEET_PARSER,
        ),
        (
            "presentation",
            "an OpenDocument presentation",
            (".odp", ".otp"),
            parse_presentation,
            PRESENTATION_PARSER,
        ),
    )
)


def _open_package(data: bytes, limits: Limits) -> OfficePackage:
    package = OfficePackage(data, limits)
    manifest = "META-INF/manifest.xml"
    # An encrypted part looks damaged; only the list of parts says that it is encrypted.
    if manifest in package and b"encryption-data" in package.read_bytes(manifest):
        raise UnreadableFile("is encrypted", "Save it without a password and add that")
    return package


def _body(package: OfficePackage, kind: str) -> tuple[_Element, _Element]:
    """Return the root of the content and the element that holds it. Raises UnreadableFile."""
    root = package.read_xml("content.xml")
    body = next((child for above in _children(root, "body") for child in _children(above, kind)), None)
    if body is None:
        raise UnreadableFile(f"is damaged: content.xml has no {kind}")
    return root, body


def _stated_title(package: OfficePackage) -> str:
    if "meta.xml" not in package:
        return ""
    return next(
        (" ".join((title.text or "").split()) for title in package.read_xml("meta.xml").iter("{*}title")), ""
    )


def _meta_fields(package: OfficePackage) -> Iterator[Field]:
    """Yield author, date and keywords of the metadata."""
    if "meta.xml" in package:
        for element in package.read_xml("meta.xml").iter("{*}creator", "{*}creation-date", "{*}keyword"):
            yield from starmap(Field, field_pairs({local_name(element): element.text or ""}))


def _children(element: _Element, *names: str) -> Iterator[_Element]:
    return (child for child in element if local_name(child) in names)


def _count(element: _Element, name: str, largest: int) -> int:
    value = attribute_value(element, name, "1")
    return min(max(int(value), 1), largest) if re.fullmatch(r"\d{1,9}", value) else 1


# Styles


@dataclass(frozen=True, slots=True)
class NumberLevel:
    """How a level of a list or of headings is numbered. ``form`` is "" where nothing is printed, else as in DOCX."""

    form: str
    prefix: str = ""
    suffix: str = ""
    start: int = 1
    shown_levels: int = 1


@dataclass(slots=True)
class Styles:
    """The styles of a document: the parent of each, numbered lists and headings, and what is not shown."""

    parents: dict[str, str] = field(default_factory=dict)
    lists: dict[str, dict[int, NumberLevel]] = field(default_factory=dict)
    list_of_style: dict[str, str] = field(default_factory=dict)
    outline: dict[int, NumberLevel] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # of sheets and slides
    raised: set[str] = field(default_factory=set)  # of text
    unseen: dict[str, str] = field(default_factory=dict)  # why text is left out, "" where a style lifts that

    @classmethod
    def from_xml(cls, *roots: _Element) -> Styles:
        """Read the styles of styles.xml and content.xml."""
        styles = cls()
        for root in roots:
            for container in _children(root, "styles", "automatic-styles"):
                for element in container:
                    styles._add(element)
        return styles

    def _add(self, element: _Element) -> None:
        name = attribute_value(element, "name")
        match local_name(element):
            case "style":
                self.parents[name] = attribute_value(element, "parent-style-name")
                self.list_of_style[name] = attribute_value(element, "list-style-name")
                for properties in _children(element, "table-properties", "drawing-page-properties"):
                    is_hidden = attribute_value(properties, "visibility") == "hidden"
                    if is_hidden or attribute_value(properties, "display") == "false":
                        self.hidden.add(name)
                for properties in _children(element, "text-properties"):
                    if re.match(r"super|[1-9]", attribute_value(properties, "text-position")):
                        self.raised.add(name)
                    line = attribute_value(properties, "text-line-through-style")
                    if line := line or attribute_value(properties, "text-line-through-type"):
                        self.unseen[name] = "" if line == "none" else "struck out"
                    if attribute_value(properties, "display") == "none":
                        self.unseen[name] = "hidden"
            case "list-style":
                self.lists[name] = dict(map(_number_level, element))
            case "outline-style":
                self.outline = dict(map(_number_level, element))

    def ancestors(self, name: str) -> list[str]:
        """Return the names of a style and of those that it is based on."""
        names: list[str] = []
        while name and name not in names:
            names.append(name)
            name = self.parents.get(name, "")
        return names


def _take_unseen(body: _Element, styles: Styles) -> Iterator[LeftOut]:
    """Yield the text that is struck out or hidden by its style, and take it out of the tree."""
    reasons: dict[_Element | None, str] = {}
    for element in body.iter("*"):
        names = styles.ancestors(attribute_value(element, "style-name"))
        around = "" if local_name(element) in {"p", "h"} else reasons.get(element.getparent(), "")
        reason = next((styles.unseen[name] for name in names if name in styles.unseen), around)
        if not reason or local_name(element) not in _TEXT:
            continue
        reasons[element] = reason
        yield LeftOut(reason, " ".join([element.text or "", *(child.tail or "" for child in element)]))
        element.text = ""
        for child in element:
            child.tail = ""


def _number_level(element: _Element) -> tuple[int, NumberLevel]:
    level = _count(element, "level", LEVELS) - 1
    if "bullet" in local_name(element) or "image" in local_name(element):
        return level, NumberLevel("bullet")
    return level, NumberLevel(
        _NUMBER_FORMS.get(attribute_value(element, "num-format"), ""),
        attribute_value(element, "num-prefix"),
        attribute_value(element, "num-suffix"),
        _count(element, "start-value", 1_000_000),
        _count(element, "display-levels", LEVELS),
    )


@dataclass(slots=True)
class _Counter:
    """Counts the items of a list, or headings."""

    levels: dict[int, NumberLevel]
    counts: list[int | None] = field(default_factory=lambda: [None] * LEVELS)

    def next_label(self, level: int, start: int | None = None) -> str:
        """Count an item of ``level`` (from 0), and return what is printed before it: ``-`` for a bullet."""
        style = self.levels.get(level, NumberLevel("bullet"))
        before = self.counts[level]
        self.counts[level] = (style.start if before is None else before + 1) if start is None else start
        self.counts[level + 1 :] = [None] * (LEVELS - level - 1)
        if style.form in {"", "bullet"}:
            return "-" if style.form else ""
        parts = []
        for place in range(max(level - style.shown_levels + 1, 0), level + 1):
            other = self.levels.get(place, NumberLevel("decimal"))
            number = self.counts[place]
            if other.form not in {"", "bullet"}:
                parts.append(format_list_number(other.start if number is None else number, other.form))
        return f"{style.prefix}{'.'.join(parts)}{style.suffix}".strip()


# Texts


def _text_blocks(package: OfficePackage, limits: Limits) -> Iterator[Block]:
    root, body = _body(package, "text")
    styles = Styles.from_xml(*(package.read_xml(name) for name in ("styles.xml",) if name in package), root)
    yield from _take_unseen(body, styles)
    walker = _Walker(package, styles, limits)
    blocks = list(_join_lists(walker.blocks(body)))
    if title := walker.title or _stated_title(package):
        yield Title(title)
    yield from _meta_fields(package)
    yield from blocks


@dataclass(slots=True)
class _Walker:
    """Turns paragraphs, lists and tables into blocks; counts numbers and the cells of all tables."""

    package: OfficePackage
    styles: Styles
    limits: Limits
    title: str = ""  # the first paragraph in the style "Title"
    _cells: int = 0
    _notes: list[str] = field(default_factory=list)  # cited since the last block
    _note_count: int = 0
    _frames: list[_Element] = field(default_factory=list)  # anchored in the paragraph in progress
    _headings: _Counter | None = None
    _lists: dict[str, _Counter] = field(default_factory=dict)  # by id, and by style for the last of each
    _objects: set[str] = field(default_factory=set)
    _formulas: dict[str, str] = field(default_factory=dict)  # by part, each read once

    def blocks(self, elements: Iterable[_Element]) -> Iterator[Block]:
        """Yield the blocks of elements in order; notes and boxes follow the block that they are anchored in."""
        open_elements = [iter(elements)]
        while open_elements:
            element = next(open_elements[-1], None)
            if element is None:
                open_elements.pop()
                continue
            name = local_name(element)
            if name in _INDEXES:
                continue
            if name == "list":
                yield from self._list_blocks(element)
            elif name in {"p", "h"}:
                yield from self._paragraph_blocks(element)
            elif name == "table":
                yield from self._table_blocks(element)
            elif name == "frame":
                open_elements.append(self._frame_children(element))
            elif name == "object":
                yield from self._object_blocks(element)
            elif name in _WRAPPERS or name in _SHAPES:
                open_elements.append(iter(element))
            if name in {"list", "p", "h", "table"}:
                yield from self._take_notes()
                if self._frames:
                    frames, self._frames = self._frames, []
                    open_elements.append(iter(frames))

    def _frame_children(self, frame: _Element) -> Iterator[_Element]:
        """Yield the first version of what a frame shows: others stand in for programs that cannot show it."""
        yield from list(_children(frame, "text-box", "table", "object"))[:1]

    def _take_notes(self) -> Iterator[Block]:
        notes, self._notes = self._notes, []
        yield from map(Paragraph, notes)

    def _paragraph_blocks(self, element: _Element, label: str = "") -> Iterator[Block]:
        text = self.paragraph_text(element)
        if not text:
            return
        style = attribute_value(element, "style-name")
        ancestors = [name.replace("_20_", " ") for name in self.styles.ancestors(style)]
        if local_name(element) == "h":
            level = _count(element, "outline-level", LEVELS)
            yield Heading(level, f"{label or self._heading_number(element, level)} {text}".strip())
        elif "Title" in ancestors:
            self.title = self.title or text
            yield Heading(1, text)
        else:
            yield Caption(text) if _CAPTION_STYLES.intersection(ancestors) else Paragraph(text)

    def _heading_number(self, element: _Element, level: int) -> str:
        if attribute_value(element, "is-list-header") == "true":
            return ""
        if self._headings is None:
            self._headings = _Counter(
                {place: NumberLevel("") for place in range(LEVELS)} | self.styles.outline
            )
        number = self._headings.next_label(level - 1)
        return "" if number == "-" else number

    def _list_blocks(self, element: _Element) -> Iterator[Block]:
        """Yield a list. A heading or table in an item ends the list and stands by itself."""
        items: list[Item] = []
        counter = self._list_counter(element)
        for depth, kind, child, label in self._list_paragraphs(element, counter):
            if kind == "p":
                text = self.paragraph_text(child)
                if not text:
                    continue
                if label or not items:
                    items.append(Item(text, depth, label or "-"))
                else:
                    last = items[-1]
                    items[-1] = Item(f"{last.text}\n{text}", last.depth, last.marker)
                continue
            if items:
                yield ListBlock(tuple(items))
                items = []
            if kind == "h":
                yield from self._paragraph_blocks(child, "" if label == "-" else label)
            else:
                yield from self._table_blocks(child)
        if items:
            yield ListBlock(tuple(items))

    def _list_counter(self, element: _Element) -> _Counter:
        style = attribute_value(element, "style-name")
        continued = attribute_value(element, "continue-list")
        if not continued and attribute_value(element, "continue-numbering") == "true":
            continued = f"style {style}"
        counter = self._lists.get(continued) or _Counter(self.styles.lists.get(style, {}))
        for name in (attribute_value(element, "id"), f"style {style}"):
            if name:
                self._lists[name] = counter
        return counter

    def _list_paragraphs(
        self, element: _Element, counter: _Counter
    ) -> Iterator[tuple[int, str, _Element, str]]:
        """Yield depth, name, element and label of what is in a list; the label of an item is on its first."""
        open_lists = [iter(element)]
        open_items: list[Iterator[_Element]] = []
        label = ""
        while open_lists:
            if len(open_items) < len(open_lists):
                item = next(open_lists[-1], None)
                if item is None:
                    open_lists.pop()
                    if open_items:
                        continue
                    return
                if local_name(item) == "list-item":
                    depth = min(len(open_lists), LEVELS) - 1
                    # An item that holds nothing but an inner list is not counted and shows no number.
                    names = [local_name(child) for child in item]
                    if names[:1] != ["list"]:
                        stated = read_count(attribute_value(item, "start-value"))
                        label = counter.next_label(depth, stated)
                    open_items.append(iter(item))
                elif local_name(item) == "list-header":
                    open_items.append(iter(item))
                continue
            child = next(open_items[-1], None)
            if child is None:
                open_items.pop()
                continue
            name = local_name(child)
            if name == "list":
                open_lists.append(iter(child))
            elif name in {"p", "h", "table"}:
                yield min(len(open_lists), LEVELS) - 1, name, child, label
                label = ""

    def paragraph_text(self, element: _Element) -> str:
        """Return the text that a paragraph shows; notes and frames in it wait for their block."""
        from lxml import etree

        parts: list[str] = [element.text or ""]
        walk = etree.iterwalk(element, events=("start", "end"))
        for event, inner in walk:
            if inner is element:
                continue
            if event == "end":
                parts.append(inner.tail or "")
                continue
            name = local_name(inner)
            if name in _UNSEEN or name in _SHAPES:
                walk.skip_subtree()
                if name == "note":
                    parts.append(self._cite(inner))
                elif name == "frame" and (formula := self._formula(inner)):
                    parts.append(formula)
                elif name == "frame" or name in _SHAPES:
                    self._frames.append(inner)
            elif name == "s":
                parts.append(" ")
            elif name in _BREAKS:
                parts.append(_LINE_BREAK if name == "line-break" else " ")
            elif name == "span" and attribute_value(inner, "style-name") in self.styles.raised:
                parts.append(superscript(inner.text or "", parts[-1]))
            else:
                parts.append(inner.text or "")
        lines = "".join(parts).translate(_INVISIBLE).split(_LINE_BREAK)
        return "\n".join(line for line in (_SPACES.sub(" ", line).strip() for line in lines) if line)

    def _formula(self, frame: _Element) -> str:
        """Return the formula that a frame shows, "" for another frame."""
        for element in _children(frame, "object"):
            root = next((child for child in element if local_name(child) == "math"), None)
            part = attribute_value(element, "href").removeprefix("./").rstrip("/") + "/content.xml"
            if root is not None:
                return mathml_text(root).strip()
            if part in self.package and part not in self._formulas:
                root = self.package.read_xml(part)
                self._formulas[part] = mathml_text(root).strip() if local_name(root) == "math" else ""
            return self._formulas.get(part, "")
        return ""

    def _cite(self, note: _Element) -> str:
        text = " ".join(
            text
            for body in _children(note, "note-body")
            for inner in body.iter("{*}p", "{*}h")
            if (text := self.paragraph_text(inner))
        )
        if not text:
            return ""
        self._note_count += 1
        self._notes.append(f"[{self._note_count}] {text}")
        return f"[{self._note_count}]"

    def _table_blocks(self, element: _Element) -> Iterator[Block]:
        rows, spanned, header = self._grid(element)
        if len(rows) < 2 or all(len(set(row)) < 2 for row in rows):  # it only arranges text
            for row in rows:
                yield from (Paragraph(cell) for cell in dict.fromkeys(row) if cell)
            return
        yield table_from_grid(rows, frozenset(spanned), header)

    def _grid(self, element: _Element) -> tuple[list[Row], set[int], int]:
        """Return the rows of a table, the numbers of those with a cell over columns, and how many are header rows."""
        rows: list[Row] = []
        spanned: set[int] = set()
        header = 0
        tall: dict[int, tuple[int, str]] = {}  # column: rows still covered, text
        for in_header, row in _table_rows(element):
            cells: list[str] = []
            for cell in _children(row, "table-cell", "covered-table-cell"):
                content = None if local_name(cell) == "covered-table-cell" else self._cell_content(cell)
                count = _count(cell, "number-columns-repeated", _MAX_COLUMNS)
                for _ in range(min(count, _MAX_COLUMNS - len(cells))):
                    self._add_cell(content, cells, tall, rows, spanned)
            if any(cells):
                rows.append(tuple(cells))
                header += in_header
        return rows, spanned, header

    def _cell_content(self, cell: _Element) -> tuple[str, int, int]:
        """Return the text of a cell, and over how many columns and rows it goes."""
        text = " ".join(text for inner in cell.iter("{*}p", "{*}h") if (text := self.paragraph_text(inner)))
        width = _count(cell, "number-columns-spanned", 1_000)
        return " ".join(text.split()), width, _count(cell, "number-rows-spanned", _MAX_ROWS)

    def _add_cell(
        self,
        content: tuple[str, int, int] | None,
        cells: list[str],
        tall: dict[int, tuple[int, str]],
        rows: Sequence[Row],
        spanned: set[int],
    ) -> None:
        """Append a cell to those of its row; one without ``content`` is covered by another."""
        self._cells += 1
        self.limits.check_cells(self._cells)
        column = len(cells)
        if content is None:
            left, text = tall.get(column, (0, ""))
            if left:
                tall[column] = (left - 1, text)
            cells.append(text if left else "")
            return
        text, width, height = content
        if width > 1 and text:
            spanned.add(len(rows))
        for place in range(column, column + width):
            # Cells to the right are covered in this row, too.
            tall[place] = (height - (place == column), text)
        cells.append(text)

    def _object_blocks(self, element: _Element) -> Iterator[Block]:
        """Yield the table of values that is stored with a chart, once."""
        part = attribute_value(element, "href").removeprefix("./") + "/content.xml"
        if part not in self.package or part in self._objects:
            return
        self._objects.add(part)
        root = self.package.read_xml(part)
        title = ""
        for chart in root.iter("{*}chart"):
            title = title or " ".join(
                "".join(t for e in _children(chart, "title") for t in map(str, e.itertext())).split()
            )
        for table in root.iter("{*}table"):
            rows, spanned, header = self._grid(table)
            if len(rows) > 1:
                yield table_from_grid(rows, frozenset(spanned), header, title)


def _join_lists(blocks: Iterable[Block]) -> Iterator[Block]:
    """Join lists that follow each other: LibreOffice writes a list for each level, or for each item of a slide."""
    items: tuple[Item, ...] = ()
    for block in blocks:
        if isinstance(block, ListBlock):
            items += block.items
            continue
        if items:
            yield ListBlock(items)
            items = ()
        yield block
    if items:
        yield ListBlock(items)


def _table_rows(table: _Element) -> Iterator[tuple[bool, _Element]]:
    """Yield whether a row is a header row, and the row, out of the groups around it."""
    waiting = [(False, child) for child in list(table)[::-1]]
    while waiting:
        in_header, element = waiting.pop()
        match local_name(element):
            case "table-row":
                yield in_header, element
            case "table-header-rows":
                waiting.extend((True, child) for child in list(element)[::-1])
            case "table-rows" | "table-row-group":
                waiting.extend((in_header, child) for child in list(element)[::-1])


# Spreadsheets


def _spreadsheet_blocks(package: OfficePackage, name: str, limits: Limits) -> Iterator[Block]:
    root, body = _body(package, "spreadsheet")
    styles = Styles.from_xml(root)
    walker = _Walker(package, styles, limits)
    yield Title(_stated_title(package) or PurePath(name).stem)
    yield from _meta_fields(package)
    count = cells = 0
    for table in _children(body, "table"):
        if attribute_value(table, "style-name") in styles.hidden:
            continue
        count += 1
        sheet, cells = _read_sheet(table, walker, limits, cells)
        if sheet.cells:
            yield Heading(1, sheet.name)
            yield from sheet_blocks(sheet)
    if not count:
        raise UnreadableFile("holds no visible sheet")


def _read_sheet(table: _Element, walker: _Walker, limits: Limits, cells: int) -> tuple[Sheet, int]:
    """Return a sheet, and the number of cells of the sheets so far."""
    sheet = Sheet(attribute_value(table, "name"))
    number = 0
    for _, row in _table_rows(table):
        values, merged, cells = _read_cells(row, number, walker, limits, cells)
        repeated = _count(row, "number-rows-repeated", _MAX_ROWS)
        if values:
            sheet.merged += merged
            for _ in range(repeated):
                sheet.cells[number] = dict(values)
                number += 1
                cells += len(values)
                limits.check_cells(cells)
        else:
            number += repeated
    fill_merged_cells(sheet)
    return sheet, cells


def _read_cells(
    row: _Element, number: int, walker: _Walker, limits: Limits, cells: int
) -> tuple[dict[int, str], list[tuple[int, int, int, int]], int]:
    """Return the texts of a row's cells by column, the merged ranges that begin in it, and the number of cells."""
    values: dict[int, str] = {}
    merged = []
    column = 0
    for cell in _children(row, "table-cell", "covered-table-cell"):
        repeated = _count(cell, "number-columns-repeated", _MAX_COLUMNS)
        text = " ".join(text for p in _children(cell, "p") if (text := walker.paragraph_text(p)))
        text = " ".join((text or attribute_value(cell, "value")).split())
        if text:
            cells += repeated
            limits.check_cells(cells)
            values.update((place, text) for place in range(column, column + repeated))
            width, height = (
                _count(cell, "number-columns-spanned", 16_384),
                _count(cell, "number-rows-spanned", _MAX_ROWS),
            )
            if width > 1 or height > 1:
                merged.append((number, column, number + height - 1, column + width - 1))
        column += repeated
    return values, merged, cells


# Presentations


def _presentation_blocks(package: OfficePackage, limits: Limits) -> Iterator[Block]:
    root, body = _body(package, "presentation")
    styles = Styles.from_xml(*(package.read_xml(name) for name in ("styles.xml",) if name in package), root)
    yield from _take_unseen(body, styles)
    walker = _Walker(package, styles, limits)
    if title := _stated_title(package):
        yield Title(title)
    yield from _meta_fields(package)
    hidden = 0
    for number, page in enumerate(_children(body, "page"), 1):
        if attribute_value(page, "style-name") in styles.hidden:
            hidden += 1
            continue
        yield PageStart(number)
        yield from _slide_blocks(page, number, walker)
    if hidden:
        yield Note(f"{hidden} hidden slide{'s were' if hidden > 1 else ' was'} left out")


def _slide_blocks(page: _Element, number: int, walker: _Walker) -> Iterator[Block]:
    kind_of = partial(attribute_value, name="class")
    texts = [
        text
        for shape in page
        if kind_of(shape) == "title"
        for inner in shape.iter("{*}p")
        if (text := walker.paragraph_text(inner))
    ]
    yield Heading(1, " ".join(texts) or f"Slide {number}")
    shapes = (shape for shape in page if kind_of(shape) not in _FOOTERS | {"title"})
    yield from _join_lists(walker.blocks(shapes))
    for notes in _children(page, "notes"):
        lines = [
            text
            for shape in notes
            if kind_of(shape) == "notes"
            for inner in shape.iter("{*}p")
            if (text := walker.paragraph_text(inner))
        ]
        if lines:
            yield Paragraph("Notes: " + "\n".join(lines))
