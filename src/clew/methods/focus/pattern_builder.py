"""PREPARE_TRIPLES_FOR_SUBSTITUTION (4StepFocus: Boer et al., 2024, Algorithm 3): from typed triples to a pattern over
one graph, whose constants are nodes and whose relations are those of the graph.

Constants are matched to nodes "almost" (:class:`ConstantMatcher`): several candidates each, with how sure they are.
Relations are matched in a direction in which the graph has edges for the triple's ends (:class:`RelationMatcher`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from clew.core.arrays import Rows
from clew.core.component import Resources
from clew.core.errors import UsageError
from clew.core.protocols import EntityLinker, PropertyGraph, RelationLinker, Trail
from clew.core.text import fold_name, parse_number
from clew.core.trail import LinkedConstant, PrepareStep
from clew.core.types import LinkedEntity, LinkedRelation, Question
from clew.methods.chain.graph_source import min_relation_score
from clew.triples.engine.patterns import (
    ANY_DIRECTION,
    Constant,
    Constraint,
    DirectedRelation,
    Pattern,
    Predicate,
    TypedTriple,
    Variable,
)
from clew.triples.engine.substitution import order_quantifiers
from clew.triples.language.chain import NOT, Condition, Quantifier, Triple, TypedChain
from clew.triples.language.typed_parsing import parse_typed
from clew.triples.language.wordings import OWN_VALUE
from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.nearest_names import LEAST as LEAST_COSINE
from clew.triples.linking.nearest_names import NearestNames
from clew.triples.linking.relation_words import verbalise_relation, word_stems
from clew.triples.linking.relations import RelationLabels

#: The weight of a type against triples where they contradict each other: models know names better than types.
TYPE_WEIGHT = 0.8
#: Nodes that a name was taken for, of which an answer tells.
SHOWN_SUBSTITUTES = 3
#: From this score on, words name a property.
MIN_PROPERTY_SCORE = 0.6
#: Candidates of a constant that is widened. AF-Retriever has 3 by default.
WIDEST = 8
#: Candidates that a constant keeps at most.
MAX_NODES = 10
#: A node whose name is spelled less like the constant is another thing.
LEAST = 0.75
#: The lowest score of a node whose name means nearly the same
#: (:class:`clew.triples.linking.nearest_names.NearestNames`).
LEAST_BY_MEANING = 0.6
#: Candidates of a name that are this much less sure than the best do not count.
SPREAD = 0.12
#: Graphs with more relations than this have been extracted from text. Of them only the relations at known nodes, of
#: so many nodes, are compared.
MANY_RELATIONS, KNOWN_NODES = 500, 50
#: Relations that are linked for a triple.
MAX_RELATIONS = 6
#: A relation with more than this part of the best one's score may be meant as well.
CLOSE = 0.95
#: The score of a triple that is followed along any relation, because the graph has none like its own.
ANY_RELATION_SCORE = 0.5


@dataclass(frozen=True, slots=True)
class DroppedConstraint:
    """A constraint that a graph cannot hold, as it is written, and why.

    ``words`` are for a search in texts, "" if no text could speak for the constraint. ``place`` is the place of its
    triple in the chain, None for other constraints. ``strict``: it is negated or quantified, so nothing that is read
    instead could meet it. ``value``: the graph has it as a property, whose values are no nodes.
    """

    text: str
    words: str
    why: str
    place: int | None = None
    strict: bool = False
    value: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQuestion:
    """A question as a pattern over one graph.

    ``texts`` are the pattern's constraints as they are written, in their order, and ``confidences`` how sure it is
    that each means what the graph has. ``dropped`` are the constraints that the graph cannot hold; ``step`` is for
    the trail.
    """

    graph: PropertyGraph
    typed: TypedChain
    pattern: Pattern
    texts: tuple[str, ...]
    dropped: tuple[DroppedConstraint, ...]
    step: PrepareStep
    confidences: tuple[float, ...]
    substitutions: Mapping[str, str] = field(default_factory=dict)

    @property
    def soft_words(self) -> tuple[str, ...]:
        """What only ranks answers, in words: the preferences, and dropped constraints that texts may speak for."""
        return (*self.typed.preferences, *(dropped.words for dropped in self.dropped if dropped.words))

    @property
    def soft_texts(self) -> tuple[str, ...]:
        """The same as it is written."""
        return (
            *(f"~ {preference}" for preference in self.typed.preferences),
            *(dropped.text for dropped in self.dropped if dropped.words),
        )

    def constraint_text(self, constraint: Constraint, pattern: Pattern) -> str:
        """Return a constraint as it is written; ``pattern`` is the one it belongs to: the question's own, or the same
        with unknowns narrowed."""
        texts = zip(pattern.constraints, self.texts, strict=True)
        return next(text for other, text in texts if other is constraint)


@dataclass(frozen=True, slots=True)
class TriplePreparer:
    """Finds the nodes, relations, types and properties of a graph that a question's words stand for.

    Deviations from Algorithm 3: a constant keeps several candidates (:class:`ConstantMatcher`) and, like every
    unknown except the target, ranges over all nodes. A constraint that the graph cannot hold ranks instead of
    filtering, and the trail says so. Triples may also ask for properties, whose names ``relations`` links.
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
        widened: bool = False,
    ) -> TriplePreparer:
        """Return the preparer of a recipe; ``widened`` lists the candidates of constants for
        :func:`clew.methods.focus.solutions.widen_constants`."""
        similar_names = nearest = None
        if resources.encoder is not None:
            nearest = NearestNames(resources.encoder, least=-1.0 if widened else LEAST_COSINE)
            similar_names = GraphEntityLinker(resources.encoder, nearest=NearestNames(resources.encoder))
        return cls(
            ConstantMatcher(linker, similar_names, WIDEST if widened else None, nearest),
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
        """Return the pattern of a question over a graph; ``answers`` are the rows that may answer, None: all.

        Raises ModelError, RemoteError.
        """
        builder = PatternBuilder(graph, typed, self.matcher, self.relations)
        builder.match_types()
        types_of = {name: self._types_of_constant(graph, typed, name) for name in _constants(typed)}
        builder.linked = self.constants.link(graph, types_of, question.text, trail)
        for place in range(len(typed.chain.triples)):
            builder.add_triple(place)
        for condition in typed.conditions:
            builder.add_condition(condition)
        for superlative in typed.superlatives:
            builder.dropped.append(
                DroppedConstraint(str(superlative), "", "only exact answers are ranked so", strict=True)
            )
        pattern = builder.build(answers)
        texts = (
            *(typed.statement(place) for _, place in builder.triples),
            *(text for _, text in builder.predicates),
            *type_texts(pattern),
        )
        step = PrepareStep(
            str(typed),
            graph.name,
            {name: tuple(map(_linked_constant, linked)) for name, linked in builder.linked.items()},
            builder.matched_relations,
            {dropped.text: dropped.why for dropped in builder.dropped},
            tuple(typed.preferences),
        )
        # Only a triple that is followed along another relation than its own is less than sure.
        certain = (1.0 for _ in range(len(texts) - len(builder.confidences)))
        confidences = (*builder.confidences, *certain)
        return PreparedQuestion(
            graph,
            typed,
            pattern,
            texts,
            tuple(builder.dropped),
            step,
            confidences,
            builder.list_substitutions(question),
        )

    def _types_of_constant(self, graph: PropertyGraph, typed: TypedChain, name: str) -> tuple[str, ...]:
        """Return the types that a constant may have: those in the question, else those at its end of the relations
        that are called exactly as in its triples."""
        if name in typed.constant_types:
            return matching_types(graph, typed.constant_types[name])
        relations, types = graph.relations(), dict[str, None]()
        for triple in typed.chain.triples:
            relation = relations.get(triple.relation)
            if relation is not None:
                types |= dict.fromkeys(relation.head_types if triple.head.text == name else ())
                types |= dict.fromkeys(relation.tail_types if triple.tail.text == name else ())
        return tuple(types)


@dataclass(slots=True)
class PatternBuilder:
    """Builds a pattern over one graph, a triple or a condition at a time, or drops it with its reason.

    ``linked`` has the candidates of the constants, ``types`` the types of the unknowns; ``matched_relations`` is for
    the trail, ``near_names`` has the relations and properties that are called otherwise than the question calls them.
    """

    graph: PropertyGraph
    typed: TypedChain
    matcher: RelationMatcher
    relations: RelationLinker
    linked: Mapping[str, Sequence[LinkedEntity]] = field(default_factory=dict)
    types: dict[int, tuple[str, ...]] = field(default_factory=dict)
    triples: list[tuple[TypedTriple, int]] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    predicates: list[tuple[Predicate, str]] = field(default_factory=list)
    dropped: list[DroppedConstraint] = field(default_factory=list)
    matched_relations: dict[str, str] = field(default_factory=dict)
    near_names: dict[str, str] = field(default_factory=dict)

    def match_types(self) -> None:
        """Match the types of the unknowns to those of the graph."""
        for number, wanted in self.typed.types.items():
            self.types[number] = matching_types(self.graph, wanted)
            if not self.types[number]:
                names = " or ".join(wanted)
                why = f"the graph has no type '{names}'" if self.graph.types() else "the graph has no types"
                self.dropped.append(DroppedConstraint(f"#{number} : {names}", "", why))

    def add_triple(self, place: int) -> None:
        """Add a triple of the chain as a triple of the graph or as a predicate, or drop it."""
        triple, quantifier = self.typed.chain.triples[place], self.typed.quantifiers.get(place)
        ends = (triple.head, triple.tail)
        constants = [end.text for end in ends if end.unknown is None]
        missing = [name for name in constants if not self.linked.get(name)]
        counts = quantifier is not None and quantifier != NOT
        if any(end.unknown is None and end.unknowns for end in ends):
            self.drop_triple(place, "an unknown inside a name")
        elif len(constants) == 2:
            self.drop_triple(place, "nothing in it is unknown", words=False)
        elif triple.tail.unknown is None and self._add_predicate(triple, place, bool(missing)):
            pass
        elif triple.tail.unknown is not None and self.is_property(triple.relation):
            text, why = self.typed.statement(place), "a value, which is no node"
            strict = quantifier is not None
            self.dropped.append(DroppedConstraint(text, "", why, place, strict, value=True))
        elif triple.repeated:
            self.drop_triple(place, "only exact answers follow a relation repeatedly", words=False)
        elif missing:
            self.drop_triple(place, f"'{missing[0]}' is not in the graph")
        elif counts and triple.head.unknown is None:
            self.drop_triple(place, f"it counts for '{constants[0]}', and says nothing of an unknown")
        elif counts and triple.head == triple.tail:
            self.drop_triple(place, "it counts an unknown among its own")
        else:
            self._add_followed(triple, place, quantifier)

    def _add_followed(self, triple: Triple, place: int, quantifier: Quantifier | None) -> None:
        """Add a triple along a relation of the graph, or drop it if the graph has none like it."""
        names = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
        head, tail = (self._end(end.text, end.unknown) for end in (triple.head, triple.tail))
        near, far = (tail, head) if triple.inverse else (head, tail)
        match = self.matcher.match(self.graph, triple.relation, near, far, quantifier is not None)
        if match is None:
            self.drop_triple(place, f"the graph has no relation like '{triple.relation}'")
            return
        weight = min([match.score, *(self.linked[name][0].score for name in names)])
        self.matched_relations[triple.relation] = f"{_arrows(match.relations)} ({match.how})"
        if match.relations != ANY_DIRECTION and any(directed.inverse for directed in match.relations):
            self.near_names[triple.relation] = _arrows(match.relations)
        elif self.matcher.relations == "typed":
            taken = dict.fromkeys(directed.relation or "any relation" for directed in match.relations)
            self._add_near_name(triple.relation, " or ".join(taken))
        ends, relations = (triple.head.text, triple.tail.text), match.relations
        if triple.inverse:
            relations = tuple(relation.opposite for relation in relations)
        if quantifier == NOT and triple.head.unknown is None:
            # No edge from a constant to an unknown is no edge back either, and the head of a quantifier is an
            # unknown.
            ends, relations = ends[::-1], tuple(relation.opposite for relation in relations)
        self.triples.append((TypedTriple(ends[0], relations, ends[1], quantifier, weight), place))
        self.confidences.append(match.score)

    def _add_predicate(self, triple: Triple, place: int, missing: bool) -> bool:
        """Add a triple with a constant tail as a predicate, if its relation is named as a property or its constant is
        no node; return whether that decides about the triple."""
        quantifier, number = self.typed.quantifiers.get(place), triple.head.unknown
        property, score = self.find_property(triple.relation)
        if number is None or not property or not (missing or self.is_property(triple.relation)):
            return False
        if quantifier not in (None, NOT):
            self.drop_triple(place, "values of a property are not counted")
            return True
        value = triple.tail.text
        predicate = Predicate(
            f"#{number}",
            property,
            property_test_for(value),
            value,
            negated=quantifier == NOT,
            weight=score,
        )
        self.predicates.append((predicate, self.typed.statement(place)))
        self.matched_relations[triple.relation] = f"property {property}"
        self._add_near_name(triple.relation, property)
        return True

    def add_condition(self, condition: Condition) -> None:
        """Add a condition on a property, or drop it if the graph has no property like it."""
        text = str(condition)
        if condition.property == OWN_VALUE and not self.is_property(OWN_VALUE):
            # Near names are never compared: only that an unknown is not what the question names is read here, which
            # exclude_constants sees to.
            if not (condition.negated and condition.test == "="):
                self.dropped.append(DroppedConstraint(text, "", "it compares a name", strict=True))
            return
        property, score = self.find_property(condition.property)
        if not property:
            words = "" if condition.negated else text.partition(".")[2]
            why = f"the graph has no property '{condition.property}'"
            self.dropped.append(DroppedConstraint(text, words, why, strict=condition.negated))
            return
        self._add_near_name(condition.property, property)
        predicate = Predicate(
            f"#{condition.unknown}",
            property,
            condition.test,
            condition.value,
            condition.high,
            condition.negated,
            score,
        )
        self.predicates.append((predicate, text))

    def _add_near_name(self, words: str, name: str) -> None:
        if fold_name(verbalise_relation(words)) != fold_name(verbalise_relation(name)):
            self.near_names[words] = name

    def list_substitutions(self, question: Question) -> dict[str, str]:
        """Return the names of a question that were taken for other names of the graph, with these: constants, types,
        relations and properties. Types and properties are compared with those of the question as it was written."""
        substitutions = {}
        for name, linked in self.linked.items():
            names = list(dict.fromkeys(entity.name for entity in linked))
            used = any(name in (triple.head, triple.tail) for triple, _ in self.triples)
            if used and names != [name]:
                more = len(names) - SHOWN_SUBSTITUTES
                listed = " or ".join(names[:SHOWN_SUBSTITUTES])
                substitutions[name] = f"{listed} or {more} more" if more > 0 else listed
        written = parse_typed(question.chain) if question.chain else self.typed
        for number, types in self.types.items():
            wanted = " or ".join(written.types.get(number, types))
            if types and fold_name(wanted) != fold_name(" or ".join(types)):
                substitutions[wanted] = " or ".join(types)
        properties = {replace(condition, property=""): condition.property for condition in written.conditions}
        for condition in self.typed.conditions:
            words = properties.get(replace(condition, property=""), condition.property)
            if fold_name(verbalise_relation(words)) != fold_name(verbalise_relation(condition.property)):
                substitutions[words] = condition.property
        return substitutions | self.near_names

    def drop_triple(self, place: int, why: str, words: bool = True) -> None:
        """Drop a triple. No text can speak for a negated or quantified one, or one without ``words``."""
        strict = place in self.typed.quantifiers
        search = triple_words(self.typed.chain.triples[place]) if words and not strict else ""
        self.dropped.append(DroppedConstraint(self.typed.statement(place), search, why, place, strict))

    def is_property(self, words: str) -> bool:
        """Return whether a property is called exactly so, and no relation is."""
        name = verbalise_relation(words)
        return any(verbalise_relation(property) == name for property in self.graph.properties()) and not any(
            verbalise_relation(relation) == name for relation in self.graph.relations()
        )

    def find_property(self, words: str) -> tuple[str, float]:
        """Return the property that words stand for, and how sure that is; "" if the graph has none like it."""
        names = tuple(self.graph.properties())
        if words in names:
            return words, 1.0
        if not names:
            return (words, MIN_PROPERTY_SCORE) if self.graph.is_mounted else ("", 0.0)
        labels = RelationLabels(f"{self.graph.name}/properties", names)
        for candidate in self.relations.link(labels, [words], 3)[0]:
            if not candidate.inverse and candidate.score >= MIN_PROPERTY_SCORE:
                return candidate.name, candidate.score
        return "", 0.0

    def build(self, answers: Rows | None) -> Pattern:
        """Return the pattern, without circular quantifiers; ``answers`` are the rows that may answer, None: all."""
        try:
            order_quantifiers(
                [triple for triple, _ in self.triples], {name for name, some in self.linked.items() if some}
            )
        except UsageError as error:
            for number in reversed(range(len(self.triples))):
                triple, place = self.triples[number]
                if triple.quantifier not in (None, NOT):
                    self.drop_triple(place, error.problem)
                    del self.triples[number], self.confidences[number]
        target = self.typed.chain.answer
        in_conditions = (condition.unknown for condition in self.typed.conditions)
        numbers = {*self.typed.chain.unknowns, *self.types, *in_conditions, target}
        ends = {end for triple, _ in self.triples for end in (triple.head, triple.tail)}
        return Pattern(
            f"#{target}",
            tuple(
                Variable(f"#{number}", self.types.get(number, ()), weight=TYPE_WEIGHT)
                for number in sorted(number for number in numbers if number is not None)
            ),
            tuple(
                Constant(
                    name, tuple(entity.row for entity in linked), tuple(entity.score for entity in linked)
                )
                for name, linked in self.linked.items()
                if name in ends
            ),
            tuple(triple for triple, _ in self.triples),
            tuple(predicate for predicate, _ in self.predicates),
            answers,
        )

    def _end(self, text: str, unknown: int | None) -> TripleEnd:
        if unknown is not None:
            return TripleEnd(types=self.types.get(unknown, ()))
        return TripleEnd(np.array(sorted(entity.row for entity in self.linked[text]), dtype=np.int64))


def triple_words(triple: Triple) -> str:
    """Return the words of a triple without its unknowns, for a search: ``directed by David Lynch``."""
    constants = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
    return " ".join([verbalise_relation(triple.relation), *constants])


def type_texts(pattern: Pattern) -> tuple[str, ...]:
    """Return the types of a pattern's unknowns as they are written, in the order of its constraints."""
    return tuple(
        f"{variable.name} : {' or '.join(variable.types)}" for variable in pattern.variables if variable.types
    )


def matching_types(graph: PropertyGraph, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the types of a graph that are called like the wanted ones: exactly, or by the same stems."""
    matching = dict[str, None]()
    for name in wanted:
        # The one plural of a usual type that no ending tells.
        stems = word_stems("person" if name.casefold() == "people" else verbalise_relation(name))
        for type in graph.types():
            if type == name or (stems and word_stems(verbalise_relation(type)) == stems):
                matching[type] = None
    return tuple(matching)


def exclude_constants(pattern: Pattern) -> Pattern:
    """Return the pattern with unknowns that are never what a constant stands for: "films by the director of this
    film" are other films. A constant that may be one of several nodes excludes none of them."""
    known = tuple(sorted({constant.rows[0] for constant in pattern.constants if len(constant.rows) == 1}))
    if not known:
        return pattern
    variables = tuple(replace(variable, excluded=known) for variable in pattern.variables)
    return replace(pattern, variables=variables)


def _constants(typed: TypedChain) -> list[str]:
    """Return the constants of the triples, each once."""
    ends = [end for triple in typed.chain.triples for end in (triple.head, triple.tail)]
    return list(dict.fromkeys(end.text for end in ends if not end.unknowns))


def _linked_constant(entity: LinkedEntity) -> LinkedConstant:
    return LinkedConstant(entity.name, entity.id, round(entity.score, 3), entity.reason)


def _arrows(relations: Sequence[DirectedRelation]) -> str:
    return " or ".join(
        f"<< {directed.relation or 'any'} <<" if directed.inverse else f">> {directed.relation or 'any'} >>"
        for directed in relations
    )


# The nodes that a name may stand for


@dataclass(frozen=True, slots=True)
class ConstantMatcher:
    """Links the constants of a question to nodes.

    A number, a day or an identifier stands for the nodes that are called so, and for nothing like it: 1889 is not
    1989 (:func:`is_identifier`).

    A constant with a capital or a digit is the name of one thing: if nodes have the name, only they are candidates. A
    word in lower case describes ("green"): then nodes of its type whose names mean nearly the same are candidates too
    ("light green"), each with its score, which lowers the rank of what is found by them. The paper takes the one best
    node, and names the products that this loses as a problem (Section 4).

    ``linker`` looks constants up by spelling; ``meaning``, if there is an encoder, by the vectors of names within a
    type as well. ``meaning`` is only asked for descriptions and for names that spelling does not find, since it may
    embed the names of a whole type. ``widest``: constants have that many candidates, ordered by the vectors of
    ``nearest``, whatever their likeness (:meth:`_list_widened`).
    """

    linker: EntityLinker
    meaning: EntityLinker | None = None
    widest: int | None = None
    nearest: NearestNames | None = None

    def link(
        self,
        graph: PropertyGraph,
        types: Mapping[str, Sequence[str]],
        context: str,
        trail: Trail,
    ) -> dict[str, tuple[LinkedEntity, ...]]:
        """Return the candidates of each constant, best first, none if the graph has none. ``types`` are the constants
        with the types that their nodes may have. Raises ModelError, RemoteError."""
        if self.widest is not None and not graph.is_mounted:
            return {name: self._list_widened(graph, name, of_name) for name, of_name in types.items()}
        linked = _link(self.linker, graph, types, context, trail)
        if self.meaning is not None and not graph.is_mounted:
            asked = {
                name: of_name
                for name, of_name in types.items()
                if is_description(name) or not (linked[name] or is_identifier(name))
            }
            linked |= _link(self.meaning, graph, asked, context, trail)
        return linked

    def _list_widened(
        self, graph: PropertyGraph, name: str, types: Sequence[str]
    ) -> tuple[LinkedEntity, ...]:
        """Return the ``widest`` first candidates of a constant as AF-Retriever orders them: nodes of its types that
        are called so, then those with the nearest names, by vector or, without an encoder, by spelling. Nothing is
        near an identifier."""
        widest = self.widest or 1
        called = graph.find_by_name(name)
        is_typed = np.zeros(len(called), dtype=np.bool_)
        for type in types:
            is_typed |= graph.has_type(called, type)
        called = called[is_typed] if is_typed.any() else called
        scores = dict.fromkeys(called.tolist(), 1.0)
        if not is_identifier(name) and len(scores) < widest:
            if self.nearest is not None:
                (near,) = self.nearest.search(graph, [name], types, widest)
            else:
                rows, likeness = graph.find_similar_names(name, widest)
                near = dict(zip(rows.tolist(), likeness.tolist(), strict=True))
            for row, score in near.items():
                scores.setdefault(row, min(float(score), 0.99))
        listed = list(scores)[:widest]
        entities = graph.entities(np.array(listed, dtype=np.int64))
        return tuple(
            LinkedEntity(
                row, entity.id, entity.name, scores[row], "name" if scores[row] == 1.0 else "near name"
            )
            for row, entity in zip(listed, entities, strict=True)
        )


def _link(
    linker: EntityLinker,
    graph: PropertyGraph,
    types: Mapping[str, Sequence[str]],
    context: str,
    trail: Trail,
) -> dict[str, tuple[LinkedEntity, ...]]:
    """Link the constants of the same types together."""
    by_types: dict[tuple[str, ...], list[str]] = {}
    for name, of_name in types.items():
        by_types.setdefault(tuple(of_name), []).append(name)
    candidates = {}
    for wanted, names in by_types.items():
        linked = linker.link(graph, names, context, MAX_NODES, trail, wanted)
        for name, entities in zip(names, linked, strict=True):
            if is_identifier(name):
                entities = _keep_called(graph, name, entities)
            candidates[name] = plausible_candidates(name, entities)
    return candidates


def is_identifier(name: str) -> bool:
    """Return whether a constant is a number, a day or one word with a digit, of which nothing is a near name.

    >>> is_identifier("1889"), is_identifier("-2.5"), is_identifier("libc6"), is_identifier("Blade Runner 2049")
    (True, True, True, False)
    """
    is_word = len(name.split()) == 1 and any(letter.isdigit() for letter in name)
    return is_word or not math.isnan(parse_number(name))


def _keep_called(graph: PropertyGraph, name: str, linked: Sequence[LinkedEntity]) -> tuple[LinkedEntity, ...]:
    """Return the candidates whose name, alias or id equals a constant without case and punctuation, unless both are
    numbers that differ: -5 is not 5."""
    called = set(graph.find_by_name(name).tolist())
    number = parse_number(name)
    return tuple(
        entity
        for entity in linked
        if entity.row in called
        and (
            math.isnan(number) or math.isnan(parse_number(entity.name)) or parse_number(entity.name) == number
        )
    )


def is_description(name: str) -> bool:
    """Return whether a constant is words in lower case, which describe; a capital or a digit names one thing."""
    return not any(letter.isupper() or letter.isdigit() for letter in name)


def property_test_for(value: str) -> str:
    """Return the test of a property with a triple's value: the description "green" is also said of light green; a
    name or a number has to be equal."""
    return "says" if is_description(value) else "="


def plausible_candidates(name: str, linked: Sequence[LinkedEntity]) -> tuple[LinkedEntity, ...]:
    """Return the candidates for a constant that count, best first."""
    candidates = [
        entity for entity in linked if entity.score >= (LEAST_BY_MEANING if _by_meaning(entity) else LEAST)
    ]
    if not candidates or is_description(name):
        return tuple(candidates)
    spelled = [entity for entity in candidates if not _by_meaning(entity)] or candidates
    # The name or an alias itself, perhaps with a qualifier of the node's own.
    named = [entity for entity in spelled if entity.reason.startswith(("name", "alias"))] or spelled
    return tuple(entity for entity in named if entity.score >= named[0].score - SPREAD)


def _by_meaning(entity: LinkedEntity) -> bool:
    return entity.reason.startswith("meaning")


# The relations that words may stand for


@dataclass(frozen=True, slots=True)
class TripleEnd:
    """An end of a triple: the nodes that a constant may be (None: an unknown), or the types of an unknown."""

    rows: Rows | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationMatch:
    """The relations that a triple follows, how sure that is, and how they were matched."""

    relations: tuple[DirectedRelation, ...]
    score: float
    how: str


@dataclass(frozen=True, slots=True)
class RelationMatcher:
    """Matches the relations of triples.

    ``relations`` is ``typed``: the relation that a triple's words stand for, in the direction in which the graph has
    edges for its ends; or ``any``: any relation in either direction, the paper's recipe, since restricting the edge
    type "turned out to be error-prone" (Section 4). ``least`` is the lowest score of a match. If no relation reaches
    it, any relation is followed from a constant or between nodes of two types, and the trail says so; otherwise the
    triple would say nothing.
    """

    linker: RelationLinker
    relations: Literal["typed", "any"] = "typed"
    least: float = 0.3

    def match(
        self, graph: PropertyGraph, relation: str, head: TripleEnd, tail: TripleEnd, counted: bool = False
    ) -> RelationMatch | None:
        """Return how a triple is followed in a graph; None if it cannot be.

        A ``counted`` triple may have no edges, so edges say nothing about what its words mean.
        """
        if self.relations == "any":
            return RelationMatch(ANY_DIRECTION, 1.0, "any relation")
        linked = self.link(graph, relation, head, tail)
        candidates = [candidate for candidate in linked if candidate.score >= self.least]
        if not candidates:
            if all(end.rows is None for end in (head, tail)) and not (head.types and tail.types):
                return None
            how = f"any relation: the graph has none like '{relation}'"
            return RelationMatch(ANY_DIRECTION, ANY_RELATION_SCORE, how)
        best = candidates[0] if counted else _choose(graph, candidates, head, tail)
        return RelationMatch((DirectedRelation(best.name, best.inverse),), best.score, best.reason)

    def link(
        self, graph: PropertyGraph, relation: str, head: TripleEnd, tail: TripleEnd
    ) -> tuple[LinkedRelation, ...]:
        """Return the relations that words may stand for, best first."""
        if len(graph.relations()) <= MANY_RELATIONS:
            return self.linker.link(graph, [relation], MAX_RELATIONS)[0]
        known = [end.rows[:KNOWN_NODES] for end in (head, tail) if end.rows is not None]
        names = graph.relations_at(np.concatenate(known)) if known else list(graph.relations())
        return self.linker.link(RelationLabels(graph.name, tuple(names)), [relation], MAX_RELATIONS)[0]


def _choose(
    graph: PropertyGraph, candidates: Sequence[LinkedRelation], head: TripleEnd, tail: TripleEnd
) -> LinkedRelation:
    """Return the best relation, in the other direction if it has edges only there. Another relation takes its place
    only if it is about as likely: "place of birth" is never "place of death", whatever edges the graph has."""
    best = candidates[0]
    same = [candidate for candidate in candidates if candidate.name == best.name]
    close = [candidate for candidate in candidates if candidate.score > best.score * CLOSE]
    close = [] if best.reason == "name" else close
    ordered = (*same[:1], *close, *same[1:])
    return next((candidate for candidate in ordered if _has_edges(graph, candidate, head, tail)), best)


def _has_edges(graph: PropertyGraph, candidate: LinkedRelation, head: TripleEnd, tail: TripleEnd) -> bool:
    """Return whether a relation has edges between such ends, in the candidate's direction."""
    for end, inverse in ((head, candidate.inverse), (tail, not candidate.inverse)):
        if end.rows is not None and not len(graph.neighbours(end.rows, candidate.name, inverse)[1]):
            return False
    relation = graph.relations()[candidate.name]
    counts = (relation.head_types, relation.tail_types)
    if candidate.inverse:
        counts = counts[::-1]
    return all(
        not end.types or not of_side or any(type in of_side for type in end.types)
        for end, of_side in zip((head, tail), counts, strict=True)
    )
