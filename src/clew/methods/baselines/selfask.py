"""Self-Ask (Press et al., Findings of EMNLP 2023) over any retriever, as D3 uses it (Nair et al., 2023, Section 5.2).

The model asks itself one follow-up question after another. Each is answered from the hits that the retriever finds
for it, until the model gives the final answer.

Deviations: follow-up questions are answered by the reader from the documents, not by a search engine. The final
answer is read from the evidence of all follow-up questions, so that it rests on quotes like any other answer; the
trail has the model's own final answer, and ``final=model`` takes it, as the paper does. A question without
follow-ups is answered from the hits for itself. The
demonstrations are our own.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply, is_refusal, labelled_value
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.text import normalise
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep
from clew.methods.answering import model_answer, record_stop

#: What a model is told where its question has no answer.
_NO_ANSWER = "Not found in these documents."
_FOLLOW_UP = re.compile(
    r"follow[\s-]*up(?:\s+question)?(?:\s+\d+)?\W*:\s*(?P<question>[^\n]+)", re.IGNORECASE
)
_FINAL = re.compile(r"(?<!intermediate )answer(?:\s+is\b\W*?:?|\W*:)\s*(?P<answer>[^\n]+)", re.IGNORECASE)
_NEEDED = re.compile(r"^\W*(?:are follow[\s-]*up questions needed here\W*)?(?:yes|no)\b", re.IGNORECASE)
#: Small models number questions, mark them with stars, or put them in quotes.
_AROUND = " \t*_\"'“”`"


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's next move: a follow-up question, a final answer, or neither."""

    question: str = ""
    final: str = ""


def parse_reply(text: str) -> Reply:
    """Return the first move of a reply. A line that is a question is a follow-up without the words for it."""
    text = clean_reply(text)
    follow_up = _FOLLOW_UP.search(text)
    # The last one, where a model corrects itself.
    *_, final = None, *_FINAL.finditer(text, 0, follow_up.start() if follow_up else len(text))
    if follow_up and final is None:
        return Reply(question=follow_up["question"].strip(_AROUND))
    # "Final answer: So the final answer is: Ada"
    inner = final and _FINAL.search(final["answer"])
    last = inner or final
    if answer := last["answer"] if last else labelled_value(text):
        answer = answer.strip(_AROUND + ":").rstrip(".。").strip(_AROUND)
        return Reply() if is_refusal(answer) else Reply(final=answer)
    lines = [line.strip(_AROUND + "-•") for line in text.splitlines()]
    return Reply(question=next((line for line in lines if line.endswith("?") and len(line) > 1), ""))


@dataclass(slots=True)
class _Exchange:
    """The follow-up questions with their answers, and the evidence, each hit once.

    ``cited`` are the hits that answers rest on: they are read first in the end.
    """

    turns: list[tuple[str, str]] = field(default_factory=list)
    cited: dict[str, Hit] = field(default_factory=dict)
    retrieved: dict[str, Hit] = field(default_factory=dict)

    def has_asked(self, question: str) -> bool:
        """Return whether ``question`` was asked, in whatever case and spacing."""
        return normalise(question) in {normalise(asked) for asked, _ in self.turns}

    def add(self, question: str, answer: Answer, hits: list[Hit]) -> None:
        """Add a follow-up question with its answer and the hits for it."""
        self.turns.append((question, _NO_ANSWER if answer.abstained else answer.text))
        self.add_hits(hits)
        if not answer.abstained:
            self.cited |= {hit.node.id: hit for hit in answer.evidence if hit.node.id not in self.cited}

    def add_hits(self, hits: list[Hit]) -> None:
        """Add hits that are new."""
        self.retrieved |= {hit.node.id: hit for hit in hits if hit.node.id not in self.retrieved}

    def hits(self, budget: int) -> list[Hit]:
        """Return at most ``budget`` hits, the cited ones first."""
        return list({**self.cited, **self.retrieved}.values())[:budget]

    def __str__(self) -> str:
        """The exchange as the prompt continues it."""
        lines = [f"Follow up: {question}\nIntermediate answer: {answer}" for question, answer in self.turns]
        return "\n".join([" Yes.", *lines]) if lines else ""


@component(
    "selfask(retriever=search, reader=auto)",
    summary="Self-Ask: follow-up questions, each answered from what a retriever finds, until the final answer; "
    "final=model as for iterretgen",
    paper="Press et al., Findings of EMNLP 2023",
)
@dataclass(frozen=True, slots=True)
class SelfAsk:
    """Asks follow-up questions until the final answer: at most ``rounds``, each answered from ``k`` hits.

    A repeated follow-up question, or a reply without one, ends the asking as well. The final answer is read from at
    most ``budget`` hits. With ``final`` ``model`` it is the model's own, as in the paper, unchecked; the model is
    asked once more if the rounds end before it. ``template`` is the prompt ``selfask``.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("selfask")]
    reader: Annotated[Reader, Auto("cited", "span", baseline="extractive")]
    final: Literal["reader", "model"] = "reader"
    k: int = 10
    rounds: int = 5
    budget: int = 30
    recipe: str = "selfask"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer that the reader finds in the evidence of all follow-up questions."""
        recorder = TrailRecorder.forwarding_to(trail)
        exchange, final = _Exchange(), ""
        try:
            while len(exchange.turns) < self.rounds and not recorder.should_stop():
                reply = self._ask(question, exchange, recorder)
                final = reply.final or final
                if not reply.question or exchange.has_asked(reply.question):
                    break
                self._answer_follow_up(Question(reply.question, question.scope), exchange, recorder)
            if self.final == "model" and not final and exchange.turns and not recorder.should_stop():
                final = self._ask(question, exchange, recorder).final
            if not exchange.turns:
                exchange.add_hits(
                    retrieve_with_trail(self.retriever, question, self.k, recorder, question.text)
                )
        except BudgetExceeded as error:
            record_stop(recorder, error)
        hits = exchange.hits(self.budget)
        reader = self.reader if self.final == "reader" else None
        return model_answer(reader, question, final, hits, recorder, self.recipe)

    def _ask(self, question: Question, exchange: _Exchange, recorder: TrailRecorder) -> Reply:
        """Return the model's next follow-up question, or its final answer."""
        started = time.perf_counter()
        prompt = self.template.render(question=question.text, exchange=str(exchange))
        completion = self.model.complete([prompt])[0]
        reply = parse_reply(completion.text)
        readable = reply.question or reply.final or _NEEDED.match(completion.text)
        recorder.add(
            ShownStep(
                "follow up",
                {
                    "prompt": self.template.name,
                    "round": len(exchange.turns) + 1,
                    "question": reply.question or None,
                    "final": reply.final or None,
                    "unreadable": None if readable else completion.text,
                },
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return reply

    def _answer_follow_up(self, question: Question, exchange: _Exchange, recorder: TrailRecorder) -> None:
        """Answer a follow-up question from the hits for it."""
        hits = retrieve_with_trail(self.retriever, question, self.k, recorder, question.text)
        exchange.add(question.text, self.reader.read(question, hits, recorder), hits)
