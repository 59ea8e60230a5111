"""Chain of thought (Wei et al., NeurIPS 2022) with self-consistency (Wang et al., ICLR 2023).

The model reasons before it answers, as the exemplars do. Several samples are drawn at a temperature, and the answer
of most of them is taken (Wang et al., Section 2; their vote without weights). With a retriever, the passages that it
finds for the question stand before the question.

Deviations: eight exemplars of our own (three for claims, as Su et al., 2024, Appendix K). The answer is the model's
own: its evidence is everything that the model was shown, and no quote is checked. The recipe ``read`` reads the same
passages with checked quotes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from clew.core.component import AtLeast, component
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.protocols import LanguageModel, PromptTemplate, Retriever, Trail
from clew.core.trail import ModelAnswerStep, TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, Usage
from clew.methods.answering import model_answer, record_stop
from clew.methods.prompting import (
    AutoCount,
    Task,
    load_task_prompt,
    majority_vote,
    make_passages_optional,
    parse_final_answer,
    parse_label,
    titled_contexts,
)


@component(
    "cot(exemplars=auto, retriever=none)",
    summary="chain of thought; with 'samples' the answer that most reach; with a retriever over its passages; "
    "task=claim for claims",
    paper="Wei et al., NeurIPS 2022; Wang et al., ICLR 2023",
)
@dataclass(frozen=True, slots=True)
class ChainOfThought:
    """Reasons ``samples`` times, at ``temperature`` if more than once, and takes the majority's answer.

    ``template`` is the prompt ``cot``, and ``parse_reply`` takes the answer from a reply; for claims they are
    ``cot-claim`` and :func:`~clew.methods.prompting.parse_label`. With a ``retriever``, ``k`` passages are shown.
    """

    model: LanguageModel
    template: PromptTemplate
    retriever: Retriever | None = None
    k: int = 5
    samples: int = 1
    temperature: float = 0.7
    parse_reply: Callable[[str], str] = parse_final_answer
    recipe: str = "cot"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        recipe: str,
        model: LanguageModel,
        retriever: Retriever | None,
        exemplars: str,
        task: Task = "question",
        shots: Annotated[AutoCount, AtLeast(0)] = "auto",
        k: int = 5,
        samples: int = 1,
        temperature: float = 0.7,
    ) -> ChainOfThought:
        """Return the method for questions or claims. Raises UsageError for samples that would be all alike."""
        if temperature <= 0 and samples > 1:
            raise UsageError(
                "'cot' draws several samples at temperature 0, all alike", "Name one: temperature=0.7"
            )
        template = load_task_prompt("cot", task, shots, exemplars)
        parse_reply = parse_label if task == "claim" else parse_final_answer
        return cls(model, template, retriever, k, samples, temperature, parse_reply, recipe)

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer of most reasonings. Raises ModelError."""
        recorder = TrailRecorder.forwarding_to(trail)
        hits: Sequence[Hit] = ()
        answer = ""
        try:
            if self.retriever is not None:
                hits = retrieve_with_trail(self.retriever, question, self.k, recorder, query=question.text)
            answer = self._reason(question, hits, recorder)
        except BudgetExceeded as error:
            record_stop(recorder, error)
        return model_answer(None, question, answer, hits, recorder, self.recipe)

    def _reason(self, question: Question, hits: Sequence[Hit], recorder: TrailRecorder) -> str:
        """Return the answer of most samples."""
        started = time.perf_counter()
        # The model's reasonings; a single one is drawn at temperature 0.
        contexts = titled_contexts(hits)
        prompt = self.template.render(question=question.text, contexts="\n\n".join([*contexts, ""]))
        prompt = make_passages_optional(prompt, contexts)
        if self.samples > 1:
            prompt = replace(prompt, temperature=self.temperature)
        completions = self.model.complete([replace(prompt, sample=number) for number in range(self.samples)])
        answers = [self.parse_reply(completion.text) for completion in completions]
        answer, votes = majority_vote(answers)
        several = len(completions) > 1
        recorder.add(
            ModelAnswerStep(
                "model",
                prompt=self.template.name,
                model=completions[0].model,
                thoughts=tuple(completion.text.strip() for completion in completions),
                final=answer,
                temperature=self.temperature if several else None,
                votes=votes if several else None,
                unreadable=answers.count("") or None,
                hits=tuple(hits),
                usage=sum((completion.usage for completion in completions), Usage()),
                seconds=time.perf_counter() - started,
            )
        )
        return answer
