"""What the parts of clew expect of each other. One method each where possible.

A :class:`Snapshot` is one immutable view of a knowledge base. Within it, nodes are addressed by *rows*:
numpy ``int64`` numbers that mean something only together with that snapshot. They exist so that hot paths
work on arrays; what leaves a retriever is always a :class:`~clew.types.Hit` with node ids, and ties are
broken by node id, never by row, so that the history of a base cannot show in its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clew.types import Answer, Document, Entity, Hit, Node, Question, Relation, Scope, Step, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Hashes = NDArray[np.uint64]
    Mask = NDArray[np.bool_]
    Vectors = NDArray[np.float32]


class Postings(Protocol):
    """Which nodes contain which terms, counted. Terms are 64-bit hashes (:func:`clew.text.term_hash`).

    Only live nodes count, so statistics are exactly those of a base to which nothing else was ever added.
    """

    @property
    def count(self) -> int:
        """Number of live nodes that this field was made for (N of the formulas)."""
        ...

    @property
    def average_length(self) -> float:
        """Mean number of terms of a live node."""
        ...

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for one without postings."""
        ...

    def frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""
        ...

    def holders(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""
        ...

    def of(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""
        ...

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""
        ...


class VectorView(Protocol):
    """The vectors of one encoder. Rows without a vector yet are never returned."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def missing(self) -> int:
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

    def of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending; none for a type that does not occur."""
        ...

    def named(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending; :func:`clew.text.folded_name` says what is equal."""
        ...

    def adjacent(self, rows: Rows, relation: str, inverse: bool = False) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each.

        Raises UsageError for a relation that the graph does not have.
        """
        ...

    def statements(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the properties of an edge, one mapping for each time that it was given with any."""
        ...


class GraphSink(Protocol):
    """Takes a graph as it is read: nodes and edges in any order; an edge's ends need no node of their own."""

    def node(
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

    def edge(self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None) -> None:
        """Take an edge; one that is given again adds its properties."""
        ...

    def described(self, id: str) -> bool:
        """Return whether :meth:`node` was called for this id."""
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

    def text_of(self, document: str) -> str:
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

    def adjacent(self, rows: Rows, relation: str, inverse: bool = False) -> tuple[NDArray[np.int64], Rows]:
        """Return the live neighbours of ``rows`` by asserted edges: offsets (n + 1), rows ascending."""
        ...

    def postings(self, field: str) -> Postings:
        """Return the postings of ``text`` (passages and table rows), ``title`` (names of documents, sections
        and tables) or ``mention`` (the names that passages and table rows contain)."""
        ...

    def vectors(self, encoder: str, dimension: int = 0) -> VectorView:
        """Return the vectors that the encoder named ``encoder`` made; where there are none yet, a view of none with
        that ``dimension``. Raises NotFound without it: for a search that can do nothing without vectors."""
        ...

    def kept(self, maker: str, document: str) -> Mapping[str, bytes]:
        """Return what ``maker`` made of parts of a document and was told to keep, by part. Raises NotFound."""
        ...

    def keep(self, maker: str, document: str, made: Mapping[str, bytes]) -> bool:
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

    def remember(self, key: str, make: Callable[[], Any]) -> Any:
        """Return ``make()``, computed once for this generation: for global views such as a graph."""
        ...


class Snapshots(Protocol):
    """A knowledge base, as far as one who asks it is concerned."""

    def snapshot(self) -> Snapshot:
        """Return the base as it is now."""
        ...


class Trail(Protocol):
    """Receives the steps of an answer as they happen."""

    def add(self, step: Step) -> None:
        """Take the next step."""
        ...

    def stopped(self) -> bool:
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


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is asked. ``schema`` is a JSON schema for the reply, or None for free text.

    ``role`` says for what (``guide``, ``select``, ``summarise``, ``read``, ``grade``, ``structure``), so that
    roles may use different models and the ledger can tell them apart.
    """

    user: str
    system: str = ""
    role: str = "read"
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()


class PromptTemplate(Protocol):
    """A prompt with declared variables (:mod:`clew.prompts`)."""

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

    def why(self, source: int, target: int) -> str:
        """Say what joins two neighbours, for the trail (``keywords: ohio, river``)."""
        ...
