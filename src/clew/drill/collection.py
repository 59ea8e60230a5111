"""Many documents: the level above sections. The search narrows them, and a model chooses by name and summary.

The paper has one document (Limitations: "scenarios involving retrieval from multiple documents" are left open).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.drill.extracts import SectionText, select_covering
from clew.drill.segments import word_vectors
from clew.drill.summaries import Summaries, try_save_values
from clew.types import PAGE, TABLE

if TYPE_CHECKING:
    from clew.drill.representation import Outline, Outlines, Section
    from clew.protocols import Snapshot, Trail
    from clew.types import Hit

#: Sections by whose summaries a document is summarised.
SOURCE_SECTIONS = 8


def shortlist(hits: Sequence[Hit], allowed: Sequence[str], size: int) -> list[str]:
    """Return the keys of at most ``size`` documents, by their best hit; then, in order of keys, those without."""
    inside = frozenset(allowed)
    found = dict.fromkeys(hit.node.document for hit in hits if hit.node.document in inside)
    return [*found, *sorted(inside - found.keys())][:size]


@dataclass(frozen=True, slots=True)
class DocumentSummaries:
    """Summaries of documents, each of the extractive summaries of the sections that best cover it.

    Sections of which the summary is made are chosen by the mean vectors of their words, so that no more than
    :data:`SOURCE_SECTIONS` of a long document need one. Always extractive: a document's summary does not depend on which
    sections a model has summarised so far. Kept like those of sections.
    """

    snapshot: Snapshot
    outlines: Outlines
    summaries: Summaries

    def of(self, keys: Sequence[str], trail: Trail | None = None) -> list[str]:
        """Return the summaries of documents; those missing are made and kept."""
        if self.summaries.fallback.words == 0:
            return [""] * len(keys)
        maker = f"documents({self.summaries.fallback.name})"
        stored = {key: self.snapshot.read_derived(maker, key) for key in dict.fromkeys(keys)}
        kept = {key: value["0"].decode("utf-8", "surrogatepass") for key, value in stored.items() if value}
        missing = [key for key in stored if key not in kept]
        made = dict(zip(missing, self._made([self.outlines.of(key) for key in missing], trail), strict=True))
        for key, text in made.items():
            try_save_values(self.snapshot, maker, {f"{key}:0": text.encode("utf-8", "surrogatepass")})
        return [kept[key] if key in kept else made[key] for key in keys]

    def _made(self, outlines: Sequence[Outline], trail: Trail | None) -> list[str]:
        chosen = [self._telling(one) for one in outlines]
        extracts = Summaries(self.snapshot, self.summaries.fallback)
        flat = extracts.of([section for one in chosen for section in one], trail)
        texts, start = [], 0
        for outline, sections in zip(outlines, chosen, strict=True):
            parts = tuple(flat[start : start + len(sections)])
            texts.append(SectionText(outline.document.title, parts))
            start += len(sections)
        return self.summaries.fallback.summarise(texts)

    def _telling(self, outline: Outline) -> list[Section]:
        """Return the sections of a document that cover it best, in reading order."""
        sections = [one for one in outline.sections if one.kind not in {TABLE, PAGE}]
        rows = np.array([row for one in sections for row in one.rows], dtype=np.int64)
        if not len(rows):
            return []
        postings = self.snapshot.postings("text")
        starts = np.cumsum([0, *(len(one.rows) for one in sections)])[:-1]
        sums = np.add.reduceat(word_vectors(postings, rows).astype(np.float64), starts)
        vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        lengths = np.add.reduceat(postings.lengths(rows).astype(np.float64), starts)
        best = select_covering(vectors @ vectors.T, lengths, np.ones(len(sections)), SOURCE_SECTIONS)
        return [sections[n] for n in sorted(best)]
