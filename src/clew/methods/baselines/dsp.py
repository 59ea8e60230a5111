"""Demonstrate-Search-Predict (Khattab et al., 2022) as a program for multi-hop questions over any retriever.

Search (the authors' ``multihop_search``): in each hop the model summarises the context and writes the next query; the
context of a hop is the summaries so far and the passages of the last query. Predict: the passages of all hops are
read.

Deviations: nothing is bootstrapped from training data (the authors' ``annotate``), and the demonstrations are our
own. Each hop has one query; the results of several are not fused. If there is a reader, it makes the prediction, so
that the answer rests on quotes; without one the model predicts with a chain of thought, as in the paper.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from clew.core.component import Auto, PromptFile, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.text import normalise
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep
from clew.methods.answering import model_answer, predict_answer, record_stop
from clew.methods.prompting import make_passages_optional, titled_contexts

_QUERY = re.compile(r"(?:search\s+)?query(?:\s+\d+)?\W*:\W*(?P<query>[^\n]*)", re.IGNORECASE)
_SUMMARY = re.compile(r"^\W*summary(?:\s+\d+)?\W*:", re.IGNORECASE)
_NONE = re.compile(
    r"(?:(?:none|n/?a|nothing)(?:\s*[,.;:(–-].*)?|no(?:\s+\w+)*\s+(?:needed|required|necessary)(?:\W.*)?)?",
    re.IGNORECASE,
)
_AROUND = " \t*_\"'“”`"


def parse_reply(reply: str) -> tuple[str, str]:
    """Return the summary and the query of a reply; the query is "" if there is none, or if it is ``none``.

    A line that is a question is a query without the word for it.
    """
    text = clean_reply(reply)
    match = _QUERY.search(text)
    before = text[: match.start()] if match else text
    lines = [line.strip(_AROUND + "-•") for line in _SUMMARY.sub("", before).splitlines()]
    if match:
        query = match["query"].strip(_AROUND + ".")
    else:
        query = next((line for line in lines if line.endswith("?") and len(line) > 1), "")
    summary = " ".join(line for line in lines if line and line != query)
    return summary, "" if _NONE.fullmatch(query) else query


@dataclass(slots=True)
class _SearchState:
    """Summaries, queries, the hits of the last query, and the hits of all queries, each once."""

    summaries: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    last_hits: list[Hit] = field(default_factory=list)
    hits: dict[str, Hit] = field(default_factory=dict)

    def context(self) -> str:
        """Return the context of the next hop."""
        parts = (" ".join(self.summaries), "\n\n".join(titled_contexts(self.last_hits)))
        return "\n".join(part for part in parts if part) or "none yet"

    def has_asked(self, query: str) -> bool:
        """Return whether ``query`` was asked, in whatever case and spacing."""
        return normalise(query) in map(normalise, self.queries)

    def add(self, query: str, hits: list[Hit]) -> None:
        """Add a query and its hits."""
        self.queries.append(query)
        self.last_hits = hits
        self.hits |= {hit.node.id: hit for hit in hits if hit.node.id not in self.hits}


@component(
    "dsp(retriever=search, reader=auto)",
    summary="Demonstrate-Search-Predict: a summary and a query for each hop; final=model as for iterretgen",
    paper="Khattab et al., 2022",
)
@dataclass(frozen=True, slots=True)
class DSP:
    """Searches at most ``hops`` times for ``k`` passages; at most ``budget`` of all are read.

    A repeated query, or none, ends the search. If no passage was retrieved by then, the question itself is the query.
    ``template`` is the prompt ``dsp-search``; ``predict`` is the prompt ``cot``, used without a reader.
    """

    retriever: Retriever
    model: LanguageModel
    template: Annotated[PromptTemplate, PromptFile("dsp-search")]
    predict: Annotated[PromptTemplate, PromptFile("cot")]
    reader: Annotated[Reader | None, Auto("cited", "span", baseline="extractive", unless=("final", "model"))]
    final: Literal["reader", "model"] = "reader"
    k: int = 5
    hops: int = 3
    budget: int = 30
    recipe: str = "dsp"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer from the passages of all hops."""
        recorder = TrailRecorder.forwarding_to(trail)
        state = _SearchState()
        answer = ""
        try:
            while len(state.queries) < self.hops and not recorder.should_stop():
                query = self._next_query(question, state, recorder)
                if not query or state.has_asked(query):
                    break
                self._search(Question(query, question.scope), state, recorder)
            if not state.hits:
                self._search(question, state, recorder)
            if self.reader is None:
                read = self._hits_to_read(state)
                answer = predict_answer(self.model, self.predict, question, read, recorder)
        except BudgetExceeded as error:
            record_stop(recorder, error)
        hits = self._hits_to_read(state)
        return model_answer(self.reader, question, answer, hits, recorder, self.recipe)

    def _search(self, query: Question, state: _SearchState, recorder: TrailRecorder) -> None:
        hits = retrieve_with_trail(self.retriever, query, self.k, recorder, query.text)
        state.add(query.text, hits)

    def _hits_to_read(self, state: _SearchState) -> list[Hit]:
        return list(state.hits.values())[: self.budget]

    def _next_query(self, question: Question, state: _SearchState, recorder: TrailRecorder) -> str:
        """Return the query of the next hop, "" if the model wants none."""
        started = time.perf_counter()
        prompt = self.template.render(question=question.text, context=state.context())
        prompt = make_passages_optional(prompt, titled_contexts(state.last_hits))
        completion = self.model.complete([prompt])[0]
        summary, query = parse_reply(completion.text)
        if summary:
            state.summaries.append(summary)
        recorder.add(
            ShownStep(
                "hop",
                {
                    "prompt": self.template.name,
                    "hop": len(state.queries) + 1,
                    "summary": summary,
                    "query": query or None,
                    "unreadable": None if query or summary else completion.text,
                },
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return query
