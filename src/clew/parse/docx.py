"""Word documents, read from their XML.

Read directly rather than through a document model, because what a reader sees needs what such models leave
out: footnotes, computed numbers, tracked changes, merged cells, content controls; and because every part is
checked before it is unpacked (:mod:`clew.parse.opc`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.parse.blocks import Block, Caption, Heading, Item, ListBlock, Paragraph, SourceFile, Title, build_document
from clew.parse.build import PassageUnit
from clew.parse.detect import DOCX
from clew.parse.docxtable import is_layout_table, read_table
from clew.parse.docxtext import Footnotes, paragraph_text
from clew.parse.limits import LIMITS, Limits
from clew.parse.numbering import LEVELS, ListNumbering
from clew.parse.opc import OfficePackage, attribute_value, local_name
from clew.types import ParsedDocument

if TYPE_CHECKING:
    from lxml.etree import _Element

PARSER = "docx/1"

_HEADING_STYLE = re.compile(r"^heading ?([1-9])$", re.I)
_CONTENTS_STYLE = re.compile(r"^(?:toc ?\d|toc heading|table of figures|index ?\d)$", re.I)
#: What programs write as the title when nobody gave one.
_NO_TITLES = re.compile(r"^(?:microsoft word - .*|word document|document\d*|untitled|title|normal)?$", re.I)
#: What may stand between the body and a paragraph; rows and cells only of tables that are mere frames.
_WRAPPERS = frozenset("sdt sdtContent customXml ins moveTo smartTag AlternateContent Choice tr tc".split())


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
        name = next((attribute_value(child, "val") for child in _children(properties, "pStyle")), self.default)
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
        elif name == "tbl" or (name in _WRAPPERS and not _is_contents(element)):
            open_elements.append(iter(element))


def _is_contents(element: _Element) -> bool:
    """Return whether a content control holds the table of contents."""
    for properties in _children(element, "sdtPr"):
        for part in _children(properties, "docPartObj"):
            return any(attribute_value(g, "val") == "Table of Contents" for g in _children(part, "docPartGallery"))
    return False
