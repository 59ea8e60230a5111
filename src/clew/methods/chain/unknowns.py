"""The unknowns of a chain: the values that sources give for them, the hops that can be asked next, and conflicts.

Values are names, dates and numbers as people write them (:mod:`clew.core.values`). The first part of the
file tells whether an answer is of the form that its question asks for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from clew.core.errors import UsageError, unknown_name_error
from clew.core.protocols import Trail
from clew.core.trail import ConflictStep, SourceValues
from clew.core.types import Hit, Question, Quote
from clew.core.values import POLAR, same_value
from clew.questions.text import QuestionText, is_misfit
from clew.triples.language.chain import Chain, Term, Triple

#: Where unknowns are looked up: graphs, text, the model's memory, which is always asked last.
SOURCES = ("kg", "text", "model")
_HOW_MANY = re.compile(r"\W*how (?:many|much)\b", re.IGNORECASE)
_BOOLEAN = re.compile(r"^\W*(?:yes|no|true|false)\b", re.IGNORECASE)
#: A question with one of these words is not answered by yes or no.
_OPEN = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how|or)\b", re.IGNORECASE)


def answer_type_mismatch(question: str, answer: str) -> str:
    """Return why ``answer`` cannot answer ``question``, "" if nothing speaks against it.

    Only its form can speak against an answer: "when" asks for something with a digit, "how many" for a number, "who"
    for anything but a number, and a question that begins with a verb for yes or no.

    >>> answer_type_mismatch("When was he born?", "Lima")
    'a day or a name is asked for'
    >>> answer_type_mismatch("When was he born?", "3 May 1921")
    ''
    """
    if not answer:
        return "nothing was found"
    asked = QuestionText(question)
    if is_misfit(asked, [answer]):
        return "a day or a name is asked for"
    if _HOW_MANY.match(question) and not QuestionText(answer).values:
        return "a number is asked for"
    if POLAR.search(question) and not _OPEN.search(question) and not _BOOLEAN.search(answer):
        return "yes or no is asked for"
    return ""


#: A hop is asked with this many values of a known unknown if each costs a question of its own.
MAX_KNOWN_VALUES = 5
#: A step of the trail shows this many values.
SHOWN_VALUES = 10
#: This many values of two sources are compared before they are said to disagree.
COMPARED = 20
#: Of so many values each is checked against another triple, where one of the two is not a set of nodes.
MAX_CHECKED = 1000


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

    def share(self, other: ValueSet) -> ValueSet | None:
        """Return the values that are in both, None where the two cannot be compared as sets."""

    def __len__(self) -> int:
        """Return how many there are."""

    def back(self) -> ValueSet:
        """Return the values that these were reached from."""

    def candidates(self, most: int) -> tuple[Candidate, ...]:
        """Return the first ``most`` of them, each with the triples that lead to it."""


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

    def share(self, other: Filling) -> Filling | None:
        """Return the values that another filling has as well, with the evidence of both; None if there are none."""
        if self.all_values is not None and other.all_values is not None:
            shared = self.all_values.share(other.all_values)
            if shared is not None:
                candidates = shared.candidates(SHOWN_VALUES)
                return replace(self, candidates=candidates, all_values=shared) if candidates else None
        theirs = other.values(MAX_CHECKED)
        both: list[Candidate] = []
        for own in self.values(MAX_CHECKED):
            if match := next((each for each in theirs if same_value(own.value, each.value)), None):
                hits, quotes = (
                    dict.fromkeys((*own.hits, *match.hits)),
                    dict.fromkeys((*own.quotes, *match.quotes)),
                )
                both.append(replace(own, hits=tuple(hits), quotes=tuple(quotes)))
        return replace(self, candidates=tuple(both), all_values=None) if both else None


@dataclass(frozen=True, slots=True)
class Hop:
    """A triple with one term to find: ``unknown``. ``known`` are the values of the other term, best first.

    ``triple`` has the best known values filled in. ``inverse``: the tail is known and the head is to be found.
    ``known_filling`` is the filling of the known term, if that is an unknown that was filled before. ``place`` is the
    place of the triple in its chain.
    """

    triple: Triple
    known: tuple[Candidate, ...]
    unknown: int
    inverse: bool = False
    known_filling: Filling | None = None
    place: int = 0

    @property
    def known_term(self) -> Term:
        """The known term, with the best values filled in."""
        return self.triple.tail if self.inverse else self.triple.head


class KnowledgeSource(Protocol):
    """Gives values for unknowns."""

    @property
    def name(self) -> str:
        """The name in a recipe: ``kg``, ``text``."""

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the values for each hop, None for one that is not known. Raises ModelError, RemoteError."""


def parse_sources(text: str) -> list[str]:
    """Return the sources that ``kg,text,model`` names, in that order. Raises UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SOURCES:
            raise unknown_name_error("source of 'chain'", name, SOURCES)
    if not names or len(set(names)) < len(names):
        raise UsageError(f"sources of 'chain' are each named once: '{text}'", "Such as kg,text,model")
    if "model" in names[:-1]:
        raise UsageError(
            f"the model's memory is the last source: '{text}'", "It fills what the others leave open"
        )
    return names


@dataclass(slots=True)
class FilledChain:
    """A chain with the values of its unknowns. Of several fillings of an unknown the first one counts.

    ``asked`` has the places of the triples that the values rest on, each with the unknown that it filled or narrowed;
    ``hops`` has for each unknown the hop that filled it.
    ``unmet`` is a triple that no value of its unknowns meets, as far as the sources know.
    """

    chain: Chain
    fillings: dict[int, list[Filling]] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    hops: dict[int, Hop] = field(default_factory=dict)
    unmet: Triple | None = None

    def add(self, unknown: int, filling: Filling) -> None:
        """Add the values that a source gives for an unknown."""
        self.fillings.setdefault(unknown, []).append(filling)

    def fill(self, hop: Hop, filling: Filling) -> None:
        """Add the values that a source gives for the unknown of a hop. Of the values that it was asked with those
        stay that lead to one of them, where both are nodes of one graph."""
        self.add(hop.unknown, filling)
        if hop.unknown not in self.asked.values():
            self.asked[hop.place] = hop.unknown
            self.hops[hop.unknown] = hop
            self._narrow_known(hop, filling.all_values)

    def narrow(self, hop: Hop, filling: Filling) -> bool:
        """Keep the values of an unknown that a further triple leads to as well; return whether there are any. What
        was filled with the values that are left out is open again."""
        first, *others = self.fillings[hop.unknown]
        shared = first.share(filling)
        if shared is None:
            return False
        self.fillings[hop.unknown] = [shared, *others]
        self.asked[hop.place] = hop.unknown
        if shared.count < first.count:
            self._reopen(hop.unknown, hop.place)
        if hop.unknown in self.hops:
            self._narrow_known(self.hops[hop.unknown], shared.all_values)
        if filling.all_values is not None and shared.all_values is not None:
            self._narrow_known(hop, filling.all_values.share(shared.all_values))
        return True

    def _narrow_known(self, hop: Hop, reached: ValueSet | None) -> None:
        """Keep of the values that a hop was asked with those that lead to what it ``reached``."""
        triple = self.chain.triples[hop.place]
        number = (triple.tail if hop.inverse else triple.head).unknown
        if number is None or reached is None or number not in self.fillings:
            return
        first, *others = self.fillings[number]
        shared = None if first.all_values is None else first.share(replace(first, all_values=reached.back()))
        if shared is not None:
            self.fillings[number] = [shared, *others]
            if shared.count < first.count:
                self._reopen(number, hop.place)
            if number in self.hops:
                self._narrow_known(self.hops[number], shared.all_values)

    def _reopen(self, number: int, but: int) -> None:
        """Forget what rests on the values of an unknown, other than the triple at the place ``but``."""
        for place, triple in enumerate(self.chain.triples):
            asked = self.asked.get(place)
            if asked is None or asked == number or place == but or number not in triple.unknowns:
                continue
            del self.asked[place]
            if asked in self.fillings and self.hops[asked].place == place:
                del self.fillings[asked], self.hops[asked]
                self._reopen(asked, place)

    @property
    def best_values(self) -> Mapping[int, str]:
        """The best value of each unknown that has one."""
        return {number: fillings[0].candidates[0].value for number, fillings in self.fillings.items()}

    @property
    def open_unknowns(self) -> tuple[int, ...]:
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
            for place, triple in enumerate(self.chain.triples):
                known, asked = (triple.tail, triple.head) if inverse else (triple.head, triple.tail)
                number = asked.unknown
                if number is None or number in hops or number in self.fillings or number in known.unknowns:
                    continue
                if all(unknown in self.fillings for unknown in known.unknowns):
                    hops[number] = self._hop(place, known, number, inverse)
        return [hops[number] for number in sorted(hops)]

    def open_checks(self) -> list[Hop]:
        """Return the triples that no value rests on although both of their ends are known, each as a hop to one."""
        hops = []
        for place, triple in enumerate(self.chain.triples):
            if place in self.asked or any(number in self.open_unknowns for number in triple.unknowns):
                continue
            if triple.tail.unknown is not None:
                hops.append(self._hop(place, triple.head, triple.tail.unknown, False))
            elif triple.head.unknown is not None:
                hops.append(self._hop(place, triple.tail, triple.head.unknown, True))
        return hops

    @property
    def missing(self) -> Triple | None:
        """The first triple that is not met, or whose unknowns have no values, as it is with those that are known."""
        if self.unmet is not None:
            return self.unmet
        triples = (each for each in self.chain.triples if set(each.unknowns) & set(self.open_unknowns))
        first = next(triples, None)
        return None if first is None else first.fill(self.best_values)

    def forward_hop(self, triple: Triple) -> Hop | None:
        """Return the hop from a triple's head to its tail, None where the head is open or the tail is not."""
        number = triple.tail.unknown
        if number is None or number in self.fillings or number in triple.head.unknowns:
            return None
        if not all(unknown in self.fillings for unknown in triple.head.unknowns):
            return None
        return self._hop(self.chain.triples.index(triple), triple.head, number, False)

    def _hop(self, place: int, known: Term, number: int, inverse: bool) -> Hop:
        filling = self.fillings[known.unknown][0] if known.unknown is not None else None
        values = {each: value for each, value in self.best_values.items() if each != number}
        triple = self.chain.triples[place].fill(values)
        return Hop(triple, self._known_values(known), number, inverse, filling, place)

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
    return not filled.open_unknowns


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that disagree about an unknown; the chain went on with ``used``."""

    unknown: int
    used: Filling
    other: Filling


def find_conflicts(filled: FilledChain) -> list[Conflict]:
    """Return where sources disagree: no value of the one matches a value of the other. What two of them say against
    the first is a conflict once."""
    conflicts: list[Conflict] = []
    for number, (first, *others) in sorted(filled.fillings.items()):
        against: list[Filling] = []
        for other in others:
            if not any(values_agree(other, filling) for filling in (first, *against)):
                against.append(other)
                conflicts.append(Conflict(number, first, other))
    return conflicts


def values_agree(first: Filling, second: Filling) -> bool:
    """Return whether two fillings have a value in common, however each writes it."""
    values = [candidate.value for candidate in second.values(COMPARED)]
    return any(same_value(candidate.value, value) for candidate in first.values(COMPARED) for value in values)


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
