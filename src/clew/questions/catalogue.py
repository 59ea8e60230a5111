"""What a graph can be asked: its steps, which of them follow each other, its types and its properties."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import index_terms, is_stop_term
from clew.triples.linking.relation_words import verbalise_relation

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph

#: Of a schema with more relations, types or properties, the most frequent are looked at.
MAX_SCHEMA = 200
#: Nodes whose edges are looked at to learn which steps follow a step.
SAMPLE = 200
#: A type counts as one that a relation joins if this share of its ends has it.
TYPE_SHARE = 0.02
#: Distinct values of a property that are compared with the words of a question.
MAX_VALUES = 400


@dataclass(frozen=True, slots=True)
class Step:
    """A relation followed from one end to the other: from the head to the tail, or, with ``inverse``, back."""

    relation: str
    inverse: bool = False

    @property
    def back(self) -> Step:
        """The same relation followed the other way."""
        return Step(self.relation, not self.inverse)


@dataclass(frozen=True, slots=True)
class Label:
    """A relation, type or property as words: its name spelled out and the stems that mean something."""

    text: str
    stems: frozenset[str]

    @classmethod
    def read(cls, name: str) -> Label:
        """Return the words of a name."""
        text = verbalise_relation(name)
        stems = frozenset(term for term in index_terms(text) if not is_stop_term(term))
        return cls(text, stems or frozenset(index_terms(text)))


@dataclass
class GraphCatalogue:
    """The schema of one graph as plans are built from it. What follows a step is looked up once and remembered."""

    graph: PropertyGraph
    _following: dict[Step, tuple[Step, ...]] = field(default_factory=dict)
    _values: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    labels: dict[str, Label] = field(default_factory=dict)
    relations: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    sources: dict[Step, frozenset[str]] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    owners: dict[str, frozenset[str]] = field(default_factory=dict)
    numeric: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of_graph(cls, graph: PropertyGraph) -> GraphCatalogue:
        """Return the catalogue of a graph that is stored in the base."""
        catalogue = cls(graph)
        relations = dict(sorted(graph.relations().items(), key=lambda item: -item[1].edges)[:MAX_SCHEMA])
        edges = sum(relation.edges for relation in relations.values()) or 1
        catalogue.relations = tuple(relations)
        catalogue.types = tuple(graph.types())[:MAX_SCHEMA]
        for name, relation in relations.items():
            least = TYPE_SHARE * relation.edges
            heads = frozenset(type for type, count in relation.head_types.items() if count >= least)
            tails = frozenset(type for type, count in relation.tail_types.items() if count >= least)
            catalogue.sources[Step(name)], catalogue.sources[Step(name, True)] = heads, tails
            catalogue.shares[name] = relation.edges / edges
        properties = dict(list(graph.properties().items())[:MAX_SCHEMA])
        catalogue.properties = tuple(properties)
        for name, own in properties.items():
            catalogue.owners[name] = frozenset(own.types)
            catalogue.numeric[name] = own.numbers / max(own.values, 1)
        for name in (*catalogue.relations, *catalogue.types, *catalogue.properties):
            catalogue.labels[name] = Label.read(name)
        return catalogue

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every relation, both ways."""
        return tuple(step for name in self.relations for step in (Step(name), Step(name, True)))

    def sources_of(self, relation: str, is_tail: bool) -> frozenset[str]:
        """Return the types of a relation's heads, or of its tails."""
        return self.sources.get(Step(relation, is_tail), frozenset())

    def targets(self, step: Step) -> frozenset[str]:
        """Return the types that a step leads to."""
        return self.sources[step.back]

    def leaving(self, types: frozenset[str], rows: Rows) -> tuple[Step, ...]:
        """Return the steps that can leave nodes of some types by the schema, those without an edge at ``rows`` too;
        for nodes without a type, the relations that have an edge there."""
        if types:
            return tuple(step for step in self.steps if self.sources[step] & types)
        return self._at_rows(rows)

    def mixes_ends(self, relation: str) -> bool:
        """Return whether what a relation leads to has it too: people report to people who report. Of a film and its
        director neither stands for the other. A sample of its edges tells."""
        adjacency = self.graph.adjacency(relation, False)
        tails = np.empty(0, np.int64) if adjacency is None else np.unique(adjacency.tails)
        spread = tails[:: max(1, len(tails) // SAMPLE)][:SAMPLE].astype(np.int64)
        return bool(len(self.graph.neighbours(spread, relation, False)[1]))

    def following(self, step: Step) -> tuple[Step, ...]:
        """Return the steps that leave the ends of one, by a sample of its edges."""
        with self._lock:
            if step not in self._following:
                adjacency = self.graph.adjacency(step.relation, step.inverse)
                tails = np.empty(0, np.int64) if adjacency is None else np.unique(adjacency.tails)
                spread = tails[:: max(1, len(tails) // SAMPLE)][:SAMPLE].astype(np.int64)
                self._following[step] = self._at_rows(spread)
            return self._following[step]

    def _at_rows(self, rows: Rows) -> tuple[Step, ...]:
        names = set(self.graph.relations_at(rows)) & set(self.relations)
        return tuple(
            step
            for step in self.steps
            if step.relation in names and len(self.graph.neighbours(rows, step.relation, step.inverse)[1])
        )

    def values(self, property: str) -> Mapping[str, str]:
        """Return the distinct text values of a property, folded, with how they are written; few enough to compare."""
        if property not in self._values:
            column = self.graph.property_values(property)
            texts: dict[str, str] = {}
            if column is not None and self.numeric[property] < 0.5:
                content = column.texts.tobytes()
                starts = column.starts.tolist()
                for start, end in itertools.pairwise(starts):
                    text = content[start:end].decode("utf-8")
                    texts[text] = text
                    if len(texts) > MAX_VALUES:
                        break
            self._values[property] = texts
        return self._values[property]
