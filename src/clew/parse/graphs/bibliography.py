r"""Bibliographies: BibTeX, RIS, CSL JSON as Zotero and other programs export it, and Zotero's RDF and CSV.

A work becomes a node of type ``paper`` with its key as id, its title as name, its abstract as text, and ``year``,
``kind`` (article, book, ...), ``doi``, ``url`` and ``file`` as properties. Edges lead from it to persons (``author``,
``editor``), to where it appeared (``published in``), to keywords (``keyword``), and to the works that it cites
(``cites``), where the bibliography says so: in the field ``cites`` or ``references`` of BibTeX, or in a line
``cites: key, key`` of a note; and to those that a person joined with it in Zotero (``related to``).

TeX is read as in LaTeX sources. pybtex loses what follows a brace that is not closed, bibtexparser does not join
strings (``#``), rispy loses a last work that is cut off and the lines of errors.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import UnreadableFile
from clew.core.protocols import GraphSink
from clew.parse.documents.latex import plain_text
from clew.parse.graphs.files import RowErrors, empty_file_error, open_graph_file
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions, ReadFunction

if TYPE_CHECKING:
    from lxml.etree import _Element

PAPER, PERSON, VENUE, KEYWORD = "paper", "person", "venue", "keyword"
AUTHOR, CITES, RELATED = "author", "cites", "related to"
#: Called with line and reason of what cannot be read.
AddError = Callable[[int, str], None]

_CITES_LINE = re.compile(r"^[^\S\n]*cites\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_LIST = re.compile(r"[,;]")
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[^\s,=#{}\"()%@]+")
_MARK = re.compile(r"\\.|[{}\"]", re.DOTALL)
#: What divides persons and the parts of their names, outside of braces.
_AND, _COMMA = re.compile(" and ", re.IGNORECASE), re.compile(",")
#: What TeX reads in another way than it stands there.
_TEX = re.compile(r"[\\{}~`]|--|''")
#: Braces within braces; characters that the named strings of a file stand for in all, which can double with each.
_MAX_DEPTH, _MAX_EXPANDED = 90, 20_000_000


@dataclass(slots=True)
class Work:
    """A work of a bibliography, whatever the format."""

    key: str
    kind: str
    title: str = ""
    authors: list[str] = field(default_factory=list)
    editors: list[str] = field(default_factory=list)
    venue: str = ""
    abstract: str = ""
    keywords: list[str] = field(default_factory=list)
    cites: list[str] = field(default_factory=list)
    related: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)

    def add_to(self, sink: GraphSink) -> None:
        """Add the work and what it is related to."""
        sink.add_node(
            self.key,
            types=(PAPER,),
            name=self.title,
            text=self.abstract,
            properties={"kind": self.kind, **self.properties},
        )
        related = [
            (AUTHOR, PERSON, self.authors),
            ("editor", PERSON, self.editors),
            ("published in", VENUE, [self.venue] if self.venue else []),
            ("keyword", KEYWORD, self.keywords),
        ]
        for relation, kind, names in related:
            for name in dict.fromkeys(names):
                id = f"{kind}:{name}"
                if not sink.has_node(id):
                    sink.add_node(
                        id, types=(kind,), name=name, aliases=_short_names(name) if kind == PERSON else ()
                    )
                sink.add_edge(self.key, relation, id)
        for relation, keys in ((CITES, self.cites), (RELATED, self.related)):
            for other in dict.fromkeys(keys):
                sink.add_edge(self.key, relation, other)


def _short_names(name: str) -> tuple[str, ...]:
    """Return how a person is cited: "A. Strake" and "Strake" of "Ada Strake"."""
    first, _, last = name.rpartition(" ")
    return (f"{first[0]}. {last}", last) if first else ()


def _reader(read_works: Callable[[bytes, AddError], Iterator[Work]]) -> ReadFunction:
    """Return the reader of a format, given a function that yields the works of a file's content and raises
    UnreadableFile without the file's name."""

    def read(
        path: Path,
        sink: GraphSink,
        options: GraphReadOptions,
        errors: RowErrors,
        report_progress: Callable[[int], None],
    ) -> None:
        with open_graph_file(path, report_progress) as file:
            content = b"".join(file.read_blocks())
        count = 0
        try:
            for work in read_works(content, lambda line, why: errors.add(path, line, why)):
                work.add_to(sink)
                count += 1
        except UnreadableFile as error:
            raise UnreadableFile(f"{path} {error.problem}") from error
        if not count and not errors.count:
            raise UnreadableFile(f"{path} holds no works") if content.strip() else empty_file_error(path)

    return read


def _decode(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")


# BibTeX


def read_bibtex(text: str, add_error: AddError) -> Iterator[Work]:
    """Yield the works of a BibTeX file; ``add_error`` is called with line and reason of what cannot be read."""
    reader = _BibtexReader(text)
    seen: set[str] = set()
    line = place = 0
    while (at := text.find("@", reader.at)) >= 0:
        line, place = line + text.count("\n", place, at), at
        reader.at = at + 1
        try:
            entry = reader.read_entry()
            if entry is None:
                continue
            kind, key, fields = entry
            if not key or key in seen:
                raise ValueError(f"has the key '{key}' of another entry" if key else "has no key")
            seen.add(key)
            work = _work_from_bibtex(kind, key, fields)
        except (ValueError, UnreadableFile) as error:
            add_error(line + 1, error.problem if isinstance(error, UnreadableFile) else str(error))
            continue
        yield work


@dataclass(slots=True)
class _BibtexReader:
    text: str
    at: int = 0
    macros: dict[str, str] = field(default_factory=dict)
    expanded: int = 0

    def read_entry(self) -> tuple[str, str, dict[str, str]] | None:
        """Return type, key and fields of the entry that begins after "@"; None for what is no entry."""
        kind = self._name("a type").casefold()
        if kind == "comment" or not self._skip("{("):
            return None
        if kind == "preamble":
            return None
        if kind == "string":
            name, value = self._field()
            self.macros[name] = value
            return None
        key = self._name("a key") if not self._peek(",") else ""
        fields: dict[str, str] = {}
        while self._skip(","):
            if self._peek("})"):
                break
            name, value = self._field()
            fields.setdefault(name, value)
        if not self._skip("})"):
            raise ValueError("is not closed")
        return kind, key, fields

    def _field(self) -> tuple[str, str]:
        name = self._name("a field").casefold()
        if not self._skip("="):
            raise ValueError(f"has no = after '{name}'")
        parts = [self._value()]
        while self._skip("#"):
            parts.append(self._value())
        return name, "".join(parts)

    def _value(self) -> str:
        if self._skip("{"):
            return self._until("}")
        if self._skip('"'):
            return self._until('"')
        name = self._name("a value")
        value = name if name.isdigit() else self.macros.get(name.casefold(), name)
        self.expanded += len(value)
        if self.expanded > _MAX_EXPANDED:
            raise ValueError("has strings that grow too long")
        return value

    def _until(self, end: str) -> str:
        depth = 0
        for mark in _MARK.finditer(self.text, self.at):
            if mark[0] == end and not depth:
                value, self.at = self.text[self.at : mark.start()], mark.end()
                return value
            depth += (mark[0] == "{") - (mark[0] == "}")
            if not 0 <= depth <= _MAX_DEPTH:
                raise ValueError("is nested too deeply" if depth > 0 else "has a brace too many")
        raise ValueError("has a value that is not closed")

    def _name(self, what: str) -> str:
        match = _NAME.match(self.text, self._past_space())
        if match is None:
            raise ValueError(f"lacks {what}")
        self.at = match.end()
        return match.group()

    def _past_space(self) -> int:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _peek(self, characters: str) -> bool:
        return self.text.startswith(tuple(characters), self._past_space())

    def _skip(self, characters: str) -> bool:
        is_there = self._peek(characters)
        self.at += is_there
        return is_there


_VENUES = ("journal", "journaltitle", "booktitle", "publisher", "school", "institution", "organization")


def _work_from_bibtex(kind: str, key: str, fields: Mapping[str, str]) -> Work:
    plain = {
        name: plain_tex(value) for name, value in fields.items() if name not in {"author", "editor", "file"}
    }
    venue = next((plain[name] for name in _VENUES if plain.get(name)), "")
    noted = "\n".join(fields.get(name, "") for name in ("note", "annote", "extra"))
    listed = [fields[name] for name in ("cites", "references") if name in fields]
    return Work(
        key,
        kind,
        plain.get("title", ""),
        _persons(fields.get("author", "")),
        _persons(fields.get("editor", "")),
        venue,
        plain.get("abstract", ""),
        _split_list(plain.get("keywords", "")),
        [*_split_list(",".join(listed)), *_cited(noted)],
        properties=_properties(
            plain.get("year") or plain.get("date", ""),
            doi=plain.get("doi", ""),
            url=plain.get("url", ""),
            file=_file_of(fields.get("file", "")),
        ),
    )


def _file_of(value: str) -> str:
    """Return the first PDF of a field ``file``: a path, or ``description:path:type`` as JabRef writes it."""
    parts = [part for entry in value.split(";") for part in entry.replace("\\:", ":").split(":")]
    return next((part for part in parts if part.lower().endswith(".pdf")), value)


def _properties(date: str, **values: str) -> dict[str, Any]:
    """Return the year of a date, and those values that there are."""
    year = _YEAR.search(date)
    return ({"year": int(year[1])} if year else {}) | {name: value for name, value in values.items() if value}


def _cited(note: str) -> list[str]:
    """Return the keys in the lines ``cites: key, key`` of a note."""
    return _split_list(",".join(_CITES_LINE.findall(note)))


def _split_list(value: str) -> list[str]:
    """Return the items of a list with commas or semicolons."""
    return [item for part in _LIST.split(value) if (item := part.strip())]


def _persons(value: str) -> list[str]:
    """Return the names of a field of persons, the first name first."""
    names = []
    for person in _split_outside_braces(" ".join(value.split()), _AND):
        parts = [plain_tex(part) for part in _split_outside_braces(person, _COMMA)]
        # "Last, First", or with three parts "Last, Jr., First".
        name = " ".join(
            [*parts[2:], parts[0], parts[1]] if len(parts) > 2 else [*parts[1:], parts[0]]
        ).strip()
        if name and name != "others":
            names.append(name)
    return names


def _split_outside_braces(value: str, divider: re.Pattern[str]) -> list[str]:
    depth, start, parts = 0, 0, []
    for mark in re.finditer(rf"\\.|[{{}}]|{divider.pattern}", value, divider.flags | re.DOTALL):
        depth += (mark[0] == "{") - (mark[0] == "}")
        if depth <= 0 and divider.fullmatch(mark[0]):
            parts.append(value[start : mark.start()])
            start = mark.end()
    return [*parts, value[start:]]


def plain_tex(text: str) -> str:
    r"""Return a value of BibTeX as text.

    >>> plain_tex("{The} K{\\\"u}hn \\& {\\o}re"), plain_tex("Gar{\\c c}on of 100% \\emph{oak}")
    ('The Kühn & øre', 'Garçon of 100% oak')
    """
    return " ".join((plain_text(text) if _TEX.search(text) else text).split())


# CSL JSON


def _start_of(path: Path, *suffixes: str) -> bytes:
    """Return the first bytes of a file with one of these suffixes, b"" of another and of one that cannot be read."""
    if path.suffix.lower() not in suffixes or not path.is_file():
        return b""
    try:
        with path.open("rb") as opened:
            return opened.read(20_000).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return b""


def _is_csl(path: Path) -> bool:
    """Return whether a JSON file is a list of works as CSL has them."""
    start = _start_of(path, ".json")
    return (
        start.lstrip().startswith(b"[")
        and b'"title"' in start
        and (b'"issued"' in start or b'"container-title"' in start)
    )


def _read_csl(content: bytes, add_error: AddError) -> Iterator[Work]:
    try:
        items = json.loads(_decode(content))
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"is not JSON: {error}") from error
    if not isinstance(items, list):
        raise UnreadableFile("is no list of works")
    for number, item in enumerate(items, 1):
        if not (isinstance(item, dict) and (item.get("id") or item.get("citation-key"))):
            add_error(number, "is no work with an id")
        elif _has_half_character(item):
            add_error(number, "a text of the work holds half a character")
        else:
            yield _work_from_csl(item)


def _has_half_character(item: Mapping[str, Any]) -> bool:
    """Return whether a text has a half of a character, which JSON's escapes can write and UTF-8 cannot hold."""
    try:
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


#: The parts of a name in their order.
_NAME_PARTS = ("given", "dropping-particle", "non-dropping-particle", "family", "suffix")


def _work_from_csl(item: Mapping[str, Any]) -> Work:
    def text(name: str) -> str:
        return " ".join(str(item.get(name) or "").split())

    def persons(name: str) -> list[str]:
        people = item.get(name)
        named = [person for person in people if isinstance(person, dict)] if isinstance(people, list) else []
        joined = [
            str(person.get("literal") or " ".join(str(person.get(part) or "") for part in _NAME_PARTS))
            for person in named
        ]
        return [" ".join(name.split()) for name in joined if name.strip()]

    issued = item.get("issued")
    stated = json.dumps(issued) if isinstance(issued, dict) else str(issued or "")
    return Work(
        str(item.get("citation-key") or item.get("id")),
        text("type") or "work",
        text("title"),
        persons("author"),
        persons("editor"),
        text("container-title") or text("publisher"),
        text("abstract"),
        _split_list(text("keyword")),
        _cited(str(item.get("note") or "")),
        properties=_properties(stated, doi=text("DOI"), url=text("URL")),
    )


# Zotero RDF: the form of its translator "Zotero RDF". It is no valid RDF/XML (the path of an attachment stands in an
# element rdf:resource, addresses are relative without a base), so that it is read as XML.

_RDF, _DC, _TERMS = (
    f"{{http://{name}}}"
    for name in ("www.w3.org/1999/02/22-rdf-syntax-ns#", "purl.org/dc/elements/1.1/", "purl.org/dc/terms/")
)
_BIB, _FOAF, _ZOTERO = (
    f"{{http://{name}}}"
    for name in ("purl.org/net/biblio#", "xmlns.com/foaf/0.1/", "www.zotero.org/namespaces/export#")
)
_LINK = "{http://purl.org/rss/1.0/modules/link/}"
_ABOUT, _RESOURCE = f"{_RDF}about", f"{_RDF}resource"
_CITATION_KEY = re.compile(r"^[^\S\n]*citation key\s*:\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def _is_zotero(path: Path) -> bool:
    """Return whether an RDF file is one that Zotero exported."""
    return _ZOTERO.strip("{}").encode() in _start_of(path, ".rdf", ".xml")


def _read_zotero(content: bytes, add_error: AddError) -> Iterator[Work]:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableFile(f"is damaged: {error}") from error
    described = {element.get(_ABOUT): element for element in root.iter() if element.get(_ABOUT)}
    for element in root:
        kind = element.findtext(f"{_ZOTERO}itemType", "")
        if not kind or kind in {"attachment", "note"}:  # a journal, a collection, an attachment, a note
            continue
        if element.findtext(f"{_DC}title"):
            yield _work_from_zotero(element, kind, described)
        else:
            line = element.sourceline
            add_error(line if isinstance(line, int) else 0, "is a work without a title")


def _zotero_key(element: _Element) -> str:
    """Return the citation key of a work, else its name in the file, else its title."""
    noted = _CITATION_KEY.findall(element.findtext(f"{_DC}description") or "")
    stated = (element.findtext(f"{_ZOTERO}citationKey") or "").strip() or next(iter(noted), "")
    return (
        stated or (element.get(_ABOUT) or "").lstrip("#") or (element.findtext(f"{_DC}title") or "").strip()
    )


def _work_from_zotero(element: _Element, kind: str, described: Mapping[str | None, _Element]) -> Work:
    def text(name: str, of: _Element = element) -> str:
        return " ".join((of.findtext(name) or "").split())

    def persons(role: str) -> list[str]:
        names = [
            (
                text(f"{_FOAF}givenName", person) or text(f"{_FOAF}givenname", person),
                text(f"{_FOAF}surname", person),
            )
            for person in element.iterfind(f"{_BIB}{role}//{_FOAF}Person")
        ]
        return [" ".join(filter(None, name)) for name in names if any(name)]

    def targets(name: str) -> Iterator[_Element]:
        """Yield what a property leads to: an element within it, or the one that it names."""
        for leading in element.iterfind(name):
            if leading.get(_RESOURCE) in described:
                yield described[leading.get(_RESOURCE)]
            yield from leading

    containers = [title for part in targets(f"{_TERMS}isPartOf") if (title := text(f"{_DC}title", part))]
    identifiers = [
        text(".", each)
        for part in (element, *targets(f"{_TERMS}isPartOf"))
        for each in part.iterfind(f"{_DC}identifier")
    ]
    doi = next((each.removeprefix("DOI").strip() for each in identifiers if each.startswith("DOI")), "")
    files = [
        resource.get(_RESOURCE) or ""
        for attachment in targets(f"{_LINK}link")
        for resource in attachment.iterfind(f"{_RDF}resource")
    ]
    related = [each for each in targets(f"{_DC}relation") if each.findtext(f"{_DC}title")]
    subjects = (
        text(".", each) or text(f".//{_RDF}value", each) for each in element.iterfind(f"{_DC}subject")
    )
    return Work(
        _zotero_key(element),
        kind,
        text(f"{_DC}title"),
        persons("authors"),
        persons("editors"),
        next(iter(containers), "") or text(f"{_DC}publisher//{_FOAF}name"),
        text(f"{_TERMS}abstract"),
        [subject for subject in subjects if subject],
        _cited(element.findtext(f"{_DC}description") or ""),
        list(map(_zotero_key, related)),
        _properties(
            text(f"{_DC}date"),
            doi=doi,
            url=text(f"{_DC}identifier/{_TERMS}URI/{_RDF}value"),
            file=next((file for file in files if "://" not in file), ""),
        ),
    )


# Zotero CSV


def _is_zotero_table(path: Path) -> bool:
    """Return whether a CSV file is one that Zotero exported."""
    return _start_of(path, ".csv").startswith(b'"Key","Item Type",')


def _read_zotero_table(content: bytes, add_error: AddError) -> Iterator[Work]:
    csv.field_size_limit(max(csv.field_size_limit(), min(len(content), 2**31 - 1)))
    rows = csv.DictReader(io.StringIO(_decode(content), newline=""))
    for row in rows:
        values = {name: " ".join(str(value or "").split()) for name, value in row.items() if name}
        if not values.get("Key") or not values.get("Title"):
            add_error(rows.line_num, "is a work without a key or title")
            continue
        extra = str(row.get("Extra") or "")
        venues = ("Publication Title", "Conference Name", "Publisher")
        yield Work(
            next(iter(_CITATION_KEY.findall(extra)), "") or values["Key"],
            values.get("Item Type", "") or "work",
            values["Title"],
            _listed_persons(values.get("Author", "")),
            _listed_persons(values.get("Editor", "")),
            next((values[name] for name in venues if values.get(name)), ""),
            values.get("Abstract Note", ""),
            [
                word
                for name in ("Manual Tags", "Automatic Tags")
                for part in values.get(name, "").split(";")
                if (word := part.strip())
            ],
            _cited(extra),
            properties=_properties(
                values.get("Publication Year") or values.get("Date", ""),
                doi=values.get("DOI", ""),
                url=values.get("Url", ""),
                file=_file_of(values.get("File Attachments", "")).strip(),
            ),
        )


def _listed_persons(value: str) -> list[str]:
    """Return the names of a list such as ``Müller, Jörg; Wu, Jo``, the first name first."""
    return _persons(" and ".join(value.split(";"))) if value else []


# RIS

_RIS_LINE = re.compile(r"^([A-Z][A-Z0-9])  - ?(.*)$")
#: The tags of a field, the best first.
_RIS_TAGS = {
    "title": ("TI", "T1", "CT"), "venue": ("JO", "JF", "T2", "JA", "BT", "PB"), "abstract": ("AB", "N2"),
    "year": ("PY", "Y1", "DA"), "doi": ("DO",), "url": ("UR",), "file": ("L1",), "key": ("ID",),
}  # fmt: skip


def _read_ris(content: bytes, add_error: AddError) -> Iterator[Work]:
    tags: dict[str, list[str]] = {}
    last, begin = "", 0
    for number, line in enumerate([*_decode(content).splitlines(), "ER  - "], 1):
        match = _RIS_LINE.match(line)
        if match is None:
            if last and line.strip():  # a value of several lines
                tags[last][-1] = f"{tags[last][-1]} {line.strip()}"
            continue
        last, value = match[1], match[2].strip()
        if last != "ER":
            begin = number if last == "TY" else begin
            tags.setdefault(last, []).append(value)
            continue
        if work := _work_from_ris(tags):
            yield work
        elif tags:
            add_error(begin, "is a work without a title")
        tags, last = {}, ""


def _work_from_ris(tags: Mapping[str, list[str]]) -> Work | None:
    values = {
        name: next((tags[tag][0] for tag in tags_of if tags.get(tag)), "")
        for name, tags_of in _RIS_TAGS.items()
    }
    if not values["title"]:
        return None
    people = {
        role: "; ".join(name for tag in names for name in tags.get(tag, ())) for role, names in _RIS_PEOPLE
    }
    return Work(
        values["key"] or values["doi"] or values["title"],
        (tags.get("TY") or ["work"])[0].lower(),
        values["title"],
        _listed_persons(people["author"]),
        _listed_persons(people["editor"]),
        values["venue"],
        values["abstract"],
        tags.get("KW", []),
        _cited("\n".join(tags.get("N1", ()))),
        properties=_properties(values["year"], doi=values["doi"], url=values["url"], file=values["file"]),
    )


_RIS_PEOPLE = (("author", ("AU", "A1")), ("editor", ("ED", "A2")))


FORMATS = (
    GraphFormat(
        "bibtex",
        _reader(lambda content, add_error: read_bibtex(_decode(content), add_error)),
        (".bib", ".bibtex"),
    ),
    GraphFormat("csl-json", _reader(_read_csl), matches=_is_csl),
    GraphFormat("zotero-rdf", _reader(_read_zotero), matches=_is_zotero),
    GraphFormat("zotero-csv", _reader(_read_zotero_table), matches=_is_zotero_table),
    GraphFormat("ris", _reader(_read_ris), (".ris",)),
)
