"""Readers of papers: that of the KGP paper, and that of the chain paper with a few-shot prompt for one hop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import INTERNAL, PromptFile, component
from clew.core.prompts.replies import is_refusal, undress_value
from clew.core.prompts.templates import Template
from clew.core.protocols import Completion, LanguageModel, Snapshot, Trail
from clew.core.trail import PromptReadStep, ReadOutcomeStep
from clew.core.types import Answer, Hit, Question
from clew.methods.prompting import make_passages_optional, parse_short_answer, take_fitting
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.cited import find_verbatim


@component("paper", summary="the KGP paper's prompt (Listings 3 and 4)", paper="Wang et al., AAAI 2024")
@dataclass(frozen=True, slots=True)
class PaperReader:
    """Asks for an answer of less than six words, given all contexts (Wang et al., Listings 3 and 4).

    A context is a passage; of a hit with a path it is the passages of the path, joined by a newline (Listing 4).
    ``template`` is the prompt ``kgp-read``; ``texts`` returns the texts of nodes by id. The answer is the model's
    reply, unchecked; the reader abstains if there is nothing to read, or if the reply is empty or says that it does
    not know (beyond the paper).
    :class:`~clew.methods.readers.cited.CitedReader` gives answers that can be checked.
    """

    model: LanguageModel
    template: Template
    texts: Callable[[list[str]], list[str]]

    @classmethod
    def build(
        cls,
        snapshot: Snapshot,
        model: LanguageModel,
        template: Annotated[Template, PromptFile("kgp-read")],
    ) -> PaperReader:
        """Return the reader over the texts of a base."""

        def texts(ids: list[str]) -> list[str]:
            return [node.text for node in snapshot.nodes(snapshot.rows(ids))]

        return cls(model, template, texts)

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the model's answer, resting on all hits. Raises ModelError."""
        if not hits:
            trail.add(ReadOutcomeStep("paper", "nothing to read"))
            return Answer(NOT_FOUND, abstained=True, reader="paper")
        started = time.perf_counter()
        contexts = self._contexts(hits)
        prompt = self.template.render(question=question.text, contexts="\n".join(contexts))
        prompt = make_passages_optional(prompt, contexts, "\n")
        completion = self.model.complete([prompt])[0]
        text = undress_value(completion.text)
        answered = not is_refusal(text)
        trail.add(
            PromptReadStep(
                "paper",
                self.template.name,
                completion.model,
                contexts=len(hits),
                reply=text,
                hits=tuple(hits),
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return Answer(
            text if answered else NOT_FOUND,
            tuple(hits) if answered else (),
            usage=completion.usage,
            abstained=not answered,
            reader="paper",
        )

    def _contexts(self, hits: Sequence[Hit]) -> list[str]:
        paths = [hit.path if len(hit.path) > 1 else () for hit in hits]
        texts = iter(self.texts([id for path in paths for id in path]))
        contexts = [
            "\n".join(next(texts) for _ in path) if path else hit.node.text
            for hit, path in zip(hits, paths, strict=True)
        ]
        return [f"{number}: {context}" for number, context in enumerate(contexts, 1)]


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
            make_passages_optional(
                self.template.render(context="\n\n".join(contexts), question=question.text), contexts
            )
            for question, contexts in zip(questions, map(_contexts, shown), strict=True)
            if contexts
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
        text = parse_short_answer(completion.text)
        abstained = is_refusal(text)
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


def _contexts(hits: Sequence[Hit]) -> list[str]:
    """Return the passages, each under the title of its document and its headings."""
    contexts = []
    for hit in hits:
        name = hit.node.document_name
        title = " > ".join((name.rpartition(".")[0] or name, *hit.node.headings))
        contexts.append(f"{title}\n{hit.node.text}")
    return contexts
