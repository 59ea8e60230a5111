"""Self-Ask (Press et al., Findings of EMNLP 2023) over any retriever, as D3 uses it (Nair et al., 2023, Section 5.2).

The model asks itself one follow-up question after another; each is answered from what the retriever finds for
it, until the model knows the final answer. Deviations: follow-up questions are answered by the reader, from the
documents, instead of a search engine; the final answer is read from the evidence of all follow-up questions, so
that it rests on quotes like any other answer, and what the model gave as final answer is in the trail; a question
that needs no follow-up is answered from what the retriever finds for itself. The demonstrations are our own.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Annotated

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.steps import FollowUpStep
from clew.core.text import normalise
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question
from clew.methods.answering import read_answer, record_stop
from clew.methods.readers import NOT_FOUND

_FOLLOW_UP = re.compile(r"follow[\s-]*up(?:\s+question)?(?:\s+\d+)?\W*:\s*(?P<asked>[^\n]+)", re.IGNORECASE)
_FINAL = re.compile(r"(?<!intermediate )answer(?:\s+is)?\W*:\s*(?P<answer>[^\n]+)", re.IGNORECASE)
_NEEDED = re.compile(r"^\W*(?:are follow[\s-]*up questions needed here\W*)?(?P<said>yes|no)\b", re.IGNORECASE)
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
# Small models number questions, mark them with stars, or put them in quotes.
_AROUND = " \t*_\"'“”`"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote next: a follow-up question, or a final answer, or neither."""

    question: str = ""
    final: str = ""


def parse_reply(reply: str) -> Reply:
    """Return what a reply says first; a line that is a question is a follow-up without the words for it."""
    text = _THOUGHT.sub("", reply)
    follow, final = _FOLLOW_UP.search(text), _FINAL.search(text)
    if follow and (final is None or follow.start() < final.start()):
        return Reply(question=follow["asked"].strip(_AROUND))
    if final:
        return Reply(final=final["answer"].strip(_AROUND))
    lines = [line.strip(_AROUND + "-•") for line in text.splitlines()]
    return Reply(question=next((line for line in lines if line.endswith("?") and len(line) > 1), ""))


@dataclass(slots=True)
class _Asked:
    """What was asked so far: follow-up questions with their answers, and the evidence, each hit once.

    ``used`` are the hits that answers rest on: they are read first in the end.
    """

    exchange: list[tuple[str, str]] = field(default_factory=list)
    used: dict[str, Hit] = field(default_factory=dict)
    found: dict[str, Hit] = field(default_factory=dict)

    def before(self, question: str) -> bool:
        """Return whether ``question`` was asked, in whatever case and spacing."""
        return normalise(question) in {normalise(asked) for asked, _ in self.exchange}

    def take(self, question: str, answer: Answer, found: list[Hit]) -> None:
        """Add a follow-up question with its answer and what was found for it."""
        self.exchange.append((question, NOT_FOUND if answer.abstained else answer.text))
        self.found |= {hit.node.id: hit for hit in found if hit.node.id not in self.found}
        if not answer.abstained:
            self.used |= {hit.node.id: hit for hit in answer.evidence if hit.node.id not in self.used}

    def hits(self, budget: int) -> list[Hit]:
        """Return at most ``budget`` hits, those that answers rest on first."""
        return list({**self.used, **self.found}.values())[:budget]


@component(
    "selfask(retriever=search)",
    summary="Self-Ask: follow-up questions, each answered from what a retriever finds, until the final answer",
    paper="Press et al., Findings of EMNLP 2023",
)
@dataclass(frozen=True, slots=True)
class SelfAsk:
    """Asks follow-up questions until the final answer: at most ``rounds``, each answered from ``k`` hits.

    A follow-up question that was asked before, or none where none is given, ends the asking as well. The final
    answer is read from at most ``budget`` hits. ``template`` is the prompt ``selfask``.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("selfask")]
    reader: Annotated[Reader, Auto("cited", "extractive")]
    k: int = 10
    rounds: int = 5
    budget: int = 30
    recipe: str = "selfask"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in the evidence of all follow-up questions."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        so_far = _Asked()
        try:
            while len(so_far.exchange) < self.rounds and not record.should_stop():
                said = self._next(question, so_far, record)
                if not said.question or so_far.before(said.question):
                    break
                self._answer(Question(said.question, question.scope), so_far, record)
            if not so_far.exchange:
                found = retrieve_with_trail(self.retriever, question, self.k, record, query=question.text)
                so_far.found |= {hit.node.id: hit for hit in found}
        except BudgetExceeded as error:
            record_stop(record, error)
        return read_answer(self.reader, question, so_far.hits(self.budget), record, self.recipe)

    def _next(self, question: Question, so_far: _Asked, record: TrailRecorder) -> Reply:
        """Return what the model asks next, or its final answer."""
        started = time.perf_counter()
        made = self.model.complete([self.template.render(question=question.text, exchange=_told(so_far))])[0]
        said = parse_reply(made.text)
        readable = said.question or said.final or _NEEDED.match(made.text)
        record.add(
            FollowUpStep(
                self.template.name,
                len(so_far.exchange) + 1,
                question=said.question or None,
                final=None if said.question else said.final or None,
                unreadable=None if readable else made.text,
                usage=made.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return said

    def _answer(self, asked: Question, so_far: _Asked, record: TrailRecorder) -> None:
        """Answer a follow-up question from what the retriever finds for it."""
        found = retrieve_with_trail(self.retriever, asked, self.k, record, query=asked.text)
        so_far.take(asked.text, self.reader.read(asked, found, record), found)


def _told(so_far: _Asked) -> str:
    """Return the exchange as the prompt goes on with it."""
    lines = [f"Follow up: {asked}\nIntermediate answer: {answer}" for asked, answer in so_far.exchange]
    return "\n".join([" Yes.", *lines]) if lines else ""
