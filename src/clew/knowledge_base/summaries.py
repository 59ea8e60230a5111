"""Making and checking the summaries of sections (:mod:`clew.methods.d3.summaries`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.errors import UsageError
from clew.core.sources import Sources, list_sources
from clew.core.types import Usage

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.knowledge_base.knowledge_base import KnowledgeBase
    from clew.methods.d3.outline import Section
    from clew.methods.d3.summaries import Summaries

#: How many sections are summarised to estimate how long all take.
SAMPLE_SIZE = 8


@dataclass(frozen=True, slots=True)
class SummaryEstimate:
    """An estimate: the summariser's name, how many sections have no summary yet, what a language model costs at most,
    and about how many seconds it takes; None where that is not known."""

    summariser: str
    sections: int
    usage: Usage = field(default_factory=Usage)
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class UnfaithfulSummary:
    """A refused summary: its document and section, and the numbers and names in it that its section does not have."""

    document: str
    section: str
    invented: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How many summaries a summariser has, and those of them that were not faithful: extractive summaries replace
    these."""

    summariser: str
    summaries: int
    unfaithful: tuple[UnfaithfulSummary, ...] = ()

    @property
    def share(self) -> float:
        """The share of faithful summaries, from 0 to 1; 1 where there are no summaries."""
        return 1 - len(self.unfaithful) / self.summaries if self.summaries else 1.0


@dataclass(slots=True)
class SummaryJob:
    """The summaries of a base: estimate the work, do it, check the result.

    ``summariser`` is ``extractive``, ``model`` (``llm`` writes them) or ``local:NAME``, with ``words`` words for each
    summary. ``documents`` (names, paths, folders, keys) restricts to some documents. ``usage`` is what :meth:`make`
    has cost so far. The methods raise UsageError, MissingExtra.
    """

    base: KnowledgeBase
    summariser: str = "extractive"
    words: int = 64
    llm: LanguageModel | None = None
    documents: Sources | None = None
    usage: Usage = field(default_factory=Usage, init=False)

    def __post_init__(self) -> None:
        if self.documents is not None:  # an iterator can be read once
            object.__setattr__(self, "documents", list_sources(self.documents))

    def estimate(self) -> SummaryEstimate:
        """Return what :meth:`make` will do."""
        summaries, sections = self._open()
        available = summaries.available(sections)
        missing = [section for section in sections if section.id not in available]
        usage, seconds = Usage(), _estimate_seconds(summaries, missing)
        if summaries.summariser is not None:
            from clew.methods.d3.summaries import section_texts
            from clew.methods.d3.summarisers import ModelSummariser
            from clew.models.costs import estimate_usage

            assert isinstance(summaries.summariser, ModelSummariser)
            prompts = summaries.summariser.prompts(section_texts(summaries.snapshot, missing))
            usage = estimate_usage(prompts, summaries.summariser.model.name)
        return SummaryEstimate(summaries.name, len(missing), usage, seconds)

    def make(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing summaries and return how many. Each batch is stored: when interrupted, the next call
        continues. Raises ModelError, StoreError."""
        summaries, sections = self._open()
        return summaries.make(sections, progress)

    def faithfulness(self) -> Faithfulness:
        """Look up the numbers and names of all summaries in their sections again, and return the result."""
        from clew.methods.d3.summaries import find_invented, section_texts

        summaries, sections = self._open()
        available = summaries.available(sections)
        summarised = [section for section in sections if section.id in available]
        unfaithful = []
        for section, text in zip(summarised, section_texts(summaries.snapshot, summarised), strict=True):
            summary = available[section.id]
            invented = summary.invented or tuple(find_invented(summary.text, f"{text.name}\n{text.text}"))
            if invented:
                name = self.base.store.document(section.document).name
                unfaithful.append(UnfaithfulSummary(name, section.name, invented))
        return Faithfulness(summaries.name, len(summarised), tuple(unfaithful))

    def _open(self) -> tuple[Summaries, list[Section]]:
        from clew.knowledge_base.registry import open_resources
        from clew.methods.d3.outline import Outlines
        from clew.methods.d3.summaries import open_summaries

        if self.words < 1:
            raise UsageError("a summary of no words cannot be made", "For example: --words 64")
        encoder = self.base.encoding.encoder()
        resources = open_resources(self.base.store, self.llm, encoder)
        outlines = Outlines(resources.snapshot, encoder)
        keys = [document.key for document in self.base.documents()]
        if self.documents is not None:
            chosen = self.base.document_keys(self.documents)
            keys = [key for key in keys if key in chosen]
        summaries = open_summaries(resources, self.summariser, self.words, self._add_usage)
        return summaries, [section for key in keys for section in outlines.of(key).sections]

    def _add_usage(self, usage: Usage) -> None:
        self.usage = self.usage + usage


def _estimate_seconds(summaries: Summaries, missing: list[Section]) -> float | None:
    """Return about how long extractive summaries take, measured on a sample; a model's time is not known."""
    if summaries.summariser is not None or not missing:
        return None if missing else 0.0
    from clew.methods.d3.summaries import section_texts

    snapshot, extractive = summaries.snapshot, summaries.fallback
    sample = missing[:: max(1, len(missing) // SAMPLE_SIZE)][:SAMPLE_SIZE]
    # The first summary also loads the encoder.
    extractive.summarise(section_texts(snapshot, sample[:1], extractive.encoder))
    started = time.perf_counter()
    extractive.summarise(section_texts(snapshot, sample, extractive.encoder))
    return (time.perf_counter() - started) * len(missing) / len(sample)
