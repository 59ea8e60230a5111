"""A plain question over graphs: the plans that it may mean, the likeliest first, each with the probability that it is
meant.

Options are enumerated (:mod:`clew.questions.graph_plans`), a linear score keeps the two dozen likeliest, these are
run exactly as they read, a second linear score knows what came of it, and a judge that reads question and plan
corrects the scores of the first dozen. One fitted function makes of all this the probability of the first reading.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.types import STATED_FROM
from clew.questions.catalogue import GraphCatalogue, Step
from clew.questions.direction import (
    DirectionScorer,
    find_ends,
    name_ends,
    read_cues,
    say_ways,
    stands_first,
    turn_plan,
)
from clew.questions.graph_plans import GraphPlanner, Option
from clew.questions.linear import (
    FEATURES,
    JUDGED,
    LinearScore,
    NetworkScore,
    add_outcomes,
    correct_scores,
    log_odds,
    measure_options,
)
from clew.questions.names import NameMatch, NameScorer, find_names
from clew.questions.plans import (
    COUNT,
    LIST,
    VALUE,
    YES_NO,
    GraphPlan,
    explain_plan,
    run_plan,
    say_plan,
    type_unknowns,
)
from clew.questions.shapes import ShapeClassifier, hash_runs, mask_words
from clew.questions.slots import SlotScorer, mask_names
from clew.questions.text import MOST_MISFIT, QuestionText, is_misfit
from clew.triples.linking.linked_graphs import AND, LinkedGraph, is_joinable, join_linked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import PlanJudge, PropertyGraph, Snapshot

#: Options of a graph that are run.
RUN = 24
#: The highest probability of a "no" from a graph without types: nothing there says that a name is of the wrong kind
#: for a relation ("Is Rain on Slate the director of Kismet?"). Set by hand, beside the fitted confidence.
MOST_UNTYPED = STATED_FROM - 0.01
#: Catalogues that are remembered.
_REMEMBERED = 16
#: What the probability of a reading is fitted to.
CONFIDENCE = (
    "log-odds of its share",
    "log-odds of its share without the judge",
    "the features have it first, too",
    "distance to the next with another answer",
    "log probability of the shape",
    "least slot",
    "certain names left out",
    "values left out",
    "words left out",
    "likeness of names",
    "correction by the judge",
    "no answer",
    "several answers",
    *(f"operation {operation}" for operation in (LIST, COUNT, YES_NO, VALUE)),
    "ways are weighed",
    "log-odds of the way",
    "graphs alone are asked",
    "bias",
)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A plan that a question may mean, in the graph called ``graph``; ``sentence`` says it to the person who asked.
    Graphs that links join have all their names there (:mod:`clew.triples.linking.linked_graphs`). ``apart``:
    there are several graphs, too large to be read as one.

    ``probability`` that it is meant, from 0 to 1. ``rows`` are the nodes that meet it, ``values`` what it answers:
    the names of nodes, values of a property, a number, yes or no; empty where nothing meets it. ``types`` are those
    of the first node of a list.
    """

    plan: GraphPlan
    graph: str
    sentence: str
    probability: float
    rows: Rows
    values: tuple[str, ...]
    apart: bool = False
    types: frozenset[str] = frozenset()

    @property
    def triples(self) -> str:
        """The plan as typed triples, which a person can change and ask again."""
        return self.plan.triples

    @property
    def place(self) -> str:
        """Where it is asked, for people."""
        *others, last = self.graph.split(AND)
        if not others:
            return f"the graph '{last}'"
        names = ", ".join(f"'{name}'" for name in others)
        return f"the graphs {names} and '{last}', joined by confirmed links,"

    @property
    def is_empty(self) -> bool:
        """Whether the answer is that there is none."""
        return self.plan.operation in (LIST, VALUE) and not self.values


@dataclass(frozen=True, slots=True)
class PlanModel:
    """The fitted parts of reading a question: names, slots, shapes, the scores of options before and after they are
    run, the weights of the score and of the judge's likenesses beside each other, the score of "none of these", the
    confidence, and which way round a relation is meant."""

    names: NameScorer
    slots: SlotScorer
    shapes: ShapeClassifier
    before: LinearScore
    after: NetworkScore
    scale: float
    judge: Floats
    none: float
    confidence: Floats
    direction: DirectionScorer
    asked: DirectionScorer

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PlanModel:
        """Return the model of the arrays that :meth:`to_arrays` gives."""
        return cls(
            NameScorer(arrays["names"]),
            SlotScorer(arrays["slots_steps"], arrays["slots_types"], arrays["slots_properties"]),
            ShapeClassifier.of_arrays(arrays),
            LinearScore.of_arrays(arrays, "before"),
            NetworkScore.of_arrays(arrays, "after"),
            float(arrays["scale"]),
            arrays["judge"],
            float(arrays["none"]),
            arrays["confidence"],
            DirectionScorer.of_arrays(arrays, "direction"),
            DirectionScorer.of_arrays(arrays, "asked"),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        return {
            "names": self.names.weights,
            "slots_steps": self.slots.steps,
            "slots_types": self.slots.types,
            "slots_properties": self.slots.properties,
            **self.shapes.to_arrays(),
            **self.before.to_arrays("before"),
            **self.after.to_arrays("after"),
            "scale": np.array(self.scale),
            "judge": self.judge,
            "none": np.array(self.none),
            "confidence": self.confidence,
            **self.direction.to_arrays("direction"),
            **self.asked.to_arrays("asked"),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An option of a graph that was run: its features, (:data:`FEATURES`,), and the rows of what meets it."""

    option: Option
    catalogue: GraphCatalogue
    features: Floats
    score: float
    rows: Rows

    @property
    def sentence(self) -> str:
        """The plan in words, for the judge."""
        return say_plan(self.option.plan, type_unknowns(self.option.plan, self.catalogue))

    @property
    def values(self) -> tuple[str, ...]:
        """What it answers."""
        return answer_plan(self.catalogue.graph, self.option.plan, self.rows)

    @property
    def repeats_names(self) -> bool:
        """Whether it lists nothing but nodes that it names: what is asked about is no answer."""
        names = self.option.plan.names
        is_short = self.option.plan.operation == LIST and 0 < len(self.rows) <= len(names)
        return is_short and set(self.values) <= set(names)

    @property
    def denies_untyped(self) -> bool:
        """Whether it answers "no" from a graph without types."""
        return self.option.plan.operation == YES_NO and not len(self.rows) and not self.catalogue.types

    def agrees_with(self, other: Candidate) -> bool:
        """Return whether two options answer the same."""
        ours, theirs = self.option.plan, other.option.plan
        if self.catalogue.graph.name != other.catalogue.graph.name or ours.operation != theirs.operation:
            return False
        return ours.asked_property == theirs.asked_property and np.array_equal(self.rows, other.rows)


def _is_allowed(plan: GraphPlan, catalogue: GraphCatalogue, names: Sequence[NameMatch]) -> bool:
    """Return whether what a plan names can have its relation as it stands there: by its types, without any where both
    ends of the relation are of one kind."""
    (edge,) = plan.edges
    is_tail = isinstance(edge.tail, str)
    step, name = Step(edge.relations[0], is_tail), edge.tail if is_tail else edge.head
    return any(
        catalogue.sources[step] & match.types if match.types else catalogue.mixes_ends(step.relation)
        for match in names
        if match.name == name
    )


class QuestionReader:
    """Reads plain questions over graphs, with the trained parts that ``judge`` holds. No language model. Graphs of
    ``snapshot`` are read as one where confirmed links join them."""

    def __init__(self, judge: PlanJudge, snapshot: Snapshot | None = None) -> None:
        self.judge, self.snapshot = judge, snapshot
        self.model = PlanModel.of_arrays(judge.arrays)

    def read(
        self, text: str, graphs: Sequence[PropertyGraph], most: int = 3, *, alone: bool = False
    ) -> tuple[Reading, ...]:
        """Return the likeliest readings of a question, of those that answer the same only the first; () where no plan
        over the graphs fits it. Mounted graphs are left out: only typed triples ask them. ``alone``: nothing but
        these graphs is asked, so that the question is likelier about them."""
        question = QuestionText(text)
        candidates: list[Candidate] = []
        graphs = [graph for graph in graphs if not graph.is_mounted and graph.size]
        apart = self.snapshot is not None and len(graphs) > 1 and not is_joinable(graphs)
        joined = join_linked(self.snapshot, graphs) if self.snapshot else ()
        linked = {graph.name for each in joined for graph in each.graphs}
        for graph in (*joined, *(graph for graph in graphs if graph.name not in linked)):
            candidates += self.find_candidates(question, open_catalogue(graph))
        candidates = sorted(candidates, key=lambda each: -each.score)[:RUN]
        if not candidates:
            return ()
        likeness = self.judge.compare(text, [each.sentence for each in candidates[:JUDGED]])
        corrections = correct_scores(self.model.judge, likeness, len(candidates))
        ranked = rank_candidates(self.model, candidates, corrections)
        likeliest = candidates[ranked.order[0]]
        ways = weigh_ways(self.model, self.judge, question, likeliest)
        likeliest = likeliest if ways is None else ways.likelier
        measured = measure_first(ranked.features, likeliest, ways, alone=alone)
        first = float(1 / (1 + np.exp(-measured @ self.model.confidence)))
        first = first if ways is None else min(first, ways.certainty)
        if likeliest.denies_untyped:
            first = min(first, MOST_UNTYPED)
        if is_misfit(question, likeliest.values):
            first = min(first, MOST_MISFIT)
        readings = [self._make_reading(likeliest, first)]
        if ways is not None:
            other = first * (1 - ways.certainty) / ways.certainty
            readings.append(self._make_reading(ways.other, min(other, 1 - first)))
        for place in ranked.order[1:]:
            if len(readings) == most:
                break
            if ranked.shares[place] > 0 and not any(
                candidates[place].agrees_with(before)
                for before in (
                    *([] if ways is None else [ways.turned]),
                    *(candidates[before] for before in ranked.order[: ranked.order.index(place)]),
                )
            ):
                share = float(ranked.shares[place] / max(1 - ranked.shares[ranked.order[0]], 1e-6))
                added = self._make_reading(candidates[place], min(first, (1 - first) * min(share, 1.0)))
                # Of a relation between two names, either can stand for what is known.
                if all((added.graph, added.sentence) != (each.graph, each.sentence) for each in readings):
                    readings.append(added)
        readings.sort(key=lambda each: -each.probability)
        return tuple(replace(reading, apart=apart) for reading in readings[:most])

    def find_candidates(self, question: QuestionText, catalogue: GraphCatalogue) -> list[Candidate]:
        """Return the likeliest options over one graph, run, the likeliest first."""
        names = find_names(catalogue, question, self.model.names)
        slots = self.model.slots.score(catalogue, question, names, self.judge.encoder)
        options = GraphPlanner(catalogue, question, names, slots).propose()
        if not options:
            return []
        buckets = hash_runs(mask_words(question, names, catalogue))
        vector = self.judge.encoder.encode([mask_names(question, names)])[0]
        shapes = self.model.shapes.log_probabilities(buckets, vector)
        features = measure_options(options, question, names, slots, shapes)
        best = np.argsort(-self.model.before.scores(features), kind="stable")[:RUN]
        rows = [run_plan(catalogue.graph, options[place].plan) for place in best]
        answered = [number for number, own in enumerate(rows) if own is not None]
        outcomes = [rows[number] for number in answered]
        chosen = add_outcomes(
            features[best[answered]], [options[place].plan for place in best[answered]], outcomes, names
        )
        scores = self.model.after.scores(chosen)
        candidates = [
            Candidate(options[best[number]], catalogue, chosen[place], float(scores[place]), own)
            for place, (number, own) in enumerate(zip(answered, outcomes, strict=True))
            if own is not None
        ]
        answering = [each for each in candidates if not each.repeats_names]
        return sorted(answering, key=lambda each: -each.score)

    def _narrow(self, candidate: Candidate, joined: LinkedGraph) -> Candidate:
        """Return an option over joined graphs as one over the fewest of them that answer the same."""
        assert self.snapshot is not None
        parts: list[PropertyGraph] = list(joined.graphs)
        for left_out in joined.graphs if len(joined.graphs) > 2 else ():
            parts += join_linked(self.snapshot, [each for each in joined.graphs if each is not left_out])
        for part in parts:
            plan = candidate.option.plan.rename(find_names_in(part, joined, candidate.option.plan.names))
            rows = run_plan(part, plan)
            if rows is None or not np.array_equal(joined.rows_of(part, rows), candidate.rows):
                continue
            option = replace(candidate.option, plan=plan)
            fewer = replace(candidate, option=option, catalogue=open_catalogue(part), rows=rows)
            if not plan.asked_property or fewer.values == candidate.values:
                return self._narrow(fewer, part) if isinstance(part, LinkedGraph) else fewer
        return candidate

    def _make_reading(self, candidate: Candidate, probability: float) -> Reading:
        if isinstance(candidate.catalogue.graph, LinkedGraph):
            candidate = self._narrow(candidate, candidate.catalogue.graph)
        plan, graph = candidate.option.plan, candidate.catalogue.graph
        first = graph.entities(candidate.rows[:1]) if plan.operation == LIST else []
        return Reading(
            plan,
            graph.name,
            explain_plan(plan, type_unknowns(plan, candidate.catalogue)),
            probability,
            candidate.rows,
            candidate.values,
            types=frozenset(type for node in first for type in (node.type, *node.more_types) if type),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """A candidate over one relation alone, the same with the ends of the relation exchanged, and how likely it is
    that the first of the two is meant."""

    first: Candidate
    turned: Candidate
    chance: float

    @property
    def likelier(self) -> Candidate:
        """The likelier one."""
        return self.first if self.chance >= 0.5 else self.turned

    @property
    def other(self) -> Candidate:
        """The less likely one."""
        return self.turned if self.chance >= 0.5 else self.first

    @property
    def certainty(self) -> float:
        """How likely the likelier one is of the two; no answer of it is likelier than that."""
        return max(self.chance, 1 - self.chance)


def weigh_ways(model: PlanModel, judge: PlanJudge, question: QuestionText, first: Candidate) -> Ways | None:
    """Return a candidate over one relation alone with the ends of the relation exchanged, and how likely it is
    that the question means the first of the two. None where both answer the same, or where the types of its ends
    allow only the first."""
    plan, catalogue = first.option.plan, first.catalogue
    turned = turn_plan(plan)
    rows = None if turned is None else run_plan(catalogue.graph, turned)
    if turned is None or rows is None:
        return None
    is_verdict = plan.operation == YES_NO
    if (bool(len(rows)) == bool(len(first.rows))) if is_verdict else np.array_equal(rows, first.rows):
        return None
    head, relation, tail = name_ends(plan)
    names = find_names(catalogue, question, model.names)
    ends = find_ends(question, names, head, tail)
    if ends is None or not (is_verdict or _is_allowed(turned, catalogue, names)):
        return None
    likeness = judge.compare(question.text, say_ways((plan, turned), catalogue))
    scorer = model.direction if is_verdict else model.asked
    cues = read_cues(question, ends, relation)
    chance = scorer.score(cues, likeness, is_head_first=stands_first(ends))
    return Ways(first, replace(first, option=replace(first.option, plan=turned), rows=rows), chance)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Candidates in ``order``, their ``shares`` of the probability among all, and the first of the ``features`` of
    the confidence in the first (:data:`CONFIDENCE`), which :func:`measure_first` completes."""

    order: list[int]
    shares: Floats
    features: Floats


def rank_candidates(model: PlanModel, candidates: Sequence[Candidate], corrections: Floats) -> Ranking:
    """Return the order of candidates by the score of options and the judge's correction together."""
    linear = np.array([each.score for each in candidates])
    total = model.scale * linear + corrections
    order = np.argsort(-total, kind="stable").tolist()
    first = order[0]
    alike = np.array([each.agrees_with(candidates[first]) for each in candidates])
    with_none, linear_alone = np.append(total, model.none), linear - linear.max()
    chances = np.exp(with_none - with_none.max())
    shares = chances[:-1] / chances.sum()
    by_linear = np.exp(linear_alone) / np.exp(linear_alone).sum()
    others = total[~alike]
    option = candidates[first]
    value = dict(zip(FEATURES, option.features.tolist(), strict=True))
    features = [
        log_odds(float(shares[alike].sum())),
        log_odds(float(by_linear[alike].sum())),
        float(bool(alike[int(np.argmax(linear))])),
        float(np.clip(total[first] - others.max(), 0, 8)) if len(others) else 8.0,
        value["log probability of the shape"],
        value["least slot"],
        value["certain names left out"],
        value["values left out"],
        value["words left out"],
        value["likeness of names"],
        float(corrections[first]),
    ]
    return Ranking(order, shares, np.array(features))


def measure_first(features: Floats, first: Candidate, ways: Ways | None, *, alone: bool) -> Floats:
    """Return the features of the confidence in the ``first`` candidate, (:data:`CONFIDENCE`,), of those that its
    ranking gave; ``ways`` are those between which it was chosen, ``alone`` says that graphs alone are asked."""
    operation = first.option.plan.operation
    others = [
        float(not len(first.rows)),
        math.log1p(len(first.rows)),
        *(float(operation == each) for each in (LIST, COUNT, YES_NO, VALUE)),
        float(ways is not None),
        0.0 if ways is None else abs(log_odds(ways.chance)),
        float(alone),
        1.0,
    ]
    return np.concatenate([features, others])


def answer_plan(graph: PropertyGraph, plan: GraphPlan, rows: Rows) -> tuple[str, ...]:
    """Return what a plan answers of the nodes that meet it."""
    if plan.operation == COUNT:
        return (f"{len(rows):,}",)
    if plan.operation == YES_NO:
        return ("Yes" if len(rows) else "No",)
    entities = graph.entities(rows)
    if plan.operation == LIST:
        return tuple(dict.fromkeys(entity.name for entity in entities))
    values: dict[str, None] = {}
    for entity in entities:
        given = entity.properties.get(plan.asked_property, ())
        values |= dict.fromkeys(map(str, given if isinstance(given, tuple) else (given,)))
    return tuple(values)


def find_names_in(graph: PropertyGraph, joined: LinkedGraph, names: Sequence[str]) -> dict[str, str]:
    """Return the names that one of the joined graphs has for nodes, by the names that they have in all."""
    return {
        name: own
        for name in names
        for entity in joined.entities(joined.find_by_name(name))
        for own in (*entity.aliases, entity.name)
        if len(graph.find_by_name(own))
    }


_CATALOGUES: OrderedDict[tuple[object, ...], GraphCatalogue] = OrderedDict()
_LOCK = Lock()


def open_catalogue(graph: PropertyGraph) -> GraphCatalogue:
    """Return the catalogue of a graph, remembered while the graph stays as it is."""
    key = (
        graph.name,
        graph.size,
        tuple((name, relation.edges) for name, relation in graph.relations().items()),
    )
    with _LOCK:
        if key not in _CATALOGUES:
            _CATALOGUES[key] = GraphCatalogue.of_graph(graph)
        _CATALOGUES.move_to_end(key)
        while len(_CATALOGUES) > _REMEMBERED:
            _CATALOGUES.popitem(last=False)
        return replace(_CATALOGUES[key], graph=graph)
