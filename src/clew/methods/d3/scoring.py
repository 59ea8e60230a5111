"""Scores of sections without a model: by name, summary and best passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clew.core.arrays import Floats, cosines
from clew.core.languages import document_languages
from clew.core.protocols import Encoder, Snapshot, Trail
from clew.core.text import hash_term, index_terms, query_terms
from clew.core.types import Hit
from clew.methods.d3.outline import Section
from clew.methods.d3.summaries import Summaries, try_save_values

#: From this share of the question's words on, a name or summary is given as a reason.
MIN_MATCH = 0.34


@dataclass(frozen=True, slots=True)
class SectionScores:
    """The scores of a section, each from 0 to 1.

    ``name`` and ``summary`` are the shares of the question's words in them, weighted by how rare the words are.
    ``similarity`` is the cosine of name and summary with the question, 0 without an encoder. ``passage`` is the score
    of the best passage as a share of the best of all; ``best_hit`` is that passage, None if the search found none.
    """

    name: float
    summary: float
    similarity: float
    passage: float
    best_hit: Hit | None = None

    @property
    def heading(self) -> float:
        """The score of name and summary together, by words and, with an encoder, by meaning."""
        words = max(self.name, self.summary)
        return words if not self.similarity else 0.5 * (words + self.similarity)

    @property
    def total(self) -> float:
        """The score of the section: half by its passages, half by name and summary."""
        return 0.5 * (self.passage + self.heading)

    def reasons(self) -> list[str]:
        """Return the reasons for choosing the section, for the trail."""
        reasons = []
        if self.name >= MIN_MATCH:
            reasons.append(f"name match {self.name:.2f}")
        if self.summary >= MIN_MATCH or self.similarity >= MIN_MATCH:
            reasons.append(f"summary match {max(self.summary, self.similarity):.2f}")
        if self.best_hit is not None:
            reasons.append(f"best passage {self.passage:.2f}")
        return reasons or ["nearest there is"]


@dataclass(frozen=True, slots=True)
class SectionScorer:
    """Scores sections for a question."""

    snapshot: Snapshot
    summaries: Summaries
    encoder: Encoder | None = None

    def score_sections(
        self,
        question: str,
        sections: Sequence[Section],
        hit_of_row: Mapping[int, Hit],
        trail: Trail | None = None,
    ) -> list[SectionScores]:
        """Return the scores of each section. ``hit_of_row`` has the hits of a search, best first."""
        summaries = self.summaries.of(sections, trail)
        languages = document_languages(self.snapshot)
        weights = self._word_weights(question, languages)
        similarities = self._similarities(question, sections, summaries)
        top = max((hit.score for hit in hit_of_row.values()), default=0.0)
        scores = []
        for section, summary, cosine in zip(sections, summaries, similarities.tolist(), strict=True):
            hits = [hit_of_row[row] for row in section.rows if row in hit_of_row]
            best_hit = max(hits, key=lambda hit: hit.score, default=None)
            share = best_hit.score / top if best_hit is not None and top > 0 else 0.0
            scores.append(
                SectionScores(
                    weighted_share(weights, section.name, languages),
                    weighted_share(weights, summary, languages),
                    max(cosine, 0.0),
                    max(share, 0.0),
                    best_hit,
                )
            )
        return scores

    def _word_weights(self, question: str, languages: Sequence[str]) -> dict[str, float]:
        """Return how rare each word of the question is."""
        words = list(dict.fromkeys(query_terms(question, languages)))
        postings = self.snapshot.postings("text")
        hashes = np.array([hash_term(word) for word in words], dtype=np.uint64)
        weights = np.log(1 + postings.node_count / (postings.document_frequency(hashes) + 1.0))
        return dict(zip(words, weights.tolist(), strict=True))

    def _similarities(self, question: str, sections: Sequence[Section], summaries: Sequence[str]) -> Floats:
        """Return the cosine of each section's name and summary with the question."""
        if self.encoder is None or not sections:
            return np.zeros(len(sections))
        vectors = self._vectors(self.encoder, sections, summaries)
        return cosines(vectors, self.encoder.encode([question], query=True)[0])

    def _vectors(self, encoder: Encoder, sections: Sequence[Section], summaries: Sequence[str]) -> Floats:
        """Return the vectors of names with summaries, (n, dimension).

        New ones are stored in half precision, and used in half precision the first time as well, so that a search
        gives the same result the second time.
        """
        maker = f"vectors({self.summaries.name}, {encoder.name})"
        stored: dict[str, bytes] = {}
        for key in dict.fromkeys(section.document for section in sections):
            derived = self.snapshot.read_derived(maker, key)
            stored.update((f"{key}:{place}", value) for place, value in derived.items())
        new = [n for n, section in enumerate(sections) if section.id not in stored]
        if new:
            texts = [f"{sections[n].name}: {summaries[n]}" for n in new]
            values = {
                sections[n].id: vector.astype("<f2").tobytes()
                for n, vector in zip(new, encoder.encode(texts), strict=True)
            }
            stored |= values
            # A base that cannot be written to still answers; the step "summarise" has the problem.
            try_save_values(self.snapshot, maker, values)
        return np.array([np.frombuffer(stored[section.id], "<f2") for section in sections]).astype(np.float64)


def weighted_share(weights: Mapping[str, float], text: str, languages: Sequence[str]) -> float:
    """Return the share of weighted words that are in ``text``, in one of ``languages``, from 0 to 1."""
    terms = {term for language in languages for term in index_terms(text, language)}
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in terms) / total if total else 0.0
