"""What is known of the unknowns of a chain, and which hops can be asked next."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.core.protocols import Trail
from clew.core.steps import ConflictStep, SourceValues
from clew.core.types import Hit, Question, Quote
from clew.methods.chain.value_matching import same_value
from clew.triples.language.chain import Chain, Term, Triple

#: Values of one unknown that the next hop is asked with where each costs a question of its own.
MAX_KNOWN_VALUES = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value of an unknown: its words, and how sure its source is of it, from 0 to 1.

    ``hits`` is what it rests on, the hops before it first; ``quotes`` are words of these. ``id`` is that of the
    entity where the source has one.
    """

    value: str
    score: float = 1.0
    hits: tuple[Hit, ...] = ()
    quotes: tuple[Quote, ...] = ()
    id: str = ""


class ValueSet(Protocol):
    """All values of an unknown, where a graph has too many of them to be named one by one at every hop."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def candidates(self, most: int) -> tuple[Candidate, ...]:
        """Return the first ``most`` of them, each with the triples that lead to it."""
        ...


@dataclass(frozen=True, slots=True)
class Filling:
    """What one source says that an unknown is: its best values, and all of them where a graph has more.

    ``source`` is ``kg``, ``text`` or ``model``; ``where`` the graph, or "".
    """

    source: str
    candidates: tuple[Candidate, ...]
    all_values: ValueSet | None = None
    graph: str = ""

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self.candidates) if self.all_values is None else len(self.all_values)

    @property
    def score(self) -> float:
        """How sure the source is of its best value, from 0 to 1."""
        return self.candidates[0].score

    def values(self, most: int) -> tuple[Candidate, ...]:
        """Return at most ``most`` values, best first."""
        if self.all_values is None or most <= len(self.candidates):
            return self.candidates[:most]
        return self.all_values.candidates(most)


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop: what ``unknown`` is, where ``known`` are the values of the other term, best first.

    ``triple`` has the best known values filled in. ``inverse``: the tail is known and the head asked for. ``found``
    is what the whole of the known term is, where it is an unknown that was filled before.
    """

    triple: Triple
    known: tuple[Candidate, ...]
    unknown: int
    inverse: bool = False
    known_filling: Filling | None = None

    @property
    def known_term(self) -> Term:
        """The term that is known, with the best values filled in."""
        return self.triple.tail if self.inverse else self.triple.head


@dataclass(slots=True)
class FilledChain:
    """A chain with what was found for its unknowns: the one that counts first, then what other sources say."""

    chain: Chain
    fillings: dict[int, list[Filling]] = field(default_factory=dict)

    def add(self, unknown: int, found: Filling) -> None:
        """Take what a source says of an unknown; the first that says something counts."""
        self.fillings.setdefault(unknown, []).append(found)

    @property
    def best_values(self) -> Mapping[int, str]:
        """The best value of each unknown that has one."""
        return {number: found[0].candidates[0].value for number, found in self.fillings.items()}

    @property
    def unfilled(self) -> tuple[int, ...]:
        """The unknowns without a value."""
        return tuple(number for number in self.chain.unknowns if number not in self.fillings)

    def __str__(self) -> str:
        """The chain with the best values in the place of its unknowns."""
        return str(self.chain.fill(self.best_values))

    def open_hops(self) -> list[Hop]:
        """Return the hops that can be asked now, in the order of the chain, one for each unknown.

        A hop that asks for a tail goes before one that asks for a head: that is how chains are meant.
        """
        asks: dict[int, Hop] = {}
        for inverse in (False, True):
            for triple in self.chain.triples:
                known, asked = (triple.tail, triple.head) if inverse else (triple.head, triple.tail)
                number = asked.unknown
                if number is None or number in asks or number in self.fillings or number in known.unknowns:
                    continue
                if all(one in self.fillings for one in known.unknowns):
                    asks[number] = self._ask(triple, known, number, inverse)
        return [asks[number] for number in sorted(asks)]

    def _ask(self, triple: Triple, known: Term, number: int, inverse: bool) -> Hop:
        found = self.fillings[known.unknown][0] if known.unknown is not None else None
        return Hop(triple.fill(self.best_values), self._known(known), number, inverse, found)

    def _known(self, term: Term) -> tuple[Candidate, ...]:
        """Return the values of a term whose unknowns all have some, best first."""
        if term.unknown is not None:
            return self.fillings[term.unknown][0].values(MAX_KNOWN_VALUES)
        lists = [self.fillings[number][0].values(MAX_KNOWN_VALUES) for number in term.unknowns]
        made = []
        for some in itertools.islice(itertools.product(*lists), MAX_KNOWN_VALUES):
            words = {number: one.value for number, one in zip(term.unknowns, some, strict=True)}
            hits = tuple(dict.fromkeys(hit for one in some for hit in one.hits))
            quotes = tuple(dict.fromkeys(quote for one in some for quote in one.quotes))
            score = min((one.score for one in some), default=1.0)
            made.append(Candidate(term.fill(words).text, score, hits, quotes))
        return tuple(made)


def is_solvable(chain: Chain) -> bool:
    """Return whether every unknown could be filled, if each hop that can be asked were answered."""
    filled = FilledChain(chain)
    while asks := filled.open_hops():
        for ask in asks:
            filled.add(ask.unknown, Filling("", (Candidate("?"),)))
    return not filled.unfilled


#: Values of each side that are compared before two sources are said to disagree.
_COMPARED = 20
#: Values that a step of the trail shows.
SHOWN_VALUES = 10


class KnowledgeSource(Protocol):
    """Somewhere that unknowns can be looked up."""

    @property
    def name(self) -> str:
        """What it is called in a recipe: ``kg``, ``text``."""
        ...

    def fill(self, question: Question, asks: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return for each hop what was found, None where it is not known. Raises ModelError, RemoteError."""
        ...


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that say different things of an unknown; ``one`` is what the chain went on with."""

    unknown: int
    used: Filling
    other: Filling


def find_conflicts(filled: FilledChain) -> list[Conflict]:
    """Return where sources disagree: no value of the one is like a value of the other."""
    return [
        Conflict(number, found[0], other)
        for number, found in sorted(filled.fillings.items())
        for other in found[1:]
        if not values_agree(found[0], other)
    ]


def values_agree(one: Filling, other: Filling) -> bool:
    """Return whether two sources have a value in common, however each writes it."""
    theirs = [candidate.value for candidate in other.values(_COMPARED)]
    return any(same_value(mine.value, value) for mine in one.values(_COMPARED) for value in theirs)


def record_conflicts(filled: FilledChain, trail: Trail) -> None:
    """Enter into the trail where sources disagree, both with their evidence."""
    for one in find_conflicts(filled):
        taken, also = (
            SourceValues(side.graph or side.source, tuple(value.value for value in side.values(SHOWN_VALUES)))
            for side in (one.used, one.other)
        )
        hits = tuple(dict.fromkeys((*one.used.candidates[0].hits, *one.other.candidates[0].hits)))
        trail.add(ConflictStep(f"#{one.unknown}", taken, also, hits=hits))


# MERGED: Filling the unknowns of a chain (Su et al., NAACL 2024, Section 3.2): one loop for every source of
# knowledge.
