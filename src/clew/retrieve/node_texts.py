"""The texts that stand for a node of a graph: its document, and its chunks.

A node's document is what STaRK makes of one (Wu et al., NeurIPS 2024, Section 2 and Appendix; ``get_doc_info`` with
relations): name, type, properties, text, and its relations with the names of their other ends. Deviations: one form
for every graph instead of one for each benchmark; of a relation with many ends the first by id are named and the
others counted, where STaRK draws some at random, so that a node has one text and not a new one each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph, Snapshot
    from clew.core.types import Entity

#: Changing how documents or chunks are written changes this name, and their vectors and words are made again.
VERSION = 1
#: A graph with more relations is first asked which of them a few nodes have.
MANY_RELATIONS = 64
#: Names of other ends that are remembered.
_NAMES = 200_000


@dataclass(frozen=True, slots=True)
class NodeTexts:
    """Writes the texts of the nodes of one graph.

    ``each`` other ends of a relation are named, and a document has at most ``characters``, of which the relations get
    at least a third where the text is too long. A chunk has at most ``size`` characters.
    """

    graph: PropertyGraph
    ends_per_relation: int = 10
    characters: int = 6000
    chunk_size: int = 400
    _names: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def document_name(self) -> str:
        """The name of the kind of text that a document is; what is kept of it is kept under this."""
        return f"document/{VERSION} {self.ends_per_relation} {self.characters}"

    @property
    def chunk_name(self) -> str:
        """The name of the kind of text that chunks are."""
        return f"chunks/{VERSION} {self.ends_per_relation} {self.characters} {self.chunk_size}"

    def documents(self, rows: Rows) -> list[str]:
        """Return the document of each node."""
        return [
            join_document(own, relations, self.characters)
            for own, relations in zip(*self._parts(rows), strict=True)
        ]

    def single_texts(self, rows: Rows) -> list[list[str]]:
        """Return the same as :class:`clew.core.protocols.NodeVectors` takes it: one text for each node."""
        return [[one] for one in self.documents(rows)]

    def chunks(self, rows: Rows) -> list[list[str]]:
        """Return the document of each node in pieces, text and relations never in one, each after the node's name."""
        entities = self.graph.entities(rows)
        return [
            [
                f"{entity.name}: {piece}"
                for part in (own, relations)
                for piece in split_text(
                    part[: self.characters], max(self.chunk_size - len(entity.name) - 2, 1)
                )
            ]
            for entity, own, relations in zip(entities, *self._parts(rows, entities), strict=True)
        ]

    def _parts(self, rows: Rows, entities: Sequence[Entity] | None = None) -> tuple[list[str], list[str]]:
        """Return for each node what is said of it alone, and its relations."""
        rows = np.asarray(rows, dtype=np.int64)
        if entities is None:
            entities = self.graph.entities(rows)
        return [describe_entity(one) for one in entities], [
            "\n".join(lines) and "relations:\n" + "\n".join(lines) for lines in self._relations(rows)
        ]

    def _relations(self, rows: Rows) -> list[list[str]]:
        """Return a line for each relation of each node, those that it is the head of first."""
        names: Sequence[str] = list(self.graph.relations())
        if len(names) > MANY_RELATIONS:
            names = self.graph.relations_at(rows)
        found: list[list[tuple[str, list[int], int]]] = [[] for _ in range(len(rows))]
        ends: set[int] = set()
        for relation in names:
            ways = [
                _few(*self.graph.neighbours(rows, relation, inverse), self.ends_per_relation)
                for inverse in (False, True)
            ]
            for place, (out, back) in enumerate(zip(*ways, strict=True)):
                # A relation that is given both ways, as undirected ones are, is said once.
                for words, (some, count) in (
                    (relation, out),
                    (f"{relation} of", back if back != out else ([], 0)),
                ):
                    if some:
                        found[place].append((words, some, count))
                        ends.update(some)
        called = self._called(ends)
        return [
            [
                f"{words}: {', '.join(called[end] for end in some)}"
                + (f" and {count - len(some):,} more" if count > len(some) else "")
                for words, some, count in sorted(lines, key=lambda one: one[0].endswith(" of"))
            ]
            for lines in found
        ]

    def _called(self, rows: set[int]) -> dict[int, str]:
        # Copied at once: threads share what is remembered.
        called = {row: name for row in rows if (name := self._names.get(row)) is not None}
        wanted = np.array(sorted(rows - called.keys()), dtype=np.int64)
        new = {row: one.name for row, one in zip(wanted.tolist(), self.graph.entities(wanted), strict=True)}
        if len(self._names) + len(new) > _NAMES:
            self._names.clear()
        self._names.update(new)
        return called | new


def node_texts(snapshot: Snapshot, graph: PropertyGraph) -> NodeTexts:
    """Return what writes the texts of a graph's nodes; the same object for one view of a base."""
    found: NodeTexts = snapshot.memoize(f"node texts/{graph.name}", lambda: NodeTexts(graph))
    return found


def _few(offsets: Rows, ends: Rows, most: int) -> Iterator[tuple[list[int], int]]:
    """Yield the first ends of each row, and how many there are."""
    for start, end in pairwise(offsets.tolist()):
        yield ends[start : min(end, start + most)].tolist(), end - start


def describe_entity(entity: Entity) -> str:
    """Return what is said of a node alone: name, aliases, types, properties, text; a line each."""
    types = ", ".join(one for one in (entity.type, *entity.more_types) if one)
    lines = [f"name: {entity.name}"]
    if entity.aliases:
        lines.append(f"also: {'; '.join(entity.aliases)}")
    if types:
        lines.append(f"type: {types}")
    for key, value in sorted(entity.properties.items()):
        lines.append(f"{key}: {'; '.join(map(str, value)) if isinstance(value, tuple) else value}")
    if entity.text:
        lines.append(entity.text)
    return "\n".join(lines)


def join_document(own: str, relations: str, characters: int) -> str:
    """Return a document of at most ``characters``: where it is too long, the end of the text is cut first, but the
    relations keep no more than two thirds for it."""
    if not relations:
        return own[:characters]
    room = max(characters - len(relations) - 1, characters * 2 // 3)
    return f"{own[:room].rstrip()}\n{relations}"[:characters]


def split_text(text: str, size: int) -> list[str]:
    """Return a text in pieces of at most ``size`` characters, as many whole lines as fit; what is longer than that is
    cut between words."""
    found: list[str] = []
    for line in text.splitlines():
        for part in _cut(line, size):
            if found and len(found[-1]) + 1 + len(part) <= size:
                found[-1] += f"\n{part}"
            else:
                found.append(part)
    return found


def _cut(line: str, size: int) -> Iterator[str]:
    while len(line) > size:
        at = line.rfind(" ", 0, size + 1)
        at = at if at > 0 else size
        yield line[:at].rstrip()
        line = line[at:].lstrip()
    if line:
        yield line
