"""Knowledge graphs that a language model extracts from the documents of a base.

What is extracted from a passage is stored with its document, under the name of the model and the prompt. So work that
is stopped continues, no passage is sent twice, and extractions are removed with their document. The graph is a
function of the stored extractions: each edge names its passage and document, and without a document the graph is
built again without asking the model.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew.core.errors import BadCompletion, BudgetExceeded, UsageError
from clew.core.prompts.replies import parse_json
from clew.core.protocols import LanguageModel, Prompt, PromptTemplate, Snapshot
from clew.core.sources import Sources, list_sources
from clew.core.types import PASSAGE, GraphInfo, Node, Scope, Usage

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.knowledge_base.ingest.graphs import GraphTarget
    from clew.knowledge_base.knowledge_base import KnowledgeBase

#: Passages that are sent between two writes; so many are lost at most when the process is killed.
BATCH = 16
_TEXT = {"type": "string"}
#: The schema that a reply must meet to be read. The prompt's own schema asks for more: a reply of a small model that
#: lacks the type of an entity, or a part of a triple, is read all the same.
_REPLY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["triples"],
    "properties": {
        "entities": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": _TEXT, "type": _TEXT}},
        },
        "triples": {
            "type": "array",
            "items": {"type": "object", "properties": {"head": _TEXT, "relation": _TEXT, "tail": _TEXT}},
        },
    },
}
#: Types that carry no information.
_EMPTY_TYPES = frozenset({"", "entity", "other", "unknown", "thing", "none", "n/a"})


@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities of a passage with their types ("" where unknown), and its triples.

    ``incomplete`` counts the triples of the reply that lacked a head, a relation or a tail; they are left out.
    ``truncated``: the reply reached its largest length, so its end may be missing.
    """

    entities: tuple[tuple[str, str], ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    incomplete: int = 0
    truncated: bool = False

    def to_bytes(self) -> bytes:
        """Return the form in which it is stored."""
        shape = [self.entities, self.triples, self.incomplete, self.truncated]
        return json.dumps(shape, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, value: bytes) -> Extraction:
        """Return what :meth:`to_bytes` returned."""
        entities, triples, incomplete, truncated = json.loads(value.decode("utf-8", "surrogatepass"))
        pairs = tuple((name, type) for name, type in entities)
        return cls(
            pairs, tuple((head, relation, tail) for head, relation, tail in triples), incomplete, truncated
        )


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply that cannot be read: the name of its document, the id of its passage, and why."""

    document: str
    passage: str
    problem: str


@dataclass(slots=True)
class ExtractionRun:
    """The result of asking a model: the number of passages extracted, the unreadable replies, and the usage.

    ``stop_reason`` names the budget that ended the work, "" where none did.
    """

    passages: int = 0
    unreadable: list[UnreadableReply] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Extractor:
    """Asks a model for the triples of passages, one call per passage. ``titles`` are those of documents, by key."""

    model: LanguageModel
    template: PromptTemplate
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def maker(self) -> str:
        """The name that extractions are stored under: ``triples(llm=openai:gpt-4o, prompt=extract-triples.v1)``."""
        return f"triples(llm={self.model.name}, prompt={self.template.name})"

    def render_prompts(self, nodes: Sequence[Node]) -> list[Prompt]:
        """Return the prompts for passages; also used to estimate their cost."""
        return [self.template.render(heading=self._heading(node), text=node.text) for node in nodes]

    def _heading(self, node: Node) -> str:
        title = self.titles.get(node.document, "") or node.document_name
        return " > ".join(dict.fromkeys((title, *node.headings)))

    def extract(self, nodes: Sequence[Node]) -> tuple[list[Extraction | BadCompletion], Usage]:
        """Return each passage's extraction, or why its reply cannot be read, and the usage. Raises ModelError."""
        prompts = self.render_prompts(nodes)
        replies = self.model.complete(prompts)
        extractions: list[Extraction | BadCompletion] = []
        for prompt, reply in zip(prompts, replies, strict=True):
            try:
                extraction = _read_reply(parse_json(reply.text, _REPLY_SCHEMA))
                truncated = reply.usage.tokens_out >= prompt.max_tokens
                extractions.append(replace(extraction, truncated=truncated))
            except BadCompletion as error:
                extractions.append(error)
        return extractions, sum((reply.usage for reply in replies), Usage())


@dataclass(frozen=True, slots=True)
class PassageExtractions:
    """The passages of ``documents`` (keys), and what ``maker`` extracted from them."""

    snapshot: Snapshot
    maker: str
    documents: Sequence[str]

    def missing_rows(self) -> Rows:
        """Return the rows of the passages without a stored extraction, ascending."""
        rows, ids = self._passages()
        stored = {
            f"{key}:{place}"
            for key in self.documents
            for place in self.snapshot.read_derived(self.maker, key)
        }
        return rows[[id not in stored for id in ids]] if len(rows) else rows

    def stored_extractions(self) -> Iterator[tuple[str, Extraction]]:
        """Yield the stored extractions with the ids of their passages, in the order of the documents."""
        for key in self.documents:
            values = self.snapshot.read_derived(self.maker, key)
            for place in sorted(values, key=int):
                yield f"{key}:{place}", Extraction.from_bytes(values[place])

    def extract_missing(
        self, extractor: Extractor, progress: Callable[[int, int], None] | None = None
    ) -> ExtractionRun:
        """Extract from the passages that have no stored extraction; store each batch. Raises ModelError, StoreError.

        A budget refuses a batch as a whole, so the rest of the budget is spent on smaller batches.
        """
        rows = self.missing_rows()
        run = ExtractionRun()
        start, size = 0, BATCH
        while start < len(rows):
            nodes = self.snapshot.nodes(rows[start : start + size])
            try:
                extractions, usage = extractor.extract(nodes)
            except BudgetExceeded as error:
                if size == 1:
                    run.stop_reason = error.problem
                    break
                size //= 2
                continue
            start += len(nodes)
            run.usage += usage
            self._store_batch(nodes, extractions, run)
            if progress is not None:
                progress(start, len(rows))
        return run

    def _store_batch(
        self, nodes: Sequence[Node], extractions: Sequence[Extraction | BadCompletion], run: ExtractionRun
    ) -> None:
        values_of: dict[str, dict[str, bytes]] = {}
        for node, extraction in zip(nodes, extractions, strict=True):
            if isinstance(extraction, BadCompletion):
                run.unreadable.append(UnreadableReply(node.document_name, node.id, extraction.problem))
            else:
                run.passages += 1
                values_of.setdefault(node.document, {})[str(node.position)] = extraction.to_bytes()
        for key, values in values_of.items():
            self.snapshot.write_derived(self.maker, key, values)

    def _passages(self) -> tuple[Rows, list[str]]:
        mask = self.snapshot.mask(Scope(documents=frozenset(self.documents)), (PASSAGE,))
        rows = mask.nonzero()[0]
        return rows, self.snapshot.ids(rows)


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """The result of storing a graph: ``added``, ``replaced`` or ``unchanged``.

    ``incomplete`` counts the incomplete triples of all replies, ``truncated`` the truncated replies.
    """

    outcome: str
    incomplete: int
    truncated: int


def store_graph(
    graphs: GraphTarget, name: str, passages: PassageExtractions, options: dict[str, Any]
) -> StoredGraph:
    """Store the extractions of passages as the graph ``name``, in place of a graph of that name.

    ``options`` are stored with the graph. An entity is a node under its name. An edge has, for each passage that it
    was extracted from, the passage's id and the document's name.
    """
    document_names = {document.key: document.name for document in passages.snapshot.documents()}
    builder = graphs.create_builder(name)
    types: dict[str, set[str]] = {}
    incomplete = truncated = 0
    try:
        for id, extraction in passages.stored_extractions():
            provenance = {"passage": id, "document": document_names[id.rpartition(":")[0]]}
            for entity, type in extraction.entities:
                types.setdefault(entity, set()).update({type} if type else ())
            for head, relation, tail in extraction.triples:
                builder.add_edge(head, relation, tail, provenance)
            incomplete += extraction.incomplete
            truncated += extraction.truncated
        for entity in sorted(types):
            builder.add_node(entity, types=sorted(types[entity]))
        outcome = graphs.store_graph(builder, (), json.dumps(options, sort_keys=True))
    finally:
        builder.close()
    return StoredGraph(outcome, incomplete, truncated)


def _read_reply(reply: dict[str, Any]) -> Extraction:
    entities = (
        (_clean(entity.get("name")), _clean(entity.get("type")).lower())
        for entity in reply.get("entities", ())
    )
    types = dict.fromkeys((name, "" if type in _EMPTY_TYPES else type) for name, type in entities if name)
    triples = [
        (_clean(triple.get("head")), _clean(triple.get("relation")), _clean(triple.get("tail")))
        for triple in reply["triples"]
    ]
    complete = [triple for triple in triples if all(triple)]
    return Extraction(tuple(types), tuple(dict.fromkeys(complete)), len(triples) - len(complete))


def _clean(text: str | None) -> str:
    """Return a text on one line and without half characters, "" where it is missing."""
    return " ".join((text or "").encode("utf-8", "replace").decode().split())


#: The key of a graph's options that names the maker of its triples.
_MAKER = "extracted"


@dataclass(frozen=True, slots=True)
class Staleness:
    """How far an extracted graph is behind the documents: ``gone`` counts documents that it was extracted from and
    that were removed, ``new`` those that it does not cover yet."""

    gone: int = 0
    new: int = 0


@dataclass(frozen=True, slots=True)
class ExtractionEstimate:
    """An estimate: the maker of the triples, how many passages are to be sent, and what that costs at most."""

    maker: str
    passages: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """The result of an extraction. ``outcome`` is ``added``, ``replaced`` or ``unchanged``.

    ``passages`` counts the passages that were sent and answered. ``unreadable`` are replies that could not be
    parsed; their passages are sent again next time. ``incomplete`` counts triples without a head, relation or tail,
    ``cut`` replies that reached the longest length allowed, so that triples may be missing at their end, and
    ``left`` passages that were not sent because a budget was spent; ``stopped`` then says which.
    """

    graph: GraphInfo
    outcome: str
    passages: int = 0
    unreadable: tuple[UnreadableReply, ...] = ()
    incomplete: int = 0
    cut: int = 0
    left: int = 0
    usage: Usage = field(default_factory=Usage)
    stopped: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphExtraction:
    """The extraction of the graph ``name``: estimate it, then run it.

    Without ``llm`` the graph is built again from what is stored; that needs no passage to be missing. ``documents``
    (names, paths, folders, keys) restricts the graph to some documents; None stands for all, also those added later.
    Both methods raise UsageError.
    """

    base: KnowledgeBase
    name: str
    llm: LanguageModel | None = None
    documents: Sources | None = None

    def __post_init__(self) -> None:
        if self.documents is not None:  # an iterator can be read once
            object.__setattr__(self, "documents", list_sources(self.documents))

    def estimate(self) -> ExtractionEstimate:
        """Return what :meth:`run` will send."""
        extractor, passages = self._prepare()
        rows = passages.missing_rows()
        usage = Usage()
        if extractor is not None and len(rows):
            from clew.models.costs import estimate_usage

            usage = estimate_usage(
                extractor.render_prompts(passages.snapshot.nodes(rows)), extractor.model.name
            )
        return ExtractionEstimate(passages.maker, len(rows), usage)

    def run(self, progress: Callable[[int, int], None] | None = None) -> ExtractionReport:
        """Send the missing passages to the model and build the graph. Raises ModelError, StoreError.

        Replies are stored after each batch: when interrupted, the next run continues.
        """
        started = time.monotonic()
        extractor, passages = self._prepare()
        missing = passages.missing_rows()
        if extractor is None and len(missing):
            raise UsageError(
                f"{len(missing):,} passages have not been read for triples, and no language model is set",
                "Name one: --llm ollama:llama3.1",
            )
        run = ExtractionRun() if extractor is None else passages.extract_missing(extractor, progress)
        return self._store_graph(passages, run, len(missing), started)

    def _store_graph(
        self, passages: PassageExtractions, run: ExtractionRun, missing: int, started: float
    ) -> ExtractionReport:
        left = missing - run.passages - len(run.unreadable)
        # A document is part of the graph once every passage of it was sent.
        unfinished = _unfinished_documents(passages, run) if left else set()
        options = {
            _MAKER: passages.maker,
            "all": self.documents is None,
            "documents": [key for key in passages.documents if key not in unfinished],
        }
        stored = store_graph(self.base.store.graphs, self.name, passages, options)
        (info,) = (graph for graph in self.base.graphs.infos() if graph.name == self.name)
        return ExtractionReport(
            info,
            stored.outcome,
            run.passages,
            tuple(run.unreadable),
            stored.incomplete,
            stored.truncated,
            left,
            run.usage,
            run.stop_reason,
            time.monotonic() - started,
        )

    def _prepare(self) -> tuple[Extractor | None, PassageExtractions]:
        from clew.core.prompts.templates import load_prompt
        from clew.store.graphs.graph_store import check_graph_name

        check_graph_name(self.name)
        existing = next((graph for graph in self.base.graphs.infos() if graph.name == self.name), None)
        settings = extraction_settings(existing) if existing else {}
        if existing is not None and not settings:
            raise UsageError(
                f"the graph '{self.name}' was {'mounted' if existing.url else 'added from files'}, not extracted",
                f"Give another name, or first: clew graph remove {self.name}",
            )
        if self.llm is None and not settings:
            raise UsageError(
                "extracting triples needs a language model and none is set", "Name one: --llm ollama:llama3.1"
            )
        keys = [document.key for document in self.base.documents()]
        if self.documents is not None:
            chosen = self.base.document_keys(self.documents)
            keys = [key for key in keys if key in chosen]
        snapshot = self.base.store.snapshot()
        titles = {document.key: document.title for document in snapshot.documents()}
        extractor = None
        if self.llm is not None:
            extractor = Extractor(self.llm, load_prompt("extract-triples"), titles)
        maker = str(settings[_MAKER]) if extractor is None else extractor.maker
        return extractor, PassageExtractions(snapshot, maker, sorted(titles.keys() & keys))


def _unfinished_documents(passages: PassageExtractions, run: ExtractionRun) -> set[str]:
    """Return the keys of the documents that have passages which were not sent."""
    sent = {reply.passage for reply in run.unreadable}
    ids = passages.snapshot.ids(passages.missing_rows())
    return {id.rpartition(":")[0] for id in ids if id not in sent}


def extraction_settings(graph: GraphInfo) -> dict[str, Any]:
    """Return how a graph was extracted: ``extracted`` is the maker, ``all`` whether of all documents, ``documents``
    their keys. Empty for a graph that was not extracted."""
    options: dict[str, Any] = {} if graph.url or not graph.options else json.loads(graph.options)
    return options if _MAKER in options else {}


def extraction_maker(graph: GraphInfo) -> str:
    """Return the maker of an extracted graph; "" for a graph that was not extracted."""
    return str(extraction_settings(graph).get(_MAKER, ""))


def measure_staleness(base: KnowledgeBase, graph: GraphInfo) -> Staleness:
    """Return how far an extracted graph is behind the documents; other graphs never are."""
    settings = extraction_settings(graph)
    if not settings:
        return Staleness()
    keys, covered = {document.key for document in base.store.documents()}, set(settings["documents"])
    return Staleness(len(covered - keys), len(keys - covered) if settings["all"] else 0)


def drop_removed_documents(base: KnowledgeBase) -> list[str]:
    """Build the extracted graphs again without removed documents, from what is stored; return the graphs' names.

    No model is asked. Documents that a graph does not cover yet are left for the next extraction.
    """
    names = []
    for graph in base.graphs.infos():
        if not measure_staleness(base, graph).gone:
            continue
        settings = extraction_settings(graph)
        snapshot = base.store.snapshot()
        present = {document.key for document in snapshot.documents()}
        keys = [key for key in settings["documents"] if key in present]
        passages = PassageExtractions(snapshot, settings[_MAKER], keys)
        store_graph(base.store.graphs, graph.name, passages, settings | {"documents": keys})
        names.append(graph.name)
    return names
