"""Random small corpora, and neighbours counted pair by pair."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from clew.core.protocols import Graph, Snapshot
from clew.core.types import RETRIEVED_KINDS, Location, Node, ParsedDocument, Scope
from clew.parse.documents.builder import DocumentBuilder

WORDS = "river ferry gauge bank pilot bell toll lease clerk storm the of and was in".split()
NAMES = ["Ohio", "Alf Clausen", "Bank of Ohio", "Port Quill", "Quill", "Mill Lane 7", "1929", "Heron"]


def document(title: str, *paragraphs: str) -> ParsedDocument:
    """A document without pages or sections."""
    builder = DocumentBuilder()
    for paragraph in paragraphs:
        builder.add_paragraph(paragraph)
    return finish_document(builder, title)


def finish_document(
    builder: DocumentBuilder, title: str, pages: int = 0, media_type: str = "text/plain"
) -> ParsedDocument:
    data = "\n".join([title, *(f"{node.kind} {node.text} {node.page}" for node in builder._nodes)]).encode()
    return builder.finish(data=data, title=title, media_type=media_type, parser="test/1", pages=pages)


def locate(parsed: ParsedDocument, name: str = "") -> Location:
    return Location(
        f"/documents/{parsed.key}/{name or parsed.title}", "/documents", 1, 1, abs(hash(parsed.key)) % 10**9
    )


def corpus(seed: int, documents: int = 8) -> list[ParsedDocument]:
    """Documents whose titles are among the names that they all mention; some share a title."""
    draw = random.Random(seed)

    def sentence() -> str:
        words = draw.choices(WORDS, k=draw.randint(2, 9))
        for name in draw.sample(NAMES, draw.randint(0, 2)):
            words.insert(draw.randint(0, len(words)), name)
        return " ".join(words) + "."

    titles = [draw.choice([*NAMES, "Storm (1929)", "notes", "The Ferry"]) for _ in range(documents)]
    return [
        document(title, f"Copy {number}.", *(sentence() for _ in range(draw.randint(1, 6))))
        for number, title in enumerate(titles)
    ]


def passages(snapshot: Snapshot) -> list[Node]:
    return snapshot.nodes(np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)))


def edges(snapshot: Snapshot, graph: Graph) -> set[tuple[str, str]]:
    """Every edge as a pair of node ids, from the neighbours of each passage."""
    results = set()
    for node in passages(snapshot):
        rows = graph.neighbours(int(snapshot.rows([node.id])[0]))
        assert rows.dtype == np.int64
        assert rows.tolist() == sorted(set(rows.tolist()))
        results |= {(node.id, other) for other in snapshot.ids(rows)}
    return results


def pairs(nodes: list[Node], joined: Callable[[Node, Node], bool]) -> set[tuple[str, str]]:
    return {(a.id, b.id) for a in nodes for b in nodes if a.id != b.id and joined(a, b)}


def texts(snapshot: Snapshot, found: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Edges by text, comparable between bases."""
    by_id = {node.id: node.text for node in passages(snapshot)}
    return sorted((by_id[a], by_id[b]) for a, b in found)
