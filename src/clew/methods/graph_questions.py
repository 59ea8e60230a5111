"""Plain questions over graphs, read by clew's own models, and by a language model where these are not sure.

:class:`clew.questions.reading.QuestionReader` finds the formal queries that a question may mean and how likely each
is. The likeliest is run exactly as it reads, as typed triples that a person could have written, edited and asked
again; an empty set is an answer. How likely it is says whether it is stated or shown as possible, beside the next
readings. Where none is likely enough to be stated and a language model is set, that writes the query
(:mod:`clew.methods.graph_writer`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.component import Recipe, Resources, component, make_recipe
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.protocols import Method, PropertyGraph, Snapshot, Trail
from clew.core.trail import ChainStep, QuestionReading, ReadingsStep, TrailRecorder, TriplesStep
from clew.core.types import MAX_POSSIBLE, SHOWN_FROM, STATED_FROM, Answer, Plan, Question, Step
from clew.methods.answering import record_stop
from clew.methods.chain.graph_source import create_entity_linker
from clew.methods.graph_writer import GraphQueryWriter, is_empty
from clew.questions.plans import LIST
from clew.questions.reading import QuestionReader, Reading
from clew.triples.linking.linked_graphs import MOST_JOINED

#: How likely an empty set is the answer where a language model wrote the query. Set by hand: it is not stated.
MOST_EMPTY = STATED_FROM - 0.01
#: How an answer begins where no reading is likely enough to be shown.
UNSURE = "No answer that clew is sure of."


@component(
    "graph",
    kind="recipe",
    summary="plain questions over graphs, read as typed triples by clew's own models; where these are not sure a "
    "language model writes the triples, or the likeliest readings are shown with their answers",
)
@dataclass(frozen=True, slots=True)
class GraphQuestions:
    """Answers plain questions from the graphs of a base. ``focus`` runs typed triples and gives their evidence;
    ``writer`` is None without a language model."""

    snapshot: Snapshot
    reader: QuestionReader
    focus: Method
    writer: GraphQueryWriter | None = None
    recipe: str = "graph"

    @classmethod
    def build(cls, resources: Resources, recipe: str) -> GraphQuestions:
        """Return the method. Raises UsageError."""
        alone = replace(resources, model=None)
        focus = make_recipe(
            "focus", {"sources": "kg", "form": Recipe("none"), "reader": Recipe("extractive")}
        )
        reader = QuestionReader(resources.tools.plan_judge(), resources.snapshot)
        writer = None
        if resources.model is not None:
            linker = create_entity_linker(resources, "ranked", "graph")
            writer = GraphQueryWriter(resources.model, linker, resources.snapshot)
        run = resources.registry.build("recipe", focus, alone)
        return cls(resources.snapshot, reader, run, writer, recipe)

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer, possible ones, or that none is likely. Raises UsageError where there is no graph."""
        graphs = graphs_in_scope(self.snapshot, question)
        if not graphs:
            raise UsageError(
                "'graph' answers from knowledge graphs and there is none here",
                "Add one: clew graph add FILE; or ask the documents: --method kgp",
            )
        recorder = TrailRecorder.forwarding_to(trail)
        return replace(
            self.answer_readings(question, self.read(question, graphs, recorder), recorder),
            recipe=self.recipe,
        )

    def read(self, question: Question, graphs: Sequence[PropertyGraph], trail: Trail) -> tuple[Reading, ...]:
        """Return the readings of a question, the likeliest first."""
        started = time.perf_counter()
        readings = self.reader.read(question.text, graphs, MAX_POSSIBLE, alone=True)
        trail.add(readings_step(readings, time.perf_counter() - started))
        return readings

    def answer_readings(
        self, question: Question, readings: Sequence[Reading], recorder: TrailRecorder
    ) -> Answer:
        """Return the answer of the likeliest reading, with those of the next ones where it is not to be stated; an
        abstention where none is likely. Where none is to be stated, a language model is asked for one; not for what
        may be asked of documents alone."""
        likely = [reading for reading in readings if reading.probability >= SHOWN_FROM]
        is_sure = bool(likely) and likely[0].probability >= STATED_FROM
        if self.writer is not None and not is_sure and (likely or not len(self.snapshot.documents())):
            written = self._answer_by_model(question, recorder)
            if written is not None:
                return written
        if not likely:
            text = UNSURE if readings else f"{UNSURE} Nothing that the graphs can be asked fits the question."
            return Answer(
                text, trail=tuple(recorder.steps), usage=recorder.usage(), abstained=True, reader="graph"
            )
        answer = self.answer_reading(question, likely[0], recorder)
        if len(readings) > 1 and likely[0].probability >= STATED_FROM:
            second = f"Next likely ({readings[1].probability:.0%}): {readings[1].sentence}"
            answer = replace(answer, formula=f"{answer.formula} {second}")
        if answer.confidence is not None and answer.confidence < STATED_FROM:
            others = (self.answer_reading(question, reading, TrailRecorder()) for reading in likely[1:])
            answer = replace(answer, others=tuple(others))
        return replace(answer, trail=tuple(recorder.steps), usage=recorder.usage())

    def _answer_by_model(self, question: Question, recorder: TrailRecorder) -> Answer | None:
        """Return the answer of the query that a language model writes, None if it writes none that can be asked. That
        nothing meets it is only possible."""
        assert self.writer is not None
        try:
            reading = self.writer.write(question, graphs_in_scope(self.snapshot, question), recorder)
        except BudgetExceeded as error:
            record_stop(recorder, error)
            return None
        if reading is None:
            return None
        answer = self.answer_reading(question, reading, recorder)
        confidence = MOST_EMPTY if is_empty(reading) else None
        steps = tuple(recorder.steps)
        return replace(
            answer, confidence=confidence, reader=self.writer.model.name, trail=steps, usage=recorder.usage()
        )

    def answer_reading(self, question: Question, reading: Reading, trail: Trail) -> Answer:
        """Return the answer of a reading, with the triples that prove it."""
        scope = replace(question.scope, graphs=frozenset([reading.graph]))
        proof = Answer("", abstained=True)
        if len(reading.rows):
            proof = self.focus.answer(
                replace(question, chain=reading.triples, scope=scope), ParserTrail(trail)
            )
        operation = reading.plan.operation
        text = ", ".join(reading.values)
        if reading.is_empty:
            text = f"None. Nothing in {reading.place} meets: {reading.sentence}"
        elif operation == LIST and not proof.abstained:
            text = proof.text
        return replace(
            proof,
            text=text,
            abstained=False,
            values=reading.values,
            empty=reading.is_empty,
            ranking=proof.ranking if operation == LIST else (),
            reader="graph",
            confidence=reading.probability,
            plan=Plan("graph", reading.triples, operation),
            formula=f"Read as: {reading.sentence}. {describe_count(reading)}.",
        )


def describe_count(reading: Reading) -> str:
    """Say how many nodes of its graph meet a reading.

    >>> import numpy as np
    >>> from clew.questions.plans import GraphPlan
    >>> describe_count(Reading(GraphPlan(()), "people", "", 0.9, np.arange(2), ("Ann", "Bo")))
    "2 in the graph 'people' fit"
    """
    count = len(reading.rows)
    return f"{count or 'Nothing'} in {reading.place} {'fit' if count > 1 else 'fits'}"


@dataclass(frozen=True, slots=True)
class ParserTrail:
    """Passes steps on, and says of the triples of a question that clew wrote them."""

    trail: Trail

    def add(self, step: Step) -> None:
        """Pass a step on."""
        if isinstance(step, TriplesStep | ChainStep):
            step = replace(step, written_by="clew's parser")
        self.trail.add(step)

    def should_stop(self) -> bool:
        """Return whether the caller wants the work to end."""
        return self.trail.should_stop()


def graphs_in_scope(snapshot: Snapshot, question: Question) -> list[PropertyGraph]:
    """Return the graphs that may answer a question."""
    wanted = question.scope.graphs
    return [snapshot.graph(name) for name in snapshot.graphs() if wanted is None or name in wanted]


def readings_step(readings: Sequence[Reading], seconds: float) -> Step:
    """Return the step that shows readings."""
    return ReadingsStep(
        tuple(
            QuestionReading(
                reading.triples,
                reading.graph,
                round(reading.probability, 3),
                len(reading.rows),
                reading.sentence,
            )
            for reading in readings
        ),
        f"too large to be read as one: over {MOST_JOINED:,} nodes and edges"
        if any(reading.apart for reading in readings)
        else None,
        seconds=seconds,
    )
