"""What a graph says of a few nodes, in a line each, and how much it says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.types import Relation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import PropertyGraph, Rows
    from clew.types import Entity

#: What is shown of a text, in characters, and how many triples.
SHOWN_TEXT, SHOWN_TRIPLES = 200, 6
#: A graph with more relations is not asked for degrees and triples: each relation would be a look-up.
MAX_RELATIONS = 64


@dataclass(frozen=True, slots=True)
class RelationLabels:
    """Properties of a node, or some of a graph's relations, as a relation linker sees the relations of a graph."""

    name: str
    labels: tuple[str, ...]

    def relations(self) -> Mapping[str, Relation]:
        """Return the labels, as relations without edges."""
        return {label: Relation(0) for label in self.labels}


def node_degrees(graph: PropertyGraph, rows: Rows) -> NDArray[np.int64]:
    """Return the number of edges of each row, (n,); zeros for a graph of very many relations."""
    found = np.zeros(len(rows), dtype=np.int64)
    relations = graph.relations()
    if len(relations) <= MAX_RELATIONS:
        for relation in relations:
            for inverse in (False, True):
                found += np.diff(graph.neighbours(rows, relation, inverse)[0])
    return found


def describe_nodes(graph: PropertyGraph, entities: Sequence[Entity], rows: Rows) -> list[str]:
    """Return one line about each node: ``name (type): text; relation: end; ...``, at most :data:`SHOWN_TRIPLES` triples,
    one of each relation."""
    triples = _triples(graph, rows)
    ends = sorted({end for several in triples for _, end in several})
    names = {
        row: entity.name
        for row, entity in zip(ends, graph.entities(np.array(ends, dtype=np.int64)), strict=True)
    }
    return [
        _line(entity, [(words, names[end]) for words, end in several])
        for entity, several in zip(entities, triples, strict=True)
    ]


def _triples(graph: PropertyGraph, rows: Rows) -> list[list[tuple[str, int]]]:
    found: list[list[tuple[str, int]]] = [[] for _ in range(len(rows))]
    relations = graph.relations()
    if len(relations) > MAX_RELATIONS:
        return found
    for inverse in (False, True):
        for relation in relations:
            offsets, ends = graph.neighbours(rows, relation, inverse)
            for place in np.flatnonzero(np.diff(offsets)).tolist():
                if len(found[place]) < SHOWN_TRIPLES:
                    words = f"{relation} of" if inverse else relation
                    found[place].append((words, int(ends[offsets[place]])))
    return found


def _line(entity: Entity, triples: Sequence[tuple[str, str]]) -> str:
    types = ", ".join(one for one in (entity.type, *entity.more_types) if one)
    parts = [entity.text[:SHOWN_TEXT]] if entity.text else []
    parts += [f"{words}: {end}" for words, end in triples]
    head = f"{entity.name} ({types})" if types else entity.name
    return f"{head}: {'; '.join(parts)}" if parts else head


def qualifier_text(entity: Entity, line: str) -> str:
    """Return everything that may confirm a qualifier: the line about a node, its types, text and properties."""
    values = " ".join(str(value) for value in entity.properties.values())
    return " ".join((line, entity.type, *entity.more_types, entity.text, values))
