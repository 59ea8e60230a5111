"""IRCoT (Trivedi et al., ACL 2023) as the KGP paper runs it: retrieval between the sentences of a thought.

Deviations from the published code, as in the KGP paper (Supplementary 8.2): the retriever searches the base;
the five passages nearest to each new sentence are added with their titles until the budget is spent; the
answer is read with the same prompt as everybody's. The demonstrations are two of our own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.steps import ReasonStep
from clew.core.text import sentence_spans
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question
from clew.methods.answering import read_answer, record_stop
from clew.methods.readers.contexts import titled_contexts

#: A thought that says this is the last one.
_DONE = re.compile(r"\b(?:so )?the answer is\b", re.IGNORECASE)


@component(
    "ircot(retriever=bm25)",
    summary="IRCoT: retrieval for each sentence of the model's reasoning",
    paper="Trivedi et al., ACL 2023",
)
@dataclass(frozen=True, slots=True)
class IRCoT:
    """Reasons a sentence at a time; ``each`` passages are added for each, up to ``budget`` of them.

    ``rounds`` bounds the sentences; a sentence that was there before, or none, ends the reasoning as well.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("ircot-reason")]
    reader: Annotated[Reader, Auto("paper", "extractive")]
    each: int = 5
    rounds: int = 8
    budget: int = 30
    recipe: str = "ircot"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in all passages that the reasoning brought up."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        hits: dict[str, Hit] = {}
        thoughts: list[str] = []
        query = question.text
        while len(thoughts) <= self.rounds:
            self._retrieve(question, query, hits, record)
            if len(hits) >= self.budget or len(thoughts) == self.rounds or record.should_stop():
                break
            try:
                thought = self._reason(question, thoughts, list(hits.values()), record)
            except BudgetExceeded as error:
                record_stop(record, error)
                break
            if not thought or thought in thoughts or _DONE.search(thought):
                break
            thoughts.append(thought)
            query = thought
        return read_answer(self.reader, question, list(hits.values()), record, self.recipe)

    def _retrieve(self, question: Question, query: str, hits: dict[str, Hit], record: TrailRecorder) -> None:
        """Add the passages nearest to ``query`` that are new, as far as the budget goes."""
        asked = Question(query, question.scope)
        found = retrieve_with_trail(self.retriever, asked, self.each, record, query=query)
        new = [hit for hit in found if hit.node.id not in hits][: self.budget - len(hits)]
        hits.update((hit.node.id, hit) for hit in new)

    def _reason(
        self, question: Question, thoughts: Sequence[str], hits: Sequence[Hit], record: TrailRecorder
    ) -> str:
        """Return the next sentence of the reasoning."""
        started = time.perf_counter()
        prompt = self.template.render(
            question=question.text, contexts=titled_contexts(hits), thoughts=" ".join(thoughts)
        )
        made = self.model.complete([prompt])[0]
        text = made.text.strip()
        spans = sentence_spans(text)
        thought = text[slice(*spans[0])] if spans else ""
        seconds = time.perf_counter() - started
        record.add(ReasonStep(thought=thought, usage=made.usage, seconds=seconds))
        return thought
