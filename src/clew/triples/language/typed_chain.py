"""A question as typed triples (4StepFocus: Boer et al., 2024, Section 3).

Beyond the paper: quantifiers, negation, conditions on properties, and preferences that no triple can express.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.triples.language.chain import NEGATION, Chain, Term, Triple, quote, quote_if_needed

#: Tests of a property. ``contains`` looks for text anywhere, ``says`` for whole words.
TESTS = ("=", "<", "<=", ">", ">=", "between", "contains", "says")


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How many different tails a head must have among the candidates of the tail; ``most`` None: no limit.

    ``only``: all its tails must be candidates. The candidates are those that the other triples leave the tail,
    counted as a set: whether other triples connect a tail to the same head matters only to :data:`NOT`. The
    candidates of a constant are those that it was given with.
    """

    least: int = 1
    most: int | None = None
    only: bool = False

    def __str__(self) -> str:
        """The quantifier as a question writes it before a triple.

        >>> str(NOT), str(ONLY), str(at_least(2)), str(Quantifier(2, 4))
        ('not', 'only', 'at least 2', 'from 2 to 4')
        """
        if self.only:
            return "only" if self == ONLY else f"only {Quantifier(self.least, self.most)._bounds()}"
        return "not" if self == NOT else self._bounds()

    def _bounds(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        if self.least == self.most:
            return f"exactly {self.least}"
        return f"from {self.least} to {self.most}" if self.least else f"at most {self.most}"


#: No tail. Where other triples connect head and tail already, not this tail (films whose director does not act in
#: them).
NOT = Quantifier(0, 0)
#: At least one tail, and only candidates.
ONLY = Quantifier(1, None, only=True)


def at_least(n: int) -> Quantifier:
    """Return the quantifier "at least n"."""
    return Quantifier(n, None)


def at_most(n: int) -> Quantifier:
    """Return the quantifier "at most n", which includes none."""
    return Quantifier(0, n)


def exactly(n: int) -> Quantifier:
    """Return the quantifier "exactly n"."""
    return Quantifier(n, n)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a property of an unknown: ``test`` is one of :data:`TESTS`, ``high`` the end of ``between``."""

    unknown: int
    property: str
    test: str
    value: str | float
    high: str | float | None = None
    negated: bool = False

    def __str__(self) -> str:
        """The condition as a question writes it.

        >>> str(Condition(1, "release_year", "between", 1980, 1990)), str(Condition(1, "title", "contains", "7"))
        ('#1.release_year between 1980 and 1990', '#1.title contains "7"')
        """
        property = quote_if_needed(self.property, reserved=rf"\W|{NEGATION}")
        values = _value(self.value) if self.high is None else f"{_value(self.value)} and {_value(self.high)}"
        return f"{'not ' if self.negated else ''}#{self.unknown}.{property} {self.test} {values}"


@dataclass(frozen=True, slots=True)
class Superlative:
    """Keeps the ``count`` answers with the highest (``highest`` False: lowest) number of a property, or with the most
    (fewest) tails of a triple; equals of the last are kept too. Either ``property`` or ``triple`` is given.
    """

    unknown: int
    highest: bool
    count: int = 1
    property: str = ""
    triple: Triple | None = None

    def __str__(self) -> str:
        """The superlative as a question writes it.

        >>> str(Superlative(1, True, property="runtime")), str(Superlative(1, False, 3, property="runtime"))
        ('highest #1.runtime', '3 lowest #1.runtime')
        """
        count = f"{self.count} " if self.count > 1 else ""
        if self.triple is None:
            property = quote_if_needed(self.property, reserved=rf"\W|{NEGATION}")
            return f"{count}{'highest' if self.highest else 'lowest'} #{self.unknown}.{property}"
        return f"{count}{'most' if self.highest else 'fewest'} {_statement(self.triple)}"


@dataclass(frozen=True, slots=True)
class TypedChain:
    """Triples over typed constants and unknowns, one of which is asked for.

    ``types`` has the types that an unknown may have, by its number; ``constant_types`` those of a constant, by its
    text; ``quantifiers`` the quantifier of a triple, by its place in ``chain.triples``. ``preferences`` say what an
    answer should be like where no triple and no condition can ("slow and dreamlike"): they rank answers and exclude
    none. ``superlatives`` keep the best of the answers that all else leaves. ``chain.answer`` is always a number,
    since nothing can be a candidate of ``#answer``. There may be no triples.
    """

    chain: Chain
    types: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    constant_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quantifiers: Mapping[int, Quantifier] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    preferences: tuple[str, ...] = ()
    superlatives: tuple[Superlative, ...] = ()

    def statement(self, place: int) -> str:
        """Return a triple with its quantifier, as a question writes it: ``not #1 >> starred_actors >> Bob``."""
        quantifier = self.quantifiers.get(place)
        statement = _statement(self.chain.triples[place], quantifier)
        return statement if quantifier is None else f"{quantifier} {statement}"

    def __str__(self) -> str:
        """The question in the form in which a person or a model writes it; it parses back."""
        constant_types = [
            f"{quote_if_needed(name, reserved=_INTRODUCES)} : {_types(types)}"
            for name, types in self.constant_types.items()
        ]
        types = [f"#{number} : {_types(types)}" for number, types in self.types.items()]
        triples = [self.statement(place) for place in range(len(self.chain.triples))]
        answer = f"#{self.chain.answer}"
        preferences = [f"{answer} ~ {quote_if_needed(preference)}" for preference in self.preferences]
        return "; ".join(
            [
                *constant_types,
                *types,
                *triples,
                *map(str, self.conditions),
                *map(str, self.superlatives),
                *preferences,
                f"final answer: {answer}",
            ]
        )


#: "Chain : film" at the start of a reply introduces what follows (INTRODUCTION in chain.py).
_INTRODUCES = r"(?i:chain\Z)"


def _statement(triple: Triple, quantifier: Quantifier | None = None) -> str:
    head = _term(triple.head)
    if quantifier is not None and triple.head.unknown is None:
        head = quote(triple.head.text)  # "not b" could be a name
    arrow = "<<" if triple.inverse else ">>"
    last = f"{arrow}+" if triple.repeated else arrow
    return f"{head} {arrow} {quote_if_needed(triple.relation, reserved=NEGATION)} {last} {_term(triple.tail)}"


def _term(term: Term) -> str:
    return term.text if term.unknown is not None else quote_if_needed(term.text)


def _types(types: tuple[str, ...]) -> str:
    return " or ".join(quote_if_needed(type, reserved=rf"\bor\b|,|{NEGATION}") for type in types)


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return quote_if_needed(value, reserved=r"\band\b|\bto\b|,|\d-\d")
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e15):
        return repr(value)
    return str(int(value))
