"""Readers without a language model: sentences taken from the evidence, and the contents that a question names."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.core.component import component
from clew.core.languages import ENGLISH, document_languages
from clew.core.protocols import Postings, Snapshot, Trail
from clew.core.text import (
    index_terms,
    query_terms,
    sentence_spans,
)
from clew.core.trail import ExtractiveReadStep, ReadOutcomeStep
from clew.core.types import ROW, Answer, Hit, Question, Quote
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.passages import weigh_terms

#: Of a sentence longer than this many characters the part with the question's words is shown.
_LONG = 420
#: The part is chosen among this many.
_WINDOWS = 100


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a hit, given by its index, and how well it answers.

    ``coverage`` has for each term of the question 1 if the sentence has it, less if only its surroundings have it.
    """

    hit: int
    span: tuple[int, int]
    score: float
    coverage: Mapping[str, float]


@component("extractive", summary="the sentences that best answer, taken from the evidence; no model")
@dataclass(frozen=True, slots=True)
class ExtractiveReader:
    """Takes the best sentence of each of the best hits, and of these the best few.

    The score of a sentence is a sum: the share of the question's terms that it covers, weighted by their inverse
    document frequency in ``postings``, where a term that only the passage or its headings have counts ``nearby``; and
    ``rank_weight`` divided by the root of the hit's rank, since the scores of two retrievers cannot be compared. A
    table row is one sentence.

    A second and a third sentence (up to ``max_sentences``), from other hits, are taken until ``covered_enough`` of
    the question is covered; each has to add at least ``min_gain``. The reader abstains if the chosen sentences and
    their surroundings cover less than ``min_coverage`` of the question.

    The answer has up to ``hits`` pieces of evidence with one quote each, the chosen sentences first.
    """

    postings: Postings
    languages: tuple[str, ...] = (ENGLISH,)
    hits: int = 5
    max_considered: int = 20
    max_sentences: int = 3
    nearby: float = 0.35
    rank_weight: float = 0.3
    min_gain: float = 0.1
    covered_enough: float = 0.9
    min_coverage: float = 0.2

    @classmethod
    def build(cls, snapshot: Snapshot) -> ExtractiveReader:
        """Return the reader with the word statistics of a base."""
        return cls(snapshot.postings("text"), document_languages(snapshot))

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the sentences with the hits that they are from, or abstain."""
        started = time.perf_counter()
        weights = self._term_weights(question.text)
        hits = list(hits[: self.max_considered])
        best = self._best_sentences(weights, hits)
        chosen = self._choose(best, weights)
        covered = _covered_share(chosen, weights)
        step = ExtractiveReadStep("extractive", round(covered, 3), "extracted", len(chosen))
        if not chosen or covered < self.min_coverage:
            outcome = "too little of the question is in the evidence"
            seconds = time.perf_counter() - started
            trail.add(replace(step, outcome=outcome, sentences=None, seconds=seconds))
            return Answer(NOT_FOUND, abstained=True)
        others = [sentence for sentence in best if sentence not in chosen][: self.hits - len(chosen)]
        quoted = [*chosen, *sorted(others, key=lambda sentence: sentence.hit)]
        quotes = tuple(_quote(hits[sentence.hit], sentence, weights) for sentence in quoted)
        evidence = tuple(hits[sentence.hit] for sentence in quoted)
        trail.add(replace(step, hits=evidence, seconds=time.perf_counter() - started))
        text = "\n".join(" ".join(quote.text.split()) for quote in quotes[: len(chosen)])
        return Answer(text, evidence, quotes, by_rule=True)

    def _term_weights(self, question: str) -> dict[str, float]:
        """Return the share of each term in the question's total inverse document frequency."""
        question_terms = list(dict.fromkeys(query_terms(question, self.languages)))
        idf = weigh_terms(self.postings, question_terms)
        total = sum(idf) or 1.0
        return {term: value / total for term, value in zip(question_terms, idf, strict=True)}

    def _text_terms(self, text: str) -> set[str]:
        """Return the terms of a text in each of the languages: a passage does not say which one it is in."""
        return {term for language in self.languages for term in index_terms(text, language)}

    def _best_sentences(self, weights: Mapping[str, float], hits: Sequence[Hit]) -> list[ScoredSentence]:
        """Return the best sentence of each hit that has any of the question's terms, best first."""
        best = []
        for index, hit in enumerate(hits):
            scored = list(self._score_sentences(weights, hit, index, self.rank_weight / math.sqrt(1 + index)))
            if scored:
                best.append(max(scored, key=lambda scored: (scored.score, -scored.span[0])))
        return sorted(best, key=lambda sentence: (-round(sentence.score, 9), sentence.hit))

    def _score_sentences(
        self,
        weights: Mapping[str, float],
        hit: Hit,
        index: int,
        rank_score: float,
    ) -> Iterator[ScoredSentence]:
        """Yield the sentences of a hit that have any of the question's terms in them or around them."""
        node = hit.node
        surroundings = " ".join((node.text, node.name, *node.headings, node.document_name))
        nearby_terms = self._text_terms(surroundings)
        spans = [(0, len(node.text))] if node.kind == ROW else sentence_spans(node.text)
        for start, end in spans:
            text = node.text[start:end]
            own_terms = self._text_terms(text)
            coverage = {
                term: 1.0 if term in own_terms else self.nearby
                for term in weights
                if term in own_terms or term in nearby_terms
            }
            if not coverage:
                continue
            score = rank_score + sum(weights[term] * share for term, share in coverage.items())
            yield ScoredSentence(index, (start, end), score, coverage)

    def _choose(self, best: Sequence[ScoredSentence], weights: Mapping[str, float]) -> list[ScoredSentence]:
        """Return the sentences of the answer: the best, then those that add most to what is covered."""
        chosen = list(best[:1])
        while chosen and len(chosen) < self.max_sentences:
            covered = _covered_share(chosen, weights)
            if covered >= self.covered_enough:
                break
            gains = [
                (
                    _covered_share([*chosen, sentence], weights) - covered,
                    sentence.score,
                    -sentence.hit,
                    sentence,
                )
                for sentence in best
                if sentence not in chosen
            ]
            most = max(gains, key=lambda entry: entry[:3], default=None)
            if most is None or most[0] < self.min_gain:
                break
            chosen.append(most[3])
        return chosen


def _covered_share(chosen: Sequence[ScoredSentence], weights: Mapping[str, float]) -> float:
    """Return how much of the question several sentences cover together."""
    return sum(
        weight * max((sentence.coverage.get(term, 0.0) for sentence in chosen), default=0.0)
        for term, weight in weights.items()
    )


def _quote(hit: Hit, sentence: ScoredSentence, weights: Mapping[str, float]) -> Quote:
    start, end = sentence.span
    text = hit.node.text
    if end - start > _LONG:
        start, end = _window(text, start, end, weights)
    return Quote(hit.node.id, text[start:end], (start, end))


def _window(text: str, start: int, end: int, weights: Mapping[str, float]) -> tuple[int, int]:
    """Return the range of the part of a long sentence, cut at spaces, that has most of the question's words."""
    edges = [start, *(at + 1 for at in range(start, end) if text[at].isspace()), end]
    windows: list[tuple[float, int, int]] = []
    # A table cell may have thousands of words: no more than _WINDOWS beginnings are tried.
    for first in edges[: -1 : 1 + len(edges) // _WINDOWS]:
        last = edges[bisect_right(edges, first + _LONG) - 1]
        last = last if last > first else min(first + _LONG, end)
        value = sum(weights.get(term, 0.0) for term in set(index_terms(text[first:last])))
        windows.append((round(value, 9), first, last))
    most = max(value for value, _, _ in windows)
    best = [(first, last) for value, first, last in windows if value == most]
    # Of equal parts the middle one: the answer may stand before the words or after them.
    first, last = best[len(best) // 2]
    return first, first + len(text[first:last].rstrip())


@dataclass(frozen=True, slots=True)
class ContentsReader:
    """Returns the pages, tables or sections that a question names, without a language model.

    The text has at most ``characters``: whole passages, or the beginning of the first. The evidence has the ids of
    all, which lead to the whole.
    """

    characters: int = 4_000

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the texts of the hits, in order."""
        started = time.perf_counter()
        texts: list[str] = []
        room = self.characters
        for hit in hits:
            if len(hit.node.text) > room:
                if not texts:
                    texts.append(f"{hit.node.text[:room].rsplit(maxsplit=1)[0]} …")
                if len(hits) > 1:
                    texts.append(f"({len(hits) - len(texts)} more in the evidence)")
                break
            texts.append(hit.node.text)
            room -= len(hit.node.text)
        seconds = time.perf_counter() - started
        trail.add(ReadOutcomeStep("structure", "what the question names", hits=tuple(hits), seconds=seconds))
        return Answer("\n\n".join(texts), tuple(hits), abstained=not hits, reader="structure")
