"""A reader without a language model: it takes the sentences that best answer, and says that it did."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.core.component import component
from clew.core.protocols import Postings, Snapshot, Trail
from clew.core.steps import ExtractiveReadStep, ReadOutcomeStep
from clew.core.text import candidate_names, hash_term, index_terms, query_terms, sentence_spans
from clew.core.types import ROW, Answer, Hit, Question, Quote
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.answer_kinds import AnswerKind, contains_answer, expected_kind

#: Sentences longer than this many characters are shown around the words that the question asks for.
_LONG = 420
_WINDOWS = 100


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a hit, what of the question it covers, and how well it answers.

    ``covers`` holds a share for each term of the question: 1 where the sentence has it, less where only its
    surroundings do. ``names`` are the names in it that the question does not have.
    """

    hit: int
    span: tuple[int, int]
    score: float
    coverage: Mapping[str, float]
    names: frozenset[str] = frozenset()


@component("extractive", summary="the sentences that best answer, taken from the evidence; no model")
@dataclass(frozen=True, slots=True)
class ExtractiveReader:
    """Picks from each of the best hits the sentence that best answers, and of these the best few.

    The score of a sentence adds up: the share of the question's terms that it covers, weighted by their
    inverse document frequency in ``postings``, a term that only the passage or its headings have counting
    ``nearby``; ``typed`` if it holds a name, date or amount where the question asks for one and does not hold
    it itself; and ``rank`` divided by the root of the hit's place, since the scores of two methods do not
    compare. A table row is one sentence.

    A second and a third sentence, from other hits, are taken while less than ``answered`` of the question is
    covered: each must bring at least ``gain`` of it, where a name that it shares with those before it counts
    as ``link`` (if at most a share ``rare`` of all nodes has its rarest word), for in a question of two hops the
    name that joins them is what the question does not say.
    Abstains where the chosen sentences and their surroundings cover less than ``enough`` of the question.

    All evidence comes back with one quote each, the chosen sentences first.
    """

    postings: Postings
    hits: int = 5
    max_considered: int = 20
    max_sentences: int = 3
    nearby: float = 0.35
    kind_bonus: float = 0.2
    rank_weight: float = 0.3
    min_gain: float = 0.1
    link_bonus: float = 0.1
    rare_share: float = 0.01
    covered_enough: float = 0.9
    min_coverage: float = 0.2

    @classmethod
    def build(cls, snapshot: Snapshot) -> ExtractiveReader:
        """Return the reader with the word statistics of a base."""
        return cls(snapshot.postings("text"))

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the sentences with the hits that they are from, or abstain."""
        started = time.perf_counter()
        weights = self._weights(question.text)
        kind = expected_kind(question.text)
        hits = list(hits[: self.max_considered])
        best = self._best(question.text, kind, weights, hits)
        chosen = self._chosen(best, weights)
        covered = _covered(chosen, weights)
        share = round(covered, 3)
        if not chosen or covered < self.min_coverage:
            outcome = "too little of the question is in the evidence"
            seconds = time.perf_counter() - started
            trail.add(ExtractiveReadStep("extractive", kind, share, outcome, seconds=seconds))
            return Answer(NOT_FOUND, abstained=True)
        others = [one for one in best if one not in chosen][: self.hits - len(chosen)]
        shown = [*chosen, *sorted(others, key=lambda one: one.hit)]
        quotes = tuple(_quote(hits[one.hit], one, weights) for one in shown)
        evidence = tuple(hits[one.hit] for one in shown)
        seconds = time.perf_counter() - started
        trail.add(
            ExtractiveReadStep(
                "extractive", kind, share, "extracted", len(chosen), hits=evidence, seconds=seconds
            )
        )
        text = "\n".join(" ".join(quote.text.split()) for quote in quotes[: len(chosen)])
        return Answer(text, evidence, quotes)

    def _tells(self, shared: frozenset[str]) -> bool:
        """Return whether one of the names is rare enough for two sentences that share it to belong together."""
        import numpy as np

        for name in sorted(shared):
            hashes = np.array([hash_term(term) for term in index_terms(name)], dtype=np.uint64)
            if len(hashes) and self.postings.document_frequency(hashes).min() <= max(
                5, self.rare_share * self.postings.node_count
            ):
                return True
        return False

    def _weights(self, question: str) -> dict[str, float]:
        """Return the share of each term in the question's total idf."""
        import numpy as np

        asked = list(dict.fromkeys(query_terms(question)))
        frequency = self.postings.document_frequency(
            np.array([hash_term(term) for term in asked], dtype=np.uint64)
        )
        count = self.postings.node_count
        idf = [math.log1p((count - df + 0.5) / (df + 0.5)) for df in frequency.tolist()]
        total = sum(idf) or 1.0
        return {term: value / total for term, value in zip(asked, idf, strict=True)}

    def _best(
        self, question: str, kind: AnswerKind, weights: Mapping[str, float], hits: Sequence[Hit]
    ) -> list[ScoredSentence]:
        """Return the best sentence of each hit that has any of the question's words, best first, with its names."""
        found = []
        for index, hit in enumerate(hits):
            prior = self.rank_weight / math.sqrt(1 + index)
            scored = list(self._scored(question, kind, weights, hit, index, prior))
            if scored:
                best = max(scored, key=lambda one: (one.score, -one.span[0]))
                # Of the best alone: to look for names takes longer than to score.
                new = _new_names(hit.node.text[slice(*best.span)], question)
                found.append(replace(best, names=new))
        return sorted(found, key=lambda one: (-round(one.score, 9), one.hit))

    def _scored(
        self,
        question: str,
        kind: AnswerKind,
        weights: Mapping[str, float],
        hit: Hit,
        index: int,
        prior: float,
    ) -> Iterator[ScoredSentence]:
        node = hit.node
        around = set(index_terms(" ".join((node.text, node.name, *node.headings, node.document_name))))
        whole = [(0, len(node.text))] if node.kind == ROW else sentence_spans(node.text)
        for start, end in whole:
            text = node.text[start:end]
            own = set(index_terms(text))
            covers = {
                term: 1.0 if term in own else self.nearby for term in weights if term in own or term in around
            }
            if not covers:
                continue
            score = prior + sum(weights[term] * share for term, share in covers.items())
            score += self.kind_bonus * contains_answer(kind, text, question)
            yield ScoredSentence(index, (start, end), score, covers)

    def _chosen(self, best: Sequence[ScoredSentence], weights: Mapping[str, float]) -> list[ScoredSentence]:
        chosen = list(best[:1])
        while chosen and len(chosen) < self.max_sentences:
            before = _covered(chosen, weights)
            if before >= self.covered_enough:
                break
            known = frozenset[str]().union(*(one.names for one in chosen))
            gains = [
                (
                    _covered([*chosen, one], weights)
                    - before
                    + self.link_bonus * self._tells(one.names & known),
                    one.score,
                    -one.hit,
                    one,
                )
                for one in best
                if one not in chosen
            ]
            gained = max(gains, key=lambda entry: entry[:3], default=None)
            if gained is None or gained[0] < self.min_gain:
                break
            chosen.append(gained[3])
        return chosen


def _covered(chosen: Sequence[ScoredSentence], weights: Mapping[str, float]) -> float:
    """Return how much of the question several sentences cover together."""
    return sum(
        weight * max((one.coverage.get(term, 0.0) for one in chosen), default=0.0)
        for term, weight in weights.items()
    )


def _new_names(text: str, question: str) -> frozenset[str]:
    """Return the names in ``text`` that the question lacks: no numbers, no word that only begins a sentence."""
    asked = {name for name, _, _ in candidate_names(question)}
    return frozenset(
        name
        for name, start, end in candidate_names(text)
        if name not in asked
        and any(char.isalpha() for char in name)
        and not name[0].isdigit()
        and (start > 0 or " " in text[start:end])
    )


def _quote(hit: Hit, sentence: ScoredSentence, weights: Mapping[str, float]) -> Quote:
    start, end = sentence.span
    text = hit.node.text
    if end - start > _LONG:
        start, end = _window(text, start, end, weights)
    return Quote(hit.node.id, text[start:end], (start, end))


def _window(text: str, start: int, end: int, weights: Mapping[str, float]) -> tuple[int, int]:
    """Return the part of a long sentence, cut at spaces, that has most of the question's words."""
    edges = [start, *(at + 1 for at in range(start, end) if text[at].isspace()), end]
    windows: list[tuple[float, int, int]] = []
    # A cell full of text may have thousands of words; a hundred windows are enough to choose from.
    for first in edges[: -1 : 1 + len(edges) // _WINDOWS]:
        last = edges[bisect_right(edges, first + _LONG) - 1]
        last = last if last > first else min(first + _LONG, end)
        value = sum(weights.get(term, 0.0) for term in set(index_terms(text[first:last])))
        windows.append((round(value, 9), first, last))
    most = max(value for value, _, _ in windows)
    best = [(first, last) for value, first, last in windows if value == most]
    # The middle one: what follows the words and what precedes them may both be the answer.
    first, last = best[len(best) // 2]
    return first, first + len(text[first:last].rstrip())


@dataclass(frozen=True, slots=True)
class ContentsReader:
    """Gives back the pages, tables or sections that a question names, as they are; no language model.

    At most ``characters`` of them, whole passages only; the evidence is complete.
    """

    characters: int = 4_000

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the texts of the hits, in order."""
        started = time.perf_counter()
        texts: list[str] = []
        room = self.characters
        for hit in hits:
            if texts and len(hit.node.text) > room:
                texts.append(f"({len(hits) - len(texts)} more in the evidence)")
                break
            texts.append(hit.node.text)
            room -= len(hit.node.text)
        seconds = time.perf_counter() - started
        trail.add(ReadOutcomeStep("extractive", "what the question names", hits=tuple(hits), seconds=seconds))
        return Answer("\n\n".join(texts), tuple(hits), abstained=not hits)


# MERGED: A reader for questions about structure: what was asked for is the answer.
