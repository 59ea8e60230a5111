"""ReAct (Yao et al., ICLR 2023): thoughts and actions in turns, over any retriever.

The actions are those of their Section 3.1: ``Search`` and ``Lookup``, after each of which the model is shown an
observation, and ``Finish``.

Deviations: ``Search`` asks the retriever and shows the first five sentences of each passage that it finds, where the
paper shows those of a Wikipedia page. ``Lookup`` goes through the whole passages of the last search. An action that
repeats an earlier search, or a step without an action, ends the loop (the authors ask again). The final answer is
read from the passages of all searches, so that it rests on quotes, and the trail has the answer that ``Finish`` gave;
without a reader the answer of ``Finish`` is taken, as in the paper. The two demonstrations are our own (the authors
have six).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply, is_refusal
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.text import normalise, sentence_spans
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep
from clew.methods.answering import model_answer, record_stop
from clew.methods.prompting import hit_title, parse_final_answer

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
#: Marks before a word are looked for in its own line: many lines of marks would take the square of their number.
_ACTION_LINE = re.compile(r"^[^\w\n]*action\b", re.IGNORECASE | re.MULTILINE)
#: Models go on with an observation of their own invention.
_INVENTED = re.compile(r"\n[^\w\n]*observation\b", re.IGNORECASE)
_AROUND = " \t*_\"'“”`"


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's next thought and action, with the action's argument; ``action`` is "" if there is none."""

    thought: str = ""
    action: str = ""
    argument: str = ""


def parse_reply(text: str) -> Reply:
    """Return the first action of a reply and the thought before it, in whatever form they are written.

    A line that is marked as an action goes before words in a thought that look like one. ``the answer is: X`` without
    an action finishes.
    """
    text = clean_reply(text)
    if invented := _INVENTED.search(text):
        text = text[: invented.start()]
    action_line = _ACTION_LINE.search(text)
    action = _ACTION.search(text, action_line.start() if action_line else 0) or _ACTION.search(text)
    ends = [match.start() for match in (action, action_line) if match]
    thought = _LEAD.sub("", text[: min(ends, default=len(text))]).strip()
    if action:
        argument = next((part for part in action.group("square", "round", "input", "rest") if part), "")
        argument = argument.strip(_AROUND)
        name = re.sub(r"\W", "", action["name"].casefold())
        if not argument or (name == FINISH and is_refusal(argument)):
            return Reply(thought)
        return Reply(thought, name, argument)
    # A short line that only thinks is no answer: it has to announce one.
    final = parse_final_answer(text) if "answer" in text.casefold() else ""
    return Reply(thought, FINISH, final) if final else Reply(thought)


@dataclass(slots=True)
class _Transcript:
    """The steps as the prompt continues them, the queries, and the hits of all searches, each once.

    ``last_hits`` are those of the last search; ``lookups`` counts how often each text was looked up in them.
    """

    steps: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    hits: dict[str, Hit] = field(default_factory=dict)
    last_hits: list[Hit] = field(default_factory=list)
    lookups: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """The steps so far, and the beginning of the next."""
        return "\n".join([*self.steps, f"Thought {len(self.steps) + 1}:"])

    def observations(self) -> list[str]:
        """Return the observations, each from the second line on, the oldest first, to be left out of a prompt that is
        too long."""
        return [rest for step in self.steps if (rest := "".join(step.partition("\nTitle: ")[1:]))]

    def add_step(self, reply: Reply, observation: str) -> None:
        """Add a step with its observation."""
        number = len(self.steps) + 1
        lines = [
            f"Thought {number}: {reply.thought}",
            f"Action {number}: {reply.action.title()}[{reply.argument}]",
            f"Observation {number}: {observation}",
        ]
        self.steps.append("\n".join(lines))

    def add_search(self, query: str, hits: list[Hit]) -> str:
        """Add the hits of a search, and return the observation: the beginning of each passage."""
        self.queries.append(normalise(query))
        self.last_hits, self.lookups = hits, {}
        self.hits |= {hit.node.id: hit for hit in hits if hit.node.id not in self.hits}
        passages = [f"Title: {hit_title(hit)}\n{_first_sentences(hit.node.text)}" for hit in hits]
        return "\n".join(passages) or "Nothing was found."

    def look_up(self, words: str) -> str:
        """Return the observation of a lookup: the next sentence of the last search's passages with the words."""
        wanted = normalise(words)
        sentences = [
            hit.node.text[slice(*span)]
            for hit in self.last_hits
            for span in sentence_spans(hit.node.text)
            if wanted in normalise(hit.node.text[slice(*span)])
        ]
        number = self.lookups[wanted] = self.lookups.get(wanted, 0) + 1
        if number > len(sentences):
            return "No more results." if sentences else "No results."
        return f"(Result {number} of {len(sentences)}) {sentences[number - 1]}"


@component(
    "react(retriever=search, reader=auto)",
    summary="ReAct: thoughts, searches and look-ups in turns; final=model as for iterretgen",
    paper="Yao et al., ICLR 2023",
)
@dataclass(frozen=True, slots=True)
class ReAct:
    """Takes at most ``rounds`` steps; each search returns ``k`` passages, and at most ``budget`` of all are read.

    ``template`` is the prompt ``react``. If no step searched with success, a reader gets the hits for the question.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("react")]
    reader: Annotated[Reader | None, Auto("cited", "span", baseline="extractive", unless=("final", "model"))]
    final: Literal["reader", "model"] = "reader"
    k: int = 3
    rounds: int = 7
    budget: int = 30
    recipe: str = "react"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer from the passages of all searches."""
        recorder = TrailRecorder.forwarding_to(trail)
        transcript, final = _Transcript(), ""
        try:
            while len(transcript.steps) < self.rounds and not recorder.should_stop():
                reply = self._next_step(question, transcript, recorder)
                if reply.action == FINISH:
                    final = reply.argument
                repeated = reply.action == SEARCH and normalise(reply.argument) in transcript.queries
                if reply.action in ("", FINISH) or repeated:
                    break
                transcript.add_step(reply, self._act(question, reply, transcript, recorder))
            if not transcript.hits and self.reader is not None:
                self._act(question, Reply(action=SEARCH, argument=question.text), transcript, recorder)
        except BudgetExceeded as error:
            record_stop(recorder, error)
        hits = list(transcript.hits.values())[: self.budget]
        return model_answer(self.reader, question, final, hits, recorder, self.recipe)

    def _next_step(self, question: Question, transcript: _Transcript, recorder: TrailRecorder) -> Reply:
        """Return the model's next thought and action."""
        started = time.perf_counter()
        prompt = self.template.render(question=question.text, steps=str(transcript))
        prompt = replace(prompt, optional=(*prompt.optional, *transcript.observations()))
        completion = self.model.complete([prompt])[0]
        reply = parse_reply(completion.text)
        recorder.add(
            ShownStep(
                "act",
                {
                    "prompt": self.template.name,
                    "round": len(transcript.steps) + 1,
                    "thought": reply.thought,
                    "action": reply.action or None,
                    "about": reply.argument if reply.action else None,
                    "unreadable": None if reply.action else completion.text,
                },
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return reply

    def _act(self, question: Question, reply: Reply, transcript: _Transcript, recorder: TrailRecorder) -> str:
        """Do an action and return its observation."""
        if reply.action == LOOKUP:
            started = time.perf_counter()
            observation = transcript.look_up(reply.argument)
            results = {"words": reply.argument, "observation": observation}
            recorder.add(ShownStep("look up", results, seconds=time.perf_counter() - started))
            return observation
        query = Question(reply.argument, question.scope)
        hits = retrieve_with_trail(self.retriever, query, self.k, recorder, query.text)
        return transcript.add_search(query.text, hits)


def _first_sentences(text: str) -> str:
    spans = sentence_spans(text)[:SHOWN_SENTENCES]
    return text[spans[0][0] : spans[-1][1]] if spans else ""
