"""Markdown, as CommonMark and GitHub's tables define it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Any

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
from clew.parse.documents.html import fragment_blocks
from clew.parse.documents.limits import LIMITS, SIMPLER, Limits

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PARSER = "markdown/4"
MEDIA_TYPE = "text/markdown"

#: Each level costs a few frames of Python. The parser would drop what is nested deeper, so the file is refused.
_MAX_NESTING = 100
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_KEY = re.compile(r"^([A-Za-z][\w -]*):[ \t]*(.*)$")
#: Text without a mark that inline Markdown knows.
_PLAIN = re.compile(r"(?:[0-9A-Za-z.,;:%$()+/-]+(?: [0-9A-Za-z.,;:%$()+/-]+)*)?")
_STRIKE = re.compile(r"<(/?)(?:s|del|strike)\b", re.I)
_LIST_ITEM = re.compile(r"^[ \t]*-[ \t]+(?:name:[ \t]*)?(.+)$")
#: [[Page|shown]] of wikis and Obsidian, the mark of a note, ==marked== text.
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]+))?\]\]")
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,60})\]:?")
_MARKED = re.compile(r"==(?=\S)([^=\n]+?)(?<=\S)==")
#: The first line of a quotation that is a box: > [!note] Title.
_BOX = re.compile(r"^\[!([a-zA-Z]{2,20})(?:\|[^\]]*)?\][+-]?[ \t]*")
#: Fields of the front matter that describe the content; layout, permalink and the like do not.
_CONTENT_FIELDS = ("subtitle", "author", "authors", "date", "description", "summary", "abstract", "version")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a Markdown file. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(_blocks(text, remarks), source)


FORMAT = DocumentFormat(MEDIA_TYPE, "Markdown", (".md", ".markdown"), parse, parser=PARSER)


def _blocks(text: str, remarks: Sequence[str]) -> Iterator[Block]:
    yield from map(Note, remarks)
    front = _FRONT_MATTER.match(text)
    fields = _front_matter(front[1], front[2]) if front else {}
    if front and fields:
        text = text[front.end() :]
        if title := fields.get("title"):
            yield Title(title[0])
        yield from starmap(Field, field_pairs(fields))
        if lines := [
            f"{key}: {', '.join(fields[key])}" for key in _CONTENT_FIELDS if any(fields.get(key, ()))
        ]:
            yield Paragraph("\n".join(lines))
        others = {key: values for key, values in fields.items() if key not in {"title", *_CONTENT_FIELDS}}
        for key, values in others.items():
            yield LeftOut("other front matter", f"{key} {' '.join(values)}")
    yield from markdown_blocks(text)


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of Markdown without front matter. Raises UnreadableFile."""
    definitions: dict[str, Any] = {}
    tokens = _markdown_parser(inline=False).parse(text, definitions)
    if any(token.level >= _MAX_NESTING for token in tokens):
        raise UnreadableFile(f"nested too deeply: more than {_MAX_NESTING} levels", SIMPLER)
    yield from _TokenWalker(tokens, definitions).blocks()


@lru_cache(maxsize=2)
def _markdown_parser(inline: bool) -> MarkdownIt:
    """Return a parser of blocks, or of the text within each. What is within is parsed when its block is reached, and
    then forgotten: the tokens of all cells of a large table take more memory than a file may."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING + 1}).enable(["table", "strikethrough"])
    return parser if inline else parser.disable(["inline", "text_join"])


def _front_matter(fence: str, body: str) -> dict[str, list[str]]:
    """Return the values of each field of a front matter, by key in lower case; of YAML ``key: value``, lists of plain
    values or names, and texts of several lines."""
    if fence == "+++":
        try:
            values = tomllib.loads(body).items()
        except ValueError:  # no TOML, or a number of more digits than Python reads
            return {}
        return {
            key.lower(): [str(item) for item in (value if isinstance(value, list) else [value])]
            for key, value in values
        }
    fields: dict[str, list[str]] = {}
    key, is_text = "", False
    for line in body.split("\n"):
        if match := _KEY.match(line):
            key, value = match[1].lower(), match[2].strip()
            is_text = re.fullmatch(r"[|>][+-]?", value) is not None
            if value.startswith("[") and value.endswith("]"):
                fields[key] = [_unquote(item) for item in value[1:-1].split(",") if item.strip()]
            else:
                fields[key] = [] if is_text or not value else [_unquote(value)]
        elif is_text and line.strip():
            fields[key] = [" ".join([*fields[key], line.strip()])]
        elif key and (item := _LIST_ITEM.match(line)):
            fields[key].append(_unquote(item[1]))
    return {key: values for key, values in fields.items() if values}


def _unquote(value: str) -> str:
    return value.strip().strip("\"'")


@dataclass(slots=True)
class _TokenWalker:
    """Turns the flat list of tokens into blocks, in one pass."""

    tokens: Sequence[Token]
    definitions: dict[str, Any]  # of links
    _items: list[Item] = field(default_factory=list)
    _lists: list[int | None] = field(default_factory=list)  # the next number of each open list, None: bullets
    _marker: str = ""  # of the open item, until it has text
    _struck: list[str] = field(default_factory=list)  # texts that are struck out

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.type == "table_open":
                end = next(n for n in range(at, len(self.tokens)) if self.tokens[n].type == "table_close")
                yield from self._end_list()
                yield self._table(self.tokens[at:end])
                at = end
            elif token.type.endswith(("list_open", "list_close")):
                yield from self._list(token)
            elif token.type == "list_item_open":
                self._marker = self._next_marker()
            elif token.type == "inline":
                yield from self._inline(token, self.tokens[at - 1])
            elif token.type in {"fence", "code_block"} and token.content.strip():
                yield from self._text(token.content.rstrip("\n"))
            elif token.type == "html_block":
                for block in fragment_blocks(token.content):
                    if isinstance(block, LeftOut):
                        yield block
                    elif self._lists and isinstance(block, Paragraph | Heading):
                        yield from self._text(block.text)
                    else:
                        yield from self._end_list()
                        yield block
            at += 1
        yield from self._end_list()
        yield from (LeftOut("struck out", text) for text in self._struck)

    def _list(self, token: Token) -> Iterator[Block]:
        if token.type.endswith("_close"):
            self._lists.pop()
            if not self._lists:
                yield from self._end_list()
            return
        ordered = token.type == "ordered_list_open"
        self._lists.append(int(token.attrs.get("start", 1)) if ordered else None)

    def _next_marker(self) -> str:
        number = self._lists[-1]
        if number is None:
            return "-"
        self._lists[-1] = number + 1
        return f"{number}."

    def _inline(self, token: Token, opening: Token) -> Iterator[Block]:
        text = self._inline_text(token)
        if opening.type == "heading_open" and not self._lists:
            yield Heading(int(opening.tag[1]), text)
        elif text.strip():
            yield from self._text(text)

    def _text(self, text: str) -> Iterator[Block]:
        """Yield a paragraph, or add it to the current item of the open list."""
        if not self._lists:
            yield Paragraph(text)
            return
        depth = len(self._lists) - 1
        if self._marker or not self._items:
            self._items.append(Item(text, depth, self._marker))
            self._marker = ""
        else:
            last = self._items.pop()
            self._items.append(Item(f"{last.text}\n{text}", last.depth, last.marker))

    def _end_list(self) -> Iterator[Block]:
        if self._items:
            yield ListBlock(tuple(self._items))
            self._items = []

    def _table(self, tokens: Sequence[Token]) -> Table:
        rows: list[list[str]] = []
        for number, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline" and tokens[number - 1].type in {"th_open", "td_open"}:
                rows[-1].append(self._inline_text(token))
        return Table(tuple(rows[0]), tuple(map(tuple, rows[1:])))

    def _inline_text(self, token: Token) -> str:
        """Return inline Markdown as a reader sees it."""
        if _PLAIN.fullmatch(token.content):
            return token.content
        (parsed,) = _markdown_parser(inline=True).parseInline(token.content, self.definitions)
        parts: list[str] = []
        is_raised, is_box = False, False
        children = parsed.children or []
        shown = self._take_struck(children)
        for child in shown:
            match child.type:
                case "text":
                    text = child.content
                    if not parts and (box := _BOX.match(text)):
                        text, is_box = f"{box[1].capitalize()}: {text[box.end() :]}", True
                    if is_raised:
                        text = superscript(text, parts[-1] if parts else "")
                    parts.append(_plain_marks(text))
                case "code_inline" | "text_special" | "image":
                    parts.append(child.content)
                case "softbreak":
                    # The title of a box ends with its line.
                    parts.append("\n" if is_box else " ")
                    is_box = False
                case "hardbreak":
                    parts.append("\n")
                case "html_inline":
                    tag = child.content.lower()
                    is_raised = tag.startswith("<sup")
                    parts += ["\n"] if tag.startswith("<br") else []
        text = "".join(parts)
        # The spaces on both sides of what is taken out stay.
        return text if len(shown) == len(children) else re.sub(" {2,}", " ", text).strip()

    def _take_struck(self, children: Sequence[Token]) -> list[Token]:
        """Return the tokens of inline Markdown that are not struck out; the text of the others is left out."""
        shown: list[Token] = []
        struck, depth = "", 0
        for child in children:
            tag = _STRIKE.match(child.content) if child.type == "html_inline" else None
            if tag or child.type in {"s_open", "s_close"}:
                depth += -1 if child.type == "s_close" or (tag and tag[1]) else 1
                struck += " "
            elif depth > 0:
                struck += " " if child.type.endswith("break") else child.content
            else:
                shown.append(child)
        self._struck += [struck] if struck else []
        return shown


def _plain_marks(text: str) -> str:
    """Return text without the marks of wikis: links by what they show, notes as [1]."""
    if "[" in text:
        text = _WIKI_LINK.sub(lambda match: (match[2] or match[1].replace("#", " > ")).strip(), text)
        text = _NOTE_MARK.sub(r"[\1]", text)
    return _MARKED.sub(r"\1", text) if "==" in text else text
