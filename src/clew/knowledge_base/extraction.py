"""Knowledge graphs that a language model extracts from the documents of a base.

What the model found in each passage is stored (:mod:`clew.knowledge_base.ingest.extraction`); a graph is built from
it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.core.errors import UsageError
from clew.core.types import GraphInfo, Usage

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.knowledge_base.ingest.extraction import (
        ExtractionRun,
        Extractor,
        PassageExtractions,
        UnreadableReply,
    )
    from clew.knowledge_base.knowledge_base import KnowledgeBase

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
    documents: Sequence[str] | None = None

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
        from clew.knowledge_base.ingest.extraction import ExtractionRun

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
        from clew.knowledge_base.ingest.extraction import store_graph

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
        from clew.knowledge_base.ingest.extraction import Extractor, PassageExtractions
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
            chosen = {key for document in self.documents for key in self.base.document_keys(document)}
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
    from clew.knowledge_base.ingest.extraction import PassageExtractions, store_graph

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
