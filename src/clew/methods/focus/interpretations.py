"""One reading of a question over one graph: prepared, substituted, sorted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import union
from clew.core.errors import NotFound
from clew.core.steps import CandidateSet, JoinGraphsStep, SubstituteStep
from clew.core.types import ConstraintCheck, Exclusion, Question
from clew.methods.chain.unknowns import SHOWN_VALUES, Filling
from clew.methods.focus.constant_matcher import LEAST
from clew.methods.focus.cross_graph import CrossGraphJoin, hard_constraints, join_graphs
from clew.methods.focus.document_filling import DocumentFiller, checks_of_read_triples, unrestricted_unknowns
from clew.methods.focus.explanations import Explanation, explain_rows
from clew.methods.focus.pattern_builder import (
    DroppedConstraint,
    PreparedQuestion,
    TriplePreparer,
    exclude_constants,
    triple_words,
    type_texts,
)
from clew.methods.focus.sorting import CandidateSorter, SortedCandidates
from clew.retrieve.node_texts import NodeTexts, node_texts
from clew.retrieve.nodes import NodeRanker, RankedRows, answer_rows
from clew.triples.engine.patterns import Pattern, Predicate, TypedTriple, Variable, restrict_variable
from clew.triples.engine.relaxation import relax, why_not
from clew.triples.engine.substitution import Substitution, substitute
from clew.triples.language.typed_chain import TypedChain

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import EntityLinker, PropertyGraph, Snapshot, Trail

#: Unknowns' candidates whose names a step shows.
NAMED = SHOWN_VALUES
#: Nodes that may be embedded to fill a list up, for each place of it.
FILLING = 3


@dataclass(frozen=True, slots=True, eq=False)
class Interpretation:
    """What one reading of a question comes to in one graph.

    ``pattern`` is what was substituted, with all its constraints; ``solved`` what that gave; ``read`` the unknowns
    that were read from documents before.
    """

    graph: PropertyGraph
    prepared: PreparedQuestion
    pattern: Pattern
    substitution: Substitution
    values_read: Mapping[int, Filling] = field(default_factory=dict)
    join: CrossGraphJoin | None = None

    @property
    def kept_pattern(self) -> Pattern:
        """The pattern without what was given up."""
        return self.pattern.without(self.substitution.relaxed) if self.substitution.relaxed else self.pattern

    @property
    def restricts_target(self) -> bool:
        """Whether a constraint restricts the unknown that is asked for, and something meets it.

        Triples between unknowns alone restrict it only where they are all that was asked.
        """
        if self.substitution.is_empty:
            return False
        target, pattern = self.pattern.target, self.kept_pattern
        alone = any(target in (one.head, one.tail) for one in pattern.triples) and self.is_complete
        return alone or target not in unrestricted_unknowns(pattern)

    @property
    def is_complete(self) -> bool:
        """Whether the graph holds every constraint, and nothing was given up."""
        return not self.prepared.dropped and not self.substitution.relaxed

    @property
    def has_unreadable_gap(self) -> bool:
        """Whether something was given up or left out that no text can speak for: what is denied, counted or compared.

        What is read in place of the rest would then answer another question.
        """
        return any(one.strict for one in self.prepared.dropped) or any(
            isinstance(one, Predicate) or (isinstance(one, TypedTriple) and one.quantifier is not None)
            for one in self.substitution.relaxed
        )

    @property
    def has_answers(self) -> bool:
        """Whether its candidates answer: something restricts them, or there is nothing but wishes that rank them."""
        return self.restricts_target or (bool(self.prepared.soft_words) and self.is_complete)

    @property
    def holds_everything(self) -> bool:
        """Whether everything that is asked is held by the graph, and met."""
        return self.restricts_target and self.is_complete

    @property
    def quality(self) -> tuple[bool, int, float]:
        """What makes one attempt better than another: constraints that hold, then how sure they are."""
        gone = {id(one) for one in self.substitution.relaxed}
        weights = [one.weight for one in hard_constraints(self.pattern) if id(one) not in gone]
        more = sum(len(one.texts) for one in self.join.others) if self.join else 0
        return self.restricts_target, len(weights) + more, sum(weights) / len(weights) if weights else 0.0

    @property
    def held_constraints(self) -> frozenset[str]:
        """The triples and conditions that hold, as they are written."""
        gone = {id(one) for one in self.substitution.relaxed}
        own = {
            self.prepared.constraint_text(one, self.pattern)
            for one in hard_constraints(self.pattern)
            if id(one) not in gone
        }
        return frozenset(
            own | {text for one in (self.join.others if self.join else ()) for text in one.texts}
        )

    def mean_scores(self, rows: Rows) -> Floats:
        """Return how far each row meets the constraints, (n,), from 0 to 1."""
        unsure = any(len(one.rows) > 1 for one in self.pattern.constants)
        if not self.substitution.relaxed and not unsure:
            return np.ones(len(rows))
        return self.explain(rows).mean_scores

    def explain(self, rows: Rows) -> Explanation:
        """Return how far each row meets each constraint."""
        return explain_rows(
            self.prepared, self.pattern, rows, checks_of_read_triples(self.prepared.typed, self.values_read)
        )

    def checks(
        self, explained: Explanation, snapshot: Snapshot, place: int, *, firm: bool, evidence: bool = True
    ) -> tuple[ConstraintCheck, ...]:
        """Return what the ``place``-th row meets, with what other graphs hold of it."""
        own = explained.checks(snapshot, place, evidence, firm or self.join is not None)
        if self.join is None:
            return own
        texts = [text for part in self.join.others for text in part.texts]
        found = self.join.checks(int(explained.rows[place])) if firm else {}
        return (*own, *(found.get(text) or ConstraintCheck(text, None) for text in texts))

    def holds_in_other_graphs(self, row: int) -> bool:
        """Return whether the other graphs that hold a part of the question hold it of an answer."""
        return self.join is None or self.join.bind_answer(row) is not None


@dataclass(frozen=True, slots=True)
class SubstitutionEngine:
    """Makes attempts, and sorts what they come to.

    ``ranking`` makes what ranks nodes by their texts, of which it embeds as many for one question as it is told, None
    for its own bound.
    """

    snapshot: Snapshot
    preparer: TriplePreparer
    ranking: Callable[[NodeTexts, int | None], NodeRanker]
    documents: DocumentFiller | None = None
    k_max: int = 20

    def solve(
        self, graph: PropertyGraph, typed: TypedChain, question: Question, trail: Trail
    ) -> Interpretation:
        """Return what a reading of a question comes to in a graph. Raises ModelError, RemoteError."""
        started, answers = time.perf_counter(), self.answer_rows(graph, question)
        prepared = self.preparer.prepare(graph, typed, question, answers, trail)
        trail.add(replace(prepared.step, seconds=time.perf_counter() - started))
        pattern, read = prepared.pattern, dict[int, Filling]()
        if self.documents is not None:
            pattern, read = self.documents.fill_before(prepared, question, trail)
        pattern, solved = _solved(graph, pattern)
        made = Interpretation(graph, prepared, pattern, solved, read)
        trail.add(
            SubstituteStep(
                graph.name,
                pattern.target,
                _candidate_sets(made),
                solved.rounds,
                *_relaxed_texts(made),
                seconds=solved.seconds,
            )
        )
        return made

    def solve_jointly(self, made: Sequence[Interpretation], trail: Trail) -> Interpretation | None:
        """Return what several graphs hold of a reading together; None where that is no more than one alone does."""
        started = time.perf_counter()
        found = join_graphs(self.snapshot, [one.prepared for one in made])
        if found is None:
            return None
        prepared, answers = found.main.prepared, found.main.prepared.pattern.answer_rows
        rows = found.rows if answers is None else np.intersect1d(found.rows, answers)
        texts = (*found.main.texts, *type_texts(found.main.pattern))
        held = {text for one in (found.main, *found.others) for text in one.texts}
        prepared = replace(
            prepared,
            pattern=found.main.pattern,
            texts=texts,
            dropped=_left_out(prepared.typed, made, held),
            confidences=tuple(found.main.confidences[text] for text in texts),
        )
        pattern = restrict_variable(found.main.pattern, rows)
        solved = substitute(found.main.graph, pattern)
        attempt = Interpretation(found.main.graph, prepared, pattern, solved, {}, found)
        trail.add(
            JoinGraphsStep(
                attempt.graph.name,
                pattern.target,
                _candidate_sets(attempt),
                solved.rounds,
                *_relaxed_texts(attempt),
                graphs={one.graph.name: tuple(one.texts) for one in (found.main, *found.others)},
                same={name: tuple(links[:NAMED]) for name, links in found.links.items()},
                seconds=time.perf_counter() - started,
            )
        )
        return attempt

    def answer_rows(self, graph: PropertyGraph, question: Question) -> Rows | None:
        """Return the rows that may answer, ascending; None for all."""
        return answer_rows(graph, tuple(sorted(question.scope.kinds or ())))

    def sort(self, made: Interpretation, question: Question) -> SortedCandidates:
        """Return the candidates of an attempt, sorted and filled up."""
        candidates = made.substitution.rows
        if made.graph.is_mounted:
            rows = np.empty(0, dtype=np.int64) if candidates is None else candidates
            return SortedCandidates(
                RankedRows(rows, np.zeros(len(rows))), RankedRows(rows[:0], np.empty(0)), "id", {}
            )
        return self.sorter_for(made.graph).sort(
            question.text,
            candidates,
            made.prepared.soft_words,
            self._filling(made, question),
            made.mean_scores,
        )

    def _filling(self, made: Interpretation, question: Question) -> Rows | None:
        """Return the rows that may fill up, ascending: of those that may answer the ones of the types asked for."""
        answers, target = self.answer_rows(made.graph, question), made.pattern.variable(made.pattern.target)
        gone = {one.name for one in made.substitution.relaxed if isinstance(one, Variable)}
        if not target.types or target.name in gone:
            return answers
        typed = union([made.graph.rows_of_type(type) for type in target.types])
        return typed if answers is None else np.intersect1d(typed, answers)

    def sorter_for(self, graph: PropertyGraph) -> CandidateSorter:
        """Return what sorts the nodes of a graph."""
        texts = node_texts(self.snapshot, graph)
        filling = self.ranking(texts, FILLING * self.k_max)
        return CandidateSorter(texts, self.ranking(texts, None), self.k_max, filling)


def _candidate_sets(interpretation: Interpretation) -> dict[str, CandidateSet]:
    """Return the candidates of each unknown for the trail: how many, and the names of the first."""
    sets = {}
    for name, rows in interpretation.substitution.candidates.items():
        if name.startswith("#"):
            first = () if rows is None else interpretation.graph.entities(rows[:NAMED])
            count = None if rows is None else len(rows)
            sets[name] = CandidateSet(count, tuple(entity.name for entity in first))
    return sets


def _relaxed_texts(
    interpretation: Interpretation,
) -> tuple[tuple[str, ...] | None, tuple[tuple[str, ...], ...] | None]:
    """Return the constraints that were relaxed and the sets that contradict each other, as they are written; None and
    None where nothing was relaxed."""
    substitution, pattern = interpretation.substitution, interpretation.pattern
    if not substitution.relaxed:
        return None, None
    text = interpretation.prepared.constraint_text
    return (
        tuple(text(constraint, pattern) for constraint in substitution.relaxed),
        tuple(tuple(text(constraint, pattern) for constraint in each) for each in substitution.conflicts),
    )


def _left_out(
    typed: TypedChain, made: Sequence[Interpretation], held: Collection[str]
) -> tuple[DroppedConstraint, ...]:
    """Return what no graph holds of a question that several hold together."""
    left = [{one.text: one for one in each.prepared.dropped if one.text not in held} for each in made]
    found = {text: one for text, one in left[0].items() if all(text in each for each in left)}
    for place, triple in enumerate(typed.chain.triples):
        text, strict = typed.statement(place), place in typed.quantifiers
        if text not in held and text not in found:
            why = "no graph has a relation like it"
            found[text] = DroppedConstraint(text, "" if strict else triple_words(triple), why, place, strict)
    return tuple(found.values())


def _solved(graph: PropertyGraph, pattern: Pattern) -> tuple[Pattern, Substitution]:
    """Return the pattern that was substituted, and what that gave: with unknowns that are none of the constants,
    where anything is; then with any; then without the weakest of contradictory constraints."""
    other = exclude_constants(pattern)
    solved = substitute(graph, other)
    if not solved.is_empty:
        return other, solved
    if other is not pattern and not (same := substitute(graph, pattern)).is_empty:
        return pattern, same
    return other, relax(graph, other)


#: Nodes that a name may stand for that are looked at.
MEANT = 3
_RESTRICTED = "it is not of the types that may answer (clew graph add --answers)"
_CONSTANT = "it is what the question itself names"
_UNANSWERED = "nothing of the question restricts what may answer, so nothing does"


def explain_exclusions(
    snapshot: Snapshot,
    made: Interpretation,
    linker: EntityLinker,
    question: Question,
    name: str,
    trail: Trail,
) -> list[Exclusion]:
    """Return for each node that ``name`` may stand for why it is no answer of an attempt.

    The constraints as they were asked count: what was given up for an answer drops it nevertheless. Raises NotFound
    where the graph has nothing called so.
    """
    # Of several graphs, what the others leave is no constraint of this one.
    graph, pattern = made.graph, made.join.main.original_pattern if made.join else made.pattern
    linked = linker.link(graph, [name], question.text, MEANT, trail)[0]
    linked = tuple(one for one in linked if one.score >= max(LEAST, linked[0].score - 0.01))
    if not linked:
        raise NotFound(
            f"the graph '{graph.name}' has nothing called '{name}'", "clew graph show finds what is alike"
        )
    rows = np.array([one.row for one in linked], dtype=np.int64)
    explained = made.explain(rows)
    found = []
    for place, one in enumerate(linked):
        why = why_not(graph, pattern, one.row)
        constraints = [made.prepared.constraint_text(constraint, pattern) for constraint in why.constraints]
        restricted = ""
        if why.restricted:
            kept_out = one.row in pattern.variable(pattern.target).excluded
            restricted = _CONSTANT if kept_out else _RESTRICTED
        elif not constraints and not made.has_answers:
            restricted = _UNANSWERED
        checks = made.checks(explained, snapshot, place, firm=not (constraints or restricted))
        elsewhere = made.join.others if made.join else ()
        if not constraints and not restricted and elsewhere and not made.holds_in_other_graphs(one.row):
            constraints = [text for part in elsewhere for text in part.texts]
        alone = why.alone or (len(constraints) == 1 and not why.constraints)
        found.append(Exclusion(one.id, one.name, tuple(constraints), alone, restricted, checks))
    return found


# MERGED: Why something is no answer: the constraints that drop it, of the reading and the graphs that answered.
