"""The values that clew works with: documents and nodes, graphs, questions and answers.

All are frozen and slotted, and this module imports nothing else of clew. A knowledge base is nodes with text, joined
by edges. Documents, sections, pages, tables, table rows and passages are all nodes, so a question about "the table on
page 4" and one about the words of a passage are answered from one structure.

``to_dict`` of a value returns the JSON-compatible dictionary that ``--json`` prints and the server sends.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from pandas import DataFrame

# Documents and their nodes

#: Node kinds that a parser makes. Imported graphs bring types of their own.
DOCUMENT, SECTION, PAGE, TABLE, ROW, PASSAGE = "document", "section", "page", "table", "row", "passage"
KINDS = (DOCUMENT, SECTION, PAGE, TABLE, ROW, PASSAGE)
#: The kind of a node that stands for a triple of a graph, where a triple is given as evidence.
TRIPLE = "triple"
#: The kind of a node that stands for a graph node, where one is given as evidence or as an answer.
ENTITY = "entity"
#: The kinds whose text is searched and given as evidence.
RETRIEVED_KINDS = (PASSAGE, ROW)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page: 1-based page, PDF points, origin at the page's top left.

    ``confidence`` is how sure text recognition is of the words in it, 0 to 1; None where the file has them as text.
    """

    page: int
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float | None = None

    def to_list(self) -> list[float]:
        """Return page and edges, and the confidence where there is one."""
        edges = [self.page, self.x0, self.y0, self.x1, self.y1]
        return edges if self.confidence is None else [*edges, self.confidence]


def boxes_to_lists(boxes: Sequence[Box]) -> list[list[float]]:
    """Return boxes as JSON has them: page and edges."""
    return [[box.page, box.x0, box.y0, box.x1, box.y1] for box in boxes]


def picture_confidence(boxes: Sequence[Box]) -> float | None:
    """Return how sure text recognition is of the words in ``boxes`` on average; None where none was read from a
    picture."""
    confidences = [box.confidence for box in boxes if box.confidence is not None]
    return round(sum(confidences) / len(confidences), 3) if confidences else None


def union_box(boxes: Sequence[Box]) -> Box:
    """Return the rectangle around boxes of one page."""
    return Box(
        boxes[0].page,
        min(box.x0 for box in boxes),
        min(box.y0 for box in boxes),
        max(box.x1 for box in boxes),
        max(box.y1 for box in boxes),
        picture_confidence(boxes),
    )


def picture_mark(boxes: Sequence[Box]) -> str:
    """Return ``read from a picture, confidence 0.97`` for words that text recognition read, else ""."""
    confidence = picture_confidence(boxes)
    return "" if confidence is None else f"read from a picture, confidence {confidence:.2f}"


#: The words in the text of a row whose table has columns that could not be told apart.
HEADERS_UNCERTAIN = "[headers uncertain]"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the names above it, outermost first, and the unit and scale of its numbers.

    ``path`` is empty where nothing stands above it. ``unit`` is "$", "%", "shares", ..., "" where none is printed.
    Its numbers are multiples of ``scale``: 1e6 under "in millions".
    """

    path: tuple[str, ...] = ()
    unit: str = ""
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where a row stands in its table.

    A ``heading`` has no values and heads the group of rows below it. ``level`` is the indentation of the label, 0 for
    the outermost. ``groups`` are the headings of the groups that the row belongs to, outermost first. ``unit`` and
    ``scale`` are given where the row's own label overrides those of the columns ("per share").
    """

    kind: Literal["values", "heading", "total"] = "values"
    level: int = 0
    groups: tuple[str, ...] = ()
    unit: str = ""
    scale: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its cells in reading order. All rows have the same number of cells; ``header`` may be empty.

    ``boxes`` has one box for each page that the table covers. ``row_pages`` has the page of each row, ``cell_boxes``
    the box of each cell (None for an empty cell); both are empty where the format has no pages. ``columns`` has one
    column for each cell of a row, that of the labels first, and ``row_places`` the place of each row; a table in a
    :class:`ParsedNode` always has both. ``introduction`` is the sentence that introduces the table, ``statement`` the
    title of the statement that it belongs to. If ``headers_uncertain``, it is not known which name belongs to which
    column.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    boxes: tuple[Box, ...] = ()
    row_pages: tuple[int, ...] = ()
    columns: tuple[Column, ...] = ()
    row_places: tuple[RowPlace, ...] = ()
    cell_boxes: tuple[tuple[Box | None, ...], ...] = ()
    introduction: str = ""
    statement: str = ""
    headers_uncertain: bool = False


@dataclass(frozen=True, slots=True)
class ParsedNode:
    """A node as a parser makes it. Its position in ``ParsedDocument.nodes`` identifies it within the document.

    ``text`` is what a reader is shown: the paragraph, the heading, a table as Markdown, or a table row as
    ``caption. row header: column header: cell; ...``. ``name`` is what the node is called: a section's
    heading, a table's caption, a page's printed label. ``level`` is 1 for a top section and grows inward; 0
    for all other nodes. ``parent`` is the parent's position (a section, table or the document; ``None``
    for the document itself). ``page`` is the 1-based page on which the node starts. ``span`` is the half-open
    character range in ``ParsedDocument.text``; a row has the span of its table. ``table`` is set for tables alone.
    ``cells`` has the box of each cell of a row, on its page, None for an empty cell; it is empty without pages.
    """

    kind: str
    text: str
    parent: int | None = None
    name: str = ""
    level: int = 0
    page: int | None = None
    span: tuple[int, int] = (0, 0)
    boxes: tuple[Box, ...] = ()
    table: Table | None = None
    cells: tuple[Box | None, ...] = ()


#: Stands between the path of a file and the name of a file within it: ``mails/offer.eml//plan.pdf``. No path on disk
#: has it; an address (https://) begins with it.
MEMBER_SEPARATOR = "//"


_ADDRESS_START = re.compile(r"[a-z]+://")


def container_path(path: str) -> str:
    """Return the path of the file on disk that a path leads to or into.

    >>> container_path("/mails/offer.eml//plan.pdf"), container_path("https://example.org/a.zip//b.txt")
    ('/mails/offer.eml', 'https://example.org/a.zip')
    """
    match = _ADDRESS_START.match(path)
    start = match.end() if match else 0
    return path[:start] + path[start:].partition(MEMBER_SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class Member:
    """A file within a file: an attachment of a mail, a file of an archive. ``name`` may have folders, divided by "/".

    ``path`` is the file that it was written to, or "" where it cannot be read; then ``problem`` says why.
    """

    name: str
    path: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One file after parsing: a tree of nodes in reading order, the document itself first.

    ``text`` is the document's canonical text, to which spans refer. ``parser`` names the parser with its
    version and options (``pdf/1(passages=paragraph)``); together with the bytes it determines the key.
    ``notes`` are one-line remarks for the person who added the file ("page 3 has no text"). ``members`` are the files
    within this one that are to become documents of their own; they are no part of the document. ``fields`` are names
    and values that the file gives of itself: author, date, tag. ``left_out`` is what stands in the file and not in
    the text: why, the words, and how many times. Both are no part of the digest.
    """

    key: str
    title: str
    media_type: str
    parser: str
    text: str
    nodes: tuple[ParsedNode, ...]
    pages: int = 0
    notes: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str, int], ...] = ()


def count_left_out(left_out: Sequence[tuple[str, str, int]]) -> Counter[str]:
    """Return how many words of a document were left out, by reason."""
    words: Counter[str] = Counter()
    for reason, text, times in left_out:
        words[reason] += len(text.split()) * times
    return words


@dataclass(frozen=True, slots=True)
class Location:
    """Where a document's bytes were found. ``root`` is the folder (or file) that was given to ``add``."""

    path: str
    root: str
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document in a knowledge base. ``name`` is the file name of the first of its paths."""

    key: str
    name: str
    title: str
    media_type: str
    parser: str
    pages: int
    nodes: int
    paths: tuple[str, ...]
    #: The code of the language that it is written in, "" where that is not known.
    language: str = ""
    #: Names and values from the file: ("author", "Ada Strake"), ("date", "2021-03-05"), ("tag", "lease").
    fields: tuple[tuple[str, str], ...] = ()
    #: Where it is below the folders that were added: "contracts/2021".
    folders: tuple[str, ...] = ()
    #: What its reader calls it, besides the tags that the file itself states.
    tags: tuple[str, ...] = ()
    #: What stands in the file and is no text of the document: why, the words, how many times.
    left_out: tuple[tuple[str, str, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return names, sizes, and the paths where the document was found."""
        return {
            "key": self.key,
            "document": self.name,
            "title": self.title,
            "media_type": self.media_type,
            "parser": self.parser,
            "pages": self.pages,
            "nodes": self.nodes,
            "paths": list(self.paths),
            "language": self.language,
            "fields": [list(pair) for pair in self.fields],
            "folders": list(self.folders),
            "tags": list(self.tags),
        }


@dataclass(frozen=True, slots=True)
class Node:
    """A node as a knowledge base returns it. ``id`` is ``<document key>:<position>``.

    ``headings`` are the names of the sections that contain it, outermost first. ``document`` is the document's
    key and ``document_name`` its file name. The other fields are those of :class:`ParsedNode`.
    """

    id: str
    kind: str
    text: str
    document: str
    document_name: str
    position: int
    parent: str | None
    name: str
    level: int
    page: int | None
    headings: tuple[str, ...]
    span: tuple[int, int]
    boxes: tuple[Box, ...] = ()
    cells: tuple[Box | None, ...] = ()

    @property
    def place(self) -> str:
        """The place in words: ``report.pdf, page 3, Results > Costs``; of a triple or entity, its graph."""
        if self.kind in {TRIPLE, ENTITY}:
            return f"graph {self.document_name}"
        page = () if self.page is None else (f"page {self.page}",)
        headings = (" > ".join(self.headings),) if self.headings else ()
        mark = picture_mark(self.boxes)
        return ", ".join((self.document_name, *page, *headings, *([mark] if mark else [])))

    def to_dict(self) -> dict[str, Any]:
        """Return the node's place in its document, its kind, and its text."""
        return {
            "id": self.id,
            "kind": self.kind,
            "document": self.document_name,
            "key": self.document,
            "page": self.page,
            "section": " > ".join(self.headings),
            "name": self.name,
            "text": self.text,
            "span": list(self.span),
            "boxes": boxes_to_lists(self.boxes),
            **({} if (confidence := picture_confidence(self.boxes)) is None else {"confidence": confidence}),
        }


# Imported graphs


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of an imported graph. ``id`` is ``<graph name>:<external id>``.

    ``type`` is "" where the graph gives none; ``more_types`` holds the second type and further ones. ``name`` is the
    external id, or the readable part of an IRI, where the graph gives no name. Values of ``properties`` are JSON
    scalars, or a tuple of them where a property was given more than once.
    """

    id: str
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    text: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    more_types: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the node with its names, types, text and properties."""
        return {
            "id": self.id,
            "type": self.type,
            "also": list(self.more_types),
            "name": self.name,
            "aliases": list(self.aliases),
            "text": self.text,
            "properties": {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in self.properties.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of an imported graph: its number of edges, and the types of nodes that it joins.

    ``head_types`` and ``tail_types`` count edges by the types of their ends. An end without a type is not counted; an
    end with two types is counted twice. ``examples`` are names of heads and tails. ``id`` is the relation's own id
    where that differs from its name: the IRI of an RDF property.
    """

    edges: int
    head_types: Mapping[str, int] = field(default_factory=dict)
    tail_types: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[tuple[str, str], ...] = ()
    id: str = ""

    def to_dict(self, name: str) -> dict[str, Any]:
        """Return the relation called ``name`` with its counts and examples."""
        return {
            "relation": name,
            "id": self.id or name,
            "edges": self.edges,
            "head_types": dict(self.head_types),
            "tail_types": dict(self.tail_types),
            "examples": [list(pair) for pair in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the nodes of an imported graph: its number of values, and how many are numbers or dates.

    ``types`` counts values by the types of their nodes, as :class:`Relation` counts edges. ``example_row`` is the row
    of a node that has the property.
    """

    values: int
    numbers: int
    types: Mapping[str, int] = field(default_factory=dict)
    example_row: int = 0

    def to_dict(self, name: str, example: str) -> dict[str, Any]:
        """Return the property called ``name`` with its counts and the text of an example."""
        return {
            "property": name,
            "values": self.values,
            "numbers": self.numbers,
            "types": dict(self.types),
            "example": example,
        }


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """A node of a graph that a name in a question may refer to.

    ``score`` is from 0 to 1, comparable among the candidates of one name. ``reason`` says what supports the link
    (``name``, ``alias``, ``spelling 0.92``, ``context 0.41``), parts joined by ``, ``.
    """

    row: int
    id: str
    name: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class LinkedRelation:
    """A relation of a graph that a phrase in a question may refer to; ``inverse``: from the tail to the head.

    ``score`` is from 0 to 1, comparable among the candidates of one phrase; ``reason`` as in :class:`LinkedEntity`.
    """

    name: str
    inverse: bool
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A file from which a graph was imported. ``sha256`` is the hash of its bytes, in hexadecimal."""

    path: str
    size: int
    mtime_ns: int
    sha256: str


#: The option by which a graph is marked that was edited since it was read from its files.
GRAPH_EDITED = "edited"


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """An imported or mounted graph: its name, its sizes, and its source files. ``digest`` is a hash of its content.

    ``options`` are the options of the import, as JSON. A mounted graph has a ``url`` instead of files, which is its
    endpoint or the folder of its store, and no sizes.
    """

    name: str
    digest: str = ""
    nodes: int = 0
    edges: int = 0
    sources: tuple[GraphSource, ...] = ()
    options: str = ""
    url: str = ""

    @property
    def is_edited(self) -> bool:
        """Whether edges or nodes were added or removed since the graph was read from its files."""
        return self.options.startswith("{") and bool(json.loads(self.options).get(GRAPH_EDITED))

    def to_dict(self) -> dict[str, Any]:
        """Return the name, sizes and sources of the graph."""
        return {
            "graph": self.name,
            "nodes": self.nodes,
            "edges": self.edges,
            "digest": self.digest,
            "url": self.url or None,
            "edited": self.is_edited,
            "sources": [
                {"path": source.path, "size": source.size, "sha256": source.sha256} for source in self.sources
            ],
        }


@dataclass(frozen=True, slots=True)
class GraphEditCounts:
    """How many nodes and edges an edit of a graph changed.

    ``nodes_described`` are nodes of the graph that were described anew, ``edges_described`` edges that were given
    properties. ``missing`` are the ids and triples that were to be removed and are not in the graph.
    """

    nodes_added: int = 0
    nodes_removed: int = 0
    nodes_described: int = 0
    edges_added: int = 0
    edges_removed: int = 0
    edges_described: int = 0
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, and what is missing."""
        return asdict(self) | {"missing": list(self.missing)}


# Questions and answers


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a knowledge base to which a question is restricted; ``None`` means no restriction.

    ``documents`` are document keys, ``kinds`` node kinds, ``graphs`` names of graphs.
    """

    documents: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    graphs: frozenset[str] | None = None


#: Ranked answers that carry evidence where nothing else is asked for; and all of them.
EVIDENCE_FOR, EVIDENCE_FOR_ALL = 20, 1 << 30


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the part of the knowledge base that may answer it.

    ``chain`` is the question written in triples (:mod:`clew.triples.language`) by a person, for methods that would
    otherwise ask a model to write them; "" where there is none. ``excludes_named``: what the question names is no
    answer to it, as in MetaQA ("films by the director of Kismet" are other films). Of a ranked list, the first
    ``evidence_for`` answers carry the triples by which they meet each constraint.
    """

    text: str
    scope: Scope = Scope()
    chain: str = ""
    excludes_named: bool = False
    evidence_for: int = EVIDENCE_FOR


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved node, its score (higher is better, comparable within one result only), and its path.

    ``path`` holds the ids of the nodes by which the hit was reached, its own last; a hit of a plain search has a
    path of one. ``via`` says for each step after the first what joins it to its predecessor
    (``keywords: ohio, river``).
    """

    node: Node
    score: float
    path: tuple[str, ...] = ()
    via: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the node with its score and path."""
        return self.node.to_dict() | {
            "score": self.score,
            "path": list(self.path or (self.node.id,)),
            "via": list(self.via),
        }


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of model calls: calls, tokens in and out, seconds of waiting, money in US dollars.

    ``money`` is ``None`` where no price is known for the model, which is not the same as free.
    ``estimated``: some of the tokens were counted by rule, because the model did not report them. ``left_out`` counts
    the passages and exemplars that prompts had to do without, because the model's context was too small for them.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    money: float | None = 0.0
    estimated: bool = False
    left_out: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Add two usages; unknown money stays unknown."""
        known = self.money is not None and other.money is not None
        return Usage(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
            (self.money or 0.0) + (other.money or 0.0) if known else None,
            self.estimated or other.estimated,
            self.left_out + other.left_out,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return calls, tokens, seconds and money; ``money`` is null where no price is known."""
        return {
            "calls": self.calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "seconds": round(self.seconds, 3),
            "money": self.money,
            **({"left_out": self.left_out} if self.left_out else {}),
        }


@dataclass(frozen=True, slots=True)
class StepValue:
    """A value within a step of a trail, such as one of several paths."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON. A field ``left_out`` has the key "left out", unless its metadata names another
        ``key``; a field that is None is left out, and the items of a ``flat`` one stand beside the others."""
        return _fields_to_dict(self, ())


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trail: what was done, on what, with what outcome. The kinds of steps are in
    :mod:`clew.core.trail`; their fields are the outcome.

    ``name`` is a short verb phrase (``seed``, ``expand``, ``read``); ``hits`` are the nodes that came back, ``usage``
    is what the step's model calls cost.
    """

    name: ClassVar[str] = ""
    hits: tuple[Hit, ...] = field(default=(), kw_only=True)
    usage: Usage = field(default=Usage(), kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)

    @property
    def detail(self) -> dict[str, Any]:
        """The fields of this kind of step as JSON, for showing them (:meth:`StepValue.to_dict` has the rules)."""
        return _fields_to_dict(self, ("hits", "usage", "seconds"))

    def to_dict(self) -> dict[str, Any]:
        """Return the step. Hits are given by id and score; the evidence of the answer has the texts."""
        return {
            "name": self.name,
            "detail": self.detail,
            "hits": [
                {
                    "id": hit.node.id,
                    "document": hit.node.document_name,
                    "page": hit.node.page,
                    "score": hit.score,
                    "path": list(hit.path),
                    "via": list(hit.via),
                }
                for hit in self.hits
            ],
            "usage": self.usage.to_dict(),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class ShownStep(Step):
    """A step for display only. ``results`` maps labels to results; None results are omitted."""

    name: str = field()  # type: ignore[misc] # the name of this step, not of all of its kind
    results: Mapping[str, Any]

    @property
    def detail(self) -> dict[str, Any]:
        """The results as JSON."""
        return {key: _to_json(value) for key, value in self.results.items() if value is not None}


def _fields_to_dict(value: StepValue | Step, without: Sequence[str]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for each in fields(value):
        content = getattr(value, each.name)
        if each.name in without or content is None:
            continue
        if each.metadata.get("flat"):
            pairs |= _to_json(content)
        else:
            pairs[each.metadata.get("key", each.name.replace("_", " "))] = _to_json(content)
    return pairs


def _to_json(value: Any) -> Any:
    if isinstance(value, StepValue):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _to_json(item) for key, item in value.items()}
    return [_to_json(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class StoppedStep(Step):
    """A budget was spent before the work was done; ``budget`` says which."""

    name = "stopped"
    budget: str


@dataclass(frozen=True, slots=True)
class FallbackStep(Step):
    """A model's reply was missing or unusable. ``asked_for`` names the request, ``used`` the replacement, ``reply``
    is the beginning of the reply."""

    name = "fallback"
    asked_for: str
    used: str
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class LanguageStep(Step):
    """The question is not in the language that a part of clew reads. ``language`` is the question's, ``limit`` says
    in a sentence what was done instead."""

    name = "language"
    language: str
    limit: str


@dataclass(frozen=True, slots=True)
class RouteStep(Step):
    """It was decided what answers a question: ``method``, why, what else could be asked, and what each is expected to
    cost in model calls and seconds."""

    name = "route"
    method: str
    reason: str
    alternatives: tuple[str, ...] | None = None
    cost: str | None = None


@dataclass(frozen=True, slots=True)
class RespellStep(Step):
    """The graph has no node with the name that the question writes; a node with a similar name was used."""

    name = "respell"
    written: str
    read_as: str
    graph: str


# The trained reader


@dataclass(frozen=True, slots=True)
class ReaderPassage:
    """A passage for a reader: a title that says what it is about, and the text."""

    title: str
    text: str


SpanKind = Literal["text", "title", "yes", "no"]


@dataclass(frozen=True, slots=True)
class Span:
    """A possible answer: its text, its passage and character range there (of the title for ``title``), and its score.

    The score is the logit of the span minus that of "no answer". ``yes`` and ``no`` have no passage (-1).
    """

    text: str
    kind: SpanKind
    passage: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of the evidence that support an answer; ``span`` is their range in the text of ``node``, an id.

    ``answer`` is the range of the answer itself in that text (a name in the sentence, a cell in the row), None where
    nothing marks it. ``boxes`` are the boxes of the cells that the answer is, on the pages of a PDF.
    """

    node: str
    text: str
    span: tuple[int, int]
    answer: tuple[int, int] | None = None
    boxes: tuple[Box, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the quote and its place; ``answer`` is null where nothing marks it, and there are ``boxes`` only
        where they are known."""
        answer = None if self.answer is None else list(self.answer)
        boxes = {"boxes": boxes_to_lists(self.boxes)} if self.boxes else {}
        return {"node": self.node, "text": self.text, "span": list(self.span), "answer": answer, **boxes}


@dataclass(frozen=True, slots=True)
class CitedQuote:
    """A numbered quote of an answer with the node that it is in; ``number`` starts at 1."""

    number: int
    text: str
    node: Node

    @property
    def place(self) -> str:
        """The place of the quote in words: ``report.pdf, page 3, Results > Costs``."""
        return self.node.place

    def to_dict(self) -> dict[str, Any]:
        """Return number, quote and place. ``key`` is the document's key, which changes with its bytes."""
        place = self.node.to_dict()
        keys = ("document", "key", "page", "section", "id")
        return {"number": self.number, "text": self.text} | {key: place[key] for key in keys}


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another possible answer: its text, how sure the reader is of it (0 to 1), and the quote that it stands in."""

    text: str
    confidence: float
    quote: Quote

    def to_dict(self) -> dict[str, Any]:
        """Return text, confidence and quote."""
        return {"text": self.text, "confidence": round(self.confidence, 4), "quote": self.quote.to_dict()}


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
    """A constraint of a question, and how far an answer satisfies it.

    ``text`` is the constraint as it is written (``#1 >> directed_by >> David Lynch``). ``satisfaction`` is from 0 to
    1, None where the knowledge base does not tell. ``hits`` are the triples that satisfy it.
    """

    text: str
    satisfaction: float | None
    hits: tuple[Hit, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint with its evidence; ``met`` is null where the knowledge base does not tell."""
        return {
            "constraint": self.text,
            "met": self.satisfaction,
            "evidence": [{"id": hit.node.id, "text": hit.node.text} for hit in self.hits],
        }


#: The lists of ranked answers, which are never mixed: what meets everything with exact names, what does with near
#: names, what misses a constraint, and what only fills the list up.
EXACT_LIST, NEAR_LIST, MISSES_LIST, FILL_LIST = ("exact", "near names", "near miss", "other")
#: What places an answer that was looked for because it misses one constraint.
NEAR_MISS = "near miss"


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One answer of a ranked list, with the evidence for and against it.

    ``hit`` is the node, its text the one it was ranked by, its score comparable within the list. Where ``name`` is in
    no graph and was read from a passage, ``hit`` is the passage. ``meets_all``: it satisfies all constraints; others
    stand below. ``meets_rest``: it satisfies all but those that were given up or that no graph can hold.
    ``checks`` has every constraint; ``ranked_by`` says what ranked it (``vector 0.71``, ``model 0.9``).
    ``is_exact``: all names of the question were taken for what is called exactly so.
    """

    name: str
    hit: Hit
    meets_all: bool
    checks: tuple[ConstraintCheck, ...] = ()
    ranked_by: str = ""
    is_exact: bool = False
    meets_rest: bool = False

    @property
    def list_name(self) -> str:
        """The list of the answer: :data:`EXACT_LIST`, :data:`NEAR_LIST`, :data:`MISSES_LIST` or :data:`FILL_LIST`. A
        near miss meets some constraints and misses one, or meets the rest of those that were given up or that no
        graph can hold."""
        if self.meets_all:
            return EXACT_LIST if self.is_exact else NEAR_LIST
        hard = [check.satisfaction for check in self.checks if not check.text.startswith("~ ")]
        misses_one = any(hard) and sum(not satisfaction for satisfaction in hard) == 1
        return MISSES_LIST if self.meets_rest or self.ranked_by == NEAR_MISS or misses_one else FILL_LIST

    @property
    def missed_constraints(self) -> tuple[str, ...]:
        """The constraints that the answer is known not to satisfy."""
        return tuple(check.text for check in self.checks if check.satisfaction == 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer, the constraints that it satisfies and misses, and the text that it was ranked by."""
        return {
            "name": self.name,
            "id": self.hit.node.id,
            "graph": self.hit.node.document_name,
            "score": self.hit.score,
            "by": self.ranked_by,
            "meets_all": self.meets_all,
            "list": self.list_name,
            "missed": list(self.missed_constraints),
            "checks": [check.to_dict() for check in self.checks],
            "text": self.hit.node.text,
        }


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a node is not an answer to a question.

    ``constraints`` exclude it. With ``each_alone`` every one of them is enough: the node would be an answer if that
    one were dropped; else all of them would have to be dropped. ``restriction`` says what excludes it whatever the
    constraints. Where both are empty the node is an answer. ``checks`` has every constraint with its triples.
    """

    id: str
    name: str
    constraints: tuple[str, ...]
    each_alone: bool
    restriction: str = ""
    checks: tuple[ConstraintCheck, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Whether the node is an answer after all."""
        return not self.constraints and not self.restriction

    def to_dict(self) -> dict[str, Any]:
        """Return the node and the reasons for its exclusion."""
        return {
            "id": self.id,
            "name": self.name,
            "is_an_answer": self.is_answer,
            "dropped_by": list(self.constraints),
            "each_alone": self.each_alone,
            "restricted": self.restriction or None,
            "checks": [check.to_dict() for check in self.checks],
        }


@dataclass(frozen=True, slots=True)
class ConstraintSummary:
    """How a question was read as typed triples, and which of its constraints a ranked list does not satisfy.

    ``triples`` is the reading that counted, "" where there was none; ``matching`` the number of answers that satisfy
    all constraints, ranked or not; ``relaxed`` the constraints that contradicted others; ``dropped``
    those that the graph cannot hold, with the reason; ``matching_rest`` the number of nodes that satisfy all others
    where there are such. ``exact``: every name was taken for what is called exactly so,
    and the answers are exactly those that meet everything. Otherwise ``substitutions`` has the names of the question
    that were taken for another name of the graph, with that name.
    """

    triples: str
    matching: int = 0
    relaxed: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    exact: bool = False
    substitutions: Mapping[str, str] = field(default_factory=dict)
    matching_rest: int = 0


#: How an answer is given: stated, as one of at most three possible ones, or not at all.
Way = Literal["answer", "perhaps", "not_found"]
#: An answer is stated if the estimated probability that it is right is at least so high (decision 70).
STATED_FROM = 0.65
#: Words of a sentence are stated where they are likelier right than not (decision 80): a person sees in it whether.
QUOTED_FROM = 0.5
#: A less likely one is not shown as possible.
SHOWN_FROM = 0.12
#: So many possible answers are given at most.
MAX_POSSIBLE = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """The formal query that gave an answer.

    ``kind`` is ``graph`` (``text`` has typed triples), ``chain`` (a chain of triples), ``table`` (SQL), ``structure``
    (places of documents, in words) or ``sequence`` (a line for each step). ``operation`` is what was asked of it:
    ``list``, ``count``, ``yes_no``, ``value``, what SQL computes, or ``show``, ``locate``, ... of structures.
    """

    kind: Literal["graph", "chain", "table", "structure", "sequence"]
    text: str
    operation: str = "list"

    def to_dict(self) -> dict[str, str]:
        """Return kind, text and operation."""
        return {"kind": self.kind, "text": self.text, "operation": self.operation}


#: How :attr:`Answer.route` names what was asked, where that is not "the" and the name of the method.
_ROUTE_PLACES = {
    "mixed": "steps, each from its source",
    "drill": "the sections of a document",
    "parts": "answers to its parts",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with everything needed to check it.

    ``reader`` names the reader that wrote the text: ``extractive`` when no language model did. ``abstained`` is
    true when the evidence does not contain the answer, or when no answer was given for another reason; ``text`` then
    says so, and the evidence is the nearest that was found. ``rejected_quotes`` are quotes that a model gave and that
    are not verbatim in their source; they support nothing. ``context`` is what the reader was given to read.
    ``values`` are the single answers where there are several. ``from_memory`` lists the statements that rest on
    nothing but the model's memory. ``ranking`` is a ranked list of answers, best first, those that only fill it up
    included. ``confidence`` is the estimated probability that the text is right, of a reader that estimates it;
    ``alternatives`` are its next best answers, best first. ``formula`` shows how a number was computed from the cells
    that are quoted, or how values were compared; "" where nothing was computed. ``plan`` is the formal query that was
    run, if one was. ``empty``: that nothing meets the query is the answer. ``missing`` is what a model says that the
    answer still needs and no passage that it was shown states.

    ``by_rule``: rules over the words of the question chose the answer or its confidence, and no fitted model judged
    them. ``others`` are the answers of the next readings of the question, where there are several.
    :meth:`weigh` makes of such an answer, and of an unlikely one, a ``possible`` one, which is not stated.
    """

    text: str
    evidence: tuple[Hit, ...] = ()
    quotes: tuple[Quote, ...] = ()
    rejected_quotes: tuple[str, ...] = ()
    trail: tuple[Step, ...] = ()
    usage: Usage = Usage()
    abstained: bool = False
    reader: str = "extractive"
    recipe: str = ""
    context: tuple[Hit, ...] = ()
    values: tuple[str, ...] = ()
    from_memory: tuple[str, ...] = ()
    ranking: tuple[RankedAnswer, ...] = ()
    constraints: ConstraintSummary | None = None
    confidence: float | None = None
    alternatives: tuple[Alternative, ...] = ()
    formula: str = ""
    plan: Plan | None = None
    empty: bool = False
    missing: str = ""
    by_rule: bool = False
    possible: bool = False
    others: tuple[Answer, ...] = ()

    def weigh(self) -> Answer:
        """Return the answer as it is given to a person or a program: it is stated only if it is exact, written by a
        language model, or likely enough by a fitted confidence. Else ``abstained`` and ``possible`` are true. A
        confidence that was set by hand is dropped."""
        if self.abstained:
            return self
        confidence = None if self.by_rule else self.confidence
        possible = self.by_rule or (confidence is not None and confidence < self.stated_from)
        return replace(self, confidence=confidence, possible=possible, abstained=possible)

    @property
    def stated_from(self) -> float:
        """The confidence from which on the answer is stated: lower for words of a sentence."""
        is_cell = any(hit.node.kind == ROW for hit in self.evidence[:1])
        return QUOTED_FROM if self.quotes and self.plan is None and not is_cell else STATED_FROM

    @property
    def way(self) -> Way:
        """How the answer is given. ``perhaps``: ``text`` is the likeliest of the :attr:`perhaps`."""
        return "perhaps" if self.possible else "not_found" if self.abstained else "answer"

    @property
    def perhaps(self) -> tuple[Answer, ...]:
        """The possible answers, likeliest first, where none is stated: this one and its next alternatives."""
        if not self.possible:
            return ()
        if self.others:
            return (self, *(replace(other, possible=True, abstained=True) for other in self.others))
        others = (
            Answer(
                other.text,
                tuple(hit for hit in self.evidence if hit.node.id == other.quote.node),
                (other.quote,),
                abstained=True,
                reader=self.reader,
                recipe=self.recipe,
                confidence=other.confidence,
                possible=True,
            )
            for other in self.alternatives[: MAX_POSSIBLE - 1]
        )
        return (self, *others)

    @property
    def stop_reason(self) -> str:
        """The budget that ended the work on this answer before it was done; "" where none did."""
        return next((step.budget for step in self.trail if isinstance(step, StoppedStep)), "")

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What was used in the place of a model's replies that could not be, of names that no graph has, and of
        what reads only English, each in a sentence, each once."""
        sentences = []
        for step in self.trail:
            if isinstance(step, FallbackStep):
                sentences.append(f"the model's {step.asked_for} could not be used: {step.used}")
            elif isinstance(step, RespellStep):
                sentences.append(
                    f"'{step.written}' is not in the graph '{step.graph}'; read as '{step.read_as}'"
                )
            elif isinstance(step, LanguageStep):
                sentences.append(step.limit)
        return tuple(dict.fromkeys(sentences))

    @property
    def route(self) -> str:
        """Where the answer comes from, why, and at what expected cost, where that was decided; "" where there was
        nothing to decide."""
        steps = [step for step in self.trail if isinstance(step, RouteStep)]
        if not steps:
            return ""
        step = steps[0] if steps[0].method == "parts" else steps[-1]
        place = _ROUTE_PLACES.get(step.method, f"the {step.method}")
        cost = f" (expected: {step.cost})" if step.cost else ""
        return f"From {place}: {step.reason}{cost}"

    @property
    def citations(self) -> tuple[CitedQuote, ...]:
        """The quotes with their documents and pages, numbered from 1."""
        nodes = {hit.node.id: hit.node for hit in (*self.evidence, *self.context)}
        quotes = [quote for quote in self.quotes if quote.node in nodes]
        return tuple(CitedQuote(n, quote.text, nodes[quote.node]) for n, quote in enumerate(quotes, 1))

    def __str__(self) -> str:
        """Return the text, marked as a possible answer where it is one, and below it a line for each citation."""
        lines = [f"[{item.number}] {item.place}: “{item.text}”" for item in self.citations]
        text = f"Perhaps: {self.text}" if self.possible else self.text
        return "\n".join([text, *([""] if lines else []), *lines])

    def _repr_html_(self) -> str:
        """Return the answer as a notebook shows it: the text, how sure, and each quote with its place."""
        from html import escape

        items = (
            f"<li><q>{escape(item.text)}</q><br><small>{escape(item.place)}</small></li>"
            for item in self.citations
        )
        sure = "" if self.confidence is None else f" <small>{self.confidence:.0%}</small>"
        text = f"<strong>{escape(self.text)}</strong>" if self.way == "answer" else escape(self.text)
        text = f"Perhaps: {text}" if self.possible else text
        return f'<div dir="auto"><p>{text}{sure}</p><ol>{"".join(items)}</ol></div>'

    def to_pandas(self) -> DataFrame:
        """Return the evidence as a ``pandas.DataFrame``: a row for each hit, best first, with its quotes.

        Raises ImportError where pandas is not installed.
        """
        import pandas

        columns = ["score", "document", "page", "section", "kind", "text", "quotes", "id"]
        rows = []
        for hit in self.evidence:
            quotes = [quote.text for quote in self.quotes if quote.node == hit.node.id]
            rows.append(hit.to_dict() | {"quotes": quotes})
        return pandas.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer with evidence, quotes and trail; ``stopped`` is the budget that ended it, or null.
        ``abstained`` is true exactly where the ``way`` is not "answer"."""
        return self._to_reading() | {
            "way": self.way,
            "perhaps": [answer._to_reading() for answer in self.perhaps],
            "abstained": self.abstained,
            "stopped": self.stop_reason or None,
            "fallbacks": list(self.fallbacks),
            "route": self.route or None,
            "reader": self.reader,
            "recipe": self.recipe,
            "evidence": [hit.to_dict() for hit in self.evidence],
            "alternatives": [alternative.to_dict() for alternative in self.alternatives],
            "formula": self.formula,
            "rejected": list(self.rejected_quotes),
            "remembered": list(self.from_memory),
            "ranked": [ranked.to_dict() for ranked in self.ranking],
            "substitutions": dict(self.constraints.substitutions) if self.constraints else {},
            "trail": [step.to_dict() for step in self.trail],
            "usage": self.usage.to_dict(),
        }

    def _to_reading(self) -> dict[str, Any]:
        """Return what a stated answer and each possible one have in their JSON."""
        return {
            "answer": self.text,
            "values": list(self.values),
            "quotes": [quote.to_dict() for quote in self.quotes],
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "plan": None if self.plan is None else self.plan.to_dict(),
            "empty": self.empty,
        }
