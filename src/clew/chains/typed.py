"""A question as typed triples (4StepFocus: Boer et al., 2024, Section 3), with what the paper leaves open:
quantifiers, negation, conditions on properties, and wishes that fit no triple."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.chains.terms import Chain

TESTS = ("=", "<", "<=", ">", ">=", "between", "contains")


@dataclass(frozen=True, slots=True)
class Count:
    """How many different tails a head must have among the candidates of the tail; ``most`` None: no limit.

    ``only``: all its tails must be among them. The candidates are those that the rest of the pattern leaves the tail,
    counted as a set: what else binds a tail to this very head is not looked at, except by :data:`NOT`. A
    constant has those that it was given with.
    """

    least: int = 1
    most: int | None = None
    only: bool = False


#: No tail: where other triples join head and tail already, not this tail (films whose director does not act in them).
NOT = Count(0, 0)
#: At least one tail, and no other than candidates.
ONLY = Count(1, None, only=True)


def at_least(n: int) -> Count:
    """Return the quantifier "at least n"."""
    return Count(n, None)


def at_most(n: int) -> Count:
    """Return the quantifier "at most n"; none is few enough."""
    return Count(0, n)


def exactly(n: int) -> Count:
    """Return the quantifier "exactly n"."""
    return Count(n, n)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a property of an unknown must be: one of :data:`TESTS`; ``high`` is the end of ``between``."""

    unknown: int
    property: str
    test: str
    value: str | float
    high: str | float | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TypedChain:
    """Triples over typed constants and unknowns, one of which is asked for.

    ``types`` are the types that an unknown may have, by its number, and ``kinds`` those of a constant, by its text;
    ``counts`` the quantifier of a triple, by its place in ``chain.triples``. ``wishes`` are what an answer should be
    like where no triple and no condition can say it ("slow and dreamlike"): they rank, and drop nothing.
    ``chain.answer`` is a number: of ``#answer`` nothing could be a candidate. There may be no triples at all.
    """

    chain: Chain
    types: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Mapping[int, Count] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    wishes: tuple[str, ...] = ()
