"""Methods without reasoning: read what one retrieval finds, no evidence at all, or the gold evidence.

The last two are the floor and the ceiling in Table 1 of the KGP paper (``None`` and ``Golden``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import Auto, PromptFile, Recipe, component
from clew.core.errors import UsageError
from clew.core.prompts.replies import undress_value
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.trail import ModelAnswerStep, TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep
from clew.methods.answering import read_answer


@component("read(retriever=search)", summary="retrieve once and read: any retriever as a baseline")
@component(
    "dpr(retriever=dense, k=30)",
    summary="the KGP paper's baseline DPR: the 30 nearest passages, by an encoder trained for that",
    paper="Karpukhin et al., EMNLP 2020",
)
@component(
    "mdr(retriever=twohop(pairs=yes), k=30)",
    summary="the KGP paper's baseline MDR: the 30 best pairs of passages, by an encoder trained for that",
    paper="Xiong et al., ICLR 2021",
)
@dataclass(frozen=True, slots=True)
class RetrieveAndRead:
    """Retrieves ``k`` hits once and reads them."""

    retriever: Retriever
    reader: Annotated[Reader, Auto("cited", "span", baseline="extractive")]
    k: int = 10
    recipe: str = "read"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in the best hits."""
        recorder = TrailRecorder.forwarding_to(trail)
        hits = retrieve_with_trail(self.retriever, question, self.k, recorder)
        return read_answer(self.reader, question, hits, recorder, self.recipe)


@component("none", summary="a baseline: the model answers from memory, without evidence")
@dataclass(frozen=True, slots=True)
class Direct:
    """Asks the model for the answer without any evidence."""

    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("answer-none")]
    recipe: str = "none"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the model's reply. Raises ModelError."""
        recorder = TrailRecorder.forwarding_to(trail)
        started = time.perf_counter()
        completion = self.model.complete([self.template.render(question=question.text)])[0]
        seconds = time.perf_counter() - started
        recorder.add(ModelAnswerStep("none", model=completion.model, usage=completion.usage, seconds=seconds))
        text = undress_value(completion.text)
        return Answer(
            text,
            trail=tuple(recorder.steps),
            usage=completion.usage,
            abstained=not text,
            reader="none",
            recipe=self.recipe,
        )


@component("golden", summary="a ceiling: the gold evidence is read (clew eval run only)")
@dataclass(frozen=True, slots=True)
class Golden:
    """Reads the gold evidence: the answer that a perfect retrieval would give."""

    hits: Sequence[Hit]
    reader: Reader
    recipe: str = "golden"

    @classmethod
    def build(cls, reader: Annotated[Recipe, Auto("cited", "span", baseline="extractive")]) -> Golden:
        """Raise UsageError: only an evaluation knows the gold evidence."""
        raise UsageError("'golden' needs gold evidence: it works only in an evaluation", "clew eval run")

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in the gold evidence."""
        recorder = TrailRecorder.forwarding_to(trail)
        recorder.add(ShownStep("golden", {"hits": len(self.hits)}, hits=tuple(self.hits)))
        return read_answer(self.reader, question, self.hits, recorder, self.recipe)
