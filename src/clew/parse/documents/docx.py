"""What a reader sees of a Word paragraph: without deleted and hidden text, with its footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Caption,
    Heading,
    Item,
    ListBlock,
    Paragraph,
    SourceFile,
    Title,
    build_document,
)
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.detection import DOCX
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.list_numbering import LEVELS, ListNumbering
from clew.parse.documents.office_package import OfficePackage, attribute_value, local_name
from clew.parse.documents.tables import Row, Table, count_header_rows, merge_header, trim_grid

if TYPE_CHECKING:
    from lxml.etree import _Element

#: Deleted text, moved-away text, field codes, and the second version of what is stored twice.
_SKIPPED = frozenset("del moveFrom instrText delText delInstrText Fallback pPr rPr sdtPr".split())
_LITERAL = {"tab": " ", "cr": "\n", "noBreakHyphen": "-", "ptab": " "}
_SPACES = re.compile(r"[ \t\u00a0]+")
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}


@dataclass(slots=True)
class Footnotes:
    """Footnotes and endnotes by kind and id; each is handed out once, after what refers to it."""

    _texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _waiting: list[str] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def from_xml(cls, footnotes: _Element | None, endnotes: _Element | None) -> Footnotes:
        """Read footnotes.xml and endnotes.xml, where there are any."""
        notes = cls()
        for kind, root in (("footnote", footnotes), ("endnote", endnotes)):
            for element in root if root is not None else ():
                if local_name(element) == kind and not attribute_value(element, "type").startswith(
                    ("sep", "cont")
                ):
                    text = element_text(element, cls())
                    notes._texts[kind, attribute_value(element, "id")] = text
        return notes

    def cite(self, kind: str, name: str) -> str:
        """Return the mark of a note in the text; its own text waits for :meth:`take`."""
        text = self._texts.pop((kind, name), "")
        if not text:
            return ""
        self._count += 1
        self._waiting.append(f"[{self._count}] {text}")
        return f"[{self._count}]"

    def take_pending(self) -> list[str]:
        """Return the notes referred to since the last call."""
        waiting, self._waiting = self._waiting, []
        return waiting


def paragraph_text(element: _Element, notes: Footnotes) -> tuple[str, list[str]]:
    """Return the text of a paragraph and the texts of the boxes that are anchored in it."""
    from lxml import etree

    parts: list[str] = []
    boxes: list[str] = []
    walk = etree.iterwalk(element, events=("start",))
    for _, inner in walk:
        name = local_name(inner)
        if name in _SKIPPED or (name == "r" and _hidden(inner)):
            walk.skip_subtree()
        elif name == "txbxContent":
            walk.skip_subtree()
            if text := element_text(inner, notes):
                boxes.append(text)
        elif name == "t":
            parts.append(inner.text or "")
        elif name in _LITERAL:
            parts.append(_LITERAL[name])
        elif name == "br" and attribute_value(inner, "type") not in {"page", "column"}:
            parts.append("\n")
        elif name in {"footnoteReference", "endnoteReference"}:
            parts.append(notes.cite(name.removesuffix("Reference"), attribute_value(inner, "id")))
    return _tidy("".join(parts)), boxes


def element_text(element: _Element, notes: Footnotes) -> str:
    """Return the text of all paragraphs below ``element``, one a line."""
    lines: list[str] = []
    for paragraph in element.iter("{*}p"):
        # Paragraphs of boxes in this one come by themselves.
        text, _ = paragraph_text(paragraph, notes)
        if text and not any(local_name(above) == "Fallback" for above in paragraph.iterancestors()):
            lines.append(text)
    return "\n".join(lines)


def _hidden(run: _Element) -> bool:
    for properties in run:
        if local_name(properties) == "rPr":
            return any(
                local_name(child) == "vanish" and attribute_value(child, "val", "1") not in {"0", "false"}
                for child in properties
            )
    return False


def _tidy(text: str) -> str:
    lines = (_SPACES.sub(" ", line).strip() for line in text.translate(_INVISIBLE).split("\n"))
    return "\n".join(line for line in lines if line)


_WRAPPERS = frozenset("sdt sdtContent customXml ins".split())


def is_layout_table(table: _Element) -> bool:
    """Return whether a table only arranges text: one row, one column, or tables within it."""
    rows = list(_inside(table, "tr"))
    if len(rows) < 2 or all(len(list(_inside(row, "tc"))) < 2 for row in rows):
        return True
    return any(len(list(_inside(nested, "tr"))) > 1 for nested in table.iter("{*}tbl") if nested is not table)


def read_table(table: _Element, notes: Footnotes, limits: Limits, used: int = 0) -> Table:
    """Return a table; ``used`` cells of the document's allowance are gone already."""
    rows: list[Row] = []
    marked: list[bool] = []
    spanned: set[int] = set()
    for row in _inside(table, "tr"):
        above = rows[-1] if rows else ()
        cells, spans = _cells(row, above, notes, limits, used)
        used += len(cells)
        if not any(cells):
            continue
        if spans:
            spanned.add(len(rows))
        rows.append(cells)
        marked.append(_is_header(row))
    spans_at = frozenset(spanned)
    rows = trim_grid(rows)
    count = 0
    while count < len(rows) and marked[count]:
        count += 1
    if not count or count == len(rows):
        count = count_header_rows(rows, spans_at)
    body = tuple(_group(row, place in spans_at) for place, row in enumerate(rows) if place >= count)
    return Table(merge_header(rows[:count]), body)


def _group(row: Row, spanned: bool) -> Row:
    """Return a row that one cell spans whole as a row with its first cell only: a group's heading."""
    return (row[0],) + ("",) * (len(row) - 1) if spanned and len(set(row)) == 1 else row


def _cells(row: _Element, above: Row, notes: Footnotes, limits: Limits, used: int) -> tuple[Row, bool]:
    """Return a row's cells, each as often as it spans columns, and whether one does."""
    cells: list[str] = [""] * _skipped(row)
    spans = False
    for cell in _inside(row, "tc"):
        width, merge = 1, ""
        for properties in cell:
            if local_name(properties) != "tcPr":
                continue
            for said in properties:
                if local_name(said) == "gridSpan":
                    width = _count(attribute_value(said, "val"))
                elif local_name(said) == "vMerge":
                    merge = attribute_value(said, "val", "continue")
        limits.check_cells(used + len(cells) + width)
        text = " ".join(element_text(cell, notes).split())
        if merge == "continue":
            for _ in range(width):
                cells.append(above[len(cells)] if len(cells) < len(above) else "")
        else:
            cells.extend([text] * width)
            spans |= width > 1 and bool(text)
    return tuple(cells), spans


def _skipped(row: _Element) -> int:
    """Return how many columns a row leaves out at its start."""
    for properties in row:
        if local_name(properties) == "trPr":
            for said in properties:
                if local_name(said) == "gridBefore":
                    return _count(attribute_value(said, "val"), 0)
    return 0


def _is_header(row: _Element) -> bool:
    for properties in row:
        if local_name(properties) == "trPr":
            return any(
                local_name(said) == "tblHeader"
                and attribute_value(said, "val", "1") not in {"0", "false", "off"}
                for said in properties
            )
    return False


def _count(text: str, default: int = 1) -> int:
    return min(int(text), 1_000) if re.fullmatch(r"\d{1,6}", text) else default


def _inside(element: _Element, name: str) -> Iterator[_Element]:
    """Yield the children called ``name``, out of the content controls and insertions around them."""
    waiting = list(element)[::-1]
    while waiting:
        child = waiting.pop()
        if local_name(child) == name:
            yield child
        elif local_name(child) in _WRAPPERS:
            waiting.extend(list(child)[::-1])


PARSER = "docx/1"

_HEADING_STYLE = re.compile(r"^heading ?([1-9])$", re.I)
_CONTENTS_STYLE = re.compile(r"^(?:toc ?\d|toc heading|table of figures|index ?\d)$", re.I)
#: What programs write as the title when nobody gave one.
_NO_TITLES = re.compile(r"^(?:microsoft word - .*|word document|document\d*|untitled|title|normal)?$", re.I)
#: What may stand between the body and a paragraph; rows and cells only of tables that are mere frames.
_WRAPPERS_docx = frozenset(
    "sdt sdtContent customXml ins moveTo smartTag AlternateContent Choice tr tc".split()
)


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a Word document. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    return build_document(_document(package, limits), SourceFile(data, name, DOCX, PARSER, unit, limits))


def _document(package: OfficePackage, limits: Limits) -> Iterator[Block]:
    main = package.main_part("word/document.xml")
    root = package.read_xml(main)

    def part(kind: str) -> _Element | None:
        name = package.related_part(main, kind)
        return package.read_xml(name) if name else None

    walk = _Walk(
        Styles.from_xml(part("styles")),
        ListNumbering.from_xml(part("numbering")),
        Footnotes.from_xml(part("footnotes"), part("endnotes")),
        limits,
    )
    stated = package.title()
    blocks = list(walk.blocks(root))
    # What the page shows as its title goes before what the properties say: those survive from templates.
    if walk.title or not _NO_TITLES.match(stated):
        yield Title(walk.title or stated)
    yield from blocks


@dataclass(frozen=True, slots=True)
class Style:
    """What a paragraph style says that matters here; empty where it says nothing."""

    name: str = ""
    based_on: str = ""
    outline: int | None = None
    list_id: str = ""
    list_depth: int | None = None


@dataclass(frozen=True, slots=True)
class Styles:
    """The paragraph styles by id, with what they inherit filled in."""

    by_id: dict[str, Style]
    default: str = ""

    @classmethod
    def from_xml(cls, root: _Element | None) -> Styles:
        """Read styles.xml."""
        raw: dict[str, Style] = {}
        default = ""
        for element in root if root is not None else ():
            if local_name(element) != "style" or attribute_value(element, "type", "paragraph") != "paragraph":
                continue
            style_id = attribute_value(element, "styleId")
            raw[style_id] = _style(element)
            if attribute_value(element, "default") in {"1", "true"}:
                default = style_id
        return cls({style_id: _inherited(raw, style_id) for style_id in raw}, default)

    def style_of(self, properties: _Element | None) -> Style:
        """Return the style that paragraph properties name."""
        name = next(
            (attribute_value(child, "val") for child in _children(properties, "pStyle")), self.default
        )
        return self.by_id.get(name, Style())


def _style(element: _Element) -> Style:
    name = based_on = ""
    properties = None
    for child in element:
        match local_name(child):
            case "name":
                name = attribute_value(child, "val")
            case "basedOn":
                based_on = attribute_value(child, "val")
            case "pPr":
                properties = child
    list_id, depth = _list_of(properties)
    return Style(name, based_on, _outline(properties), list_id, depth)


def _inherited(raw: dict[str, Style], style_id: str) -> Style:
    style, seen = raw[style_id], {style_id}
    outline, list_id, depth, above = style.outline, style.list_id, style.list_depth, style.based_on
    while above in raw and above not in seen:
        seen.add(above)
        parent = raw[above]
        outline = parent.outline if outline is None else outline
        list_id = list_id or parent.list_id
        depth = parent.list_depth if depth is None else depth
        above = parent.based_on
    return Style(style.name, style.based_on, outline, list_id, depth)


def _children(element: _Element | None, name: str) -> Iterator[_Element]:
    return (child for child in (element if element is not None else ()) if local_name(child) == name)


def _outline(properties: _Element | None) -> int | None:
    """Return the outline level, 0 to 8; 9 is body text and says that a heading style is overruled."""
    for child in _children(properties, "outlineLvl"):
        value = attribute_value(child, "val")
        return int(value) if re.fullmatch(r"\d", value) else None
    return None


def _list_of(properties: _Element | None) -> tuple[str, int | None]:
    """Return the list that paragraph properties name ("0" takes one out of its style's list) and the depth."""
    for numbered in _children(properties, "numPr"):
        values = {local_name(child): attribute_value(child, "val") for child in numbered}
        depth = values.get("ilvl", "")
        known = re.fullmatch(r"\d", depth)
        return values.get("numId", ""), min(int(depth), LEVELS - 1) if known else None
    return "", None


@dataclass(slots=True)
class _Walk:
    """One pass over the body."""

    styles: Styles
    numbering: ListNumbering
    notes: Footnotes
    limits: Limits
    title: str = ""
    _items: list[Item] = field(default_factory=list)
    _cells: int = 0

    def blocks(self, root: _Element) -> Iterator[Block]:
        """Yield the blocks of the body in order; footnotes after what refers to them."""
        for element in _body(root):
            if local_name(element) == "tbl":
                yield from self._end_list()
                table = read_table(element, self.notes, self.limits, self._cells)
                self._cells += sum(map(len, table.rows))
                yield table
                yield from map(Paragraph, self.notes.take_pending())
            else:
                yield from self._paragraph(element)
        yield from self._end_list()

    def _paragraph(self, element: _Element) -> Iterator[Block]:
        properties = next(_children(element, "pPr"), None)
        style = self.styles.style_of(properties)
        text, boxes = paragraph_text(element, self.notes)
        name = style.name.lower()
        if text and not _CONTENTS_STYLE.match(name):
            yield from self._block(text, name, properties, style)
        for box in boxes:
            yield from self._end_list()
            yield Paragraph(box)

    def _block(self, text: str, name: str, properties: _Element | None, style: Style) -> Iterator[Block]:
        list_id, depth = _list_of(properties)
        list_id = list_id or style.list_id
        depth = next((d for d in (depth, style.list_depth) if d is not None), 0)
        number = self.numbering.next_label(list_id, depth) if list_id not in {"", "0"} else ""
        level = _heading_level(name, _outline(properties), style)
        if level:
            yield from self._end_list()
            if name == "title":
                self.title = self.title or text
            yield Heading(level, text if number in {"", "-"} else f"{number} {text}")
        elif number:
            self._items.append(Item(text, depth, number))
            return
        else:
            yield from self._end_list()
            yield Caption(text) if name == "caption" else Paragraph(text)
        yield from map(Paragraph, self.notes.take_pending())

    def _end_list(self) -> Iterator[Block]:
        if self._items:
            least = min(item.depth for item in self._items)
            yield ListBlock(tuple(Item(i.text, i.depth - least, i.marker) for i in self._items))
            self._items = []
            yield from map(Paragraph, self.notes.take_pending())


def _heading_level(name: str, outline: int | None, style: Style) -> int:
    """Return the level of a heading, 0 for other paragraphs."""
    if name == "title":
        return 1
    if outline is None:
        if named := _HEADING_STYLE.match(name):
            return int(named[1])
        outline = style.outline
    return 0 if outline is None or outline >= LEVELS else outline + 1


def _body(root: _Element) -> Iterator[_Element]:
    """Yield the paragraphs and tables of a document, out of whatever wraps them, without recursion."""
    body = next(_children(root, "body"), None)
    open_elements = [iter(body if body is not None else ())]
    while open_elements:
        element = next(open_elements[-1], None)
        if element is None:
            open_elements.pop()
            continue
        name = local_name(element)
        if name == "p" or (name == "tbl" and not is_layout_table(element)):
            yield element
        elif name == "tbl" or (name in _WRAPPERS_docx and not _is_contents(element)):
            open_elements.append(iter(element))


def _is_contents(element: _Element) -> bool:
    """Return whether a content control holds the table of contents."""
    for properties in _children(element, "sdtPr"):
        for part in _children(properties, "docPartObj"):
            return any(
                attribute_value(g, "val") == "Table of Contents" for g in _children(part, "docPartGallery")
            )
    return False


# MERGED: Tables of Word documents: merged cells resolved, header rows found.
# MERGED: Word documents, read from their XML.
