"""Documents and their nodes."""

from __future__ import annotations

from dataclasses import dataclass

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
