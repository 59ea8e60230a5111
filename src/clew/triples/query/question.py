"""What a question in typed triples asks of one graph, exactly, and how typed triples are compiled to it.

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

:func:`compile_question` guesses nothing. What the graph does not have by exactly the name that the question gives is
reported, and the question then has no exact meaning in this graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.core.arrays import Rows
from clew.core.errors import UsageError
from clew.core.protocols import PropertyGraph
from clew.core.text import fold_name, parse_number
from clew.triples.engine.patterns import DirectedRelation, Predicate
from clew.triples.engine.predicates import PropertyTest
from clew.triples.language.chain import (
    NOT,
    Condition,
    Quantifier,
    Superlative,
    Term,
    Triple,
    TypedChain,
    split_outside_quotes,
    unquote,
)
from clew.triples.language.wordings import OWN_VALUE
from clew.triples.linking.relation_words import verbalise_relation

_OR = r"\s+or\s+"


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
    """Statements that must hold together; ``terms`` are the terms that the group binds."""

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
    """A superlative: the ``count`` answers with the highest or lowest number of a ``property``, or in the names of
    the nodes that ``relations`` lead to, or with the most or fewest nodes that ``counted`` has."""

    highest: bool
    count: int
    property: str = ""
    counted: Count | None = None
    relations: tuple[DirectedRelation, ...] = ()
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
        """Return the next count of this group and its counted end; counts come before negations, which may be inside
        a count."""
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


@dataclass(frozen=True, slots=True)
class Compilation:
    """A question over one graph, and why it has none: ``missing`` has what the graph does not have under that name,
    with the kind of thing that it is in the question."""

    question: GraphQuestion | None
    missing: tuple[str, ...] = ()


def compile_question(
    graph: PropertyGraph,
    typed: TypedChain,
    answer_rows: Rows | None = None,
    answer_types: tuple[str, ...] = (),
) -> Compilation:
    """Return what typed triples ask of a graph; ``answer_rows`` are the rows that may answer, None: all. If they are
    the nodes of some types, ``answer_types`` are these.

    Raises UsageError for counts that have no meaning in any graph.
    """
    return _Compiler(graph, typed).compile(answer_rows, answer_types)


@dataclass(slots=True)
class _Compiler:
    graph: PropertyGraph
    typed: TypedChain
    edges: list[EdgePattern] = field(default_factory=list)
    tests: list[Predicate] = field(default_factory=list)
    counts: list[tuple[EdgePattern, Quantifier]] = field(default_factory=list)
    names: dict[str, NodeName] = field(default_factory=dict)
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    test_texts: dict[Predicate, str] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    fresh: int = 0

    def compile(self, answer_rows: Rows | None, answer_types: tuple[str, ...]) -> Compilation:
        typed = self.typed
        for number, wanted in typed.types.items():
            self.types[f"#{number}"] = self._types(wanted)
        values = self._value_unknowns()
        for place, triple in enumerate(typed.chain.triples):
            if triple.tail.unknown not in values:
                self._add_triple(triple, typed.quantifiers.get(place), place)
        for condition in typed.conditions:
            if (triple_of_value := values.get(condition.unknown)) is not None:
                head = triple_of_value.head.unknown
                assert head is not None
                self._add_condition(condition, f"#{head}", triple_of_value.relation)
            else:
                self._add_condition(condition, f"#{condition.unknown}", condition.property)
        for superlative in typed.superlatives:
            if superlative.unknown != typed.chain.answer:
                self.missing[f"a superlative of another unknown than the answer: '{superlative}'"] = None
        ranked = [self._add_superlative(superlative) for superlative in typed.superlatives]
        if self.missing:
            return Compilation(None, tuple(self.missing))
        target = f"#{typed.chain.answer}"
        scoper = Scoper(self.edges, self.tests, self.counts)
        hidden = [edge for edge in ranked if edge is not None]
        group = scoper.scope_with_rankings(target, hidden)
        rankings = [
            self._ranking(superlative, scoper.ranked.get(edge) if edge else None)
            for superlative, edge in zip(typed.superlatives, ranked, strict=True)
        ]
        return Compilation(
            GraphQuestion(
                target,
                group,
                self.names,
                self.types,
                tuple(rankings),
                answer_rows,
                self.test_texts,
                answer_types,
            )
        )

    def _value_unknowns(self) -> dict[int, Triple]:
        """Return the unknowns that stand for a property's value, each with its triple: they are the tail of one
        triple and are used in comparisons only."""
        triples = self.typed.chain.triples
        used = [end.unknown for triple in triples for end in (triple.head, triple.tail)]
        used += [superlative.unknown for superlative in self.typed.superlatives]
        values = {}
        for place, triple in enumerate(triples):
            number = triple.tail.unknown
            if (
                number is not None
                and triple.head.unknown is not None
                and used.count(number) == 1
                and number != self.typed.chain.answer
                and number not in self.typed.types
                and place not in self.typed.quantifiers
                and not self._relations(triple.relation)
                and self._property(triple.relation)
                and not (triple.inverse or triple.repeated)
                and any(condition.unknown == number for condition in self.typed.conditions)
                and all(
                    condition.property == OWN_VALUE
                    for condition in self.typed.conditions
                    if condition.unknown == number
                )
            ):
                values[number] = triple
        return values

    # Statements

    def _add_test(self, test: Predicate, text: str) -> None:
        self.tests.append(test)
        self.test_texts[test] = text

    def _add_triple(self, triple: Triple, quantifier: Quantifier | None, place: int) -> None:
        head, tail = triple.head.unknown, triple.tail.unknown
        if any(end.unknown is None and end.unknowns for end in (triple.head, triple.tail)):
            self.missing[f"an unknown inside a name: '{self.typed.statement(place)}'"] = None
            return
        relations = self._relations(triple.relation)
        property = self._property(triple.relation)
        is_value = (
            head is not None
            and tail is None
            and bool(property)
            and quantifier in (None, NOT)
            and not (triple.inverse or triple.repeated)
        )
        if is_value and not (relations and self._names(triple.tail.text)):
            test = Predicate(f"#{head}", property, "=", triple.tail.text, negated=quantifier == NOT)
            if not self._has_value(test):
                self.missing[f"value '{triple.tail.text}' of '{property}'"] = None
            self._add_test(test, self.typed.statement(place))
            return
        if not relations:
            kind = "a property, whose values are no nodes" if property else "relation"
            self.missing[f"{kind} '{triple.relation}'"] = None
            for end in (triple.head, triple.tail):
                if end.unknown is None and not property:
                    self._term(end)
            return
        edge = EdgePattern(
            self._term(triple.head),
            _direct_relations(relations, triple.inverse),
            self._term(triple.tail),
            triple.repeated,
            self.typed.statement(place),
        )
        if quantifier is None:
            self.edges.append(edge)
        else:
            self.counts.append((edge, quantifier))

    def _add_condition(self, condition: Condition, term: str, name: str) -> None:
        value: str | float = condition.value
        if (property := self._property(name)) or (name == OWN_VALUE and condition.property == OWN_VALUE):
            test = Predicate(term, property, condition.test, value, condition.high, condition.negated)
            self._add_test(test, str(condition))
            return
        relations = self._relations(name)
        if not relations:
            self.missing[f"property '{name}'"] = None
            return
        # The values are nodes: the relation leads to one whose name passes the test.
        self.fresh += 1
        node = f"+{self.fresh}"
        self.tests.append(Predicate(node, "", condition.test, value, condition.high))
        edge = EdgePattern(term, _direct_relations(relations, False), node, text=str(condition))
        if condition.negated:
            self.counts.append((edge, NOT))
        else:
            self.edges.append(edge)

    def _add_superlative(self, superlative: Superlative) -> EdgePattern | None:
        """Return the edge whose tails are counted; None for a superlative of a property."""
        if superlative.triple is None:
            if not self._property(superlative.property) and not self._relations(superlative.property):
                self.missing[f"property '{superlative.property}'"] = None
            return None
        triple = superlative.triple
        relations = self._relations(triple.relation)
        if not relations:
            self.missing[f"relation '{triple.relation}'"] = None
            return None
        return EdgePattern(
            self._term(triple.head),
            _direct_relations(relations, triple.inverse),
            self._term(triple.tail),
            triple.repeated,
            str(superlative),
        )

    def _ranking(self, superlative: Superlative, counted: Count | None) -> Ranking:
        property = "" if counted else self._property(superlative.property)
        relations: tuple[DirectedRelation, ...] = ()
        if not counted and not property:  # the values are nodes, which are called after numbers
            relations = _direct_relations(self._relations(superlative.property), False)
        return Ranking(superlative.highest, superlative.count, property, counted, relations, str(superlative))

    # Names

    def _term(self, term: Term) -> str:
        """Return an unknown, or a new occurrence of a name."""
        if term.unknown is not None:
            return f"#{term.unknown}"
        self.fresh += 1
        name = f"={self.fresh}"
        texts = self._names(term.text)
        wanted = self.typed.constant_types.get(term.text, ())
        types = self._types(wanted) if wanted else ()
        rows = np.unique(np.concatenate([self._rows(text) for text in texts or [term.text]]))
        if types and len(rows):
            rows = rows[np.logical_or.reduce([self.graph.has_type(rows, type) for type in types])]
        if not texts or not len(rows):
            self.missing[f"node '{term.text}'"] = None
        self.names[name] = NodeName(tuple(texts or [term.text]), types, rows)
        return name

    def _rows(self, text: str) -> Rows:
        """Return the nodes that are called exactly so, by name, alias or id."""
        candidates = self.graph.find_by_name(text)
        exact = [
            row
            for row, entity in zip(candidates.tolist(), self.graph.entities(candidates), strict=True)
            if text == entity.name or text in entity.aliases
        ]
        return np.array(exact, dtype=np.int64)

    def _names(self, text: str) -> list[str]:
        """Return the names that a text joins by "or", which nodes all have to be called; none otherwise."""
        return self._alternatives(text, lambda name: bool(len(self._rows(name))))

    def _has_value(self, test: Predicate) -> bool:
        """Return whether a node has the value of a property that a test asks for. Numbers need not occur: they are
        compared."""
        if not math.isnan(parse_number(test.value)):
            return True
        column = self.graph.property_values(test.property)
        rows = None if column is None else np.unique(column.rows)
        return rows is None or bool(PropertyTest(self.graph, replace(test, negated=False)).holds(rows).any())

    def _alternatives(self, text: str, exists: Callable[[str], bool]) -> list[str]:
        """Return the names that a text joins by "or", which all have to exist; the text itself if it is a name."""
        if exists(text):
            return [text]
        parts = [unquote(part)[0] for part in split_outside_quotes(text, _OR)]
        return parts if len(parts) > 1 and all(map(exists, parts)) else []

    def _types(self, wanted: Sequence[str]) -> tuple[str, ...]:
        types = []
        for name in wanted:
            match = _match_name(name, self.graph.types())
            if match:
                types.append(match)
            else:
                self.missing[f"type '{name}'"] = None
        return tuple(types)

    def _relations(self, words: str) -> tuple[str, ...]:
        names = self.graph.relations()
        texts = self._alternatives(words, lambda text: bool(_match_name(text, names)))
        return tuple(dict.fromkeys(_match_name(text, names) for text in texts))

    def _property(self, words: str) -> str:
        return _match_name(words, self.graph.properties())


def _match_name(words: str, names: Iterable[str]) -> str:
    """Return the name of a relation, a property or a type that is written so, apart from case and separators; "" if
    none or several are."""
    names = list(names)
    if words in names:
        return words
    spelled = re.sub(r"\s+", " ", verbalise_relation(words)).casefold()
    matching = [name for name in names if verbalise_relation(name).casefold() == spelled]
    return matching[0] if len(matching) == 1 and fold_name(matching[0]) else ""


def _direct_relations(relations: Iterable[str], inverse: bool) -> tuple[DirectedRelation, ...]:
    return tuple(DirectedRelation(relation, inverse) for relation in relations)
