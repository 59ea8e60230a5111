"""One triple or condition of a question after the other into a pattern, or left out of it with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clew.core.errors import UsageError
from clew.core.steps import LinkedConstant, PrepareStep
from clew.core.types import LinkedEntity, Question
from clew.methods.chain.graph_source import min_relation_score
from clew.methods.focus.constant_matcher import ConstantMatcher, property_test_for
from clew.methods.focus.relation_matcher import RelationMatcher, TripleEnd
from clew.triples.engine.patterns import Constant, Constraint, Pattern, Predicate, TypedTriple, Variable
from clew.triples.engine.quantifiers import order_quantifiers
from clew.triples.language.chain import Triple
from clew.triples.language.typed_chain import NOT, Condition, Quantifier, TypedChain
from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.nearest_names import NearestNames
from clew.triples.linking.relation_words import verbalise_relation, word_stems
from clew.triples.linking.relations import RelationLabels

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.component import Resources
    from clew.core.protocols import EntityLinker, PropertyGraph, RelationLinker, Trail

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
        made = Predicate(
            f"#{number}", property, property_test_for(value), value, negated=denied, weight=score
        )
        self.predicates.append((made, self.typed.statement(place)))
        self.matched_relations[triple.relation] = f"property {property}"
        return True

    def add_condition(self, asked: Condition) -> None:
        """Take a condition on a property."""
        property, score = self.find_property(asked.property)
        text = str(asked)
        if not property:
            words, why = text.partition(".")[2], f"the graph has no property '{asked.property}'"
            self.dropped.append(
                DroppedConstraint(text, "" if asked.negated else words, why, strict=asked.negated)
            )
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
            order_quantifiers(
                [one for one, _ in self.triples], {name for name, some in self.linked.items() if some}
            )
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


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQuestion:
    """A question as a pattern over one graph.

    ``texts`` are the pattern's constraints as they are written, in their order; ``dropped`` what the graph cannot
    hold; ``step`` what the trail shows of all that; ``sure`` how sure it is, of each constraint, that it means what
    the graph has.
    """

    graph: PropertyGraph
    typed: TypedChain
    pattern: Pattern
    texts: tuple[str, ...]
    dropped: tuple[DroppedConstraint, ...]
    step: PrepareStep
    confidences: tuple[float, ...]

    @property
    def soft_words(self) -> tuple[str, ...]:
        """What can only be wished for, in words."""
        return (*self.typed.preferences, *(one.words for one in self.dropped if one.words))

    @property
    def soft_texts(self) -> tuple[str, ...]:
        """The same as it is written."""
        return (
            *(f"~ {one}" for one in self.typed.preferences),
            *(one.text for one in self.dropped if one.words),
        )

    def constraint_text(self, constraint: Constraint, pattern: Pattern) -> str:
        """Return a constraint as it is written; ``pattern`` is what it is of: the one here, or that with unknowns
        narrowed."""
        texts = zip(pattern.constraints, self.texts, strict=True)
        return next(text for one, text in texts if one is constraint)


@dataclass(frozen=True, slots=True)
class TriplePreparer:
    """Finds the nodes, relations, types and properties of a graph that a question's words stand for.

    Deviations from Algorithm 3: constants keep several candidates (:class:`ConstantMatcher`) and, like every
    unknown but
    the one asked for, range over all nodes; a constraint that the graph cannot hold ranks instead of filtering, and
    is said. What a graph keeps as properties of its nodes is found too, where a triple asks for it. ``relations``
    links the names of properties.
    """

    constants: ConstantMatcher
    matcher: RelationMatcher
    relations: RelationLinker

    @classmethod
    def build(
        cls,
        resources: Resources,
        linker: EntityLinker,
        relation_linker: RelationLinker,
        relations: Literal["typed", "any"],
    ) -> TriplePreparer:
        """Return the preparer of a recipe."""
        similar_names = None
        if resources.encoder is not None:
            similar_names = GraphEntityLinker(resources.encoder, nearest=NearestNames(resources.encoder))
        return cls(
            ConstantMatcher(linker, similar_names),
            RelationMatcher(relation_linker, relations, min_relation_score(resources)),
            relation_linker,
        )

    def prepare(
        self,
        graph: PropertyGraph,
        typed: TypedChain,
        question: Question,
        answers: Rows | None,
        trail: Trail,
    ) -> PreparedQuestion:
        """Return the pattern of a question over a graph; ``answers`` are the rows that may answer, None for all.

        Raises ModelError, RemoteError.
        """
        draft = PatternBuilder(graph, typed, self.matcher, self.relations)
        draft.types = self._types(graph, typed, draft)
        kinds = {name: self._kinds(graph, typed, name) for name in _names(typed)}
        linked = draft.linked = self.constants.link(graph, kinds, question.text, trail)
        for place in range(len(typed.chain.triples)):
            draft.add_triple(place)
        for condition in typed.conditions:
            draft.add_condition(condition)
        pattern = draft.build(answers)
        texts = (
            *(typed.statement(place) for _, place in draft.triples),
            *(text for _, text in draft.predicates),
            *type_texts(pattern),
        )
        step = PrepareStep(
            str(typed),
            graph.name,
            {name: tuple(_linked_constant(one) for one in some) for name, some in linked.items()},
            draft.matched_relations,
            {one.text: one.why for one in draft.dropped},
            tuple(typed.preferences),
        )
        # Only a triple that is followed along another relation than its own is less than sure.
        sure = (*draft.confidences, *(1.0 for _ in range(len(texts) - len(draft.confidences))))
        return PreparedQuestion(graph, typed, pattern, texts, tuple(draft.dropped), step, sure)

    def _types(
        self, graph: PropertyGraph, typed: TypedChain, draft: PatternBuilder
    ) -> dict[int, tuple[str, ...]]:
        found = {}
        for number, wanted in typed.types.items():
            there = matching_types(graph, wanted)
            found[number] = there
            if not there:
                said = " or ".join(wanted)
                why = f"the graph has no type '{said}'" if graph.types() else "the graph has no types"
                draft.dropped.append(DroppedConstraint(f"#{number} : {said}", "", why))
        return found

    def _kinds(self, graph: PropertyGraph, typed: TypedChain, name: str) -> tuple[str, ...]:
        """Return the types that a constant may have: those that are said, else those at its end of the relations
        that are named just so."""
        if name in typed.constant_types:
            return matching_types(graph, typed.constant_types[name])
        relations, found = graph.relations(), dict[str, None]()
        for triple in typed.chain.triples:
            known = relations.get(triple.relation)
            if known is not None:
                found |= dict.fromkeys(known.head_types if triple.head.text == name else ())
                found |= dict.fromkeys(known.tail_types if triple.tail.text == name else ())
        return tuple(found)


def type_texts(pattern: Pattern) -> tuple[str, ...]:
    """Return the types of a pattern's unknowns as they are written, in the order of its constraints."""
    return tuple(f"{one.name} : {' or '.join(one.types)}" for one in pattern.variables if one.types)


def matching_types(graph: PropertyGraph, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the types of a graph that are called like some words: exactly, or by the same stems."""
    known = graph.types()
    found = dict[str, None]()
    for one in wanted:
        own = word_stems(verbalise_relation(one))
        found |= {
            type: None
            for type in known
            if type == one or (own and word_stems(verbalise_relation(type)) == own)
        }
    return tuple(found)


def exclude_constants(pattern: Pattern) -> Pattern:
    """Return the pattern whose unknowns are never what a constant stands for: "films by the director of this film"
    are other films. A constant that may be one of several nodes keeps none of them out."""
    known = tuple(sorted({one.rows[0] for one in pattern.constants if len(one.rows) == 1}))
    if not known:
        return pattern
    return replace(pattern, variables=tuple(replace(one, excluded=known) for one in pattern.variables))


def _names(typed: TypedChain) -> list[str]:
    """Return the constants of the triples, each once."""
    ends = [end for triple in typed.chain.triples for end in (triple.head, triple.tail)]
    return list(dict.fromkeys(end.text for end in ends if not end.unknowns))


def _linked_constant(entity: LinkedEntity) -> LinkedConstant:
    return LinkedConstant(entity.name, entity.id, round(entity.score, 3), entity.reason)


# MERGED: PREPARE: from a question's typed triples to a pattern over one graph (Boer et al., 2024, Algorithm 3).
