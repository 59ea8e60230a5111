"""One reading of a question over one graph: prepared, substituted, sorted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.chains import TypedChain
from clew.focus import (
    Pattern,
    Predicate,
    Substituted,
    TypedTriple,
    Variable,
    fixed,
    relaxed,
    substitute,
)
from clew.methods.chain.filling import SHOWN
from clew.methods.chain.values import Found
from clew.methods.focus.drafting import Dropped, words_of
from clew.methods.focus.explaining import Explained, explained
from clew.methods.focus.preparing import Prepared, Preparer, distinct, type_texts
from clew.methods.focus.ranking import Sorted, Sorting
from clew.methods.focus.reading import Reading, checked, unrestricted
from clew.methods.focus.several import Joined, hard, joined
from clew.retrieve.entities import NodeRanking, Ranked, answer_rows
from clew.retrieve.nodetexts import NodeTexts, node_texts
from clew.rows import together
from clew.types import Checked, Question, Step

if TYPE_CHECKING:
    from clew.protocols import Floats, PropertyGraph, Rows, Snapshot, Trail

#: Unknowns' candidates whose names a step shows.
NAMED = SHOWN
#: Nodes that may be embedded to fill a list up, for each place of it.
FILLING = 3


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """What one reading of a question comes to in one graph.

    ``pattern`` is what was substituted, with all its constraints; ``solved`` what that gave; ``read`` the unknowns
    that were read from documents before.
    """

    graph: PropertyGraph
    prepared: Prepared
    pattern: Pattern
    solved: Substituted
    read: Mapping[int, Found] = field(default_factory=dict)
    elsewhere: Joined | None = None

    @property
    def kept(self) -> Pattern:
        """The pattern without what was given up."""
        return self.pattern.without(self.solved.relaxed) if self.solved.relaxed else self.pattern

    @property
    def bound(self) -> bool:
        """Whether a constraint restricts the unknown that is asked for, and something meets it.

        Triples between unknowns alone restrict it only where they are all that was asked.
        """
        if self.solved.empty:
            return False
        target, pattern = self.pattern.target, self.kept
        alone = any(target in (one.head, one.tail) for one in pattern.triples) and self.complete
        return alone or target not in unrestricted(pattern)

    @property
    def complete(self) -> bool:
        """Whether the graph holds every constraint, and nothing was given up."""
        return not self.prepared.dropped and not self.solved.relaxed

    @property
    def open(self) -> bool:
        """Whether something was given up or left out that no text can speak for: what is denied, counted or compared.

        What is read in place of the rest would then answer another question.
        """
        return any(one.strict for one in self.prepared.dropped) or any(
            isinstance(one, Predicate) or (isinstance(one, TypedTriple) and one.count is not None)
            for one in self.solved.relaxed
        )

    @property
    def answers(self) -> bool:
        """Whether its candidates answer: something restricts them, or there is nothing but wishes that rank them."""
        return self.bound or (bool(self.prepared.soft) and self.complete)

    @property
    def whole(self) -> bool:
        """Whether everything that is asked is held by the graph, and met."""
        return self.bound and self.complete

    @property
    def worth(self) -> tuple[bool, int, float]:
        """What makes one attempt better than another: constraints that hold, then how sure they are."""
        gone = {id(one) for one in self.solved.relaxed}
        weights = [one.weight for one in hard(self.pattern) if id(one) not in gone]
        more = sum(len(one.texts) for one in self.elsewhere.others) if self.elsewhere else 0
        return self.bound, len(weights) + more, sum(weights) / len(weights) if weights else 0.0

    @property
    def holds(self) -> frozenset[str]:
        """The triples and conditions that hold, as they are written."""
        gone = {id(one) for one in self.solved.relaxed}
        own = {self.prepared.text(one, self.pattern) for one in hard(self.pattern) if id(one) not in gone}
        return frozenset(
            own | {text for one in (self.elsewhere.others if self.elsewhere else ()) for text in one.texts}
        )

    def shares(self, rows: Rows) -> Floats:
        """Return how far each row meets the constraints, (n,), from 0 to 1."""
        unsure = any(len(one.rows) > 1 for one in self.pattern.constants)
        if not self.solved.relaxed and not unsure:
            return np.ones(len(rows))
        return self.explained(rows).means

    def explained(self, rows: Rows) -> Explained:
        """Return how far each row meets each constraint."""
        return explained(self.prepared, self.pattern, rows, checked(self.prepared.typed, self.read))

    def checks(
        self, explained: Explained, snapshot: Snapshot, place: int, *, firm: bool, evidence: bool = True
    ) -> tuple[Checked, ...]:
        """Return what the ``place``-th row meets, with what other graphs hold of it."""
        own = explained.checks(snapshot, place, evidence, firm or self.elsewhere is not None)
        if self.elsewhere is None:
            return own
        texts = [text for part in self.elsewhere.others for text in part.texts]
        found = self.elsewhere.checks(int(explained.rows[place])) if firm else {}
        return (*own, *(found.get(text) or Checked(text, None) for text in texts))

    def elsewhere_met(self, row: int) -> bool:
        """Return whether the other graphs that hold a part of the question hold it of an answer."""
        return self.elsewhere is None or self.elsewhere.bound(row) is not None


@dataclass(frozen=True, slots=True)
class Attempts:
    """Makes attempts, and sorts what they come to.

    ``ranking`` makes what ranks nodes by their texts, of which it embeds as many for one question as it is told, None
    for its own bound.
    """

    snapshot: Snapshot
    preparer: Preparer
    ranking: Callable[[NodeTexts, int | None], NodeRanking]
    reading: Reading | None = None
    k_max: int = 20

    def make(self, graph: PropertyGraph, typed: TypedChain, question: Question, trail: Trail) -> Attempt:
        """Return what a reading of a question comes to in a graph. Raises ModelError, RemoteError."""
        started, answers = time.perf_counter(), self.answers(graph, question)
        prepared = self.preparer.prepare(graph, typed, question, answers, trail)
        detail = {"triples": str(typed), **prepared.said}
        trail.add(Step("prepare", detail, seconds=time.perf_counter() - started))
        pattern, read = prepared.pattern, dict[int, Found]()
        if self.reading is not None:
            pattern, read = self.reading.before(prepared, question, trail)
        pattern, solved = _solved(graph, pattern)
        made = Attempt(graph, prepared, pattern, solved, read)
        trail.add(Step("substitute", self._said(made), seconds=solved.seconds))
        return made

    def join(self, made: Sequence[Attempt], trail: Trail) -> Attempt | None:
        """Return what several graphs hold of a reading together; None where that is no more than one alone does."""
        started = time.perf_counter()
        found = joined(self.snapshot, [one.prepared for one in made])
        if found is None:
            return None
        prepared, answers = found.main.prepared, found.main.prepared.pattern.answers
        rows = found.rows if answers is None else np.intersect1d(found.rows, answers)
        texts = (*found.main.texts, *type_texts(found.main.pattern))
        held = {text for one in (found.main, *found.others) for text in one.texts}
        prepared = replace(
            prepared,
            pattern=found.main.pattern,
            texts=texts,
            dropped=_left_out(prepared.typed, made, held),
            sure=tuple(found.main.sure[text] for text in texts),
        )
        pattern = fixed(found.main.pattern, rows)
        solved = substitute(found.main.graph, pattern)
        graphs = {one.graph.name: list(one.texts) for one in (found.main, *found.others)}
        detail = {"graphs": graphs, "same": {name: list(some[:NAMED]) for name, some in found.links.items()}}
        attempt = Attempt(found.main.graph, prepared, pattern, solved, {}, found)
        seconds = time.perf_counter() - started
        trail.add(Step("join graphs", {**self._said(attempt), **detail}, seconds=seconds))
        return attempt

    def answers(self, graph: PropertyGraph, question: Question) -> Rows | None:
        """Return the rows that may answer, ascending; None for all."""
        return answer_rows(graph, tuple(sorted(question.scope.kinds or ())))

    def sort(self, made: Attempt, question: Question) -> Sorted:
        """Return the candidates of an attempt, sorted and filled up."""
        candidates = made.solved.rows
        if made.graph.mounted:
            rows = np.empty(0, dtype=np.int64) if candidates is None else candidates
            return Sorted(Ranked(rows, np.zeros(len(rows))), Ranked(rows[:0], np.empty(0)), "id", {})
        return self.sorting(made.graph).sort(
            question.text, candidates, made.prepared.soft, self._filling(made, question), made.shares
        )

    def _filling(self, made: Attempt, question: Question) -> Rows | None:
        """Return the rows that may fill up, ascending: of those that may answer the ones of the types asked for."""
        answers, target = self.answers(made.graph, question), made.pattern.variable(made.pattern.target)
        gone = {one.name for one in made.solved.relaxed if isinstance(one, Variable)}
        if not target.types or target.name in gone:
            return answers
        typed = together([made.graph.of_type(type) for type in target.types])
        return typed if answers is None else np.intersect1d(typed, answers)

    def sorting(self, graph: PropertyGraph) -> Sorting:
        """Return what sorts the nodes of a graph."""
        texts = node_texts(self.snapshot, graph)
        filling = self.ranking(texts, FILLING * self.k_max)
        return Sorting(texts, self.ranking(texts, None), self.k_max, filling)

    def _said(self, made: Attempt) -> dict[str, Any]:
        """Return what the trail shows of a substitution."""
        sets: dict[str, Any] = {}
        for name, rows in made.solved.sets.items():
            if not name.startswith("#"):
                continue
            if rows is None:
                sets[name] = {"count": None, "first": []}
                continue
            first = made.graph.entities(rows[:NAMED])
            sets[name] = {"count": len(rows), "first": [one.name for one in first]}
        said: dict[str, Any] = {
            "graph": made.graph.name,
            "asked for": made.pattern.target,
            "candidates": sets,
            "rounds": made.solved.rounds,
        }
        if made.solved.relaxed:
            text = made.prepared.text
            said["given up"] = [text(one, made.pattern) for one in made.solved.relaxed]
            said["contradict"] = [[text(one, made.pattern) for one in some] for some in made.solved.conflicts]
        return said


def _left_out(typed: TypedChain, made: Sequence[Attempt], held: Collection[str]) -> tuple[Dropped, ...]:
    """Return what no graph holds of a question that several hold together."""
    left = [{one.text: one for one in each.prepared.dropped if one.text not in held} for each in made]
    found = {text: one for text, one in left[0].items() if all(text in each for each in left)}
    for place, triple in enumerate(typed.chain.triples):
        text, strict = typed.statement(place), place in typed.counts
        if text not in held and text not in found:
            why = "no graph has a relation like it"
            found[text] = Dropped(text, "" if strict else words_of(triple), why, place, strict)
    return tuple(found.values())


def _solved(graph: PropertyGraph, pattern: Pattern) -> tuple[Pattern, Substituted]:
    """Return the pattern that was substituted, and what that gave: with unknowns that are none of the constants,
    where anything is; then with any; then without the weakest of contradictory constraints."""
    other = distinct(pattern)
    solved = substitute(graph, other)
    if not solved.empty:
        return other, solved
    if other is not pattern and not (same := substitute(graph, pattern)).empty:
        return pattern, same
    return other, relaxed(graph, other)
