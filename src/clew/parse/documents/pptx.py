"""PowerPoint presentations, read from their XML: a slide is a page and a section, called by its title.

Shapes are read by where they stand on the slide, rows from the top, each from the left; its title comes first.
Charts are read as tables of the values that are stored with them, diagrams as lists of their texts. Nothing of the
master is on a slide but its footers, which are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.errors import UnreadableFile
from clew.core.text import read_count
from clew.core.types import ParsedDocument, Table
from clew.parse.documents.blocks import (
    Block,
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
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.formulas import office_formula_text
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.office_package import OfficePackage, attribute_value, local_name
from clew.parse.documents.tables import Row, table_from_grid

if TYPE_CHECKING:
    from lxml.etree import _Element

PARSER = "pptx/4"
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

#: Titles that programs write into the properties where a person gave none.
_GENERATED_TITLE = re.compile(
    r"^(?:microsoft powerpoint - .*|power ?point presentation|presentation\d*|slide \d+|untitled|title)?$",
    re.I,
)
_TITLES = frozenset(("title", "ctrTitle"))
_FOOTERS = frozenset(("dt", "ftr", "sldNum", "hdr"))
#: Placeholders whose paragraphs are the items of a list, unless they say that they have no bullet.
_BULLETED = frozenset(("body", "obj", ""))
_SPACES = re.compile(r"[ \t\u00a0\v]+")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a PowerPoint presentation. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(_blocks(package, limits), source)


FORMAT = DocumentFormat(
    MEDIA_TYPE,
    "a PowerPoint presentation",
    (".pptx", ".pptm", ".ppsx", ".potx"),
    parse,
    zip_folder="ppt",
    parser=PARSER,
)


def _blocks(package: OfficePackage, limits: Limits) -> Iterator[Block]:
    main = package.main_part("ppt/presentation.xml")
    parts = {id: target for _, target, id in package.relationships(main)}
    slides = list(dict.fromkeys(parts.get(id, "") for id in _slide_ids(package.read_xml(main))))
    if not slides:
        raise UnreadableFile("holds no slides")
    stated_title = package.title()
    if not _GENERATED_TITLE.match(stated_title):
        yield Title(stated_title)
    yield from package.property_blocks()
    hidden = 0
    reader = _SlideReader(package, limits)
    for number, part in enumerate(slides, 1):
        root = package.read_xml(part)
        if attribute_value(root, "show", "1") in {"0", "false"}:
            hidden += 1
            continue
        yield PageStart(number)
        yield from reader.blocks(root, part, number)
    if hidden:
        yield Note(f"{hidden} hidden slide{'s were' if hidden > 1 else ' was'} left out")


def _slide_ids(root: _Element) -> Iterator[str]:
    """Yield the ids of the relationships to the slides, in the order in which they are shown."""
    for element in root:
        if local_name(element) == "sldIdLst":
            for slide in element:
                yield _relation_id(slide, "id")


@dataclass(slots=True)
class _SlideReader:
    """Reads slides; counts the cells of all tables."""

    package: OfficePackage
    limits: Limits
    _cells: int = 0
    _layouts: dict[str, dict[str, _Box]] = field(default_factory=dict)
    _parts: dict[str, str] = field(
        default_factory=dict
    )  # of the slide in progress, by id of the relationship

    def blocks(self, root: _Element, part: str, number: int) -> Iterator[Block]:
        """Yield the title, the shapes and the notes of a slide."""
        relations = list(self.package.relationships(part))
        self._parts = {id: target for _, target, id in relations}
        yield from _take_struck(root)
        shapes = list(_shapes(root, self._placeholder_boxes(part)))
        titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
        title = " ".join(text for shape in titles for _, text, _ in _paragraphs(shape))
        # A slide without a title must not continue the section of the slide before it.
        yield Heading(1, title or f"Slide {number}")
        for shape in shapes:
            if shape not in titles and _placeholder(shape) not in _FOOTERS:
                yield from self._shape_blocks(shape)
        for kind, target, _ in relations:
            if kind == "notesSlide" and target in self.package:
                yield from self._notes(self.package.read_xml(target))

    def _placeholder_boxes(self, part: str) -> dict[str, _Box]:
        """Return where the placeholders of a slide stand by its layout, or that one's master: by number and kind."""
        layout = self.package.related_part(part, "slideLayout")
        if layout and layout not in self._layouts:
            boxes = self._layouts[layout] = {}
            with suppress(UnreadableFile):  # no text of the slide is in its layout
                for source in (self.package.related_part(layout, "slideMaster"), layout):
                    for shape in self.package.read_xml(source).iter("{*}sp") if source else ():
                        number, kind = _placeholder_names(shape)
                        if kind and (box := _stated_box(shape) or boxes.get(kind)):
                            boxes |= {kind: box, number: box} if source == layout else {kind: box}
        return self._layouts.get(layout, {})

    def _shape_blocks(self, shape: _Element) -> Iterator[Block]:
        if local_name(shape) == "sp":
            yield from _text_blocks(shape, _placeholder(shape) in _BULLETED)
            return
        for element in shape.iter("{*}tbl", "{*}chart", "{*}relIds"):
            match local_name(element):
                case "tbl":
                    yield self._table(element)
                case "chart":
                    target = self._parts.get(_relation_id(element, "id"), "")
                    if target in self.package:
                        yield from self._chart(self.package.read_xml(target))
                case "relIds":
                    target = self._parts.get(_relation_id(element, "dm"), "")
                    if target in self.package:
                        yield from diagram_blocks(self.package.read_xml(target))

    def _table(self, table: _Element) -> Table:
        rows: list[Row] = []
        spanned: set[int] = set()
        marked = False
        for element in table:
            if local_name(element) == "tblPr":
                marked = attribute_value(element, "firstRow") in {"1", "true"}
            elif local_name(element) == "tr":
                row, has_spans = self._row(element, rows[-1] if rows else ())
                if has_spans:
                    spanned.add(len(rows))
                rows.append(row)
        # PowerPoint marks the first row of every table it makes; a header over two rows is seen by its cells.
        return table_from_grid(rows, frozenset(spanned), int(marked and 0 not in spanned))

    def _row(self, element: _Element, above: Row) -> tuple[Row, bool]:
        """Return a row's cells, those that are merged with others filled, and whether one spans columns."""
        cells: list[str] = []
        has_spans = False
        for cell in element:
            if local_name(cell) != "tc":
                continue
            self._cells += 1
            self.limits.check_cells(self._cells)
            if attribute_value(cell, "hMerge") in {"1", "true"} and cells:
                cells.append(cells[-1])
            elif attribute_value(cell, "vMerge") in {"1", "true"} and len(cells) < len(above):
                cells.append(above[len(cells)])
            else:
                text = " ".join(" ".join(text for _, text, _ in _paragraphs(cell)).split())
                has_spans |= bool(text) and attribute_value(cell, "gridSpan", "1") != "1"
                cells.append(text)
        return tuple(cells), has_spans

    def _chart(self, root: _Element) -> Iterator[Block]:
        """Yield the values of a chart as a table: a row for each category, a column for each series."""
        title = ""
        for element in root.iter("{*}title"):
            parent = element.getparent()
            if parent is not None and local_name(parent) == "chart":
                title = " ".join("".join(map(str, element.itertext("{*}t", "{*}v"))).split())
        names: list[str] = []
        labels: dict[int, str] = {}
        columns: list[dict[int, str]] = []
        for series in root.iter("{*}ser"):
            children = {local_name(child): child for child in series}
            names.append(" ".join(_points(children.get("tx")).values()) or f"Series {len(names) + 1}")
            for place, label in _points(children.get("cat", children.get("xVal"))).items():
                labels.setdefault(place, label)
            values = _points(children.get("val", children.get("yVal")))
            columns.append(values)
            self._cells += len(values)
            self.limits.check_cells(self._cells)
        places = sorted({place for column in columns for place in column})
        if places:
            rows = [(labels.get(n, str(n + 1)), *(column.get(n, "") for column in columns)) for n in places]
            yield Table(("", *names), tuple(rows), title)
        elif title:
            yield Paragraph(title)

    def _notes(self, root: _Element) -> Iterator[Block]:
        texts = [
            text
            for shape in _shapes(root, {})
            if _placeholder(shape) == "body"
            for _, text, _ in _paragraphs(shape)
        ]
        if texts:
            yield Paragraph("Notes: " + "\n".join(texts))


def _take_struck(root: _Element) -> Iterator[LeftOut]:
    """Yield the text that is struck out, and take it out of the tree."""
    for properties in root.iter("{*}rPr"):
        run = properties.getparent()
        if attribute_value(properties, "strike", "noStrike") != "noStrike" and run is not None:
            for text in run.iterchildren("{*}t"):
                yield LeftOut("struck out", text.text or "")
                text.text = ""


#: Left, top, width and height.
_Box = tuple[int, int, int, int]


def _shapes(root: _Element, placeholders: Mapping[str, _Box]) -> Iterator[_Element]:
    """Yield the shapes of a slide by their places, those of a group together, without recursion."""
    waiting = list(root.iter("{*}spTree"))[:1]
    while waiting:
        element = waiting.pop()
        match local_name(element):
            case "spTree" | "grpSp" | "Choice" | "AlternateContent":
                children = [
                    child for child in element if local_name(child) != "Fallback" and _is_filled(child)
                ]
                waiting.extend(_by_place(children, placeholders)[::-1])
            case "sp" | "graphicFrame":
                yield element


def _is_filled(shape: _Element) -> bool:
    """Return whether a shape holds what is read: a picture, or a panel behind all others, has no place among them."""
    return any(
        local_name(inner) != "t" or inner.text
        for inner in shape.iter("{*}t", "{*}tbl", "{*}chart", "{*}relIds")
    )


def _by_place(shapes: Sequence[_Element], placeholders: Mapping[str, _Box]) -> list[_Element]:
    """Return shapes in rows from the top, each in columns from the left, and each of these from its top.

    A shape whose place is not stated stays behind the one that is stored before it.
    """
    boxes: list[tuple[_Element, _Box]] = []
    last = (0, 0, 0, 0)
    for shape in shapes:
        names = _placeholder_names(shape)
        last = _stated_box(shape) or next(
            (placeholders[name] for name in names if name in placeholders), last
        )
        boxes.append((shape, last))
    # A heading that touches the text below it is no row of its own, so it stays with the text of its column.
    return [
        shape
        for row in _bands(boxes, 1, 0)
        for column in _bands(row, 0, 0.1)
        for shape, _ in sorted(column, key=lambda placed: placed[1][1::-1])
    ]


def _bands(
    boxes: Iterable[tuple[_Element, _Box]], axis: int, slack: float
) -> list[list[tuple[_Element, _Box]]]:
    """Return boxes in bands along an axis (0: columns, 1: rows) with nothing between; the share ``slack`` of a box
    may reach into the next."""
    bands: list[list[tuple[_Element, _Box]]] = []
    end = -math.inf
    for placed in sorted(boxes, key=lambda placed: placed[1][axis]):
        start, length = placed[1][axis], placed[1][axis + 2]
        if start + length * slack > end:
            bands.append([])
        bands[-1].append(placed)
        end = max(end, start + length * (1 - slack))
    return bands


def _stated_box(shape: _Element) -> _Box | None:
    """Return the first box that a shape, or what is in a group, states."""
    for transform in shape.iter("{*}xfrm"):
        values = [
            attribute_value(child, name)
            for kind, names in (("off", "xy"), ("ext", ("cx", "cy")))
            for child in transform.iterchildren(f"{{*}}{kind}")
            for name in names
        ]
        if len(values) == 4 and all(re.fullmatch(r"-?\d{1,12}", value) for value in values):
            left, top, width, height = map(int, values)
            return left, top, width, height
    return None


def _placeholder_names(shape: _Element) -> tuple[str, str]:
    """Return number and kind of the placeholder that a shape fills, as keys; "" for another shape."""
    for properties in shape.iterchildren("{*}nvSpPr", "{*}nvGraphicFramePr"):
        for element in properties.iter("{*}ph"):
            kind = attribute_value(element, "type")
            return f"number {attribute_value(element, 'idx', '0')}", "body" if kind in _BULLETED else kind
    return "", ""


def _placeholder(shape: _Element) -> str | None:
    """Return the kind of placeholder that a shape fills, "" where it has no kind, None for another shape."""
    for properties in shape.iterchildren("{*}nvSpPr", "{*}nvGraphicFramePr"):
        for element in properties.iter("{*}ph"):
            return attribute_value(element, "type")
    return None


def _text_blocks(shape: _Element, bulleted: bool) -> Iterator[Block]:
    items: list[Item] = []
    for level, text, bullet in _paragraphs(shape):
        if bullet if bullet is not None else bulleted:
            items.append(Item(text, level))
            continue
        if items:
            yield ListBlock(tuple(items))
            items = []
        yield Paragraph(text)
    # A placeholder with one paragraph is a sentence, however it is drawn.
    if len(items) == 1 and bulleted:
        yield Paragraph(items[0].text)
    elif items:
        least = min(item.depth for item in items)
        yield ListBlock(tuple(Item(item.text, item.depth - least) for item in items))


def _paragraphs(shape: _Element) -> Iterator[tuple[int, str, bool | None]]:
    """Yield level, text, and whether there is a bullet (None: not stated) of each paragraph with text."""
    for paragraph in shape.iter("{*}p"):
        level, bullet = 0, None
        parts: list[str] = []
        for element in paragraph:
            match local_name(element):
                case "pPr":
                    stated = attribute_value(element, "lvl", "0")
                    level = int(stated) if re.fullmatch(r"[0-8]", stated) else 0
                    marks = {local_name(child) for child in element}
                    if "buNone" in marks:
                        bullet = False
                    elif marks & {"buChar", "buAutoNum", "buBlip"}:
                        bullet = True
                case "br":
                    parts.append("\n")
                case "r" | "fld":
                    text = "".join(part.text or "" for part in element.iterchildren("{*}t"))
                    shift = next((attribute_value(child, "baseline") for child in element), "")
                    parts.append(superscript(text, parts[-1] if parts else "") if read_count(shift) else text)
                case "m":
                    parts.append(office_formula_text(element))
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(parts).split("\n"))
        if text := "\n".join(line for line in lines if line):
            yield level, text, bullet


def _points(element: _Element | None) -> dict[int, str]:
    """Return the stored values of a chart's reference, by their places."""
    points: dict[int, str] = {}
    for point in element.iter("{*}pt") if element is not None else ():
        place = attribute_value(point, "idx")
        value = next((child.text or "" for child in point if local_name(child) == "v"), "")
        # Where categories have several levels, the innermost comes first.
        if re.fullmatch(r"\d{1,7}", place) and value.strip():
            points.setdefault(int(place), _shorten_number(value.strip()))
    if not points and element is not None and (text := "".join(map(str, element.itertext("{*}v"))).strip()):
        points[0] = text
    return points


def _shorten_number(text: str) -> str:
    """Return a stored number without the digits that binary fractions add: 0.30000000000000004 is 0.3."""
    if not re.fullmatch(r"-?\d+\.\d{10,}(?:[eE][+-]?\d+)?", text):
        return text
    return f"{float(text):.12g}"


def diagram_blocks(root: _Element) -> Iterator[Block]:
    """Yield the texts of a diagram (SmartArt)."""
    texts = [text for point in root.iter("{*}pt") for _, text, _ in _paragraphs(point)]
    if texts:
        yield ListBlock(tuple(map(Item, texts)))


def _relation_id(element: _Element, name: str) -> str:
    """Return the id of a relationship: an attribute that has a namespace. One without may be a number of its own."""
    return next((str(value) for key, value in element.attrib.items() if str(key).endswith("}" + name)), "")
