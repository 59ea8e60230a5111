"""One triple or condition of a question after the other into a pattern, or left out of it with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.chains import NOT, Condition, Quantifier, Triple, TypedChain
from clew.errors import UsageError
from clew.focus import Constant, Pattern, Predicate, TypedTriple, Variable, order_quantifiers
from clew.link.describing import RelationLabels
from clew.link.wording import verbalise_relation
from clew.methods.focus.constants import property_test_for
from clew.methods.focus.ways import TripleEnd, RelationMatcher
from clew.types import LinkedEntity

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, RelationLinker, Rows

#: What a type is worth against triples where they contradict each other: models know names better than types.
TYPE_WORTH = 0.8
#: From this score on words name a property.
PROPERTY = 0.6


@dataclass(frozen=True, slots=True)
class DroppedConstraint:
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
class PatternBuilder:
    """A pattern over one graph in the making. ``linked`` are the candidates of its constants, ``types`` the types of
    its unknowns."""

    graph: PropertyGraph
    typed: TypedChain
    matcher: RelationMatcher
    relations: RelationLinker
    linked: Mapping[str, Sequence[LinkedEntity]] = field(default_factory=dict)
    types: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    triples: list[tuple[TypedTriple, int]] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    predicates: list[tuple[Predicate, str]] = field(default_factory=list)
    dropped: list[DroppedConstraint] = field(default_factory=list)
    matched_relations: dict[str, str] = field(default_factory=dict)

    def add_triple(self, place: int) -> None:
        """Take a triple of the chain: as a triple of the graph, as a predicate, or as dropped."""
        triple, count = self.typed.chain.triples[place], self.typed.quantifiers.get(place)
        ends = (triple.head, triple.tail)
        constants = [one.text for one in ends if one.unknown is None]
        missing = [name for name in constants if not self.linked.get(name)]
        if any(one.unknown is None and one.unknowns for one in ends):
            return self.drop_triple(place, "an unknown inside a name")
        if len(constants) == 2:
            return self.drop_triple(place, "nothing in it is unknown", words=False)
        if triple.tail.unknown is None and self._predicate(triple, place, bool(missing)):
            return None
        if triple.tail.unknown is not None and self.is_property(triple.relation):
            text, strict = self.typed.statement(place), count is not None
            why = "a value, which is no node"
            self.dropped.append(DroppedConstraint(text, "", why, place, strict, value=True))
            return None
        if missing:
            return self.drop_triple(place, f"'{missing[0]}' is not in the graph")
        if count is not None and count != NOT and triple.head.unknown is None:
            return self.drop_triple(place, f"it counts for '{constants[0]}', and says nothing of an unknown")
        if count is not None and count != NOT and triple.head == triple.tail:
            return self.drop_triple(place, "it counts an unknown among its own")
        return self._followed(triple, place, count)

    def _followed(self, triple: Triple, place: int, count: Quantifier | None) -> None:
        """Take a triple along a relation of the graph."""
        names = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
        head, tail = (self._end(end.text, end.unknown) for end in (triple.head, triple.tail))
        found = self.matcher.match(self.graph, triple.relation, head, tail, count is not None)
        if found is None:
            return self.drop_triple(place, f"the graph has no relation like '{triple.relation}'")
        weight = min([found.score, *(self.linked[name][0].score for name in names)])
        self.matched_relations[triple.relation] = f"{_arrow(found.relations)} ({found.how})"
        ends, ways = (triple.head.text, triple.tail.text), found.relations
        if count == NOT and triple.head.unknown is None:
            # No edge from a name to an unknown: no edge back either, and a quantifier stands before an unknown.
            ends, ways = ends[::-1], tuple(one.opposite for one in ways)
        self.triples.append((TypedTriple(ends[0], ways, ends[1], count, weight), place))
        self.confidences.append(found.score)
        return None

    def _predicate(self, triple: Triple, place: int, missing: bool) -> bool:
        """Take a triple with a constant tail as a predicate, where the graph has a property for it: where its
        relation is named as the property is, or its constant is no node. Return whether that settles it."""
        count, number = self.typed.quantifiers.get(place), triple.head.unknown
        property, score = self.find_property(triple.relation)
        if number is None or not property or not (missing or self.is_property(triple.relation)):
            return False
        if count not in (None, NOT):
            self.drop_triple(place, "values of a property are not counted")
            return True
        value, denied = triple.tail.text, count == NOT
        made = Predicate(f"#{number}", property, property_test_for(value), value, negated=denied, weight=score)
        self.predicates.append((made, self.typed.statement(place)))
        self.matched_relations[triple.relation] = f"property {property}"
        return True

    def add_condition(self, asked: Condition) -> None:
        """Take a condition on a property."""
        property, score = self.find_property(asked.property)
        text = str(asked)
        if not property:
            words, why = text.partition(".")[2], f"the graph has no property '{asked.property}'"
            self.dropped.append(DroppedConstraint(text, "" if asked.negated else words, why, strict=asked.negated))
            return
        name = f"#{asked.unknown}"
        made = Predicate(name, property, asked.test, asked.value, asked.high, asked.negated, score)
        self.predicates.append((made, text))

    def drop_triple(self, place: int, why: str, words: bool = True) -> None:
        """Leave a triple out. What is denied or counted no text can speak for."""
        said, strict = triple_words(self.typed.chain.triples[place]), place in self.typed.quantifiers
        said = said if words and not strict else ""
        self.dropped.append(DroppedConstraint(self.typed.statement(place), said, why, place, strict))

    def is_property(self, words: str) -> bool:
        """Return whether nodes have a property that is called just so, and no relation is."""
        own = verbalise_relation(words)
        return any(verbalise_relation(one) == own for one in self.graph.properties()) and not any(
            verbalise_relation(one) == own for one in self.graph.relations()
        )

    def find_property(self, words: str) -> tuple[str, float]:
        """Return the property that words stand for, and how sure that is; "" where the graph has none like it."""
        names = tuple(self.graph.properties())
        if words in names:
            return words, 1.0
        if not names:
            return ("", 0.0) if not self.graph.is_mounted else (words, PROPERTY)
        labels = RelationLabels(f"{self.graph.name}/properties", names)
        found = self.relations.link(labels, [words], 3)[0]
        best = next((one for one in found if not one.inverse and one.score >= PROPERTY), None)
        return ("", 0.0) if best is None else (best.name, best.score)

    def build(self, answers: Rows | None) -> Pattern:
        """Return the pattern; quantifiers that wait for each other are left out of it."""
        try:
            order_quantifiers([one for one, _ in self.triples], {name for name, some in self.linked.items() if some})
        except UsageError as error:
            for number in reversed(range(len(self.triples))):
                triple, place = self.triples[number]
                if triple.quantifier not in (None, NOT):
                    self.drop_triple(place, error.problem)
                    del self.triples[number], self.confidences[number]
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

    def _end(self, text: str, unknown: int | None) -> TripleEnd:
        if unknown is not None:
            return TripleEnd(types=self.types.get(unknown, ()))
        return TripleEnd(np.array(sorted(one.row for one in self.linked[text]), dtype=np.int64))


def triple_words(triple: Triple) -> str:
    """Return what a triple says beside its unknowns, for a search: ``directed by David Lynch``."""
    ends = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
    return " ".join([verbalise_relation(triple.relation), *ends])


def _arrow(ways: Sequence[Any]) -> str:
    said = [
        f"<< {one.relation or 'any'} <<" if one.inverse else f">> {one.relation or 'any'} >>" for one in ways
    ]
    return " or ".join(said)
