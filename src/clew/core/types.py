"""Documents and their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "DOCUMENT",
    "ENTITY",
    "KINDS",
    "PAGE",
    "PASSAGE",
    "RETRIEVED_KINDS",
    "ROW",
    "SECTION",
    "TABLE",
    "TRIPLE",
    "Answer",
    "Box",
    "ConstraintCheck",
    "Document",
    "Edge",
    "Entity",
    "Exclusion",
    "GraphInfo",
    "GraphSource",
    "Hit",
    "LinkedEntity",
    "LinkedRelation",
    "Location",
    "Node",
    "ParsedDocument",
    "ParsedNode",
    "Property",
    "Question",
    "Quote",
    "RankedAnswer",
    "Relation",
    "Scope",
    "Step",
    "Usage",
]

#: Node kinds that a parser makes. Imported graphs bring kinds of their own.
DOCUMENT, SECTION, PAGE, TABLE, ROW, PASSAGE = "document", "section", "page", "table", "row", "passage"
KINDS = (DOCUMENT, SECTION, PAGE, TABLE, ROW, PASSAGE)
#: The kind of a node that stands for a triple of a graph, where one is given as evidence.
TRIPLE = "triple"
#: The kind of a node that stands for a node of a graph, where one is given as evidence or as an answer.
ENTITY = "entity"
#: The kinds whose text is searched and given as evidence.
RETRIEVED_KINDS = (PASSAGE, ROW)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page: 1-based page, PDF points, origin at the page's top left."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class ParsedNode:
    """A node as a parser makes it; its position in ``ParsedDocument.nodes`` is its identity there.

    ``text`` is what a reader is shown: the paragraph, the heading, a table as Markdown, or a table row as
    ``caption. row header: column header: cell; ...``. ``name`` is what the node is called: a section's
    heading, a table's caption, a page's printed label. ``level`` is 1 for a top section and grows inward; 0
    for what is not a section. ``parent`` is the parent's position (a section, table or the document; ``None``
    for the document itself). ``page`` is the 1-based page on which the node starts. ``span`` is the half-open
    character range in ``ParsedDocument.text``; a row's is its table's.
    """

    kind: str
    text: str
    parent: int | None = None
    name: str = ""
    level: int = 0
    page: int | None = None
    span: tuple[int, int] = (0, 0)
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One file, read: a tree of nodes in reading order, the document itself first.

    ``text`` is the document's canonical text, which spans refer to. ``parser`` names the parser with its
    version and options (``pdf/1(passages=paragraph)``); together with the bytes it determines the key.
    ``notes`` are one-line remarks for the person who added the file ("page 3 has no text").
    """

    key: str
    title: str
    media_type: str
    parser: str
    text: str
    nodes: tuple[ParsedNode, ...]
    pages: int = 0
    notes: tuple[str, ...] = ()


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
    """A document in a knowledge base. ``name`` is its file name: that of the smallest of its paths."""

    key: str
    name: str
    title: str
    media_type: str
    parser: str
    pages: int
    nodes: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node as a knowledge base returns it. ``id`` is ``<document key>:<position>``.

    ``headings`` is the path of section names that lead to it, outermost first. ``document`` is the document's
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


@dataclass(frozen=True, slots=True)
class Edge:
    """An asserted edge between two nodes, by id; ``owner`` names what asserted it and takes it away again."""

    source: str
    relation: str
    target: str
    owner: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of an imported graph. ``id`` is ``<graph name>:<external id>``.

    ``type`` is "" where the graph gives none; ``also`` holds further types. ``name`` is the external id, or the
    readable part of an IRI, where the graph gives none. Values of ``properties`` are JSON scalars, or a tuple of
    them where a property was given more than once.
    """

    id: str
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    text: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    more_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of an imported graph: how many edges it has, and what it joins.

    ``head_types`` and ``tail_types`` count edges by the types of their ends; ends without a type are not in them,
    one with two is in them twice. ``examples`` are names of heads and tails. ``id`` is the relation's own id where
    that is not its name: the IRI of an RDF property.
    """

    edges: int
    head_types: Mapping[str, int] = field(default_factory=dict)
    tail_types: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[tuple[str, str], ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the nodes of an imported graph: how many values it has, and how many of them are numbers or days.

    ``types`` count values by the types of their nodes, as those of :class:`Relation` do. ``row`` is that of a node
    that has it, to be shown as an example.
    """

    values: int
    numbers: int
    types: Mapping[str, int] = field(default_factory=dict)
    example_row: int = 0


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """A node of a graph that a name in a question may stand for.

    ``score`` is from 0 to 1, comparable among the candidates of one name; ``how`` says what speaks for it
    (``name``, ``alias``, ``spelling 0.92``, ``context 0.41``), parts joined by ``, ``.
    """

    row: int
    id: str
    name: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class LinkedRelation:
    """A relation of a graph that words in a question may stand for; ``inverse``: from the tail to the head.

    ``score`` is from 0 to 1, comparable among the candidates for one phrase; ``how`` as in :class:`LinkedEntity`.
    """

    name: str
    inverse: bool
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A file that a graph was made of. ``sha256`` is that of its bytes, in hexadecimal."""

    path: str
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """An imported graph: its name, sizes, and what it was made of. ``digest`` is a hash of what it holds.

    ``options`` are those of the reading, as JSON. A mounted graph has a ``url`` instead of files, and no
    sizes: its endpoint, or the folder of its store.
    """

    name: str
    digest: str = ""
    nodes: int = 0
    edges: int = 0
    sources: tuple[GraphSource, ...] = ()
    options: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question is restricted to; ``None`` means everything. ``documents`` are document keys, ``graphs`` names
    of graphs."""

    documents: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    graphs: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the part of the knowledge base that may answer it.

    ``chain`` is the question as a person wrote it down in triples (:mod:`clew.triples.language`), for the
    methods that would
    otherwise ask a model to; "" where none did.
    """

    text: str
    scope: Scope = Scope()
    chain: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved node, its score (higher is better, comparable within one result only), and its path.

    ``path`` holds the ids of the nodes by which it was reached, itself last; a hit of a plain search has a
    path of one. ``via`` says for each step after the first what joined it to its predecessor
    (``keywords: ohio, river``).
    """

    node: Node
    score: float
    path: tuple[str, ...] = ()
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost: calls, tokens in and out, seconds of waiting, money in US dollars.

    ``money`` is ``None`` where no price is known for the model, which is not the same as free.
    ``estimated``: some of the tokens were counted by rule, because the model did not say.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    money: float | None = 0.0
    estimated: bool = False

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
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trail: what was done, on what, with what outcome.

    ``name`` is a short verb phrase (``seed``, ``expand``, ``generate``, ``read``, ``structure``); ``detail``
    holds what a person would want to check, JSON-compatible; ``hits`` the nodes that came back.
    """

    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    hits: tuple[Hit, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of the evidence on which an answer rests; ``span`` is the range in the node's own text."""

    node: str
    text: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
    """A constraint of a question, and how far an answer meets it.

    ``text`` is the constraint as it is written (``#1 >> directed_by >> David Lynch``); ``met`` is from 0 to 1, None
    where nothing that is known says so; ``hits`` are the triples by which it is met.
    """

    text: str
    satisfaction: float | None
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One answer of a ranked list, with what speaks for it and against it.

    ``hit`` is the node, its text what it was ranked by, its score comparable within the list; for a ``name`` that no
    graph has and that was read from a passage, the passage. ``firm``: it meets all constraints that were not given
    up; otherwise it only fills the list up, and stands below all that do. ``checks`` has every constraint; ``by``
    says what ranked it (``vector 0.71``, ``model 0.9``).
    """

    name: str
    hit: Hit
    meets_all: bool
    checks: tuple[ConstraintCheck, ...] = ()
    ranked_by: str = ""

    @property
    def missed_constraints(self) -> tuple[str, ...]:
        """The constraints that it is known not to meet."""
        return tuple(one.text for one in self.checks if one.satisfaction == 0)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a node is no answer to a question.

    ``constraints`` drop it: with ``alone`` each by itself, and without any one of them it would be an answer; else
    all of them would have to go. ``restricted`` says what keeps it out whatever the constraints. Where both are empty
    it is an answer. ``checks`` has every constraint, with the triples by which it is met.
    """

    id: str
    name: str
    constraints: tuple[str, ...]
    each_alone: bool
    restriction: str = ""
    checks: tuple[ConstraintCheck, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Whether it is an answer after all."""
        return not self.constraints and not self.restriction


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with everything needed to check it.

    ``reader`` says how the text came about: ``extractive`` when no language model wrote it. ``abstained`` is
    true when the evidence does not hold the answer, or none was given for another reason; ``text`` then says
    so, and the evidence is what came nearest. ``rejected`` holds quotes that a model gave and that are not
    verbatim in their source; they support nothing. ``context`` is what the reader was given to read.
    ``values`` are the answers one by one where there are several. ``remembered`` says what rests on nothing but the
    model's memory. ``ranked`` are the answers of a ranked list, best first, those that fill it up among them.
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

    @property
    def stop_reason(self) -> str:
        """What ended the work on this answer before it was done (a spent budget); "" where nothing did."""
        return next((str(step.detail.get("budget", "")) for step in self.trail if step.name == "stopped"), "")


# MERGED: Imported graphs: their nodes and relations, and what words stand for in them.
# MERGED: Questions, hits, trails and answers.
# MERGED: The values that clew is made of. Frozen, slotted, and importing nothing of ours.
