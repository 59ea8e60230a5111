"""What the parts of clew expect of each other. One method each where possible.

A :class:`Snapshot` is one immutable view of a knowledge base. Within it, nodes are addressed by *rows*:
numpy ``int64`` numbers that mean something only together with that snapshot. They exist so that hot paths
work on arrays; what leaves a retriever is always a :class:`~clew.types.Hit` with node ids, and ties are
broken by node id, never by row, so that the history of a base cannot show in its results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.protocols.asking import Explorer, Method, Reader, Retriever, Trail
from clew.protocols.graphs import (
    Adjacency,
    PropertyColumn,
    EntityLinker,
    Graph,
    GraphSink,
    RelationSource,
    PropertyGraph,
    RelationLinker,
)
from clew.protocols.models import Completion, Encoder, LanguageModel, Prompt, PromptTemplate, Reranker
from clew.protocols.nodes import NodeVectors
from clew.protocols.store import Postings, Snapshot, SnapshotSource, VectorIndex

if TYPE_CHECKING:
    from clew.protocols.arrays import Floats, Hashes, Mask, Rows, Vectors

__all__ = [
    "Adjacency",
    "PropertyColumn",
    "Completion",
    "Encoder",
    "EntityLinker",
    "Explorer",
    "Floats",
    "Graph",
    "GraphSink",
    "Hashes",
    "RelationSource",
    "LanguageModel",
    "Mask",
    "Method",
    "NodeVectors",
    "Postings",
    "Prompt",
    "PromptTemplate",
    "PropertyGraph",
    "Reader",
    "RelationLinker",
    "Reranker",
    "Retriever",
    "Rows",
    "Snapshot",
    "SnapshotSource",
    "Trail",
    "VectorIndex",
    "Vectors",
]
