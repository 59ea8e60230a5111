"""Standard few-shot prompting (Brown et al., NeurIPS 2020), as Su et al. (NAACL 2024, Appendix F) compare with it.

The model sees exemplars of questions with their answers, and no evidence: 25 of them, four for Bamboogle. Deviation:
the exemplars are our own, the same for every data set (``clew.core.prompts.exemplars``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import AtLeast, component
from clew.core.errors import BudgetExceeded
from clew.core.protocols import LanguageModel, PromptTemplate, Trail
from clew.core.steps import ModelAnswerStep
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question
from clew.methods.answering import model_answer, record_stop
from clew.methods.replies import parse_label, parse_short_answer
from clew.methods.task_prompts import AutoCount, Task, load_task_prompt


@component(
    "fewshot(exemplars=auto)",
    summary="a baseline: the model answers from memory after exemplars (25, or as many as 'shots' says); "
    "task=claim for claims",
    paper="Brown et al., NeurIPS 2020",
)
@dataclass(frozen=True, slots=True)
class FewShot:
    """Asks for the answer after exemplars of answers. ``template`` is the prompt ``fewshot``.

    For claims it is ``fewshot-claim``, and ``understood`` what reads a label out of a reply.
    """

    model: LanguageModel
    template: PromptTemplate
    parse_reply: Callable[[str], str] = parse_short_answer
    recipe: str = "fewshot"

    @classmethod
    def build(
        cls,
        recipe: str,
        model: LanguageModel,
        exemplars: str,
        task: Task = "question",
        shots: Annotated[AutoCount, AtLeast(0)] = "auto",
    ) -> FewShot:
        """Return the method for questions or claims."""
        template = load_task_prompt("fewshot", task, shots, exemplars)
        return cls(model, template, parse_label if task == "claim" else parse_short_answer, recipe)

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what the model answers from memory. Raises ModelError."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        said = ""
        try:
            started = time.perf_counter()
            made = self.model.complete([self.template.render(question=question.text)])[0]
            said = self.parse_reply(made.text)
            record.add(
                ModelAnswerStep(
                    "model",
                    prompt=self.template.name,
                    model=made.model,
                    final=said or None,
                    unreadable=None if said else made.text,
                    usage=made.usage,
                    seconds=time.perf_counter() - started,
                )
            )
        except BudgetExceeded as error:
            record_stop(record, error)
        return model_answer(None, question, said, (), record, self.recipe)
