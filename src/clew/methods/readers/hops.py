"""The reader of the chain paper: a few-shot prompt for a question of one hop."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import INTERNAL, PromptFile, component
from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import Template
from clew.core.protocols import Completion, LanguageModel, Trail
from clew.core.text import normalise
from clew.core.trail import PromptReadStep, ReadOutcomeStep
from clew.core.types import Answer, Hit, Question
from clew.methods.evidence import take_fitting
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.quotes import find_verbatim

_LABEL = re.compile(r"^\W*answer\s*:\s*", re.IGNORECASE)
_UNKNOWN = re.compile(r"^(?:unknown|not (?:stated|mentioned|given|known)|n/a|none)\b", re.IGNORECASE)


@component(
    "hops",
    summary="the chain paper's: a few-shot prompt for questions of one hop (15 exemplars)",
    paper="Su et al., NAACL 2024",
)
@dataclass(frozen=True, slots=True)
class HopReader:
    """Answers a question of one hop in a few words, or says that it is unknown (Su et al., NAACL 2024, Appendix D).

    ``template`` is ``chain-answer`` (15 exemplars). Beyond the paper, the answer is looked for in the passages: the
    first that has it verbatim is its evidence, with a quote. The evidence of any other answer is all passages,
    without a quote.
    """

    model: LanguageModel
    template: Annotated[Template, PromptFile("chain-answer")]
    characters: Annotated[int, INTERNAL] = 24_000

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the model's answer, or abstain. Raises ModelError."""
        return self.read_all([question], [hits], trail)[0]

    def read_all(
        self, questions: Sequence[Question], hits: Sequence[Sequence[Hit]], trail: Trail
    ) -> list[Answer]:
        """Return the answers to several questions, each from its own hits, asked in one call. Raises ModelError."""
        started = time.perf_counter()
        shown = [take_fitting(each, self.characters) for each in hits]
        prompts = [
            self.template.render(context=_context(each), question=question.text)
            for question, each in zip(questions, shown, strict=True)
            if each
        ]
        completions = iter(self.model.complete(prompts) if prompts else ())
        seconds = (time.perf_counter() - started) / max(len(prompts), 1)
        answers = []
        for each in shown:
            if each:
                answers.append(self._answer(next(completions), each, seconds, trail))
            else:
                trail.add(ReadOutcomeStep("hops", "nothing to read"))
                answers.append(Answer(NOT_FOUND, abstained=True, reader=self.model.name))
        return answers

    def _answer(self, completion: Completion, shown: Sequence[Hit], seconds: float, trail: Trail) -> Answer:
        lines = clean_reply(completion.text).splitlines()
        text = _LABEL.sub("", lines[0]).strip(" \t*_\"'`") if lines else ""
        abstained = not normalise(text) or bool(_UNKNOWN.match(text))
        quotes = () if abstained else find_verbatim(text.rstrip("."), shown)
        quoted = {quote.node for quote in quotes}
        evidence = tuple(hit for hit in shown if hit.node.id in quoted) or tuple(shown)
        trail.add(
            PromptReadStep(
                "hops",
                self.template.name,
                completion.model,
                contexts=len(shown),
                reply=text,
                quotes=len(quotes),
                hits=() if abstained else evidence,
                usage=completion.usage,
                seconds=seconds,
            )
        )
        if abstained:
            return Answer(NOT_FOUND, usage=completion.usage, abstained=True, reader=completion.model)
        return Answer(text, evidence, quotes, usage=completion.usage, reader=completion.model)


def _context(hits: Sequence[Hit]) -> str:
    """Return the passages, each under the title of its document and its headings."""
    contexts = []
    for hit in hits:
        name = hit.node.document_name
        title = " > ".join((name.rpartition(".")[0] or name, *hit.node.headings))
        contexts.append(f"{title}\n{hit.node.text}")
    return "\n\n".join(contexts)
