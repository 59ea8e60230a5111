"""What a question in typed triples asks of one graph, exactly.

The meaning of typed triples is that of their SPARQL (:mod:`clew.triples.query.sparql`), in the graph's own names:

* A triple, a type and a condition hold for nodes. The answers are the nodes that the answer's unknown can be where
  all of them hold together (``SELECT DISTINCT``).
* A name stands for every node that is called exactly so, by its name or an alias, in each of its triples anew: a
  package and a section that are both called ``ruby`` are kept apart by the relations that lead to them.
* ``not`` before a triple: there is no such edge. An unknown that only negated triples lead to is negated with all
  that is asked of it (``FILTER NOT EXISTS``); one that other triples bind is that node.
* ``at least 2 #1 >> r >> #2`` counts the different #2 of which all other statements about #2 hold too, for each
  node #1 and each choice of the other unknowns outside (``GROUP BY`` and ``HAVING``). What is outside is what still
  hangs together with the answer where #2 is taken away.
* ``only``: besides, the relation leads to no other node.
* A superlative keeps the best of the answers that all else leaves; equals of the last are kept too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.core.errors import UsageError
from clew.triples.language.typed_chain import NOT, Quantifier

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.triples.engine.patterns import DirectedRelation, Predicate


@dataclass(frozen=True, slots=True)
class EdgePattern:
    """An edge along one of ``relations`` from a term to a term; ``repeated``: one or more such edges in a row.

    Terms are unknowns (``#1``), occurrences of names (``=1``) and unknowns of our own (``+1``). ``text`` is what it
    stands for, as the question writes it.
    """

    head: str
    relations: tuple[DirectedRelation, ...]
    tail: str
    repeated: bool = False
    text: str = ""

    @property
    def ends(self) -> tuple[str, str]:
        """Its head and its tail."""
        return self.head, self.tail


@dataclass(frozen=True, slots=True)
class Count:
    """How many nodes ``counted`` there are at the end of an edge for which a group holds; with :data:`NOT`, none.

    ``outside`` are the terms of the group and the edge that are bound outside of it.
    """

    edge: EdgePattern
    quantifier: Quantifier
    counted: str
    group: Group
    outside: tuple[str, ...]

    @property
    def head(self) -> str:
        """The end of the edge that is not counted."""
        return self.edge.head if self.counted == self.edge.tail else self.edge.tail


@dataclass(frozen=True, slots=True)
class Group:
    """Statements that hold together. ``terms`` are those that the group binds."""

    terms: tuple[str, ...] = ()
    edges: tuple[EdgePattern, ...] = ()
    tests: tuple[Predicate, ...] = ()
    counts: tuple[Count, ...] = ()

    @property
    def is_trivial(self) -> bool:
        """Whether the group says nothing."""
        return not (self.edges or self.tests or self.counts)


@dataclass(frozen=True, slots=True)
class Ranking:
    """A superlative: the ``count`` answers with the highest or lowest number of a ``property``, or with the most or
    fewest nodes that ``counted`` has."""

    highest: bool
    count: int
    property: str = ""
    counted: Count | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class NodeName:
    """A name that stands for nodes: every node that is called so, of one of ``types`` if there are any."""

    text: tuple[str, ...]
    types: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """A question over one graph: the ``group`` that must hold, and the term that is asked for.

    ``names`` has the nodes of each occurrence of a name, ``types`` the types of the unknowns, by term. A test with
    the property "" compares the name of the node itself. ``answer_rows``, unless None, may answer; if these are the
    nodes of some types, ``answer_types`` has the types. ``test_texts`` has the tests as the question writes them.
    """

    target: str
    group: Group
    names: Mapping[str, NodeName] = field(default_factory=dict)
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rankings: tuple[Ranking, ...] = ()
    answer_rows: Rows | None = None
    test_texts: Mapping[Predicate, str] = field(default_factory=dict)
    answer_types: tuple[str, ...] = ()


#: Stands for a superlative among the quantifiers: any number of tails.
_RANKED = Quantifier(0, None)


@dataclass(slots=True)
class Scoper:
    """Divides statements into nested groups (the rules are in the module's docstring)."""

    edges: list[EdgePattern]
    tests: list[Predicate]
    counts: list[tuple[EdgePattern, Quantifier]]
    ranked: dict[EdgePattern, Count] = field(default_factory=dict)

    def scope_with_rankings(self, target: str, ranked: Sequence[EdgePattern]) -> Group:
        """Return the group of all statements but those on what superlatives count, which go to ``self.ranked`` by
        the edges of the superlatives. Raises UsageError as :meth:`scope` does."""
        for edge in ranked:
            self.counts.append((edge, _RANKED))
        group = self.scope(target)
        rankings = {count.edge: count for count in group.counts if count.quantifier is _RANKED}
        if len(rankings) < len(ranked):
            raise UsageError("a superlative counts for another unknown than the answer", "Rank the answer")
        if any(count.outside != (target,) for count in rankings.values()):
            raise UsageError(
                "what a superlative counts depends on other unknowns", "Let it depend on the answer"
            )
        self.ranked = rankings
        return replace(group, counts=tuple(c for c in group.counts if c.quantifier is not _RANKED))

    def scope(self, target: str) -> Group:
        """Return the group of all statements. Raises UsageError for counts that have no meaning."""
        counted = [edge.tail for edge, quantifier in self.counts if quantifier != NOT]
        for term in counted:
            if term == target:
                raise UsageError(
                    f"{term} is counted, so it cannot be the answer",
                    "A count is of the tail for each head; to count heads, write at least 2 #1 << relation << #2",
                )
            if counted.count(term) > 1:
                raise UsageError(f"{term} is counted twice", "Count another unknown")
        for edge, quantifier in self.counts:
            if quantifier != NOT and edge.head.startswith("="):
                raise UsageError("a count for a name says nothing of an unknown", "Count for an unknown")
            if quantifier != NOT and edge.head == edge.tail:
                raise UsageError(f"{edge.head} is counted among its own tails", "Only 'not' is allowed here")
        group = self._take((), target)
        while (loose := self._loose_term(group.terms)) is not None:
            # What nothing joins to the answer has to hold somewhere.
            more = self._take(group.terms, loose)
            group = Group(
                group.terms + more.terms,
                group.edges + more.edges,
                group.tests + more.tests,
                group.counts + more.counts,
            )
        if self.edges or self.counts or self.tests:
            raise UsageError("circular counts", "Count each unknown for another that is not counted")
        return group

    def _loose_term(self, bound: tuple[str, ...]) -> str | None:
        counted = {edge.tail for edge, quantifier in self.counts if quantifier != NOT}
        terms = [end for edge in self.edges for end in edge.ends]
        terms += [test.variable for test in self.tests]
        terms += [edge.head for edge, _ in self.counts]
        return next((term for term in terms if term not in counted and term not in bound), None)

    def _take(self, outside: tuple[str, ...], start: str) -> Group:
        """Take the statements of the group that begins at a term, and of the groups within it."""
        counted = {edge.tail for edge, quantifier in self.counts if quantifier != NOT}
        terms = [start]
        for term in terms:
            for edge in self.edges:
                for end, other in (edge.ends, edge.ends[::-1]):
                    if end == term and other not in (*terms, *outside) and other not in counted:
                        terms.append(other)
        bound = {*outside, *terms}
        edges = [edge for edge in self.edges if bound.issuperset(edge.ends) and set(edge.ends) & set(terms)]
        self.edges = [edge for edge in self.edges if edge not in edges]
        tests = [test for test in self.tests if test.variable in terms]
        self.tests = [test for test in self.tests if test not in tests]
        counts = []
        while (chosen := self._next_count(terms, bound)) is not None:
            edge, quantifier, term = chosen
            self.counts.remove((edge, quantifier))
            inner = Group() if term in bound else self._take(tuple(bound), term)
            mentioned = {*edge.ends, *mentioned_terms(inner)}
            counts.append(
                Count(edge, quantifier, term, inner, tuple(sorted(mentioned & (bound - set(inner.terms)))))
            )
        return Group(tuple(terms), tuple(edges), tuple(tests), tuple(counts))

    def _next_count(self, terms: list[str], bound: set[str]) -> tuple[EdgePattern, Quantifier, str] | None:
        """Return a count of this group, with the end that is counted; counts before negations, which may be part of
        what is counted."""
        counted = {edge.tail for edge, quantifier in self.counts if quantifier != NOT}
        for edge, quantifier in self.counts:
            if quantifier != NOT and edge.head in terms:
                return edge, quantifier, edge.tail
        for edge, quantifier in self.counts:
            if quantifier == NOT and set(edge.ends) & set(terms) and not set(edge.ends) & counted:
                free = [end for end in edge.ends if end not in bound]
                return edge, quantifier, free[0] if free else edge.tail
        return None


def mentioned_terms(group: Group) -> Iterable[str]:
    """Yield every term that a group mentions."""
    for edge in group.edges:
        yield from edge.ends
    for test in group.tests:
        yield test.variable
    for count in group.counts:
        yield from count.edge.ends
        yield from mentioned_terms(count.group)
