"""ITER-RETGEN (Shao et al., Findings of EMNLP 2023): retrieval and generation in turns.

Each iteration retrieves with the question and all that the model wrote in the last one, and the model reasons anew
over what came back (Section 3). Deviations: exemplars of our own, without passages; an iteration that writes what an
earlier one wrote, or nothing, is the last, since it would find the same again; where a reader reads the passages of
the last iteration, so that the answer rests on quotes, it stands in the place of that iteration's generation, and
what the model itself answered before is in the trail. Without a reader the model's own answer is taken, as in the
paper.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from clew.core.component import PromptFile, Resources, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.recipe import Recipe
from clew.core.steps import ReasonStep
from clew.core.text import normalise
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question
from clew.methods.answering import model_answer, record_stop
from clew.methods.readers.contexts import titled_contexts
from clew.methods.replies import parse_final_answer


@component(
    "iterretgen(retriever=search, reader=auto)",
    summary="ITER-RETGEN: retrieval with the question and what the model wrote last, in turns; final=model "
    "takes the model's own answer, unchecked",
    paper="Shao et al., Findings of EMNLP 2023",
)
@dataclass(frozen=True, slots=True)
class IterRetGen:
    """``rounds`` iterations (T in the paper) of ``k`` passages each; the hits of the last one are read.

    ``template`` is the prompt ``cot``.
    """

    retriever: Retriever
    model: LanguageModel
    template: PromptTemplate
    reader: Reader | None
    k: int = 5
    rounds: int = 2
    recipe: str = "iterretgen"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: Recipe,
        retriever: Retriever,
        model: LanguageModel,
        template: Annotated[PromptTemplate, PromptFile("cot")],
        reader: Recipe,
        final: Literal["reader", "model"] = "reader",
        k: int = 5,
        rounds: int = 2,
    ) -> IterRetGen:
        """Return the method with a reader that reads in the end, or with the model's own answer."""
        chosen = None
        if final == "reader":
            chosen, recipe = resources.choose_reader(recipe)
        return cls(retriever, model, template, chosen, k, rounds, str(recipe))

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what is read from the passages of the last iteration."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        hits: Sequence[Hit] = ()
        written: list[str] = []
        said = ""
        try:
            for number in range(1, self.rounds + 1):
                query = " ".join((question.text, *written[-1:]))
                asked = Question(query, question.scope)
                hits = retrieve_with_trail(self.retriever, asked, self.k, record, query=query, round=number)
                if record.should_stop() or (self.reader is not None and number == self.rounds):
                    break
                text, answer = self._generated(question, hits, number, record)
                said = answer or said
                if not text or normalise(text) in map(normalise, written):
                    break
                written.append(text)
        except BudgetExceeded as error:
            record_stop(record, error)
        return model_answer(self.reader, question, said, hits, record, self.recipe)

    def _generated(
        self, question: Question, hits: Sequence[Hit], number: int, record: TrailRecorder
    ) -> tuple[str, str]:
        """Return all that the model writes about the passages, and its answer."""
        started = time.perf_counter()
        contexts = f"{titled_contexts(hits)}\n\n" if hits else ""
        made = self.model.complete([self.template.render(question=question.text, contexts=contexts)])[0]
        text, said = " ".join(clean_reply(made.text).split()), parse_final_answer(made.text)
        seconds = time.perf_counter() - started
        record.add(ReasonStep(self.template.name, number, text, said, usage=made.usage, seconds=seconds))
        return text, said
