"""The ranked answers to one question, from all solutions that count, and the answer that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.trail import RankedLine, RankedStep
from clew.core.types import Answer, ConstraintSummary, Hit, RankedAnswer
from clew.methods.answering import NEAREST_HITS, no_answer_text
from clew.methods.evidence import quote_triples
from clew.methods.focus.sorting import MAX_RANKED

if TYPE_CHECKING:
    from clew.core.trail import TrailRecorder
    from clew.core.types import ConstraintCheck
    from clew.methods.chain.unknowns import Candidate
    from clew.methods.focus.solutions import Solution
    from clew.methods.focus.sorting import SortedCandidates

#: Answers whose triples are looked up, and which the trail shows.
SHOWN_ANSWERS = 20
#: Names that the answer's text lists: of answers that are all alike, and of answers whose order says which are
#: better.
LISTED_ALIKE, LISTED_RANKED = 20, 5
#: Answers beyond the ranked ones whose names are given.
MAX_NAMED = 10_000


@dataclass(slots=True)
class AnswerList:
    """The ranked answers to a question, and the names of those that meet all constraints and were not ranked.

    ``solutions`` are those that the answers come from; ``read`` has the hits of the answers that were read from
    documents, by name; ``unnamed`` counts the answers that are not even named. ``by_model``: a model ranks.
    """

    by_model: bool
    solutions: Sequence[Solution] = ()
    ranking: list[RankedAnswer] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    unnamed: int = 0
    read: dict[str, tuple[Hit, ...]] = field(default_factory=dict)
    has_preferences: bool = False

    def add(self, solution: Solution, candidates: SortedCandidates, ranking: Sequence[RankedAnswer]) -> None:
        """Add the answers of a solution, and the names of its other answers."""
        self.ranking += ranking
        self.has_preferences |= bool(solution.prepared.soft_words)
        rows = solution.substitution.rows
        if rows is None or not solution.has_answers:
            return
        others = rows[~np.isin(rows, candidates.matching.rows[:MAX_RANKED])]
        self.names += [entity.name for entity in solution.graph.entities(others[:MAX_NAMED])]
        self.unnamed += max(len(others) - MAX_NAMED, 0)

    def add_read(self, value: Candidate, checks: tuple[ConstraintCheck, ...]) -> None:
        """Add a value that was read from a document, once."""
        if value.hits and value.value not in self.read:
            hit = replace(value.hits[-1], score=value.score)
            self.ranking.append(RankedAnswer(value.value, hit, True, checks, "read"))
            self.read[value.value] = value.hits

    def to_answer(self, record: TrailRecorder, recipe: str) -> Answer:
        """Return the answer with its evidence; its last step is added to the trail."""
        self.ranking.sort(key=lambda answer: (not answer.meets_all, -answer.hit.score))
        text, constraints = self._text() or self._empty_text(), self._constraints()
        # An answer that was read from documents rests on no constraint that was given up or dropped.
        shown = constraints if constraints.triples and not self.read else None
        record.add(
            RankedStep(
                text,
                constraints.matching,
                triples=constraints.triples or None,
                given_up=shown.relaxed if shown else None,
                dropped=shown.dropped if shown else None,
                answers=tuple(_ranked_line(answer) for answer in self.ranking[:SHOWN_ANSWERS]),
                taken_as=constraints.substitutions or None,
            )
        )
        context = tuple(answer.hit for answer in self.ranking)
        evidence = self._evidence() if text else context[:NEAREST_HITS]
        return Answer(
            text or no_answer_text(record),
            evidence,
            quote_triples(evidence) if text else (),
            trail=tuple(record.steps),
            usage=record.usage(),
            abstained=not text,
            reader="focus",
            recipe=recipe,
            context=context,
            values=self.values() if text else (),
            ranking=tuple(self.ranking),
            constraints=constraints,
        )

    def values(self) -> tuple[str, ...]:
        """Return the answers that meet the constraints, best first."""
        return tuple(
            dict.fromkeys([*(answer.name for answer in self.ranking if answer.meets_all), *self.names])
        )

    def _empty_text(self) -> str:
        """Return the answer where exactly nothing meets the question, "" where that is not known."""
        exact = [solution.exact for solution in self.solutions if solution.exact is not None]
        if not exact or len(exact) < len(self.solutions) or self.values():
            return ""
        turned = [
            f"; in the other direction, '{text}' would leave {count:,} (write <<)"
            for answers in exact
            for text, count in answers.answers_if_turned().items()
        ]
        graphs = " or ".join(repr(answers.graph.name) for answers in exact)
        return f"None: no node of {graphs} meets all of this{''.join(turned[:1])}"

    def _text(self) -> str:
        values = self.values()
        listed = LISTED_RANKED if self.by_model or self.has_preferences else LISTED_ALIKE
        more = len(values) - listed + self.unnamed
        return ", ".join(values[:listed]) + (f" and {more:,} more" if more > 0 else "")

    def _evidence(self) -> tuple[Hit, ...]:
        """Return the triples and passages by which the first answers meet the constraints, and their own texts."""
        hits = dict[Hit, None]()
        for answer in [answer for answer in self.ranking if answer.meets_all][:LISTED_ALIKE]:
            hits |= dict.fromkeys(self.read.get(answer.name, ()))
            hits |= dict.fromkeys(hit for check in answer.checks for hit in check.hits)
            hits[answer.hit] = None
        return tuple(hits)

    def _constraints(self) -> ConstraintSummary:
        """Return how the question was understood, and what of it does not hold."""
        matching = sum(answer.meets_all for answer in self.ranking) + len(self.names) + self.unnamed
        solutions = [solution for solution in self.solutions if solution.is_filtered]
        if not solutions:
            return ConstraintSummary("", matching)
        triples = str(solutions[0].prepared.typed)
        substitutions = {
            name: taken
            for solution in reversed(solutions)
            for name, taken in solution.prepared.substitutions.items()
        }
        if self.read:
            return ConstraintSummary(triples, matching, substitutions=substitutions)
        relaxed = dict.fromkeys(text for solution in solutions for text in solution.relaxed_texts)
        dropped = {triple.text: triple.why for solution in solutions for triple in solution.prepared.dropped}
        exact = all(solution.exact is not None for solution in solutions)
        return ConstraintSummary(triples, matching, tuple(relaxed), dropped, exact, substitutions)


def _ranked_line(answer: RankedAnswer) -> RankedLine:
    misses = tuple(answer.missed_constraints) or None
    return RankedLine(answer.name, answer.hit.node.id, answer.ranked_by, answer.meets_all, misses)
