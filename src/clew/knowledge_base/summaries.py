"""Summaries of sections, as a person makes and checks them (:mod:`clew.methods.d3.summaries`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.errors import UsageError
from clew.core.types import Usage

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.knowledge_base.knowledge_base import KnowledgeBase
    from clew.methods.d3.outline import Section
    from clew.methods.d3.summaries import Summaries

#: Sections that are summarised to foresee how long all will take.
SAMPLE_SIZE = 8


@dataclass(frozen=True, slots=True)
class SummaryEstimate:
    """What summarising will take: the summariser's name, the sections that have no summary yet, what a language
    model will cost at most, and about how many seconds; None where that cannot be foreseen."""

    summariser: str
    sections: int
    usage: Usage = field(default_factory=Usage)
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class UnfaithfulSummary:
    """A summary that was refused: the document and section, and the numbers and names that it has invented."""

    document: str
    section: str
    invented: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How many summaries of a summariser are there, and those of them that it did not write faithfully; the
    extractive one stands in their place."""

    summariser: str
    summaries: int
    unfaithful: tuple[UnfaithfulSummary, ...] = ()

    @property
    def share(self) -> float:
        """The share of faithful ones, from 0 to 1; 1 where there are none."""
        return 1 - len(self.unfaithful) / self.summaries if self.summaries else 1.0


@dataclass(slots=True)
class SummaryJob:
    """Work on the summaries of a base: foresee it, do it, check it.

    ``summariser`` is ``extractive``, ``model`` (``llm`` writes them) or ``local:NAME``; ``documents`` (names, paths,
    folders, keys) restricts. Raises UsageError, MissingExtra.
    """

    base: KnowledgeBase
    summariser: str = "extractive"
    words: int = 64
    llm: LanguageModel | None = None
    documents: Iterable[str] | None = None
    usage: Usage = field(default_factory=Usage, init=False)

    def estimate(self) -> SummaryEstimate:
        """Return what :meth:`make` will do."""
        summaries, sections = self._work()
        known = summaries.available(sections)
        missing = [one for one in sections if one.id not in known]
        usage, seconds = Usage(), self._seconds(summaries, missing)
        if summaries.summariser is not None:
            from clew.methods.d3.summaries import section_texts
            from clew.methods.d3.summarisers import ModelSummariser
            from clew.models.costs import estimate_usage

            assert isinstance(summaries.summariser, ModelSummariser)
            prompts = summaries.summariser.prompts(section_texts(summaries.snapshot, missing))
            usage = estimate_usage(prompts, summaries.summariser.model.name)
        return SummaryEstimate(summaries.name, len(missing), usage, seconds)

    def make(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing summaries and return how many; kept after each batch, so stopped, it continues.

        What that cost is in ``usage``. Raises ModelError, StoreError.
        """
        summaries, sections = self._work()
        return summaries.make(sections, progress)

    def faithfulness(self) -> Faithfulness:
        """Return how faithful the summaries are that are there: their numbers and names are looked up again."""
        from clew.methods.d3.summaries import find_invented, section_texts

        summaries, sections = self._work()
        known = summaries.available(sections)
        made = [one for one in sections if one.id in known]
        wrong = []
        for one, text in zip(made, section_texts(summaries.snapshot, made), strict=True):
            summary = known[one.id]
            found = summary.invented or tuple(find_invented(summary.text, f"{text.name}\n{text.text}"))
            if found:
                wrong.append(UnfaithfulSummary(self._name(one), one.name, found))
        return Faithfulness(summaries.name, len(made), tuple(wrong))

    def _work(self) -> tuple[Summaries, list[Section]]:
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
            wanted = {key for one in self.documents for key in self.base.document_keys(one)}
            keys = [key for key in keys if key in wanted]
        made = open_summaries(resources, self.summariser, self.words, self._spent)
        return made, [section for key in keys for section in outlines.of(key).sections]

    def _spent(self, usage: Usage) -> None:
        self.usage = self.usage + usage

    def _name(self, section: Section) -> str:
        return self.base.store.document(section.document).name

    def _seconds(self, summaries: Summaries, missing: list[Section]) -> float | None:
        """Return about how long extractive summaries take, by the time of some; a model's time is not known."""
        if summaries.summariser is not None or not missing:
            return None if missing else 0.0
        from clew.methods.d3.summaries import section_texts

        some = missing[:: max(1, len(missing) // SAMPLE_SIZE)][:SAMPLE_SIZE]
        summaries.fallback.summarise(section_texts(summaries.snapshot, some[:1], summaries.fallback.encoder))
        started = time.perf_counter()
        summaries.fallback.summarise(section_texts(summaries.snapshot, some, summaries.fallback.encoder))
        return (time.perf_counter() - started) * len(missing) / len(some)
