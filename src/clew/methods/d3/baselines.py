"""The baselines of D3 (Nair et al., EMNLP 2023, Section 4): every paragraph of a document is considered.

MONOT5 and the cross-encoder score each paragraph; PARAGRAPH asks a model about each, CHUNK about as many as fit a
chunk. MAP-REDUCE is PARAGRAPH, then BASE, and MAP-REDUCE OPTIMIZED is CHUNK, then BASE. DPR is
:class:`clew.retrieve.dense.Dense`.

Deviation: the second stage of MAP-REDUCE is a single call in the paper, however many paragraphs there are; here it
has as many calls as the context needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clew.core.component import Recipe, Resources, component
from clew.core.errors import BudgetExceeded
from clew.core.protocols import Snapshot, Trail
from clew.core.trail import TrailRecorder
from clew.core.types import RETRIEVED_KINDS, Hit, Question, StoppedStep
from clew.methods.d3.paragraphs import (
    ParagraphSelector,
    PromptSelector,
    RerankerSelector,
    SelectorChain,
    YesNoSelector,
)

#: The checkpoints of the paper (Section 4), or the nearest that are published.
MONOT5 = "castorini/monot5-base-msmarco-10k"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-12-v2"
#: Tokens of the context of gpt-3.5-turbo when the paper was written, and of a chunk (Section 4).
PAPER_CONTEXT, CHUNK_SIZE = 4096, 3500


@dataclass(frozen=True, slots=True)
class ExhaustiveRetriever:
    """Passes all passages and table rows in the scope of a question to a selector.

    In the paper the scope is one document. Deviation: it may be larger, and the cost grows with it.
    """

    snapshot: Snapshot
    selector: ParagraphSelector

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return at most ``k`` of the passages that the selector chooses, best first. Raises ModelError."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same, and add the selector's steps to the trail. Nothing is chosen if the budget does not allow
        the first choice."""
        nodes = self.snapshot.nodes(np.flatnonzero(self.snapshot.mask(question.scope, RETRIEVED_KINDS)))
        # Documents by name and key, each in reading order.
        passages = sorted(nodes, key=lambda node: (node.document_name, node.document, node.position))
        try:
            chosen = self.selector.select(question.text, passages, trail)
        except BudgetExceeded as error:
            trail.add(StoppedStep(error.problem))
            return []
        return [Hit(node, score, (node.id,)) for node, score in chosen[:k]]


@component(
    "monot5",
    summary="every passage scored by MonoT5 (extra local)",
    paper="Nogueira et al., Findings of EMNLP 2020",
)
class MonoT5Baseline(ExhaustiveRetriever):
    """Every passage, scored by a MonoT5 model."""

    __slots__ = ()

    @classmethod
    def build(cls, resources: Resources, model: str = MONOT5) -> MonoT5Baseline:
        """Return the retriever with the model of a hub name or folder."""
        return cls(resources.snapshot, RerankerSelector(resources.tools.reranker(f"monot5:{model}")))


@component("cross-encoder", summary="every passage scored by a cross-encoder (extra local)")
class CrossEncoderBaseline(ExhaustiveRetriever):
    """Every passage, scored by a cross-encoder."""

    __slots__ = ()

    @classmethod
    def build(cls, resources: Resources, model: str = CROSS_ENCODER) -> CrossEncoderBaseline:
        """Return the retriever with the model of a hub name or folder."""
        return cls(resources.snapshot, RerankerSelector(resources.tools.reranker(f"cross-encoder:{model}")))


@component("paragraph", summary="a model is asked of every passage whether it is relevant")
@component("map-reduce", summary="'paragraph', then the model chooses among what that found")
class ParagraphBaseline(ExhaustiveRetriever):
    """PARAGRAPH and MAP-REDUCE: a model judges every passage alone."""

    __slots__ = ()

    @classmethod
    def build(cls, resources: Resources, recipe: Recipe, context: int = PAPER_CONTEXT) -> ParagraphBaseline:
        """Return the retriever for a model with a context of so many tokens. Raises UsageError without a model."""
        judge = YesNoSelector.build(resources, context, recipe.name)
        if recipe.name == "paragraph":
            return cls(resources.snapshot, judge)
        return cls(
            resources.snapshot, SelectorChain(judge, PromptSelector.build(resources, context, recipe.name))
        )


@component("chunk", summary="a model names the relevant passages of each chunk of a document")
@component("map-reduce-optimised", summary="'chunk', then the model chooses among what that found")
class ChunkBaseline(ExhaustiveRetriever):
    """CHUNK and MAP-REDUCE OPTIMIZED: a model is shown chunks of a document."""

    __slots__ = ()

    @classmethod
    def build(
        cls, resources: Resources, recipe: Recipe, size: int = CHUNK_SIZE, context: int = PAPER_CONTEXT
    ) -> ChunkBaseline:
        """Return the retriever for chunks and a context of so many tokens. Raises UsageError without a model."""
        chunks = PromptSelector.build(resources, context, recipe.name, size)
        if recipe.name == "chunk":
            return cls(resources.snapshot, chunks)
        return cls(
            resources.snapshot, SelectorChain(chunks, PromptSelector.build(resources, context, recipe.name))
        )
