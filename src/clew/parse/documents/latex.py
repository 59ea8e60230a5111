r"""LaTeX sources: sections, lists, tables, captions, footnotes; formulas as they are written.

LaTeX is not run: the commands that a file defines are replaced by what they stand for, ``\input`` is not followed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import starmap

from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import (
    Block,
    Caption,
    Field,
    Heading,
    Item,
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
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.tables import Row, table_from_grid

PARSER = "latex/4"
MEDIA_TYPE = "text/x-tex"

_SECTIONS = {"part": 1, "chapter": 1, "section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 4}
_LISTS = frozenset("itemize enumerate description compactitem compactenum".split())
_TABLES = frozenset("tabular tabular* tabularx tabulary longtable array supertabular xtabular".split())
_VERBATIM = frozenset("verbatim verbatim* lstlisting minted Verbatim alltt comment".split())
_BLOCK_COMMANDS = _SECTIONS.keys() | {"caption", "frametitle", "framesubtitle", "bibitem"}
#: Environments of statements, whose kind is printed before them; a file may define others.
_STATEMENTS = {
    name: name.capitalize()
    for name in "theorem lemma corollary proposition definition remark example conjecture claim proof".split()
}
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
    "extracolsep": 1, "inst": 1, "column": 1, "today": 0, "usetheme": 1, "captionsetup": 1, "theoremstyle": 1,
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
#: The units and prefixes of siunitx, by the commands that stand for them.
_UNITS = {
    "metre": "m", "meter": "m", "second": "s", "minute": "min", "hour": "h", "day": "d", "gram": "g",
    "kilogram": "kg", "tonne": "t", "litre": "L", "liter": "L", "hectare": "ha", "kelvin": "K", "celsius": "°C",
    "degreeCelsius": "°C", "degree": "°", "percent": "%", "pascal": "Pa", "bar": "bar", "joule": "J", "watt": "W",
    "volt": "V", "ampere": "A", "ohm": "Ω", "hertz": "Hz", "newton": "N", "mole": "mol", "candela": "cd",
    "electronvolt": "eV", "byte": "B", "bit": "bit", "radian": "rad", "coulomb": "C", "farad": "F", "tesla": "T",
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "milli": "m", "micro": "µ", "nano": "n", "pico": "p",
    "centi": "c", "deci": "d", "hecto": "h",
}  # fmt: skip
_PREFIXES = frozenset("kilo mega giga tera milli micro nano pico centi deci hecto".split())
#: Commands with a meaning here, whatever a file defines them as.
_OWN_COMMANDS = (
    _DROPPED.keys() | _LAST_ARGUMENT.keys() | _ACCENTS.keys() | _UNITS.keys()
    | {"footnote", "thanks", "item", "caption", "verb", "begin", "end", "bibitem", "num", "unit"}
)  # fmt: skip
_MAX_DEFINITION = 2_000
_CITES = re.compile(r"^(?:no)?[a-zA-Z]*cite[a-zA-Z]*\*?$")
_TOKEN = re.compile(
    r"\\begin\{([a-zA-Z*]+)\}|\\end\{([a-zA-Z*]+)\}|\\([a-zA-Z]+\*?)|\\(.)|(\$\$?)|([{}])|(~|---?|``|'')|([^\\${}~`'-]+|.)",
    re.S,
)
#: A comment, or what may hold a percent sign that begins none.
_COMMENT = re.compile(
    r"\\begin\{(verbatim\*?|lstlisting|minted|Verbatim|alltt)\}|\\(iffalse)\b|\\verb\*?([^\sa-zA-Z*])|"
    r"(\\(?:url|href)\s*\{[^{}\n]*\}|\\.)|%[^\n]*\n?[ \t]*",
    re.S,
)
#: The beginning of a definition of a command: its name, and how many arguments it has.
_DEFINITION = re.compile(
    r"\\(?:re|provide)?newcommand\*?+\s*+\{?+\s*+\\([a-zA-Z]++)\s*+\}?+\s*+(?:\[([1-9])\])?+\s*+(?:\[([^\]]{0,200})\])?+\s*+\{|"
    r"\\def\s*+\\([a-zA-Z]++)\s*+((?:#[1-9])*+)\s*+\{"
)
_THEOREM = re.compile(r"\\newtheorem\*?\s*\{([^{}]{1,50})\}\s*(?:\[[^\]]*\])?\s*\{([^{}\\]{1,50})\}")
_PARAMETER = re.compile(r"#([1-9])")
#: What commands stand for may have so many characters in all: they can double with each that refers to another.
_MAX_EXPANDED = 2_000_000
_BLANK_LINE = re.compile(r"\n[ \t]*\n\s*")
_SPACES = re.compile(r"[ \t]+")
_CAPTIONED = re.compile(r"\\caption\*?\s*(?:\[[^\]]*\])?\s*\{")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a LaTeX source. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([*map(Note, remarks), *_blocks(text, limits)], source)


def plain_text(source: str, limits: Limits = LIMITS) -> str:
    """Return a piece of LaTeX, such as a title, as text. Raises UnreadableFile where it is nested too deeply."""
    return _Reader("", limits, {}, {}).plain(source)


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
    statements = _STATEMENTS | {match[1]: match[2] for match in _THEOREM.finditer(text)}
    reader = _Reader(body, limits, _definitions(text), statements)
    head = {key: reader.plain(_argument_of(text, key)) for key in ("title", "author", "date")}
    thanks = reader.take_notes()
    yield from starmap(Field, field_pairs({"author": _authors(text, reader), "date": head["date"]}))
    if head["title"]:
        yield Title(head["title"])
        yield Heading(1, head["title"])
    if lines := [
        f"{key}: {', '.join(line.strip(' ,') for line in head[key].splitlines()).replace(' ,', ',')}"
        for key in ("author", "date")
        if head[key].strip()
    ]:
        yield Paragraph("\n".join(lines))
    reader.take_notes()  # those of the authors, read once more
    yield from map(Paragraph, thanks)
    yield from reader.blocks()
    if files := sorted(set(re.findall(r"\\(?:input|include)\s*\{([^{}]{1,200})\}", body))):
        yield Note(
            f"text of other files is not in it: {', '.join(files[:5])}{', ...' if len(files) > 5 else ''}"
        )


def _without_comments(text: str) -> str:
    r"""Return the text without comments and what stands in ``\iffalse``; what is verbatim stays as it is."""
    parts: list[str] = []
    endless: set[str] = set()  # what is opened and never closed again
    place = start = 0
    while match := _COMMENT.search(text, place):
        place = match.end()
        end = f"\\end{{{match[1]}}}" if match[1] else "\\fi" if match[2] else match[3] or ""
        if end and end not in endless:
            close = text.find(end, place)
            if close < 0:
                endless.add(end)
            elif not match[3] or "\n" not in text[place:close]:
                place = close + len(end)
        if match[2] or not (end or match[4]):
            parts.append(text[start : match.start()])
            start = place
    return "".join((*parts, text[start:]))


def _definitions(text: str) -> dict[str, tuple[int, str | None, str]]:
    """Return the commands that a file defines: the number of their arguments, the value of the first where it is
    optional, and what they stand for."""
    names: dict[str, tuple[int, str | None, str]] = {}
    for match in _DEFINITION.finditer(text):
        name = match[1] or match[4]
        if name in _SECTIONS or name in _OWN_COMMANDS:
            continue
        content = text[match.end() : _closing_brace(text, match.end())]
        if len(content) <= _MAX_DEFINITION:
            count = int(match[2] or 0) if match[1] else len(match[5]) // 2
            names[name] = (count, match[3], content)
    return names


def _authors(text: str, reader: _Reader) -> list[str]:
    r"""Return the authors, each by the first line of what stands about them; those without ``\and`` divided by
    commas."""
    source = re.sub(r"\$[^$]*\$", "", _argument_of(text, "author"))
    pieces = re.split(r"\\and\b|\\And\b|\\AND\b", source)
    lines = [reader.plain(piece).split("\n")[0] for piece in pieces]
    return [
        name for name in (re.split(r",\s*|\s+and\s+", lines[0]) if len(lines) == 1 else lines) if name.strip()
    ]


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
    names: dict[str, tuple[int, str | None, str]]  # what the commands of the file stand for
    statements: Mapping[str, str]  # environments and the kinds of statement that they print
    _expanded: int = 0
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
            elif command and command.rstrip("*") in _BLOCK_COMMANDS:
                yield from self._block_command(command.rstrip("*"), has_chapters)
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

    def _block_command(self, name: str, has_chapters: bool) -> Iterator[Block]:
        """Yield what a command with a block of its own shows."""
        yield from self._end_paragraph()
        self._skip_optional()
        argument = self.plain(self._take_argument())
        if name == "bibitem":
            self._parts.append(f"[{argument}] ")
        elif not argument:
            return
        elif name == "caption":
            yield Caption(" ".join(argument.split()))
        elif name == "framesubtitle":
            yield Paragraph(argument)
        elif name == "frametitle":
            yield Heading(2, argument)
        else:
            yield Heading(_SECTIONS[name] + (has_chapters and name not in {"part", "chapter"}), argument)

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
                yield Heading(1, "References")
            self._skip_optional()
        elif name == "frame":
            yield from self._begin_slide()
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
            self._begin_statement(name.rstrip("*"), self._skip_optional())
            if name in {"minipage", "multicols", "adjustbox", "column"}:
                self._take_argument()

    def _begin_statement(self, name: str, note: str) -> None:
        if kind := self.statements.get(name):
            self._parts.append(f"{kind} ({self.plain(note)}). " if note else f"{kind}. ")

    def _begin_slide(self) -> Iterator[Block]:
        yield from self._end_paragraph()
        self._skip_overlay()
        self._skip_optional()
        title = self.plain(self._take_argument()) if self.text.startswith("{", self._place) else ""
        if title:
            yield Heading(2, title)

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
        self._skip_overlay()
        label = self.plain(self._skip_optional())
        if current.kind in {"enumerate", "compactenum"}:
            self._marker = label or f"{current.count}."
        elif current.kind == "description" and label:
            self._marker = ""
            self._parts.append(label if label.endswith(":") else f"{label}: ")
        else:
            self._marker = label if any(map(str.isalnum, label)) and label[0] != "$" else "-"

    def _end_paragraph(self, keep_items: bool = False) -> Iterator[Block]:
        text, self._parts = _clean("".join(self._parts)), []
        if text:
            yield from self._add_text(text)
        if not self._lists:
            yield from map(Paragraph, self.take_notes())
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
            yield from map(Paragraph, self.take_notes())

    def take_notes(self) -> list[str]:
        """Return the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes

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
            return self._expand(name)
        if name in _SYMBOLS:
            return _SYMBOLS[name]
        if name in _ACCENTS:
            return self._accent(name)
        if (text := self._special(name)) is not None:
            return text
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
        if name in _LAST_ARGUMENT:
            self._skip_optional()
            arguments = [self._take_argument() for _ in range(_LAST_ARGUMENT[name])]
            return self.plain(arguments[-1])
        # What else a command does is done to its arguments, which follow in braces.
        self._skip_overlay()
        self._skip_optional()
        return ""

    def _special(self, name: str) -> str | None:
        """Return what a command shows that does more than to style its argument; None for another command."""
        match name:
            case "footnote":
                self._note_count += 1
                number = self._note_count
                self._notes.append(f"[{number}] {self.plain(self._take_argument())}")
                return f"[{number}]"
            case "thanks":
                self._notes.append(self.plain(self._take_argument()))
                return ""
            case "ensuremath":
                return f"${self._take_argument()}$"
            case "textsuperscript":
                return superscript(self.plain(self._take_argument()))
            case "SI" | "qty" | "SIrange" | "qtyrange" | "num" | "si" | "unit" | "ang":
                return self._quantity(name)
            case "cmidrule":
                self._skip_optional()
                if match := re.compile(r"\s*\([lr\d.{}a-z]*\)").match(self.text, self._place):
                    self._place = match.end()
                self._take_argument()
                return ""
            case "def":
                self._take_argument()
                brace = self.text.find("{", self._place, self._place + 40)
                self._place = max(brace, self._place)
                self._take_argument()
                return ""
            case "verb" | "lstinline":
                self._skip_optional()
                return self._verb()
        return None

    def _expand(self, name: str) -> str:
        """Return what a command of the file stands for, as text; "" beyond the limit, and for one within itself."""
        count, default, content = self.names[name]
        arguments: list[str] = []
        if default is not None:
            arguments.append(self._skip_optional() or default)
        while len(arguments) < count:
            arguments.append(self._take_argument())
        places = {str(number): argument for number, argument in enumerate(arguments, 1)}
        source = _PARAMETER.sub(lambda match: places.get(match[1], ""), content)
        self._expanded += len(source)
        if self._depth >= 20 or self._expanded > _MAX_EXPANDED or not source:
            return ""
        before, after = source[0].isspace() * " ", source[-1].isspace() * " "
        return f"{before}{self.plain(source)}{after}"

    def _quantity(self, name: str) -> str:
        """Return a number and its unit as siunitx prints them."""
        self._skip_optional()
        numbers = [] if name in {"si", "unit"} else [self._number()]
        if name.endswith("range"):
            numbers.append(self._number())
        text = " to ".join(numbers)
        if name == "ang":
            return f"{text}°"
        unit = "" if name == "num" else self._unit(self._take_argument())
        return text + unit if unit in {"%", "°"} else f"{text} {unit}".strip()

    def _number(self) -> str:
        number = self.plain(self._take_argument()).replace("+-", "±").replace("\\pm", "±")
        mantissa, exponent, power = number.partition("e")
        return f"{mantissa}×10{superscript(power)}" if exponent and mantissa else number

    def _unit(self, source: str) -> str:
        unit, power = "", ""
        for command, text in re.findall(r"\\([a-zA-Z]+)|([^\\\s{}~]+)", source):
            if command in {"square", "cubic"}:
                power = "²" if command == "square" else "³"
            elif command in {"squared", "cubed"}:
                unit += "²" if command == "squared" else "³"
            elif command == "per":
                unit += "/"
            elif command in _PREFIXES:
                unit += ("" if unit.endswith("/") or not unit else " ") + _UNITS[command] + "\0"
            else:
                symbol = _UNITS.get(command, command) if command else text
                joint = "" if not unit or unit.endswith(("/", "\0")) or not command else " "
                unit, power = f"{unit}{joint}{symbol}{power}", ""
        return re.sub(r"\^\{?(-?\d+)\}?", lambda match: superscript(match[1]), unit.replace("\0", ""))

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

    def _skip_overlay(self) -> None:
        """Skip the slides of a presentation on which something is shown: <2->."""
        if match := re.compile(r"<[\d,.+|:\-a-z ]{0,40}>").match(self.text, self._place):
            self._place = match.end()

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
        # The header and footer of the further pages of a long table.
        content = re.sub(r"(\\endfirsthead\b).*?\\endhead\b", r"\1", content, count=1, flags=re.S)
        content = re.sub(
            r"(\\end(?:first)?head\b).*\\end(?:last)?foot\b", r"\1", content, count=1, flags=re.S
        )
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
