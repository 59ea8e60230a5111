"""Step 2 of 4StepFocus (Boer et al., 2024, Algorithm 1, line 2): what the graphs leave of a question's
interpretations."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.core.arrays import Floats, Mask, Rows
from clew.core.errors import NotFound
from clew.core.protocols import EntityLinker, PropertyGraph, Snapshot, Trail
from clew.core.trail import CandidateSet, JoinGraphsStep, PrepareStep, SubstituteStep
from clew.core.types import ConstraintCheck, Exclusion, Question
from clew.methods.chain.unknowns import SHOWN_VALUES, Filling
from clew.methods.focus.cross_graph import CrossGraphJoin, hard_constraints, join_graphs
from clew.methods.focus.document_filling import DocumentFiller, checks_of_read_triples, unrestricted_unknowns
from clew.methods.focus.exact import ExactAnswers
from clew.methods.focus.explanations import Explanation, explain_rows
from clew.methods.focus.pattern_builder import (
    LEAST,
    DroppedConstraint,
    PreparedQuestion,
    TriplePreparer,
    exclude_constants,
    triple_words,
    type_texts,
)
from clew.retrieve.nodes import answer_rows
from clew.triples.engine.patterns import (
    Constraint,
    Pattern,
    Predicate,
    TypedTriple,
    Variable,
    restrict_variable,
)
from clew.triples.engine.relaxation import relax, why_not
from clew.triples.engine.substitution import Substitution, substitute
from clew.triples.language.chain import Chain, TypedChain

#: Nodes that a name may stand for whose exclusion is explained.
MAX_EXPLAINED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What substitution leaves of one interpretation of a question in one graph.

    ``pattern`` is what was substituted, with all its constraints, and ``substitution`` the result. ``values_read``
    are the unknowns that were read from documents before, by number. ``join`` has the other graphs that hold a part
    of the question. ``exact`` has the exact answers, where the graph has all names of the question: they are what is
    left. ``is_filtered`` is false where the question has no triples (:meth:`of_all_nodes`). ``paper``: it is the
    paper's own (:mod:`clew.methods.focus.paper`), so only vectors rank its candidates, and all that may answer fill
    the list up. ``widths`` has for each row of the target how many candidates of each constant led to it first, where
    constants were widened (:func:`widen_constants`).
    """

    graph: PropertyGraph
    prepared: PreparedQuestion
    pattern: Pattern
    substitution: Substitution
    values_read: Mapping[int, Filling] = field(default_factory=dict)
    join: CrossGraphJoin | None = None
    is_filtered: bool = True
    exact: ExactAnswers | None = None
    paper: bool = False
    widths: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of_all_nodes(cls, graph: PropertyGraph) -> Solution:
        """Return the solution of a question without triples: every node of a graph is a candidate."""
        target = "#1"
        pattern = Pattern(target, (Variable(target),))
        typed = TypedChain(Chain((), 1))
        step = PrepareStep(str(typed), graph.name, {}, {}, {}, ())
        prepared = PreparedQuestion(graph, typed, pattern, (), (), step, ())
        return cls(graph, prepared, pattern, Substitution(target, {target: None}, 0, 0.0), is_filtered=False)

    @classmethod
    def of_exact_answers(cls, exact: ExactAnswers) -> Solution:
        """Return the solution whose candidates are exact answers."""
        pattern = exact.pattern
        step = PrepareStep(str(exact.typed), exact.graph.name, {}, {}, {}, exact.typed.preferences)
        prepared = PreparedQuestion(exact.graph, exact.typed, pattern, (), (), step, ())
        substitution = Substitution(pattern.target, {pattern.target: exact.rows}, 0, exact.seconds)
        return cls(exact.graph, prepared, pattern, substitution, exact=exact)

    @property
    def kept_pattern(self) -> Pattern:
        """The pattern without the constraints that were given up."""
        return self.pattern.without(self.substitution.relaxed) if self.substitution.relaxed else self.pattern

    @property
    def relaxed_texts(self) -> list[str]:
        """The constraints that were given up, as they are written."""
        return self._texts(self.substitution.relaxed)

    @property
    def restricts_target(self) -> bool:
        """Whether a constraint restricts the target, and something meets it.

        Triples between unknowns alone restrict it only if they are all that the question asks.
        """
        if self.substitution.is_empty:
            return False
        if self.exact is not None:
            return True
        target, pattern = self.pattern.target, self.kept_pattern
        in_triple = any(target in (triple.head, triple.tail) for triple in pattern.triples)
        return (in_triple and self.is_complete) or target not in unrestricted_unknowns(pattern)

    @property
    def is_complete(self) -> bool:
        """Whether the graph has every constraint, and none was given up."""
        return not self.prepared.dropped and not self.substitution.relaxed

    @property
    def meets_everything(self) -> bool:
        """Whether its candidates meet all constraints: none was given up, and what the graph cannot hold was read
        from documents. Of the paper's own form, C_filtered is what it answers."""
        read = checks_of_read_triples(self.prepared.typed, self.values_read)
        all_looked_up = all(dropped.text in read for dropped in self.prepared.dropped)
        return self.paper or (all_looked_up and not self.substitution.relaxed)

    @property
    def may_be_read(self) -> bool:
        """Whether the target may be read from documents: the graph lacks a constraint, what it has does not restrict
        the target, and no constraint is missing that a text cannot speak for (a negated, counted or compared one).
        With such a gap, what is read would answer another question."""
        return not (self.restricts_target or self.is_complete or self._has_unreadable_gap)

    @property
    def _has_unreadable_gap(self) -> bool:
        return any(dropped.strict for dropped in self.prepared.dropped) or any(
            isinstance(constraint, Predicate)
            or (isinstance(constraint, TypedTriple) and constraint.quantifier is not None)
            for constraint in self.substitution.relaxed
        )

    @property
    def has_answers(self) -> bool:
        """Whether its candidates are answers: something restricts them, or the question only has preferences."""
        return self.restricts_target or (bool(self.prepared.soft_words) and self.is_complete)

    @property
    def holds_everything(self) -> bool:
        """Whether the graph has everything that the question asks, and something meets it."""
        return self.restricts_target and self.is_complete

    @property
    def quality(self) -> tuple[bool, int, float]:
        """How good the solution is compared with others: whether it restricts the target, how many constraints hold,
        how sure they are on average."""
        weights = [constraint.weight for constraint in self._kept_hard_constraints()]
        in_other_graphs = sum(len(part.texts) for part in self.join.others) if self.join else 0
        mean = sum(weights) / len(weights) if weights else 0.0
        return self.restricts_target, len(weights) + in_other_graphs, mean

    @property
    def held_constraints(self) -> frozenset[str]:
        """The triples and conditions that hold, as they are written."""
        others = self.join.others if self.join else ()
        return frozenset(self._texts(self._kept_hard_constraints())).union(*(part.texts for part in others))

    def _kept_hard_constraints(self) -> list[TypedTriple | Predicate]:
        relaxed = set(map(id, self.substitution.relaxed))
        return [constraint for constraint in hard_constraints(self.pattern) if id(constraint) not in relaxed]

    def _texts(self, constraints: Sequence[Constraint]) -> list[str]:
        return [self.prepared.constraint_text(constraint, self.pattern) for constraint in constraints]

    def constraint_features(self, rows: Rows) -> Floats:
        """Return how far each row meets the constraints on average, and the one that it meets least, (rows, 2).

        1 is met, and 0 is not.
        """
        if self.exact is not None:
            return np.repeat(np.isin(rows, self.exact.rows).astype(np.float64)[:, None], 2, axis=1)
        has_choices = any(len(constant.rows) > 1 for constant in self.pattern.constants)
        if not self.substitution.relaxed and not has_choices:
            return np.ones((len(rows), 2))
        explanation = self.explain(rows)
        least = explanation.scores.min(axis=1, initial=1.0)
        return np.column_stack([explanation.mean_scores, least])

    def is_wider(self, rows: Rows) -> Mask:
        """Return which rows wider constants added to those of the narrowest scope that has any."""
        narrowest = min(self.widths.values(), default=0)
        return np.array(
            [self.widths.get(row, narrowest) > narrowest for row in rows.tolist()], dtype=np.bool_
        )

    def explain(self, rows: Rows) -> Explanation:
        """Return how far each row meets each constraint."""
        if self.exact is not None:
            return Explanation(self.prepared, self.pattern, rows, np.empty((len(rows), 0)))
        read = checks_of_read_triples(self.prepared.typed, self.values_read)
        return explain_rows(self.prepared, self.pattern, rows, read)

    def checks(
        self,
        explanation: Explanation,
        snapshot: Snapshot,
        place: int,
        *,
        meets_all: bool,
        evidence: bool = True,
    ) -> tuple[ConstraintCheck, ...]:
        """Return the constraints with what the ``place``-th row of an explanation meets, here and in other graphs."""
        if self.exact is not None:
            return self.exact.checks(snapshot, int(explanation.rows[place]), evidence=evidence)
        checks = explanation.checks(snapshot, place, evidence, meets_all or self.join is not None)
        if self.join is None:
            return checks
        texts = [text for part in self.join.others for text in part.texts]
        elsewhere = self.join.checks(int(explanation.rows[place])) if meets_all else {}
        return (*checks, *(elsewhere.get(text) or ConstraintCheck(text, None) for text in texts))

    def candidate_sets(self) -> dict[str, CandidateSet]:
        """Return the candidates of each unknown for the trail: how many, and the names of the first."""
        sets = {}
        for name, rows in self.substitution.candidates.items():
            if name.startswith("#"):
                first = () if rows is None else self.graph.entities(rows[:SHOWN_VALUES])
                count = None if rows is None else len(rows)
                sets[name] = CandidateSet(count, tuple(entity.name for entity in first))
        return sets

    def conflict_texts(self) -> tuple[tuple[str, ...], ...]:
        """Return the sets of constraints that contradict each other, as they are written."""
        return tuple(tuple(self._texts(conflict)) for conflict in self.substitution.conflicts)


@dataclass(frozen=True, slots=True)
class SubstitutionEngine:
    """SUBSTITUTE with PREPARE_TRIPLES_FOR_SUBSTITUTION (Algorithms 2 and 3), over every graph that may answer.

    ``documents`` None: nothing is read from documents. ``widen_to``: constants are widened until so many candidates
    are left (:func:`widen_constants`); None: they are not.
    """

    snapshot: Snapshot
    preparer: TriplePreparer
    documents: DocumentFiller | None = None
    widen_to: int | None = None

    def solve(
        self,
        graphs: Sequence[PropertyGraph],
        interpretations: Sequence[TypedChain],
        question: Question,
        trail: Trail,
    ) -> list[Solution]:
        """Return the solutions that count.

        The first interpretation counts that a graph holds whole, else the one of which most holds. Several graphs
        that hold as much of it have a solution each; graphs that hold parts of it may have one together
        (:mod:`clew.methods.focus.cross_graph`). Without interpretations, all nodes of every graph are candidates.
        Raises ModelError, RemoteError.
        """
        if not interpretations:
            return [Solution.of_all_nodes(graph) for graph in graphs]
        best: list[Solution] = []
        for typed in interpretations:
            solutions = [self._solve_in(graph, typed, question, trail) for graph in graphs]
            if len(solutions) > 1 and not any(solution.holds_everything for solution in solutions):
                joint = self._solve_jointly(solutions, trail)
                solutions += [joint] if joint is not None else []
            first = max(solutions, key=lambda solution: solution.quality)
            solutions = [
                solution
                for solution in solutions
                if solution.quality[:2] == first.quality[:2]
                and solution.held_constraints == first.held_constraints
            ]
            if not best or solutions[0].quality > best[0].quality:
                best = solutions
            if any(solution.holds_everything for solution in solutions) or trail.should_stop():
                break
        return best

    def _solve_in(
        self, graph: PropertyGraph, typed: TypedChain, question: Question, trail: Trail
    ) -> Solution:
        started = time.perf_counter()
        answers = answer_rows(graph, tuple(sorted(question.scope.kinds or ())))
        prepared = self.preparer.prepare(graph, typed, question, answers, trail)
        trail.add(replace(prepared.step, seconds=time.perf_counter() - started))
        pattern, values_read = prepared.pattern, dict[int, Filling]()
        if self.documents is not None:
            pattern, values_read = self.documents.fill_before(prepared, question, trail)
        widths: Mapping[int, int] = {}
        if self.widen_to is not None:
            pattern, widened, widths = widen_constants(graph, pattern, self.widen_to)
        if self.widen_to is not None and not widened.is_empty:
            substitution = widened
        else:
            pattern, substitution = _substitute_or_relax(graph, pattern)
        solution = Solution(graph, prepared, pattern, substitution, values_read, widths=widths)
        trail.add(
            SubstituteStep(
                graph.name,
                pattern.target,
                solution.candidate_sets(),
                substitution.rounds,
                tuple(solution.relaxed_texts) or None,
                solution.conflict_texts() or None,
                seconds=substitution.seconds,
            )
        )
        return solution

    def _solve_jointly(self, solutions: Sequence[Solution], trail: Trail) -> Solution | None:
        """Return what several graphs hold of an interpretation together; None if that is no more than one of them
        holds alone."""
        started = time.perf_counter()
        join = join_graphs(self.snapshot, [solution.prepared for solution in solutions])
        if join is None:
            return None
        main, parts = join.main, (join.main, *join.others)
        answers = main.prepared.pattern.answer_rows
        rows = join.rows if answers is None else np.intersect1d(join.rows, answers)
        texts = (*main.texts, *type_texts(main.pattern))
        held = {text for part in parts for text in part.texts}
        prepared = replace(
            main.prepared,
            pattern=main.pattern,
            texts=texts,
            dropped=_dropped_by_all(main.prepared.typed, solutions, held),
            confidences=tuple(main.confidences[text] for text in texts),
        )
        pattern = restrict_variable(main.pattern, rows)
        substitution = substitute(main.graph, pattern)
        solution = Solution(main.graph, prepared, pattern, substitution, {}, join)
        trail.add(
            JoinGraphsStep(
                main.graph.name,
                pattern.target,
                solution.candidate_sets(),
                substitution.rounds,
                graphs={part.graph.name: tuple(part.texts) for part in parts},
                same={name: tuple(links[:SHOWN_VALUES]) for name, links in join.links.items()},
                seconds=time.perf_counter() - started,
            )
        )
        return solution


def _dropped_by_all(
    typed: TypedChain, solutions: Sequence[Solution], held: Collection[str]
) -> tuple[DroppedConstraint, ...]:
    """Return the constraints that no graph holds of a question that several graphs hold together."""
    by_graph = [
        {dropped.text: dropped for dropped in solution.prepared.dropped if dropped.text not in held}
        for solution in solutions
    ]
    missing = {
        text: dropped
        for text, dropped in by_graph[0].items()
        if all(text in of_graph for of_graph in by_graph)
    }
    for place, triple in enumerate(typed.chain.triples):
        text, strict = typed.statement(place), place in typed.quantifiers
        if text not in held and text not in missing:
            words = "" if strict else triple_words(triple)
            missing[text] = DroppedConstraint(text, words, "no graph has a relation like it", place, strict)
    return tuple(missing.values())


def widen_constants(
    graph: PropertyGraph, pattern: Pattern, wanted: int
) -> tuple[Pattern, Substitution, Mapping[int, int]]:
    """Return the pattern that was substituted, the result with constants widened until ``wanted`` rows are there, and
    with how many candidates of each constant a row was found first.

    Source: the incremental scope expansion of AF-Retriever (Boer, Roth and Kramer, "Autofocus retrieval", 2025), the
    successor of 4StepFocus. Followed: constants are substituted by their first candidate, then by their first 2, 3,
    5, 8 candidates, all at once, and what a narrower scope leaves ranks above what a wider one adds. Different: only
    the rows of the narrowest scope that has any are answers, others are near misses; the target is never the first
    candidate of a constant (:func:`exclude_constants`); where the widest scope leaves nothing, constraints are given
    up as for other near names.
    """
    widest = max((len(constant.rows) for constant in pattern.constants), default=1)
    narrowest = exclude_constants(_narrow_constants(pattern, 1))
    pattern = replace(narrowest, constants=pattern.constants)
    widths: dict[int, int] = {}
    width = 1
    while True:
        substitution = substitute(graph, _narrow_constants(pattern, width))
        if substitution.rows is None:
            return pattern, substitution, {}
        for row in substitution.rows.tolist():
            widths.setdefault(row, width)
        if len(widths) >= wanted or width >= widest:
            break
        width = int(width * 1.5 + 0.5)
    rows = np.array(sorted(widths), dtype=np.int64)
    candidates = {**substitution.candidates, pattern.target: rows}
    return pattern, replace(substitution, candidates=candidates), widths


def _narrow_constants(pattern: Pattern, width: int) -> Pattern:
    """Return the pattern with the first ``width`` candidates of each constant."""
    constants = (
        replace(constant, rows=constant.rows[:width], scores=constant.scores[:width])
        for constant in pattern.constants
    )
    return replace(pattern, constants=tuple(constants))


def _substitute_or_relax(graph: PropertyGraph, pattern: Pattern) -> tuple[Pattern, Substitution]:
    """Return the pattern that was substituted and the result: first with unknowns that are none of the constants,
    then with any unknowns, then without the weakest of contradictory constraints."""
    exclusive = exclude_constants(pattern)
    substitution = substitute(graph, exclusive)
    if not substitution.is_empty:
        return exclusive, substitution
    if exclusive is not pattern and not (inclusive := substitute(graph, pattern)).is_empty:
        return pattern, inclusive
    return exclusive, relax(graph, exclusive)


def explain_exclusions(
    snapshot: Snapshot,
    solution: Solution,
    linker: EntityLinker,
    question: Question,
    name: str,
    trail: Trail,
) -> list[Exclusion]:
    """Return for each node that ``name`` may stand for why it is no answer of a solution.

    The constraints count as they were asked: one that was given up still excludes a node. Raises NotFound if the
    graph has no node of that name.
    """
    graph = solution.graph
    # What other graphs leave is no constraint of this one.
    pattern = solution.join.main.original_pattern if solution.join else solution.pattern
    linked = linker.link(graph, [name], question.text, MAX_EXPLAINED, trail)[0]
    linked = tuple(entity for entity in linked if entity.score >= max(LEAST, linked[0].score - 0.01))
    if not linked:
        raise NotFound(
            f"the graph '{graph.name}' has nothing called '{name}'", "clew graph show lists similar names"
        )
    explanation = solution.explain(np.array([entity.row for entity in linked], dtype=np.int64))
    exclusions = []
    for place, entity in enumerate(linked):
        if solution.exact is not None:
            missed = solution.exact.missed_constraints(entity.row)
            checks = solution.checks(explanation, snapshot, place, meets_all=not missed.texts)
            exclusions.append(
                Exclusion(entity.id, entity.name, missed.texts, missed.alone, missed.restriction, checks)
            )
            continue
        why = why_not(graph, pattern, entity.row)
        constraints = [
            solution.prepared.constraint_text(constraint, pattern) for constraint in why.constraints
        ]
        restriction = ""
        if why.restricted and entity.row in pattern.variable(pattern.target).excluded:
            restriction = "it is what the question itself names"
        elif why.restricted:
            restriction = "it is not of the types that may answer (clew graph add --answers)"
        elif not constraints and not solution.has_answers:
            restriction = "nothing in the question restricts what may answer"
        meets_all = not (constraints or restriction)
        checks = solution.checks(explanation, snapshot, place, meets_all=meets_all)
        join = solution.join
        if meets_all and join is not None and join.others and join.bind_answer(entity.row) is None:
            constraints = [text for part in join.others for text in part.texts]
        each_alone = why.alone or (len(constraints) == 1 and not why.constraints)
        exclusions.append(
            Exclusion(entity.id, entity.name, tuple(constraints), each_alone, restriction, checks)
        )
    return exclusions
