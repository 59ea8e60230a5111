"""Language models, encoders, rerankers, and what they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clew.core.types import (
    Answer,
    Document,
    Entity,
    Hit,
    LinkedEntity,
    LinkedRelation,
    Node,
    Property,
    Question,
    Relation,
    Scope,
    Step,
    Usage,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Hashes, Mask, Rows, Vectors

__all__ = [
    "Adjacency",
    "Completion",
    "Encoder",
    "EntityLinker",
    "Explorer",
    "Floats",
    "Graph",
    "GraphSink",
    "Hashes",
    "LanguageModel",
    "Mask",
    "Method",
    "NodeVectors",
    "Postings",
    "Prompt",
    "PromptTemplate",
    "PropertyColumn",
    "PropertyGraph",
    "Reader",
    "RelationLinker",
    "RelationSource",
    "Reranker",
    "Retriever",
    "Rows",
    "Snapshot",
    "SnapshotSource",
    "Trail",
    "VectorIndex",
    "Vectors",
]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is asked. ``schema`` is a JSON schema for the reply, or None for free text.

    ``role`` says for what (``guide``, ``select``, ``summarise``, ``read``, ``grade``, ``structure``, ``extract``), so
    that roles may use different models and the ledger can tell them apart. ``sample`` tells equal prompts apart whose
    replies are to be drawn independently, at a temperature: it is part of what a reply is remembered and recorded
    under, and not sent.
    """

    user: str
    system: str = ""
    role: str = "read"
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    sample: int = 0


class PromptTemplate(Protocol):
    """A prompt with declared variables (:mod:`clew.core.prompts`)."""

    @property
    def name(self) -> str:
        """Name with version, such as ``read-cited.v1``."""
        ...

    @property
    def variables(self) -> frozenset[str]:
        """The variables that it declares."""
        ...

    def render(self, **variables: str) -> Prompt:
        """Return the prompt with its variables filled in. Raises UsageError unless they are its own."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model replied, and what it cost."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    cached: bool = False


class LanguageModel(Protocol):
    """A language model. Batched: the implementation decides how many calls run at once."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``openai:gpt-4o-mini``."""
        ...

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        ...


class Encoder(Protocol):
    """Turns texts into unit vectors. A vector depends on its text alone, not on the batch."""

    @property
    def name(self) -> str:
        """Canonical name; vectors are stored under it."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def objective(self) -> str:
        """What it was trained for: ``mdr``, to find what comes next when asked with a question and the passages so
        far; ``dpr``, to find what answers a question; "" where that is not known."""
        ...

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. ``query`` marks questions, for models that differ."""
        ...


class Reranker(Protocol):
    """Scores texts against a question, each by reading both together."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``monot5:castorini/monot5-base-msmarco``."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one score per text, (n,), float64; higher is better, comparable for one question only."""
        ...


#: Gives the texts that stand for each of some rows: at least one each, several where a node is embedded in parts.
NodeTexts = Callable[["Rows"], Sequence[Sequence[str]]]
#: Told how many of how many nodes are done.
ProgressCallback = Callable[[int, int], None]


class NodeVectors(Protocol):
    """The vectors that one encoder made of one kind of text of the nodes of a graph: made when they are asked for,
    kept, and gone with the graph."""

    def rows_without_vectors(self, rows: Rows | None = None) -> Rows:
        """Return those of ``rows`` (None: of all nodes) without a vector, ascending, each once."""
        ...

    def encode_missing(self, rows: Rows, texts: NodeTexts, progress: ProgressCallback | None = None) -> int:
        """Make and keep the vectors of ``rows`` that are missing; return of how many nodes. Stopped, what was made is
        kept. Raises ModelError, NotFound where the graph was removed meanwhile."""
        ...

    def vectors(self, rows: Rows) -> tuple[NDArray[np.int64], Vectors]:
        """Return the vectors of ``rows``: offsets (n + 1), and (offsets[-1], dimension) of them; none for a row that
        has none."""
        ...

    def search(self, query: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows whose vectors have the greatest inner product with ``query``, (d,), best first,
        ties by row. For texts of which a node has one."""
        ...


class Trail(Protocol):
    """Receives the steps of an answer as they happen."""

    def add(self, step: Step) -> None:
        """Take the next step."""
        ...

    def should_stop(self) -> bool:
        """Return whether the caller wants no more steps; asked between steps."""
        ...


class Retriever(Protocol):
    """Finds nodes for a question."""

    def retrieve(self, question: Question, k: int) -> Sequence[Hit]:
        """Return at most ``k`` hits, best first."""
        ...


class Explorer(Retriever, Protocol):
    """A retriever whose search has steps and costs of its own; its ``retrieve`` is the same with no one watching."""

    def explore(self, question: Question, k: int, trail: Trail) -> Sequence[Hit]:
        """Return at most ``k`` hits, best first; each step of the search goes to the trail."""
        ...


class Reader(Protocol):
    """Makes an answer of a question and hits; it does not retrieve."""

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the answer; its trail and recipe are left to the method."""
        ...


class Method(Protocol):
    """Answers a question: retrieves and reads."""

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with evidence, trail and usage."""
        ...


class Postings(Protocol):
    """Which nodes contain which terms, counted. Terms are 64-bit hashes (:func:`clew.core.text.hash_term`).

    Only live nodes count, so statistics are exactly those of a base to which nothing else was ever added.
    """

    @property
    def node_count(self) -> int:
        """Number of live nodes that this field was made for (N of the formulas)."""
        ...

    @property
    def average_length(self) -> float:
        """Mean number of terms of a live node."""
        ...

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for one without postings."""
        ...

    def document_frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""
        ...

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        ...

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        ...

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""
        ...


class VectorIndex(Protocol):
    """The vectors of one encoder. Rows without a vector yet are never returned."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def missing_count(self) -> int:
        """Return how many retrieved nodes have no vector yet."""
        ...

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, (q, k), best first.

        Where fewer than ``k`` exist, rows are -1 and scores -inf. ``allowed`` masks rows of the snapshot.
        """
        ...

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""
        ...


class Snapshot(Protocol):
    """One immutable view of a knowledge base: nodes, text postings, vectors."""

    @property
    def generation(self) -> int:
        """Which state of the base this is; grows with every change."""
        ...

    @property
    def pending(self) -> int:
        """Number of documents added but not yet searchable in this view."""
        ...

    @property
    def size(self) -> int:
        """One more than the largest row: the length of masks and columns."""
        ...

    def documents(self) -> Sequence[Document]:
        """Return every document, sorted by key."""
        ...

    def document_rows(self, key: str) -> tuple[int, int]:
        """Return the half-open range of rows of a document, itself first. Raises NotFound."""
        ...

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each node id. Raises NotFound."""
        ...

    def ids(self, rows: Rows) -> list[str]:
        """Return the node id of each row."""
        ...

    def nodes(self, rows: Rows) -> list[Node]:
        """Return the nodes of ``rows``, in that order."""
        ...

    def document_text(self, document: str) -> str:
        """Return a document's canonical text, which spans refer to."""
        ...

    def mask(self, scope: Scope, kinds: Sequence[str] | None = None) -> Mask:
        """Return which rows are live, in ``scope`` and of one of ``kinds`` (default: the scope's kinds)."""
        ...

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one number per row: ``document`` (first row of its document), ``parent`` (row), ``page``
        (1-based) or ``kind`` (index into KINDS); -1 where there is none and for rows that are not live."""
        ...

    def relations(self) -> Mapping[str, int]:
        """Return the relations of asserted edges, with how many edges each has."""
        ...

    def neighbours(self, rows: Rows, relation: str, inverse: bool = False) -> tuple[NDArray[np.int64], Rows]:
        """Return the live neighbours of ``rows`` by asserted edges: offsets (n + 1), rows ascending."""
        ...

    def postings(self, field: str) -> Postings:
        """Return the postings of ``text`` (passages and table rows), ``title`` (names of documents, sections
        and tables) or ``mention`` (the names that passages and table rows contain)."""
        ...

    def vectors(self, encoder: str, dimension: int = 0) -> VectorIndex:
        """Return the vectors that the encoder named ``encoder`` made; where there are none yet, a view of none with
        that ``dimension``. Raises NotFound without it: for a search that can do nothing without vectors."""
        ...

    def read_derived(self, maker: str, document: str) -> Mapping[str, bytes]:
        """Return what ``maker`` made of parts of a document and was told to keep, by part. Raises NotFound."""
        ...

    def write_derived(self, maker: str, document: str, made: Mapping[str, bytes]) -> bool:
        """Keep what ``maker`` made of parts of a document: a pure function of the document and the maker's name.

        It goes with the document; False, and nothing is kept, where that is gone. Raises StoreError.
        """
        ...

    def graphs(self) -> Sequence[str]:
        """Return the names of the imported and mounted graphs, sorted."""
        ...

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none, Damaged where it cannot be used."""
        ...

    def memoize(self, key: str, make: Callable[[], Any], *, documents_only: bool = False) -> Any:
        """Return ``make()``, computed once for this generation: for global views such as a graph.

        ``of_documents`` says that the value is a function of the documents alone, not of edges, graphs, vectors or
        what is kept: it then also holds for other generations with the same documents.
        """
        ...


class SnapshotSource(Protocol):
    """A knowledge base, as far as one who asks it is concerned."""

    def snapshot(self) -> Snapshot:
        """Return the base as it is now."""
        ...


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

    ``numbers`` has what :func:`clew.core.text.parse_number` makes of each, NaN for what is no number;
    ``texts`` the values
    in UTF-8 after :func:`clew.core.text.fold_name`, one after the other, the n-th from ``starts[n]`` on.
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
        """Return the rows with this name or alias, ascending; :func:`clew.core.text.fold_name` says what is equal."""
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

    def node_postings(
        self, what: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None
    ) -> Postings | None:
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

    def link(
        self, graph: RelationSource, phrases: Sequence[str], k: int = 5
    ) -> list[tuple[LinkedRelation, ...]]:
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

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Take an edge; one that is given again adds its properties."""
        ...

    def has_node(self, id: str) -> bool:
        """Return whether :meth:`node` was called for this id."""
        ...


# MERGED: What is kept beside a graph about the texts of its nodes: vectors and words.
# MERGED: Finding, reading, answering.
# MERGED: The knowledge base, as those see it who ask it.
# MERGED: Graphs: of the passages of documents, and imported ones.
# MERGED: What the parts of clew expect of each other. One method each where possible.
