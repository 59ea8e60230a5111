r"""LaTeX sources: sections, lists, tables, captions, footnotes; formulas as they are written.

LaTeX is not run: commands that a file defines are replaced where they have no arguments, ``\input`` is not followed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Caption,
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
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import Row, table_from_grid

PARSER = "latex/2"
MEDIA_TYPE = "text/x-tex"

_SECTIONS = {"part": 1, "chapter": 1, "section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 4}
_LISTS = frozenset("itemize enumerate description compactitem compactenum".split())
_TABLES = frozenset("tabular tabular* tabularx tabulary longtable array supertabular xtabular".split())
_VERBATIM = frozenset("verbatim verbatim* lstlisting minted Verbatim alltt comment".split())
_MATH = frozenset(
    "equation equation* align align* gather gather* displaymath multline multline* eqnarray".split()
)
#: Commands whose arguments are not on the page, with the number of arguments in braces.
_DROPPED = {
    "label": 1, "vspace": 1, "hspace": 1, "includegraphics": 1, "bibliographystyle": 1, "bibliography": 1,
    "usepackage": 1, "pagestyle": 1, "thispagestyle": 1, "setlength": 2, "addtolength": 2, "setcounter": 2,
    "addtocounter": 2, "color": 1, "cline": 1, "cmidrule": 1, "index": 1, "renewcommand": 2, "newcommand": 2,
    "providecommand": 2, "newenvironment": 3, "renewenvironment": 3, "newtheorem": 2, "definecolor": 3,
    "documentclass": 1, "hypersetup": 1, "input": 1, "include": 1, "pagenumbering": 1, "rule": 2, "fontsize": 2,
    "addcontentsline": 3, "markboth": 2, "pdfbookmark": 2, "phantomsection": 0, "graphicspath": 1, "hypertarget": 1,
    "url": 0, "hyphenation": 1, "DeclareMathOperator": 2, "date": 1, "author": 1, "title": 1, "arraystretch": 0,
    "extracolsep": 1,
}  # fmt: skip
#: Commands of which only the last argument is on the page, with the number of arguments in braces.
_LAST_ARGUMENT = {"href": 2, "textcolor": 2, "colorbox": 2, "multirow": 3, "parbox": 2, "raisebox": 2, "scalebox": 2,
                  "resizebox": 3, "rotatebox": 2, "fcolorbox": 3, "hyperref": 1}  # fmt: skip
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
            "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323",
            "b": "\u0331"}  # fmt: skip
_SYMBOLS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å",
    "AA": "Å", "i": "ı", "j": "ȷ", "ldots": "…", "dots": "…", "textellipsis": "…", "textendash": "–",
    "textemdash": "—", "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "euro": "€", "texteuro": "€",
    "textdollar": "$", "textdegree": "°", "LaTeX": "LaTeX", "TeX": "TeX", "textbackslash": "\\",
    "textasciitilde": "~", "textbar": "|", "textless": "<", "textgreater": ">", "slash": "/", "quad": " ",
    "qquad": " ", "newline": "\n", "linebreak": "\n", "tabularnewline": "\n", "par": "\n", "and": ", ",
    "textregistered": "®", "texttrademark": "™", "textquoteright": "’", "textquoteleft": "‘",
}  # fmt: skip
_CITES = re.compile(r"^(?:no)?[a-zA-Z]*cite[a-zA-Z]*\*?$")
_TOKEN = re.compile(
    r"\\begin\{([a-zA-Z*]+)\}|\\end\{([a-zA-Z*]+)\}|\\([a-zA-Z]+\*?)|\\(.)|(\$\$?)|([{}])|(~|---?|``|'')|([^\\${}~`'-]+|.)",
    re.S,
)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*\n?[ \t]*")
_DEFINITION = re.compile(
    r"\\(?:re)?newcommand\*?\{?\\([a-zA-Z]+)\}?\{([^{}\\]{0,200})\}|\\def\\([a-zA-Z]+)\{([^{}\\]{0,200})\}"
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n\s*")
_SPACES = re.compile(r"[ \t]+")
_CAPTIONED = re.compile(r"\\caption\*?\s*(?:\[[^\]]*\])?\s*\{")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a LaTeX source. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([*map(Note, remarks), *_blocks(text, limits)], source)


FORMAT = DocumentFormat(
    MEDIA_TYPE,
    "a LaTeX source",
    (".tex", ".latex", ".ltx"),
    parse,
    matches=lambda start: (
        start.lstrip().startswith((b"%", b"\\"))
        and re.search(rb"^\\documentclass\b", start, re.M) is not None
    ),
    parser=PARSER,
)


def _blocks(text: str, limits: Limits) -> Iterator[Block]:
    text = _without_comments(text)
    _, begin, body = text.partition("\\begin{document}")
    body = body.partition("\\end{document}")[0] if begin else text
    names = {match[1] or match[3]: match[2] or match[4] or "" for match in _DEFINITION.finditer(text)}
    reader = _Reader(body, limits, {key: value for key, value in names.items() if key not in _SECTIONS})
    head = {key: reader.plain(_argument_of(text, key)) for key in ("title", "author", "date")}
    if head["title"]:
        yield Title(head["title"])
        yield Heading(1, head["title"])
    if lines := [
        f"{key}: {' '.join(head[key].split()).replace(' ,', ',')}"
        for key in ("author", "date")
        if head[key].strip()
    ]:
        yield Paragraph("\n".join(lines))
    yield from reader.blocks()
    if files := sorted(set(re.findall(r"\\(?:input|include)\s*\{([^{}]{1,200})\}", body))):
        yield Note(
            f"text of other files is not in it: {', '.join(files[:5])}{', ...' if len(files) > 5 else ''}"
        )


def _without_comments(text: str) -> str:
    """Return the text without comments, those within verbatim environments included, where % is rare."""
    return _COMMENT.sub(lambda match: match[1], text)


def _argument_of(text: str, command: str) -> str:
    """Return the argument of the first use of a command, "" where there is none."""
    match = re.search(rf"\\{command}\s*(?:\[[^\]]*\])?\s*\{{", text)
    return text[match.end() : _closing_brace(text, match.end())] if match else ""


def _closing_brace(text: str, start: int) -> int:
    """Return where the brace closes that was opened right before ``start``; the end of the text if nowhere."""
    depth = 1
    for match in re.compile(r"\\.|[{}]", re.S).finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if not depth:
                return match.start()
    return len(text)


@dataclass(slots=True)
class _List:
    """An open list: the kind of its environment, and the number of its last item."""

    kind: str
    count: int = 0


@dataclass(slots=True)
class _Reader:
    """Reads the body of a document into blocks."""

    text: str
    limits: Limits
    names: dict[str, str]  # what commands without arguments stand for
    _parts: list[str] = field(default_factory=list)
    _items: list[Item] = field(default_factory=list)
    _lists: list[_List] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _note_count: int = 0
    _marker: str | None = None
    _cells: int = 0
    _place: int = 0
    _depth: int = 0

    def blocks(self) -> Iterator[Block]:
        """Yield headings, paragraphs, lists and tables in order."""
        has_chapters = "\\chapter" in self.text or "\\part{" in self.text
        while self._place < len(self.text):
            token = _TOKEN.match(self.text, self._place)
            if token is None:
                break
            self._place = token.end()
            begin, end, command = token[1], token[2], token[3]
            if begin:
                yield from self._begin(begin)
            elif end:
                yield from self._end(end)
            elif command and command.rstrip("*") in _SECTIONS:
                yield from self._end_paragraph()
                name = command.rstrip("*")
                level = _SECTIONS[name] + (has_chapters and name not in {"part", "chapter"})
                self._skip_optional()
                if heading := self.plain(self._take_argument()):
                    yield Heading(level, heading)
            elif command and command.rstrip("*") == "caption":
                self._skip_optional()
                caption = " ".join(self.plain(self._take_argument()).split())
                if caption:
                    yield from self._end_paragraph()
                    yield Caption(caption)
            elif command == "item" and self._lists:
                yield from self._begin_item()
            else:
                first, *others = _BLANK_LINE.split(token[8]) if token[8] else [self._inline(token)]
                self._parts.append(first.replace("\n", " ") if token[8] else first)
                for piece in ["", *others] if command == "par" else others:
                    yield from self._end_paragraph(keep_items=bool(self._lists))
                    self._parts.append(piece.replace("\n", " "))
        yield from self._end_paragraph()
        yield from self._end_lists()

    def _begin(self, name: str) -> Iterator[Block]:
        if name in _TABLES:
            yield from self._end_paragraph()
            yield from self._table(name)
        elif name in _VERBATIM:
            yield from self._end_paragraph()
            content = self._take_environment(name)
            if name != "comment" and content.strip():
                yield from self._add_text(
                    re.sub(r"^(?:\[[^\]]*\])?(?:\{[^}]*\})?", "", content, count=1).strip("\n")
                )
        elif name in _MATH:
            self._parts.append(f" {' '.join(_without_labels(self._take_environment(name)).split())} ")
        elif name in {"figure", "figure*", "tikzpicture", "thebibliography", "titlepage", "table", "table*"}:
            yield from self._end_paragraph()
            if name == "tikzpicture":
                self._take_environment(name)
            elif name == "thebibliography":
                self._take_argument()
            self._skip_optional()
        elif name in _LISTS:
            yield from self._end_paragraph(keep_items=True)
            self._skip_optional()
            self._lists.append(_List(name))
            self.limits.check_depth(len(self._lists))
        elif name == "abstract":
            yield from self._end_paragraph()
            yield Heading(1, "Abstract")
        else:
            yield from self._end_paragraph(keep_items=bool(self._lists))
            self._skip_optional()
            if name in {"minipage", "multicols", "adjustbox"}:
                self._take_argument()

    def _end(self, name: str) -> Iterator[Block]:
        yield from self._end_paragraph(keep_items=True)
        if name in _LISTS and self._lists:
            self._lists.pop()
            self._marker = None
            if not self._lists:
                yield from self._end_lists()

    def _begin_item(self) -> Iterator[Block]:
        yield from self._end_paragraph(keep_items=True)
        current = self._lists[-1]
        current.count += 1
        label = self.plain(self._skip_optional())
        if current.kind in {"enumerate", "compactenum"}:
            self._marker = label or f"{current.count}."
        elif current.kind == "description" and label:
            self._marker = ""
            self._parts.append(label if label.endswith(":") else f"{label}: ")
        else:
            self._marker = "-"

    def _end_paragraph(self, keep_items: bool = False) -> Iterator[Block]:
        text, self._parts = _clean("".join(self._parts)), []
        if text:
            yield from self._add_text(text)
        if not self._lists:
            notes, self._notes = self._notes, []
            yield from map(Paragraph, notes)
            if not keep_items:
                yield from self._end_lists()

    def _add_text(self, text: str) -> Iterator[Block]:
        if not self._lists:
            yield Paragraph(text)
            return
        if self._marker is not None or not self._items:
            self._items.append(
                Item(text, len(self._lists) - 1, "-" if self._marker is None else self._marker)
            )
            self._marker = None
        else:
            last = self._items[-1]
            self._items[-1] = Item(f"{last.text}\n{text}", last.depth, last.marker)

    def _end_lists(self) -> Iterator[Block]:
        if self._items:
            yield ListBlock(tuple(self._items))
            self._items = []
        if not self._lists:
            notes, self._notes = self._notes, []
            yield from map(Paragraph, notes)

    def plain(self, source: str) -> str:
        """Return a piece of LaTeX as text."""
        self._depth += 1
        self.limits.check_depth(10 * self._depth)  # each level costs a few frames of Python
        before, place = self.text, self._place
        self.text, self._place = source, 0
        parts = []
        while self._place < len(self.text):
            token = _TOKEN.match(self.text, self._place)
            if token is None:
                break
            self._place = token.end()
            parts.append(self._inline(token))
        self.text, self._place = before, place
        self._depth -= 1
        return _clean("".join(parts))

    def _inline(self, token: re.Match[str]) -> str:
        """Return what a token shows; takes the arguments of a command."""
        command, symbol, dollar, _, ligature, text = token.groups()[2:]
        if command:
            return self._command(command)
        if symbol:
            return self._symbol(symbol)
        if dollar:
            end = self.text.find(dollar, self._place)
            end = len(self.text) if end < 0 else end
            formula, self._place = self.text[self._place : end], end + len(dollar)
            return f"${formula}$"
        if ligature:
            return {"~": " ", "--": "–", "---": "—", "``": "“", "''": "”"}[ligature]
        return "\n".join(piece.replace("\n", " ") for piece in _BLANK_LINE.split(text or ""))

    def _command(self, command: str) -> str:
        name = command.rstrip("*")
        self._skip_spaces()
        if name in self.names:
            return self.plain(self.names[name]) if self._depth < 20 else ""
        if name in _SYMBOLS:
            return _SYMBOLS[name]
        if name in _ACCENTS:
            return self._accent(name)
        if name == "footnote":
            self._note_count += 1
            number = self._note_count
            self._notes.append(f"[{number}] {self.plain(self._take_argument())}")
            return f"[{number}]"
        if _CITES.match(name):
            while self._skip_optional():
                pass
            return f"[{self._take_argument()}]"
        if name in {"ref", "eqref", "autoref", "cref", "Cref", "pageref"}:
            return self._take_argument()
        if name in _DROPPED:
            self._skip_optional()
            for _ in range(_DROPPED[name]):
                self._take_argument()
                self._skip_optional()
            return ""
        if name == "verb":
            return self._verb()
        if name in _LAST_ARGUMENT:
            self._skip_optional()
            arguments = [self._take_argument() for _ in range(_LAST_ARGUMENT[name])]
            return self.plain(arguments[-1])
        # What else a command does is done to its arguments, which follow in braces.
        self._skip_optional()
        return ""

    def _verb(self) -> str:
        mark = self.text[self._place : self._place + 1]
        end = self.text.find(mark, self._place + 1) if mark else -1
        content = self.text[self._place + 1 : end] if end > 0 else ""
        self._place = end + 1 if end > 0 else self._place
        return content

    def _symbol(self, symbol: str) -> str:
        if symbol in _ACCENTS and symbol not in "b":
            return self._accent(symbol)
        if symbol in "([":
            close = {"(": "\\)", "[": "\\]"}[symbol]
            end = self.text.find(close, self._place)
            end = len(self.text) if end < 0 else end
            formula, self._place = self.text[self._place : end], end + 2
            return f"${formula.strip()}$"
        if symbol == "\\":
            self._skip_optional()
            return "\n"
        return {",": " ", ";": " ", ":": " ", "!": "", "-": "", "/": "", " ": " ", "\n": " ", "@": ""}.get(
            symbol, symbol
        )

    def _accent(self, accent: str) -> str:
        self._skip_spaces()
        letter = self.plain(self._take_argument())
        letter = {"ı": "i", "ȷ": "j"}.get(letter, letter)
        return unicodedata.normalize("NFC", letter[:1] + _ACCENTS[accent]) + letter[1:] if letter else ""

    def _take_argument(self) -> str:
        """Return the next argument: a group in braces, a command, or a character."""
        self._skip_spaces()
        if self.text[self._place : self._place + 1] == "{":
            end = _closing_brace(self.text, self._place + 1)
            argument, self._place = self.text[self._place + 1 : end], end + 1
            return argument
        token = re.compile(r"\\[a-zA-Z]+|\\.|[^\s}]", re.S).match(self.text, self._place)
        if token is None:
            return ""
        self._place = token.end()
        return token[0]

    def _skip_optional(self) -> str:
        """Return the argument in brackets that follows, "" if none does."""
        match = re.compile(r"[ \t]*\[((?:[^\[\]{}]|\{[^{}]*\}){0,2000})\]").match(self.text, self._place)
        if match is None:
            return ""
        self._place = match.end()
        return match[1]

    def _skip_spaces(self) -> None:
        while self.text[self._place : self._place + 1] in {" ", "\t"}:
            self._place += 1

    def _take_environment(self, name: str) -> str:
        """Return what stands before the end of an environment, as it is."""
        end = self.text.find(f"\\end{{{name}}}", self._place)
        end = len(self.text) if end < 0 else end
        content, self._place = self.text[self._place : end], end + len(name) + 6
        return content

    def _table(self, name: str) -> Iterator[Block]:
        self._skip_optional()
        if name in {"tabular*", "tabularx", "tabulary"}:
            self._take_argument()
        self._take_argument()  # the columns
        content = self._take_environment(name)
        if caption := _CAPTIONED.search(content):
            end = _closing_brace(content, caption.end())
            yield Caption(" ".join(self.plain(content[caption.end() : end]).split()))
            content = content[: caption.start()] + content[end + 1 :]
        content = re.sub(
            r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|endlastfoot)\b", "", content
        )
        rows: list[Row] = []
        spanned: set[int] = set()
        for line in re.split(r"\\\\(?:\*|\[[^\]]*\])?|\\tabularnewline\b", content):
            row, has_spans = self._row(line)
            if any(row):
                if has_spans:
                    spanned.add(len(rows))
                rows.append(row)
        if len(rows) < 2 or all(len(row) < 2 for row in rows):  # it only arranges text
            yield from (Paragraph(cell) for row in rows for cell in row if cell)
        else:
            yield table_from_grid(rows, frozenset(spanned))

    def _row(self, line: str) -> tuple[Row, bool]:
        cells: list[str] = []
        has_spans = False
        for source in re.split(r"(?<!\\)&", line):
            span = re.match(r"\s*\\multicolumn\s*\{\s*(\d{1,3})\s*\}\s*\{", source)
            width = 1
            if span:
                width = max(int(span[1]), 1)
                end = _closing_brace(source, span.end())
                source = source[end + 1 :]
            text = " ".join(self.plain(source).split())
            self._cells += width
            self.limits.check_cells(self._cells)
            has_spans |= width > 1 and bool(text)
            cells += [text] * width
        return tuple(cells), has_spans


def _without_labels(formula: str) -> str:
    return re.sub(r"\\label\{[^{}]*\}", "", formula)


def _clean(text: str) -> str:
    """Return text without blank lines and superfluous spaces."""
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
