"""What the API tells of a base besides documents, hits and answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clew.types import Document, Usage


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
