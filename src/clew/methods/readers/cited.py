"""Our own reader: an answer with quotes, each checked to stand in its source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.core.errors import BadCompletion
from clew.core.prompts.templates import Template
from clew.core.protocols import LanguageModel, Trail
from clew.core.types import Answer, Hit, Question, Quote, Step, Usage
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.contexts import numbered_contexts, take_fitting
from clew.methods.readers.quotes import SourceText

#: A quote is looked for in other sources than the one it names only if it has this many words.
_TELLING = 4


@dataclass(frozen=True, slots=True)
class CitedReader:
    """Asks for a short answer with quotes, or none where the sources do not hold it.

    ``template`` is the prompt ``read-cited``. Every quote is looked up (:mod:`clew.methods.readers.quotes`); what is
    shown are the source's own characters. A quote that does not stand in the source it names, nor, if it is
    at least four words, in another one, goes to ``Answer.rejected`` and supports nothing.

    **An answer that no quote supports is not given.** The reader abstains, and the step says what the model
    had claimed (``withheld``). One exception: where the model gave no quotes at all, but its answer, at
    least two words, itself stands verbatim in a source, then that is the quote.

    A reply in another form than asked is returned to the model once, with what is wrong with it. If the
    second cannot be read either, it is taken as a text without quotes, which falls under the rule above.
    Hits beyond ``characters`` of text are not shown to the model; the step counts them (``left_out``).
    """

    model: LanguageModel
    template: Template
    characters: int = 48_000

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the answer with the hits that it quotes, or abstain. Raises ModelError."""
        shown = take_fitting(hits, self.characters)
        detail: dict[str, Any] = {"reader": "cited", "prompt": self.template.name, "sources": len(shown)}
        if len(shown) < len(hits):
            detail["left_out"] = len(hits) - len(shown)
        if not shown:
            trail.add(Step("read", detail | {"outcome": "nothing to read"}))
            return Answer(NOT_FOUND, abstained=True, reader=self.model.name)
        started = time.perf_counter()
        reply, usage, said = self._ask(question, shown)
        answer, found = _judged(reply, shown)
        seconds = time.perf_counter() - started
        trail.add(Step("read", detail | said | found, answer.evidence, usage, seconds))
        return replace(answer, usage=usage, reader=said["model"])

    def _ask(self, question: Question, hits: Sequence[Hit]) -> tuple[dict[str, Any], Usage, dict[str, Any]]:
        """Return the reply as the schema has it, what it cost, and what to say about how it came about."""
        prompt = self.template.render(question=question.text, contexts=numbered_contexts(hits))
        made = self.model.complete([prompt])[0]
        try:
            return self.template.parse(made.text), made.usage, {"model": made.model}
        except BadCompletion as error:
            problem, usage = error.problem, made.usage
        again = f"{prompt.user}\n\nYour last reply could not be used: {problem}. Reply with the JSON object alone."
        made = self.model.complete([replace(prompt, user=again)])[0]
        usage += made.usage
        said = {"model": made.model, "asked_again": problem}
        try:
            return self.template.parse(made.text), usage, said
        except BadCompletion as error:
            said["taken_as_text"] = error.problem
            return {"quotes": [], "answer": made.text.strip(), "abstain": False}, usage, said


def _judged(reply: dict[str, Any], hits: Sequence[Hit]) -> tuple[Answer, dict[str, Any]]:
    """Return the answer that a reply supports, and what the step says about it."""
    quotes, rejected, moved = _checked(reply["quotes"], hits)
    claimed = reply["answer"].strip()
    detail: dict[str, Any] = {"quotes": len(quotes), "rejected": len(rejected)}
    if moved:
        detail["found_elsewhere"] = moved
    if reply["abstain"] or not claimed:
        answer = Answer(NOT_FOUND, rejected_quotes=rejected, abstained=True)
        return answer, detail | {"outcome": "the model abstains"} | ({"withheld": claimed} if claimed else {})
    if not reply["quotes"] and len(claimed.split()) > 1:
        quotes = _own_words(claimed, hits)
    if not quotes:
        outcome = "unsupported: " + ("no quote stands in its source" if rejected else "it quotes nothing")
        return Answer(NOT_FOUND, rejected_quotes=rejected, abstained=True), detail | {
            "outcome": outcome,
            "withheld": claimed,
        }
    cited = {quote.node for quote in quotes}
    evidence = tuple(hit for hit in hits if hit.node.id in cited)
    outcome = "answered" if reply["quotes"] else "answered in a source's own words"
    return Answer(claimed, evidence, quotes, rejected), detail | {"outcome": outcome}


def _checked(
    given: Sequence[dict[str, Any]], hits: Sequence[Hit]
) -> tuple[tuple[Quote, ...], tuple[str, ...], int]:
    """Return the quotes that stand in a source, those that do not, and how many stood in another one."""
    sources: dict[int, SourceText] = {}

    def found_in(index: int, text: str) -> Quote | None:
        node = hits[index].node
        source = sources.setdefault(index, SourceText.from_text(node.text))
        span = source.find(text)
        return Quote(node.id, node.text[slice(*span)], span) if span else None

    quotes: dict[Quote, None] = {}
    rejected: dict[str, None] = {}
    moved = 0
    for one in given:
        named = one["source"] - 1
        text = one["text"].strip()
        quote = found_in(named, text) if 0 <= named < len(hits) else None
        if quote is None and len(text.split()) >= _TELLING:
            others = (found_in(index, text) for index in range(len(hits)) if index != named)
            quote = next((other for other in others if other), None)
            moved += quote is not None
        if quote is not None:
            quotes[quote] = None
        elif text:
            rejected[text] = None
    return tuple(quotes), tuple(rejected), moved


def _own_words(claimed: str, hits: Sequence[Hit]) -> tuple[Quote, ...]:
    for hit in hits:
        span = SourceText.from_text(hit.node.text).find(claimed)
        if span:
            return (Quote(hit.node.id, hit.node.text[slice(*span)], span),)
    return ()
