"""4StepFocus (Boer et al., 2024, Section 3): Algorithm 1. The four steps of :meth:`FocusMethod.answer` are its lines.

1. ``ASK_LLM_FOR_TRIPLETS``: a model writes the question as typed triples
   (:mod:`clew.methods.focus.triples_writer`).
2. ``SUBSTITUTE``: Algorithm 3 matches names and relations of the triples to a graph
   (:mod:`clew.methods.focus.pattern_builder`), Algorithm 2 narrows the candidates of their variables until nothing
   changes (:mod:`clew.triples.engine`; the paper's version is :mod:`clew.triples.engine.reference`).
3. ``VSS``: vectors sort the candidates, and fill the list up to k_max (:mod:`clew.methods.focus.ranking`).
4. ``LLM_RERANKER``: a model reorders the first k_max (:mod:`clew.retrieve.reranking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from clew.core.component import Auto, Recipe, Resources, component
from clew.core.errors import BudgetExceeded, NotFound, UsageError
from clew.core.trail import RerankStep, TrailRecorder
from clew.core.types import Answer, Exclusion, Question, RankedAnswer
from clew.methods.answering import record_stop
from clew.methods.chain.graph_source import EntityChoice, create_entity_linker, create_relation_linker
from clew.methods.focus.document_filling import DocumentFiller, known_values
from clew.methods.focus.exact import ExactReading, explain_readings, find_exact_answers
from clew.methods.focus.paper import PaperSubstitution, TripletsWriter
from clew.methods.focus.pattern_builder import TriplePreparer
from clew.methods.focus.ranking import (
    PREFERENCE_WEIGHT,
    AnswerList,
    CandidateSorter,
    SortChoice,
    SortedCandidates,
    list_exact_answers,
)
from clew.methods.focus.solutions import Solution, SubstitutionEngine, explain_exclusions
from clew.methods.focus.triples_writer import TriplesWriter, parse_given_triples
from clew.retrieve.reranking import HitReranker, create_hit_reranker
from clew.triples.linking.linked_graphs import AND, join_linked

if TYPE_CHECKING:
    from clew.core.protocols import EntityLinker, PropertyGraph, Snapshot, Trail
    from clew.triples.language.chain import TypedChain


@component(
    "focus(retriever=search)",
    summary="4StepFocus: the question as typed triples, the candidates that meet them in a graph, sorted by vector, "
    "the first k reranked by the model; paper=yes is what the paper prints and nothing more",
    paper="Boer et al., 2024",
    traits=["ranks-nodes", "embeds-nodes"],
)
@dataclass(frozen=True, slots=True)
class FocusMethod:
    """Answers with a ranked list of nodes: those that meet the question's triples come first.

    ``writer`` None: only questions that come with triples can be answered. ``reranker`` None: the order is that of
    the vectors. At most ``tries`` interpretations of a question are tried.

    Deviations from Algorithm 1: there may be several interpretations and several graphs (``engine.solve`` chooses).
    What no graph has is read from the documents, if there are any. An answer carries for each constraint whether it
    meets it, with the triples that say so. As in the paper, if the model writes no usable triples nothing is filtered
    and all nodes are sorted; such nodes are shown, but the answer abstains.
    """

    snapshot: Snapshot
    writer: TriplesWriter | TripletsWriter | None
    engine: SubstitutionEngine | PaperSubstitution
    sorter: CandidateSorter
    reranker: HitReranker | None = None
    tries: int = 3
    recipe: str = "focus"
    #: Whether exact answers that nothing tells apart are ranked, too.
    ranks_alike: bool = False

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: str,
        retriever: Recipe,
        reader: Annotated[Recipe, Auto("cited", "span", baseline="extractive")],
        sort: Annotated[SortChoice, Auto("vector", "words", requires="encoder")],
        form: Annotated[Literal["needed", "pointwise", "listwise", "none"], Auto("needed", "none")],
        relations: Literal["typed", "any"] = "typed",
        k: int = 20,
        samples: int = 1,
        tries: int = 3,
        entities: EntityChoice = "ranked",
        aliases: str = "",
        sources: str = "kg,text",
        passages: int = 10,
        values: int = 3,
        constants: Literal["near", "widened"] = "near",
        fusion: Literal["fixed", "learned"] = "fixed",
        paper: bool = False,
        lines: Literal["printed", "corrected"] = "printed",
    ) -> FocusMethod:
        """Return the method with the parts of a recipe; without a model it answers only triples that it is given.

        With ``paper`` it is what the paper prints and nothing more (:mod:`clew.methods.focus.paper`): of the other
        options only ``sort``, ``form``, ``k`` and ``relations`` count, and ``lines`` (of Algorithm 2: 14 and 19).
        ``form`` ``needed`` is ``pointwise`` but for exact answers without a wish that ranks them. Raises UsageError.
        """
        reranker = None
        if form != "none":
            model = resources.require_model("focus")
            reranker = create_hit_reranker(model, "pointwise" if form == "needed" else form, k)
        sorter = CandidateSorter.build(resources, sort, k, fusion)
        widened = constants == "widened"
        if paper:
            return cls(
                resources.snapshot,
                TripletsWriter.build(resources.model),
                PaperSubstitution(resources.snapshot, relations, as_printed=lines == "printed"),
                sorter,
                reranker,
                tries=1,
                recipe=recipe,
            )
        linker = create_entity_linker(resources, entities, "focus")
        relation_linker = create_relation_linker(resources, aliases)
        documents = DocumentFiller.build(
            resources, linker, sources, retriever, reader, passages, values, aliases, entities
        )
        preparer = TriplePreparer.build(resources, linker, relation_linker, relations, widened)
        return cls(
            resources.snapshot,
            TriplesWriter.build(resources.model, relation_linker, samples) if resources.model else None,
            SubstitutionEngine(resources.snapshot, preparer, documents, k if widened else None),
            sorter,
            reranker,
            tries,
            recipe,
            ranks_alike=form in {"pointwise", "listwise"},
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the ranked answers with what each meets and misses. Raises UsageError, ModelError, RemoteError."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        graphs = self._graphs(question)
        answers = AnswerList(by_model=self.reranker is not None)
        try:
            # Step 1 (Algorithm 1, line 1): the question as typed triples.
            interpretations = self.parse(question, graphs, record)
            # Step 2 (line 2; Algorithms 2 and 3): the candidates that substitution leaves.
            exact = self.solve_exactly(graphs, interpretations, question, record)
            answers.solutions = self.solve(graphs, interpretations, question, record, exact)
            self._rank(answers, question, record)
            if exact and answers.solutions is not exact and not answers.values():
                # Neither the graphs nor the documents have an answer.
                answers = AnswerList(by_model=self.reranker is not None, solutions=exact)
                self._rank(answers, question, record)
        except BudgetExceeded as error:
            record_stop(record, error)
        return answers.to_answer(record, self.recipe)

    def _rank(self, answers: AnswerList, question: Question, record: TrailRecorder) -> None:
        """Add the answers of all solutions. Raises ModelError, RemoteError."""
        for solution in answers.solutions:
            if self._add_values_read(solution, question, record, answers):
                continue
            # Step 3 (line 3): candidates sorted by vector, and filled up to k_max.
            candidates = self.sort(solution, question, record)
            # Step 4 (line 4): the first k_max reordered by the model.
            reranked = candidates if self._is_alike(solution) else self.rerank(question, candidates, record)
            answers.add(solution, candidates, self._explain(solution, reranked, question, record))

    def parse(
        self, question: Question, graphs: Sequence[PropertyGraph], record: TrailRecorder
    ) -> list[TypedChain]:
        """Return the interpretations of a question, best first; the one that it comes with, if it comes with triples.

        Raises UsageError, ModelError, RemoteError.
        """
        if self.writer is None:
            return parse_given_triples(question, record, graphs)
        return self.writer.write(question, graphs, record)[: self.tries]

    def solve(
        self,
        graphs: Sequence[PropertyGraph],
        interpretations: Sequence[TypedChain],
        question: Question,
        record: TrailRecorder,
        exact: list[Solution],
    ) -> list[Solution]:
        """Return the solutions of a question: the ``exact`` ones where a graph has all its names; else, or where they
        have no answers and documents may tell what the graph lacks, what near names and documents give.

        Raises UsageError, ModelError, RemoteError.
        """
        documents = self.engine.documents
        can_read = documents is not None and documents.reads_texts
        if exact and not (can_read and all(solution.substitution.is_empty for solution in exact)):
            return exact
        others = self.engine.solve(graphs, interpretations, question, record)
        if exact and not any(solution.values_read or solution.may_be_read for solution in others):
            return exact
        return others

    def solve_exactly(
        self,
        graphs: Sequence[PropertyGraph],
        interpretations: Sequence[TypedChain],
        question: Question,
        record: TrailRecorder,
    ) -> list[Solution]:
        """Return the solutions in the graphs that have all names of a question; where none has, the answers in those
        that confirmed links join. Raises UsageError."""
        if not self.is_exact:
            return []
        exact = find_exact_answers(graphs, interpretations, question, record)
        if not exact:
            joined = join_linked(self.snapshot, graphs)
            linked = find_exact_answers(joined, interpretations, question, record) if joined else []
            exact = [each for each in linked if len(each.rows)]
        return list(map(Solution.of_exact_answers, exact))

    @property
    def is_exact(self) -> bool:
        """Whether exact answers are looked for: not by the paper's form, nor where any relation is followed or
        constants are widened."""
        return (
            isinstance(self.engine, SubstitutionEngine)
            and self.engine.preparer.matcher.relations == "typed"
            and self.engine.widen_to is None
        )

    def sort(self, solution: Solution, question: Question, record: TrailRecorder) -> SortedCandidates:
        """Return the candidates of a solution in order. Exact answers that nothing is to rank are all alike: they are
        not embedded, and nothing fills the list up. Where there are none, near misses are listed.

        Raises ModelError, RemoteError.
        """
        if solution.exact is not None and self.reranker is None and not solution.prepared.soft_words:
            return list_exact_answers(solution.exact, self.sorter.k_max)
        return self.sorter.sort(solution, question, record)

    def _is_alike(self, solution: Solution) -> bool:
        """Return whether a solution is an exact set whose members are not to be ranked."""
        return solution.exact is not None and not self.ranks_alike and not solution.prepared.soft_words

    def rerank(
        self, question: Question, candidates: SortedCandidates, record: TrailRecorder
    ) -> SortedCandidates:
        """Return the candidates in the model's order; those that meet the constraints stay above the others.

        Raises ModelError.
        """
        if self.reranker is None or not candidates.hits:
            return candidates
        before = len(record.steps)
        hits = self.reranker.rerank(question.text, candidates.hits, record, matching=candidates.matching_hits)
        ranked_by = {
            id: f"model {score:g}"
            for step in record.steps[before:]
            if isinstance(step, RerankStep)
            for id, score in (step.scores or {}).items()
            if score is not None
        }
        return replace(
            candidates,
            hits=hits,
            ranked_by={**candidates.ranked_by, **ranked_by},
            has_model_scores=bool(ranked_by),
        )

    def why_not(self, question: Question, name: str, linker: EntityLinker) -> list[Exclusion]:
        """Return for each node that ``name`` may stand for why it is no answer, by the interpretation and in the
        graphs that answer the question. Raises UsageError, and NotFound if none of these graphs has a node of that
        name."""
        record = TrailRecorder()
        graphs = self._graphs(question)
        exclusions, missing = list[Exclusion](), list[NotFound]()
        interpretations = self.parse(question, graphs, record)
        exact = self.solve_exactly(graphs, interpretations, question, record)
        for solution in exact or self.solve(graphs, interpretations, question, record, exact):
            if not solution.is_filtered:
                continue
            try:
                exclusions += explain_exclusions(self.snapshot, solution, linker, question, name, record)
            except NotFound as error:
                missing.append(error)
        if not exclusions and missing:
            raise missing[0]
        return exclusions

    def explain(self, question: Question) -> list[ExactReading]:
        """Return what the typed triples of a question mean in each graph that may answer it. Raises UsageError."""
        graphs = self._graphs(question)
        parse_given_triples(question, TrailRecorder(), graphs)  # refuses what says nothing
        return explain_readings(graphs, question)

    def _graphs(self, question: Question) -> list[PropertyGraph]:
        wanted = question.scope.graphs
        names = [name for name in self.snapshot.graphs() if wanted is None or name in wanted]
        linked: list[PropertyGraph] = []
        for name in wanted or ():
            if AND in name:
                linked += join_linked(self.snapshot, list(map(self.snapshot.graph, name.split(AND))))
        if not names and not linked:
            raise UsageError(
                "'focus' answers from knowledge graphs and there is none here",
                "Add one: clew graph add FILE; or ask the documents: --method kgp",
            )
        return [*map(self.snapshot.graph, names), *linked]

    def _add_values_read(
        self, solution: Solution, question: Question, record: TrailRecorder, answers: AnswerList
    ) -> bool:
        """Add the answers that documents give where no graph leads to the target; return whether there are any."""
        if self.engine.documents is None or not solution.may_be_read:
            return False
        known = known_values(
            self.snapshot, solution.graph, solution.kept_pattern, solution.substitution.candidates
        )
        known |= solution.values_read
        values = self.engine.documents.read_target(solution.prepared, known, question, record)
        for value, checks in values:
            answers.add_read(value, checks)
        return bool(values and answers.read)

    def _explain(
        self, solution: Solution, candidates: SortedCandidates, question: Question, record: TrailRecorder
    ) -> list[RankedAnswer]:
        """Return the candidates as answers, each with the constraints that it meets and misses."""
        if not candidates.hits:
            return []
        rows = solution.graph.rows([hit.node.id for hit in candidates.hits])
        # If nothing restricts the target, its candidates are no answers.
        all_matching = candidates.matching.rows[~solution.is_wider(candidates.matching.rows)]
        matching = set(all_matching.tolist()) if solution.has_answers else set()
        meets_everything = solution.meets_everything
        explanation = solution.explain(rows)
        if solution.exact is not None:
            solution.exact.look_up_evidence(self.snapshot, rows[: question.evidence_for].tolist())
        ranking = [
            RankedAnswer(
                hit.node.name,
                hit,
                row in matching and meets_everything,
                solution.checks(
                    explanation,
                    self.snapshot,
                    place,
                    meets_all=row in matching,
                    evidence=place < question.evidence_for,
                ),
                candidates.ranked_by[hit.node.id],
                is_exact=solution.exact is not None,
                meets_rest=row in matching and not meets_everything,
            )
            for place, (hit, row) in enumerate(zip(candidates.hits, rows.tolist(), strict=True))
        ]
        return self._add_mentions(solution, candidates, ranking, question, record)

    def _add_mentions(
        self,
        solution: Solution,
        candidates: SortedCandidates,
        ranking: list[RankedAnswer],
        question: Question,
        record: TrailRecorder,
    ) -> list[RankedAnswer]:
        """Return the answers with what documents mention of the preferences."""
        soft = solution.prepared.soft_texts
        if self.engine.documents is None or not soft:
            return ranking
        ranking, shares = self.engine.documents.find_mentions(ranking, soft, question, record)
        if candidates.has_model_scores:
            return ranking
        return [
            replace(answer, hit=replace(answer.hit, score=answer.hit.score + PREFERENCE_WEIGHT * share))
            for answer, share in zip(ranking, shares, strict=True)
        ]
