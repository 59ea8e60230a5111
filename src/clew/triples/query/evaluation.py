"""The exact answers to a question over one graph, what each of its constraints leaves, and why a node is no answer.

Where each count and negation depends on one unknown, sets of nodes suffice: the engine
(:func:`clew.triples.engine.substitution.substitute`) solves the edges exactly, and a count is a set of heads. Where
one depends on several unknowns at once ("films whose director does not act in them"), the bindings of those unknowns
are joined into a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Mask, Rows, distinct, is_member, run_offsets
from clew.core.errors import UsageError
from clew.core.protocols import PropertyGraph, QueriedGraph
from clew.core.text import parse_number, scalar_text
from clew.core.types import Entity
from clew.triples.engine.candidates import Candidates, RowSet, as_set, unique_rows
from clew.triples.engine.edges import Edges
from clew.triples.engine.patterns import DirectedRelation, Pattern, Predicate, TypedTriple, Variable
from clew.triples.engine.predicates import PropertyTest, is_day
from clew.triples.engine.substitution import substitute
from clew.triples.language.chain import NOT
from clew.triples.query.mounted import solve_at_source
from clew.triples.query.question import Count, EdgePattern, GraphQuestion, Group, Ranking, mentioned_terms

#: More rows of a table than this are refused: 32 bytes or more each.
MAX_BINDINGS = 20_000_000
#: Nodes whose names are read at once.
_NAMES_READ = 4096
#: Combinations of unknowns that are joined to look for near misses. A constraint that takes more is passed over.
MAX_NEAR_BINDINGS = 200_000


def solve_question(graph: PropertyGraph, question: GraphQuestion, max_bindings: int = MAX_BINDINGS) -> RowSet:
    """Return the rows of all answers, ascending.

    Raises UsageError where the bindings of unknowns that depend on each other are more than ``max_bindings``, and as
    :func:`~clew.triples.query.mounted.solve_at_source` does.
    """
    if isinstance(graph, QueriedGraph):
        return solve_at_source(graph, question).astype(np.uint32)
    solver = _Solver(graph, question, max_bindings)
    rows = solver.solve_set(question.group, question.target)
    for ranking in question.rankings:
        rows = solver.rank(rows, ranking)
    return rows


@dataclass(slots=True)
class _Table:
    """Bindings of terms: one column of rows for each term, (n, terms)."""

    terms: tuple[str, ...]
    rows: NDArray[np.uint32]

    def column(self, term: str) -> RowSet:
        column: RowSet = self.rows[:, self.terms.index(term)]
        return column

    def project(self, terms: Iterable[str]) -> _Table:
        """Return the distinct bindings of some of the terms."""
        wanted = set(terms)
        columns = tuple(term for term in self.terms if term in wanted)
        rows = self.rows[:, [self.terms.index(term) for term in columns]]
        return _Table(
            columns, rows[: min(len(rows), 1)] if rows.shape[1] == 0 else rows[_first_of_equals(rows)]
        )

    def select(self, mask: Mask) -> _Table:
        return _Table(self.terms, self.rows[mask])


def _first_of_equals(rows: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the places of the distinct bindings, in their order."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    places: NDArray[np.int64] = order[first]
    return places


def _number_bindings(rows: NDArray[np.uint32], among: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each binding its place ``among`` distinct bindings of the same terms, -1 where it is not there."""
    if rows.shape[1] == 0:
        return np.full(len(rows), 0 if len(among) else -1, dtype=np.int64)
    both = np.concatenate([among, rows])
    order = np.lexsort(both.T[::-1])
    ordered = both[order]
    first = np.ones(len(both), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(len(both), dtype=np.int64)
    numbers[order] = np.cumsum(first) - 1
    places = np.full(int(first.sum()), -1, dtype=np.int64)
    places[numbers[: len(among)]] = np.arange(len(among))
    return places[numbers[len(among) :]]


class NameNumbers:
    """The numbers and days that the names of a graph's nodes are, each read when it is first asked for.

    The readings of one question ask for the same names again and again: "nine storeys or more" of every building.
    """

    def __init__(self, size: int) -> None:
        self._numbers = np.full(size, np.nan)
        self._is_day = np.zeros(size, dtype=np.bool_)
        self._is_read = np.zeros(size, dtype=np.bool_)
        self._aliases: dict[int, tuple[str, ...]] = {}

    def match(self, graph: PropertyGraph, rows: Rows, tester: PropertyTest) -> Mask:
        """Return for which of ``rows`` a test of numbers holds for the name or an alias."""
        unread = rows[~self._is_read[rows]]
        for row, entity in zip(unread.tolist(), _read_entities(graph, unread), strict=True):
            self._numbers[row], self._is_day[row] = parse_number(entity.name), is_day(entity.name)
            if entity.aliases:
                self._aliases[row] = entity.aliases
        self._is_read[unread] = True
        matches = tester.compare(self._numbers[rows], self._is_day[rows])
        for place, row in enumerate(rows.tolist()) if self._aliases else ():
            if aliases := self._aliases.get(row):
                matches[place] |= any(tester.match_values(aliases))
        return matches


#: Graphs do not change while they are open.
_NAME_NUMBERS: WeakKeyDictionary[PropertyGraph, NameNumbers] = WeakKeyDictionary()


def _read_entities(graph: PropertyGraph, rows: Rows) -> Iterator[Entity]:
    for first in range(0, len(rows), _NAMES_READ):
        yield from graph.entities(rows[first : first + _NAMES_READ])


class _Solver:
    def __init__(self, graph: PropertyGraph, question: GraphQuestion, max_bindings: int) -> None:
        self.graph, self.question, self.max_bindings = graph, question, max_bindings

    # Sets

    def solve_set(self, group: Group, target: str) -> RowSet:
        """Return what a term of a group that depends on nothing outside can be."""
        simple = [count for count in group.counts if self._is_simple(count)]
        candidates = self._reduce(group, simple)
        if candidates is None:
            return np.empty(0, dtype=np.uint32)
        if len(simple) == len(group.counts) and not any(map(self._needs_join, group.edges)):
            return self._all_of(target, candidates)
        table = self._solve_table(group, candidates, _Table((), np.zeros((1, 0), dtype=np.uint32)), {target})
        if target not in table.terms:
            return self._all_of(target, candidates) if len(table.rows) else np.empty(0, dtype=np.uint32)
        return unique_rows(np.ascontiguousarray(table.column(target)), self.graph.size)

    def _is_simple(self, count: Count) -> bool:
        """Whether a count depends on one unknown, and on that only by its edge."""
        return (
            count.outside == (count.head,)
            and count.head not in mentioned_terms(count.group)
            and not count.edge.repeated
        )

    def _needs_join(self, edge: EdgePattern) -> bool:
        return edge.repeated and self._closed_end(edge) is None

    def _closed_end(self, edge: EdgePattern) -> str | None:
        """Return the end of a repeated edge that is a name, None if neither is."""
        return next((end for end in edge.ends if end.startswith("=")), None)

    def _reduce(self, group: Group, simple: Sequence[Count]) -> dict[str, RowSet | None] | None:
        """Return the candidates of each term after all edges, tests and simple counts; None if there is no answer.

        They are exact for each term if the group has no other counts and no repeated edge between unknowns.
        """
        restricted: dict[str, RowSet] = {}
        for edge in group.edges:
            closed = self._closed_end(edge) if edge.repeated else None
            if closed is not None:
                backwards = closed == edge.tail
                reached = self.closure(edge, as_set(self.question.names[closed].rows), backwards)
                self._restrict(restricted, edge.head if backwards else edge.tail, reached)
        candidates = self._substitute(group, restricted)
        own = [test for test in group.tests if not test.property]
        changed = False
        for test in own:
            if candidates is None:
                return None
            rows = self._all_of(test.variable, candidates)
            self._restrict(restricted, test.variable, rows[self._match_names(rows, test)])
            changed = True
        for count in simple:
            if candidates is None:
                return None
            rows = restricted.get(count.head, self._all_of(count.head, candidates))
            self._restrict(restricted, count.head, self._heads(count, rows))
            changed = True
        return self._substitute(group, restricted) if changed else candidates

    @staticmethod
    def _restrict(restricted: dict[str, RowSet], term: str, rows: RowSet) -> None:
        restricted[term] = rows if term not in restricted else np.intersect1d(restricted[term], rows)

    def _substitute(self, group: Group, restricted: Mapping[str, RowSet]) -> dict[str, RowSet | None] | None:
        """Return the exact candidates of each term by the edges and the tests of properties; None: no answer."""
        question = self.question
        variables = []
        for term in group.terms:
            rows: Any = restricted.get(term)
            if term in question.names:
                named = as_set(question.names[term].rows)
                rows = named if rows is None else np.intersect1d(named, rows)
            variables.append(Variable(term, question.types.get(term, ()), rows))
        inside = set(group.terms)
        edges = [
            TypedTriple(edge.head, edge.relations, edge.tail)
            for edge in group.edges
            if not edge.repeated and inside.issuperset(edge.ends)
        ]
        tests = tuple(test for test in group.tests if test.property)
        target = question.target if question.target in inside else group.terms[0]
        answers = question.answer_rows if target == question.target else None
        pattern = Pattern(target, tuple(variables), (), tuple(edges), tests, answers)
        substitution = substitute(self.graph, pattern)
        candidates = {
            term: None if rows is None else rows.astype(np.uint32)
            for term, rows in substitution.candidates.items()
        }
        exact: dict[str, RowSet | None] = {}
        for term, rows in candidates.items():
            if rows is not None and not len(rows):
                return None
            exact[term] = rows
        return exact

    def _exact_set(self, group: Group, target: str) -> RowSet | None:
        """Return what a term of an inner group can be, None for every node."""
        if group.is_trivial and target not in self.question.names and not self.question.types.get(target):
            return None
        return self.solve_set(
            replace(group, terms=(target, *(t for t in group.terms if t != target))), target
        )

    def _heads(self, count: Count, rows: RowSet) -> RowSet:
        """Return the rows for which a simple count holds."""
        tails = self._exact_set(count.group, count.counted)
        candidates = Candidates(self.graph, dense=False)
        candidates.rows = tails
        edges = self._edges(count.edge, from_head=count.counted == count.edge.tail)
        numbers = edges.count_candidates(rows, candidates) if len(rows) else np.zeros(0, dtype=np.int64)
        holds = _within(numbers, count)
        if count.quantifier.only:
            everything = Candidates(self.graph, dense=False)
            holds &= numbers == edges.count_candidates(rows, everything)
        return rows[holds]

    def _edges(self, edge: EdgePattern, from_head: bool) -> Edges:
        relations = edge.relations
        if not from_head:
            relations = tuple(directed.opposite for directed in relations)
        return Edges(self.graph, relations)

    def _all_of(self, term: str, candidates: Mapping[str, RowSet | None]) -> RowSet:
        rows = candidates[term]
        return np.arange(self.graph.size, dtype=np.uint32) if rows is None else rows

    def _match_names(self, rows: RowSet, test: Any) -> Mask:
        """Return for which of ``rows`` a test of the node's own name holds."""
        tester = PropertyTest(self.graph, test)
        if test.test == "=" and not tester.is_numeric:
            named = is_member(rows.astype(np.int64), self.graph.find_by_name(scalar_text(test.value)))
            return ~named if test.negated else named
        if tester.is_numeric:
            if (numbers := _NAME_NUMBERS.get(self.graph)) is None:
                numbers = _NAME_NUMBERS[self.graph] = NameNumbers(self.graph.size)
            matches = numbers.match(self.graph, rows.astype(np.int64), tester)
            return ~matches if test.negated else matches
        matches = np.zeros(len(rows), dtype=np.bool_)
        for place, entity in enumerate(_read_entities(self.graph, rows.astype(np.int64))):
            matches[place] = any(tester.match_values([entity.name, *entity.aliases]))
        return ~matches if test.negated else matches

    # One or more steps

    def closure(self, edge: EdgePattern, rows: RowSet, backwards: bool) -> RowSet:
        """Return all nodes that one or more steps lead to from a set."""
        edges = self._edges(edge, from_head=not backwards)
        seen = np.zeros(self.graph.size, dtype=np.bool_)
        frontier = rows
        while len(frontier):
            _, tails = edges.expand(frontier)
            new = distinct(tails)
            frontier = new[~seen[new]]
            seen[frontier] = True
        return np.flatnonzero(seen).astype(np.uint32)

    def _repeated_pairs(self, edge: EdgePattern, sources: RowSet, from_head: bool) -> tuple[Any, RowSet]:
        """Return the pairs that one or more steps join: the place of each source, ascending, and the node."""
        edges = self._edges(edge, from_head)
        pairs = np.empty(0, dtype=np.int64)
        owners, tails = edges.expand(sources)
        new = distinct(owners << 32 | tails.astype(np.int64))
        while len(new):
            pairs = distinct(np.concatenate((pairs, new)))
            if len(pairs) > self.max_bindings:
                raise _too_many(self.max_bindings)
            owners, tails = edges.expand((new & 0xFFFFFFFF).astype(np.uint32))
            new = distinct((new >> 32)[owners] << 32 | tails.astype(np.int64))
            new = new[~is_member(new, pairs)]
        return pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.uint32)

    # Tables

    def _solve_table(
        self, group: Group, candidates: Mapping[str, RowSet | None], seed: _Table, needed: set[str]
    ) -> _Table:
        """Return the bindings of the ``needed`` terms for which a group holds, with those of ``seed``."""
        waiting = list(group.edges)
        wanted = needed | {term for count in group.counts for term in count.outside}
        # A term that nothing joins and nothing needs only has to exist, which its candidates say.
        table = seed
        while waiting:
            edge = self._next_edge(waiting, table, candidates)
            waiting.remove(edge)
            if not set(edge.ends) & set(table.terms):
                start = min(edge.ends, key=lambda term: self._size(term, candidates))
                table = self._cross(table, start, self._all_of(start, candidates))
            table = self._join(table, edge, candidates)
            open_terms = wanted | {end for other in waiting for end in other.ends} | set(seed.terms)
            table = table.project(open_terms)
        for term in sorted((wanted & set(group.terms)) - set(table.terms)):
            table = self._cross(table, term, self._all_of(term, candidates))
        for count in group.counts:
            table = self._apply_count(table, count)
        return table.project(needed | set(seed.terms))

    def _size(self, term: str, candidates: Mapping[str, RowSet | None]) -> int:
        rows = candidates.get(term)
        return self.graph.size if rows is None else len(rows)

    def _next_edge(
        self, waiting: Sequence[EdgePattern], table: _Table, candidates: Mapping[str, RowSet | None]
    ) -> EdgePattern:
        """Return the edge to join next: one with both ends bound, then one with one, then any; smallest first."""

        def cost(edge: EdgePattern) -> tuple[int, int]:
            free = [end for end in set(edge.ends) if end not in table.terms]
            return len(free), min((self._size(end, candidates) for end in free), default=0)

        return min(waiting, key=cost)

    def _cross(self, table: _Table, term: str, rows: RowSet) -> _Table:
        if len(table.rows) * len(rows) > self.max_bindings:
            raise _too_many(self.max_bindings)
        repeated = np.repeat(table.rows, len(rows), axis=0)
        column = np.tile(rows.astype(np.uint32), len(table.rows))[:, None]
        return _Table((*table.terms, term), np.concatenate([repeated, column], axis=1))

    def _join(self, table: _Table, edge: EdgePattern, candidates: Mapping[str, RowSet | None]) -> _Table:
        """Return a table joined with an edge of which at least one end is bound."""
        from_head = edge.head in table.terms
        near, far = edge.ends if from_head else edge.ends[::-1]
        sources, places = np.unique(table.column(near), return_inverse=True)
        if edge.repeated:
            owners, tails = self._repeated_pairs(edge, sources, from_head)
        else:
            owners, tails = self._expand(edge, sources, from_head)
        if far in table.terms:
            pairs = distinct(owners.astype(np.int64) << 32 | tails.astype(np.int64))
            keys = places.astype(np.int64) << 32 | table.column(far).astype(np.int64)
            return table.select(is_member(keys, pairs))
        allowed = candidates.get(far)
        if allowed is not None:
            is_allowed = is_member(tails.astype(np.uint32), allowed)
            owners, tails = owners[is_allowed], tails[is_allowed]
        sizes = np.bincount(owners, minlength=len(sources))
        offsets = run_offsets(sizes)
        order = np.argsort(owners, kind="stable")
        tails = tails[order]
        counts = sizes[places]
        if counts.sum() > self.max_bindings:
            raise _too_many(self.max_bindings)
        starts = offsets[:-1][places]
        ends = run_offsets(counts)
        picked = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
        rows = np.concatenate(
            [np.repeat(table.rows, counts, axis=0), tails[picked].astype(np.uint32)[:, None]], axis=1
        )
        return _Table((*table.terms, far), rows)

    def _expand(self, edge: EdgePattern, sources: RowSet, from_head: bool) -> tuple[Any, RowSet]:
        edges = self._edges(edge, from_head)
        if edges.estimate_cost(sources) > self.max_bindings:
            raise _too_many(self.max_bindings)
        owners, tails = edges.expand(sources)
        if len(edge.relations) > 1:
            pairs = distinct(owners.astype(np.int64) << 32 | tails.astype(np.int64))
            return pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.uint32)
        return owners, tails

    def _apply_count(self, table: _Table, count: Count) -> _Table:
        """Return the bindings for which a count holds."""
        if not len(table.rows):
            return table
        keys = table.project(count.outside)
        numbers = self._count_bindings(keys, count)
        holds = _within(numbers, count)
        if count.quantifier.only:
            everything = replace(count, group=replace(count.group, edges=(), tests=(), counts=()))
            holds &= numbers == self._count_bindings(keys, everything, all_nodes=True)
        places = _number_bindings(table.rows[:, [table.terms.index(term) for term in keys.terms]], keys.rows)
        return table.select(holds[places])

    def _count_bindings(self, keys: _Table, count: Count, all_nodes: bool = False) -> NDArray[np.int64]:
        """Return for each binding of the terms outside how many nodes are counted."""
        group = replace(count.group, edges=(count.edge, *count.group.edges))
        inside = replace(
            count.group,
            edges=tuple(edge for edge in count.group.edges if set(edge.ends) <= set(count.group.terms)),
        )
        if count.counted in keys.terms:  # a negated edge between terms that are bound
            joined = self._join(keys, count.edge, {})
            return (_number_bindings(keys.rows, joined.rows) >= 0).astype(np.int64)
        candidates: dict[str, RowSet | None] | None = {count.counted: None}
        if not all_nodes:
            simple = [inner for inner in inside.counts if self._is_simple(inner)]
            candidates = self._reduce(inside, simple)
        if candidates is None:
            return np.zeros(len(keys.rows), dtype=np.int64)
        bindings = self._solve_table(group, candidates, keys, {count.counted})
        outside = bindings.rows[:, [bindings.terms.index(term) for term in keys.terms]]
        places = _number_bindings(outside, keys.rows)
        return np.bincount(places, minlength=len(keys.rows))

    # Superlatives

    def rank(self, rows: RowSet, ranking: Ranking) -> RowSet:
        """Return the rows that a superlative selects."""
        if not len(rows):
            return rows
        values = self._ranked_values(rows, ranking)
        known = ~np.isnan(values)
        rows, values = rows[known], values[known] * (1 if ranking.highest else -1)
        if len(rows) <= ranking.count:
            return rows
        least = np.sort(values)[-ranking.count]
        best: RowSet = rows[values >= least]
        return best

    def _ranked_values(self, rows: RowSet, ranking: Ranking) -> NDArray[np.float64]:
        if ranking.counted is not None:
            keys = _Table((ranking.counted.head,), rows.astype(np.uint32)[:, None])
            return self._count_bindings(keys, ranking.counted).astype(np.float64)
        best = np.full(len(rows), np.nan)
        if ranking.relations:
            places, numbers = self._numbers_of_neighbours(rows, ranking.relations)
        else:
            column = self.graph.property_values(ranking.property)
            if column is None:
                return best
            owned = is_member(column.rows, rows.astype(np.uint32)) & ~np.isnan(column.numbers)
            places, numbers = rows.searchsorted(column.rows[owned]), column.numbers[owned]
        pick = np.fmax if ranking.highest else np.fmin
        pick.at(best, places, numbers)
        return best

    def _numbers_of_neighbours(
        self, rows: RowSet, relations: Sequence[DirectedRelation]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers that neighbours of ``rows`` are called after, and the place of each one's row."""
        owners, tails = Edges(self.graph, relations).expand(rows)
        nodes, places = np.unique(tails, return_inverse=True)
        numbers = np.full(len(nodes), np.nan)
        for first in range(0, len(nodes), _NAMES_READ):
            entities = self.graph.entities(nodes[first : first + _NAMES_READ].astype(np.int64))
            numbers[first : first + len(entities)] = [parse_number(entity.name) for entity in entities]
        of_edges = numbers[places]
        known = ~np.isnan(of_edges)
        return owners[known], of_edges[known]


def _within(numbers: NDArray[np.int64], count: Count) -> Mask:
    quantifier = count.quantifier
    if quantifier == NOT:
        none: Mask = numbers == 0
        return none
    holds: Mask = numbers >= quantifier.least
    return holds if quantifier.most is None else holds & (numbers <= quantifier.most)


def _too_many(limit: int) -> UsageError:
    return UsageError(
        f"more than {limit:,} combinations of unknowns that depend on each other",
        "Add a triple or a condition that leaves fewer of them",
    )


@dataclass(frozen=True, slots=True)
class Element:
    """A constraint of a question and how the question writes it. A term stands for its types."""

    part: EdgePattern | Predicate | Count | Ranking | str
    text: str


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """A constraint, how many answers are left after it and all before it, and how many answers the question would
    have without it."""

    text: str
    left: int
    without: int


@dataclass(frozen=True, slots=True)
class MissedConstraints:
    """The constraints that keep a node from being an answer; none if it is one. ``alone``: each of them is enough,
    the node would be an answer if that one were dropped; else all of them would have to be dropped. ``restriction``
    says what else excludes it."""

    texts: tuple[str, ...]
    alone: bool = False
    restriction: str = ""


def list_elements(question: GraphQuestion) -> list[Element]:
    """Return the constraints of a question, types first, in the order in which they are counted."""
    group, names = question.group, question.names
    elements = [
        Element(term, f"{term} : {' or '.join(types)}")
        for term, types in question.types.items()
        if term in group.terms and term not in names
    ]
    elements += [Element(edge, edge.text) for edge in group.edges if edge.text]
    elements += [Element(test, text) for test in group.tests if (text := question.test_texts.get(test))]
    elements += [Element(count, count.edge.text) for count in group.counts]
    elements += [Element(ranking, ranking.text) for ranking in question.rankings]
    return elements


def keep_elements(question: GraphQuestion, elements: Collection[Element]) -> GraphQuestion:
    """Return the question with no other constraints than these."""
    parts = [element.part for element in elements]
    group = question.group
    edges = tuple(edge for edge in group.edges if edge in parts)
    bound = {question.target, *(end for edge in edges for end in edge.ends)}
    tests = tuple(
        test
        for test in group.tests
        if test in parts or (test not in question.test_texts and test.variable in bound)
    )
    counts = tuple(count for count in group.counts if count in parts)
    bound |= {test.variable for test in tests} | {term for count in counts for term in count.outside}
    inner = [term for term in question.types if term not in group.terms]
    types = {
        term: types
        for term, types in question.types.items()
        if term in parts or term in inner or term in question.names
    }
    bound |= {term for term in types if term in group.terms}
    terms = tuple(term for term in group.terms if term in bound)
    rankings = tuple(ranking for ranking in question.rankings if ranking in parts)
    reduced = replace(group, terms=terms, edges=edges, tests=tests, counts=counts)
    return replace(question, group=reduced, types=types, rankings=rankings)


def find_reaching_rows(graph: PropertyGraph, question: GraphQuestion, edge: EdgePattern, end: str) -> Rows:
    """Return the nodes from which one or more steps along a repeated edge lead to its ``end``, a name, or which are
    reached from there, ascending."""
    solver = _Solver(graph, question, MAX_BINDINGS)
    rows = solver.closure(edge, as_set(question.names[end].rows), backwards=end == edge.tail)
    return rows.astype(np.int64)


def measure_funnel(graph: PropertyGraph, question: GraphQuestion) -> list[FunnelStep]:
    """Return the constraints with what each leaves. Raises UsageError as
    :func:`~clew.triples.query.evaluation.solve_question` does."""
    elements = list_elements(question)

    def count(selected: Collection[Element]) -> int:
        return len(solve_question(graph, keep_elements(question, selected)))

    return [
        FunnelStep(element.text, count(elements[: place + 1]), count(_others(elements, [element])))
        for place, element in enumerate(elements)
    ]


def find_near_misses(graph: PropertyGraph, question: GraphQuestion, limit: int) -> Rows:
    """Return nodes that would be answers if one constraint were dropped, ascending for each constraint in turn.

    A constraint is passed over without which more than ``limit`` nodes are left, or nothing but types restricts the
    answer: it tells little; and one without which too many combinations of unknowns are left to join. Raises
    UsageError as :func:`~clew.triples.query.evaluation.solve_question` does.
    """
    elements = [element for element in list_elements(question) if element.part not in question.rankings]
    unranked = replace(question, rankings=())
    answers = solve_question(graph, question)
    near = dict[int, None]()
    for element in elements:
        reduced = keep_elements(unranked, _others(elements, [element]))
        group = reduced.group
        ends = {end for edge in group.edges for end in edge.ends} | {test.variable for test in group.tests}
        if reduced.target not in ends:
            continue
        try:
            rows = np.setdiff1d(solve_question(graph, reduced, MAX_NEAR_BINDINGS), answers)
        except UsageError:
            continue
        if len(rows) <= limit:
            near |= dict.fromkeys(rows.tolist())
    return np.array(list(near)[:limit], dtype=np.int64)


def find_missed_constraints(graph: PropertyGraph, question: GraphQuestion, row: int) -> MissedConstraints:
    """Return the constraints that keep a node from being an answer: each that is enough alone, else a smallest set
    that cannot be made smaller. Superlatives come last: where a node misses nothing else, it is not the best.

    Raises UsageError as :func:`~clew.triples.query.evaluation.solve_question` does.
    """
    if row in solve_question(graph, question).tolist():
        return MissedConstraints(())
    ranked = [element for element in list_elements(question) if element.part in question.rankings]
    hard = _others(list_elements(question), ranked)
    restricted = replace(question, rankings=(), answer_rows=np.array([row], dtype=np.int64))

    if question.answer_rows is not None and row not in question.answer_rows.tolist():
        restriction = "it is not of the types that may answer (clew graph add --answers)"
    else:
        restriction = ""

    def holds(selected: Collection[Element]) -> bool:
        return len(solve_question(graph, keep_elements(restricted, selected))) > 0

    if holds(hard):
        return MissedConstraints(tuple(element.text for element in ranked), len(ranked) == 1, restriction)
    alone = [element for element in hard if holds(_others(hard, [element]))]
    if alone:
        return MissedConstraints(tuple(element.text for element in alone), True, restriction)
    satisfied: list[Element] = []
    for element in hard:
        if holds([*satisfied, element]):
            satisfied.append(element)
    return MissedConstraints(tuple(element.text for element in _others(hard, satisfied)), False, restriction)


def _others(elements: Iterable[Element], excluded: Collection[Element]) -> list[Element]:
    return [element for element in elements if not any(element is other for other in excluded)]
