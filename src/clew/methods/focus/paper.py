"""``focus(paper=yes)``: steps 1 and 2 of 4StepFocus (Boer et al., 2024, Section 3) as the paper prints them.

:class:`TripletsWriter` is ASK_LLM_FOR_TRIPLETS (Algorithm 1, line 1), :class:`PaperSubstitution` is SUBSTITUTE with
PREPARE_TRIPLETS_FOR_SUBSTITUTION (Algorithms 2 and 3), which :mod:`clew.triples.engine.reference` has line by line.
Steps 3 and 4 are those of :class:`clew.methods.focus.method.FocusMethod`, without terms for wishes and unsure names.

What the paper leaves open is filled in so:

* *The prompt* is not printed: ``focus-triplets`` asks for triplets, types of variables and a target, and for nothing
  else. A reply is not repaired, and asked for once.
* *(Almost) matches any alias*: a node of C whose name or alias equals the constant without case, accents and
  punctuation, identically written names first, then the lowest id; else the one that is spelled most like it, from a
  likeness of 0.75 on.
* *type(x)* is compared by the stems of its words ("films", "film"). A variable without a type, or any in a graph
  without types, ranges over all of C.
* *Edge types* are compared without case and separators; no node is a neighbour by another one. ``relations=any``
  ignores them in both helper functions, as the paper's experiments did (Section 4), and keeps their direction.
* *One knowledge base*: with several graphs the question has to name one.
* *VSS* ranks the 500 best by words of more nodes that have no vectors (``clew graph encode`` makes all), and where no
  encoder is set ``sort=words`` stands in. Beyond k_max, the list shows what else is in C_filtered.
* An answer names nothing where C_filtered is empty or nothing restricts it; its list is the paper's all the same.

Lines 14 and 19 of Algorithm 2 are run as they are printed, though they must be a misprint: they compare each end of a
triplet with its own neighbours, so that two variables of different types both come out empty. ``lines=corrected``
narrows each end by the neighbours of the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.arrays import Rows, sorted_unique, union
from clew.core.errors import BadCompletion, UsageError
from clew.core.prompts.replies import parse_json
from clew.core.prompts.templates import Template, load_prompt
from clew.core.text import fold_name
from clew.core.trail import LinkedConstant, PrepareStep, SubstituteStep, TriplesStep
from clew.core.types import LinkedEntity, Question
from clew.methods.focus.pattern_builder import (
    LEAST,
    DroppedConstraint,
    PreparedQuestion,
    matching_types,
    type_texts,
)
from clew.methods.focus.solutions import Solution
from clew.methods.focus.triples_writer import no_triples_error, reply_to_text
from clew.retrieve.nodes import answer_rows
from clew.triples.engine import reference
from clew.triples.engine.patterns import Constant, DirectedRelation, Pattern, TypedTriple, Variable
from clew.triples.engine.substitution import Substitution
from clew.triples.language.chain import ChainError, Triple, TypedChain
from clew.triples.language.typed_parsing import parse_typed_statements
from clew.triples.linking.relation_words import verbalise_relation

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel, PropertyGraph, Snapshot, Trail
    from clew.triples.engine.reference import Neighbours, Node, PreparedTriplet, RawTriplet

#: Nodes spelled like a constant that are looked at for one of C.
SPELLED = 50


@dataclass(frozen=True, slots=True)
class TripletsWriter:
    """ASK_LLM_FOR_TRIPLETS(q, V.types, E.types): the model is shown the names of the node and edge types, and writes
    triplets with a target. A reply that cannot be parsed has no triplets. ``model`` None: only questions that come
    with triples can be answered."""

    model: LanguageModel | None
    template: Template

    @classmethod
    def build(cls, model: LanguageModel | None) -> TripletsWriter:
        """Return the writer with the prompt that comes with clew."""
        return cls(model, load_prompt("focus-triplets"))

    def write(self, question: Question, graphs: Sequence[PropertyGraph], trail: Trail) -> list[TypedChain]:
        """Return the triplets of a question as its only interpretation, none if there are none.

        Raises ModelError, ChainError for triples that come with the question and cannot be parsed, and UsageError for
        those that say more than triplets can.
        """
        if question.chain:
            typed = parse_typed_statements(question.chain).chain
            if beyond := list_beyond_triplets(typed):
                raise UsageError(
                    f"'{beyond[0]}' is no triplet of the paper",
                    "Ask without paper=yes, or write triples and types only",
                )
            trail.add(TriplesStep(str(typed), written_by="hand"))
            return [typed]
        if self.model is None:
            raise no_triples_error()
        started = time.perf_counter()
        prompt = self.template.render(
            question=question.text,
            node_types=", ".join(dict.fromkeys(type for graph in graphs for type in graph.types())),
            edge_types=", ".join(dict.fromkeys(name for graph in graphs for name in graph.relations())),
        )
        (completion,) = self.model.complete([prompt])
        chains, error = list[TypedChain](), ""
        try:
            fields = parse_json(completion.text, self.template.schema or {})
            chains = [parse_typed_statements(reply_to_text(fields)).chain]
        except (BadCompletion, ChainError) as problem:
            error = problem.problem
        trail.add(
            TriplesStep(
                str(chains[0]) if chains else "",
                prompt=self.template.name,
                usable=len(chains),
                errors=error or None,
                samples=1,
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return chains


def list_beyond_triplets(typed: TypedChain) -> list[str]:
    """Return the statements of a question that are no triplets of the paper, as they are written."""
    return [
        *(
            typed.statement(place)
            for place, triple in enumerate(typed.chain.triples)
            if _why_beyond(typed, place)
        ),
        *map(str, typed.conditions),
        *map(str, typed.superlatives),
        *(f"~ {preference}" for preference in typed.preferences),
    ]


def _why_beyond(typed: TypedChain, place: int) -> str:
    triple = typed.chain.triples[place]
    if place in typed.quantifiers:
        return "the paper has no negation and no counts"
    if triple.repeated:
        return "the paper has no paths"
    if any(end.unknown is None and end.unknowns for end in (triple.head, triple.tail)):
        return "a variable inside a name"
    return ""


@dataclass(frozen=True, slots=True)
class PaperSubstitution:
    """SUBSTITUTE (Algorithm 2) with PREPARE_TRIPLETS_FOR_SUBSTITUTION (Algorithm 3) over one graph.

    ``relations`` is ``any`` where edge types are ignored (Section 4); ``as_printed`` runs lines 14 and 19 as they are
    printed. Nothing is read from ``documents``.
    """

    snapshot: Snapshot
    relations: Literal["typed", "any"] = "typed"
    as_printed: bool = True
    documents: None = None

    def solve(
        self,
        graphs: Sequence[PropertyGraph],
        interpretations: Sequence[TypedChain],
        question: Question,
        trail: Trail,
    ) -> list[Solution]:
        """Return the one solution of a question; without triplets all of C are its candidates. Raises UsageError."""
        if len(graphs) > 1:
            raise UsageError(
                f"focus(paper=yes) has one knowledge base, and there are {len(graphs)} graphs here",
                f"Name one: --graph {graphs[0].name}",
            )
        (graph,) = graphs
        if graph.is_mounted:
            raise UsageError(f"focus(paper=yes) cannot list the nodes of '{graph.name}', which is mounted")
        of_kinds = answer_rows(graph, tuple(sorted(question.scope.kinds or ())))
        if not interpretations:
            return [replace(Solution.of_all_nodes(graph), paper=True)]
        return [_PaperQuestion(graph, interpretations[0], of_kinds, self).solve(trail)]


@dataclass(frozen=True, slots=True)
class _PaperQuestion:
    """One question over one graph; ``of_kinds`` are the rows of C, None: all nodes may answer."""

    graph: PropertyGraph
    typed: TypedChain
    of_kinds: Rows | None
    engine: PaperSubstitution

    def solve(self, trail: Trail) -> Solution:
        """Return C_filtered with what was matched."""
        started = time.perf_counter()
        target, candidates = f"#{self.typed.chain.answer}", self._initial_candidates()
        matched: dict[str, LinkedEntity | None] = {}

        def match(constant: str) -> Node | None:
            if constant not in matched:
                matched[constant] = self._match_constant(constant)
            entity = matched[constant]
            return None if entity is None else entity.row

        raw = {place: self._raw(triple) for place, triple in enumerate(self.typed.chain.triples)}
        raw = {place: triplet for place, triplet in raw.items() if not _why_beyond(self.typed, place)}
        valid = {
            place: triplets[0]
            for place, triplet in raw.items()
            if (triplets := reference.prepare_triplets([triplet], candidates, match))
        }
        pattern, prepared = self._describe(valid, matched, candidates)
        trail.add(replace(prepared.step, seconds=time.perf_counter() - started))
        started = time.perf_counter()
        left, rounds = reference.substitute(
            valid.values(), candidates, self._neighbours(), self.engine.as_printed
        )
        constants = {constant.name: np.array(constant.rows) for constant in pattern.constants}
        seconds = time.perf_counter() - started
        substitution = Substitution(target, {**left, **constants}, rounds, seconds)
        solution = Solution(self.graph, prepared, pattern, substitution, paper=True)
        trail.add(SubstituteStep(self.graph.name, target, solution.candidate_sets(), rounds, seconds=seconds))
        return solution

    def _initial_candidates(self) -> dict[str, Rows]:
        """Return ``substitute[x]`` of every variable (Algorithm 3, lines 1 to 3): the nodes of C of its type."""
        every = np.arange(self.graph.size) if self.of_kinds is None else self.of_kinds
        numbers = sorted({*self.typed.chain.unknowns, *self.typed.types, self.typed.chain.answer or 1})
        candidates = dict.fromkeys((f"#{number}" for number in numbers), every)
        for number, wanted in self.typed.types.items():
            if self.graph.types():
                rows = [self.graph.rows_of_type(type) for type in matching_types(self.graph, wanted)]
                candidates[f"#{number}"] = np.intersect1d(every, union(rows)) if rows else every[:0]
        return candidates

    def _raw(self, triple: Triple) -> RawTriplet:
        ends = (triple.tail, triple.head) if triple.inverse else (triple.head, triple.tail)
        return ends[0].text, triple.relation, ends[1].text

    def _match_constant(self, constant: str) -> LinkedEntity | None:
        """Return the node of C that a constant (almost) matches an alias of (lines 8 and 12), None for none."""
        rows, likeness = self.graph.find_similar_names(constant, SPELLED)
        in_c = likeness >= LEAST
        if self.of_kinds is not None:
            in_c &= np.isin(rows, self.of_kinds)
        rows, likeness = rows[in_c], likeness[in_c]
        if not len(rows):
            return None
        best = likeness >= likeness[0]
        entities = self.graph.entities(rows[best])
        named = [constant in (entity.name, *entity.aliases) for entity in entities]
        place = named.index(True) if True in named else 0
        entity, score = entities[place], float(likeness[0])
        return LinkedEntity(
            int(rows[best][place]), entity.id, entity.name, score, "name" if score == 1 else "spelling"
        )

    def _edge_type(self, name: str) -> str | None:
        """Return the edge type that a triplet names, None if the graph has none called so."""
        relations = self.graph.relations()
        if name in relations:
            return name
        folded = fold_name(verbalise_relation(name))
        return next((other for other in relations if fold_name(verbalise_relation(other)) == folded), None)

    def _neighbours(self) -> Neighbours:
        """Return the paper's helper functions ``neighbors(v, e', +)`` and ``neighbors(v, e', -)``, of several v."""

        def neighbours(nodes: Rows, edge_type: str, sign: str) -> Rows:
            relation = None
            if self.engine.relations == "typed" and (relation := self._edge_type(edge_type)) is None:
                return nodes[:0]
            return sorted_unique(self.graph.neighbours(nodes, relation, inverse=sign == "+")[1])

        return neighbours

    def _describe(
        self,
        valid: dict[int, PreparedTriplet],
        matched: dict[str, LinkedEntity | None],
        candidates: dict[str, Rows],
    ) -> tuple[Pattern, PreparedQuestion]:
        """Return the prepared triplets as a pattern, which explains answers, and what was made of the question."""
        triples, texts, dropped = list[TypedTriple](), list[str](), list[DroppedConstraint]()
        relations_followed: dict[str, str] = {}
        for place, triple in enumerate(self.typed.chain.triples):
            head, name, tail = self._raw(triple)
            relation = None if self.engine.relations == "any" else self._edge_type(name)
            if place not in valid or (relation is None and self.engine.relations == "typed"):
                why = _why_beyond(self.typed, place) or self._why_dropped(
                    place in valid, name, head, tail, matched
                )
                dropped.append(DroppedConstraint(self.typed.statement(place), "", why, place))
                continue
            relations_followed[name] = f">> {relation or 'any'} >>"
            triples.append(TypedTriple(head, (DirectedRelation(relation),), tail))
            texts.append(self.typed.statement(place))
        for number, wanted in self.typed.types.items():
            if not matching_types(self.graph, wanted):
                names = " or ".join(wanted)
                why = f"no node is of the type '{names}'" if self.graph.types() else "the graph has no types"
                dropped.append(DroppedConstraint(f"#{number} : {names}", "", why))
        for beyond in (*self.typed.conditions, *self.typed.superlatives, *self.typed.preferences):
            dropped.append(DroppedConstraint(str(beyond), "", "the paper has triplets alone"))
        ends = {end for triple in triples for end in (triple.head, triple.tail)}
        linked = {name: entity for name, entity in matched.items() if entity is not None}
        types = {
            f"#{number}": matching_types(self.graph, wanted) for number, wanted in self.typed.types.items()
        }
        pattern = Pattern(
            f"#{self.typed.chain.answer}",
            tuple(Variable(name, types.get(name, ()), self.of_kinds) for name in candidates),
            tuple(Constant(name, (entity.row,)) for name, entity in linked.items() if name in ends),
            tuple(triples),
            answer_rows=self.of_kinds,
        )
        constants = {
            name: ()
            if entity is None
            else (LinkedConstant(entity.name, entity.id, entity.score, entity.reason),)
            for name, entity in matched.items()
        }
        whys = {constraint.text: constraint.why for constraint in dropped}
        step = PrepareStep(str(self.typed), self.graph.name, constants, relations_followed, whys, ())
        all_texts = (*texts, *type_texts(pattern))
        substitutions = {name: entity.name for name, entity in linked.items() if entity.name != name}
        confidences = (1.0,) * len(all_texts)
        prepared = PreparedQuestion(
            self.graph, self.typed, pattern, all_texts, tuple(dropped), step, confidences, substitutions
        )
        return pattern, prepared

    def _why_dropped(
        self, is_kept: bool, relation: str, head: str, tail: str, matched: dict[str, LinkedEntity | None]
    ) -> str:
        if is_kept:
            return f"the graph has no edge type '{relation}', so nothing meets it"
        missing = [end for end in (head, tail) if end in matched and matched[end] is None]
        if missing:
            return f"'{missing[0]}' is no node that may answer"
        return "both ends are the same variable" if head == tail else "nothing in it is a variable"
