"""ReAct (Yao et al., ICLR 2023): thoughts and actions in turns, over any retriever.

The actions are those of their Section 3.1: ``Search`` and ``NameLookup``, whose observations are given back to
the model,
and ``Finish``. Deviations: ``Search`` asks the retriever and shows the first five sentences of each passage that it
finds, where the paper shows those of a Wikipedia page; ``NameLookup`` goes through the whole passages of the
last search;
an action that repeats an earlier search, or a step without an action, ends the steps (theirs asks again). The final
answer is read from what the searches found, so that it rests on quotes, and what ``Finish`` said is in the trail;
without a reader, what it said is the answer, as in the paper. The two demonstrations are our own (theirs: six).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from clew.core.component import PromptFile, Resources, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.recipe import Recipe
from clew.core.steps import ActStep, LookUpStep
from clew.core.text import normalise, sentence_spans
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question
from clew.methods.answering import model_answer, record_stop
from clew.methods.readers.contexts import hit_title
from clew.methods.replies import parse_final_answer

SEARCH, LOOKUP, FINISH = "search", "lookup", "finish"
#: Sentences of a passage that a search shows (Section 3.1).
SHOWN_SENTENCES = 5
_ACTION = re.compile(
    r"\b(?P<name>search|look[\s-]?up|finish)\b[*_\"'`]*\s*"
    r"(?:\[(?P<square>[^\n]*?)(?:\](?=[^\]]*$)|$)|\((?P<round>[^\n]*?)(?:\)(?=[^)]*$)|$)"
    r"|,?\s*\"?(?:action\s*)?(?:_?input|argument|query)\"?\s*:\s*(?P<input>[^\n}]*)|:\s*(?P<rest>[^\n]+))",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(r"^\W*(?:thought|action)(?:\s+\d+)?\W*:\s*", re.IGNORECASE)
_MARKED = re.compile(r"^\W*action\b", re.IGNORECASE | re.MULTILINE)
#: What a model makes up where an observation is given to it.
_MADE_UP = re.compile(r"\n\W*observation\b", re.IGNORECASE)
_AROUND = " \t*_\"'“”`"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote next: a thought, and an action with what it is about; no action is ""."""

    thought: str = ""
    action: str = ""
    argument: str = ""


def parse_reply(reply: str) -> Reply:
    """Return the first action of a reply and the thought before it, in whatever form they are written.

    What is marked as an action goes before words in a thought that look like one. ``the answer is: X`` without an
    action finishes.
    """
    text = clean_reply(reply)
    made_up = _MADE_UP.search(text)
    text = text[: made_up.start()] if made_up else text
    marked = _MARKED.search(text)
    found = _ACTION.search(text, marked.start() if marked else 0) or _ACTION.search(text)
    ends = [at.start() for at in (found, marked) if at]
    thought = _LEAD.sub("", text[: min(ends, default=len(text))]).strip()
    if found:
        about = next((part for part in found.group("square", "round", "input", "rest") if part), "")
        about, action = about.strip(_AROUND), re.sub(r"\W", "", found["name"].casefold())
        return Reply(thought, action, about) if about else Reply(thought)
    # A short line that only thinks is no answer: it must say that it is one.
    final = parse_final_answer(text) if "answer" in text.casefold() else ""
    return Reply(thought, FINISH, final) if final else Reply(thought)


@dataclass(slots=True)
class _Notes:
    """The steps as the prompt goes on with them, what was searched for, and what was found, each hit once."""

    steps: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    last: list[Hit] = field(default_factory=list)
    found: dict[str, Hit] = field(default_factory=dict)
    looked: dict[str, int] = field(default_factory=dict)

    def told(self) -> str:
        """Return the steps so far, and the beginning of the next."""
        return "\n".join([*self.steps, f"Thought {len(self.steps) + 1}:"])

    def observe(self, said: Reply, observation: str) -> None:
        """Add a step with what came of it."""
        number = len(self.steps) + 1
        lines = [
            f"Thought {number}: {said.thought}",
            f"Action {number}: {said.action.title()}[{said.argument}]",
        ]
        self.steps.append("\n".join([*lines, f"Observation {number}: {observation}"]))

    def searched(self, query: str, hits: list[Hit]) -> str:
        """Take what a search found, and return what of it is shown."""
        self.queries.append(normalise(query))
        self.last, self.looked = hits, {}
        self.found |= {hit.node.id: hit for hit in hits if hit.node.id not in self.found}
        shown = [f"Title: {hit_title(hit)}\n{_beginning(hit.node.text)}" for hit in hits]
        return "\n".join(shown) or "Nothing was found."

    def look_up(self, words: str) -> str:
        """Return the next sentence of the passages shown last that has the words."""
        wanted = normalise(words)
        found = [
            hit.node.text[slice(*span)]
            for hit in self.last
            for span in sentence_spans(hit.node.text)
            if wanted in normalise(hit.node.text[slice(*span)])
        ]
        number = self.looked[wanted] = self.looked.get(wanted, 0) + 1
        if number > len(found):
            return "No more results." if found else "No results."
        return f"(Result {number} of {len(found)}) {found[number - 1]}"


@component(
    "react(retriever=search, reader=auto)",
    summary="ReAct: thoughts, searches and look-ups in turns; final=model as for iterretgen",
    paper="Yao et al., ICLR 2023",
)
@dataclass(frozen=True, slots=True)
class ReAct:
    """At most ``rounds`` steps; each search finds ``k`` passages, and at most ``budget`` of all are read.

    ``template`` is the prompt ``react``. Where the steps found nothing for a reader, the question itself is searched
    for.
    """

    retriever: Retriever
    model: LanguageModel
    template: PromptTemplate
    reader: Reader | None
    k: int = 3
    rounds: int = 7
    budget: int = 30
    recipe: str = "react"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: Recipe,
        retriever: Retriever,
        model: LanguageModel,
        template: Annotated[PromptTemplate, PromptFile("react")],
        reader: Recipe,
        final: Literal["reader", "model"] = "reader",
        k: int = 3,
        rounds: int = 7,
        budget: int = 30,
    ) -> ReAct:
        """Return the method with a reader that reads in the end, or with the model's own answer."""
        chosen = None
        if final == "reader":
            chosen, recipe = resources.choose_reader(recipe)
        return cls(retriever, model, template, chosen, k, rounds, budget, str(recipe))

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what is read from what the searches found."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        notes, final = _Notes(), ""
        try:
            while len(notes.steps) < self.rounds and not record.should_stop():
                said = self._next(question, notes, record)
                if said.action == FINISH:
                    final = said.argument
                if said.action in ("", FINISH) or self._repeats(said, notes):
                    break
                notes.observe(said, self._done(question, said, notes, record))
            if not notes.found and self.reader is not None:
                self._done(question, Reply(action=SEARCH, argument=question.text), notes, record)
        except BudgetExceeded as error:
            record_stop(record, error)
        hits = list(notes.found.values())[: self.budget]
        return model_answer(self.reader, question, final, hits, record, self.recipe)

    def _next(self, question: Question, notes: _Notes, record: TrailRecorder) -> Reply:
        """Return the model's next thought and action."""
        started = time.perf_counter()
        made = self.model.complete([self.template.render(question=question.text, steps=notes.told())])[0]
        said = parse_reply(made.text)
        record.add(
            ActStep(
                self.template.name,
                len(notes.steps) + 1,
                said.thought,
                action=said.action or None,
                about=said.argument if said.action else None,
                unreadable=None if said.action else made.text,
                usage=made.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return said

    def _repeats(self, said: Reply, notes: _Notes) -> bool:
        return said.action == SEARCH and normalise(said.argument) in notes.queries

    def _done(self, question: Question, said: Reply, notes: _Notes, record: TrailRecorder) -> str:
        """Do an action; return what is observed."""
        if said.action == LOOKUP:
            started = time.perf_counter()
            observation = notes.look_up(said.argument)
            record.add(LookUpStep(said.argument, observation, seconds=time.perf_counter() - started))
            return observation
        asked = Question(said.argument, question.scope)
        return notes.searched(
            said.argument, retrieve_with_trail(self.retriever, asked, self.k, record, query=said.argument)
        )


def _beginning(text: str) -> str:
    spans = sentence_spans(text)[:SHOWN_SENTENCES]
    return text[spans[0][0] : spans[-1][1]] if spans else ""
