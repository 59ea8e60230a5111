"""What the tests of parsers look at: a document as an outline that reads like the page."""

from __future__ import annotations

from clew.core.types import DOCUMENT, PAGE, PASSAGE, ROW, SECTION, TABLE, ParsedDocument
from clew.parse.documents.reader import parse


def read(text: str | bytes, name: str, unit: str = "paragraph") -> ParsedDocument:
    """Parse, and check what holds of every document."""
    data = text.encode() if isinstance(text, str) else text
    document = parse(data, name, unit="sentence" if unit == "sentence" else "paragraph")
    check(document)
    return document


def check(document: ParsedDocument) -> None:
    """Spans say where each node's text is; parents come first; siblings do not overlap."""
    root = document.nodes[0]
    assert (root.kind, root.parent, root.span) == (DOCUMENT, None, (0, len(document.text)))
    assert root.name == document.title != ""
    end = 0
    for place, node in enumerate(document.nodes[1:], 1):
        assert node.parent is not None
        assert node.parent < place
        parent = document.nodes[node.parent]
        if node.kind == ROW:
            assert parent.kind == TABLE
            assert node.span == parent.span
            continue
        if node.kind == PAGE:
            continue
        assert parent.kind in (DOCUMENT, SECTION)
        assert document.text[slice(*node.span)] == node.text
        assert node.span[0] >= end
        end = node.span[1]
        if node.kind == SECTION and parent.kind == SECTION:
            assert parent.level < node.level
    assert end == len(document.text)


def outline(document: ParsedDocument) -> list[str]:
    """Return sections as ``# name`` by level, passages as they are, rows after ``| ``; no tables."""
    marks = {SECTION: "", PASSAGE: "", ROW: "| "}
    return [
        ("#" * node.level + " " if node.kind == SECTION else marks[node.kind]) + node.text
        for node in document.nodes
        if node.kind in marks
    ]


def read_outline(text: str | bytes, name: str) -> list[str]:
    """Parse and return the outline."""
    return outline(read(text, name))


def tables(document: ParsedDocument) -> list[str]:
    """Return the tables as Markdown."""
    return [node.text for node in document.nodes if node.kind == TABLE]
