"""Imported graphs: their nodes and relations, and what words stand for in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of an imported graph. ``id`` is ``<graph name>:<external id>``.

    ``type`` is "" where the graph gives none; ``also`` holds further types. ``name`` is the external id, or the
    readable part of an IRI, where the graph gives none. Values of ``properties`` are JSON scalars, or a tuple of
    them where a property was given more than once.
    """

    id: str
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    text: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    more_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of an imported graph: how many edges it has, and what it joins.

    ``head_types`` and ``tail_types`` count edges by the types of their ends; ends without a type are not in them,
    one with two is in them twice. ``examples`` are names of heads and tails. ``id`` is the relation's own id where
    that is not its name: the IRI of an RDF property.
    """

    edges: int
    head_types: Mapping[str, int] = field(default_factory=dict)
    tail_types: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[tuple[str, str], ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the nodes of an imported graph: how many values it has, and how many of them are numbers or days.

    ``types`` count values by the types of their nodes, as those of :class:`Relation` do. ``row`` is that of a node
    that has it, to be shown as an example.
    """

    values: int
    numbers: int
    types: Mapping[str, int] = field(default_factory=dict)
    example_row: int = 0


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """A node of a graph that a name in a question may stand for.

    ``score`` is from 0 to 1, comparable among the candidates of one name; ``how`` says what speaks for it
    (``name``, ``alias``, ``spelling 0.92``, ``context 0.41``), parts joined by ``, ``.
    """

    row: int
    id: str
    name: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class LinkedRelation:
    """A relation of a graph that words in a question may stand for; ``inverse``: from the tail to the head.

    ``score`` is from 0 to 1, comparable among the candidates for one phrase; ``how`` as in :class:`LinkedEntity`.
    """

    name: str
    inverse: bool
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A file that a graph was made of. ``sha256`` is that of its bytes, in hexadecimal."""

    path: str
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """An imported graph: its name, sizes, and what it was made of. ``digest`` is a hash of what it holds.

    ``options`` are those of the reading, as JSON. A mounted graph has a ``url`` instead of files, and no
    sizes: its endpoint, or the folder of its store.
    """

    name: str
    digest: str = ""
    nodes: int = 0
    edges: int = 0
    sources: tuple[GraphSource, ...] = ()
    options: str = ""
    url: str = ""
