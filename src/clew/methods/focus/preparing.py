"""PREPARE: from a question's typed triples to a pattern over one graph (Boer et al., 2024, Algorithm 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.chains import NOT, Condition, Triple, TypedChain
from clew.focus import Constant, Pattern, Predicate, TypedTriple, Variable
from clew.link.describing import Labels
from clew.link.wording import spelled, stems
from clew.methods.focus.constants import Constants, describes
from clew.methods.focus.ways import End, Ways
from clew.types import LinkedEntity, Question

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, RelationLinker, Rows, Trail

#: What a type is worth against triples where they contradict each other: models know names better than types.
TYPE_WORTH = 0.8
#: From this score on words name a property.
PROPERTY = 0.6


@dataclass(frozen=True, slots=True)
class Dropped:
    """A constraint that a graph cannot hold: as it is written, in words for a search, and why. ``place`` is that of
    its triple in the chain, None for anything else."""

    text: str
    words: str
    why: str
    place: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A question as a pattern over one graph.

    ``texts`` are the pattern's constraints as they are written, in their order; ``places`` those of its triples in
    the chain; ``dropped`` what the graph cannot hold; ``linked`` the candidates of each constant; ``said`` what the
    trail shows of all that.
    """

    graph: PropertyGraph
    typed: TypedChain
    pattern: Pattern
    texts: tuple[str, ...]
    places: tuple[int, ...]
    dropped: tuple[Dropped, ...]
    linked: Mapping[str, tuple[LinkedEntity, ...]]
    said: Mapping[str, Any]

    @property
    def grounded(self) -> int:
        """How many triples and conditions the graph can hold."""
        return len(self.pattern.triples) + len(self.pattern.predicates)

    @property
    def soft(self) -> tuple[str, ...]:
        """What can only be wished for, in words."""
        return (*self.typed.wishes, *(one.words for one in self.dropped if one.words))

    def text(self, constraint: object) -> str:
        """Return a constraint of the pattern as it is written."""
        return next(
            text for one, text in zip(self.pattern.constraints, self.texts, strict=True) if one is constraint
        )


@dataclass(slots=True)
class _Draft:
    """A pattern in the making."""

    triples: list[tuple[TypedTriple, int]] = field(default_factory=list)
    predicates: list[tuple[Predicate, str]] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    ways: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preparer:
    """Finds the nodes, relations, types and properties of a graph that a question's words stand for.

    Deviations from Algorithm 3: constants keep several candidates (:class:`Constants`) and, like every unknown but
    the one asked for, range over all nodes; a constraint that the graph cannot hold ranks instead of filtering, and
    is said. What a graph keeps as properties of its nodes is found too, where a triple asks for it. ``relations``
    links the names of properties, ``least`` from which score on.
    """

    constants: Constants
    ways: Ways
    relations: RelationLinker

    def prepare(
        self,
        graph: PropertyGraph,
        typed: TypedChain,
        question: Question,
        answers: Rows | None,
        trail: Trail,
    ) -> Prepared:
        """Return the pattern of a question over a graph; ``answers`` are the rows that may answer, None for all.

        Raises ModelError, RemoteError.
        """
        draft = _Draft()
        types = self._types(graph, typed, draft)
        kinds = {name: self._kinds(graph, typed, name) for name in _names(typed)}
        linked = self.constants.link(graph, kinds, question.text, trail)
        for place, triple in enumerate(typed.chain.triples):
            self._triple(graph, typed, place, triple, linked, types, draft)
        for condition in typed.conditions:
            self._condition(graph, condition, draft)
        pattern = _pattern(typed, draft, linked, types, answers)
        places = tuple(place for _, place in draft.triples)
        texts = (
            *(typed.statement(place) for place in places),
            *(text for _, text in draft.predicates),
            *type_texts(pattern),
        )
        said = {
            "graph": graph.name,
            "constants": {name: [_shown(one) for one in some] for name, some in linked.items()},
            "relations": draft.ways,
            "dropped": {one.text: one.why for one in draft.dropped},
            "ranks by": list(typed.wishes),
        }
        return Prepared(graph, typed, pattern, texts, places, tuple(draft.dropped), linked, said)

    def _types(self, graph: PropertyGraph, typed: TypedChain, draft: _Draft) -> dict[int, tuple[str, ...]]:
        found = {}
        for number, wanted in typed.types.items():
            there = types_like(graph, wanted)
            found[number] = there
            if not there:
                said = " or ".join(wanted)
                why = f"the graph has no type '{said}'" if graph.types() else "the graph has no types"
                draft.dropped.append(Dropped(f"#{number} : {said}", "", why))
        return found

    def _kinds(self, graph: PropertyGraph, typed: TypedChain, name: str) -> tuple[str, ...]:
        """Return the types that a constant may have: those that are said, else those at its end of the relations
        that are named just so."""
        if name in typed.kinds:
            return types_like(graph, typed.kinds[name])
        relations, found = graph.relations(), dict[str, None]()
        for triple in typed.chain.triples:
            known = relations.get(triple.relation)
            if known is not None:
                found |= dict.fromkeys(known.head_types if triple.head.text == name else ())
                found |= dict.fromkeys(known.tail_types if triple.tail.text == name else ())
        return tuple(found)

    def _triple(
        self,
        graph: PropertyGraph,
        typed: TypedChain,
        place: int,
        triple: Triple,
        linked: Mapping[str, Sequence[LinkedEntity]],
        types: Mapping[int, tuple[str, ...]],
        draft: _Draft,
    ) -> None:
        """Take one triple into a draft: as a triple of the graph, as a predicate, or as dropped."""
        text, count = typed.statement(place), typed.counts.get(place)
        ends = (triple.head, triple.tail)
        constants = [one.text for one in ends if one.unknown is None]
        if any(one.unknown is None and one.unknowns for one in ends):
            draft.dropped.append(Dropped(text, _words(triple), "an unknown inside a name", place))
            return
        if len(constants) == 2:
            draft.dropped.append(Dropped(text, "", "nothing in it is unknown", place))
            return
        missing = [name for name in constants if not linked.get(name)]
        if triple.tail.unknown is not None and self._is_property(graph, triple.relation):
            draft.dropped.append(Dropped(text, "", "a value, which is no node", place))
            return
        if triple.tail.unknown is None and triple.head.unknown is not None:
            asked = self._valued(graph, triple, bool(missing), count == NOT)
            if asked is not None:
                draft.predicates.append((asked, text))
                draft.ways[triple.relation] = f"property {asked.property}"
                return
        if missing:
            draft.dropped.append(Dropped(text, _words(triple), f"'{missing[0]}' is not in the graph", place))
            return
        head, tail = (_end(one.text, one.unknown, linked, types) for one in ends)
        found = self.ways.find(graph, triple.relation, head, tail)
        if found is None:
            why = f"the graph has no relation like '{triple.relation}'"
            draft.dropped.append(Dropped(text, _words(triple), why, place))
            return
        sure = min([found.score, *(linked[name][0].score for name in constants)])
        draft.ways[triple.relation] = f"{_arrow(found.ways)} ({found.how})"
        made = TypedTriple(triple.head.text, found.ways, triple.tail.text, count, sure)
        draft.triples.append((made, place))

    def _valued(self, graph: PropertyGraph, triple: Triple, missing: bool, negated: bool) -> Predicate | None:
        """Return the predicate that a triple with a constant tail is, where the graph has a property for it: where
        its relation is named as the property is, or its constant is no node."""
        property, score = self.property(graph, triple.relation)
        if not property or not (missing or self._is_property(graph, triple.relation)):
            return None
        # "green" is also said of what is light green; a name or a number is that alone.
        test = "contains" if describes(triple.tail.text) else "="
        return Predicate(triple.head.text, property, test, triple.tail.text, negated=negated, weight=score)

    def _is_property(self, graph: PropertyGraph, words: str) -> bool:
        """Return whether nodes have a property that is called just so, and no relation is."""
        own = spelled(words)
        return any(spelled(one) == own for one in graph.properties()) and not any(
            spelled(one) == own for one in graph.relations()
        )

    def property(self, graph: PropertyGraph, words: str) -> tuple[str, float]:
        """Return the property that words stand for, and how sure that is; "" where the graph has none like it."""
        names = tuple(graph.properties())
        if words in names:
            return words, 1.0
        if not names:
            return ("", 0.0) if not graph.mounted else (words, PROPERTY)
        found = self.relations.link(Labels(f"{graph.name}/properties", names), [words], 3)[0]
        best = next((one for one in found if not one.inverse and one.score >= PROPERTY), None)
        return ("", 0.0) if best is None else (best.name, best.score)

    def _condition(self, graph: PropertyGraph, asked: Condition, draft: _Draft) -> None:
        property, score = self.property(graph, asked.property)
        text = str(asked)
        if not property:
            why = f"the graph has no property '{asked.property}'"
            draft.dropped.append(Dropped(text, text.partition(".")[2], why))
            return
        name = f"#{asked.unknown}"
        made = Predicate(name, property, asked.test, asked.value, asked.high, asked.negated, score)
        draft.predicates.append((made, text))


def type_texts(pattern: Pattern) -> tuple[str, ...]:
    """Return the types of a pattern's unknowns as they are written, in the order of its constraints."""
    return tuple(f"{one.name} : {' or '.join(one.types)}" for one in pattern.variables if one.types)


def types_like(graph: PropertyGraph, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the types of a graph that are called like some words: exactly, or by the same stems."""
    known = graph.types()
    found = dict[str, None]()
    for one in wanted:
        own = stems(spelled(one))
        found |= {type: None for type in known if type == one or (own and stems(spelled(type)) == own)}
    return tuple(found)


def _pattern(
    typed: TypedChain,
    draft: _Draft,
    linked: Mapping[str, Sequence[LinkedEntity]],
    types: Mapping[int, tuple[str, ...]],
    answers: Rows | None,
) -> Pattern:
    triples = [one for one, _ in draft.triples]
    used = {end for one in triples for end in (one.head, one.tail)}
    target = typed.chain.answer
    numbers = {*typed.chain.unknowns, *types, *(one.unknown for one in typed.conditions), target}
    variables = tuple(
        Variable(f"#{number}", types.get(number, ()), weight=TYPE_WORTH)
        for number in sorted(number for number in numbers if number is not None)
    )
    constants = tuple(
        Constant(name, tuple(one.row for one in some), tuple(one.score for one in some))
        for name, some in linked.items()
        if name in used
    )
    return Pattern(
        f"#{target}", variables, constants, tuple(triples), tuple(one for one, _ in draft.predicates), answers
    )


def distinct(pattern: Pattern) -> Pattern:
    """Return the pattern whose unknowns are never what a constant stands for: "films by the director of this film"
    are other films."""
    known = tuple(sorted({row for one in pattern.constants for row in one.rows}))
    if not known:
        return pattern
    return replace(pattern, variables=tuple(replace(one, without=known) for one in pattern.variables))


def _names(typed: TypedChain) -> list[str]:
    """Return the constants of the triples, each once."""
    ends = [end for triple in typed.chain.triples for end in (triple.head, triple.tail)]
    return list(dict.fromkeys(end.text for end in ends if not end.unknowns))


def _end(
    text: str,
    unknown: int | None,
    linked: Mapping[str, Sequence[LinkedEntity]],
    types: Mapping[int, tuple[str, ...]],
) -> End:
    if unknown is not None:
        return End(types=types.get(unknown, ()))
    return End(np.array(sorted(one.row for one in linked[text]), dtype=np.int64))


def _words(triple: Triple) -> str:
    """Return what a triple says beside its unknowns, for a search: ``directed by David Lynch``."""
    ends = [end.text for end in (triple.head, triple.tail) if end.unknown is None]
    return " ".join([spelled(triple.relation), *ends])


def _arrow(ways: Sequence[Any]) -> str:
    said = [
        f"<< {one.relation or 'any'} <<" if one.inverse else f">> {one.relation or 'any'} >>" for one in ways
    ]
    return " or ".join(said)


def _shown(one: LinkedEntity) -> dict[str, Any]:
    return {"name": one.name, "id": one.id, "score": round(one.score, 3), "how": one.how}
