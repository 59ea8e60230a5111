"""Extractive summaries: the sentences that best cover a section, within so many words. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clew.core.text import sentence_spans
from clew.core.types import Usage
from clew.methods.d3.context_window import truncate
from clew.methods.d3.segments import text_vectors

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Vectors
    from clew.core.protocols import Encoder, LanguageModel, Prompt, PromptTemplate

#: Paragraphs of a section beyond this many are represented by evenly spaced ones.
MAX_TARGETS = 200
#: Paragraphs whose sentences are considered, and sentences of each.
SOURCE_PARAGRAPHS, PARAGRAPH_SENTENCES = 6, 6
#: How much a long sentence is held back: gain is divided by its words to this power.
BREVITY = 0.5


@dataclass(frozen=True, slots=True)
class SectionText:
    """What a summary is made of: the section's name, its paragraphs in reading order, and their vectors where the
    base has them, (n, d). A table is one paragraph: its caption and what its rows are called."""

    name: str
    texts: tuple[str, ...]
    vectors: Vectors | None = None

    @property
    def text(self) -> str:
        """Everything, one paragraph a line."""
        return "\n".join(self.texts)


class Summariser(Protocol):
    """Makes summaries of sections."""

    @property
    def name(self) -> str:
        """Canonical name: summaries are kept under it, so it says everything that decides their words."""
        ...

    def summarise(self, texts: Sequence[SectionText]) -> list[str]:
        """Return a summary of each section. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class ExtractiveSummariser:
    """The sentences that best cover a section, in reading order, verbatim, of at most ``words`` words.

    How well sentences cover a section is the sum over its paragraphs, each by its words, of the greatest
    similarity with one of the sentences (facility location: Lin and Bilmes, ACL 2011), so a second sentence on
    one matter adds little (as MMR holds it back: Carbonell and Goldstein, SIGIR 1998). Sentences are taken one
    by one, each the one that adds most by its length. To bound the cost, paragraphs are first chosen the
    same way by the vectors that they have already, and only *their* sentences are encoded.

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
        drafts = [self._draft(one) for one in texts]
        encoded = self._encoded([piece for one in drafts if one.known is not None for piece in one.pieces])
        return [one.text if not one.pieces else self._chosen(one, encoded) for one in drafts]

    def _draft(self, one: SectionText) -> _Draft:
        text = " ".join(one.text.split())
        lengths = np.array([len(paragraph.split()) for paragraph in one.texts], dtype=np.float64)
        if lengths.sum() <= self.words:
            return _Draft(text)
        some = np.unique(np.linspace(0, len(lengths) - 1, min(len(lengths), MAX_TARGETS)).astype(np.int64))
        targets = [one.texts[n] for n in some.tolist()]
        known = one.vectors[some] if one.vectors is not None and self.encoder is not None else None
        vectors = text_vectors(targets) if known is None else known
        best = select_covering(vectors @ vectors.T, lengths[some], np.ones(len(some)), SOURCE_PARAGRAPHS)
        pieces = [
            " ".join(targets[n][start:end].split())
            for n in sorted(best)
            for start, end in sentence_spans(targets[n])[:PARAGRAPH_SENTENCES]
        ]
        return _Draft(text, tuple(dict.fromkeys(pieces)), tuple(targets), lengths[some], known)

    def _encoded(self, pieces: Sequence[str]) -> dict[str, Vectors]:
        wanted = list(dict.fromkeys(pieces))
        if self.encoder is None or not wanted:
            return {}
        return dict(zip(wanted, self.encoder.encode(wanted), strict=True))

    def _chosen(self, one: _Draft, encoded: dict[str, Vectors]) -> str:
        if one.known is not None:
            similarity = np.array([encoded[piece] for piece in one.pieces]) @ one.known.T
        else:
            both = text_vectors([*one.pieces, *one.targets])
            similarity = both[: len(one.pieces)] @ both[len(one.pieces) :].T
        costs = np.array([len(piece.split()) for piece in one.pieces], dtype=np.float64)
        best = select_covering(similarity, one.weights, costs, self.words)
        if best:
            return " ".join(one.pieces[n] for n in sorted(best))
        # No sentence is short enough, or none has a word: the start of the shortest.
        return " ".join(min(one.pieces, key=lambda piece: len(piece.split())).split()[: self.words])


@dataclass(frozen=True, slots=True)
class _Draft:
    """A section on its way to a summary: its text, which is the summary where there are no ``pieces``; the
    sentences that may be taken; the paragraphs to be covered, their words, and vectors where they are known."""

    text: str
    pieces: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    known: Vectors | None = None


def select_covering(similarity: Floats | Vectors, weights: Floats, costs: Floats, budget: float) -> list[int]:
    """Return the rows of ``similarity``, (candidates, targets), that cover the targets best within ``budget``.

    Greedy: each time the candidate that adds most to the weighted sum of greatest similarities, divided by its
    cost to the power :data:`BREVITY`, of those that still fit. In the order of choice; ties by index.
    """
    positive = np.maximum(np.asarray(similarity, dtype=np.float64), 0.0)
    covered = np.zeros(positive.shape[1])
    chosen: list[int] = []
    open_, left = np.ones(len(positive), dtype=np.bool_), float(budget)
    while True:
        open_ &= costs <= left
        if not open_.any():
            return chosen
        gains = (np.maximum(positive, covered) - covered) @ weights / np.maximum(costs, 1.0) ** BREVITY
        gains = np.where(open_, np.round(gains, 6), -1.0)
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return chosen
        chosen.append(best)
        open_[best] = False
        left -= costs[best]
        covered = np.maximum(covered, positive[best])


@dataclass(frozen=True, slots=True)
class ModelSummariser:
    """A model writes the summary, of at most about ``words`` words.

    ``template`` is ``drill-summarise``, ours; for a sequence-to-sequence model fine-tuned on summaries it is
    ``drill-text``, the section alone (D3, Section 3.3.1: bart-large tuned on CNN/DailyMail). Of a section longer
    than ``room`` tokens the model is given the start, as that model cuts it; a base's long sections come in parts,
    so that concerns long tables. ``count`` counts tokens. ``spent`` is told what each batch cost.
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
        """Return what the model writes of each section. Raises ModelError."""
        if not texts:
            return []
        made = self.model.complete(self.prompts(texts))
        self.on_usage(sum((one.usage for one in made), Usage()))
        return [one.text.strip() for one in made]

    def prompts(self, texts: Sequence[SectionText]) -> list[Prompt]:
        """Return what the model is asked, one prompt for each section: for foreseeing what it costs."""
        return [self._prompt(one) for one in texts]

    def _prompt(self, one: SectionText) -> Prompt:
        values = {
            "text": truncate(one.text, self.max_tokens, self.count_tokens),
            "name": one.name,
            "words": str(self.words),
        }
        return self.template.render(**{key: values[key] for key in self.template.variables})


# MERGED: Summaries that a language model writes: of our prompt, or of a model that was made for it (BART).
