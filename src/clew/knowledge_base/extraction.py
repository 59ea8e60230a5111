"""Graphs that a language model extracts from the documents of a base
(:mod:`clew.knowledge_base.ingest.extraction`)."""

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

#: The key of a graph's options that says who extracted it.
_MAKER = "extracted"


@dataclass(frozen=True, slots=True)
class Staleness:
    """How an extracted graph differs from the documents of its base: how many that it was made of are ``gone``, how
    many that it should be made of are ``new`` to it."""

    gone: int = 0
    new: int = 0


@dataclass(frozen=True, slots=True)
class ExtractionEstimate:
    """What extracting will take: who extracts, the passages of which nothing is known yet, and their cost at most."""

    maker: str
    passages: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What extracting did. ``outcome`` is ``added``, ``replaced`` or ``unchanged``.

    ``passages`` were asked about and answered; ``unreadable`` are those whose reply made no sense: they are asked
    about again next time. ``incomplete`` counts triples that lacked a part, ``cut`` replies that were as long as they
    may get, so that triples at their end may be missing; ``left`` passages that were not reached
    because a budget was spent, which ``stopped`` then says.
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
    """Work on the graph ``name``: foresee it, do it.

    ``llm`` may be None where nothing is missing: the graph is then made again of what is kept. ``documents`` (names,
    paths, folders, keys) restricts; None is all, also those that are added later. Raises UsageError.
    """

    base: KnowledgeBase
    name: str
    llm: LanguageModel | None = None
    documents: Sequence[str] | None = None

    def estimate(self) -> ExtractionEstimate:
        """Return what :meth:`make` will do."""
        extractor, passages = self._work()
        rows = passages.missing_rows()
        usage = Usage()
        if extractor is not None and len(rows):
            from clew.models.costs import estimate_usage

            usage = estimate_usage(
                extractor.render_prompts(passages.snapshot.nodes(rows)), extractor.model.name
            )
        return ExtractionEstimate(passages.maker, len(rows), usage)

    def run(self, progress: Callable[[int, int], None] | None = None) -> ExtractionReport:
        """Ask about the missing passages, and make the graph. Raises ModelError, StoreError.

        What is found is kept after each batch, so stopped, it continues.
        """
        from clew.knowledge_base.ingest.extraction import ExtractionRun

        started = time.monotonic()
        extractor, passages = self._work()
        missing = passages.missing_rows()
        if extractor is None and len(missing):
            raise UsageError(
                f"{len(missing):,} passages have not been read for triples, and no language model is set",
                "Name one: --llm ollama:llama3.1",
            )
        asked = passages.extract_missing(extractor, progress) if extractor is not None else ExtractionRun()
        return self._made(passages, asked, len(missing), started)

    def _made(
        self, passages: PassageExtractions, asked: ExtractionRun, missing: int, started: float
    ) -> ExtractionReport:
        from clew.knowledge_base.ingest.extraction import store_graph

        left = missing - asked.passages - len(asked.unreadable)
        # A document is part of the graph once every passage of it was read, or tried to.
        open_ones = self._not_reached(passages, asked) if left else set()
        options = {
            _MAKER: passages.maker,
            "all": self.documents is None,
            "documents": [key for key in passages.documents if key not in open_ones],
        }
        done = store_graph(self.base.store.graphs, self.name, passages, options)
        (info,) = (one for one in self.base.graphs.infos() if one.name == self.name)
        return ExtractionReport(
            info,
            done.outcome,
            asked.passages,
            tuple(asked.unreadable),
            done.incomplete,
            done.truncated,
            left,
            asked.usage,
            asked.stop_reason,
            time.monotonic() - started,
        )

    def _not_reached(self, passages: PassageExtractions, asked: ExtractionRun) -> set[str]:
        tried = {one.passage for one in asked.unreadable}
        ids = passages.snapshot.ids(passages.missing_rows())
        return {id.rpartition(":")[0] for id in ids if id not in tried}

    def _work(self) -> tuple[Extractor | None, PassageExtractions]:
        from clew.core.prompts.templates import load_prompt
        from clew.knowledge_base.ingest.extraction import Extractor, PassageExtractions
        from clew.store.graphs.graph_store import check_graph_name

        check_graph_name(self.name)
        known = next((one for one in self.base.graphs.infos() if one.name == self.name), None)
        made = extraction_settings(known) if known else {}
        if known is not None and not made:
            raise UsageError(
                f"the graph '{self.name}' was {'mounted' if known.url else 'added from files'}, not extracted",
                f"Give another name, or first: clew graph remove {self.name}",
            )
        if self.llm is None and not made:
            raise UsageError(
                "extracting triples needs a language model and none is set", "Name one: --llm ollama:llama3.1"
            )
        keys = [document.key for document in self.base.documents()]
        if self.documents is not None:
            wanted = {key for one in self.documents for key in self.base.document_keys(one)}
            keys = [key for key in keys if key in wanted]
        snapshot = self.base.store.snapshot()
        titles = {one.key: one.title for one in snapshot.documents()}
        extractor = (
            Extractor(self.llm, load_prompt("extract-triples"), titles) if self.llm is not None else None
        )
        maker = extractor.maker if extractor is not None else str(made[_MAKER])
        return extractor, PassageExtractions(snapshot, maker, sorted(titles.keys() & keys))


def extraction_settings(graph: GraphInfo) -> dict[str, Any]:
    """Return what an extracted graph was made of (``extracted``: by whom, ``all``, ``documents``: keys); empty for a
    graph of another kind."""
    found: dict[str, Any] = {} if graph.url or not graph.options else json.loads(graph.options)
    return found if _MAKER in found else {}


def extraction_maker(graph: GraphInfo) -> str:
    """Return who extracted a graph, "" for one of another kind."""
    return str(extraction_settings(graph).get(_MAKER, ""))


def measure_staleness(base: KnowledgeBase, graph: GraphInfo) -> Staleness:
    """Return how far an extracted graph is behind the documents; that of another kind never is."""
    made = extraction_settings(graph)
    if not made:
        return Staleness()
    keys, known = {one.key for one in base.store.documents()}, set(made["documents"])
    return Staleness(len(known - keys), len(keys - known) if made["all"] else 0)


def drop_removed_documents(base: KnowledgeBase) -> list[str]:
    """Make the extracted graphs without the documents that are gone, of what is kept; return their names.

    No model is asked. Documents that a graph does not know yet are left for ``extract``.
    """
    from clew.knowledge_base.ingest.extraction import PassageExtractions, store_graph

    names = []
    for graph in base.graphs.infos():
        if not measure_staleness(base, graph).gone:
            continue
        made = extraction_settings(graph)
        snapshot = base.store.snapshot()
        here = {one.key for one in snapshot.documents()}
        keys = [key for key in made["documents"] if key in here]
        passages = PassageExtractions(snapshot, made[_MAKER], keys)
        store_graph(base.store.graphs, graph.name, passages, made | {"documents": keys})
        names.append(graph.name)
    return names
