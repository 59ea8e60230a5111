"""The default method: decides which method answers a question, says why, and asks the documents where graphs fail.

The rules, in their order:

1. Without a graph in scope, and where a question is restricted to documents, the documents are asked (``kgp``: a
   question about structure is answered from pages, tables and sections, any other by a walk).
2. A question about structure ("table 2 on page 4") goes to the documents.
3. A question that clew's parser reads as typed triples, sure of the reading and with every word accounted for, is
   answered from the graph (:mod:`clew.methods.graph_questions`).
4. Everything else goes to the documents. Where the graphs were asked in vain, or the parser was not sure, the answer
   says so and lists the readings that could be asked.

The rules ask for more than a likely reading, because a question about documents that is answered from a graph is
worse than one about a graph that is left to the documents, where the readings stand beside the answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.component import Recipe, Resources, component
from clew.core.protocols import Method, Snapshot, Trail
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question, RouteStep
from clew.methods.graph_questions import (
    GraphQuestions,
    describe_readings,
    graphs_in_scope,
    readings_step,
)
from clew.retrieve.structure.lookup import find_references
from clew.triples.questions import Reading

#: A reading that is not sure is mentioned beside an answer from documents if it is at least so plausible.
WORTH_MENTIONING = 0.3


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a question goes: ``documents`` or ``graph``, why, and what else could be asked."""

    method: str
    reason: str
    alternatives: tuple[str, ...] = ()


@component(
    "router(documents=kgp)",
    summary="the default: a question that clew reads as triples of a graph, and is sure of, goes to the graph, any "
    "other to the documents; the first step says why",
)
@dataclass(frozen=True, slots=True)
class Router:
    """Sends a question to the ``graphs`` or to the ``documents``."""

    snapshot: Snapshot
    documents: Method
    graphs: GraphQuestions | None
    recipe: str = "router"

    @classmethod
    def build(cls, resources: Resources, recipe: str, documents: Recipe) -> Router:
        """Return the method; ``documents`` is the recipe that answers from documents. Raises UsageError."""
        snapshot = resources.snapshot
        graphs = resources.registry.build("recipe", Recipe("graph"), resources) if snapshot.graphs() else None
        return cls(snapshot, resources.registry.build("recipe", documents, resources), graphs, recipe)

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer of the method that the question is sent to. Raises what that method raises."""
        scope = question.scope
        if self.graphs is None or scope.documents is not None or not question.text.strip():
            return self.documents.answer(question, trail)
        graphs = graphs_in_scope(self.snapshot, question)
        if not graphs:
            return self.documents.answer(question, trail)
        recorder = TrailRecorder.forwarding_to(trail)
        started = time.perf_counter()
        readings = tuple(self.graphs.parser.read(question.text, graphs))
        has_documents = scope.graphs is None and len(self.snapshot.documents()) > 0
        decision = self._decide(question, readings, has_documents)
        recorder.add(
            RouteStep(
                decision.method,
                decision.reason,
                decision.alternatives or None,
                seconds=time.perf_counter() - started,
            )
        )
        recorder.add(readings_step(readings, 0.0))
        if decision.method == "graph":
            answer = self.graphs.execute(question, readings, recorder)
            if answer is not None:
                return replace(answer, recipe="graph")
            if has_documents:
                decision = Decision("documents", "the graphs gave no answer, so the documents were asked")
                recorder.add(RouteStep(decision.method, decision.reason))
        if not has_documents:
            return Answer(
                describe_readings(readings),
                trail=tuple(recorder.steps),
                usage=recorder.usage(),
                abstained=True,
                reader="graph",
                recipe="graph",
            )
        answer = self.documents.answer(question, recorder)
        answer = replace(answer, trail=tuple(recorder.steps), usage=recorder.usage())
        worth = [
            reading for reading in readings if reading.plausibility >= WORTH_MENTIONING and reading.count != 0
        ]
        if answer.abstained and worth:
            return replace(answer, text=f"{answer.text}\n{describe_readings(worth)}")
        return answer

    def _decide(self, question: Question, readings: Sequence[Reading], has_documents: bool) -> Decision:
        """Return where a question goes."""
        best = readings[0] if readings else None
        if not has_documents:
            return Decision("graph", "there are no documents to ask")
        walk = "documents (--method kgp): a walk over passages"
        if best is None:
            return Decision("documents", "no name in the question is a node of a graph")
        hops = ", ".join(f"'{hop}'" for hop in best.hops)
        if not best.is_sure:
            return Decision(
                "documents",
                f"the reading over '{best.name}' in the graph '{best.graph}' is not sure: {'; '.join(best.doubts)}",
                (f"graph (--method graph): {best.triples}",),
            )
        if find_references(question.text, self.snapshot, question.scope):
            return Decision(
                "documents",
                "the question names pages, tables or sections",
                (f"graph (--method graph): {best.triples}",),
            )
        return Decision(
            "graph",
            f"'{best.name}' is a node of '{best.graph}', and the question names {hops} "
            f"(probability {best.probability:.2f}); no model call",
            (walk,),
        )
