"""Step 3 of 4StepFocus (Boer et al., 2024, Algorithm 1, line 3): candidates in the order of the vectors of their
texts, and the ranked answers that they make.

Beyond the paper, preferences that no triple can express are terms of the score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.arrays import Floats, Rows, union
from clew.core.component import Resources
from clew.core.trail import RankedLine, RankedStep, SortStep, TrailRecorder
from clew.core.types import (
    NEAR_MISS,
    Answer,
    ConstraintCheck,
    ConstraintSummary,
    Hit,
    Plan,
    Question,
    RankedAnswer,
)
from clew.methods.answering import NEAREST_HITS, no_answer_text, quote_triples
from clew.retrieve.nodes import (
    EMBEDDING_CAP,
    NodeBM25,
    NodeFieldSearch,
    NodeRanker,
    NodeTexts,
    NodeVectorSearch,
    RankedRows,
    answer_rows,
    describe_entity,
    node_hit,
    node_hits,
    node_texts,
    rank_and_pad,
)
from clew.triples.engine.patterns import Variable
from clew.triples.linking.entities import node_degrees

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph, Snapshot, Trail
    from clew.methods.chain.unknowns import Candidate
    from clew.methods.focus.exact import ExactAnswers
    from clew.methods.focus.solutions import Solution


#: What sorts candidates: the vectors of their texts, their words, or their fields by both (mFAR).
SortChoice = Literal["vector", "words", "fields"]
#: Candidates that are ranked at most, and that the trail shows.
MAX_RANKED, SHOWN_HITS = 200, 20
#: The weight of all preferences together, against 1 for the question itself.
PREFERENCE_WEIGHT = 0.5
#: What a candidate loses that is met by an unsure constant only, or misses a constraint that was given up.
UNMET_PENALTY = 0.5
#: The weights of :attr:`_Scorer.features` in the score of a candidate: its likeness to the question, how far it meets
#: the constraints on average and at worst, the logarithm of its edges, its likeness to the preferences.
FIXED_WEIGHTS = (1.0, UNMET_PENALTY, 0.0, 0.0, PREFERENCE_WEIGHT)
#: The same as ``python benchmarks/focus_variants.py fusion --number 150`` learned them, on questions whose answers
#: share no word with them (docs/benchmarks/focus-variants.md): the likeness to the question has no weight.
LEARNED_WEIGHTS = (0.0, 0.11, 0.27, 0.26, 1.36)
#: What separates candidates that were found with constants of different width: more than all else together.
WIDTH_STEP = 4.0
#: Nodes that may be embedded for each place of the list that is to be filled up.
EMBEDDED_PER_PLACE = 3
#: Answers whose triples are looked up, and which the trail shows.
SHOWN_ANSWERS = 20
#: Names that the answer's text lists: of answers that are all alike, and of answers whose order says which are
#: better.
LISTED_ALIKE, LISTED_RANKED = 20, 5
#: Answers beyond the ranked ones whose names are given.
MAX_NAMED = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class SortedCandidates:
    """Candidates as hits, best first: those that meet the constraints, then those that only fill the list up.

    ``matching`` are all rows that meet the constraints, in their order, of which the first ``matching_hits`` are
    among ``hits``. ``ranked_by`` says by the id of each hit what ranked it (``vector 0.71``).
    """

    hits: Sequence[Hit]
    matching: RankedRows
    ranked_by: Mapping[str, str]
    has_model_scores: bool = False

    @property
    def matching_hits(self) -> int:
        """How many of the hits meet the constraints."""
        return min(len(self.matching.rows), MAX_RANKED)


@dataclass(frozen=True, slots=True)
class CandidateSorter:
    """VSS: sorts the candidates of a solution, and fills up to ``k_max`` with the nodes that come next.

    ``ranker_for`` makes the ranker of a graph's nodes by their texts: by vector, or by words where there is no
    encoder. Its second argument is how many nodes it may embed for one question, None for its own limit.
    """

    snapshot: Snapshot
    ranker_for: Callable[[NodeTexts, int | None], NodeRanker]
    k_max: int = 20
    weights: Sequence[float] = FIXED_WEIGHTS

    @classmethod
    def build(
        cls, resources: Resources, sort: SortChoice, k_max: int, fusion: Literal["fixed", "learned"] = "fixed"
    ) -> CandidateSorter:
        """Return the sorter of a recipe. Raises UsageError if there is no encoder to sort by vector or by fields."""
        weights = LEARNED_WEIGHTS if fusion == "learned" else FIXED_WEIGHTS
        if sort == "words":
            return cls(resources.snapshot, lambda texts, cap: NodeBM25(texts), k_max, weights)
        encoder = resources.require_encoder(f"focus(sort={sort})")

        def ranker(texts: NodeTexts, cap: int | None) -> NodeRanker:
            search = NodeVectorSearch(encoder, texts, EMBEDDING_CAP if cap is None else cap)
            return NodeFieldSearch(search) if sort == "fields" else search

        return cls(resources.snapshot, ranker, k_max, weights)

    def sort(self, solution: Solution, question: Question, trail: Trail) -> SortedCandidates:
        """Return the candidates, sorted and filled up. A mounted graph has no texts: its candidates keep their order.

        Raises ModelError, RemoteError.
        """
        started, graph, rows = time.perf_counter(), solution.graph, solution.substitution.rows
        if graph.is_mounted:
            matching = np.empty(0, dtype=np.int64) if rows is None else rows
            order = _Order(
                "id", RankedRows(matching, np.zeros(len(matching))), RankedRows(matching[:0], np.empty(0)), {}
            )
        else:
            order = self._order(solution, question)
        hits = self._hits(graph, order)
        rows_of_hits = [*order.matching.rows[:MAX_RANKED].tolist(), *order.padding.rows.tolist()]
        ranked_by = {
            hit.node.id: f"{order.by} {order.own_scores.get(row, 0.0):.2f}"
            for hit, row in zip(hits, rows_of_hits, strict=True)
        }
        if graph.is_mounted and not solution.is_filtered:
            trail.add(SortStep(graph.name, passed_over="it is mounted"))
        else:
            seconds = time.perf_counter() - started
            trail.add(replace(order.to_step(graph.name), hits=tuple(hits[:SHOWN_HITS]), seconds=seconds))
        return SortedCandidates(hits, order.matching, ranked_by)

    def _order(self, solution: Solution, question: Question) -> _Order:
        texts = node_texts(self.snapshot, solution.graph)
        ranker = self.ranker_for(texts, None)
        padding_ranker = self.ranker_for(texts, EMBEDDED_PER_PLACE * self.k_max)
        rows = solution.substitution.rows
        candidates = np.empty(0, dtype=np.int64) if rows is None else rows
        matching, padding = rank_and_pad(
            ranker, question.text, candidates, self.k_max, _padding_rows(solution, question), padding_ranker
        )
        by_words = isinstance(ranker, NodeBM25)
        own_scores = {
            row: score
            for ranked in (matching, padding)
            for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
        }
        if by_words:
            # Divided by the highest score, so that they weigh against preferences as cosines do.
            top = max([1.0, *own_scores.values()])
            own_scores = {row: score / top for row, score in own_scores.items()}
            matching = _with_unranked(matching, candidates)
        wishes = () if solution.paper else solution.prepared.soft_words
        score = _Scorer(
            ranker, own_scores, wishes, solution, FIXED_WEIGHTS if solution.paper else self.weights
        )
        by = "words" if by_words else "fields" if isinstance(ranker, NodeFieldSearch) else "vector"
        return _Order(by, score(matching), score(padding), own_scores)

    def _hits(self, graph: PropertyGraph, order: _Order) -> list[Hit]:
        matching = RankedRows(order.matching.rows[:MAX_RANKED], order.matching.scores[:MAX_RANKED])
        if graph.is_mounted:
            entities = graph.entities(matching.rows)
            return [node_hit(graph.name, entity, describe_entity(entity), 0.0) for entity in entities]
        texts = node_texts(self.snapshot, graph)
        return [*node_hits(texts, matching), *node_hits(texts, order.padding)]


def list_exact_answers(exact: ExactAnswers, k_max: int) -> SortedCandidates:
    """Return exact answers in the order of the graph, without ranking them; where there are none, at most ``k_max``
    near misses."""
    answers = exact.graph.entities(exact.rows[:MAX_RANKED])
    near = [] if answers else exact.graph.entities(exact.near_misses(k_max))
    # Of graphs that are read as one, the one that has the node.
    hits, near_hits = (
        [node_hit(entity.id.partition(":")[0], entity, describe_entity(entity), score) for entity in entities]
        for entities, score in ((answers, 1.0), (near, 0.0))
    )
    ranked_by = {hit.node.id: "exact" for hit in hits} | {hit.node.id: NEAR_MISS for hit in near_hits}
    return SortedCandidates([*hits, *near_hits], RankedRows(exact.rows, np.ones(len(exact.rows))), ranked_by)


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The rows that meet the constraints and those that fill up, best first; ``own_scores`` are the parts of their
    scores that compare them with the question, ``by`` says how."""

    by: str
    matching: RankedRows
    padding: RankedRows
    own_scores: Mapping[int, float]

    def to_step(self, graph: str) -> SortStep:
        """Return the step of the trail, without hits and seconds."""
        return SortStep(
            graph,
            by=self.by,
            kept_by_the_triples=len(self.matching.rows),
            filled_up=len(self.padding.rows),
            sorted=self.matching.counts,
            filling=self.padding.counts,
        )


@dataclass(frozen=True, slots=True)
class _Scorer:
    """Scores rows by the question, by the constraints that they meet, and by preferences."""

    ranker: NodeRanker
    own_scores: Mapping[int, float]
    preferences: Sequence[str]
    solution: Solution
    weights: Sequence[float] = FIXED_WEIGHTS

    def __call__(self, ranked: RankedRows) -> RankedRows:
        if not len(ranked.rows):
            return ranked
        scores = self.features(ranked.rows) @ np.array(self.weights)
        widths = np.array([self.solution.widths.get(row, 0) for row in ranked.rows.tolist()])
        scores -= WIDTH_STEP * np.unique(widths, return_inverse=True)[1]
        order = np.lexsort((np.arange(len(scores)), -scores.round(6)))
        return replace(ranked, rows=ranked.rows[order], scores=scores[order])

    def features(self, rows: Rows) -> Floats:
        """Return what the weights are for, (rows, 5). What the constraints say is what is missing, from -1 to 0."""
        features = np.zeros((len(rows), len(self.weights)))
        features[:, 0] = [self.own_scores.get(row, 0.0) for row in rows.tolist()]
        features[:, 1:3] = self.solution.constraint_features(rows) - 1
        if self.weights[3]:
            features[:, 3] = np.log1p(node_degrees(self.solution.graph, rows))
        for preference in self.preferences:
            features[:, 4] += self._compare(preference, rows) / len(self.preferences)
        return features

    def _compare(self, preference: str, rows: Rows) -> Floats:
        """Return how each row compares with a preference, (rows,), from 0 to 1."""
        ranked = self.ranker.rank(preference, len(rows), np.sort(rows))
        by_row = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        scores = np.array([by_row.get(row, 0.0) for row in rows.tolist()])
        if isinstance(self.ranker, NodeBM25):
            scores /= max(scores.max(initial=0.0), 1e-9)
        clipped: Floats = np.clip(scores, 0.0, 1.0)
        return clipped


def _padding_rows(solution: Solution, question: Question) -> Rows | None:
    """Return the rows that may fill the list up, ascending: those that may answer and have a type of the target;
    None: all."""
    answers = answer_rows(solution.graph, tuple(sorted(question.scope.kinds or ())))
    target = solution.pattern.variable(solution.pattern.target)
    relaxed = {
        constraint.name for constraint in solution.substitution.relaxed if isinstance(constraint, Variable)
    }
    if not target.types or target.name in relaxed or solution.paper:
        return answers
    typed = union([solution.graph.rows_of_type(type) for type in target.types])
    return typed if answers is None else np.intersect1d(typed, answers)


def _with_unranked(ranked: RankedRows, rows: Rows) -> RankedRows:
    """Add the rows that share no word with the question behind those that do: they meet the constraints too."""
    others = np.setdiff1d(rows, ranked.rows)
    return replace(
        ranked,
        rows=np.concatenate([ranked.rows, others]),
        scores=np.concatenate([ranked.scores, np.zeros(len(others))]),
    )


@dataclass(slots=True)
class AnswerList:
    """The ranked answers to a question, and the names of those that meet all constraints and were not ranked.

    ``solutions`` are those that the answers come from; ``read`` has the hits of the answers that were read from
    documents, by name; ``unnamed`` counts the answers that are not even named. ``partial`` counts the nodes that meet
    all but what was given up or what no graph can hold: they are no answers. ``by_model``: a model ranks.
    """

    by_model: bool
    solutions: Sequence[Solution] = ()
    ranking: list[RankedAnswer] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    unnamed: int = 0
    partial: int = 0
    read: dict[str, tuple[Hit, ...]] = field(default_factory=dict)
    has_preferences: bool = False

    def add(self, solution: Solution, candidates: SortedCandidates, ranking: Sequence[RankedAnswer]) -> None:
        """Add the answers of a solution, and the names of its other answers."""
        self.ranking += ranking
        self.has_preferences |= bool(solution.prepared.soft_words)
        rows = solution.substitution.rows
        if rows is None or not solution.has_answers:
            return
        if not solution.meets_everything:
            self.partial += int((~solution.is_wider(rows)).sum())
            return
        others = rows[~np.isin(rows, candidates.matching.rows[:MAX_RANKED]) & ~solution.is_wider(rows)]
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
        self.ranking.sort(key=lambda answer: (not answer.meets_all, not answer.meets_rest, -answer.hit.score))
        values, constraints = self._text(), self._constraints()
        text = values or self._empty_text()
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
            text or self._partial_text(constraints) or no_answer_text(record),
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
            plan=Plan("graph", constraints.triples) if text and constraints.triples else None,
            empty=bool(text) and not values,
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

    def _partial_text(self, constraints: ConstraintSummary) -> str:
        """Return what meets all but what was given up or what no graph can hold, as what it is; "" if there is no
        such node."""
        names = list(dict.fromkeys(answer.name for answer in self.ranking if answer.meets_rest))
        missing = [*constraints.relaxed, *constraints.dropped]
        if not names or not missing:
            return ""
        why = "nothing meets all of this" if constraints.relaxed else "not all of this can be looked up"
        more = self.partial - min(len(names), LISTED_RANKED)
        listed = ", ".join(names[:LISTED_RANKED]) + (f" and {more:,} more" if more > 0 else "")
        without = ", ".join(f"'{text}'" for text in missing)
        return f"No answer: {why}. Without {without} there would be: {listed}"

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
            return ConstraintSummary("", matching, matching_rest=self.partial)
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
        return ConstraintSummary(
            triples, matching, tuple(relaxed), dropped, exact, substitutions, self.partial
        )


def _ranked_line(answer: RankedAnswer) -> RankedLine:
    misses = tuple(answer.missed_constraints) or None
    return RankedLine(answer.name, answer.hit.node.id, answer.ranked_by, answer.meets_all, misses)
