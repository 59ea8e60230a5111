"""Result types of the public API besides documents, hits and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clew.core.types import Document, Entity, Node, Usage

if TYPE_CHECKING:
    from clew.triples.linking.entity_alignment import EntityAlignment


@dataclass(frozen=True, slots=True)
class GraphSize:
    """The size of a passage graph (:class:`clew.graph.passages.GraphStatistics`), and the seconds it took to
    build."""

    name: str
    nodes: int
    edges: int
    density: float
    mean_degree: float
    isolated: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CitedSource:
    """What became of a cited node: ``unchanged``; ``moved``, where the source was read again or changed and still has
    the words, in ``node``; ``changed``, where it is there without them; ``removed``."""

    state: Literal["unchanged", "moved", "changed", "removed"]
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """How many vectors one encoder has made in a base, and how many passages have none."""

    name: str
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """The cache of model replies: its file, and its size in bytes."""

    path: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class RoleCost:
    """What the prompts of one role cost at most: every reply is as long as it may get."""

    role: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class DocumentMatches:
    """The documents that a text names, each with the paths it names: all paths of a document for a key or file name,
    those within it for a path or folder. ``ambiguous`` says that several documents have that file name."""

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
                {"id": end.id, "name": end.name, "statements": [dict(statement) for statement in statements]}
                for end, statements in zip(self.ends, self.statements, strict=True)
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
