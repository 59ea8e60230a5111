"""Demonstrate-Search-Predict (Khattab et al., 2022) as a program for multi-hop questions over any retriever.

Search (their ``multihop_search``): in each hop the model sums up what the context says and writes the next query;
the context of a hop is the summaries so far and the passages of the last query. Predict: the passages of all hops are
read. Deviations: nothing is bootstrapped from training data (their ``annotate``), and the demonstrations are our
own; one query a hop, without fusing the results of several; where a reader reads in the end, so that the answer rests
on quotes, it is the prediction. Without one the model predicts with a chain of thought, as in the paper, and its
answer is taken.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from clew.core.component import PromptFile, Resources, component
from clew.core.errors import BudgetExceeded
from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.recipe import Recipe
from clew.core.steps import HopStep, ModelAnswerStep
from clew.core.text import normalise
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question
from clew.methods.answering import model_answer, record_stop
from clew.methods.readers.contexts import titled_contexts
from clew.methods.replies import parse_final_answer

_QUERY = re.compile(r"(?:search\s+)?query(?:\s+\d+)?\W*:\W*(?P<query>[^\n]*)", re.IGNORECASE)
_SUMMARY = re.compile(r"^\W*summary(?:\s+\d+)?\W*:", re.IGNORECASE)
_NONE = re.compile(r"(?:none|n/?a|nothing|no(?:\s+\w+)*\s+(?:needed|required|necessary))?", re.IGNORECASE)
_AROUND = " \t*_\"'“”`"


def parse_reply(reply: str) -> tuple[str, str]:
    """Return the summary and the query of a reply; the query is "" where none is given, or it is ``none``.

    A line that is a question is a query without the word for it.
    """
    text = clean_reply(reply)
    found = _QUERY.search(text)
    before = text[: found.start()] if found else text
    lines = [line.strip(_AROUND + "-•") for line in _SUMMARY.sub("", before).splitlines()]
    if found:
        query = found["query"].strip(_AROUND + ".")
    else:
        query = next((line for line in lines if line.endswith("?") and len(line) > 1), "")
    summary = " ".join(line for line in lines if line and line != query)
    return summary, "" if _NONE.fullmatch(query) else query


@dataclass(slots=True)
class _Known:
    """What was found out so far: summaries, queries, the hits of the last query, and all hits, each once."""

    summaries: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    last: list[Hit] = field(default_factory=list)
    found: dict[str, Hit] = field(default_factory=dict)

    def context(self) -> str:
        """Return the context of the next hop."""
        return (
            "\n".join(part for part in (" ".join(self.summaries), titled_contexts(self.last)) if part)
            or "none yet"
        )

    def before(self, query: str) -> bool:
        """Return whether ``query`` was asked, in whatever case and spacing."""
        return normalise(query) in map(normalise, self.queries)

    def take(self, query: str, hits: list[Hit]) -> None:
        """Add what a query found."""
        self.queries.append(query)
        self.last = hits
        self.found |= {hit.node.id: hit for hit in hits if hit.node.id not in self.found}


@component(
    "dsp(retriever=search, reader=auto)",
    summary="Demonstrate-Search-Predict: a summary and a query for each hop; final=model as for iterretgen",
    paper="Khattab et al., 2022",
)
@dataclass(frozen=True, slots=True)
class DSP:
    """At most ``hops`` searches of ``k`` passages each; then at most ``budget`` passages are read.

    A query that was asked before, or none, ends the search; where it found nothing, the question itself is searched
    for.
    ``template`` is the prompt ``dsp-search``, ``predict`` the prompt ``cot``, used where there is no reader.
    """

    retriever: Retriever
    model: LanguageModel
    template: PromptTemplate
    predict: PromptTemplate
    reader: Reader | None
    k: int = 5
    hops: int = 3
    budget: int = 30
    recipe: str = "dsp"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: Recipe,
        retriever: Retriever,
        model: LanguageModel,
        template: Annotated[PromptTemplate, PromptFile("dsp-search")],
        predict: Annotated[PromptTemplate, PromptFile("cot")],
        reader: Recipe,
        final: Literal["reader", "model"] = "reader",
        k: int = 5,
        hops: int = 3,
        budget: int = 30,
    ) -> DSP:
        """Return the method with a reader that reads in the end, or with the model's own answer."""
        chosen = None
        if final == "reader":
            chosen, recipe = resources.choose_reader(recipe)
        return cls(retriever, model, template, predict, chosen, k, hops, budget, str(recipe))

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return what is read from the passages of all hops."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        known = _Known()
        said = ""
        try:
            while len(known.queries) < self.hops and not record.should_stop():
                query = self._next(question, known, record)
                if not query or known.before(query):
                    break
                asked = Question(query, question.scope)
                known.take(query, retrieve_with_trail(self.retriever, asked, self.k, record, query=query))
            if not known.found:
                found = retrieve_with_trail(self.retriever, question, self.k, record, query=question.text)
                known.take(question.text, found)
            if self.reader is None:
                said = self._predicted(question, self._read(known), record)
        except BudgetExceeded as error:
            record_stop(record, error)
        return model_answer(self.reader, question, said, self._read(known), record, self.recipe)

    def _read(self, known: _Known) -> list[Hit]:
        return list(known.found.values())[: self.budget]

    def _next(self, question: Question, known: _Known, record: TrailRecorder) -> str:
        """Return the query of the next hop, "" where the model wants none."""
        started = time.perf_counter()
        made = self.model.complete([self.template.render(question=question.text, context=known.context())])[0]
        summary, query = parse_reply(made.text)
        if summary:
            known.summaries.append(summary)
        record.add(
            HopStep(
                self.template.name,
                len(known.queries) + 1,
                summary,
                query=query or None,
                unreadable=None if query or summary else made.text,
                usage=made.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return query

    def _predicted(self, question: Question, hits: Sequence[Hit], record: TrailRecorder) -> str:
        """Return the answer of the model's chain of thought over the passages."""
        started = time.perf_counter()
        contexts = f"{titled_contexts(hits)}\n\n" if hits else ""
        made = self.model.complete([self.predict.render(question=question.text, contexts=contexts)])[0]
        said = parse_final_answer(made.text)
        record.add(
            ModelAnswerStep(
                "model",
                prompt=self.predict.name,
                thought=made.text.strip(),
                final=said,
                hits=tuple(hits),
                usage=made.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return said
