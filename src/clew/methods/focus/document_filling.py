"""What no graph has, read from the documents: unknowns that no edge leads to, and passages that speak for
preferences.

The paper answers from its knowledge base alone; this is an addition.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.core.arrays import Rows
from clew.core.component import Recipe, Resources
from clew.core.errors import UsageError
from clew.core.protocols import EntityLinker, PropertyGraph, Retriever, Snapshot, Trail
from clew.core.text import fold_name, index_terms, query_terms
from clew.core.types import ConstraintCheck, Hit, Question, RankedAnswer, ShownStep
from clew.methods.answering import quote_triples
from clew.methods.chain.graph_source import EntityChoice, GraphSource
from clew.methods.chain.method import fill_in_order
from clew.methods.chain.text_source import TextSource
from clew.methods.chain.unknowns import Candidate, FilledChain, Filling, KnowledgeSource, parse_sources
from clew.methods.focus.explanations import find_witnesses
from clew.methods.focus.pattern_builder import PreparedQuestion
from clew.triples.engine.patterns import Pattern, connected_terms, restrict_variable
from clew.triples.language.chain import Chain, TypedChain

#: From this linking score on, a node is what a text names.
MIN_LINK_SCORE = 0.9
#: Values of an unknown from which hops are read, and values of the target that are read at most.
KNOWN_VALUES, READ_VALUES = 5, 20
#: Passages that are searched for a constraint, answers that they are searched for, and the share of the constraint's
#: words that a passage must have.
SEARCHED_PASSAGES, SEARCHED_ANSWERS, MIN_WORD_SHARE = 3, 10, 0.6


@dataclass(frozen=True, slots=True)
class DocumentFiller:
    """Reads unknowns from ``sources`` (:mod:`clew.methods.chain.unknowns`) where substitution cannot fill them, and
    searches the passages of ``retriever`` for what a graph does not say of an answer; None: there are no
    documents."""

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

    @property
    def reads_texts(self) -> bool:
        """Whether there are documents to read."""
        return any(source.name != "kg" for source in self.sources)

    def fill_before(
        self, prepared: PreparedQuestion, question: Question, trail: Trail
    ) -> tuple[Pattern, dict[int, Filling]]:
        """Read the unknowns to which only dropped triples lead, before substitution.

        Returns the pattern, restricted to the nodes that are called like the values, and the values by the unknown's
        number. Graphs are not asked: what several hold together is joined (:mod:`clew.methods.focus.cross_graph`).
        Raises ModelError.
        """
        typed, pattern = prepared.typed, prepared.pattern
        unrestricted = unrestricted_unknowns(pattern)
        places = [dropped.place for dropped in prepared.dropped if dropped.place is not None]
        dropped_triples = [typed.chain.triples[place] for place in places if place not in typed.quantifiers]
        open_triples = [triple for triple in dropped_triples if triple.unknowns]
        if not unrestricted & {f"#{number}" for triple in open_triples for number in triple.unknowns}:
            return pattern, {}
        chain = FilledChain(Chain(tuple(open_triples), typed.chain.answer))
        fill_in_order(chain, [source for source in self.sources if source.name != "kg"], question, trail)
        values = {
            number: fillings[0] for number, fillings in chain.fillings.items() if f"#{number}" in unrestricted
        }
        for number, filling in values.items():
            rows = self._rows_called(prepared.graph, filling, question, trail)
            if len(rows):
                pattern = restrict_variable(pattern, rows, f"#{number}")
        return pattern, values

    def read_target(
        self, prepared: PreparedQuestion, known: Mapping[int, Filling], question: Question, trail: Trail
    ) -> list[tuple[Candidate, tuple[ConstraintCheck, ...]]]:
        """Read the target hop by hop from the ``known`` unknowns; return its values, each with the constraints that
        it meets.

        Negated and quantified triples lead nowhere. Graphs are asked only for values of properties: what else they
        have is known already. Raises ModelError, RemoteError.
        """
        target = prepared.typed.chain.answer
        chain = FilledChain(_plain_chain(prepared.typed))
        asks_for_property = any(dropped.value for dropped in prepared.dropped)
        sources = [source for source in self.sources if asks_for_property or source.name != "kg"]
        for number, filling in known.items():
            chain.add(number, filling)
        fill_in_order(chain, sources, question, trail)
        if target is None or target not in chain.fillings:
            return []
        values = {number: fillings[0].candidates[0] for number, fillings in chain.fillings.items()}
        return [
            (candidate, constraint_checks(prepared.typed, {**values, target: candidate}))
            for candidate in chain.fillings[target][0].values(READ_VALUES)
        ]

    def _rows_called(self, graph: PropertyGraph, filling: Filling, question: Question, trail: Trail) -> Rows:
        """Return the nodes that are called like the values that were read, ascending."""
        names = [candidate.value for candidate in filling.candidates]
        linked = self.linker.link(graph, names, question.text, 1, trail)
        rows = [entity.row for of_name in linked for entity in of_name if entity.score >= MIN_LINK_SCORE]
        return np.unique(np.array(rows, dtype=np.int64))

    def find_mentions(
        self, ranking: Sequence[RankedAnswer], soft: Collection[str], question: Question, trail: Trail
    ) -> tuple[list[RankedAnswer], list[float]]:
        """Search passages that mention what the graph cannot say of the first answers.

        ``soft`` are the constraints that are searched for, as they are written. A passage counts if it names the
        answer and has most words of the constraint. That is no proof: the constraint stays unknown. Returns the
        answers with the passages, and for each answer how much is mentioned of it, from 0 to 1.
        """
        if self.retriever is None:
            return list(ranking), [0.0] * len(ranking)
        started, hits = time.perf_counter(), dict[Hit, None]()
        searched, shares = list[RankedAnswer](), list[float]()
        for answer in ranking[:SEARCHED_ANSWERS]:
            mentions = {
                check.text: self._best_mention(self.retriever, answer, check, question)
                for check in answer.checks
                if check.satisfaction is None and check.text in soft
            }
            checks = tuple(
                replace(check, hits=mentions[check.text][1]) if check.text in mentions else check
                for check in answer.checks
            )
            searched.append(replace(answer, checks=checks))
            shares.append(sum(share for share, _ in mentions.values()) / max(len(soft), 1))
            hits |= dict.fromkeys(hit for _, passages in mentions.values() for hit in passages)
        if hits:
            seconds = time.perf_counter() - started
            trail.add(
                ShownStep("look in passages", {"answers": len(searched)}, hits=tuple(hits), seconds=seconds)
            )
        rest = ranking[SEARCHED_ANSWERS:]
        return [*searched, *rest], [*shares, *(0.0 for _ in rest)]

    def _best_mention(
        self, retriever: Retriever, answer: RankedAnswer, check: ConstraintCheck, question: Question
    ) -> tuple[float, tuple[Hit, ...]]:
        """Return the share of a constraint's words in the passage about an answer that has most of them, and the
        passage."""
        words = set(query_terms(check.text)) - set(query_terms(answer.name))
        name, best, hits = fold_name(answer.name), 0.0, tuple[Hit, ...]()
        query = Question(f"{answer.name} {check.text}", question.scope)
        for hit in retriever.retrieve(query, SEARCHED_PASSAGES):
            if not words or name not in fold_name(f"{hit.node.document_name} {hit.node.text}"):
                continue
            share = len(words & set(index_terms(hit.node.text))) / len(words)
            if share >= MIN_WORD_SHARE and share > best:
                best, hits = share, (hit,)
        return best, hits


def _plain_chain(typed: TypedChain) -> Chain:
    """Return the chain of the triples without a quantifier."""
    triples = (triple for place, triple in enumerate(typed.chain.triples) if place not in typed.quantifiers)
    return Chain(tuple(triples), typed.chain.answer)


def unrestricted_unknowns(pattern: Pattern) -> frozenset[str]:
    """Return the unknowns that nothing but their types restricts. A quantified triple restricts its head, not what it
    counts."""
    variables = [variable.name for variable in pattern.variables]
    constants = [constant.name for constant in pattern.constants]
    connected = connected_terms(pattern.triples, [*variables, *constants])
    restricted = set(constants)
    restricted |= {predicate.variable for predicate in pattern.predicates}
    restricted |= {triple.head for triple in pattern.triples if triple.quantifier is not None}
    restricted |= {variable.name for variable in pattern.variables if variable.rows is not None}
    return frozenset(name for name in variables if not connected[name] & restricted)


def known_values(
    snapshot: Snapshot, graph: PropertyGraph, pattern: Pattern, candidates: Mapping[str, Rows | None]
) -> dict[int, Filling]:
    """Return the first candidates that substitution leaves of each restricted unknown, as values of a chain with the
    triples that say so, by the unknown's number."""
    values, unrestricted = {}, unrestricted_unknowns(pattern)
    for name, rows in candidates.items():
        if not name.startswith("#") or name in unrestricted or rows is None or not len(rows):
            continue
        of_unknown = replace(pattern, target=name, answer_rows=None)
        first = rows[:KNOWN_VALUES]
        known = []
        for row, entity in zip(first.tolist(), graph.entities(first), strict=True):
            witnesses = find_witnesses(snapshot, graph, of_unknown, row)
            hits = [hit for of_triple in witnesses.values() for hit in of_triple]
            known.append(Candidate(entity.name, 1.0, tuple(hits), quote_triples(hits), entity.id))
        values[int(name[1:])] = Filling("kg", tuple(known), graph=graph.name)
    return values


def checks_of_read_triples(typed: TypedChain, values: Mapping[int, Filling]) -> dict[str, ConstraintCheck]:
    """Return the triples of which an unknown was read, by how they are written, with the hits it was read from."""
    best = {number: filling.candidates[0] for number, filling in values.items()}
    checks = constraint_checks(typed, best)
    return {check.text: check for check in checks if check.satisfaction is not None}


def constraint_checks(typed: TypedChain, values: Mapping[int, Candidate]) -> tuple[ConstraintCheck, ...]:
    """Return every constraint of a question for given values of its unknowns, by number: triples are met by the hits
    of the values, and nothing is known of the other constraints."""
    checks = []
    for place, triple in enumerate(typed.chain.triples):
        known = [values[number] for number in triple.unknowns if number in values]
        if not known or place in typed.quantifiers:
            checks.append(ConstraintCheck(typed.statement(place), None))
            continue
        satisfaction = round(min(candidate.score for candidate in known), 3)
        checks.append(ConstraintCheck(typed.statement(place), satisfaction, known[-1].hits))
    types = [f"#{number} : {' or '.join(types)}" for number, types in typed.types.items() if types]
    others = [*map(str, typed.conditions), *types, *(f"~ {wish}" for wish in typed.preferences)]
    return (*checks, *(ConstraintCheck(text, None) for text in others))
