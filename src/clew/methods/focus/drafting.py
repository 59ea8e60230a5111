"""One triple or condition of a question after the other into a pattern, or left out of it with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.chains import NOT, Condition, Count, Triple, TypedChain
from clew.errors import UsageError
from clew.focus import Constant, Pattern, Predicate, TypedTriple, Variable, in_order
from clew.link.describing import Labels
from clew.link.wording import spelled
from clew.methods.focus.constants import comparison_of
from clew.methods.focus.ways import End, Ways
from clew.types import LinkedEntity

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, RelationLinker, Rows

#: What a type is worth against triples where they contradict each other: models know names better than types.
TYPE_WORTH = 0.8
#: From this score on words name a property.
PROPERTY = 0.6


@dataclass(frozen=True, slots=True)
class Dropped:
    """A constraint that a graph cannot hold: as it is written, in words for a search, and why.

    ``words`` is "" where no text could speak for it. ``place`` is that of its triple in the chain, None for anything
    else. ``strict``: it is denied or counted, so that nothing which is read in its place could meet it. ``value``:
    the graph has it, but as a property, whose values are no nodes.
    """

    text: str
    words: str
    why: str
    place: int | None = None
    strict: bool = False
    value: bool = False


@dataclass(slots=True)
class Draft:
    """A pattern over one graph in the making. ``linked`` are the candidates of its constants, ``types`` the types of
    its unknowns."""

    graph: PropertyGraph
    typed: TypedChain
    ways: Ways
    relations: RelationLinker
    linked: Mapping[str, Sequence[LinkedEntity]] = field(default_factory=dict)
    types: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    triples: list[tuple[TypedTriple, int]] = field(default_factory=list)
    sure: list[float] = field(default_factory=list)
    predicates: list[tuple[Predicate, str]] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)

    def triple(self, place: int) -> None:
        """Take a triple of the chain: as a triple of the graph, as a predicate, or as dropped."""
        triple, count = self.typed.chain.triples[place], self.typed.counts.get(place)
        ends = (triple.head, triple.tail)
        constants = [one.text for one in ends if one.unknown is None]
        missing = [name for name in constants if not self.linked.get(name)]
        if any(one.unknown is None and one.unknowns for one in ends):
            return self.drop(place, "an unknown inside a name")
        if len(constants) == 2:
            return self.drop(place, "nothing in it is unknown", words=False)
        if triple.tail.unknown is None and self._predicate(triple, place, bool(missing)):
            return None
        if triple.tail.unknown is not None and self.is_property(triple.relation):
            text, strict = self.typed.statement(place), count is not None
            why = "a value, which is no node"
            self.dropped.append(Dropped(text, "", why, place, strict, value=True))
            return None
        if missing:
            return self.drop(place, f"'{missing[0]}' is not in the graph")
        if count is not None and count != NOT and triple.head.unknown is None:
            return self.drop(place, f"it counts for '{constants[0]}', and says nothing of an unknown")
        if count is not None and count != NOT and triple.head == triple.tail:
            return self.drop(place, "it counts an unknown among its own")
        return self._followed(triple, place, count)

    def _followed(self, triple: Triple, place: int, count: Count | None) -> None:
        """Take a triple along a relation of the graph."""
        names = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
        head, tail = (self._end(end.text, end.unknown) for end in (triple.head, triple.tail))
        found = self.ways.find(self.graph, triple.relation, head, tail, count is not None)
        if found is None:
            return self.drop(place, f"the graph has no relation like '{triple.relation}'")
        weight = min([found.score, *(self.linked[name][0].score for name in names)])
        self.said[triple.relation] = f"{_arrow(found.ways)} ({found.how})"
        ends, ways = (triple.head.text, triple.tail.text), found.ways
        if count == NOT and triple.head.unknown is None:
            # No edge from a name to an unknown: no edge back either, and a quantifier stands before an unknown.
            ends, ways = ends[::-1], tuple(one.turned for one in ways)
        self.triples.append((TypedTriple(ends[0], ways, ends[1], count, weight), place))
        self.sure.append(found.score)
        return None

    def _predicate(self, triple: Triple, place: int, missing: bool) -> bool:
        """Take a triple with a constant tail as a predicate, where the graph has a property for it: where its
        relation is named as the property is, or its constant is no node. Return whether that settles it."""
        count, number = self.typed.counts.get(place), triple.head.unknown
        property, score = self.property(triple.relation)
        if number is None or not property or not (missing or self.is_property(triple.relation)):
            return False
        if count not in (None, NOT):
            self.drop(place, "values of a property are not counted")
            return True
        value, denied = triple.tail.text, count == NOT
        made = Predicate(f"#{number}", property, comparison_of(value), value, negated=denied, weight=score)
        self.predicates.append((made, self.typed.statement(place)))
        self.said[triple.relation] = f"property {property}"
        return True

    def condition(self, asked: Condition) -> None:
        """Take a condition on a property."""
        property, score = self.property(asked.property)
        text = str(asked)
        if not property:
            words, why = text.partition(".")[2], f"the graph has no property '{asked.property}'"
            self.dropped.append(Dropped(text, "" if asked.negated else words, why, strict=asked.negated))
            return
        name = f"#{asked.unknown}"
        made = Predicate(name, property, asked.test, asked.value, asked.high, asked.negated, score)
        self.predicates.append((made, text))

    def drop(self, place: int, why: str, words: bool = True) -> None:
        """Leave a triple out. What is denied or counted no text can speak for."""
        said, strict = words_of(self.typed.chain.triples[place]), place in self.typed.counts
        said = said if words and not strict else ""
        self.dropped.append(Dropped(self.typed.statement(place), said, why, place, strict))

    def is_property(self, words: str) -> bool:
        """Return whether nodes have a property that is called just so, and no relation is."""
        own = spelled(words)
        return any(spelled(one) == own for one in self.graph.properties()) and not any(
            spelled(one) == own for one in self.graph.relations()
        )

    def property(self, words: str) -> tuple[str, float]:
        """Return the property that words stand for, and how sure that is; "" where the graph has none like it."""
        names = tuple(self.graph.properties())
        if words in names:
            return words, 1.0
        if not names:
            return ("", 0.0) if not self.graph.mounted else (words, PROPERTY)
        labels = Labels(f"{self.graph.name}/properties", names)
        found = self.relations.link(labels, [words], 3)[0]
        best = next((one for one in found if not one.inverse and one.score >= PROPERTY), None)
        return ("", 0.0) if best is None else (best.name, best.score)

    def pattern(self, answers: Rows | None) -> Pattern:
        """Return the pattern; quantifiers that wait for each other are left out of it."""
        try:
            in_order([one for one, _ in self.triples], {name for name, some in self.linked.items() if some})
        except UsageError as error:
            for number in reversed(range(len(self.triples))):
                triple, place = self.triples[number]
                if triple.count not in (None, NOT):
                    self.drop(place, error.problem)
                    del self.triples[number], self.sure[number]
        target = self.typed.chain.answer
        asked = (one.unknown for one in self.typed.conditions)
        numbers = {*self.typed.chain.unknowns, *self.types, *asked, target}
        used = {end for one, _ in self.triples for end in (one.head, one.tail)}
        return Pattern(
            f"#{target}",
            tuple(
                Variable(f"#{number}", self.types.get(number, ()), weight=TYPE_WORTH)
                for number in sorted(number for number in numbers if number is not None)
            ),
            tuple(
                Constant(name, tuple(one.row for one in some), tuple(one.score for one in some))
                for name, some in self.linked.items()
                if name in used
            ),
            tuple(one for one, _ in self.triples),
            tuple(one for one, _ in self.predicates),
            answers,
        )

    def _end(self, text: str, unknown: int | None) -> End:
        if unknown is not None:
            return End(types=self.types.get(unknown, ()))
        return End(np.array(sorted(one.row for one in self.linked[text]), dtype=np.int64))


def words_of(triple: Triple) -> str:
    """Return what a triple says beside its unknowns, for a search: ``directed by David Lynch``."""
    ends = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
    return " ".join([spelled(triple.relation), *ends])


def _arrow(ways: Sequence[Any]) -> str:
    said = [
        f"<< {one.relation or 'any'} <<" if one.inverse else f">> {one.relation or 'any'} >>" for one in ways
    ]
    return " or ".join(said)
