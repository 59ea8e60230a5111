r"""RTF, as Microsoft's specification 1.9.1 describes it: headings by style and outline level, lists, tables, notes.

One pass over the tokens with a stack of groups. Groups that hold no text of the page (fonts, pictures, embedded
objects, headers and footers, instructions of fields) are skipped; nothing in them is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
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
from clew.parse.documents.encoding import page_encoding
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import Row, table_from_grid

PARSER = "rtf/4"
MEDIA_TYPE = "application/rtf"

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)",
    re.S,
)
#: Groups whose text is not on the page.
_SKIPPED = frozenset(
    """colortbl pict objdata object themedata colorschememapping datastore generator header headerl headerr headerf
    footer footerl footerr footerf footnotesep annotation atnid atnauthor fldinst xe tc txe rxe filetbl revtbl
    listtable listoverridetable rsidtbl nonshppict shppict pn private upr operator company creatim revtim printim
    subject doccomm keywords category comment pgdsctbl latentstyles mmath xmlnstbl template pnseclvl do
    bkmkstart bkmkend formfield datafield ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn sp""".split()
)
#: Groups that programs may ignore and that have text of the page in them.
_WANTED = frozenset("shpinst footnote shptxt".split())
#: Words for text that is no text of the document, and why.
_REASONS = {"strike": "struck out", "striked": "struck out", "v": "hidden", "deleted": "deleted"}
_CHARACTERS = {
    "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•",
    "emspace": " ", "enspace": " ", "qmspace": " ", "tab": " ", "line": "\n", "lbr": "\n",
}  # fmt: skip
_CODE_PAGES = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250",
}  # fmt: skip
_HEADING_STYLE = re.compile(r"^heading ?([1-9])$", re.I)
_CONTENTS_STYLE = re.compile(
    r"^(?:toc ?\d|toc heading|contents (?:\d|heading)|table of figures|index ?\d)$", re.I
)
_GENERATED_TITLE = re.compile(r"^(?:microsoft word - .*|document\d*|untitled|title|normal)?$", re.I)
_BULLETS = frozenset("•·●○◦▪■–—*o§\uf0b7\uf0a7-")
_SPACES = re.compile(r"[ \t\u00a0]+")
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}
_SYMBOL_CHARSET = 2
_MAX_LEVEL = 9


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an RTF file. Raises UnreadableFile."""
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(rtf_blocks(data, limits), source)


FORMAT = DocumentFormat(MEDIA_TYPE, "an RTF document", (".rtf",), parse, magic=b"{\\rtf", parser=PARSER)


def rtf_blocks(data: bytes, limits: Limits) -> Iterator[Block]:
    """Yield the blocks of an RTF file. Raises UnreadableFile."""
    reader = _Reader(data, limits)
    blocks = list(reader.blocks())
    if not _GENERATED_TITLE.match(reader.title.strip()):
        yield Title(reader.title)
    yield from blocks
    if reader.is_cut_off:
        yield Note("it ends in the middle of a group: the file is probably cut off")


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds within a group, and ends with it."""

    target: str = "text"  # where text goes: text, skip, fonts, styles, title, footnote or label
    font: int = -1
    unicode_skip: int = 1
    unseen: frozenset[str] = frozenset()  # the words of _REASONS that are in force
    raised: bool = False


@dataclass(slots=True)
class _ParagraphStyle:
    """The properties of the paragraph in progress, which last until ``pard``."""

    style: int = 0
    outline: int | None = None
    in_table: bool = False
    depth: int = 0


@dataclass(slots=True)
class _Text:
    """Text in progress: bytes of one code page, and what was decoded before them."""

    parts: list[str] = field(default_factory=list)
    pending: bytearray = field(default_factory=bytearray)
    encoding: str = "cp1252"

    def add_bytes(self, data: bytes, encoding: str) -> None:
        if encoding != self.encoding:
            self.decode()
            self.encoding = encoding
        self.pending += data

    def add(self, text: str) -> None:
        self.decode()
        self.parts.append(text)

    def add_raised(self, text: str) -> None:
        self.decode()
        self.parts.append(superscript(text, self.parts[-1] if self.parts else ""))

    def decode(self) -> None:
        if self.pending:
            self.parts.append(self.pending.decode(self.encoding, "replace"))
            self.pending.clear()

    def take(self) -> str:
        """Return the text and begin anew."""
        self.decode()
        text = "".join(self.parts).translate(_INVISIBLE)
        # A character beyond the basic plane is written as its two surrogates.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self.parts.clear()
        lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
        return "\n".join(line for line in lines if line)


class _Reader:
    """Reads the tokens of a file into blocks."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._data, self._limits = data, limits
        self._group = _Group()
        self._groups: list[_Group] = []
        self._default_encoding = "cp1252"
        self._default_font = 0
        self._encodings: dict[int, str] = {}  # by font
        self._symbol_fonts: set[int] = set()
        self._styles: dict[int, str] = {}
        self._outlines: dict[int, int] = {}
        self._paragraph = _ParagraphStyle()
        targets = ("text", "title", "footnote", "label", "styles", *_REASONS.values())
        self._texts = {name: _Text() for name in targets}
        self._skip_characters = 0  # the replacement of a Unicode character
        self._starred = False
        self._items: list[Item] = []
        self._notes: list[str] = []
        self._note_count = 0
        self._label = ""
        self._style_number = 0
        # Tables
        self._cell: list[str] = []
        self._row: list[str] = []
        self._merges: list[set[str]] = []
        self._next_merges: set[str] = set()
        self._is_header_row = False
        self._rows: list[Row] = []
        self._spanned: set[int] = set()
        self._header_rows = 0
        self._cells = 0
        self.title = ""
        self.is_cut_off = False

    def blocks(self) -> Iterator[Block]:
        """Yield headings, paragraphs, lists and tables in order."""
        place, end = 0, len(self._data)
        while place < end:
            token = _TOKEN.match(self._data, place)
            if token is None:  # a backslash at the very end
                break
            place = token.end()
            word, number, code, symbol, brace, text = token.groups()
            if brace == b"{":
                self._groups.append(self._group)
                self._limits.check_depth(len(self._groups))
                self._starred = False
            elif brace == b"}":
                self._end_group()
            elif word is not None:
                name, value = word.decode(), int(number) if number else None
                if name == "bin":
                    place += max(value or 0, 0)
                else:
                    yield from self._control_word(name, value)
            elif symbol is not None:
                yield from self._control_symbol(symbol)
            elif code is not None:
                self._add_bytes(bytes.fromhex(code.decode()))
            elif text is not None:
                self._add_bytes(text)
        self.is_cut_off = bool(self._groups)
        yield from self._end_paragraph()
        yield from self._end_table()
        yield from self._end_list()
        for reason in dict.fromkeys(_REASONS.values()):
            yield LeftOut(reason, self._texts[reason].take())

    def _end_group(self) -> None:
        target, outer = self._group.target, self._groups[-1].target if self._groups else "text"
        if self._groups:
            self._group = self._groups.pop()
        self._starred = False
        if target == outer:
            return
        if target == "footnote":
            if text := self._texts["footnote"].take():
                self._note_count += 1
                self._texts["text"].add(f"[{self._note_count}]")
                self._notes.append(f"[{self._note_count}] {text}")
        elif target == "title":
            self.title = self.title or self._texts["title"].take()
        elif target == "label":
            self._label = self._texts["label"].take() or "-"

    def _control_symbol(self, symbol: bytes) -> Iterator[Block]:
        match symbol:
            case b"*":
                self._starred = True
            case b"~":
                self._add_text(" ")
            case b"_":
                self._add_text("-")
            case b"\\" | b"{" | b"}":
                self._add_bytes(symbol)
            case b"\n" | b"\r":
                yield from self._end_paragraph()

    def _control_word(self, name: str, value: int | None) -> Iterator[Block]:
        starred, self._starred = self._starred, False
        if self._group.target == "skip":
            return
        if name in _SKIPPED or (starred and name not in _WANTED):
            self._group = replace(self._group, target="skip")
        elif name in _CHARACTERS:
            self._add_text(_CHARACTERS[name])
        elif self._group.target in {"fonts", "styles"}:
            self._define(name, value)
        elif (
            name in {"par", "sect", "page", "cell", "nestcell", "row", "nestrow"}
            and self._group.target == "text"
        ):
            yield from self._end_of(name)
        elif (
            not self._character_word(name, value)
            and self._group.target == "text"
            and not self._table_word(name)
        ):
            self._paragraph_word(name, value)

    def _end_of(self, name: str) -> Iterator[Block]:
        """End a paragraph, cell or row. The text of nested tables joins the cell around them."""
        if name == "cell":
            self._cell.append(self._texts["text"].take())
            self._row.append(" ".join(" ".join(self._cell).split()))
            self._cell = []
            self._cells += 1
            self._limits.check_cells(self._cells)
        elif name == "row":
            self._end_row()
        else:
            yield from self._end_paragraph()

    def _define(self, name: str, value: int | None) -> None:
        """Read the tables of fonts and of styles."""
        if self._group.target == "fonts":
            if name == "f":
                self._group = replace(self._group, font=value or 0)
            elif name == "fcharset":
                self._encodings[self._group.font] = _CODE_PAGES.get(value or 0, self._default_encoding)
                if value == _SYMBOL_CHARSET:
                    self._symbol_fonts.add(self._group.font)
            elif name == "cpg" and value:
                self._encodings[self._group.font] = _code_page(value)
        elif name == "s":
            self._style_number = value or 0
        elif name in {"cs", "ds", "ts"}:
            self._style_number = -1  # of characters, sections and tables
        elif name == "outlinelevel" and value is not None:
            self._outlines[self._style_number] = value

    def _character_word(self, name: str, value: int | None) -> bool:
        """Obey a word about characters and groups; return whether it is one."""
        match name:
            case "u":
                self._add_text(chr((value or 0) % 0x10000))
                self._skip_characters = self._group.unicode_skip
            case "uc":
                self._group = replace(self._group, unicode_skip=min(max(value or 0, 0), 100))
            case "f":
                self._group = replace(self._group, font=value or 0)
            case "v" | "deleted" | "strike" | "striked":
                unseen = self._group.unseen - {name} if value == 0 else self._group.unseen | {name}
                self._group = replace(self._group, unseen=unseen)
                self._texts[_REASONS[name]].add(" ")
            case "plain":
                self._group = replace(self._group, font=-1, unseen=frozenset(), raised=False)
            case "super" | "nosupersub" | "sub":
                self._group = replace(self._group, raised=name == "super" and value != 0)
            case "ansicpg":
                self._default_encoding = _code_page(value or 1252)
            case "mac" | "pc" | "pca":
                self._default_encoding = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[name]
            case "deff":
                self._default_font = value or 0
            case "fonttbl" | "stylesheet" | "title" | "footnote" | "listtext" | "pntext" | "info":
                targets = {"fonttbl": "fonts", "stylesheet": "styles", "listtext": "label", "pntext": "label"}
                self._group = replace(self._group, target=targets.get(name, name))
            case _:
                return False
        return True

    def _table_word(self, name: str) -> bool:
        match name:
            case "trowd":
                self._merges, self._next_merges, self._is_header_row = [], set(), False
            case "clmgf" | "clmrg" | "clvmgf" | "clvmrg":
                self._next_merges.add(name)
            case "cellx":
                self._merges.append(self._next_merges)
                self._next_merges = set()
            case "trhdr":
                self._is_header_row = True
            case "intbl":
                self._paragraph.in_table = True
            case _:
                return False
        return True

    def _paragraph_word(self, name: str, value: int | None) -> None:
        match name:
            case "pard":
                self._paragraph = _ParagraphStyle()
            case "s":
                self._paragraph.style = value or 0
            case "outlinelevel":
                self._paragraph.outline = value
            case "ilvl":
                self._paragraph.depth = min(max(value or 0, 0), _MAX_LEVEL - 1)

    @property
    def _target(self) -> str:
        """Where text goes: text that is not seen, by its reason, to the texts that are left out."""
        target = self._group.target
        unseen = self._group.unseen if target in {"text", "footnote"} else ()
        return _REASONS[min(unseen)] if unseen else target

    def _add_bytes(self, data: bytes) -> None:
        if self._skip_characters:
            count = min(self._skip_characters, len(data))
            self._skip_characters -= count
            data = data[count:]
        target = self._target
        if not data or target in {"skip", "info"}:
            return
        if target == "styles":
            self._add_style_name(data)
        elif target != "fonts":
            font = self._group.font if self._group.font >= 0 else self._default_font
            if font in self._symbol_fonts and target == "label":
                self._texts[target].add("•")
            elif self._group.raised and data.isascii():
                self._texts[target].add_raised(data.decode())
            else:
                self._texts[target].add_bytes(data, self._encodings.get(font, self._default_encoding))

    def _add_style_name(self, data: bytes) -> None:
        text = self._texts["styles"]
        for number, part in enumerate(data.split(b";")):
            if number:
                self._styles.setdefault(self._style_number, text.take())
                self._style_number = 0
            text.add_bytes(part, self._default_encoding)

    def _add_text(self, text: str) -> None:
        if self._target in self._texts:
            self._texts[self._target].add(text)
        self._skip_characters = 0

    def _end_paragraph(self) -> Iterator[Block]:
        target = self._group.target
        if target == "footnote":
            self._texts["footnote"].add("\n")
            return
        if target != "text":
            return
        text = self._texts["text"].take()
        style, label = self._paragraph, self._label
        if style.in_table:
            if text:
                self._cell.append(f"{label} {text}".strip())
            self._label = ""
            return
        if not text:
            if label:
                self._label = ""
            return
        self._label = ""
        yield from self._end_table()
        style_name = self._styles.get(style.style, "").strip().lower()
        if not _CONTENTS_STYLE.match(style_name):
            yield from self._text_blocks(text, style_name, label)
        notes, self._notes = self._notes, []
        if notes:
            yield from self._end_list()
            yield from map(Paragraph, notes)

    def _text_blocks(self, text: str, style_name: str, label: str) -> Iterator[Block]:
        level = self._heading_level(style_name)
        marker = "-" if label and (label in _BULLETS or not label.isascii()) else label
        if level:
            yield from self._end_list()
            if style_name == "title":
                self.title = text
            yield Heading(level, text if marker in {"", "-"} else f"{marker} {text}")
        elif marker:
            self._items.append(Item(text, self._paragraph.depth, marker))
        else:
            yield from self._end_list()
            yield Paragraph(text)

    def _heading_level(self, style_name: str) -> int:
        if style_name == "title":
            return 1
        if heading := _HEADING_STYLE.match(style_name):
            return int(heading[1])
        outline = self._paragraph.outline
        if outline is None:
            outline = self._outlines.get(self._paragraph.style)
        return outline + 1 if outline is not None and 0 <= outline < _MAX_LEVEL else 0

    def _end_list(self) -> Iterator[Block]:
        if self._items:
            least = min(item.depth for item in self._items)
            yield ListBlock(tuple(replace(item, depth=item.depth - least) for item in self._items))
            self._items = []

    def _end_row(self) -> None:
        cells: list[str] = []
        above = self._rows[-1] if self._rows else ()
        for place, text in enumerate(self._row):
            merges = self._merges[place] if place < len(self._merges) else set()
            if "clmrg" in merges and cells:
                self._spanned.update([len(self._rows)] if cells[-1] else ())
                cells.append(cells[-1])
            elif "clvmrg" in merges and place < len(above):
                cells.append(above[place])
            else:
                cells.append(text)
        self._row, self._cell = [], []
        if cells:
            if self._is_header_row and self._header_rows == len(self._rows):
                self._header_rows += 1
            self._rows.append(tuple(cells))

    def _end_table(self) -> Iterator[Block]:
        if self._row:  # a row that is cut off
            self._end_row()
        rows, spanned, header = self._rows, frozenset(self._spanned), self._header_rows
        self._rows, self._spanned, self._header_rows = [], set(), 0
        if not rows:
            return
        yield from self._end_list()
        if len(rows) < 2 or all(len(set(row)) < 2 for row in rows):  # it only arranges text
            yield from (Paragraph(cell) for row in rows for cell in dict.fromkeys(row) if cell)
        else:
            yield table_from_grid(rows, spanned, header)
        notes, self._notes = self._notes, []
        yield from map(Paragraph, notes)


def _code_page(number: int) -> str:
    """Return Python's name of a code page. Raises UnreadableFile for one that there is not."""
    if name := page_encoding(number):
        return name
    raise UnreadableFile(f"is in code page {number}, which is not known")
