"""Summarisers of sections: one takes the sentences that best cover a section, the other asks a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from clew.core.arrays import Floats, Vectors
from clew.core.prompts.replies import read_text
from clew.core.protocols import Encoder, LanguageModel, Prompt, PromptTemplate
from clew.core.text import sentence_spans
from clew.core.types import Usage
from clew.methods.d3.context_window import truncate
from clew.methods.d3.segments import text_vectors

#: Of a section with more paragraphs than this, evenly spaced ones are to be covered.
MAX_TARGETS = 200
#: The number of paragraphs whose sentences are candidates, and the number of sentences of each.
SOURCE_PARAGRAPHS, PARAGRAPH_SENTENCES = 6, 6
#: The gain of a sentence is divided by its number of words to this power.
BREVITY = 0.5


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section to be summarised: its name, its paragraphs in reading order, and their vectors if all have one, (n,
    d).

    A table is one paragraph: its caption and the names of its rows.
    """

    name: str
    texts: tuple[str, ...]
    vectors: Vectors | None = None

    @property
    def text(self) -> str:
        """The whole text, one paragraph a line."""
        return "\n".join(self.texts)


class Summariser(Protocol):
    """Makes summaries of sections."""

    @property
    def name(self) -> str:
        """Canonical name, with everything that decides the words of a summary: summaries are stored under it."""

    def summarise(self, texts: Sequence[SectionText]) -> list[str]:
        """Return a summary of each section. Raises ModelError."""


@dataclass(frozen=True, slots=True)
class ExtractiveSummariser:
    """Takes the sentences that best cover a section, verbatim and in reading order, with at most ``words`` words.

    Sentences cover a section by the sum over its paragraphs, weighted by their words, of the greatest similarity with
    one of the sentences (facility location: Lin and Bilmes, ACL 2011). A second sentence on one matter adds little,
    as with MMR (Carbonell and Goldstein, SIGIR 1998). Sentences are chosen one by one, by gain and length. To bound
    the cost, paragraphs are first chosen in the same way by the vectors that they have already, and only *their*
    sentences are encoded.

    Without an encoder, similarity is that of words (:func:`clew.methods.d3.segments.text_vectors`).
    """

    words: int = 64
    encoder: Encoder | None = None

    @property
    def name(self) -> str:
        """``extractive(words=64, encoder=...)``."""
        by = f", encoder={self.encoder.name}" if self.encoder is not None else ""
        return f"extractive(words={self.words}{by})"

    def summarise(self, texts: Sequence[SectionText]) -> list[str]:
        """Return the sentences of each section that cover it best."""
        drafts = [self._draft(section) for section in texts]
        # All sentences are encoded together.
        vectors = self._encode(
            [sentence for draft in drafts if draft.vectors is not None for sentence in draft.candidates]
        )
        return [draft.text if not draft.candidates else self._choose(draft, vectors) for draft in drafts]

    def _draft(self, section: SectionText) -> _Draft:
        text = " ".join(section.text.split())
        lengths = np.array([len(paragraph.split()) for paragraph in section.texts], dtype=np.float64)
        if lengths.sum() <= self.words:
            return _Draft(text)
        spaced = np.linspace(0, len(lengths) - 1, min(len(lengths), MAX_TARGETS))
        indexes = np.unique(spaced.astype(np.int64))
        targets = [section.texts[n] for n in indexes.tolist()]
        known = section.vectors[indexes] if section.vectors is not None and self.encoder is not None else None
        vectors = text_vectors(targets) if known is None else known
        best = select_covering(
            vectors @ vectors.T, lengths[indexes], np.ones(len(indexes)), SOURCE_PARAGRAPHS
        )
        candidates = [
            " ".join(targets[n][start:end].split())
            for n in sorted(best)
            for start, end in sentence_spans(targets[n])[:PARAGRAPH_SENTENCES]
        ]
        return _Draft(text, tuple(dict.fromkeys(candidates)), tuple(targets), lengths[indexes], known)

    def _encode(self, sentences: Sequence[str]) -> dict[str, Vectors]:
        distinct = list(dict.fromkeys(sentences))
        if self.encoder is None or not distinct:
            return {}
        return dict(zip(distinct, self.encoder.encode(distinct), strict=True))

    def _choose(self, draft: _Draft, vectors: dict[str, Vectors]) -> str:
        """Return the best sentences of a draft; ``vectors`` are those of encoded sentences."""
        candidates = draft.candidates
        if draft.vectors is not None:
            similarity = np.array([vectors[sentence] for sentence in candidates]) @ draft.vectors.T
        else:
            by_words = text_vectors([*candidates, *draft.targets])
            similarity = by_words[: len(candidates)] @ by_words[len(candidates) :].T
        costs = np.array([len(sentence.split()) for sentence in candidates], dtype=np.float64)
        best = select_covering(similarity, draft.weights, costs, self.words)
        if best:
            return " ".join(candidates[n] for n in sorted(best))
        # No sentence is short enough, or none has a word: the beginning of the shortest.
        shortest = min(candidates, key=lambda sentence: len(sentence.split()))
        return " ".join(shortest.split()[: self.words])


@dataclass(frozen=True, slots=True)
class _Draft:
    """A section before its summary is chosen.

    Without ``candidates`` (sentences), ``text`` is the summary. ``targets`` are the paragraphs to be covered,
    ``weights`` their numbers of words, ``vectors`` their vectors if all are known.
    """

    text: str
    candidates: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    vectors: Vectors | None = None


def select_covering(similarity: Floats | Vectors, weights: Floats, costs: Floats, budget: float) -> list[int]:
    """Return the rows of ``similarity``, (candidates, targets), that cover the targets best within ``budget``.

    Greedy: the next row is the one that fits and adds most to the weighted sum of greatest similarities, divided by
    its cost to the power :data:`BREVITY`. Rows are in the order of choice; ties go to the lower index.
    """
    positive = np.maximum(np.asarray(similarity, dtype=np.float64), 0.0)
    covered = np.zeros(positive.shape[1])
    chosen: list[int] = []
    is_open, left = np.ones(len(positive), dtype=np.bool_), float(budget)
    while True:
        is_open &= costs <= left
        if not is_open.any():
            return chosen
        gains = (np.maximum(positive, covered) - covered) @ weights / np.maximum(costs, 1.0) ** BREVITY
        gains = np.where(is_open, np.round(gains, 6), -1.0)
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return chosen
        chosen.append(best)
        is_open[best] = False
        left -= costs[best]
        covered = np.maximum(covered, positive[best])


@dataclass(frozen=True, slots=True)
class ModelSummariser:
    """Lets a model write summaries of about ``words`` words at most.

    ``template`` is ``drill-summarise``, ours; for a sequence-to-sequence model fine-tuned on summaries it is
    ``drill-text``, the section alone (D3, Section 3.3.1: bart-large tuned on CNN/DailyMail). A section longer than
    ``max_tokens`` is cut at its end, as that model would cut it; only long tables are, since long sections come in
    parts. ``on_usage`` is called with the cost of each batch.
    """

    model: LanguageModel
    template: PromptTemplate
    words: int
    max_tokens: int
    count_tokens: Callable[[str], int]
    on_usage: Callable[[Usage], None] = lambda usage: None

    @property
    def name(self) -> str:
        """``written(words=64, llm=openai:gpt-4o-mini, prompt=drill-summarise.v1)``."""
        return f"written(words={self.words}, llm={self.model.name}, prompt={self.template.name})"

    def summarise(self, texts: Sequence[SectionText]) -> list[str]:
        """Return the model's summary of each section. Raises ModelError."""
        if not texts:
            return []
        completions = self.model.complete(self.prompts(texts))
        self.on_usage(sum((completion.usage for completion in completions), Usage()))
        return [read_text(completion.text) for completion in completions]

    def prompts(self, texts: Sequence[SectionText]) -> list[Prompt]:
        """Return one prompt for each section; their cost can be estimated before they are sent."""
        return [self._prompt(text) for text in texts]

    def _prompt(self, section: SectionText) -> Prompt:
        values = {
            "text": truncate(section.text, self.max_tokens, self.count_tokens),
            "name": section.name,
            "words": str(self.words),
        }
        return self.template.render(**{key: values[key] for key in self.template.variables})
