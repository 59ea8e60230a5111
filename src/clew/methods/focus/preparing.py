"""PREPARE: from a question's typed triples to a pattern over one graph (Boer et al., 2024, Algorithm 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.chains import TypedChain
from clew.focus import Constraint, Pattern
from clew.link.wording import verbalise_relation, word_stems
from clew.methods.focus.constants import ConstantMatcher
from clew.methods.focus.drafting import PatternBuilder, DroppedConstraint
from clew.methods.focus.ways import RelationMatcher
from clew.types import LinkedEntity, Question

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, RelationLinker, Rows, Trail


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQuestion:
    """A question as a pattern over one graph.

    ``texts`` are the pattern's constraints as they are written, in their order; ``dropped`` what the graph cannot
    hold; ``said`` what the trail shows of all that; ``sure`` how sure it is, of each constraint, that it means what
    the graph has.
    """

    graph: PropertyGraph
    typed: TypedChain
    pattern: Pattern
    texts: tuple[str, ...]
    dropped: tuple[DroppedConstraint, ...]
    detail: Mapping[str, Any]
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

    Deviations from Algorithm 3: constants keep several candidates (:class:`ConstantMatcher`) and, like every unknown but
    the one asked for, range over all nodes; a constraint that the graph cannot hold ranks instead of filtering, and
    is said. What a graph keeps as properties of its nodes is found too, where a triple asks for it. ``relations``
    links the names of properties.
    """

    constants: ConstantMatcher
    matcher: RelationMatcher
    relations: RelationLinker

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
        said = {
            "graph": graph.name,
            "constants": {name: [_shown(one) for one in some] for name, some in linked.items()},
            "relations": draft.matched_relations,
            "dropped": {one.text: one.why for one in draft.dropped},
            "ranks by": list(typed.preferences),
        }
        # Only a triple that is followed along another relation than its own is less than sure.
        sure = (*draft.confidences, *(1.0 for _ in range(len(texts) - len(draft.confidences))))
        return PreparedQuestion(graph, typed, pattern, texts, tuple(draft.dropped), said, sure)

    def _types(self, graph: PropertyGraph, typed: TypedChain, draft: PatternBuilder) -> dict[int, tuple[str, ...]]:
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
        found |= {type: None for type in known if type == one or (own and word_stems(verbalise_relation(type)) == own)}
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


def _shown(one: LinkedEntity) -> dict[str, Any]:
    return {"name": one.name, "id": one.id, "score": round(one.score, 3), "how": one.reason}
