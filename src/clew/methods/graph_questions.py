"""Plain questions over graphs, answered without a language model.

:class:`clew.triples.questions.PlainParser` writes the question as typed triples, ``focus`` or ``chain`` answers
them, so that the trail shows what a person could have written, edited and asked again. An answer is given only for a
reading that accounts for every word; otherwise the likeliest readings are shown. A name that no graph has is read as
the nearest that one has, where only that makes the question sure; the answer says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clew.core.component import Recipe, Resources, component, make_recipe
from clew.core.errors import UsageError
from clew.core.protocols import Method, PropertyGraph, Snapshot, Trail
from clew.core.text import fold_name
from clew.core.trail import ChainStep, QuestionReading, ReadingsStep, TrailRecorder, TriplesStep
from clew.core.types import Answer, Plan, Question, RespellStep, Step
from clew.triples.questions import PlainParser, Reading
from clew.triples.questions.names import Respelling, respell_names
from clew.triples.questions.paths import NAMES_RELATION

#: A question is read again with so many of its names respelt.
_RESPELLINGS = 3
#: How an answer lists the readings of a question that it does not answer.
UNSURE = "Not sure what this asks of the graphs."


@dataclass(frozen=True, slots=True, eq=False)
class GraphAnswer:
    """What the graphs have to say to a question: its readings, and the answer to the one that is sure, if any."""

    readings: tuple[Reading, ...]
    answer: Answer | None = None

    @property
    def sure(self) -> Reading | None:
        """The reading that is answered, None where none is sure."""
        return self.readings[0] if self.readings and self.readings[0].is_sure else None


@component(
    "graph",
    kind="recipe",
    summary="plain questions over graphs, read as typed triples by clew's own parser, without a language model; "
    "where it is not sure it shows the readings",
)
@dataclass(frozen=True, slots=True)
class GraphQuestions:
    """Answers plain questions from the graphs of a base. ``focus`` executes typed triples, ``chain`` chains."""

    snapshot: Snapshot
    parser: PlainParser
    focus: Method
    chain: Method
    recipe: str = "graph"

    @classmethod
    def build(cls, resources: Resources, recipe: str) -> GraphQuestions:
        """Return the method. Raises UsageError."""
        alone = replace(resources, model=None)
        focus = make_recipe("focus", {"sources": "kg", "form": Recipe("none"), "reader": Recipe("short")})
        chain = make_recipe("chain", {"sources": "kg", "reader": Recipe("short")})
        return cls(
            resources.snapshot,
            PlainParser(resources.encoder),
            resources.registry.build("recipe", focus, alone),
            resources.registry.build("recipe", chain, alone),
            recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer, or an abstention that shows the readings. Raises UsageError where there is no graph."""
        graphs = graphs_in_scope(self.snapshot, question)
        if not graphs:
            raise UsageError(
                "'graph' answers from knowledge graphs and there is none here",
                "Add one: clew graph add FILE; or ask the documents: --method kgp",
            )
        recorder = TrailRecorder.forwarding_to(trail)
        result = self.ask_graphs(question, graphs, recorder)
        if result.answer is not None:
            return replace(result.answer, recipe=self.recipe)
        return Answer(
            describe_readings(result.readings),
            trail=tuple(recorder.steps),
            usage=recorder.usage(),
            abstained=True,
            reader="graph",
            recipe=self.recipe,
        )

    def read(self, question: Question, graphs: Sequence[PropertyGraph], trail: Trail) -> tuple[Reading, ...]:
        """Return the readings of a question, likeliest first."""
        started = time.perf_counter()
        readings = tuple(self.parser.read(question.text, graphs))
        trail.add(readings_step(readings, time.perf_counter() - started))
        return readings

    def ask_graphs(
        self, question: Question, graphs: Sequence[PropertyGraph], recorder: TrailRecorder
    ) -> GraphAnswer:
        """Return the readings of a question and, where one is sure and has answers, its answer."""
        readings = self.read(question, graphs, recorder)
        if not (readings and readings[0].is_sure) and (respelt := self.respell(question, graphs)) is not None:
            respelling, readings = respelt
            recorder.add(RespellStep(respelling.written, respelling.name, respelling.graph))
            recorder.add(readings_step(readings, 0.0))
        return GraphAnswer(readings, self.execute(question, readings, recorder))

    def respell(
        self,
        question: Question,
        graphs: Sequence[PropertyGraph],
        may_be_misspelt: Callable[[str], bool] = lambda word: True,
    ) -> tuple[Respelling, tuple[Reading, ...]] | None:
        """Return the spelling of a name with which a question is sure, and its readings; None where no spelling does
        that, or where two equally near ones do. ``may_be_misspelt`` says which words may be part of such a name."""
        respellings: list[Respelling] = []
        for graph in graphs:
            if not graph.is_mounted and graph.size:
                respellings += respell_names(graph, question.text, may_be_misspelt)
        respellings.sort(key=lambda each: each.rank)
        sure: list[tuple[Respelling, tuple[Reading, ...]]] = []
        for respelling in respellings[:_RESPELLINGS]:
            if sure and respelling.rank > sure[0][0].rank:
                break
            readings = tuple(self.parser.read(respelling.question, graphs))
            best = readings[0] if readings else None
            # A guessed name and a relation that no word names would be two guesses.
            is_named = best is not None and best.is_sure and best.explained >= NAMES_RELATION
            if best is not None and is_named and best.graph == respelling.graph:
                sure.append((respelling, readings))
        return sure[0] if len({fold_name(respelling.question) for respelling, _ in sure}) == 1 else None

    def execute(
        self, question: Question, readings: Sequence[Reading], recorder: TrailRecorder
    ) -> Answer | None:
        """Return the answer of the first reading where it is sure and the graph has an answer; else None."""
        if not readings or not readings[0].is_sure:
            return None
        answer = self.answer_reading(question, readings[0], recorder)
        return (
            None if answer is None else replace(answer, trail=tuple(recorder.steps), usage=recorder.usage())
        )

    def answer_reading(self, question: Question, reading: Reading, trail: Trail) -> Answer | None:
        """Return the answer of a reading, sure or not; None where the graph has none."""
        method = self.chain if reading.is_chain else self.focus
        scoped = replace(
            question, chain=reading.triples, scope=replace(question.scope, graphs=frozenset([reading.graph]))
        )
        answer = method.answer(scoped, ParserTrail(trail))
        if answer.abstained or not answer.values:
            return None
        text = answer.text
        if reading.settled and not reading.is_chain:
            text = reading.settled.capitalize() if reading.settled in {"yes", "no"} else reading.settled
        elif reading.settled and fold_name(text) != fold_name(reading.settled):
            return None  # the chain was filled with other values than the parser compared
        if reading.asks_count:
            text = f"{reading.count:,}: {text}" if reading.count is not None else text
        operation = (
            "count" if reading.asks_count else "yes_no" if reading.settled in {"yes", "no"} else "list"
        )
        plan = Plan("chain" if reading.is_chain else "graph", reading.triples, operation)
        return replace(answer, text=text, plan=plan, by_rule=True)


@dataclass(frozen=True, slots=True)
class ParserTrail:
    """Passes steps on, and says of the triples of a question that the parser wrote them."""

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
                reading.count,
                "; ".join(reading.doubts) or None,
                reading.repair or None,
            )
            for reading in readings
        ),
        seconds=seconds,
    )


def describe_readings(readings: Sequence[Reading]) -> str:
    """Return the readings of a question that is not answered, each as it can be asked again."""
    worth = [reading for reading in readings if reading.count != 0 or reading is readings[0]]
    if not worth:
        return f"{UNSURE} No name in it is a node of a graph; names are compared in full: clew graph show GRAPH NAME."
    lines = [f"{UNSURE} It may mean:"]
    for number, reading in enumerate(worth, 1):
        size = "" if reading.count is None else f", {reading.count:,} answer{'s' * (reading.count != 1)}"
        option = "--chain" if reading.is_chain else "--triples"
        lines.append(f"{number}. {option} '{reading.triples}'  ({reading.graph}{size})")
        if reading.doubts:
            lines.append(f"   {'; '.join(reading.doubts)}")
    return "\n".join(lines)
