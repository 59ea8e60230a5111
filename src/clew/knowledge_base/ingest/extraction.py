"""Graphs of triples that a language model extracts from the passages of a base.

What is extracted from a passage is stored with its document, under the name of the model and the prompt. So work that
is stopped continues, no passage is sent twice, and extractions are removed with their document. The graph is a
function of the stored extractions: each edge names its passage and document, and without a document the graph is
built again without asking the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import BadCompletion, BudgetExceeded
from clew.core.prompts.replies import parse_json
from clew.core.types import PASSAGE, Scope, Usage

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import LanguageModel, Prompt, PromptTemplate, Snapshot
    from clew.core.types import Node
    from clew.knowledge_base.ingest.graphs import GraphTarget

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
        rows = np.flatnonzero(mask)
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
