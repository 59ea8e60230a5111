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
from clew.core.steps import PromptReadStep, ReadOutcomeStep
from clew.core.text import normalise
from clew.core.types import Answer, Hit, Question, Quote
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.contexts import take_fitting
from clew.methods.readers.quotes import SourceText

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

    ``template`` is ``chain-answer`` (15 exemplars). Beyond the paper: the answer is looked for in the passages, and
    the first that holds it word for word is its evidence, with a quote; an answer that none holds rests on all of
    them, without one.
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
        shown = [take_fitting(some, self.characters) for some in hits]
        prompts = [
            self.template.render(context=_context(some), question=one.text)
            for one, some in zip(questions, shown, strict=True)
            if some
        ]
        made = iter(self.model.complete(prompts) if prompts else ())
        seconds = (time.perf_counter() - started) / max(len(prompts), 1)
        return [
            self._answer(next(made), some, seconds, trail) if some else self._nothing(trail) for some in shown
        ]

    def _nothing(self, trail: Trail) -> Answer:
        trail.add(ReadOutcomeStep("hops", "nothing to read"))
        return Answer(NOT_FOUND, abstained=True, reader=self.model.name)

    def _answer(self, made: Completion, shown: Sequence[Hit], seconds: float, trail: Trail) -> Answer:
        lines = clean_reply(made.text).splitlines()
        text = _LABEL.sub("", lines[0]).strip(" \t*_\"'`") if lines else ""
        abstained = not normalise(text) or bool(_UNKNOWN.match(text))
        quotes = () if abstained else _quotes(text, shown)
        held = {quote.node for quote in quotes}
        evidence = tuple(hit for hit in shown if hit.node.id in held) or tuple(shown)
        trail.add(
            PromptReadStep(
                "hops",
                self.template.name,
                made.model,
                contexts=len(shown),
                reply=text,
                quotes=len(quotes),
                hits=() if abstained else evidence,
                usage=made.usage,
                seconds=seconds,
            )
        )
        if abstained:
            return Answer(NOT_FOUND, usage=made.usage, abstained=True, reader=made.model)
        return Answer(text, evidence, quotes, usage=made.usage, reader=made.model)


def _quotes(text: str, hits: Sequence[Hit]) -> tuple[Quote, ...]:
    for hit in hits:
        span = SourceText.from_text(hit.node.text).find(text.rstrip("."))
        if span:
            return (Quote(hit.node.id, hit.node.text[slice(*span)], span),)
    return ()


def _context(hits: Sequence[Hit]) -> str:
    return "\n\n".join(f"{_title(hit)}\n{hit.node.text}" for hit in hits)


def _title(hit: Hit) -> str:
    return " > ".join(
        (hit.node.document_name.rpartition(".")[0] or hit.node.document_name, *hit.node.headings)
    )
