"""A reader whose answers rest on quotes, each checked to be in its source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from clew.core.component import INTERNAL, PromptFile, component
from clew.core.errors import BadCompletion
from clew.core.prompts.templates import Template
from clew.core.protocols import LanguageModel, Trail
from clew.core.trail import CitedReadStep
from clew.core.types import Answer, Hit, Question, Quote
from clew.methods.evidence import numbered_contexts, take_fitting
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.quotes import SourceText, find_verbatim

#: A quote of at least this many words is also looked for in other sources than the one it names.
_LONG_QUOTE = 4


@component("cited", summary="a model answers with quotes, each checked to be in its source; may abstain")
@dataclass(frozen=True, slots=True)
class CitedReader:
    """Asks for a short answer with quotes, or for none if the sources do not have it.

    ``template`` is the prompt ``read-cited``. Every quote is looked up (:mod:`clew.methods.readers.quotes`), and the
    characters of the source are shown. A quote that is not in the source it names, nor, if it has at least four
    words, in another one, goes to ``Answer.rejected_quotes`` and supports nothing.

    **An answer that no quote supports is not given.** The reader abstains, and the step has the model's answer as
    ``withheld``. One exception: if the model gave no quotes, but its answer of at least two words is itself verbatim
    in a source, then the answer is the quote.

    A reply in another form than asked is returned to the model once, with the problem. If the second reply cannot be
    read either, it is taken as an answer without quotes, under the rule above. Hits beyond ``characters`` of text are
    not shown to the model; the step counts them (``left_out``).
    """

    model: LanguageModel
    template: Annotated[Template, PromptFile("read-cited")]
    characters: Annotated[int, INTERNAL] = 48_000

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the answer with the hits that it quotes, or abstain. Raises ModelError."""
        shown = take_fitting(hits, self.characters)
        left_out = len(hits) - len(shown)
        step = CitedReadStep("cited", self.template.name, len(shown), left_out=left_out or None)
        if not shown:
            trail.add(replace(step, outcome="nothing to read"))
            return Answer(NOT_FOUND, abstained=True, reader=self.model.name)
        started = time.perf_counter()
        reply, model, step = self._ask(question, shown, step)
        answer, step = _check_reply(reply, shown, step)
        trail.add(replace(step, hits=answer.evidence, seconds=time.perf_counter() - started))
        return replace(answer, usage=step.usage, reader=model)

    def _ask(
        self, question: Question, hits: Sequence[Hit], step: CitedReadStep
    ) -> tuple[dict[str, Any], str, CitedReadStep]:
        """Return the reply as the schema has it, the model's name, and the step with how the reply came about."""
        prompt = self.template.render(question=question.text, contexts=numbered_contexts(hits))
        completion = self.model.complete([prompt])[0]
        usage, model = completion.usage, completion.model
        try:
            return self.template.parse(completion.text), model, replace(step, model=model, usage=usage)
        except BadCompletion as error:
            problem = error.problem
        again = f"{prompt.user}\n\nYour last reply could not be used: {problem}. Reply with the JSON object alone."
        completion = self.model.complete([replace(prompt, user=again)])[0]
        model = completion.model
        step = replace(step, model=model, asked_again=problem, usage=usage + completion.usage)
        try:
            return self.template.parse(completion.text), model, step
        except BadCompletion as error:
            reply = {"quotes": [], "answer": completion.text.strip(), "abstain": False}
            return reply, model, replace(step, taken_as_text=error.problem)


def _check_reply(
    reply: dict[str, Any], hits: Sequence[Hit], step: CitedReadStep
) -> tuple[Answer, CitedReadStep]:
    """Return the answer that a reply supports, and the step with the outcome."""
    quotes, rejected, moved = _check_quotes(reply["quotes"], hits)
    claim = reply["answer"].strip()
    step = replace(step, quotes=len(quotes), rejected=len(rejected), found_elsewhere=moved or None)
    if reply["abstain"] or not claim:
        answer = Answer(NOT_FOUND, rejected_quotes=rejected, abstained=True)
        return answer, replace(step, outcome="the model abstains", withheld=claim or None)
    if not reply["quotes"] and len(claim.split()) > 1:
        quotes = find_verbatim(claim, hits)
    if not quotes:
        outcome = "unsupported: " + ("no quote stands in its source" if rejected else "it quotes nothing")
        answer = Answer(NOT_FOUND, rejected_quotes=rejected, abstained=True)
        return answer, replace(step, outcome=outcome, withheld=claim)
    cited = {quote.node for quote in quotes}
    evidence = tuple(hit for hit in hits if hit.node.id in cited)
    outcome = "answered" if reply["quotes"] else "answered in a source's own words"
    return Answer(claim, evidence, quotes, rejected), replace(step, outcome=outcome)


def _check_quotes(
    replied: Sequence[dict[str, Any]], hits: Sequence[Hit]
) -> tuple[tuple[Quote, ...], tuple[str, ...], int]:
    """Return the quotes that are in a source, those that are in none, and how many were in another than they
    named."""
    sources: dict[int, SourceText] = {}

    def quote_from(index: int, text: str) -> Quote | None:
        node = hits[index].node
        source = sources.setdefault(index, SourceText.from_text(node.text))
        span = source.find(text)
        return Quote(node.id, node.text[slice(*span)], span) if span else None

    quotes: dict[Quote, None] = {}
    rejected: dict[str, None] = {}
    moved = 0
    for item in replied:
        named = item["source"] - 1
        text = item["text"].strip()
        quote = quote_from(named, text) if 0 <= named < len(hits) else None
        if quote is None and len(text.split()) >= _LONG_QUOTE:
            others = (quote_from(index, text) for index in range(len(hits)) if index != named)
            quote = next((other for other in others if other), None)
            moved += quote is not None
        if quote is not None:
            quotes[quote] = None
        elif text:
            rejected[text] = None
    return tuple(quotes), tuple(rejected), moved
