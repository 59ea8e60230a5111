"""What is to be substituted: triples over constants and variables, as rows of one graph.

A pattern is what Algorithm 3 of 4StepFocus prepares: names are already nodes and relations those of the graph. Terms
are known by name, and one term is one node: a constant with several candidates stands for the same one of them in
all its triples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.core.arrays import sorted_unique
from clew.core.errors import UsageError, unknown_name_error
from clew.triples.language.typed_chain import NOT, TESTS, Quantifier

if TYPE_CHECKING:
    from clew.core.arrays import Rows


@dataclass(frozen=True, slots=True)
class DirectedRelation:
    """How a triple may lead from its head to its tail: along a relation (None: any), or against it."""

    relation: str | None = None
    inverse: bool = False

    @property
    def opposite(self) -> DirectedRelation:
        """The same the other way round."""
        return DirectedRelation(self.relation, not self.inverse)


#: Any relation, from the head to the tail.
ANY_RELATION = (DirectedRelation(),)
#: Any relation in either direction, as the paper looks for neighbours: its edge types were "error-prone".
ANY_DIRECTION = (DirectedRelation(), DirectedRelation(inverse=True))


def along(relation: str, inverse: bool = False) -> tuple[DirectedRelation, ...]:
    """Return the one way along a relation, or against it."""
    return (DirectedRelation(relation, inverse),)


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An unknown node: of one of ``types`` (none: of any), one of ``rows`` where they are given, none of ``without``.

    Its types are a constraint, of this ``weight``, that can be relaxed; ``rows`` and ``without`` always hold.
    """

    name: str
    types: tuple[str, ...] = ()
    rows: Rows | None = None
    excluded: tuple[int, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Constant:
    """A known node: the candidates for it with a score from 0 to 1 each, 1 where none are given."""

    name: str
    rows: tuple[int, ...]
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedTriple:
    """The term named ``head`` leads one of ``ways`` to the term named ``tail``; with ``count``, to so many.

    ``weight`` says how much speaks for it, such as the score of its constant's match: the weakest is relaxed first.
    """

    head: str
    relations: tuple[DirectedRelation, ...]
    tail: str
    quantifier: Quantifier | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a property of a variable must be: one of :data:`TESTS`; of several values one is enough.

    ``=`` compares numbers as numbers, all else as :func:`clew.core.text.fold_name` leaves it; ``contains``
    looks for the
    folded value in the folded text, ``says`` for its words there. ``between`` includes both ``value`` and ``high``.
    ``negated``: the nodes that it does not hold for, those without the property among them.
    """

    variable: str
    property: str
    test: str
    value: str | float
    high: str | float | None = None
    negated: bool = False
    weight: float = 1.0


#: What a pattern can do without. A variable stands for its types.
Constraint = TypedTriple | Predicate | Variable


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Triples and predicates, all of which must hold, and the variable that is asked for.

    ``answers``, where given, are the rows that may answer: only the target is restricted to them, while constants and
    other variables range over all nodes. Raises UsageError for what makes no sense.
    """

    target: str
    variables: tuple[Variable, ...]
    constants: tuple[Constant, ...] = ()
    triples: tuple[TypedTriple, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    answer_rows: Rows | None = field(default=None)

    def __post_init__(self) -> None:
        variables = [one.name for one in self.variables]
        names = {*variables, *(one.name for one in self.constants)}
        if len(names) < len(variables) + len(self.constants):
            raise UsageError("two terms of a pattern have the same name", "One term is one node")
        if self.target not in variables:
            raise unknown_name_error("variable", self.target, variables)
        for triple in self.triples:
            self._check(triple, names)
        for predicate in self.predicates:
            if predicate.variable not in variables:
                raise unknown_name_error("variable", predicate.variable, variables)
            if predicate.test not in TESTS:
                raise unknown_name_error("test", predicate.test, TESTS)
            if (predicate.test == "between") != (predicate.high is not None):
                raise UsageError(f"'{predicate.test}' on {predicate.property}", "Only between has two values")

    def _check(self, triple: TypedTriple, names: set[str]) -> None:
        for end in (triple.head, triple.tail):
            if end not in names:
                raise unknown_name_error("term", end, names)
        if not triple.relations:
            raise UsageError(f"no way from {triple.head} to {triple.tail}", "Any relation: EITHER")
        if triple.quantifier is None:
            return
        if triple.quantifier.least < 0 or triple.quantifier.least > (
            math.inf if triple.quantifier.most is None else triple.quantifier.most
        ):
            raise UsageError(f"at least {triple.quantifier.least} and at most {triple.quantifier.most}")
        if triple.head == triple.tail and triple.quantifier != NOT:
            raise UsageError(f"{triple.head} is counted among its own tails", "Only 'not' makes sense here")

    def variable(self, name: str) -> Variable:
        """Return the variable of that name."""
        return next(one for one in self.variables if one.name == name)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What can be relaxed: the triples, the predicates, and the variables that have types."""
        return (*self.triples, *self.predicates, *(one for one in self.variables if one.types))

    def keep_only(self, constraints: Iterable[Constraint]) -> Pattern:
        """Return the pattern with no other constraints than these, told apart by identity."""
        kept = set(map(id, constraints))
        return replace(
            self,
            triples=tuple(one for one in self.triples if id(one) in kept),
            predicates=tuple(one for one in self.predicates if id(one) in kept),
            variables=tuple(
                one if id(one) in kept or not one.types else replace(one, types=()) for one in self.variables
            ),
        )

    def without(self, constraints: Sequence[Constraint]) -> Pattern:
        """Return the pattern without some of its constraints."""
        gone = set(map(id, constraints))
        return self.keep_only(one for one in self.constraints if id(one) not in gone)


def connected_terms(triples: Sequence[TypedTriple], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return for each term those that triples join to it, itself included; triples that count join nothing."""
    found = {name: {name} for name in names}
    for triple in triples:
        one, other = found[triple.head], found[triple.tail]
        if triple.quantifier is None and one is not other:
            one |= other
            for name in other:
                found[name] = one
    return {name: frozenset(one) for name, one in found.items()}


def triples_on_cycles(triples: Mapping[int, TypedTriple], apart: Collection[str] = ()) -> list[int]:
    """Return which triples, by their numbers, are on cycles and between cycles: what is left when those that end at a
    term of one triple are taken off again and again (the 2-core). A term in ``apart`` joins nothing."""
    numbers = [number for number, one in triples.items() if not {one.head, one.tail} & set(apart)]
    while True:
        degrees = Counter(end for number in numbers for end in (triples[number].head, triples[number].tail))
        kept = [n for n in numbers if degrees[triples[n].head] > 1 and degrees[triples[n].tail] > 1]
        if len(kept) == len(numbers):
            return kept
        numbers = kept


def restrict_variable(pattern: Pattern, rows: Rows | Sequence[int], name: str = "") -> Pattern:
    """Return the pattern with a variable, by default its target, restricted to some rows."""
    import numpy as np

    given = pattern.variable(name or pattern.target)
    allowed = sorted_unique(rows)
    if given.rows is not None:
        allowed = np.intersect1d(allowed, given.rows)
    narrowed = replace(given, rows=allowed)
    variables = tuple(narrowed if one is given else one for one in pattern.variables)
    return replace(pattern, variables=variables)
