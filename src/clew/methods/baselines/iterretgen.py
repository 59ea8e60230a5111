"""ITER-RETGEN (Shao et al., Findings of EMNLP 2023): retrieval and generation in turns.

Each iteration retrieves with the question and the model's whole last reply, and the model reasons anew over the hits
(Section 3). Deviations: exemplars of our own, without passages. An iteration with an empty or repeated reply is the
last, since it would retrieve the same again. If there is a reader, it reads the passages of the last iteration in
place of the model, so that the answer rests on quotes; the trail has the model's own earlier answers. Without a
reader the model's own answer is taken, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.text import normalise
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep
from clew.methods.answering import model_answer, record_stop
from clew.methods.prompting import make_passages_optional, parse_final_answer, titled_contexts


@component(
    "iterretgen(retriever=search, reader=auto)",
    summary="ITER-RETGEN: retrieval with the question and what the model wrote last, in turns; final=model "
    "takes the model's own answer, unchecked",
    paper="Shao et al., Findings of EMNLP 2023",
)
@dataclass(frozen=True, slots=True)
class IterRetGen:
    """Runs ``rounds`` iterations (T in the paper) of ``k`` passages each; the hits of the last one are read.

    ``template`` is the prompt ``cot``.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("cot")]
    reader: Annotated[Reader | None, Auto("cited", "span", baseline="extractive", unless=("final", "model"))]
    final: Literal["reader", "model"] = "reader"
    k: int = 5
    rounds: int = 2
    recipe: str = "iterretgen"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer from the passages of the last iteration."""
        recorder = TrailRecorder.forwarding_to(trail)
        hits: Sequence[Hit] = ()
        thoughts: list[str] = []
        answer = ""
        try:
            for round in range(1, self.rounds + 1):
                query = " ".join((question.text, *thoughts[-1:]))
                hits = retrieve_with_trail(
                    self.retriever, Question(query, question.scope), self.k, recorder, query, round
                )
                if recorder.should_stop() or (self.reader is not None and round == self.rounds):
                    break
                thought, final = self._reason(question, hits, round, recorder)
                answer = final or answer
                if not thought or normalise(thought) in map(normalise, thoughts):
                    break
                thoughts.append(thought)
        except BudgetExceeded as error:
            record_stop(recorder, error)
        return model_answer(self.reader, question, answer, hits, recorder, self.recipe)

    def _reason(
        self, question: Question, hits: Sequence[Hit], round: int, recorder: TrailRecorder
    ) -> tuple[str, str]:
        """Return the model's whole reasoning over the passages, and its answer."""
        started = time.perf_counter()
        contexts = titled_contexts(hits)
        shown = "\n\n".join([*contexts, ""])
        prompt = self.template.render(question=question.text, contexts=shown)
        prompt = make_passages_optional(prompt, contexts)
        completion = self.model.complete([prompt])[0]
        thought = " ".join(clean_reply(completion.text).split())
        final = parse_final_answer(completion.text)
        seconds = time.perf_counter() - started
        results = {"prompt": self.template.name, "round": round, "thought": thought, "final": final}
        recorder.add(ShownStep("reason", results, usage=completion.usage, seconds=seconds))
        return thought, final
