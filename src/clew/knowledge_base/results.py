"""What the API tells of a base besides documents, hits and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.types import Document, Entity, Usage

if TYPE_CHECKING:
    from clew.triples.linking.entity_alignment import EntityAlignment


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How large a graph over the passages is (:class:`clew.graph.statistics.GraphStatistics`), and how long
    that took."""

    name: str
    nodes: int
    edges: int
    density: float
    mean_degree: float
    isolated: int
    seconds: float


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """The vectors of one encoder in a base."""

    name: str
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """The cache of model replies: where it is, and how large."""

    path: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class RoleCost:
    """What a language model is asked in one role costs, its replies as long as they may get."""

    role: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class DocumentMatches:
    """Documents that a word of a person names, each with the paths meant: all of a document's for a key or
    a file name, those there for a path or folder. ``ambiguous``: several documents have that file name."""

    text: str
    documents: tuple[tuple[Document, tuple[str, ...]], ...]
    ambiguous: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All the paths meant."""
        return tuple(path for _, paths in self.documents for path in paths)


@dataclass(frozen=True, slots=True)
class EntityTriples:
    """The triples of one entity with one relation: ``ends`` are some of the other ends, ``total`` counts all.
    ``inverse``: the entity is their tail. ``statements`` holds for each end the properties of its edge."""

    relation: str
    inverse: bool
    ends: tuple[Entity, ...]
    statements: tuple[Sequence[Mapping[str, Any]], ...]
    total: int

    def to_dict(self) -> dict[str, Any]:
        """Return them as a JSON-compatible dictionary."""
        return {
            "relation": self.relation,
            "inverse": self.inverse,
            "total": self.total,
            "ends": [
                {"id": end.id, "name": end.name, "statements": [dict(one) for one in said]}
                for end, said in zip(self.ends, self.statements, strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class EntityDescription:
    """An entity with its triples, and what is the same in other graphs and among the documents."""

    entity: Entity
    triples: tuple[EntityTriples, ...]
    equivalents: tuple[EntityAlignment, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON-compatible dictionary."""
        return self.entity.to_dict() | {
            "triples": [triple.to_dict() for triple in self.triples],
            "same_as": [link.to_dict() for link in self.equivalents],
        }
