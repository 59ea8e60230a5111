"""The exact answers of a question: those that meet everything, with every name taken for what is called exactly so.

They need no encoder and no guess. Where a graph lacks a name of the question, the question has no exact answers in
it, and :mod:`clew.methods.focus.solutions` reads the names as near ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from clew.core.arrays import Rows, is_member
from clew.core.errors import UsageError
from clew.core.protocols import PropertyGraph, Snapshot, Trail
from clew.core.trail import CandidateSet, ExactStep
from clew.core.types import ConstraintCheck, Hit, Question
from clew.methods.focus.explanations import edge_hits, find_answer_edges, find_witnesses, property_evidence
from clew.retrieve.nodes import answer_rows
from clew.triples.engine.patterns import Pattern, Predicate, TypedTriple, Variable, restrict_variable
from clew.triples.engine.substitution import substitute
from clew.triples.language.chain import NOT, TypedChain
from clew.triples.language.typed_parsing import parse_typed_statements
from clew.triples.language.wordings import exclude_named_nodes
from clew.triples.query import Compilation, compile_question, solve_question, write_query
from clew.triples.query.evaluation import (
    Element,
    FunnelStep,
    MissedConstraints,
    find_missed_constraints,
    find_near_misses,
    find_reaching_rows,
    list_elements,
    measure_funnel,
)
from clew.triples.query.question import Count, EdgePattern, GraphQuestion, Group

#: Names of answers that the trail shows.
SHOWN_NAMES = 10


@dataclass(frozen=True, eq=False)
class ExactAnswers:
    """The exact answers of one interpretation in one graph: ``rows`` of the nodes that meet all of it, ascending."""

    graph: PropertyGraph
    typed: TypedChain
    question: GraphQuestion
    rows: Rows
    seconds: float
    _evidence: dict[int, dict[object, tuple[Hit, ...]]] = field(default_factory=dict, init=False)

    @cached_property
    def elements(self) -> list[Element]:
        """The constraints of the question."""
        return list_elements(self.question)

    @cached_property
    def pattern(self) -> Pattern:
        """What binds the unknowns, as a pattern of the engine, to look up the edges by which a node is an answer.
        Negations, and edges that are followed repeatedly, are left out."""
        names, types = self.question.names, self.question.types
        terms: dict[str, None] = {}
        edges: dict[EdgePattern, None] = {}
        _collect(self.question.group, terms, edges)
        edges = {edge: None for edge in edges if not edge.repeated}
        return Pattern(
            self.question.target,
            tuple(
                Variable(
                    term,
                    () if term in names else types.get(term, ()),
                    names[term].rows if term in names else None,
                )
                for term in terms
            ),
            (),
            tuple(TypedTriple(edge.head, edge.relations, edge.tail) for edge in edges),
            tuple(test for test in self.question.group.tests if test.property),
        )

    def checks(self, snapshot: Snapshot, row: int, *, evidence: bool) -> tuple[ConstraintCheck, ...]:
        """Return every constraint with whether a node meets it. An answer meets all; another node misses those that
        keep it from being one. With ``evidence``, an answer has the triples by which it meets them."""
        elements = self.elements
        place = int(self.rows.searchsorted(row))
        if place == len(self.rows) or self.rows[place] != row:
            missed = set(find_missed_constraints(self.graph, self.question, row).texts)
            checks = [
                ConstraintCheck(element.text, 0.0 if element.text in missed else 1.0) for element in elements
            ]
        else:
            if evidence and row not in self._evidence:
                self.look_up_evidence(snapshot, [row])
            hits = self._evidence[row] if evidence else {}
            checks = [
                ConstraintCheck(element.text, 1.0, hits.get(_evidence_key(element), ()))
                for element in elements
            ]
        return (*checks, *(ConstraintCheck(f"~ {wish}", None) for wish in self.typed.preferences))

    def look_up_evidence(self, snapshot: Snapshot, rows: Sequence[int]) -> None:
        """Look up the triples by which answers meet their constraints; many at once take hardly longer than one."""
        rows = [row for row in rows if row not in self._evidence and is_member(np.array([row]), self.rows)[0]]
        if not rows:
            return
        graph, pattern = self.graph, self.pattern
        terms: dict[str, None] = {}
        edges: dict[EdgePattern, None] = {}
        _collect(self.question.group, terms, edges)
        # The source of a mounted graph is asked for the edges of the pattern alone.
        answers = None
        if not graph.is_mounted:
            candidates = self._candidates(rows, list(edges))
            answers = find_answer_edges(graph, list(edges), candidates, pattern.target, rows)
        for row, entity in zip(rows, graph.entities(np.array(rows)), strict=True):
            evidence: dict[object, tuple[Hit, ...]] = {}
            if answers is None:
                hits = find_witnesses(snapshot, graph, pattern, row)
                for triple in pattern.triples:
                    if id(triple) in hits:
                        evidence[triple.head, triple.relations, triple.tail] = hits[id(triple)]
            values = property_evidence(graph, pattern, entity)
            evidence |= {test: values[id(test)] for test in pattern.predicates if id(test) in values}
            self._evidence[row] = evidence
        if answers is not None:
            ends = {
                end
                for by_edge in answers
                for walked in by_edge.values()
                for h, _, t in walked
                for end in (h, t)
            }
            ordered = sorted(ends)
            entities = dict(zip(ordered, graph.entities(np.array(ordered, dtype=np.int64)), strict=True))
            for row, by_edge in zip(rows, answers, strict=True):
                for edge, walked in by_edge.items():
                    key = edge.head, edge.relations, edge.tail
                    self._evidence[row][key] = edge_hits(snapshot, graph, walked, entities)

    def _candidates(self, rows: Sequence[int], edges: Sequence[EdgePattern]) -> dict[str, Rows | None]:
        """Return the candidates of each term where the target is one of ``rows``."""
        pattern = restrict_variable(self.pattern, rows)
        for edge in edges:
            closed = next((end for end in edge.ends if end in self.question.names), "")
            if edge.repeated and closed:
                other = edge.tail if closed == edge.head else edge.head
                reaching = find_reaching_rows(self.graph, self.question, edge, closed)
                pattern = restrict_variable(pattern, reaching, other)
        return dict(substitute(self.graph, pattern).candidates)

    def missed_constraints(self, row: int) -> MissedConstraints:
        """Return the constraints that keep a node from being an answer."""
        return find_missed_constraints(self.graph, self.question, row)

    def answers_if_turned(self) -> dict[str, int]:
        """Return how many answers there would be if one triple were followed in the other direction, by the triple as
        it is written, where there would be any."""
        group = self.question.group
        counts = {}
        for place, edge in enumerate(group.edges):
            relations = tuple(directed.opposite for directed in edge.relations)
            edges = (*group.edges[:place], replace(edge, relations=relations), *group.edges[place + 1 :])
            turned = replace(self.question, group=replace(group, edges=edges))
            if edge.text and (rows := solve_question(self.graph, turned)).size:
                counts[edge.text] = len(rows)
        return counts

    def near_misses(self, limit: int) -> Rows:
        """Return nodes that miss one constraint."""
        return find_near_misses(self.graph, self.question, limit)

    def to_step(self) -> ExactStep:
        """Return the step of the trail."""
        first = self.graph.entities(self.rows[:SHOWN_NAMES])
        return ExactStep(
            self.graph.name,
            str(self.typed),
            {self.question.target: CandidateSet(len(self.rows), tuple(entity.name for entity in first))},
            seconds=self.seconds,
        )


@dataclass(frozen=True, slots=True)
class ExactReading:
    """What a question means in one graph, exactly: the SPARQL query, and what each constraint leaves.

    ``missing`` has what the graph does not have under the name that the question gives; there is no query then.
    ``preferences`` rank answers, and are no part of the query.
    """

    graph: str
    sparql: str = ""
    funnel: tuple[FunnelStep, ...] = ()
    missing: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as JSON; the query is null where there is none."""
        return {
            "graph": self.graph,
            "sparql": self.sparql or None,
            "funnel": [
                {"constraint": step.text, "left": step.left, "without": step.without} for step in self.funnel
            ],
            "missing": list(self.missing),
            "preferences": list(self.preferences),
        }


def find_exact_answers(
    graphs: Sequence[PropertyGraph], interpretations: Sequence[TypedChain], question: Question, trail: Trail
) -> list[ExactAnswers]:
    """Return the exact answers of the first interpretation that has any, in each graph that has all its names. If the
    triples are a person's own, a graph that has their names and no answer says that there is none. Empty otherwise.

    A model's triples are read as people ask: what a question asks for is not what it names. They may be mistaken, so
    that they have no answer means little, and types alone are no reading of a question. Raises UsageError for triples
    without a meaning that a person wrote.
    """
    best: list[ExactAnswers] = []
    is_given = bool(question.chain)
    if is_given:
        # As it is written, before words are taken for names that the graph has.
        parse = parse_typed_statements(question.chain)
        interpretations = [] if parse.dropped else [parse.chain]
    for typed in interpretations:
        if question.excludes_named or not is_given:
            typed = exclude_named_nodes(typed)
        try:
            answers = [
                exact
                for graph in graphs
                if (exact := _answer_in(graph, typed, question, only_types=is_given)) is not None
            ]
        except UsageError:
            if is_given:
                raise
            continue
        if any(len(exact.rows) for exact in answers):
            best = [exact for exact in answers if len(exact.rows)]
            break
        best = best or (answers if is_given else [])
    for exact in best:
        trail.add(exact.to_step())
    return best


def explain_readings(graphs: Sequence[PropertyGraph], question: Question) -> list[ExactReading]:
    """Return what the triples of a question mean in each graph. Raises UsageError for triples without a meaning."""
    parse = parse_typed_statements(question.chain)
    if parse.dropped:
        missing = tuple(f"an unknown in '{statement}'" for statement in parse.dropped)
        return [ExactReading(graph.name, missing=missing) for graph in graphs]
    typed = exclude_named_nodes(parse.chain) if question.excludes_named else parse.chain
    return [explain_reading(graph, typed, question) for graph in graphs]


def explain_reading(graph: PropertyGraph, typed: TypedChain, question: Question) -> ExactReading:
    """Return what typed triples mean in a graph. Raises UsageError for a question without a meaning."""
    compilation = _compile(graph, typed, question)
    if compilation.question is None:
        return ExactReading(graph.name, missing=compilation.missing)
    if not graph.is_mounted:
        funnel = tuple(measure_funnel(graph, compilation.question))
        sparql = write_query(graph, compilation.question)
        return ExactReading(graph.name, sparql, funnel, preferences=typed.preferences)
    try:
        sparql = write_query(graph, compilation.question)
    except UsageError as error:
        return ExactReading(graph.name, missing=(str(error),))
    # Parts of the question alone may be what a mounted graph cannot be asked.
    with suppress(UsageError):
        funnel = tuple(measure_funnel(graph, compilation.question))
        return ExactReading(graph.name, sparql, funnel, preferences=typed.preferences)
    return ExactReading(graph.name, sparql, preferences=typed.preferences)


def _compile(graph: PropertyGraph, typed: TypedChain, question: Question) -> Compilation:
    """Return what typed triples ask of a graph, among the nodes that may answer."""
    types = tuple(sorted(question.scope.kinds or ())) or tuple(graph.answer_types())
    return compile_question(graph, typed, answer_rows(graph, types), types)


def _answer_in(
    graph: PropertyGraph, typed: TypedChain, question: Question, only_types: bool
) -> ExactAnswers | None:
    started = time.perf_counter()
    compilation = _compile(graph, typed, question)
    if compilation.question is None:
        return None
    elements = list_elements(compilation.question)
    if all(isinstance(element.part, str) for element in elements) and not (only_types and elements):
        return None
    if graph.is_mounted:
        try:
            write_query(graph, compilation.question)
        except UsageError:
            return None  # it cannot be asked exactly; the near reading says what was not looked up
    rows = solve_question(graph, compilation.question).astype(np.int64)
    return ExactAnswers(graph, typed, compilation.question, rows, time.perf_counter() - started)


def _collect(group: Group, terms: dict[str, None], edges: dict[EdgePattern, None]) -> None:
    """Collect the terms and the edges of a group, and of the counts within it that ask for edges."""
    terms |= dict.fromkeys(group.terms)
    edges |= dict.fromkeys(group.edges)
    for count in group.counts:
        if count.quantifier != NOT and count.quantifier.least:
            _collect(count.group, terms, edges)
            edges[count.edge] = None


def _evidence_key(element: Element) -> object:
    part = element.part.edge if isinstance(element.part, Count) else element.part
    if isinstance(part, EdgePattern):
        return part.head, part.relations, part.tail
    return part if isinstance(part, Predicate) else None
