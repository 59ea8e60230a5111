"""The texts of a graph's node: its document, and the chunks of that.

A node's document is written as STaRK does (Wu et al., NeurIPS 2024, Section 2 and Appendix; ``get_doc_info`` with
relations): name, type, properties, text, and its relations with the names of the nodes at their other ends. There are
two deviations. One form serves every graph, instead of one for each benchmark. Of a relation with many ends the first
by id are named and the others counted, where STaRK draws some at random, so that a node always has the same text.
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

#: Raise it when documents or chunks are written differently: stored vectors and words are then made again.
VERSION = 1
#: In a graph with more relations, the relations of the given nodes are looked up first.
MANY_RELATIONS = 64
#: At most this many names of nodes are remembered.
_MAX_NAMES = 200_000


@dataclass(frozen=True, slots=True)
class NodeTexts:
    """Writes the texts of the nodes of one graph.

    At most ``ends_per_relation`` other ends of a relation are named. A document has at most ``characters``, of which
    the relations get at least a third where the text is too long. A chunk has at most ``chunk_size`` characters.
    """

    graph: PropertyGraph
    ends_per_relation: int = 10
    characters: int = 6000
    chunk_size: int = 400
    _names: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def document_name(self) -> str:
        """The name under which what is computed from documents (vectors, words) is stored."""
        return f"document/{VERSION} {self.ends_per_relation} {self.characters}"

    @property
    def chunk_name(self) -> str:
        """The name under which the vectors of chunks are stored."""
        return f"chunks/{VERSION} {self.ends_per_relation} {self.characters} {self.chunk_size}"

    def documents(self, rows: Rows) -> list[str]:
        """Return the document of each node."""
        return [
            join_document(description, relations, self.characters)
            for description, relations in zip(*self._parts(rows), strict=True)
        ]

    def single_texts(self, rows: Rows) -> list[list[str]]:
        """Return the document of each node in a list of its own, as :class:`clew.core.protocols.NodeVectors` takes
        the texts of nodes."""
        return [[document] for document in self.documents(rows)]

    def chunks(self, rows: Rows) -> list[list[str]]:
        """Return the chunks of each node's document, each after the node's name.

        A chunk never mixes what describes the node with its relations.
        """
        entities = self.graph.entities(rows)
        return [
            [
                f"{entity.name}: {piece}"
                for part in (description, relations)
                for piece in split_text(
                    part[: self.characters], max(self.chunk_size - len(entity.name) - 2, 1)
                )
            ]
            for entity, description, relations in zip(entities, *self._parts(rows, entities), strict=True)
        ]

    def _parts(self, rows: Rows, entities: Sequence[Entity] | None = None) -> tuple[list[str], list[str]]:
        """Return for each node its description, and the text of its relations."""
        rows = np.asarray(rows, dtype=np.int64)
        if entities is None:
            entities = self.graph.entities(rows)
        return [describe_entity(entity) for entity in entities], [
            "\n".join(lines) and "relations:\n" + "\n".join(lines) for lines in self._relation_lines(rows)
        ]

    def _relation_lines(self, rows: Rows) -> list[list[str]]:
        """Return a line for each relation of each node; those with the node as their head come first."""
        relations: Sequence[str] = list(self.graph.relations())
        if len(relations) > MANY_RELATIONS:
            relations = self.graph.relations_at(rows)
        # For each node: the words for the relation, the first ends, and the number of all ends.
        lines: list[list[tuple[str, list[int], int]]] = [[] for _ in range(len(rows))]
        all_ends: set[int] = set()
        for relation in relations:
            forward, backward = (
                _first_ends(*self.graph.neighbours(rows, relation, inverse), self.ends_per_relation)
                for inverse in (False, True)
            )
            for place, (tails, heads) in enumerate(zip(forward, backward, strict=True)):
                # A relation that is stored in both directions, as undirected ones are, is written once.
                for words, (ends, count) in (
                    (relation, tails),
                    (f"{relation} of", heads if heads != tails else ([], 0)),
                ):
                    if ends:
                        lines[place].append((words, ends, count))
                        all_ends.update(ends)
        names = self._node_names(all_ends)
        return [
            [
                f"{words}: {', '.join(names[end] for end in ends)}"
                + (f" and {count - len(ends):,} more" if count > len(ends) else "")
                for words, ends, count in sorted(node_lines, key=lambda line: line[0].endswith(" of"))
            ]
            for node_lines in lines
        ]

    def _node_names(self, rows: set[int]) -> dict[int, str]:
        # Copied at once: threads share the remembered names.
        known = {row: name for row in rows if (name := self._names.get(row)) is not None}
        missing = np.array(sorted(rows - known.keys()), dtype=np.int64)
        entities = self.graph.entities(missing)
        new = {row: entity.name for row, entity in zip(missing.tolist(), entities, strict=True)}
        if len(self._names) + len(new) > _MAX_NAMES:
            self._names.clear()
        self._names.update(new)
        return known | new


def node_texts(snapshot: Snapshot, graph: PropertyGraph) -> NodeTexts:
    """Return the writer of a graph's node texts; the same object for one snapshot."""
    texts: NodeTexts = snapshot.memoize(f"node texts/{graph.name}", lambda: NodeTexts(graph))
    return texts


def _first_ends(offsets: Rows, ends: Rows, limit: int) -> Iterator[tuple[list[int], int]]:
    """Yield the first ends of each row, at most ``limit``, and the number of all."""
    for start, end in pairwise(offsets.tolist()):
        yield ends[start : min(end, start + limit)].tolist(), end - start


def describe_entity(entity: Entity) -> str:
    """Return the description of a node without its relations: name, aliases, types, properties and text, a line
    each."""
    types = ", ".join(type for type in (entity.type, *entity.more_types) if type)
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


def join_document(description: str, relations: str, characters: int) -> str:
    """Return a document of at most ``characters``.

    Where it is too long, the end of the description is cut first, until the relations have a third of the space.
    """
    if not relations:
        return description[:characters]
    room = max(characters - len(relations) - 1, characters * 2 // 3)
    return f"{description[:room].rstrip()}\n{relations}"[:characters]


def split_text(text: str, size: int) -> list[str]:
    """Return a text in chunks of at most ``size`` characters, with as many whole lines as fit; a longer line is cut
    between words."""
    chunks: list[str] = []
    for line in text.splitlines():
        for part in _cut_line(line, size):
            if chunks and len(chunks[-1]) + 1 + len(part) <= size:
                chunks[-1] += f"\n{part}"
            else:
                chunks.append(part)
    return chunks


def _cut_line(line: str, size: int) -> Iterator[str]:
    while len(line) > size:
        space = line.rfind(" ", 0, size + 1)
        end = space if space > 0 else size
        yield line[:end].rstrip()
        line = line[end:].lstrip()
    if line:
        yield line
