"""Patterns: triples over constants and variables, and conditions on properties, in terms of one graph.

A pattern is what Algorithm 3 of 4StepFocus prepares: its constants are nodes of the graph and its relations those of
the graph. Terms are known by name, and a term is one node: a constant with several candidates stands for the same one
of them in all its triples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.core.arrays import Rows, sorted_unique
from clew.core.errors import UsageError, unknown_name_error
from clew.triples.language.chain import NOT, TESTS, Quantifier


@dataclass(frozen=True, slots=True)
class DirectedRelation:
    """A relation (None: any) and the direction in which a triple follows it from its head to its tail."""

    relation: str | None = None
    inverse: bool = False

    @property
    def opposite(self) -> DirectedRelation:
        """The same relation in the other direction."""
        return DirectedRelation(self.relation, not self.inverse)


#: Any relation, from the head to the tail.
ANY_RELATION = (DirectedRelation(),)
#: Any relation in either direction, as the paper follows edges: restricting edge types was "error-prone" (Section 4).
ANY_DIRECTION = (DirectedRelation(), DirectedRelation(inverse=True))


def along(relation: str, inverse: bool = False) -> tuple[DirectedRelation, ...]:
    """Return the relations of a triple that follows one relation, or its ``inverse``."""
    return (DirectedRelation(relation, inverse),)


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An unknown node: of one of ``types`` (empty: of any), one of ``rows`` unless None, none of ``excluded``.

    The types are a constraint of this ``weight`` that can be relaxed; ``rows`` and ``excluded`` always hold.
    """

    name: str
    types: tuple[str, ...] = ()
    rows: Rows | None = None
    excluded: tuple[int, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Constant:
    """A known node: its candidate rows, each with a score from 0 to 1; no ``scores``: 1 each."""

    name: str
    rows: tuple[int, ...]
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedTriple:
    """The term named ``head`` leads along one of ``relations`` to the term named ``tail``; with a ``quantifier``, to
    so many of its candidates.

    ``weight`` is how sure the triple is, such as the score of its constant's match: the weakest is relaxed first.
    """

    head: str
    relations: tuple[DirectedRelation, ...]
    tail: str
    quantifier: Quantifier | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on a property of a variable, with one of :data:`TESTS`; of several values one has to meet it.

    ``=`` compares numbers as numbers and all else as :func:`clew.core.text.fold_name` leaves it; ``contains`` looks
    for the folded value anywhere in the folded text, ``says`` for whole words. ``between`` includes ``value`` and
    ``high``. ``negated``: it holds for the nodes that do not meet the test, including those without the property.
    """

    variable: str
    property: str
    test: str
    value: str | float
    high: str | float | None = None
    negated: bool = False
    weight: float = 1.0


#: A part of a pattern that can be relaxed. A variable stands for its types.
Constraint = TypedTriple | Predicate | Variable


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Triples and predicates, all of which must hold, and the ``target``: the variable that is asked for.

    ``answer_rows``, unless None, are the rows that may answer. They restrict only the target; constants and other
    variables range over all nodes. Raises UsageError for terms that are missing or named twice, and for tests and
    quantifiers that make no sense.
    """

    target: str
    variables: tuple[Variable, ...]
    constants: tuple[Constant, ...] = ()
    triples: tuple[TypedTriple, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    answer_rows: Rows | None = None

    def __post_init__(self) -> None:
        variables = [variable.name for variable in self.variables]
        names = {*variables, *(constant.name for constant in self.constants)}
        if len(names) < len(variables) + len(self.constants):
            raise UsageError("two terms of a pattern have the same name", "Give each term its own name")
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
                raise UsageError(
                    f"wrong number of values for '{predicate.test}' on {predicate.property}",
                    "between takes two values, every other test one",
                )

    def _check(self, triple: TypedTriple, names: set[str]) -> None:
        for end in (triple.head, triple.tail):
            if end not in names:
                raise unknown_name_error("term", end, names)
        if not triple.relations:
            raise UsageError(
                f"a triple from {triple.head} to {triple.tail} without a relation",
                "Any relation: ANY_DIRECTION",
            )
        if (quantifier := triple.quantifier) is None:
            return
        if not 0 <= quantifier.least <= (math.inf if quantifier.most is None else quantifier.most):
            raise UsageError(f"at least {quantifier.least} and at most {quantifier.most}")
        if triple.head == triple.tail and quantifier != NOT:
            raise UsageError(f"{triple.head} is counted among its own tails", "Only 'not' is allowed here")

    def variable(self, name: str) -> Variable:
        """Return the variable of that name."""
        return next(variable for variable in self.variables if variable.name == name)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What can be relaxed: the triples, the predicates, and the variables that have types."""
        return (*self.triples, *self.predicates, *(variable for variable in self.variables if variable.types))

    def keep_only(self, constraints: Iterable[Constraint]) -> Pattern:
        """Return the pattern with no other constraints than these, compared by identity."""
        identities = set(map(id, constraints))
        return replace(
            self,
            triples=tuple(triple for triple in self.triples if id(triple) in identities),
            predicates=tuple(predicate for predicate in self.predicates if id(predicate) in identities),
            variables=tuple(
                replace(variable, types=()) if variable.types and id(variable) not in identities else variable
                for variable in self.variables
            ),
        )

    def without(self, constraints: Sequence[Constraint]) -> Pattern:
        """Return the pattern without some of its constraints, compared by identity."""
        removed = set(map(id, constraints))
        return self.keep_only(constraint for constraint in self.constraints if id(constraint) not in removed)


def connected_terms(triples: Sequence[TypedTriple], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return for each term the terms that triples connect to it, itself included. Quantified triples connect
    nothing."""
    groups = {name: {name} for name in names}
    for triple in triples:
        group, other = groups[triple.head], groups[triple.tail]
        if triple.quantifier is None and group is not other:
            group |= other
            for name in other:
                groups[name] = group
    return {name: frozenset(group) for name, group in groups.items()}


def triples_on_cycles(triples: Mapping[int, TypedTriple], separate: Collection[str] = ()) -> list[int]:
    """Return the numbers of the triples that are on cycles or between cycles (the 2-core): those left when triples
    that end at a term of one triple are taken off repeatedly. A term in ``separate`` connects nothing."""
    numbers = [number for number, triple in triples.items() if not {triple.head, triple.tail} & set(separate)]
    while True:
        degrees = Counter(end for number in numbers for end in (triples[number].head, triples[number].tail))
        inner = [n for n in numbers if degrees[triples[n].head] > 1 and degrees[triples[n].tail] > 1]
        if len(inner) == len(numbers):
            return inner
        numbers = inner


def restrict_variable(pattern: Pattern, rows: Rows | Sequence[int], name: str = "") -> Pattern:
    """Return the pattern with a variable, by default its target, restricted to ``rows``."""
    variable = pattern.variable(name or pattern.target)
    allowed = sorted_unique(rows)
    if variable.rows is not None:
        allowed = np.intersect1d(allowed, variable.rows)
    restricted = replace(variable, rows=allowed)
    return replace(
        pattern, variables=tuple(restricted if other is variable else other for other in pattern.variables)
    )
