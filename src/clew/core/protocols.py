"""The interfaces through which the rooms of clew see each other.

A room that needs a model, a store or a retriever takes one of these protocols in its constructor and never imports
the implementation. The protocols of storage are split by use (documents, nodes, text index, vector index, graph
index), four to six members each, so that a second backend can implement them one by one; :class:`Snapshot` and
:class:`PropertyGraph` are their sums.

A :class:`Snapshot` is one immutable view of a knowledge base. Within it, nodes are addressed by *rows*: ``int64``
numbers that mean something only together with that snapshot, so that hot paths work on arrays. A retriever returns
:class:`~clew.core.types.Hit` values with node ids, and ties are broken by node id, never by row, so that the history
of a base cannot show in its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

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
    ReaderPassage,
    Relation,
    Scope,
    Span,
    Step,
    Usage,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Hashes, Mask, Rows, TextSpans, Vectors

#: Returns the texts of each row: at least one each, several where a node is encoded in parts.
NodeTexts = Callable[["Rows"], Sequence[Sequence[str]]]
#: Called with how many items are done, and of how many.
ProgressCallback = Callable[[int, int], None]

# Retrieving, reading, answering


class Trail(Protocol):
    """Receives the steps of an answer as they happen."""

    def add(self, step: Step) -> None:
        """Add the next step."""

    def should_stop(self) -> bool:
        """Return whether the caller wants no more steps; called between steps."""


class Retriever(Protocol):
    """Finds nodes for a question."""

    def retrieve(self, question: Question, k: int) -> Sequence[Hit]:
        """Return at most ``k`` hits, best first."""


class Reader(Protocol):
    """Writes an answer from a question and hits; it does not retrieve."""

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the answer. The method fills in its trail and recipe."""


class Method(Protocol):
    """Answers a question: retrieves and reads."""

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with evidence, trail and usage."""


# Models


class SpanModel(Protocol):
    """A trained reader: marks possible answers in passages. No language model."""

    @property
    def name(self) -> str:
        """Canonical name."""

    def read(
        self, question: str, contexts: Sequence[Sequence[ReaderPassage]], limit: int = 5
    ) -> list[list[Span]]:
        """Return for each context, whose passages are read together, its best spans, best first."""

    def read_options(
        self,
        question: str,
        passages: Sequence[ReaderPassage],
        options: Sequence[tuple[int, int, int]],
        limit: int = 5,
    ) -> tuple[list[Span], list[float]]:
        """Return the best spans of passages that are read together, and the score of each option (passage, start,
        end): above 0 where it is likelier to answer than that nothing does."""

    def read_alone(self, question: str, options: Sequence[tuple[ReaderPassage, int, int]]) -> list[float]:
        """Return the same scores of options (passage, start, end) that are each read with their passage alone."""

    def confidence(self, score: float) -> float:
        """Return the estimated probability, from 0 to 1, that a span of this score is right."""


class PlanJudge(Protocol):
    """What is trained to read plain questions over graphs: an encoder, a judge of plans, and fitted ``arrays``."""

    def __hash__(self) -> int:
        """Judges are compared by identity, not by content."""

    @property
    def encoder(self) -> Encoder:
        """The encoder that the arrays were fitted with."""

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The arrays of :class:`clew.questions.reading.PlanModel`, by name."""

    @property
    def sentences(self) -> Mapping[str, NDArray[Any]]:
        """The fitted arrays of what ranks sentences of passages, by name."""

    @property
    def outlines(self) -> Mapping[str, NDArray[Any]]:
        """The arrays of :class:`clew.questions.outline_reading.OutlineModel`, by name."""

    @property
    def follow_ups(self) -> Mapping[str, NDArray[Any]]:
        """The weights of :class:`clew.questions.follow_up.FollowUpReader` and the ``names`` of their features."""

    def compare(self, question: str, sentences: Sequence[str]) -> Floats:
        """Return how alike a question and each plan in words are, (sentences, 3): as wholes, the question's tokens in
        the plan, and the plan's in the question."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for a language model. ``schema`` is a JSON schema for the reply, or None for free text.

    ``role`` is the purpose of the call (``guide``, ``select``, ``summarise``, ``read``, ``grade``, ``structure``,
    ``extract``), so that roles can use different models and the ledger can count them separately. ``sample``
    distinguishes equal prompts whose replies are to be drawn independently, at a temperature: caches and recordings
    use it as part of their key; it is not sent to the model.

    ``form`` says what a reply that is no free text looks like (``numbers``, ``yes-no``, ``score``, ``chain``,
    ``filled``): servers that can are made to keep to it. ``optional`` are parts of ``user`` that may be left out, in
    this order, where the prompt is longer than the model's context: exemplars, and passages from the least relevant
    on.
    """

    user: str
    system: str = ""
    role: str = "read"
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    sample: int = 0
    form: str = ""
    optional: tuple[str, ...] = ()


class PromptTemplate(Protocol):
    """A prompt with declared variables (:mod:`clew.core.prompts`)."""

    @property
    def name(self) -> str:
        """Name with version, such as ``read-cited.v2``."""

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the prompt declares."""

    def render(self, **variables: str) -> Prompt:
        """Return the prompt with its variables filled in. Raises UsageError for other variables."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply of a language model, and its cost."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    cached: bool = False


class LanguageModel(Protocol):
    """A language model. Calls are batched: the implementation decides how many run at once."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``openai:gpt-4o-mini``."""

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""


def context_of(model: LanguageModel | None) -> int | None:
    """Return how many tokens a model takes for a prompt and its reply together, None where it is not known."""
    context = getattr(model, "context", None)
    return context if isinstance(context, int) else None


class Encoder(Protocol):
    """Turns texts into unit vectors. A vector depends on its text alone, not on the batch."""

    @property
    def name(self) -> str:
        """Canonical name; vectors are stored under it."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def objective(self) -> str:
        """The training objective: ``mdr``, to find the next passage given a question and the passages so far;
        ``dpr``, to find passages that answer a question; "" where it is not known."""

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. ``query`` marks questions, for models that differ."""


def encoder_contrast(encoder: Encoder | None) -> float:
    """Return the factor by which differences of an encoder's cosines are as large as those of ``clew:hops``: its
    property ``contrast``, 1 where it has none."""
    return float(getattr(encoder, "contrast", 1.0))


def encoder_batch(encoder: Encoder) -> int:
    """Return how many texts at a time an encoder is best given: its property ``batch``; 0, any number, where it has
    none."""
    return int(getattr(encoder, "batch", 0))


class Reranker(Protocol):
    """Scores texts against a question, each by reading both together."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``monot5:castorini/monot5-base-msmarco``."""

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one score per text, (n,), float64; higher is better, comparable for one question only."""


# Indexes of text and vectors


class Postings(Protocol):
    """The text index of one field: which nodes contain which terms, and how often.

    Terms are 64-bit hashes (:func:`clew.core.text.hash_term`). Only live nodes count, so the statistics are exactly
    those of a base to which nothing else was ever added.
    """

    @property
    def node_count(self) -> int:
        """Number of live nodes that have the field (N of the formulas)."""

    @property
    def average_length(self) -> float:
        """Mean number of terms of a live node."""

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the number of terms of each row, 0 for a row without the field."""

    def document_frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Return the number of live nodes that contain each term."""

    def rows_with(self, term: int) -> tuple[Rows, NDArray[np.int64]]:
        """Return the live rows that contain ``term``, ascending, and how often each does."""

    def term_matrix(self, rows: Rows) -> tuple[NDArray[np.int64], Hashes, NDArray[np.int64]]:
        """Return the terms of ``rows`` as a sparse matrix: offsets (n + 1), terms, counts."""

    def prefetch(self, terms: Hashes | None = None, rows: Rows | None = None) -> None:
        """Say which ``terms`` :meth:`rows_with` will be asked for, and of which ``rows`` the terms.

        A base in object storage begins to fetch all of them at once, and does not wait; elsewhere nothing happens.
        """

    def vocabulary(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Return every live term, ascending, and the number of live nodes that contain it."""


class VectorIndex(Protocol):
    """The vectors of one encoder. A search never returns rows that have no vector yet."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def missing_count(self) -> int:
        """Return how many retrieved nodes have no vector yet."""

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return the ``k`` nearest rows by inner product for each query, (q, k), best first, and their scores.

        Where fewer than ``k`` exist, rows are -1 and scores -inf. ``allowed`` masks rows of the snapshot.
        """

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of ``rows``, (n, dimension); zeros for a row without one."""


class NodeVectors(Protocol):
    """The vectors that one encoder made of one kind of text of a graph's nodes.

    They are made when they are needed, stored beside the graph, and removed with it.
    """

    def rows_without_vectors(self, rows: Rows | None = None) -> Rows:
        """Return the rows (of ``rows``, by default of all nodes) that have no vector, ascending, each once."""

    def encode_missing(self, rows: Rows, texts: NodeTexts, progress: ProgressCallback | None = None) -> int:
        """Make and store the missing vectors of ``rows``; return the number of nodes that were encoded.

        If it is interrupted, the vectors made so far stay. Raises ModelError, and NotFound where the graph was
        removed meanwhile.
        """

    def vectors(self, rows: Rows) -> tuple[NDArray[np.int64], Vectors]:
        """Return the vectors of ``rows`` as offsets (n + 1) and vectors (offsets[-1], dimension).

        A row has as many vectors as texts, and none where none were made.
        """

    def search(self, query: Vectors, k: int, allowed: Mask | None = None) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows with the greatest inner product with ``query``, (d,), best first, and scores.

        Ties are in the order of rows. For kinds of text of which a node has one.
        """


# Graphs


class Graph(Protocol):
    """A graph of passages: the neighbours of a passage, and what joins them."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``keywords(n=20)``."""

    @property
    def mutual(self) -> bool:
        """Whether every edge goes both ways: true of shared keywords, not of nearest vectors."""

    def neighbours(self, row: int) -> Rows:
        """Return the rows joined to ``row`` by an edge, ascending, without ``row`` itself."""

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return the strength of the edge to each neighbour, from 0 to 1; 1 where all edges are alike."""

    def explain_edge(self, source: int, target: int) -> str:
        """Return what joins two neighbours, for the trail (``keywords: ohio, river``)."""


class Adjacency(Protocol):
    """The edges of one relation, or of all, in one direction: for every source its tails, ascending, each once.

    ``heads`` are the rows with an edge, ascending; the tails of the n-th are ``tails[starts[n]:starts[n + 1]]``.
    ``heads`` None: every row is one. The arrays may be memory-mapped and must not be written to.
    """

    @property
    def heads(self) -> NDArray[np.uint32] | None:
        """The rows with an edge, (h,), or None."""

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the tails of each source start, and where the last end, (h + 1,)."""

    @property
    def tails(self) -> NDArray[np.uint32]:
        """The tails, (edges,)."""

    def bounds(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tails of each row start and end."""


@dataclass(frozen=True, slots=True)
class PropertyColumn:
    """The values of one property. ``rows`` are the nodes that have them, ascending, repeated for several values.

    ``numbers`` are the values as :func:`clew.core.text.parse_number` reads them, NaN for other values. ``texts`` are
    the values in UTF-8 after :func:`clew.core.text.fold_name`, concatenated; the n-th starts at ``starts[n]``.
    """

    rows: NDArray[np.uint32]
    numbers: Floats
    texts: NDArray[np.uint8]
    starts: NDArray[np.int64]


class RelationSource(Protocol):
    """Anything with relations that words may refer to: a graph, or a part of one."""

    @property
    def name(self) -> str:
        """The name of the graph."""

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name, with their numbers of edges, types of ends, and examples."""


class PropertyGraph(RelationSource, Protocol):
    """An imported graph, or one mounted elsewhere.

    Rows are its own, 0 to ``size`` - 1; ids are ``<graph name>:<external id>``.
    """

    @property
    def is_mounted(self) -> bool:
        """Whether the graph is mounted: it stays elsewhere, is queried there, and nothing of it is stored."""

    def types(self) -> Mapping[str, int]:
        """Return the node types, with the number of nodes of each."""

    def properties(self) -> Mapping[str, Property]:
        """Return the properties of nodes, by name; empty where they are not known, as of a mounted graph."""

    def answer_types(self) -> Sequence[str]:
        """Return the types of nodes that may answer a question, declared when the graph was added; empty for any."""

    @property
    def size(self) -> int:
        """Number of nodes; of a mounted graph, of those seen so far."""

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id. Raises NotFound."""

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order. Raises NotFound where the graph was replaced meanwhile."""

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending, compared by :func:`clew.core.text.fold_name`."""

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows with the name or alias most similar to ``name``, best first, and the similarity.

        Similarity is from 0 to 1, 1 for the rows of :meth:`find_by_name`. Ties are in the order of ids.
        """

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending; none for a type that does not occur."""

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""

    def property_values(self, property: str) -> PropertyColumn | None:
        """Return all values of a property, none for one that no node has; None where the graph cannot list them."""

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each.

        ``relation`` None: along any relation, each row once. Raises UsageError for an unknown relation.
        """

    def adjacency(self, relation: str | None, inverse: bool = False) -> Adjacency | None:
        """Return all edges of a relation (None: of any) as arrays, for operations on whole sets.

        None where the graph cannot list them; use :meth:`neighbours` then. Raises UsageError as it does.
        """

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the properties of an edge, one mapping for each time that the edge was given with any."""

    def node_vectors(self, encoder: Encoder, kind: str) -> NodeVectors:
        """Return the vectors of a kind of text, one of those that a node may have; ``encoder`` can make missing ones.

        Raises UsageError for a mounted graph: nothing of its nodes is stored.
        """

    def node_postings(
        self, kind: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None
    ) -> Postings | None:
        """Return the postings of a kind of text of every node; where there are none yet, make and store them.

        None where there are none and ``texts`` is not given. Raises UsageError for a mounted graph.
        """


@runtime_checkable
class QueriedGraph(Protocol):
    """A mounted graph, whose source answers SPARQL in its own IRIs."""

    @property
    def type_property(self) -> str:
        """The IRI of the property that gives the types of nodes."""

    def type_iris(self, type: str) -> list[str]:
        """Return the IRIs of a type."""

    def relation_iri(self, relation: str) -> str:
        """Return the IRI of a relation."""

    def iris(self, rows: Rows) -> list[str]:
        """Return the IRI of each row."""

    def select_nodes(self, query: str) -> Rows:
        """Return the rows of the resources that the one variable of a SELECT query can be, ascending.

        Raises RemoteError, and UsageError where there are more than the mount lists.
        """


class EntityLinker(Protocol):
    """Finds the nodes of a graph that names refer to."""

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

        Nodes of ``types`` come before others with as good a name. Calls of a model and their cost are added to the
        trail.
        """


class RelationLinker(Protocol):
    """Finds the relations of a graph that phrases refer to."""

    def link(
        self, graph: RelationSource, phrases: Sequence[str], k: int = 5
    ) -> list[tuple[LinkedRelation, ...]]:
        """Return for each phrase at most ``k`` candidates, best first; each direction counts as one."""


class GraphSink(Protocol):
    """Receives a graph while it is read: nodes and edges in any order. The ends of an edge need no node."""

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
        """Add a node, or a part of one.

        Of several names the one with the lowest ``rank`` becomes the name and the others aliases; names of rank 1000
        and above serve only where there is no other, and are never aliases.
        """

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Add an edge. Adding an edge again adds its properties."""

    def has_node(self, id: str) -> bool:
        """Return whether :meth:`add_node` was called for this id."""


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """Nodes as columns with a value for each node; ``properties`` are columns by name, None where there is no value.

    A column that the nodes do not have is empty.
    """

    ids: Sequence[str]
    types: Sequence[Sequence[str]] = ()
    names: Sequence[str] = ()
    aliases: Sequence[Sequence[str]] = ()
    texts: Sequence[str] = ()
    properties: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@runtime_checkable
class ColumnSink(GraphSink, Protocol):
    """A sink that also takes many nodes or edges at once, as columns, which is several times as fast."""

    def add_nodes(self, nodes: NodeColumns) -> bool:
        """Add nodes, each as a whole; False, and none is added, where one was added before or is there twice."""

    def add_edges(self, heads: TextSpans, relations: TextSpans, tails: TextSpans) -> None:
        """Add edges without properties."""


# The knowledge base


class Snapshot(Protocol):
    """One immutable view of a knowledge base."""

    def documents(self) -> Sequence[Document]:
        """Return every document, sorted by key."""

    def document_rows(self, key: str) -> tuple[int, int]:
        """Return the half-open range of rows of a document, its own row first. Raises NotFound."""

    def document_text(self, document: str) -> str:
        """Return a document's canonical text, to which spans refer. Raises NotFound."""

    def document_openings(self, documents: Sequence[str], length: int) -> list[str]:
        """Return the first ``length`` characters of each document's canonical text; "" for one that is gone.

        Raises NotFound for a document that the view does not have.
        """

    def read_derived(self, maker: str, document: str) -> Mapping[str, bytes]:
        """Return the values that ``maker`` stored for parts of a document, by part. Raises NotFound."""

    def write_derived(self, maker: str, document: str, values: Mapping[str, bytes]) -> bool:
        """Store values for parts of a document, such as summaries of its sections, by part.

        They must be a pure function of the document and the maker's name, and are removed with the document. Return
        False, and store nothing, where the document is gone. Raises StoreError.
        """

    @property
    def size(self) -> int:
        """One more than the largest row: the length of masks and columns."""

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each node id. Raises NotFound."""

    def ids(self, rows: Rows) -> list[str]:
        """Return the node id of each row."""

    def nodes(self, rows: Rows) -> list[Node]:
        """Return the nodes of ``rows``, in that order. Raises NotFound for one that was removed meanwhile."""

    def prefetch_nodes(self, rows: Rows) -> None:
        """Say of which rows the nodes will be asked for.

        A base in object storage begins to fetch all of them at once, and does not wait; elsewhere nothing happens.
        """

    def mask(self, scope: Scope, kinds: Sequence[str] | None = None) -> Mask:
        """Return which rows are live, in ``scope`` and of one of ``kinds`` (default: the scope's kinds)."""

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one number per row, -1 where there is none and for rows that are not live.

        Columns are ``document`` (first row of the document), ``parent`` (row), ``page`` (1-based) and ``kind`` (index
        into KINDS).
        """

    def postings(self, field: str) -> Postings:
        """Return the text index of a field.

        Fields are ``text`` (passages and table rows), ``title`` (names of documents, sections and tables) and
        ``mention`` (the names that passages and table rows contain).
        """

    def vectors(self, encoder: str, dimension: int = 0) -> VectorIndex:
        """Return the vectors of the encoder named ``encoder``.

        Where there are none yet, return an empty index with that ``dimension``, or raise NotFound without one: for a
        search that can do nothing without vectors.
        """

    def graphs(self) -> Sequence[str]:
        """Return the names of the graphs, sorted."""

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none, Damaged where it cannot be used."""

    @property
    def generation(self) -> int:
        """The state of the base that the view shows; grows with every change."""

    @property
    def pending(self) -> int:
        """Number of documents that were added but are not yet searchable in this view."""

    def memoize(self, key: str, make: Callable[[], Any], *, documents_only: bool = False) -> Any:
        """Return ``make()``, computed once per generation: for global views such as a graph of passages.

        ``documents_only`` declares that the value depends on the documents alone, not on edges, graphs, vectors or
        derived values. It is then also shared with other generations that have the same documents.
        """


class SnapshotSource(Protocol):
    """A knowledge base that can be queried."""

    def snapshot(self) -> Snapshot:
        """Return a view of the base as it is now."""
