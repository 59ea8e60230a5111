"""What no graph holds, read from the documents: hops that are left over, and wishes that passages speak for."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.component import Resources
from clew.core.errors import UsageError
from clew.core.recipe import Recipe
from clew.core.steps import LookInPassagesStep
from clew.core.text import fold_name, index_terms, query_terms
from clew.core.types import ConstraintCheck, Hit, Question, RankedAnswer
from clew.methods.chain.graph_source import EntityChoice, GraphSource
from clew.methods.chain.method import fill_in_order, parse_sources
from clew.methods.chain.text_source import TextSource
from clew.methods.chain.unknowns import Candidate, FilledChain, Filling, KnowledgeSource
from clew.methods.focus.explanations import find_witnesses
from clew.methods.focus.pattern_builder import PreparedQuestion
from clew.methods.triple_hits import quote_triples
from clew.triples.engine.patterns import Pattern, connected_terms, restrict_variable
from clew.triples.language.chain import Chain
from clew.triples.language.typed_chain import TypedChain

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import EntityLinker, PropertyGraph, Retriever, Snapshot, Trail

#: A node is what a text says only if it is called so.
CALLED = 0.9
#: Passages that are looked at for a wish, answers that are, and the share of its words that must be there.
PASSAGES, ANSWERS, SAYS = 3, 10, 0.6


@dataclass(frozen=True, slots=True)
class DocumentFiller:
    """Fills from ``sources`` (:mod:`clew.methods.chain.unknowns`) what substitution cannot, and looks in the passages
    that ``retriever`` finds for what a graph does not say of an answer; None where there are no documents."""

    sources: Sequence[KnowledgeSource]
    linker: EntityLinker
    retriever: Retriever | None

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        linker: EntityLinker,
        sources: str,
        retriever: Recipe,
        reader: Recipe,
        passages: int,
        values: int,
        aliases: str,
        entities: EntityChoice,
    ) -> DocumentFiller | None:
        """Return what fills the hops that substitution cannot, None for the sources ``none``. Raises UsageError."""
        if sources == "none":
            return None
        names = parse_sources(sources)
        if "model" in names:
            raise UsageError(
                "'focus' does not answer from the model's memory", "Sources are kg and text; or none"
            )
        filled_from: list[KnowledgeSource] = []
        search: Retriever | None = None
        for name in names:
            if name == "kg":
                filled_from.append(GraphSource.build(resources, aliases, entities, "chain"))
            elif resources.snapshot.size:
                # An empty base has nothing to retrieve; properties of nodes are looked up all the same.
                search = resources.retriever(retriever)
                filled_from.append(
                    TextSource.build(resources, search, resources.reader(reader), passages, values)
                )
        return cls(tuple(filled_from), linker, search)

    def fill_before(
        self, prepared: PreparedQuestion, question: Question, trail: Trail
    ) -> tuple[Pattern, dict[int, Filling]]:
        """Read the unknowns that only dropped triples lead to; return the pattern with them as nodes, as far as the
        graph has nodes that are called so, and what was found. Graphs are not asked: what they hold together is
        joined (:mod:`clew.methods.focus.cross_graph`). Raises ModelError."""
        typed, pattern = prepared.typed, prepared.pattern
        free = unrestricted_unknowns(pattern)
        places = [one.place for one in prepared.dropped if one.place is not None]
        left = [typed.chain.triples[place] for place in places if place not in typed.quantifiers]
        left = [one for one in left if one.unknowns]
        if not left or not free & {f"#{number}" for one in left for number in one.unknowns}:
            return pattern, {}
        filled = FilledChain(Chain(tuple(left), typed.chain.answer))
        fill_in_order(filled, [one for one in self.sources if one.name != "kg"], question, trail)
        found = {number: some[0] for number, some in filled.fillings.items() if f"#{number}" in free}
        for number, one in found.items():
            rows = self._rows(prepared.graph, one, question, trail)
            if len(rows):
                pattern = restrict_variable(pattern, rows, f"#{number}")
        return pattern, found

    def fill_after(
        self, prepared: PreparedQuestion, known: Mapping[int, Filling], question: Question, trail: Trail
    ) -> FilledChain:
        """Fill what is left of a chain from the unknowns that are known, hop by hop. What is denied or counted leads
        nowhere. Graphs are asked for values of properties alone: what else they hold is known. Raises ModelError,
        RemoteError."""
        filled = FilledChain(plain_chain(prepared.typed))
        values = any(one.value for one in prepared.dropped)
        sources = [one for one in self.sources if values or one.name != "kg"]
        for number, one in known.items():
            filled.add(number, one)
        fill_in_order(filled, sources, question, trail)
        return filled

    def _rows(self, graph: PropertyGraph, found: Filling, question: Question, trail: Trail) -> Rows:
        """Return the nodes that are called like the values that were read, ascending."""
        names = [one.value for one in found.candidates]
        linked = self.linker.link(graph, names, question.text, 1, trail)
        rows = [one.row for some in linked for one in some if one.score >= CALLED]
        return np.unique(np.array(rows, dtype=np.int64))

    def find_mentions(
        self, ranked: Sequence[RankedAnswer], soft: Collection[str], question: Question, trail: Trail
    ) -> tuple[list[RankedAnswer], list[float]]:
        """Return the answers, the first of them with passages that mention what the graph cannot say of them, and how
        much of that is mentioned of each, from 0 to 1.

        ``soft`` are the constraints that are looked for, as they are written. A passage counts that names the answer
        and has most words of the constraint. That is no proof: it ranks, and the constraint stays unknown.
        """
        if self.retriever is None:
            return list(ranked), [0.0] * len(ranked)
        started, hits = time.perf_counter(), dict[Hit, None]()
        made, shares = [], []
        for one in ranked[:ANSWERS]:
            found = {
                check.text: self._mention(self.retriever, one, check, question)
                for check in one.checks
                if check.satisfaction is None and check.text in soft
            }
            checks = tuple(
                replace(check, hits=found[check.text][1]) if check.text in found else check
                for check in one.checks
            )
            made.append(replace(one, checks=checks))
            shares.append(sum(share for share, _ in found.values()) / max(len(soft), 1))
            hits |= dict.fromkeys(hit for _, some in found.values() for hit in some)
        if hits:
            seconds = time.perf_counter() - started
            trail.add(LookInPassagesStep(len(made), hits=tuple(hits), seconds=seconds))
        rest = ranked[ANSWERS:]
        return [*made, *rest], [*shares, *(0.0 for _ in rest)]

    def _mention(
        self, retriever: Retriever, answer: RankedAnswer, check: ConstraintCheck, question: Question
    ) -> tuple[float, tuple[Hit, ...]]:
        """Return the passage that mentions most of a constraint beside an answer, and how much that is."""
        words = set(query_terms(check.text)) - set(query_terms(answer.name))
        name, best, hits = fold_name(answer.name), 0.0, tuple[Hit, ...]()
        for hit in retriever.retrieve(Question(f"{answer.name} {check.text}", question.scope), PASSAGES):
            if not words or name not in fold_name(f"{hit.node.document_name} {hit.node.text}"):
                continue
            share = len(words & set(index_terms(hit.node.text))) / len(words)
            if share >= SAYS and share > best:
                best, hits = share, (hit,)
        return best, hits


def plain_chain(typed: TypedChain) -> Chain:
    """Return the chain of the triples that are neither denied nor counted."""
    kept = (one for place, one in enumerate(typed.chain.triples) if place not in typed.quantifiers)
    return Chain(tuple(kept), typed.chain.answer)


def unrestricted_unknowns(pattern: Pattern) -> frozenset[str]:
    """Return the unknowns that nothing but their types restricts. What is counted restricts what has so many, not
    what is counted."""
    names = [one.name for one in pattern.variables] + [one.name for one in pattern.constants]
    together = connected_terms(pattern.triples, names)
    fixed = {one.name for one in pattern.constants}
    fixed |= {one.variable for one in pattern.predicates}
    fixed |= {one.head for one in pattern.triples if one.quantifier is not None}
    fixed |= {one.name for one in pattern.variables if one.rows is not None}
    names = [one.name for one in pattern.variables]
    return frozenset(name for name in names if not together[name] & fixed)


def known_values(
    snapshot: Snapshot,
    graph: PropertyGraph,
    pattern: Pattern,
    sets: Mapping[str, Rows | None],
    most: int,
) -> dict[int, Filling]:
    """Return what substitution left of the unknowns that something restricts, as values of a chain, each with the
    triples that say so."""
    found, free = {}, unrestricted_unknowns(pattern)
    for name, rows in sets.items():
        if not name.startswith("#") or name in free or rows is None or not len(rows):
            continue
        asked = replace(pattern, target=name, answer_rows=None)
        candidates = []
        for row, entity in zip(rows[:most].tolist(), graph.entities(rows[:most]), strict=True):
            hits = [hit for some in find_witnesses(snapshot, graph, asked, row).values() for hit in some]
            candidates.append(Candidate(entity.name, 1.0, tuple(hits), quote_triples(hits), entity.id))
        found[int(name[1:])] = Filling("kg", tuple(candidates), graph=graph.name)
    return found


def checks_of_read_triples(typed: TypedChain, found: Mapping[int, Filling]) -> dict[str, ConstraintCheck]:
    """Return the triples of which an unknown was read, as they are written, with what that rests on."""
    best = {number: one.candidates[0] for number, one in found.items()}
    return {one.text: one for one in constraint_checks(typed, best) if one.satisfaction is not None}


def constraint_checks(typed: TypedChain, values: Mapping[int, Candidate]) -> tuple[ConstraintCheck, ...]:
    """Return every constraint of a question, where its unknowns are some values: its triples met by what the values
    rest on, and nothing known of the others."""
    made = []
    for place, triple in enumerate(typed.chain.triples):
        read = [values[number] for number in triple.unknowns if number in values]
        if not read or place in typed.quantifiers:
            made.append(ConstraintCheck(typed.statement(place), None))
            continue
        hits = read[-1].hits
        made.append(ConstraintCheck(typed.statement(place), round(min(one.score for one in read), 3), hits))
    types = [f"#{number} : {' or '.join(some)}" for number, some in typed.types.items() if some]
    others = [*map(str, typed.conditions), *types, *(f"~ {one}" for one in typed.preferences)]
    return (*made, *(ConstraintCheck(text, None) for text in others))
