"""What the API tells of a base besides documents, hits and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.shapes import entity_shape, link_shape
from clew.types import Document, Entity, Usage

if TYPE_CHECKING:
    from clew.link import SameLink


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How large a graph over the passages is (:class:`clew.graph.statistics.Statistics`), and how long that took."""

    name: str
    nodes: int
    edges: int
    density: float
    mean_degree: float
    isolated: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """The vectors of one encoder in a base."""

    name: str
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache of model replies: where it is, and how large."""

    path: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a language model is asked in one role costs, its replies as long as they may get."""

    role: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Matches:
    """Documents that a word of a person names, each with the paths meant: all of a document's for a key or
    a file name, those there for a path or folder. ``ambiguous``: several documents have that file name."""

    what: str
    found: tuple[tuple[Document, tuple[str, ...]], ...]
    ambiguous: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All the paths meant."""
        return tuple(path for _, paths in self.found for path in paths)


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples of one entity with one relation: ``ends`` are some of the other ends, ``total`` counts all.
    ``inverse``: the entity is their tail. ``statements`` holds for each end the properties of its edge."""

    relation: str
    inverse: bool
    ends: tuple[Entity, ...]
    statements: tuple[Sequence[Mapping[str, Any]], ...]
    total: int

    def shape(self) -> dict[str, Any]:
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
class Described:
    """An entity with its triples, and what is the same in other graphs and among the documents."""

    entity: Entity
    triples: tuple[Triples, ...]
    same: tuple[SameLink, ...]

    def shape(self) -> dict[str, Any]:
        """Return it as a JSON-compatible dictionary."""
        return entity_shape(self.entity) | {
            "triples": [triple.shape() for triple in self.triples],
            "same_as": [link_shape(link) for link in self.same],
        }
