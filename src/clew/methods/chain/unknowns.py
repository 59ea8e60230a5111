"""The unknowns of a chain: the values that sources give for them, the hops that can be asked next, and conflicts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.core.protocols import Trail
from clew.core.trail import ConflictStep, SourceValues
from clew.core.types import Hit, Question, Quote
from clew.methods.chain.value_matching import same_value
from clew.triples.language.chain import Chain, Term, Triple

#: A hop is asked with this many values of a known unknown if each costs a question of its own.
MAX_KNOWN_VALUES = 5
#: A step of the trail shows this many values.
SHOWN_VALUES = 10
#: This many values of two sources are compared before they are said to disagree.
_COMPARED = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value of an unknown. ``score`` is how sure its source is of it, from 0 to 1.

    ``hits`` are its evidence, that of the hops before first; ``quotes`` are quoted from them. ``id`` is the entity's,
    if the source has one.
    """

    value: str
    score: float = 1.0
    hits: tuple[Hit, ...] = ()
    quotes: tuple[Quote, ...] = ()
    id: str = ""


class ValueSet(Protocol):
    """All values of an unknown, for a graph that has too many of them to name them one by one at every hop."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def candidates(self, most: int) -> tuple[Candidate, ...]:
        """Return the first ``most`` of them, each with the triples that lead to it."""
        ...


@dataclass(frozen=True, slots=True)
class Filling:
    """The values that one source gives for an unknown: the best, and all of them if a graph has more.

    ``source`` is ``kg``, ``text`` or ``model``; ``graph`` the name of the graph, or "".
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
    """A triple with one term to find: ``unknown``. ``known`` are the values of the other term, best first.

    ``triple`` has the best known values filled in. ``inverse``: the tail is known and the head is to be found.
    ``known_filling`` is the filling of the known term, if that is an unknown that was filled before.
    """

    triple: Triple
    known: tuple[Candidate, ...]
    unknown: int
    inverse: bool = False
    known_filling: Filling | None = None

    @property
    def known_term(self) -> Term:
        """The known term, with the best values filled in."""
        return self.triple.tail if self.inverse else self.triple.head


class KnowledgeSource(Protocol):
    """Gives values for unknowns."""

    @property
    def name(self) -> str:
        """The name in a recipe: ``kg``, ``text``."""
        ...

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the values for each hop, None for one that is not known. Raises ModelError, RemoteError."""
        ...


@dataclass(slots=True)
class FilledChain:
    """A chain with the values of its unknowns. Of several fillings of an unknown the first one counts."""

    chain: Chain
    fillings: dict[int, list[Filling]] = field(default_factory=dict)

    def add(self, unknown: int, filling: Filling) -> None:
        """Add the values that a source gives for an unknown."""
        self.fillings.setdefault(unknown, []).append(filling)

    @property
    def best_values(self) -> Mapping[int, str]:
        """The best value of each unknown that has one."""
        return {number: fillings[0].candidates[0].value for number, fillings in self.fillings.items()}

    @property
    def unfilled(self) -> tuple[int, ...]:
        """The unknowns without a value."""
        return tuple(number for number in self.chain.unknowns if number not in self.fillings)

    def __str__(self) -> str:
        """The chain with the best values in the place of its unknowns."""
        return str(self.chain.fill(self.best_values))

    def open_hops(self) -> list[Hop]:
        """Return the hops that can be asked now, one for each unknown, in the order of the unknowns.

        A hop that asks for a tail goes before one that asks for a head: chains are written that way.
        """
        hops: dict[int, Hop] = {}
        for inverse in (False, True):
            for triple in self.chain.triples:
                known, asked = (triple.tail, triple.head) if inverse else (triple.head, triple.tail)
                number = asked.unknown
                if number is None or number in hops or number in self.fillings or number in known.unknowns:
                    continue
                if all(unknown in self.fillings for unknown in known.unknowns):
                    hops[number] = self._hop(triple, known, number, inverse)
        return [hops[number] for number in sorted(hops)]

    def _hop(self, triple: Triple, known: Term, number: int, inverse: bool) -> Hop:
        filling = self.fillings[known.unknown][0] if known.unknown is not None else None
        return Hop(triple.fill(self.best_values), self._known_values(known), number, inverse, filling)

    def _known_values(self, term: Term) -> tuple[Candidate, ...]:
        """Return the values of a term whose unknowns are all filled, best first."""
        if term.unknown is not None:
            return self.fillings[term.unknown][0].values(MAX_KNOWN_VALUES)
        lists = [self.fillings[number][0].values(MAX_KNOWN_VALUES) for number in term.unknowns]
        values = []
        for combination in itertools.islice(itertools.product(*lists), MAX_KNOWN_VALUES):
            words = dict(zip(term.unknowns, (part.value for part in combination), strict=True))
            hits = tuple(dict.fromkeys(hit for part in combination for hit in part.hits))
            quotes = tuple(dict.fromkeys(quote for part in combination for quote in part.quotes))
            score = min((part.score for part in combination), default=1.0)
            values.append(Candidate(term.fill(words).text, score, hits, quotes))
        return tuple(values)


def is_solvable(chain: Chain) -> bool:
    """Return whether every unknown could be filled if each hop that can be asked had an answer."""
    filled = FilledChain(chain)
    while hops := filled.open_hops():
        for hop in hops:
            filled.add(hop.unknown, Filling("", (Candidate("?"),)))
    return not filled.unfilled


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that disagree about an unknown; the chain went on with ``used``."""

    unknown: int
    used: Filling
    other: Filling


def find_conflicts(filled: FilledChain) -> list[Conflict]:
    """Return where sources disagree: no value of the one matches a value of the other."""
    return [
        Conflict(number, fillings[0], other)
        for number, fillings in sorted(filled.fillings.items())
        for other in fillings[1:]
        if not values_agree(fillings[0], other)
    ]


def values_agree(first: Filling, second: Filling) -> bool:
    """Return whether two fillings have a value in common, however each writes it."""
    values = [candidate.value for candidate in second.values(_COMPARED)]
    return any(
        same_value(candidate.value, value) for candidate in first.values(_COMPARED) for value in values
    )


def record_conflicts(filled: FilledChain, trail: Trail) -> None:
    """Add a step to the trail for each conflict, with the evidence of both sides."""
    for conflict in find_conflicts(filled):
        taken, also = (
            SourceValues(
                filling.graph or filling.source,
                tuple(candidate.value for candidate in filling.values(SHOWN_VALUES)),
            )
            for filling in (conflict.used, conflict.other)
        )
        evidence = (*conflict.used.candidates[0].hits, *conflict.other.candidates[0].hits)
        trail.add(ConflictStep(f"#{conflict.unknown}", taken, also, hits=tuple(dict.fromkeys(evidence))))
