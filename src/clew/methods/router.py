"""The default method: decides what answers a question, says why and what it will cost, and asks on where that fails.

Without a language model, a text that asks several questions ("Who built it, and when?") is taken apart, and each is
sent its own way (:func:`clew.questions.sequences.split_parts`). The rules for one question, in their order:

1. A question about structure ("table 2 on page 4") goes to the documents; one that is restricted to documents is
   asked of no graph.
2. A question that clew reads as a formal query over a graph, with a probability at which it states answers, is
   answered from the graph (:mod:`clew.methods.graph_questions`).
3. A question that clew reads as a query over a table of a CSV file or workbook, as surely, is computed
   (:mod:`clew.methods.tables`). With a language model, one that only seems to be goes there too.
4. With a language model, a question for a summary goes down the sections of a document (``drill``).
5. Everything else goes to the documents (``kgp``: pages, tables and sections that the question names, else a walk).
6. Then what stands inside the question ("the wage of the husband of Ruth") is asked first, and its value is put in
   its place (:mod:`clew.methods.mixed`): documents often answer no more than the phrase.

The trail has each decision. Where there are no documents but tables, the tables alone are asked. Where nothing states
an answer, what documents, graphs, tables and such steps may answer stands side by side, the likeliest first.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import median
from threading import Lock
from typing import TYPE_CHECKING

from clew.core.component import Recipe, Resources, component, make_recipe
from clew.core.protocols import Method, PropertyGraph, Snapshot, Trail
from clew.core.trail import TrailRecorder
from clew.core.types import (
    MAX_POSSIBLE,
    QUOTED_FROM,
    ROW,
    SHOWN_FROM,
    STATED_FROM,
    Answer,
    Hit,
    Question,
    RouteStep,
)
from clew.methods.graph_questions import (
    UNSURE,
    GraphQuestions,
    graphs_in_scope,
    readings_step,
)
from clew.methods.readers import NOT_FOUND
from clew.parse.data_tables import DATA_TYPES
from clew.questions.outline_reading import create_outline_reader
from clew.questions.reading import Reading
from clew.questions.sequences import NESTED_FROM, estimate_nesting, split_parts
from clew.questions.text import QuestionText
from clew.retrieve.structure.lookup import StructureSearch

if TYPE_CHECKING:
    from clew.methods.mixed import MixedQuestions
    from clew.methods.tables.method import TableQuestions
    from clew.questions.table_reading import TableReading

#: The highest probability of what documents say of a phrase inside a question, and of nothing that is asked of it.
#: Set by hand: of such answers none was right (5 over the worlds of ``benchmarks/sequences.py``).
MOST_PARTIAL = QUOTED_FROM - 0.01
#: The share of answerable ones among the questions that the confidence in a sentence is fitted to
#: (``results/sentences.json``).
_OF_DOCUMENTS = 0.78
#: From which probability of its likeliest reading on a language model is asked for SQL. Set by hand: of 51 questions
#: about the documents of three worlds (``shared/data/worlds``) one is as likely to ask a table, of 22 about tables
#: 15 are.
SQL_FROM = 0.3
#: Answers of several questions are written in one line if each has at most so many characters.
_SHORT = 100
_SUMMARY = re.compile(
    r"^\W*(?:please )?(?:summari[sz]e|give (?:me )?(?:a|an) (?:summary|overview|outline)|what (?:is|are) the main"
    r"|what does (?:the|this) (?:report|paper|document|book|filing) (?:say|argue|conclude)|outline)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a method is expected to cost: model calls, and seconds without them."""

    calls: int
    seconds: float
    is_guess: bool = False

    def __str__(self) -> str:
        """In words.

        >>> str(Cost(0, 0.04)), str(Cost(1, 2))
        ('no model call, about 0.04 s', '1 model call, about 2 s and the model')
        """
        calls = f"{self.calls or 'no'} model call{'s' * (self.calls > 1)}"
        guess = " (a guess: too few such questions were asked yet)" * self.is_guess
        return f"{calls}, about {self.seconds:.2g} s{' and the model' * bool(self.calls)}{guess}"


#: Medians of ``benchmarks/route_mixture.py`` without a model, on two busy cores (``drill``, which needs one, is a
#: guess, and so are the numbers of calls); what a process has measured itself takes their place.
MEDIAN_SECONDS: Mapping[str, float] = {
    "graph": 0.05,
    "mixed": 1.2,
    "tables": 0.1,
    "drill": 2.0,
    "documents": 0.6,
}
_CALLS_WITH_MODEL: Mapping[str, int] = {"tables": 1, "drill": 3, "documents": 1}
#: After so many questions to a method their median counts; the last of them are remembered.
_ENOUGH, _REMEMBERED = 3, 32


@dataclass(frozen=True, slots=True)
class Decision:
    """What answers a question (a key of :data:`MEDIAN_SECONDS`), why, and what else could be asked and why."""

    method: str
    reason: str
    alternatives: tuple[tuple[str, str], ...] = ()


@component(
    "router(documents=kgp)",
    summary="the default: a question that clew reads as triples of a graph, and is sure of, goes to the graph, a "
    "count or sum to a table, any other to the documents, and step by step to all of them where they do not state an "
    "answer; the first step says why, and the cost",
)
@dataclass(frozen=True, slots=True)
class Router:
    """Sends a question to the ``graphs``, the ``tables``, down a document (``drill``), or to the ``documents``, and
    step by step to all of them (``mixed``)."""

    snapshot: Snapshot
    structures: StructureSearch
    documents: Method
    graphs: GraphQuestions | None
    mixed: MixedQuestions | None
    tables: TableQuestions | None = None
    drill: Method | None = None
    recipe: str = "router"

    @classmethod
    def build(cls, resources: Resources, recipe: str, documents: Recipe) -> Router:
        """Return the method; ``documents`` is the recipe that answers from documents. Raises UsageError."""
        snapshot, registry = resources.snapshot, resources.registry
        has_graphs = bool(snapshot.graphs())
        documents_of_base = snapshot.documents()
        has_documents = len(documents_of_base) > 0
        has_data_tables = any(document.media_type in DATA_TYPES for document in documents_of_base)
        drill = make_recipe("read", {"retriever": Recipe("drill")})
        return cls(
            snapshot,
            StructureSearch(snapshot, create_outline_reader(resources.tools.plan_judge())),
            registry.build("recipe", documents, resources),
            registry.build("recipe", Recipe("graph"), resources) if has_graphs else None,
            registry.build("recipe", Recipe("mixed"), resources)
            if has_documents and (has_graphs or has_data_tables)
            else None,
            registry.build("recipe", Recipe("tables"), resources) if has_data_tables else None,
            registry.build("recipe", drill, resources) if resources.model is not None else None,
            recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer of the method that the question is sent to, of several questions that of each; a language
        model reads several at once. Raises what that method raises."""
        parts = split_parts(question.text) if self.drill is None else ()
        if parts and not self.structures.find_certain(question):
            return self._answer_parts(question, parts, trail)
        return self._answer_whole(question, trail)

    def _answer_parts(self, question: Question, parts: Sequence[tuple[str, str]], trail: Trail) -> Answer:
        recorder = TrailRecorder.forwarding_to(trail)
        written = " ".join(f"'{alone}'" for _, alone in parts)
        recorder.add(RouteStep("parts", f"it asks {len(parts)} questions: {written}"))
        answers: list[Answer] = []
        for _, alone in parts:
            if answers and recorder.should_stop():
                break
            answers.append(self._answer_whole(replace(question, text=alone), recorder))
        return replace(join_answers(parts, answers), trail=tuple(recorder.steps), usage=recorder.usage())

    def _answer_whole(self, question: Question, trail: Trail) -> Answer:
        graphs: list[PropertyGraph] = []
        if self.graphs is not None and question.scope.documents is None and question.text.strip():
            graphs = graphs_in_scope(self.snapshot, question)
        has_documents = question.scope.graphs is None and len(self.snapshot.documents()) > 0
        recorder = TrailRecorder.forwarding_to(trail)
        started = time.perf_counter()
        readings: tuple[Reading, ...] = ()
        if self.graphs is not None and graphs:
            readings = self.graphs.reader.read(question.text, graphs, alone=not has_documents)
        tables: tuple[TableReading, ...] = ()
        if self.tables is not None and has_documents and not is_likely(readings):
            tables = self.tables.read(question)
        decision = self._decide(question, graphs, readings, tables, has_documents)
        if decision.method == "documents" and not graphs and not tables:
            return self.documents.answer(question, trail)  # there was nothing to decide
        self._record(decision, recorder, time.perf_counter() - started)
        if graphs:
            recorder.add(readings_step(readings, 0.0))
        while True:
            began, calls = time.perf_counter(), recorder.usage().calls
            answer = self._ask(decision, question, readings, tables, recorder)
            MEASURED.observe(decision.method, time.perf_counter() - began, recorder.usage().calls - calls)
            if answer is not None:
                break
            if recorder.should_stop():
                answer = Answer(NOT_FOUND, abstained=True)
                break
            decision = self._next_decision(decision)
            self._record(decision, recorder, 0.0)
        if decision.method == "documents":
            answer = self._follow(question, weigh_beside(answer, readings), readings, tables, recorder)
        has_failed = decision.method == "documents" or answer.text == NOT_FOUND
        if has_failed and self.graphs is not None and not is_stated(answer):
            of_graphs = self.graphs.answer_readings(question, readings, recorder)
            answer = beside_readings(answer, replace(of_graphs, recipe="graph"))
        if has_failed and self.tables is not None and not is_stated(answer):
            of_tables = self.tables.answer_readings(question, tables, recorder)
            answer = answer if of_tables is None else beside_readings(answer, of_tables)
        return replace(answer, trail=tuple(recorder.steps), usage=recorder.usage())

    def _decide(
        self,
        question: Question,
        graphs: Sequence[PropertyGraph],
        readings: Sequence[Reading],
        tables: Sequence[TableReading],
        has_documents: bool,
    ) -> Decision:
        """Return what a question is sent to first."""
        best = readings[0] if readings else None
        if graphs and not has_documents:
            return Decision("graph", "there are no documents to ask")
        walk = ("documents", "--method kgp: a walk over passages")
        if self.drill is not None and _SUMMARY.search(question.text):
            return Decision("drill", "it asks for a summary", (walk,))
        by_triples = () if best is None else (("graph", f"--method graph: {best.triples}"),)
        if (graphs or tables) and self._asks_for_structure(question, tables):
            return Decision("documents", "the question names pages, tables or sections", by_triples)
        if best is not None and best.probability >= STATED_FROM:
            return Decision("graph", f"'{best.graph}' can be asked that: {best.sentence}", (walk,))
        if tables and tables[0].probability >= STATED_FROM:
            reason = f"the table '{tables[0].table}' can be asked that: {tables[0].sentence}"
            return Decision("tables", reason, (*by_triples, walk))
        if self.tables is not None and not graphs and self._has_tables_alone(question):
            return Decision("tables", "there are no documents but tables")
        if tables and self.drill is not None and tables[0].probability >= SQL_FROM:
            reason = f"it may ask the table '{tables[0].table}' ({tables[0].probability:.0%})"
            return Decision("tables", reason, (*by_triples, walk))
        if not graphs:
            return Decision("documents", "there is nothing else to ask")
        if best is None:
            return Decision("documents", "nothing that the graphs can be asked fits the question")
        reason = f"it is not likely enough ({best.probability:.0%}) that it asks the graph '{best.graph}'"
        return Decision("documents", reason, by_triples)

    def _asks_for_structure(self, question: Question, tables: Sequence[TableReading]) -> bool:
        """Return whether a question certainly asks for pages, tables or sections; rows and cells by name are left to
        a table that can be asked for them."""
        finding = self.structures.find_certain(question)
        asks_for_rows = all(reference.kind == ROW for reference in finding.references)
        return bool(finding) and not (finding.references and asks_for_rows and is_likely(tables))

    def _has_tables_alone(self, question: Question) -> bool:
        """Return whether all documents that may answer are files of tables."""
        scope = question.scope.documents
        return all(
            document.media_type in DATA_TYPES
            for document in self.snapshot.documents()
            if scope is None or document.key in scope
        )

    def _follow(
        self,
        question: Question,
        answer: Answer,
        readings: Sequence[Reading],
        tables: Sequence[TableReading],
        recorder: TrailRecorder,
    ) -> Answer:
        """Return the answer of the steps that a question takes, where it is to be stated; else beside the documents'
        ``answer``, which is stated no longer where it answers the first step alone. A model's answer stays."""
        if self.mixed is None or recorder.should_stop() or (is_stated(answer) and answer.confidence is None):
            return answer
        if estimate_nesting(QuestionText(question.text)) < NESTED_FROM:
            return answer
        from clew.methods.mixed import quote_answer

        began = time.perf_counter()
        whole = [*self.mixed.reply(question.text, readings, tables), *quote_answer(answer)]
        chosen = self.mixed.choose(question, whole, recorder)
        MEASURED.observe("mixed", time.perf_counter() - began, 0)
        if chosen is None:
            return answer
        if is_stated(answer):
            words = " ".join([answer.text, *(quote.text for quote in answer.quotes[:1])])
            if not chosen[0].goes_beyond(words):
                return answer
            answer = replace(answer, confidence=min(answer.confidence or 0.0, MOST_PARTIAL))
        if chosen[1] < SHOWN_FROM:
            return answer
        own = TrailRecorder()
        sequence = self.mixed.tell(question, *chosen, own)
        if is_stated(sequence) and sequence.plan is not None:
            reason = f"it takes steps: {sequence.plan.text.replace(chr(10), '; ')}"
            self._record(Decision("mixed", reason), recorder, 0.0)
        for step in own.steps:
            recorder.add(step)
        return sequence if is_stated(sequence) else beside_readings(answer, sequence)

    def _ask(
        self,
        decision: Decision,
        question: Question,
        readings: Sequence[Reading],
        tables: Sequence[TableReading],
        recorder: TrailRecorder,
    ) -> Answer | None:
        """Return the answer of what was decided; None where something else is to be asked."""
        if decision.method == "graph" and self.graphs is not None:
            return replace(self.graphs.answer_readings(question, readings, recorder), recipe="graph")
        if decision.method == "tables" and self.tables is not None:
            if self.drill is not None and not is_likely(tables):
                answer = self.tables.ask(question, recorder)
                return answer if answer is not None and is_stated(answer) else None
            answered = self.tables.answer_readings(question, tables, recorder)
            return answered or Answer(UNSURE, abstained=True, reader="tables", recipe="tables")
        if decision.method == "drill" and self.drill is not None:
            answer = self.drill.answer(question, recorder)
            return None if answer.abstained else answer
        return self.documents.answer(question, recorder)

    def _next_decision(self, decision: Decision) -> Decision:
        """Return that the documents are asked where something else gave no answer."""
        failed = {
            "tables": "the language model wrote no query that can be used",
            "drill": "the sections that were chosen have no answer",
        }[decision.method]
        return Decision("documents", f"{failed}, so the documents were asked")

    def _record(self, decision: Decision, recorder: TrailRecorder, seconds: float) -> None:
        recorder.add(
            RouteStep(
                decision.method,
                decision.reason,
                tuple(f"{method} ({why}); {self._cost(method)}" for method, why in decision.alternatives)
                or None,
                str(self._cost(decision.method)),
                seconds=seconds,
            )
        )

    def _cost(self, method: str) -> Cost:
        calls = _CALLS_WITH_MODEL.get(method, 0) if self.drill is not None else 0
        return MEASURED.expect(method, Cost(calls, MEDIAN_SECONDS[method], is_guess=calls > 0))


def is_likely(readings: Sequence[Reading | TableReading]) -> bool:
    """Return whether the first reading is likely enough to be stated."""
    return bool(readings) and readings[0].probability >= STATED_FROM


def is_stated(answer: Answer) -> bool:
    """Return whether an answer is going to be stated."""
    return answer.weigh().way == "answer"


def weigh_beside(answer: Answer, readings: Sequence[Reading]) -> Answer:
    """Return an answer from documents with the confidence that it has beside readings of graphs. It is fitted to
    questions of which documents answer the share :data:`_OF_DOCUMENTS`; where a graph is likely to be asked, fewer
    are left to them (Bayes' rule for another share). It is never more; that of a table stays."""
    of_graphs = readings[0].probability if readings else 0.0
    odds = (1 - of_graphs) / max(of_graphs, 1e-9) * (1 - _OF_DOCUMENTS) / _OF_DOCUMENTS

    def weigh(confidence: float) -> float:
        return confidence * odds / (1 - confidence + confidence * odds)

    if odds >= 1 or answer.confidence is None or answer.plan is not None:
        return answer
    alternatives = tuple(replace(each, confidence=weigh(each.confidence)) for each in answer.alternatives)
    return replace(answer, confidence=weigh(answer.confidence), alternatives=alternatives)


def beside_readings(answer: Answer, of_readings: Answer) -> Answer:
    """Return possible answers from documents and from graphs or tables as one, the likeliest first.

    Sentences that no model has weighed stand after readings that are likelier right than wrong, before all others.
    """
    if of_readings.abstained:
        return answer
    of_documents = answer.weigh()
    if of_documents.way == "not_found":
        return of_readings
    possible = sorted(
        [*of_documents.perhaps, *of_readings.weigh().perhaps],
        key=lambda each: -(0.5 if each.confidence is None else each.confidence),
    )
    first, *others = possible[:MAX_POSSIBLE]
    return replace(first, others=tuple(replace(other, others=()) for other in others))


def join_answers(parts: Sequence[tuple[str, str]], answers: Sequence[Answer]) -> Answer:
    """Return the answers of the parts of a question as the answer of the whole.

    A part without an answer is named in the text. The whole abstains if every part does, and is as sure as its least
    sure part. Evidence alternates between the parts. Parts that were not asked, since a budget ended, count as not
    answered.
    """
    # A possible answer is one, too: the whole is as sure as that.
    answered = [answer for answer in answers if not answer.abstained or answer.possible]
    if not answered:
        text = next((answer.text for answer in answers if answer.stop_reason), NOT_FOUND)
        return Answer(
            text, _alternate([answer.evidence for answer in answers]), abstained=True, reader="span"
        )
    texts = []
    for part, answer in zip_longest(parts, answers):
        has_answer = answer is not None and (not answer.abstained or answer.possible)
        texts.append(answer.text if has_answer else f"not found: {part[0][:1].lower()}{part[0][1:]}")
    is_short = all(len(text) <= _SHORT and "\n" not in text for text in texts)
    confidences = [answer.confidence for answer in answered]
    known = [confidence for confidence in confidences if confidence is not None]
    readers = {answer.reader for answer in answered}
    return Answer(
        ("; " if is_short else "\n").join(texts),
        _alternate([answer.evidence for answer in answered]),
        tuple(dict.fromkeys(quote for answer in answered for quote in answer.quotes)),
        tuple(quote for answer in answers for quote in answer.rejected_quotes),
        reader=answered[0].reader if len(readers) == 1 else "parts",
        recipe=answered[0].recipe,
        context=_alternate([answer.context for answer in answers]),
        values=tuple(answer.text for answer in answered),
        from_memory=tuple(text for answer in answered for text in answer.from_memory),
        confidence=min(known) if len(known) == len(confidences) else None,
        formula="; ".join(answer.formula for answer in answered if answer.formula),
        by_rule=any(answer.by_rule for answer in answered),
    )


def _alternate(groups: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the first hit of each group, then the second of each, and so on, each node once."""
    hits: dict[str, Hit] = {}
    for row in zip_longest(*groups):
        for hit in row:
            if hit is not None:
                hits.setdefault(hit.node.id, hit)
    return tuple(hits.values())


class Measured:
    """The seconds and calls of the last questions to each method in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._costs: dict[str, deque[Cost]] = {}

    def observe(self, method: str, seconds: float, calls: int) -> None:
        """Remember what a question cost."""
        with self._lock:
            self._costs.setdefault(method, deque(maxlen=_REMEMBERED)).append(Cost(calls, seconds))

    def expect(self, method: str, usual: Cost) -> Cost:
        """Return the medians of what was observed; ``usual`` where that is too little."""
        with self._lock:
            costs = list(self._costs.get(method, ()))
        if len(costs) < _ENOUGH:
            return usual
        return Cost(round(median(cost.calls for cost in costs)), median(cost.seconds for cost in costs))


MEASURED = Measured()
