"""Plans over a graph that a question may mean: enumerated from the names in it and the graph's catalogue.

Nothing here knows English. A slot scorer says how likely each step, type and property is meant
(:mod:`clew.questions.slots`); plans are put together from the likely ones, and each family of shapes has its own
quota, so that many plans of three hops do not crowd out the few of one.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clew.questions.plans import (
    COUNT,
    VALUE,
    YES_NO,
    Comparison,
    Edge,
    GraphPlan,
    Kind,
    Rank,
    Same,
    Statement,
    Term,
)

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.questions.catalogue import GraphCatalogue, Step
    from clew.questions.names import NameMatch
    from clew.questions.slots import SlotScores
    from clew.questions.text import QuestionText

#: Plans kept of each family, the likeliest by their slots.
QUOTAS = {
    "one hop": 12,
    "two hops": 32,
    "three hops": 64,
    "repeated": 6,
    "two names": 32,
    "two steps": 8,
    "same": 16,
    "either": 12,
    "yes or no": 24,
    "value": 24,
    "with a condition": 32,
    "of a type": 72,
    "ranked": 32,
    "two conditions": 12,
    "no name": 32,
    "without an edge": 40,
    "only": 16,
    "counted": 48,
}
#: Steps, types and properties of a graph that are tried where nothing else narrows them.
BEST_STEPS, BEST_TYPES, BEST_PROPERTIES = 8, 3, 4
#: Tests of a type that are joined with another.
BEST_TESTS = 12
#: Paths from a name that are joined with another name or condition.
BEST_PATHS = 8
#: What a relation is worth that stands in a path already.
AGAIN = -1.2
#: Nodes from which a further step of a path is followed.
MOST_FOLLOWED = 2000
#: Families whose likeliest plans are counted as well as listed.
_COUNTED = frozenset({"either", "repeated", "counted", "without an edge", "only", "no name"})
COMPARISONS = ("=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Option:
    """A plan with the family of shapes that proposed it and the sum of its slots' log-odds."""

    plan: GraphPlan
    family: str
    score: float


@dataclass(frozen=True, slots=True)
class _Path:
    """Steps from a name to what is asked, the sum of their log-odds, and the nodes where they end."""

    steps: tuple[Step, ...]
    score: float
    ends: Rows


@dataclass(slots=True)
class GraphPlanner:
    """Enumerates the plans over one graph that a question may mean, by its names and the scores of its slots."""

    catalogue: GraphCatalogue
    question: QuestionText
    names: Sequence[NameMatch]
    slots: SlotScores
    _options: dict[GraphPlan, Option] = field(default_factory=dict)

    def propose(self) -> list[Option]:
        """Return the options, those of each family within its quota, the likeliest first."""
        for family, plans in self._families():
            best = heapq.nlargest(QUOTAS[family], plans, key=lambda scored: scored[1])
            if family in _COUNTED:
                best += [(plan.ask(COUNT), score - 1.0) for plan, score in best[: QUOTAS[family] // 3]]
            for proposed, score in best:
                plan = proposed.close_gaps()
                if plan not in self._options or self._options[plan].score < score:
                    self._options[plan] = Option(plan, family, score)
        return sorted(self._options.values(), key=lambda option: -option.score)

    def _families(self) -> Iterator[tuple[str, Iterator[tuple[GraphPlan, float]]]]:
        names = self.names
        paths = {id(name): self._paths(name) for name in names}
        yield "one hop", self._chains(names, paths, 1)
        yield "two hops", self._chains(names, paths, 2)
        yield "three hops", self._chains(names, paths, 3)
        yield "repeated", self._repeated(names)
        yield "two names", self._two_names(names, paths)
        yield "two steps", self._two_steps(names)
        yield "same", self._same(names)
        yield "either", self._either(names)
        yield "yes or no", self._yes_or_no(names, paths)
        yield "value", self._values_of(names, paths)
        yield "with a condition", self._with_conditions(names, paths)
        yield "of a type", self._of_types()
        yield "ranked", self._ranked()
        yield "two conditions", self._two_conditions()
        yield "no name", self._without_names()
        yield "without an edge", self._without_edge(names, paths)
        yield "only", self._only(names)
        yield "counted", self._counted()

    # Paths

    def _paths(self, name: NameMatch) -> tuple[list[_Path], list[_Path], list[_Path]]:
        """Return the likeliest paths of one, two and three steps from a name."""
        own = name.likeness
        first = [
            _Path((step,), own + self.slots.steps[step], self._follow(name.rows, step))
            for step in self.catalogue.leaving(name.types, name.rows)
        ]
        second = self._extend(heapq.nlargest(24, first, key=lambda path: path.score))
        third = self._extend(heapq.nlargest(48, second, key=lambda path: path.score))
        return first, second, third

    def _extend(self, paths: Iterable[_Path]) -> list[_Path]:
        extended = []
        for path in paths:
            used = {step.relation for step in path.steps}
            for step in self.catalogue.following(path.steps[-1]):
                # The same words name a relation once: another time it explains nothing more.
                gain = self.slots.steps[step] if step.relation not in used else AGAIN
                if len(ends := self._follow(path.ends, step)):
                    extended.append(_Path((*path.steps, step), path.score + gain, ends))
        return extended

    def _follow(self, rows: Rows, step: Step) -> Rows:
        """Return the ends of a step from nodes; of very many nodes only the first are followed."""
        return np.unique(
            self.catalogue.graph.neighbours(rows[:MOST_FOLLOWED], step.relation, step.inverse)[1]
        )

    def _chains(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]], hops: int
    ) -> Iterator[tuple[GraphPlan, float]]:
        for name in names:
            for path in heapq.nlargest(
                QUOTAS["three hops"], paths[id(name)][hops - 1], key=lambda each: each.score
            ):
                plan = GraphPlan(chain_edges(name.name, path.steps))
                yield plan, path.score
                yield plan.ask(COUNT), path.score - 0.5
                if hops == 3 and path.steps[1] == path.steps[0].back:
                    # There and back again: the others, "the films whose director also made ...".
                    yield plan.add(Same(3, name.name, denied=True)), path.score

    def _repeated(self, names: Sequence[NameMatch]) -> Iterator[tuple[GraphPlan, float]]:
        for name in names:
            for step in self.catalogue.leaving(name.types, name.rows):
                if self.catalogue.sources[step] & self.catalogue.targets(step) or not name.types:
                    edge = make_edge(name.name, step, 1, repeated=True)
                    yield GraphPlan((edge,)), name.likeness + self.slots.steps[step] - 0.5
                    ends = self.catalogue.targets(step)
                    for type in self._likely_types(ends) if len(ends) > 1 else ():
                        score = name.likeness + self.slots.steps[step] + self.slots.types[type]
                        yield GraphPlan((Kind(1, type), edge)), score - 0.3

    def _two_names(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]]
    ) -> Iterator[tuple[GraphPlan, float]]:
        for number, first in enumerate(names):
            for second in names[number + 1 :]:
                if first.overlaps(second):
                    continue
                for first_path, second_path, gain in self._joined(paths[id(first)], paths[id(second)]):
                    edges = chain_edges(first.name, first_path.steps)
                    more = chain_edges(
                        second.name, second_path.steps, first_unknown=1 + len(first_path.steps)
                    )
                    plan, score = (
                        GraphPlan((*edges, *more)),
                        (first_path.score + second_path.score) / 1.4 + gain,
                    )
                    yield plan, score
                    yield plan.ask(YES_NO), score - 0.5
                    yield plan.ask(COUNT), score - 0.8

    def _joined(
        self, first: tuple[list[_Path], ...], second: tuple[list[_Path], ...]
    ) -> Iterator[tuple[_Path, _Path, float]]:
        """Yield pairs of paths that can end at one node, one step each, or one step and two; and what it is worth
        that they do."""
        for lengths in ((0, 0), (0, 1), (1, 0)):
            most = BEST_PATHS * (4 if sum(lengths) == 0 else 2)
            ones = heapq.nlargest(most, first[lengths[0]], key=lambda path: path.score)
            others = heapq.nlargest(most, second[lengths[1]], key=lambda path: path.score)
            for path in ones:
                ends = self.catalogue.targets(path.steps[-1])
                for other in others:
                    their_ends = self.catalogue.targets(other.steps[-1])
                    if not ends or not their_ends or ends & their_ends:
                        # Where two names meet at a node, that is likelier meant.
                        meets = bool(np.isin(path.ends, other.ends).any())
                        yield path, other, 2.0 * meets

    def _same(self, names: Sequence[NameMatch]) -> Iterator[tuple[GraphPlan, float]]:
        """Yield what has the same neighbour as a name, with and without the type of what is asked."""
        for name in names:
            for step in self.catalogue.leaving(name.types, name.rows):
                backs = [each for each in self.catalogue.following(step) if each.relation == step.relation]
                for back in backs or [step.back]:
                    if back != step.back:
                        continue
                    edges = chain_edges(name.name, (step, back))
                    yield (
                        GraphPlan((*edges, Same(1, name.name, denied=True))),
                        name.likeness + self.slots.steps[step] - 0.3,
                    )

    def _either(self, names: Sequence[NameMatch]) -> Iterator[tuple[GraphPlan, float]]:
        for number, first in enumerate(names):
            likely = self._likely_steps(first, BEST_STEPS)
            for second in names[number + 1 :]:
                if first.overlaps(second):
                    continue
                for step in likely:
                    if not first.types or not second.types or self.catalogue.sources[step] & second.types:
                        edge = make_edge(first.name, step, 1)
                        if isinstance(edge.tail, str):  # names stand behind the relation
                            edge = Edge(edge.head, edge.relations, edge.tail, more_tails=(second.name,))
                            score = first.likeness + second.likeness + self.slots.steps[step]
                            yield GraphPlan((edge,)), score
                            ends = self.catalogue.targets(step)
                            for type in self._likely_types(ends) if len(ends) > 1 else ():
                                yield GraphPlan((Kind(1, type), edge)), score + self.slots.types[type]
            for step in likely:
                for other in likely:
                    alike = self.catalogue.targets(step) & self.catalogue.targets(other)
                    if step.inverse == other.inverse and step.relation < other.relation and alike:
                        edge = make_edge(first.name, step, 1)
                        edge = Edge(edge.head, (step.relation, other.relation), edge.tail)
                        score = first.likeness + self.slots.steps[step] + self.slots.steps[other]
                        yield GraphPlan((edge,)), score / 1.4
                        ends = self.catalogue.targets(step)
                        for type in self._likely_types(ends) if len(ends) > 1 else ():
                            yield GraphPlan((Kind(1, type), edge)), score / 1.4 + self.slots.types[type]

    def _yes_or_no(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]]
    ) -> Iterator[tuple[GraphPlan, float]]:
        for name in names:
            for other in names:
                if name.name == other.name or name.overlaps(other):
                    continue
                for length in (0, 1):
                    for path in heapq.nlargest(
                        BEST_PATHS, paths[id(name)][length], key=lambda each: each.score
                    ):
                        ends = self.catalogue.targets(path.steps[-1])
                        if not ends or not other.types or ends & other.types:
                            edges = chain_edges(name.name, path.steps)
                            plan = GraphPlan((Same(1, other.name), *edges), YES_NO)
                            yield plan, path.score + other.likeness
            for path in heapq.nlargest(BEST_PATHS, paths[id(name)][0], key=lambda each: each.score):
                edge = turn_edge(make_edge(name.name, path.steps[0], 2), name.name)
                yield GraphPlan((Same(1, name.name), edge), YES_NO), path.score - 1.0

    def _values_of(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]]
    ) -> Iterator[tuple[GraphPlan, float]]:
        for name in names:
            for property in self._properties(name.types, len(self.catalogue.properties)):
                score = name.likeness + self.slots.properties[property]
                yield GraphPlan((Same(1, name.name),), VALUE, property), score
            for path in heapq.nlargest(BEST_PATHS, paths[id(name)][0], key=lambda each: each.score):
                for property in self._properties(self.catalogue.targets(path.steps[-1]), BEST_PROPERTIES):
                    score = path.score + self.slots.properties[property]
                    yield GraphPlan(chain_edges(name.name, path.steps), VALUE, property), score - 0.3

    # Conditions

    def _properties(self, types: frozenset[str], most: int) -> list[str]:
        """Return the likeliest properties that nodes of some types have."""
        own = [
            name
            for name in self.catalogue.properties
            if not types or not self.catalogue.owners[name] or types & self.catalogue.owners[name]
        ]
        return heapq.nlargest(most, own, key=lambda name: self.slots.properties[name])

    def _likely_steps(self, name: NameMatch, most: int) -> list[Step]:
        steps = self.catalogue.leaving(name.types, name.rows)
        return heapq.nlargest(most, steps, key=lambda step: self.slots.steps[step])

    def _tests(self, unknown: int, types: frozenset[str]) -> Iterator[tuple[Comparison, float]]:
        """Yield the comparisons of a property of some types with the values of the question."""
        for property in self._properties(types, len(self.catalogue.properties)):
            score = self.slots.properties[property]
            if self.catalogue.numeric[property] < 0.5:
                for text, gain in self.slots.mentioned_values(property):
                    yield Comparison(unknown, property, "=", (text,)), score + gain
                continue
            for test in self._comparisons(unknown, property):
                yield test, score + 0.3

    def _comparisons(self, unknown: int, property: str) -> Iterator[Comparison]:
        numbers = [value for value in self.question.values if not self.slots.in_name(value)]
        for value in numbers:
            if len(value.texts) == 2:
                yield Comparison(unknown, property, "between", value.texts)
                continue
            for comparison in COMPARISONS:
                yield Comparison(unknown, property, comparison, value.texts)
            if self.slots.is_day(property) and value.texts[0].isdigit() and len(value.texts[0]) == 4:
                year = value.texts[0]
                yield Comparison(unknown, property, "between", (f"{year}-01-01", f"{year}-12-31"))
        for first, second in itertools.pairwise(numbers):
            low, high = sorted((first.texts[0], second.texts[-1]), key=_sort_key)
            yield Comparison(unknown, property, "between", (low, high))
            if self.slots.is_day(property) and low.isdigit() and high.isdigit():
                yield Comparison(unknown, property, "between", (f"{low}-01-01", f"{high}-12-31"))

    def _ranks(self, unknown: int, types: frozenset[str]) -> Iterator[tuple[Rank, float]]:
        counts = [1, *(int(value.texts[0]) for value in self.question.values if _is_small(value.texts[0]))]
        for property in self._properties(types, 2 * BEST_PROPERTIES):
            if self.catalogue.numeric[property] >= 0.5:
                for highest in (True, False):
                    for most in dict.fromkeys(counts):
                        yield Rank(unknown, highest, property, most=most), self.slots.properties[property]

    def _with_conditions(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]]
    ) -> Iterator[tuple[GraphPlan, float]]:
        for name in names:
            ones = heapq.nlargest(BEST_PATHS, paths[id(name)][0], key=lambda path: path.score)
            twos = heapq.nlargest(4, paths[id(name)][1], key=lambda path: path.score)
            for path in (*ones, *twos):
                edges = chain_edges(name.name, path.steps)
                ends = self.catalogue.targets(path.steps[-1])
                for rank, score in self._ranks(1, ends):
                    yield GraphPlan((*edges, rank)), path.score + score
                for test, score in self._tests(1, ends):
                    yield GraphPlan((*edges, test)), path.score + score
                    yield GraphPlan((*edges, test), COUNT), path.score + score - 0.5
                for type in self._likely_types(ends) if len(ends) > 1 else ():
                    yield GraphPlan((Kind(1, type), *edges)), path.score + self.slots.types[type] + 0.2
                    yield GraphPlan((Kind(1, type), *edges), COUNT), path.score + self.slots.types[type] - 0.3

    def _likely_types(self, among: Iterable[str] | None = None) -> list[str]:
        types = [type for type in (among or self.catalogue.types) if type in self.slots.types]
        return heapq.nlargest(BEST_TYPES, types, key=lambda type: self.slots.types[type])

    def _tested_types(self) -> list[str]:
        """Return the likely types, and those that have the likeliest properties."""
        owners = [
            type for name in self._properties(frozenset(), 2) for type in sorted(self.catalogue.owners[name])
        ]
        known = [type for type in owners if type in self.slots.types]
        return list(dict.fromkeys([*self._likely_types(), *known]))

    def _of_types(self) -> Iterator[tuple[GraphPlan, float]]:
        """Yield nodes of a type that compare with a value, and how many there are."""
        for type in self._likely_types():
            yield GraphPlan((Kind(1, type),), COUNT), self.slots.types[type] - 1.0
            yield GraphPlan((Kind(1, type),)), self.slots.types[type] - 1.5
        for type in self._tested_types():
            kind, own, types = Kind(1, type), self.slots.types[type], frozenset([type])
            for test, score in self._tests(1, types):
                yield GraphPlan((kind, test)), own + score
                yield GraphPlan((kind, test), COUNT), own + score - 0.5
            for step in self._steps_of(types):
                for comparison in self._comparisons(2, ""):
                    edge = make_edge(1, step, 2)
                    yield GraphPlan((kind, edge, comparison)), own + self.slots.steps[step] + 0.3

    def _ranked(self) -> Iterator[tuple[GraphPlan, float]]:
        for type in self._tested_types():
            for rank, score in self._ranks(1, frozenset([type])):
                yield GraphPlan((Kind(1, type), rank)), self.slots.types[type] + score

    def _two_conditions(self) -> Iterator[tuple[GraphPlan, float]]:
        for type in self._tested_types():
            tests = sorted(self._tests(1, frozenset([type])), key=lambda scored: -scored[1])[:BEST_TESTS]
            for number, (test, score) in enumerate(tests):
                for other, more in tests[number + 1 :]:
                    if other.property != test.property and other.values != test.values:
                        plan = GraphPlan((Kind(1, type), test, other))
                        yield plan, self.slots.types[type] + (score + more) / 1.4

    def _two_steps(self, names: Sequence[NameMatch]) -> Iterator[tuple[GraphPlan, float]]:
        """Yield what two relations join with one name."""
        for name in names:
            likely = self._likely_steps(name, BEST_STEPS)
            for number, first in enumerate(likely):
                for second in likely[number + 1 :]:
                    if first.relation != second.relation and self._meet(first, second):
                        edges = (make_edge(name.name, first, 1), make_edge(name.name, second, 1))
                        score = name.likeness + (self.slots.steps[first] + self.slots.steps[second]) / 1.4
                        yield GraphPlan(edges), score

    def _meet(self, first: Step, second: Step) -> bool:
        ends, others = self.catalogue.targets(first), self.catalogue.targets(second)
        return not ends or not others or bool(ends & others)

    def _steps_of(self, types: frozenset[str]) -> list[Step]:
        steps = [step for step in self.catalogue.steps if not types or self.catalogue.sources[step] & types]
        return heapq.nlargest(BEST_STEPS, steps, key=lambda step: self.slots.steps[step])

    def _without_names(self) -> Iterator[tuple[GraphPlan, float]]:
        """Yield what two relations join: who copied what they wrote."""
        likely = heapq.nlargest(BEST_STEPS, self.catalogue.steps, key=lambda step: self.slots.steps[step])
        for first in likely:
            for second in likely:
                joined = make_edge(1, first, 2), make_edge(1, second, 2)
                score = self.slots.steps[first] + self.slots.steps[second]
                if first.relation < second.relation and self._may_meet(first, second):
                    yield GraphPlan(joined), score
                if second.relation in {step.relation for step in self.catalogue.following(first)}:
                    edges = (make_edge(1, first, 2), make_edge(2, second, 1))
                    if first.relation != second.relation:
                        yield GraphPlan(edges), score - 0.5
            yield GraphPlan((make_edge(1, first, 2),)), self.slots.steps[first] - 0.5
            ends = self.catalogue.targets(first)
            for type in self._likely_types(ends) if len(ends) > 1 else ():
                score = self.slots.steps[first] + self.slots.types[type]
                yield GraphPlan((make_edge(1, first, 2), Kind(2, type))), score
                only = make_edge(1, first, 2, quantifier="only")
                yield GraphPlan((only, Kind(2, type))), score - 0.3
            for test, gain in self._tests(2, ends):
                yield GraphPlan((make_edge(1, first, 2), test)), self.slots.steps[first] + gain
                only = make_edge(1, first, 2, quantifier="only")
                yield GraphPlan((only, test)), self.slots.steps[first] + gain - 0.3

    def _may_meet(self, first: Step, second: Step) -> bool:
        sources, targets = self.catalogue.sources, self.catalogue.targets
        return (
            bool(sources[first] & sources[second] and targets(first) & targets(second))
            or not self.catalogue.types
        )

    def _starts(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]]
    ) -> Iterator[tuple[tuple[Statement, ...], frozenset[str], float]]:
        """Yield what nodes may be narrowed to before a condition without a name: a type, or one step from a name."""
        for type in self._likely_types():
            yield (Kind(1, type),), frozenset([type]), self.slots.types[type]
        for step in heapq.nlargest(4, self.catalogue.steps, key=lambda each: self.slots.steps[each]):
            yield (make_edge(1, step, 2),), self.catalogue.sources[step], self.slots.steps[step]
        for name in names:
            for path in heapq.nlargest(4, paths[id(name)][0], key=lambda each: each.score):
                ends = self.catalogue.targets(path.steps[-1])
                yield chain_edges(name.name, path.steps), ends, path.score

    def _without_edge(
        self, names: Sequence[NameMatch], paths: Mapping[int, tuple[list[_Path], ...]]
    ) -> Iterator[tuple[GraphPlan, float]]:
        """Yield nodes of which an edge is denied: to anything, or to a name."""
        for statements, types, score in self._starts(names, paths):
            used = {edge.relations[0] for edge in statements if isinstance(edge, Edge)}
            joined = {
                (edge.relations[0], term)
                for edge in statements
                if isinstance(edge, Edge)
                for term in (edge.head, edge.tail)
            }
            for step in self._steps_of(types):
                gain = score + self.slots.steps[step]
                if step.relation not in used:
                    yield GraphPlan((*statements, make_edge(1, step, 9, quantifier="not"))), gain
                for name in names:
                    fits = not name.types or self.catalogue.targets(step) & name.types
                    if fits and (step.relation, name.name) not in joined:
                        edge = make_edge(1, step, name.name, quantifier="not")
                        yield GraphPlan((*statements, edge)), gain + name.likeness

    def _only(self, names: Sequence[NameMatch]) -> Iterator[tuple[GraphPlan, float]]:
        for name in names:
            for step in self._likely_steps(name, BEST_STEPS):
                edge = make_edge(1, step.back, name.name, quantifier="only")
                yield GraphPlan((edge,)), name.likeness + self.slots.steps[step] - 0.3
                for before in self._steps_of(self.catalogue.targets(step)):
                    only = make_edge(1, before.back, 2, quantifier="only")
                    score = name.likeness + self.slots.steps[step] + self.slots.steps[before]
                    yield GraphPlan((only, make_edge(name.name, step, 2))), score / 1.3

    def _counted(self) -> Iterator[tuple[GraphPlan, float]]:
        """Yield nodes of a type by how many edges they have: most, fewest, at least, at most, exactly."""
        numbers = [int(value.texts[0]) for value in self.question.values if _is_small(value.texts[0])]
        for statements, types, start in self._starts(
            self.names, {id(name): self._paths(name) for name in self.names}
        ):
            used = {edge.relations[0] for edge in statements if isinstance(edge, Edge)}
            for step in self._steps_of(types):
                if step.relation in used:
                    continue
                score = start + self.slots.steps[step]
                edge = make_edge(1, step, 9, counted=True)
                yield GraphPlan((*statements, Rank(1, True, edge=edge))), score
                yield GraphPlan((*statements, Rank(1, False, edge=edge))), score - 0.5
                for number in numbers:
                    for bound, count in (
                        ("at least", number),
                        ("exactly", number),
                        ("at least", number + 1),
                        ("at most", number),
                        ("at most", number - 1),
                    ):
                        quantified = make_edge(1, step, 9, quantifier=f"{bound} {count}")
                        yield GraphPlan((*statements, quantified)), score + 0.3 - 0.3 * (bound == "at most")


def _is_small(text: str) -> bool:
    return text.isdigit() and 1 < int(text) < 20


def _sort_key(text: str) -> tuple[float, str]:
    return (float(text) if text.replace(".", "").isdigit() else 0.0, text)


def make_edge(
    source: Term,
    step: Step,
    target: Term,
    *,
    quantifier: str = "",
    repeated: bool = False,
    counted: bool = False,
) -> Edge:
    """Return the triple of a step from ``source`` to ``target``."""
    head, tail = (target, source) if step.inverse else (source, target)
    counted_from = source if (quantifier or counted) and isinstance(source, int) else 0
    return Edge(head, (step.relation,), tail, quantifier, repeated, counted_from)


def turn_edge(edge: Edge, name: str) -> Edge:
    """Return an edge with the unknown 1 in place of a name."""
    head, tail = (1 if term == name else term for term in (edge.head, edge.tail))
    return Edge(head, edge.relations, tail)


def chain_edges(name: str, steps: Sequence[Step], first_unknown: int = 1) -> tuple[Edge, ...]:
    """Return the triples of steps from a name to unknown 1; those between have the numbers behind
    ``first_unknown``."""
    terms: list[Term] = [name, *range(first_unknown + 1, first_unknown + len(steps)), 1]
    return tuple(make_edge(terms[place], step, terms[place + 1]) for place, step in enumerate(steps))
