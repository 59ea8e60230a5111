"""Graphs: of the passages of documents, and imported ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from clew.protocols.asking import Trail
from clew.types import Entity, LinkedEntity, LinkedRelation, Property, Relation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clew.protocols.arrays import Floats, Mask, Rows
    from clew.protocols.models import Encoder
    from clew.protocols.nodes import NodeVectors, NodeTexts, ProgressCallback
    from clew.protocols.store import Postings


class Graph(Protocol):
    """Neighbours of passages."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``keywords(n=20)``."""
        ...

    @property
    def mutual(self) -> bool:
        """Whether a neighbour's neighbour is oneself: true of shared keywords, not of nearest vectors."""
        ...

    def neighbours(self, row: int) -> Rows:
        """Return the rows that an edge joins to ``row``, ascending, without itself."""
        ...

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return how much the edge to each of some neighbours says, from 0 to 1; 1 where all are alike."""
        ...

    def explain_edge(self, source: int, target: int) -> str:
        """Say what joins two neighbours, for the trail (``keywords: ohio, river``)."""
        ...


class Adjacency(Protocol):
    """The edges of one relation, or of all, one way: for every source its tails, ascending, each once.

    ``heads`` are the rows with an edge, ascending; the tails of the n-th are ``tails[starts[n]:starts[n + 1]]``.
    ``heads`` None: every row is one. The arrays may be memory-mapped and must not be written to.
    """

    @property
    def heads(self) -> NDArray[np.uint32] | None:
        """The rows with an edge, (h,), or None."""
        ...

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the tails of each source start, and where the last end, (h + 1,)."""
        ...

    @property
    def tails(self) -> NDArray[np.uint32]:
        """The tails, (edges,)."""
        ...

    def bounds(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tails of each row start and end."""
        ...


@dataclass(frozen=True, slots=True)
class PropertyColumn:
    """The values of one property: whose each is, ascending (a row with several values is there several times).

    ``numbers`` has what :func:`clew.text.parse_number` makes of each, NaN for what is no number; ``texts`` the values
    in UTF-8 after :func:`clew.text.fold_name`, one after the other, the n-th from ``starts[n]`` on.
    """

    rows: NDArray[np.uint32]
    numbers: Floats
    texts: NDArray[np.uint8]
    starts: NDArray[np.int64]


class PropertyGraph(Protocol):
    """An imported graph, or one mounted elsewhere. Rows are its own, 0 to ``size`` - 1; ids are
    ``<graph name>:<external id>``."""

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        ...

    @property
    def size(self) -> int:
        """Number of nodes; of a mounted graph, of those seen so far."""
        ...

    @property
    def is_mounted(self) -> bool:
        """Whether it stays elsewhere: it is asked, and nothing is kept of its nodes."""
        ...

    def types(self) -> Mapping[str, int]:
        """Return the node types, with how many nodes have each."""
        ...

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name, with their numbers of edges, types of ends, and examples."""
        ...

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id. Raises NotFound."""
        ...

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""
        ...

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order. Raises NotFound where the graph was replaced meanwhile."""
        ...

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending; none for a type that does not occur."""
        ...

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending; :func:`clew.text.fold_name` says what is equal."""
        ...

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return the rows whose name or alias is most like ``name``, (k,) at most, best first, with their likeness.

        Likeness is from 0 to 1, 1 for what :meth:`named` finds; ties are in the order of ids.
        """
        ...

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""
        ...

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each.

        ``relation`` None: along any relation, each row once. Raises UsageError for one that the graph does not have.
        """
        ...

    def adjacency(self, relation: str | None, inverse: bool = False) -> Adjacency | None:
        """Return the edges of a relation (None: of any) as arrays, for operations on whole sets; None where they
        cannot be had and :meth:`adjacent` must be asked. Raises UsageError as it does."""
        ...

    def properties(self) -> Mapping[str, Property]:
        """Return the properties that nodes have, by name; none where that is not known, as of a mounted graph."""
        ...

    def property_values(self, property: str) -> PropertyColumn | None:
        """Return the values of a property, none for one that no node has; None where they cannot be had whole."""
        ...

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""
        ...

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the properties of an edge, one mapping for each time that it was given with any."""
        ...

    def answer_types(self) -> Sequence[str]:
        """Return the types of the nodes that may answer a question, as they were declared when the graph was added;
        none where any may."""
        ...

    def node_vectors(self, encoder: Encoder, what: str) -> NodeVectors:
        """Return the vectors that ``encoder`` made, or is to make, of the kind of text that ``what`` names.

        Raises UsageError for a mounted graph: nothing is kept of its nodes.
        """
        ...

    def node_postings(self, what: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None) -> Postings | None:
        """Return the postings of one kind of text of every node; where there are none yet, they are made of ``texts``
        and kept. None without ``texts``. Raises UsageError for a mounted graph."""
        ...


class RelationSource(Protocol):
    """What has relations that words may stand for: a graph, or a part of one."""

    @property
    def name(self) -> str:
        """The name of the graph."""
        ...

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name."""
        ...


class EntityLinker(Protocol):
    """Finds what names stand for in a graph."""

    def link(
        self,
        graph: PropertyGraph,
        names: Sequence[str],
        context: str = "",
        k: int = 5,
        trail: Trail | None = None,
        types: Sequence[str] = (),
    ) -> list[tuple[LinkedEntity, ...]]:
        """Return for each name at most ``k`` candidates, best first; ``context`` is the question around them.

        Nodes of ``types`` come before others that are called as well. What a model was asked, and what that cost,
        goes to the trail.
        """
        ...


class RelationLinker(Protocol):
    """Finds what words stand for among the relations of a graph."""

    def link(self, graph: RelationSource, phrases: Sequence[str], k: int = 5) -> list[tuple[LinkedRelation, ...]]:
        """Return for each phrase at most ``k`` candidates, best first; each direction is one of its own."""
        ...


class GraphSink(Protocol):
    """Takes a graph as it is read: nodes and edges in any order; an edge's ends need no node of their own."""

    def add_node(
        self,
        id: str,
        *,
        types: Sequence[str] = (),
        name: str = "",
        aliases: Sequence[str] = (),
        text: str = "",
        properties: Mapping[str, Any] | None = None,
        rank: int = 0,
    ) -> None:
        """Take (part of) a node. Of several names the one of the lowest ``rank`` is kept, the others are aliases,
        but those from rank 1000 on, which serve only where there is no other."""
        ...

    def add_edge(self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None) -> None:
        """Take an edge; one that is given again adds its properties."""
        ...

    def has_node(self, id: str) -> bool:
        """Return whether :meth:`node` was called for this id."""
        ...
