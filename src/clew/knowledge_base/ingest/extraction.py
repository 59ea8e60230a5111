"""Triples that a language model extracts from the passages of a base, put together as a graph.

What the model found in a passage is kept with its document (:meth:`clew.core.protocols.Snapshot.keep`), under
the name of
the model and the prompt: so work that was stopped continues, a passage is asked about once, and what was found goes
with the document. The graph is a function of what is kept: each edge says of which passage and document it is, and
the graph without a document is made without asking anyone.
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

#: Passages that are asked about between two writes: what a kill loses at the most.
BATCH = 16
_TEXT = {"type": "string"}
#: What a reply must have to be read. The prompt's own schema asks for more: a small model that forgets the type of an
#: entity, or a part of a triple, is not refused for it.
_READ: dict[str, Any] = {
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
#: Types that say nothing.
_UNTYPED = frozenset({"", "entity", "other", "unknown", "thing", "none", "n/a"})


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a passage says: entities with their types ("" where that is not known), and triples.

    ``incomplete`` counts the triples of the reply that lacked a head, a relation or a tail, and are not here;
    ``cut``: the reply was as long as it may get, so that its end may be missing.
    """

    entities: tuple[tuple[str, str], ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    incomplete: int = 0
    truncated: bool = False

    def to_bytes(self) -> bytes:
        """Return what is stored."""
        shape = [self.entities, self.triples, self.incomplete, self.truncated]
        return json.dumps(shape, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, value: bytes) -> Extraction:
        """Return what :meth:`packed` wrote."""
        entities, triples, incomplete, cut = json.loads(value.decode("utf-8", "surrogatepass"))
        pairs = tuple((name, type) for name, type in entities)
        return cls(pairs, tuple((head, relation, tail) for head, relation, tail in triples), incomplete, cut)


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A passage of which the reply made no sense: its document's name, its id, and why."""

    document: str
    passage: str
    problem: str


@dataclass(slots=True)
class ExtractionRun:
    """What asking a model brought: passages answered, replies that made no sense, usage, and the budget that ended
    the work, "" where none did."""

    passages: int = 0
    unreadable: list[UnreadableReply] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Extractor:
    """Asks a model for the triples of passages, each by itself. ``titles`` are those of documents, by key."""

    model: LanguageModel
    template: PromptTemplate
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def maker(self) -> str:
        """``triples(llm=openai:gpt-4o-mini, prompt=extract-triples.v1)``: what is found is kept under it."""
        return f"triples(llm={self.model.name}, prompt={self.template.name})"

    def render_prompts(self, nodes: Sequence[Node]) -> list[Prompt]:
        """Return what the model is asked about passages: for foreseeing what it costs, too."""
        return [self.template.render(heading=self._heading(node), text=node.text) for node in nodes]

    def _heading(self, node: Node) -> str:
        title = self.titles.get(node.document, "") or node.document_name
        return " > ".join(dict.fromkeys((title, *node.headings)))

    def extract(self, nodes: Sequence[Node]) -> tuple[list[Extraction | BadCompletion], Usage]:
        """Return what was found in each passage, or why its reply cannot be read; and the cost. Raises ModelError."""
        prompts = self.render_prompts(nodes)
        replies = self.model.complete(prompts)
        found: list[Extraction | BadCompletion] = []
        for prompt, reply in zip(prompts, replies, strict=True):
            try:
                one = _found(parse_json(reply.text, _READ))
                found.append(replace(one, truncated=reply.usage.tokens_out >= prompt.max_tokens))
            except BadCompletion as error:
                found.append(error)
        return found, sum((one.usage for one in replies), Usage())


@dataclass(frozen=True, slots=True)
class PassageExtractions:
    """The passages of ``documents`` (keys) and what ``maker`` found in them."""

    snapshot: Snapshot
    maker: str
    documents: Sequence[str]

    def missing_rows(self) -> Rows:
        """Return the rows of the passages of which nothing is kept, ascending."""
        rows, ids = self._passages()
        known = {
            f"{key}:{place}"
            for key in self.documents
            for place in self.snapshot.read_derived(self.maker, key)
        }
        return rows[[id not in known for id in ids]] if len(rows) else rows

    def stored_extractions(self) -> Iterator[tuple[str, Extraction]]:
        """Yield the passages of which something is kept: ids, in the order of documents, and what was found."""
        for key in self.documents:
            kept = self.snapshot.read_derived(self.maker, key)
            for place in sorted(kept, key=int):
                yield f"{key}:{place}", Extraction.from_bytes(kept[place])

    def extract_missing(
        self, extractor: Extractor, progress: Callable[[int, int], None] | None = None
    ) -> ExtractionRun:
        """Ask about the missing passages; what is found is kept after each batch. Raises ModelError, StoreError.

        A budget refuses a batch whole, so what is left of it is spent on smaller ones.
        """
        rows = self.missing_rows()
        asked = ExtractionRun()
        start, size = 0, BATCH
        while start < len(rows):
            nodes = self.snapshot.nodes(rows[start : start + size])
            try:
                found, usage = extractor.extract(nodes)
            except BudgetExceeded as error:
                if size == 1:
                    asked.stop_reason = error.problem
                    break
                size //= 2
                continue
            start += len(nodes)
            asked.usage += usage
            self._keep(nodes, found, asked)
            if progress is not None:
                progress(start, len(rows))
        return asked

    def _keep(
        self, nodes: Sequence[Node], found: Sequence[Extraction | BadCompletion], asked: ExtractionRun
    ) -> None:
        made: dict[str, dict[str, bytes]] = {}
        for node, one in zip(nodes, found, strict=True):
            if isinstance(one, BadCompletion):
                asked.unreadable.append(UnreadableReply(node.document_name, node.id, one.problem))
            else:
                asked.passages += 1
                made.setdefault(node.document, {})[str(node.position)] = one.to_bytes()
        for key, values in made.items():
            self.snapshot.write_derived(self.maker, key, values)

    def _passages(self) -> tuple[Rows, list[str]]:
        mask = self.snapshot.mask(Scope(documents=frozenset(self.documents)), (PASSAGE,))
        rows = np.flatnonzero(mask)
        return rows, self.snapshot.ids(rows)


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """What storing did: ``added``, ``replaced`` or ``unchanged``; how many triples of the replies were incomplete,
    and how many replies were cut."""

    outcome: str
    incomplete: int
    truncated: int


def store_graph(
    graphs: GraphTarget, name: str, passages: PassageExtractions, options: dict[str, Any]
) -> StoredGraph:
    """Store what is kept of passages as the graph ``name``, in place of one of that name.

    ``options`` say what it was made of. An entity is a node under its name; an edge has for each passage that says
    it the passage's id and the document's name.
    """
    called = {one.key: one.name for one in passages.snapshot.documents()}
    builder = graphs.create_builder(name)
    types: dict[str, set[str]] = {}
    incomplete = cut = 0
    try:
        for id, found in passages.stored_extractions():
            said = {"passage": id, "document": called[id.rpartition(":")[0]]}
            for entity, type in found.entities:
                types.setdefault(entity, set()).update({type} if type else ())
            for head, relation, tail in found.triples:
                builder.add_edge(head, relation, tail, said)
            incomplete += found.incomplete
            cut += found.truncated
        for entity in sorted(types):
            builder.add_node(entity, types=sorted(types[entity]))
        outcome = graphs.store_graph(builder, (), json.dumps(options, sort_keys=True))
    finally:
        builder.close()
    return StoredGraph(outcome, incomplete, cut)


def _found(reply: dict[str, Any]) -> Extraction:
    entities = (
        (_clean(one.get("name")), _clean(one.get("type")).lower()) for one in reply.get("entities", ())
    )
    typed = dict.fromkeys((name, "" if type in _UNTYPED else type) for name, type in entities if name)
    triples = [
        (_clean(one.get("head")), _clean(one.get("relation")), _clean(one.get("tail")))
        for one in reply["triples"]
    ]
    whole = [one for one in triples if all(one)]
    return Extraction(tuple(typed), tuple(dict.fromkeys(whole)), len(triples) - len(whole))


def _clean(text: str | None) -> str:
    """Return a text on one line, as UTF-8 can hold it; "" where it is missing."""
    return " ".join((text or "").encode("utf-8", "replace").decode().split())
