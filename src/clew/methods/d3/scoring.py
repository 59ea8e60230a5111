"""What speaks for a section without a model: its name, its summary, its best passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import cosines
from clew.core.text import hash_term, index_terms, query_terms
from clew.methods.d3.summaries import try_save_values

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, Snapshot, Trail
    from clew.core.types import Hit
    from clew.methods.d3.outline import Section
    from clew.methods.d3.summaries import Summaries

#: A share of the question's words from which a name or summary is said to match.
MIN_MATCH = 0.34


@dataclass(frozen=True, slots=True)
class SectionScores:
    """What speaks for a section, each from 0 to 1: the share of the question's words in its name and in its
    summary, weighted by how rare they are; the cosine of name and summary with the question (0 where there is
    no encoder); its best passage as a share of the best of all. ``best`` is the hit, where there is one."""

    name: float
    summary: float
    similarity: float
    passage: float
    best_hit: Hit | None = None

    @property
    def heading(self) -> float:
        """How well name and summary fit, from 0 to 1: by meaning and words where there is an encoder."""
        words = max(self.name, self.summary)
        return words if not self.similarity else 0.5 * (words + self.similarity)

    @property
    def total(self) -> float:
        """How well the section fits: half by its passages, half by what it says of itself."""
        return 0.5 * (self.passage + self.heading)

    def reasons(self) -> list[str]:
        """Say what speaks for it, for the trail."""
        said = []
        if self.name >= MIN_MATCH:
            said.append(f"name match {self.name:.2f}")
        if self.summary >= MIN_MATCH or self.similarity >= MIN_MATCH:
            said.append(f"summary match {max(self.summary, self.similarity):.2f}")
        if self.best_hit is not None:
            said.append(f"best passage {self.passage:.2f}")
        return said or ["nearest there is"]


@dataclass(frozen=True, slots=True)
class SectionScorer:
    """Weighs sections for a question."""

    snapshot: Snapshot
    summaries: Summaries
    encoder: Encoder | None = None

    def score_sections(
        self, question: str, sections: Sequence[Section], hits: Mapping[int, Hit], trail: Trail | None = None
    ) -> list[SectionScores]:
        """Return what speaks for each section. ``hits`` are what a search found, best first, by row."""
        found = self.summaries.of(sections, trail)
        weights = self._weights(question)
        meaning = self._meaning(question, sections, found)
        top = max((hit.score for hit in hits.values()), default=0.0)
        made = []
        for one, summary, cosine in zip(sections, found, meaning.tolist(), strict=True):
            inside = [hits[row] for row in one.rows if row in hits]
            best = max(inside, key=lambda hit: hit.score, default=None)
            share = best.score / top if best is not None and top > 0 else 0.0
            name, words = weighted_share(weights, one.name), weighted_share(weights, summary)
            made.append(SectionScores(name, words, max(cosine, 0.0), max(share, 0.0), best))
        return made

    def _weights(self, question: str) -> dict[str, float]:
        """Return how rare each word of the question is."""
        words = list(dict.fromkeys(query_terms(question)))
        postings = self.snapshot.postings("text")
        frequency = postings.document_frequency(
            np.array([hash_term(word) for word in words], dtype=np.uint64)
        )
        rare = np.log(1 + postings.node_count / (frequency + 1.0))
        return dict(zip(words, rare.tolist(), strict=True))

    def _meaning(self, question: str, sections: Sequence[Section], summaries: Sequence[str]) -> Floats:
        if self.encoder is None or not sections:
            return np.zeros(len(sections))
        maker = f"vectors({self.summaries.name}, {self.encoder.name})"
        vectors = self._vectors(maker, sections, summaries)
        return cosines(vectors, self.encoder.encode([question], query=True)[0])

    def _vectors(self, maker: str, sections: Sequence[Section], summaries: Sequence[str]) -> Floats:
        """Return the vectors of names with summaries, (n, dimension); those that are new are kept, in half
        precision, and used so the first time as well: a search gives the same the second time."""
        assert self.encoder is not None
        kept: dict[str, bytes] = {}
        for key in dict.fromkeys(one.document for one in sections):
            kept.update(
                (f"{key}:{place}", value) for place, value in self.snapshot.read_derived(maker, key).items()
            )
        new = [n for n, one in enumerate(sections) if one.id not in kept]
        if new:
            texts = [f"{sections[n].name}: {summaries[n]}" for n in new]
            for n, vector in zip(new, self.encoder.encode(texts), strict=True):
                kept[sections[n].id] = vector.astype("<f2").tobytes()
            # A base that cannot be written to can be asked all the same; the step "summarise" says so.
            try_save_values(self.snapshot, maker, {sections[n].id: kept[sections[n].id] for n in new})
        return np.array([np.frombuffer(kept[one.id], "<f2") for one in sections]).astype(np.float64)


def weighted_share(weights: Mapping[str, float], text: str) -> float:
    """Return the share of weighted words that ``text`` holds, from 0 to 1."""
    there = set(index_terms(text))
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in there) / total if total else 0.0
