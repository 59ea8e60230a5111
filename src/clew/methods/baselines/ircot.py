"""IRCoT (Trivedi et al., ACL 2023) as the KGP paper runs it: retrieval between the sentences of a thought.

Deviations from the published code, as in the KGP paper (Supplementary 8.2): the retriever searches the knowledge
base; the five passages nearest to each new sentence are added with their titles until the budget is spent; the answer
is read with the same prompt as that of the other methods. The two demonstrations are our own. With ``final=model``
the model answers by a new chain of thought over all passages, as the reader of Trivedi et al. does (Section 3.2).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import read_text
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.text import sentence_spans
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep
from clew.methods.answering import model_answer, predict_answer, record_stop
from clew.methods.prompting import make_passages_optional, titled_contexts

#: A thought with these words is the last one.
_DONE = re.compile(r"\b(?:so )?the answer is\b", re.IGNORECASE)


@component(
    "ircot(retriever=bm25, reader=auto)",
    summary="IRCoT: retrieval for each sentence of the model's reasoning; final=model as for iterretgen",
    paper="Trivedi et al., ACL 2023",
)
@dataclass(frozen=True, slots=True)
class IRCoT:
    """Reasons a sentence at a time; ``each`` passages are added for each sentence, up to ``budget`` of them.

    ``rounds`` bounds the number of sentences. An empty or repeated sentence ends the reasoning as well. ``template``
    is the prompt ``ircot-reason``; ``predict`` is the prompt ``cot``, used without a reader.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("ircot-reason")]
    predict: Annotated[PromptTemplate, PromptFile("cot")]
    reader: Annotated[Reader | None, Auto("paper", "span", baseline="extractive", unless=("final", "model"))]
    final: Literal["reader", "model"] = "reader"
    each: int = 5
    rounds: int = 8
    budget: int = 30
    recipe: str = "ircot"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in all passages that the reasoning brought up."""
        recorder = TrailRecorder.forwarding_to(trail)
        hits: dict[str, Hit] = {}
        thoughts: list[str] = []
        query = question.text
        while len(thoughts) <= self.rounds:
            # Add the passages nearest to ``query`` that are new, within the budget.
            nearest = retrieve_with_trail(
                self.retriever, Question(query, question.scope), self.each, recorder, query
            )
            new = [hit for hit in nearest if hit.node.id not in hits][: self.budget - len(hits)]
            hits.update((hit.node.id, hit) for hit in new)
            if len(hits) >= self.budget or len(thoughts) == self.rounds or recorder.should_stop():
                break
            try:
                thought = self._reason(question, thoughts, list(hits.values()), recorder)
            except BudgetExceeded as error:
                record_stop(recorder, error)
                break
            if not thought or thought in thoughts or _DONE.search(thought):
                break
            thoughts.append(thought)
            query = thought
        read, answer = list(hits.values()), ""
        if self.reader is None and not recorder.should_stop():
            try:
                answer = predict_answer(self.model, self.predict, question, read, recorder)
            except BudgetExceeded as error:
                record_stop(recorder, error)
        return model_answer(self.reader, question, answer, read, recorder, self.recipe)

    def _reason(
        self, question: Question, thoughts: Sequence[str], hits: Sequence[Hit], recorder: TrailRecorder
    ) -> str:
        """Return the next sentence of the reasoning."""
        started = time.perf_counter()
        contexts = titled_contexts(hits)
        prompt = self.template.render(
            question=question.text, contexts="\n\n".join(contexts), thoughts=" ".join(thoughts)
        )
        prompt = make_passages_optional(prompt, contexts)
        completion = self.model.complete([prompt])[0]
        text = read_text(completion.text)
        spans = sentence_spans(text)
        thought = text[slice(*spans[0])] if spans else ""
        seconds = time.perf_counter() - started
        recorder.add(ShownStep("reason", {"thought": thought}, usage=completion.usage, seconds=seconds))
        return thought
