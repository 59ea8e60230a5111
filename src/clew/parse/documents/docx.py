"""Word documents, read from their XML.

Read with lxml rather than python-docx, which leaves out what a reader of the page sees: printed list numbers,
footnotes, inserted text, text boxes, content controls (decision 0017). Every part of the container is checked before
it is unpacked (:mod:`clew.parse.documents.office_package`). The numbers that Word prints before headings and list
items are not in the text, so they are counted here (:class:`ListNumbering`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.types import ParsedDocument, Table
from clew.parse.documents.blocks import (
    Block,
    Caption,
    Heading,
    Item,
    LeftOut,
    ListBlock,
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
from clew.parse.documents.pptx import diagram_blocks
from clew.parse.documents.tables import Row, table_from_grid

if TYPE_CHECKING:
    from lxml.etree import _Element

LEVELS = 9
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class ListLevel:
    """The numbering of one level of a list; ``text`` has %1 to %9 in place of the numbers of the levels."""

    form: str = "decimal"
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class ListNumbering:
    """The lists of a document, and the number that each has reached."""

    _levels: dict[str, dict[int, ListLevel]] = field(default_factory=dict)  # by list (numId)
    _shared: dict[str, str] = field(default_factory=dict)  # list -> the definition whose count it shares
    _restarts: dict[str, dict[int, int]] = field(default_factory=dict)  # list -> first number by level
    _counts: dict[str, list[int | None]] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)

    @classmethod
    def from_xml(cls, root: _Element | None) -> ListNumbering:
        """Read numbering.xml; a document without one numbers nothing."""
        numbering = cls()
        abstract: dict[str, dict[int, ListLevel]] = {}
        for element in root if root is not None else ():
            if local_name(element) == "abstractNum":
                abstract[attribute_value(element, "abstractNumId")] = dict(
                    _read_level(child) for child in element if local_name(child) == "lvl"
                )
            elif local_name(element) == "num":
                numbering._define(element, abstract)
        return numbering

    def _define(self, element: _Element, abstract: dict[str, dict[int, ListLevel]]) -> None:
        name = attribute_value(element, "numId")
        for child in element:
            if local_name(child) == "abstractNumId":
                self._shared[name] = attribute_value(child, "val")
                self._levels[name] = dict(abstract.get(self._shared[name], {}))
            elif local_name(child) == "lvlOverride":
                depth = _parse_number(attribute_value(child, "ilvl"))
                for inner in child:
                    if local_name(inner) == "startOverride":
                        self._restarts.setdefault(name, {})[depth] = _parse_number(
                            attribute_value(inner, "val"), 1
                        )
                    elif local_name(inner) == "lvl":
                        self._levels.setdefault(name, {}).update([_read_level(inner)])

    def next_label(self, name: str, depth: int) -> str:
        """Count a paragraph of the list ``name`` at ``depth`` (from 0), and return the number printed before it.

        The number is ``-`` for a bullet, and "" where nothing is printed or the list is not defined.
        """
        levels = self._levels.get(name, {})
        level = levels.get(depth)
        if level is None:
            return ""
        counts = self._counts.setdefault(self._shared.get(name, name), [None] * LEVELS)
        if name not in self._started:
            self._started.add(name)
            for place, start in self._restarts.get(name, {}).items():
                counts[place:] = [start - 1 if place < LEVELS else None, *[None] * (LEVELS - place - 1)]
        before = counts[depth]
        counts[depth] = level.start if before is None else before + 1
        counts[depth + 1 :] = [None] * (LEVELS - depth - 1)
        if level.form == "bullet":
            return "-"
        if level.form == "none":
            return _PLACE.sub("", level.text).strip()

        def number_of_level(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            other = levels.get(place, ListLevel())
            count = counts[place]
            return format_list_number(other.start if count is None else count, other.form)

        return _PLACE.sub(number_of_level, level.text).strip()


def _read_level(element: _Element) -> tuple[int, ListLevel]:
    values = {local_name(child): attribute_value(child, "val") for child in element}
    return (
        min(_parse_number(attribute_value(element, "ilvl")), LEVELS - 1),
        ListLevel(
            values.get("numFmt", "decimal"),
            values.get("lvlText", ""),
            _parse_number(values.get("start", "1"), 1),
        ),
    )


def _parse_number(text: str, default: int = 0) -> int:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else default


_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "m cm d cd c xc l xl x ix v iv i".split(),
        strict=True,
    )
)


def format_list_number(number: int, form: str) -> str:
    """Return a list number in one of Word's forms; as a decimal number in a form that is not supported.

    >>> [formatted(n, f) for n, f in ((4, "lowerRoman"), (28, "upperLetter"), (3, "decimalZero"))]
    ['iv', 'BB', '03']
    """
    if form in {"lowerLetter", "upperLetter"} and 1 <= number <= 780:
        # Word doubles the letter after z: aa, bb, cc.
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form in {"lowerRoman", "upperRoman"} and 1 <= number <= 3999:
        roman = ""
        for value, letters in _ROMAN:
            roman += letters * (number // value)
            number %= value
        return roman.upper() if form == "upperRoman" else roman
    return f"{number:02d}" if form == "decimalZero" else str(number)


PARSER = "docx/4"
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_HEADING_STYLE = re.compile(r"^heading ?([1-9])$", re.I)
#: That of Word, and those of pandoc.
_CAPTION_STYLES = frozenset(("caption", "table caption", "image caption"))
_CONTENTS_STYLE = re.compile(r"^(?:toc ?\d|toc heading|table of figures|index ?\d)$", re.I)
#: Titles that programs write into the properties where a person gave none.
_GENERATED_TITLE = re.compile(
    r"^(?:microsoft word - .*|word document|document\d*|untitled|title|normal)?$", re.I
)
#: Elements that may stand between the body and a paragraph; rows and cells only of layout tables.
_BODY_WRAPPERS = frozenset(
    "sdt sdtContent customXml ins moveTo smartTag AlternateContent Choice tr tc".split()
)
#: Elements that may stand between a table and a row, or a row and a cell.
_TABLE_WRAPPERS = frozenset("sdt sdtContent customXml ins".split())
#: Deleted text, moved-away text, field codes, and the second version of text that is stored twice.
_UNSEEN = frozenset("del moveFrom instrText delText delInstrText Fallback pPr rPr sdtPr".split())
#: Properties of a run whose text is no text of the document, and why.
_REASONS = {"strike": "struck out", "dstrike": "struck out", "vanish": "hidden"}
_LITERALS = {"tab": " ", "cr": "\n", "noBreakHyphen": "-", "ptab": " "}
#: Properties of the mark at the end of a paragraph that is not shown at all once its text is not.
_GONE = frozenset(("vanish", "del", "moveFrom"))
#: What is struck out with its run.
_STRUCK = frozenset(("t", "br", "footnoteReference", "endnoteReference", *_LITERALS))
_SPACES = re.compile(r"[ \t\u00a0]+")
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a Word document. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(_blocks(package, limits), source)


FORMAT = DocumentFormat(
    MEDIA_TYPE, "a Word document", (".docx", ".docm", ".dotx"), parse, zip_folder="word", parser=PARSER
)


def _blocks(package: OfficePackage, limits: Limits) -> Iterator[Block]:
    main = package.main_part("word/document.xml")
    root = package.read_xml(main)

    def read_part(kind: str) -> _Element | None:
        name = package.related_part(main, kind)
        return package.read_xml(name) if name else None

    styles, notes = read_part("styles"), [read_part("footnotes"), read_part("endnotes")]
    marks = _marks_of_styles(styles)
    for part in (root, *notes):
        yield from _take_unseen(part, marks)
    diagrams = {
        id: list(diagram_blocks(package.read_xml(target)))
        for kind, target, id in package.relationships(main)
        if kind == "diagramData" and target in package
    }
    walker = _BodyWalker(
        Styles.from_xml(styles),
        ListNumbering.from_xml(read_part("numbering")),
        Footnotes.from_xml(*notes),
        limits,
        diagrams,
    )
    stated_title = package.title()
    blocks = list(walker.blocks(root))
    # The title on the page goes before that of the properties, which often survives from a template.
    if walker.title or not _GENERATED_TITLE.match(stated_title):
        yield Title(walker.title or stated_title)
    yield from package.property_blocks()
    shown = {block.text for block in blocks if isinstance(block, Heading | Paragraph)}
    names = [target for kind, target, _ in package.relationships(main) if kind in {"header", "footer"}]
    for part in [package.read_xml(name) for name in names if name in package]:
        yield from _take_unseen(part, marks)
        yield from _running_lines(part, shown)
    for control in filter(_is_table_of_contents, root.iter("{*}sdt")):
        yield LeftOut("table of contents", element_text(control, Footnotes()))
    yield from blocks


#: A field that prints the number of a page, or how many there are; and what stands around such numbers.
_PAGE_FIELD = re.compile(r"\b(?:PAGE|NUMPAGES|SECTIONPAGES)\b", re.IGNORECASE)
_PAGE_NUMBERS = re.compile(
    r"(?:(?:^|(?<=[|–—·,\t]))\s*[^\W\d_]+\.?\s*)?\ufffc(?:\s*(?:[^\W\d_]+|/)?\s*\ufffc)?"
)


def _running_lines(root: _Element, known: set[str]) -> Iterator[Block]:
    """Yield each line of a header or footer, without page numbers; those that are ``known`` are left out."""
    _mark_page_numbers(root)
    for line in element_text(root, Footnotes()).split("\n"):
        text = _PAGE_NUMBERS.sub("", line).strip(" \t|–—·,")
        if text:
            yield LeftOut("headers and footers", text) if text in known else Paragraph(text)
            known.add(text)


def _mark_page_numbers(root: _Element) -> None:
    """Put a mark in place of the numbers of pages that fields print."""
    code, is_result = "", False
    for element in root.iter("{*}fldSimple", "{*}fldChar", "{*}instrText", "{*}t"):
        match local_name(element):
            case "fldSimple" if _PAGE_FIELD.search(attribute_value(element, "instr")):
                for text in element.iter("{*}t"):
                    text.text = "\ufffc"
            case "fldChar":
                kind = attribute_value(element, "fldCharType")
                code, is_result = ("", False) if kind == "begin" else (code, kind == "separate")
            case "instrText":
                code += element.text or ""
            case "t" if is_result and _PAGE_FIELD.search(code):
                element.text = "\ufffc"


# Text that is not in force, or not seen


def _marks_of_styles(root: _Element | None) -> dict[str, dict[str, bool]]:
    """Return by the id of a style, of paragraphs or characters, which of ``_REASONS`` it sets or lifts."""
    elements = {attribute_value(style, "styleId"): style for style in _children(root, "style")}
    marks: dict[str, dict[str, bool]] = {}
    for name, style in elements.items():
        family = [style]
        while (
            len(family) < _MAX_ANCESTRY
            and (above := elements.get(_value_of(family[0], "basedOn"))) is not None
        ):
            family.insert(0, above)
        if stated := {mark: value for member in family for mark, value in _stated_marks(member).items()}:
            marks[name] = stated
    return marks


def _take_unseen(root: _Element | None, styles: dict[str, dict[str, bool]]) -> Iterator[LeftOut]:
    """Yield the text that is struck out, hidden or deleted, and take the former two out of the tree."""
    unseen: list[tuple[_Element, str]] = []
    for run in root.iter("{*}r") if root is not None else ():
        paragraph = next(run.iterancestors("{*}p"), None)
        marks = {
            **styles.get(_property_value(paragraph, "pPr", "pStyle"), {}),
            **styles.get(_property_value(run, "rPr", "rStyle"), {}),
            **_stated_marks(run),
        }
        unseen += [(run, _REASONS[name]) for name, is_set in marks.items() if is_set][:1]
    for run, reason in unseen:
        yield LeftOut(reason, "".join(text.text or "" for text in run.iter("{*}t")))
        # A shape that is anchored in struck-out text is not struck out.
        for child in [child for child in run if reason == "hidden" or local_name(child) in _STRUCK]:
            run.remove(child)
    for removed in root.iter("{*}del", "{*}moveFrom") if root is not None else ():
        for text in removed.iter("{*}delText", "{*}t"):
            yield LeftOut("deleted", text.text or "")


def _stated_marks(owner: _Element) -> dict[str, bool]:
    """Return which of ``_REASONS`` the properties of a run or style set or lift."""
    return {
        local_name(child): attribute_value(child, "val", "1") not in {"0", "false", "off"}
        for properties in _children(owner, "rPr")
        for child in properties
        if local_name(child) in _REASONS
    }


def _property_value(element: _Element | None, properties: str, name: str) -> str:
    return next((_value_of(child, name) for child in _children(element, properties)), "")


def _value_of(element: _Element, name: str) -> str:
    return next((attribute_value(child, "val") for child in _children(element, name)), "")


# Styles


@dataclass(frozen=True, slots=True)
class Style:
    """A paragraph style: its name, and its outline level and list where it sets them."""

    name: str = ""
    based_on: str = ""
    outline: int | None = None
    list_id: str = ""
    list_depth: int | None = None


@dataclass(frozen=True, slots=True)
class Styles:
    """The paragraph styles by id, each with what it inherits."""

    by_id: dict[str, Style]
    default: str = ""

    @classmethod
    def from_xml(cls, root: _Element | None) -> Styles:
        """Read styles.xml; a document without one has no styles."""
        styles: dict[str, Style] = {}
        default = ""
        for element in root if root is not None else ():
            if local_name(element) != "style" or attribute_value(element, "type", "paragraph") != "paragraph":
                continue
            style_id = attribute_value(element, "styleId")
            styles[style_id] = _read_style(element)
            if attribute_value(element, "default") in {"1", "true"}:
                default = style_id
        return cls({style_id: _with_inherited(styles, style_id) for style_id in styles}, default)

    def style_of(self, properties: _Element | None) -> Style:
        """Return the style that paragraph properties name."""
        names = (attribute_value(child, "val") for child in _children(properties, "pStyle"))
        return self.by_id.get(next(names, self.default), Style())


def _read_style(element: _Element) -> Style:
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
    return Style(name, based_on, _outline_of(properties), list_id, depth)


#: Styles that one is based on, each on the next. Word allows fewer.
_MAX_ANCESTRY = 50


def _with_inherited(styles: dict[str, Style], style_id: str) -> Style:
    style, visited = styles[style_id], {style_id}
    outline, list_id, depth, above = style.outline, style.list_id, style.list_depth, style.based_on
    while above in styles and above not in visited and len(visited) < _MAX_ANCESTRY:
        visited.add(above)
        parent = styles[above]
        outline = parent.outline if outline is None else outline
        list_id = list_id or parent.list_id
        depth = parent.list_depth if depth is None else depth
        above = parent.based_on
    return Style(style.name, style.based_on, outline, list_id, depth)


def _outline_of(properties: _Element | None) -> int | None:
    """Return the outline level, 0 to 8; 9 means body text, also in a heading style. None where none is set."""
    for child in _children(properties, "outlineLvl"):
        value = attribute_value(child, "val")
        return int(value) if re.fullmatch(r"\d", value) else None
    return None


def _list_of(properties: _Element | None) -> tuple[str, int | None]:
    """Return the list that paragraph properties name ("0" takes one out of its style's list) and the depth."""
    for numbering in _children(properties, "numPr"):
        values = {local_name(child): attribute_value(child, "val") for child in numbering}
        depth = values.get("ilvl", "")
        is_number = re.fullmatch(r"\d", depth)
        return values.get("numId", ""), min(int(depth), LEVELS - 1) if is_number else None
    return "", None


def _children(element: _Element | None, name: str) -> Iterator[_Element]:
    return (child for child in (element if element is not None else ()) if local_name(child) == name)


# The body


@dataclass(slots=True)
class _BodyWalker:
    """Turns the body into blocks, in one pass."""

    styles: Styles
    numbering: ListNumbering
    footnotes: Footnotes
    limits: Limits
    diagrams: Mapping[str, Sequence[Block]]  # by the id of their relationship
    title: str = ""  # the first paragraph in the style "Title"
    _items: list[Item] = field(default_factory=list)  # of the open list
    _cells: int = 0

    def blocks(self, root: _Element) -> Iterator[Block]:
        """Yield the blocks of the body in order; footnotes follow the block that refers to them."""
        for element in _body_elements(root):
            if local_name(element) == "tbl":
                yield from self._end_list()
                table = read_table(element, self.footnotes, self.limits, self._cells)
                self._cells += sum(map(len, table.rows))
                yield table
                yield from map(Paragraph, self.footnotes.take_pending())
            else:
                yield from self._paragraph_blocks(element)
            for diagram in element.iter("{*}relIds"):
                yield from self._end_list()
                yield from self.diagrams.get(attribute_value(diagram, "dm"), ())
        yield from self._end_list()

    def _paragraph_blocks(self, element: _Element) -> Iterator[Block]:
        properties = next(_children(element, "pPr"), None)
        style = self.styles.style_of(properties)
        text, boxes = paragraph_text(element, self.footnotes)
        mark = next(_children(properties, "rPr"), None)
        is_gone = not text and any(local_name(child) in _GONE for child in (mark if mark is not None else ()))
        if _CONTENTS_STYLE.match(style.name.lower()):
            yield LeftOut("table of contents", text)
        elif not is_gone:
            yield from self._text_blocks(text, properties, style)
        for box in boxes:
            yield from self._end_list()
            yield Paragraph(box)

    def _text_blocks(self, text: str, properties: _Element | None, style: Style) -> Iterator[Block]:
        style_name = style.name.lower()
        list_id, depth = _list_of(properties)
        list_id = list_id or style.list_id
        depth = next((level for level in (depth, style.list_depth) if level is not None), 0)
        number = self.numbering.next_label(list_id, depth) if list_id not in {"", "0"} else ""
        if not text:  # its number is printed all the same
            return
        heading_level = _heading_level(style_name, _outline_of(properties), style)
        if heading_level:
            yield from self._end_list()
            if style_name == "title":
                self.title = self.title or text
            yield Heading(heading_level, text if number in {"", "-"} else f"{number} {text}")
        elif number:
            self._items.append(Item(text, depth, number))
            return
        else:
            yield from self._end_list()
            yield Caption(text) if style_name in _CAPTION_STYLES else Paragraph(text)
        yield from map(Paragraph, self.footnotes.take_pending())

    def _end_list(self) -> Iterator[Block]:
        if self._items:
            least = min(item.depth for item in self._items)
            yield ListBlock(tuple(Item(item.text, item.depth - least, item.marker) for item in self._items))
            self._items = []
            yield from map(Paragraph, self.footnotes.take_pending())


def _heading_level(style_name: str, outline: int | None, style: Style) -> int:
    """Return the level of a heading, 0 for other paragraphs."""
    if style_name == "title":
        return 1
    if outline is None:
        if heading := _HEADING_STYLE.match(style_name):
            return int(heading[1])
        outline = style.outline
    return 0 if outline is None or outline >= LEVELS else outline + 1


def _body_elements(root: _Element) -> Iterator[_Element]:
    """Yield the paragraphs and tables of a document, out of the elements around them, without recursion."""
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
        elif name == "tbl" or (name in _BODY_WRAPPERS and not _is_table_of_contents(element)):
            open_elements.append(iter(element))


def _is_table_of_contents(control: _Element) -> bool:
    for properties in _children(control, "sdtPr"):
        for part in _children(properties, "docPartObj"):
            galleries = (attribute_value(child, "val") for child in _children(part, "docPartGallery"))
            return "Table of Contents" in galleries
    return False


# Text


@dataclass(slots=True)
class Footnotes:
    """Footnotes and endnotes by kind and id. Each is printed once, after the block that refers to it."""

    _texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _pending: list[str] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def from_xml(cls, footnotes: _Element | None, endnotes: _Element | None) -> Footnotes:
        """Read footnotes.xml and endnotes.xml, where they exist."""
        notes = cls()
        for kind, root in (("footnote", footnotes), ("endnote", endnotes)):
            for element in root if root is not None else ():
                # Separators between the text and its notes are stored as notes, too.
                is_separator = attribute_value(element, "type").startswith(("sep", "cont"))
                if local_name(element) == kind and not is_separator:
                    notes._texts[kind, attribute_value(element, "id")] = element_text(element, cls())
        return notes

    def cite(self, kind: str, note_id: str) -> str:
        """Return the mark of a note, "" for one without text; its text waits for :meth:`take_pending`."""
        text = self._texts.pop((kind, note_id), "")
        if not text:
            return ""
        self._count += 1
        self._pending.append(f"[{self._count}] {text}")
        return f"[{self._count}]"

    def take_pending(self) -> list[str]:
        """Return the notes that were cited since the last call."""
        pending, self._pending = self._pending, []
        return pending


def paragraph_text(element: _Element, notes: Footnotes, *, with_boxes: bool = True) -> tuple[str, list[str]]:
    """Return the text that a paragraph shows, and, if wanted, the texts of the boxes that are anchored in it."""
    from lxml import etree

    parts: list[str] = []
    boxes: list[str] = []
    is_raised = False
    walk = etree.iterwalk(element, events=("start",))
    for _, inner in walk:
        name = local_name(inner)
        if name == "r":
            is_raised = _property_value(inner, "rPr", "vertAlign") == "superscript"
        if name in _UNSEEN:
            walk.skip_subtree()
        elif name == "oMath":
            walk.skip_subtree()
            parts.append(office_formula_text(inner))
        elif name == "txbxContent":
            walk.skip_subtree()
            if with_boxes and (text := element_text(inner, notes)):
                boxes.append(text)
        elif name == "t":
            text = inner.text or ""
            parts.append(superscript(text, parts[-1] if parts else "") if is_raised else text)
        elif name in _LITERALS:
            parts.append(_LITERALS[name])
        elif name == "br" and attribute_value(inner, "type") not in {"page", "column"}:
            parts.append("\n")
        elif name in {"footnoteReference", "endnoteReference"}:
            parts.append(notes.cite(name.removesuffix("Reference"), attribute_value(inner, "id")))
    return _clean_text("".join(parts)), boxes


def element_text(element: _Element, notes: Footnotes) -> str:
    """Return the text of all paragraphs in ``element``, one a line, those of boxes in boxes included."""
    from lxml import etree

    lines: list[str] = []
    walk = etree.iterwalk(element, events=("start",))
    for _, inner in walk:
        name = local_name(inner)
        if name == "Fallback":  # the same box, for programs that know another form of it
            walk.skip_subtree()
        elif name == "p":
            # The paragraphs of its boxes come later in this walk: boxes in boxes in boxes would double it each time.
            text, _ = paragraph_text(inner, notes, with_boxes=False)
            if text:
                lines.append(text)
    return "\n".join(lines)


def _clean_text(text: str) -> str:
    lines = (_SPACES.sub(" ", line).strip() for line in text.translate(_INVISIBLE).split("\n"))
    return "\n".join(line for line in lines if line)


# Tables


def is_layout_table(table: _Element) -> bool:
    """Return whether a table only arranges text: it has one row, one column, or tables within it."""
    rows = list(_table_children(table, "tr"))
    if len(rows) < 2 or all(len(list(_table_children(row, "tc"))) < 2 for row in rows):
        return True
    nested = (inner for inner in table.iter("{*}tbl") if inner is not table)
    return any(len(list(_table_children(inner, "tr"))) > 1 for inner in nested)


def read_table(table: _Element, notes: Footnotes, limits: Limits, cells: int = 0) -> Table:
    """Return a table with its merged cells filled; ``cells`` counts those of the document's tables before it."""
    rows: list[Row] = []
    is_header: list[bool] = []
    spanned: set[int] = set()
    for element in _table_children(table, "tr"):
        row, has_spans = _read_row(element, rows[-1] if rows else (), notes, limits, cells)
        cells += len(row)
        if not any(row):
            continue
        if has_spans:
            spanned.add(len(rows))
        rows.append(row)
        is_header.append(_is_header(element))
    header = next((number for number, marked in enumerate(is_header) if not marked), 0)
    return table_from_grid(rows, frozenset(spanned), header)


def _read_row(
    element: _Element, above: Row, notes: Footnotes, limits: Limits, cells_before: int
) -> tuple[Row, bool]:
    """Return a row's cells, each as often as it spans columns, and whether one spans several."""
    cells: list[str] = [""] * _skipped_columns(element)
    has_spans = False
    for cell in _table_children(element, "tc"):
        width, merge = 1, ""
        for properties in _children(cell, "tcPr"):
            for child in properties:
                if local_name(child) == "gridSpan":
                    width = _parse_count(attribute_value(child, "val"))
                elif local_name(child) == "vMerge":
                    merge = attribute_value(child, "val", "continue")
        limits.check_cells(cells_before + len(cells) + width)
        text = " ".join(element_text(cell, notes).split())
        if merge == "continue":
            for _ in range(width):
                cells.append(above[len(cells)] if len(cells) < len(above) else "")
        else:
            cells.extend([text] * width)
            has_spans |= width > 1 and bool(text)
    return tuple(cells), has_spans


def _skipped_columns(row: _Element) -> int:
    """Return how many columns a row leaves out at its start."""
    for properties in _children(row, "trPr"):
        for child in _children(properties, "gridBefore"):
            return _parse_count(attribute_value(child, "val"), 0)
    return 0


def _is_header(row: _Element) -> bool:
    for properties in _children(row, "trPr"):
        values = (attribute_value(child, "val", "1") for child in _children(properties, "tblHeader"))
        return any(value not in {"0", "false", "off"} for value in values)
    return False


def _parse_count(text: str, default: int = 1) -> int:
    return min(int(text), 1_000) if re.fullmatch(r"\d{1,6}", text) else default


def _table_children(element: _Element, name: str) -> Iterator[_Element]:
    """Yield the children called ``name``, out of the content controls and insertions around them."""
    waiting = list(element)[::-1]
    while waiting:
        child = waiting.pop()
        if local_name(child) == name:
            yield child
        elif local_name(child) in _TABLE_WRAPPERS:
            waiting.extend(list(child)[::-1])
