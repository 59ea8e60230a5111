"""Standard few-shot prompting (Brown et al., NeurIPS 2020), a baseline of Su et al. (NAACL 2024, Appendix F).

The model sees exemplars of questions with their answers, and no evidence: 25 exemplars, four for Bamboogle.
Deviation: the exemplars are our own and the same for every data set (``clew.core.prompts.templates``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import AtLeast, component
from clew.core.errors import BudgetExceeded
from clew.core.protocols import LanguageModel, PromptTemplate, Trail
from clew.core.trail import ModelAnswerStep, TrailRecorder
from clew.core.types import Answer, Question
from clew.methods.answering import model_answer, record_stop
from clew.methods.prompting import AutoCount, Task, load_task_prompt, parse_label, parse_short_answer


@component(
    "fewshot(exemplars=auto)",
    summary="a baseline: the model answers from memory after exemplars (25, or as many as 'shots' says); "
    "task=claim for claims",
    paper="Brown et al., NeurIPS 2020",
)
@dataclass(frozen=True, slots=True)
class FewShot:
    """Asks for the answer after exemplars of answers.

    ``template`` is the prompt ``fewshot``, and ``parse_reply`` takes the answer from a reply. For claims they are
    ``fewshot-claim`` and :func:`~clew.methods.prompting.parse_label`.
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
        """Return the model's answer from memory. Raises ModelError."""
        recorder = TrailRecorder.forwarding_to(trail)
        answer = ""
        try:
            started = time.perf_counter()
            completion = self.model.complete([self.template.render(question=question.text)])[0]
            answer = self.parse_reply(completion.text)
            recorder.add(
                ModelAnswerStep(
                    "model",
                    prompt=self.template.name,
                    model=completion.model,
                    final=answer or None,
                    unreadable=None if answer else completion.text,
                    usage=completion.usage,
                    seconds=time.perf_counter() - started,
                )
            )
        except BudgetExceeded as error:
            record_stop(recorder, error)
        return model_answer(None, question, answer, (), recorder, self.recipe)
