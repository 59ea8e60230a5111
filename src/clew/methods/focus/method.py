"""4StepFocus (Boer et al., 2024): a question becomes typed triples, substitution in a graph leaves candidates,
vectors sort them, and the model reranks the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from clew.core.component import Auto, Resources, component
from clew.core.errors import BudgetExceeded, NotFound, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.recipe import Recipe
from clew.core.steps import RankedLine, RankedStep, RerankStep, SortStep
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, ConstraintSummary, Exclusion, Hit, Question, RankedAnswer
from clew.methods.answering import NEAREST_HITS, no_answer_text, record_stop
from clew.methods.chain.graph_source import (
    EntityChoice,
    create_entity_linker,
    create_relation_linker,
    min_relation_score,
)
from clew.methods.focus.constant_matcher import ConstantMatcher
from clew.methods.focus.document_filling import DocumentFiller, constraint_checks, known_values
from clew.methods.focus.interpretations import Interpretation, SubstitutionEngine, explain_exclusions
from clew.methods.focus.pattern_builder import TriplePreparer
from clew.methods.focus.relation_matcher import RelationMatcher
from clew.methods.focus.sorting import WISHED, SortedCandidates
from clew.methods.focus.triples_writer import TriplesWriter, parse_given_triples
from clew.methods.triple_hits import quote_triples
from clew.retrieve.node_texts import NodeTexts, describe_entity, node_texts
from clew.retrieve.nodes import (
    EMBEDDING_CAP,
    NodeBM25,
    NodeRanker,
    NodeVectorSearch,
    RankedRows,
    node_hit,
    node_hits,
)
from clew.retrieve.reranking import create_hit_reranker
from clew.triples.language.typed_chain import TypedChain
from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.nearest_names import NearestNames

if TYPE_CHECKING:
    from clew.core.protocols import EntityLinker, PropertyGraph, Snapshot, Trail
    from clew.retrieve.reranking import HitReranker

#: Answers that are ranked at the most, and those whose triples are looked up.
RANKED, SHOWN = 200, 20
#: Names that an answer's text lists where all candidates answer, and where wishes make some better than others.
LISTED, FIRST = 20, 5
#: Values of an answer that are named at all.
MOST = 10_000
#: Values of an unknown that a hop is read with.
VALUES = 5


@component(
    "focus(retriever=search)",
    summary="4StepFocus: the question as typed triples, the candidates that meet them in a graph, sorted by vector, "
    "the first k reranked by the model; relations=any is the paper's recipe, which ignores edge types",
    paper="Boer et al., 2024",
    traits=["ranks-nodes", "embeds-nodes"],
)
@dataclass(frozen=True, slots=True)
class FocusMethod:
    """Answers with a ranked list of nodes: those that meet the question's triples first.

    ``writer`` None: only questions with triples of their own can be answered. Of several readings of a question the
    first that a graph can hold whole counts, at most ``tries``, else the one of which most holds; several graphs
    that hold as much of it answer side by side, and those that hold parts of it answer together
    (:mod:`clew.methods.focus.cross_graph`). Without any triples the list is that of a search by vector, as it is in
    the paper where nothing is filtered, and the trail says so. ``reranker`` None: the order is that of the vectors.
    """

    snapshot: Snapshot
    writer: TriplesWriter | None
    engine: SubstitutionEngine
    reranker: HitReranker | None = None
    tries: int = 3
    recipe: str = "focus"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: str,
        retriever: Recipe,
        reader: Annotated[Recipe, Auto("cited", "short")],
        sort: Annotated[Literal["vector", "words"], Auto("vector", "words", requires="encoder")],
        form: Annotated[Literal["pointwise", "listwise", "none"], Auto("pointwise", "none")],
        relations: Literal["typed", "any"] = "typed",
        k: int = 20,
        samples: int = 1,
        tries: int = 3,
        entities: EntityChoice = "ranked",
        aliases: str = "",
        sources: str = "kg,text",
        passages: int = 10,
        values: int = 3,
    ) -> FocusMethod:
        """Return the method with the parts of a recipe; without a model it answers only triples that it is given.

        Raises UsageError.
        """
        model, encoder = resources.model, resources.encoder
        linker = create_entity_linker(resources, entities, "focus")
        documents = DocumentFiller.build(
            resources, linker, sources, retriever, reader, passages, values, aliases, entities
        )
        relation_linker = create_relation_linker(resources, aliases)
        writer = None
        if model is not None:
            prompts = load_prompt("focus-triples"), load_prompt("focus-pronouns")
            writer = TriplesWriter(model, *prompts, relation_linker, samples)
        similar_names = None
        if encoder is not None:
            similar_names = GraphEntityLinker(encoder, nearest=NearestNames(encoder))
        preparer = TriplePreparer(
            ConstantMatcher(linker, similar_names),
            RelationMatcher(relation_linker, relations, min_relation_score(resources)),
            relation_linker,
        )
        ranking = _node_ranking(resources, sort)
        reranker = None
        if form != "none":
            reranker = create_hit_reranker(resources.require_model("focus"), form, k)
        engine = SubstitutionEngine(resources.snapshot, preparer, ranking, documents, k)
        return cls(resources.snapshot, writer, engine, reranker, tries, recipe)

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the ranked answers with what each meets and misses. Raises UsageError, ModelError, RemoteError."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        graphs = self._graphs(question)
        found = _Found()
        try:
            chains = self._chains(question, graphs, record)
            found.tried = self._tried(graphs, chains, question, record)
            if found.tried:
                for one in found.tried:
                    self._ranked(one, question, record, found)
            else:
                self._unfiltered(graphs, question, record, found)
        except BudgetExceeded as error:
            record_stop(record, error)
        found.ranked.sort(key=lambda one: (not one.meets_all, -one.hit.score))
        return self._answered(found, record)

    def why_not(self, question: Question, name: str, linker: EntityLinker) -> list[Exclusion]:
        """Return for each node that ``name`` may stand for why it is no answer to a question, by the reading and in
        the graphs that answer it. Raises UsageError, NotFound where none of these has anything called so."""
        record = TrailRecorder()
        graphs = self._graphs(question)
        tried = self._tried(graphs, self._chains(question, graphs, record), question, record)
        found, missing = list[Exclusion](), list[NotFound]()
        for made in tried:
            try:
                found += explain_exclusions(self.snapshot, made, linker, question, name, record)
            except NotFound as error:
                missing.append(error)
        if not found and missing:
            raise missing[0]
        return found

    def _graphs(self, question: Question) -> list[PropertyGraph]:
        wanted = question.scope.graphs
        names = [name for name in self.snapshot.graphs() if wanted is None or name in wanted]
        if not names:
            raise UsageError(
                "'focus' answers from knowledge graphs and there is none here",
                "Add one: clew graph add FILE; or ask the documents: --method kgp",
            )
        return [self.snapshot.graph(name) for name in names]

    def _chains(
        self, question: Question, graphs: Sequence[PropertyGraph], record: TrailRecorder
    ) -> list[TypedChain]:
        if self.writer is not None:
            return self.writer.write(question, graphs, record)
        return parse_given_triples(question, record, graphs)

    def _tried(
        self,
        graphs: Sequence[PropertyGraph],
        chains: Sequence[TypedChain],
        question: Question,
        record: TrailRecorder,
    ) -> list[Interpretation]:
        """Return the attempts that count: of the best reading, those of the graphs that hold as much of it as any."""
        best: list[Interpretation] = []
        for typed in chains[: self.tries]:
            made = [self.engine.solve(graph, typed, question, record) for graph in graphs]
            if len(made) > 1 and not any(one.holds_everything for one in made):
                together = self.engine.solve_jointly(made, record)
                made += [together] if together is not None else []
            first = max(made, key=lambda one: one.quality)
            made = [
                one
                for one in made
                if one.quality[:2] == first.quality[:2] and one.held_constraints == first.held_constraints
            ]
            if not best or made[0].quality > best[0].quality:
                best = made
            if any(one.holds_everything for one in made) or record.should_stop():
                break
        return best

    def _ranked(self, made: Interpretation, question: Question, record: TrailRecorder, found: _Found) -> None:
        """Sort the candidates of an attempt, rerank the first, and say what each meets."""
        if self._read(made, question, record, found):
            return
        started = time.perf_counter()
        ordered = self.engine.sort(made, question)
        firm = len(ordered.matching.rows[:RANKED])
        hits = self._hits(made.graph, ordered)
        seconds = time.perf_counter() - started
        record.add(replace(ordered.to_step(made.graph.name), hits=tuple(hits[:SHOWN]), seconds=seconds))
        hits, scores = self._reranked(question, hits, firm, record)
        rows = made.graph.rows([hit.node.id for hit in hits])
        # Candidates that nothing restricts are no answers, whatever there is of them.
        kept = set(ordered.matching.rows.tolist()) if made.has_answers else set()
        explained = made.explain(rows)
        ranked = [
            RankedAnswer(
                hit.node.name,
                hit,
                row in kept,
                made.checks(explained, self.snapshot, place, firm=row in kept, evidence=place < SHOWN),
                scores.get(hit.node.id) or f"{ordered.by} {ordered.own_scores.get(row, 0.0):.2f}",
            )
            for place, (hit, row) in enumerate(zip(hits, rows.tolist(), strict=True))
        ]
        reading, soft = self.engine.documents, made.prepared.soft_texts
        if reading is not None and soft:
            ranked, mentioned = reading.find_mentions(ranked, soft, question, record)
            ranked = ranked if scores else _raised(ranked, mentioned)
        found.ranked += ranked
        found.take(made, ordered)

    def _read(self, made: Interpretation, question: Question, record: TrailRecorder, found: _Found) -> bool:
        """Answer from documents where no graph leads to what is asked for; return whether they do."""
        reading, target = self.engine.documents, made.prepared.typed.chain.answer
        if (
            reading is None
            or target is None
            or made.restricts_target
            or made.is_complete
            or made.has_unreadable_gap
        ):
            return False
        known = known_values(
            self.snapshot, made.graph, made.kept_pattern, made.substitution.candidates, VALUES
        )
        filled = reading.fill_after(made.prepared, known | dict(made.values_read), question, record)
        if target not in filled.fillings:
            return False
        values = {number: some[0].candidates[0] for number, some in filled.fillings.items()}
        for one in filled.fillings[target][0].values(SHOWN):
            if one.hits and one.value not in found.read:
                checks = constraint_checks(made.prepared.typed, {**values, target: one})
                hit = replace(one.hits[-1], score=one.score)
                found.ranked.append(RankedAnswer(one.value, hit, True, checks, "read"))
                found.read[one.value] = one.hits
        return bool(found.read)

    def _unfiltered(
        self, graphs: Sequence[PropertyGraph], question: Question, record: TrailRecorder, found: _Found
    ) -> None:
        """Rank all nodes that may answer, as a search by vector does."""
        for graph in graphs:
            if graph.is_mounted:
                record.add(SortStep(graph.name, passed_over="it is mounted"))
                continue
            sorting, answers = self.engine.sorter_for(graph), self.engine.answer_rows(graph, question)
            ordered = sorting.sort(question.text, None, (), answers, lambda rows: np.ones(len(rows)))
            hits = self._hits(graph, ordered)
            record.add(replace(ordered.to_step(graph.name), hits=tuple(hits)))
            own = {hit.node.id: hit.score for hit in hits}  # a reranker gives them others
            hits, scores = self._reranked(question, hits, None, record)
            found.ranked += [
                RankedAnswer(
                    hit.node.name,
                    hit,
                    False,
                    (),
                    scores.get(hit.node.id) or f"{ordered.by} {own[hit.node.id]:.2f}",
                )
                for hit in hits
            ]

    def _hits(self, graph: PropertyGraph, ordered: SortedCandidates) -> list[Hit]:
        """Return the sorted candidates as hits, those that fill up last; scores fall from the one to the other."""
        firm = RankedRows(ordered.matching.rows[:RANKED], ordered.matching.scores[:RANKED])
        if graph.is_mounted:
            entities = graph.entities(firm.rows)
            return [node_hit(graph.name, one, describe_entity(one), 0.0) for one in entities]
        texts = node_texts(self.snapshot, graph)
        return [*node_hits(texts, firm), *node_hits(texts, ordered.padding)]

    def _reranked(
        self, question: Question, hits: list[Hit], firm: int | None, record: TrailRecorder
    ) -> tuple[list[Hit], dict[str, str]]:
        """Return the hits in the model's order, and what the model said of each."""
        if self.reranker is None or not hits:
            return hits, {}
        before = len(record.steps)
        made = self.reranker.rerank(question.text, hits, record, matching=firm)
        steps = [step for step in record.steps[before:] if isinstance(step, RerankStep)]
        scores = {
            id: f"model {score:g}"
            for step in steps
            for id, score in (step.scores or {}).items()
            if score is not None
        }
        return made, scores

    def _answered(self, found: _Found, record: TrailRecorder) -> Answer:
        ranked = tuple(found.ranked)
        text = found.text(self.reranker is not None)
        constraints = found.constraints()
        # A value that was read from passages instead rests on no constraint that was relaxed or dropped.
        shown = constraints if constraints.triples and not found.read else None
        record.add(
            RankedStep(
                text,
                constraints.matching,
                triples=constraints.triples or None,
                given_up=shown.relaxed if shown else None,
                dropped=shown.dropped if shown else None,
                answers=tuple(_line(one) for one in ranked[:SHOWN]),
            )
        )
        context = tuple(one.hit for one in ranked)
        common: dict[str, Any] = {
            "trail": tuple(record.steps),
            "usage": record.usage(),
            "reader": "focus",
            "recipe": self.recipe,
            "context": context,
            "ranking": ranked,
            "constraints": constraints,
        }
        if not text:
            return Answer(no_answer_text(record), context[:NEAREST_HITS], abstained=True, **common)
        evidence = found.evidence()
        return Answer(text, evidence, quote_triples(evidence), values=found.values, **common)


@dataclass(slots=True)
class _Found:
    """What was found for a question, by all attempts that count."""

    tried: list[Interpretation] = field(default_factory=list)
    ranked: list[RankedAnswer] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    unnamed: int = 0
    read: dict[str, tuple[Hit, ...]] = field(default_factory=dict)
    wishes: bool = False

    def take(self, made: Interpretation, ordered: SortedCandidates) -> None:
        """Take the names of all candidates that meet the constraints of an attempt, if they restrict anything."""
        rows = made.substitution.rows
        self.wishes |= bool(made.prepared.soft_words)
        if rows is None or not made.has_answers:
            return
        others = rows[~np.isin(rows, ordered.matching.rows[:RANKED])]
        self.names += [one.name for one in made.graph.entities(others[:MOST])]
        self.unnamed += max(len(others) - MOST, 0)

    def constraints(self) -> ConstraintSummary:
        """Return what the trail shows of the attempts that count: how the question was read, and what of it does not
        hold."""
        if not self.tried:
            return ConstraintSummary("", self.total)
        texts = [
            [one.prepared.constraint_text(some, one.pattern) for some in one.substitution.relaxed]
            for one in self.tried
        ]
        gone = list(dict.fromkeys(text for some in texts for text in some))
        dropped = {one.text: one.why for made in self.tried for one in made.prepared.dropped}
        triples = str(self.tried[0].prepared.typed)
        if self.read:  # the values come from passages instead
            return ConstraintSummary(triples, self.total)
        return ConstraintSummary(triples, self.total, tuple(gone), dropped)

    @property
    def total(self) -> int:
        """How many meet all constraints that were kept, named or not."""
        return len(self.firm) + len(self.names) + self.unnamed

    @property
    def firm(self) -> list[RankedAnswer]:
        """The answers that meet the constraints."""
        return [one for one in self.ranked if one.meets_all]

    @property
    def values(self) -> tuple[str, ...]:
        """The answers one by one, best first."""
        return tuple(dict.fromkeys([*(one.name for one in self.firm), *self.names]))

    def text(self, by_model: bool) -> str:
        """Return the answer's text: all that meet the constraints; the first where the order says which are better"""
        values = self.values
        most = FIRST if by_model or self.wishes else LISTED
        left = len(values) - most + self.unnamed
        return ", ".join(values[:most]) + (f" and {left:,} more" if left > 0 else "")

    def evidence(self) -> tuple[Hit, ...]:
        """Return the triples and passages by which the first answers meet the constraints, and their own texts."""
        found = dict[Hit, None]()
        for one in self.firm[:LISTED]:
            found |= dict.fromkeys(self.read.get(one.name, ()))
            found |= dict.fromkeys(hit for check in one.checks for hit in check.hits)
            found[one.hit] = None
        return tuple(found)


def _raised(ranked: Sequence[RankedAnswer], mentioned: Sequence[float]) -> list[RankedAnswer]:
    """Return answers with what passages mention of them in their scores."""
    return [
        replace(one, hit=replace(one.hit, score=one.hit.score + WISHED * share))
        for one, share in zip(ranked, mentioned, strict=True)
    ]


def _line(answer: RankedAnswer) -> RankedLine:
    misses = tuple(answer.missed_constraints) or None
    return RankedLine(answer.name, answer.hit.node.id, answer.ranked_by, answer.meets_all, misses)


def _node_ranking(
    resources: Resources, sort: Literal["vector", "words"]
) -> Callable[[NodeTexts, int | None], NodeRanker]:
    """Return what makes a ranker from the texts of a graph's nodes and how many of them may be embedded."""
    if sort == "words":
        return lambda texts, cap: NodeBM25(texts)
    encoder = resources.require_encoder("focus(sort=vector)")
    return lambda texts, cap: NodeVectorSearch(encoder, texts, EMBEDDING_CAP if cap is None else cap)
