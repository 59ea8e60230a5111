"""Knowledge Graph Prompting (Wang et al., AAAI 2024): walk a graph of passages towards the answer.

:meth:`KGP.answer` is the method of Supplementary 8.3. A question about structure ("what does the table on page 4
say") is answered from the pages, tables and sections that it names. Any other question is answered by a walk
(:meth:`KGP.walk`): from seed passages to the neighbours that best match the evidence still missing
(Eq. 1, :mod:`clew.methods.kgp.guides`).

``kgp-paper`` walks by Algorithm 1 as it is printed (:mod:`clew.methods.kgp.algorithm1`); only the seeds that it loses
for want of a neighbour are appended to its queue. ``kgp`` extends it:

- The most promising path is continued next, to up to four passages (:mod:`clew.methods.kgp.best_first`), and every
  path that was visited counts, not only what is left in the queue.
- ``prior`` makes the graph a preference instead of a fence: any passage may be visited next, and the match of a
  neighbour is raised by ``prior`` times the strength of the edge. ``None`` is the paper's fence.
- ``sharpness`` turns scores into probabilities, ``softmax(sharpness * score)`` over the candidates of a step. The
  score of a path is their product, so that a passage ranks by the likeliest path to it; where no continuation stands
  out, as in a question that one passage answers, the order of the seeds stays. With ``None`` the score of a path is
  the product of its steps' matches.
- With a ``prior``, the passages that come out are spread over pages: the score of each is multiplied by ``same_page``
  for every better one of its page. The rows of one table match a question alike, and else fill the evidence of a
  question whose answer lies in two places. A reader without a model is given them as they are.
- A language model is asked for no evidence on the way. It reads the best passages at once; what it says is still
  missing is the next evidence, and the walk goes on from it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np

from clew.core.arrays import Floats, Mask, Rows
from clew.core.component import AUTO, AtLeast, Recipe, Resources, component
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Graph, Reader, Retriever, Snapshot, Trail
from clew.core.trail import ExpandedPath, ExpandStep, SeedStep, TrailRecorder, explore_retriever
from clew.core.types import RETRIEVED_KINDS, Answer, Hit, Question
from clew.methods.answering import CUT_SHORT, computed_answer, read_answer, record_stop
from clew.methods.kgp.algorithm1 import Path, traverse
from clew.methods.kgp.best_first import BestFirst
from clew.methods.kgp.guides import (
    Guide,
    NeighbourScores,
    OpenCandidates,
    Opinion,
    ResidualGuide,
    create_guide,
)
from clew.methods.kgp.trained import create_trained_guide, fits_trained_guide
from clew.methods.readers.extractive import ContentsReader
from clew.questions.outline_reading import create_outline_reader
from clew.retrieve.contextual import ContextualSearch
from clew.retrieve.ranking import as_hits
from clew.retrieve.structure.lookup import StructureReader, StructureResult, StructureSearch

#: The paper's own setting (Supplementary 8.2). The counter of Algorithm 1 counts the seeds, so it has to reach 40 for
#: the "30 reasoning paths" of 10 seeds with 3 continuations each (decision 3).
_PAPER_SETTING = (
    "graph=keywords, guide=question, seeding=tfidf, reader=auto, prior=off, sharpness=off, context=paths, "
    "search=paper, hops=2, budget=40"
)


@component(
    "kgp(graph=mentions, guide=auto, seeding=search, reader=auto)",
    kind="recipe",
    summary="Knowledge Graph Prompting: walk a graph of passages from seeds to evidence",
    paper="Wang et al., AAAI 2024",
)
@component(
    f"kgp-paper({_PAPER_SETTING})",
    kind="recipe",
    summary="Algorithm 1 as the paper has it: 10 TF-IDF seeds, 2 hops, branch 3, 30 paths, only along edges; "
    "guide 'question' is the paper's 'without LM'",
    paper="Wang et al., AAAI 2024",
)
@component(
    "kgp(graph=mentions, guide=auto, seeding=search, reader=auto)",
    kind="retriever",
    summary="the passages of Knowledge Graph Prompting's walk, likeliest first",
    paper="Wang et al., AAAI 2024",
)
@component(
    f"kgp-paper({_PAPER_SETTING})",
    kind="retriever",
    summary="the same walk as the paper has it",
    paper="Wang et al., AAAI 2024",
)
@dataclass(frozen=True, slots=True)
class KGP:
    """The whole method.

    The walk starts from ``seeds`` passages, continues paths with at most ``branch`` neighbours each up to ``hops``
    passages, and reads at most ``budget`` passages (K). ``search`` is its order: Algorithm 1, or best first with
    ``width`` and ``worth`` as in :class:`clew.methods.kgp.best_first.BestFirst`. With a ``prior``, the guide may also
    propose the ``beyond`` best passages that no edge leads to. ``relative`` divides the scores of the seeds by the
    best one; False if the seeding scores as the guide does.

    ``structures`` finds what a question about structure names; ``contents``, if given, reads that in place of
    ``reader``. ``same_page`` was chosen on 25 questions whose evidence lies on two pages of filings
    (``benchmarks/pages.py --questions places``). ``context`` is what the reader is given: ``paths``, each as its
    passages together (Listing 4); the passages of these paths, each once (``visited``); or the best passages of all
    (``passages``): to a language model ``shown`` of them. Where that says what no passage states, the walk goes on
    from there, at most ``rounds`` times.
    """

    snapshot: Snapshot
    seeding: Retriever
    graph: Graph
    guide: Guide
    reader: Reader
    structures: StructureSearch | None = None
    contents: Reader | None = None
    seeds: int = 10
    branch: int = 3
    hops: int = 4
    budget: int = 30
    prior: float | None = None
    beyond: int = 100
    sharpness: float | None = None
    relative: bool = True
    search: Literal["best-first", "paper"] = "best-first"
    width: int = 4
    worth: float = 0.02
    same_page: float = 0.5
    context: Literal["paths", "visited", "passages"] = "passages"
    shown: int = 12
    rounds: int = 2
    recipe: str = "kgp"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: Recipe,
        graph: Recipe,
        guide: Recipe,
        seeding: Recipe,
        reader: Recipe,
        structures: bool = True,
        seeds: int = 10,
        branch: int = 3,
        hops: int = 4,
        budget: int = 30,
        prior: float | None = 1.0,
        beyond: int = 100,
        sharpness: float | None = 8,
        search: Literal["best-first", "paper"] = "best-first",
        width: int = 4,
        worth: float = 0.02,
        context: Literal["paths", "passages"] = "passages",
        shown: int = 12,
        rounds: Annotated[int, AtLeast(0)] = 2,
    ) -> KGP:
        """Return the method with the parts of a recipe. Raises UsageError, also for ``kgp-paper`` over a base
        whose passages are not sentences."""
        if recipe.name == "kgp-paper":
            _require_sentences(resources.snapshot)
        chosen, recipe = resources.choose_reader(recipe, "paper" if recipe.name == "kgp-paper" else "cited")
        seeds_from = resources.local_retriever(seeding, recipe.name, "seeding")
        joins = resources.graph(graph)
        if guide == AUTO:
            ranks_by_probability = sharpness is not None and fits_trained_guide(resources, joins)
            guide = Recipe("trained" if ranks_by_probability else "residual")
            recipe = recipe.with_options(guide=guide)
        if guide.name == "trained":
            ranking: Guide = create_trained_guide(resources, seeds_from, joins)
        else:
            ranking = create_guide(guide, resources, seeds_from)
        open_search = getattr(ranking, "residual", ranking)
        finder = None
        if structures:
            model = resources.model
            finder = StructureSearch(
                resources.snapshot,
                create_outline_reader(resources.tools.plan_judge()),
                None if model is None else StructureReader(model, load_prompt("structure-query")),
                # In the paper a model decides of every question whether it is about structure (Section 4).
                always=recipe.name == "kgp-paper",
            )
        # Only the paper's reader reads paths (Listing 4); any other is given the passages of the paths.
        paths: Literal["paths", "visited"] = (
            "paths" if recipe.option("reader") == Recipe("paper") else "visited"
        )
        return cls(
            resources.snapshot,
            seeds_from,
            joins,
            ranking,
            chosen,
            structures=finder,
            contents=None if resources.model else ContentsReader(),
            seeds=seeds,
            branch=branch,
            hops=hops,
            budget=budget,
            prior=prior,
            beyond=beyond,
            sharpness=sharpness,
            relative=not (isinstance(open_search, ResidualGuide) and open_search.search is seeds_from),
            search=search,
            width=width,
            worth=worth,
            context=paths if context == "paths" else "passages",
            shown=shown,
            rounds=rounds,
            recipe=str(recipe),
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer to a question about structure or content (Supplementary 8.3)."""
        recorder = TrailRecorder.forwarding_to(trail)
        named = self._find_structures(question, recorder)
        if named.text:
            answer = computed_answer(
                named.text, named.hits, recorder, self.recipe, abstained=named.is_missing
            )
            return replace(
                answer, plan=named.plan, confidence=None if named.is_missing else named.probability
            )
        if named:
            answer = read_answer(self.contents or self.reader, question, named.hits, recorder, self.recipe)
            return replace(answer, plan=named.plan)
        seeds = self._find_seeds(question, self.budget, recorder)
        paths = self._walk(question, seeds, recorder)
        if self.context == "passages":
            # Without a model the reader chooses among the passages itself, and reads several of a page better.
            has_model = self.contents is None
            count = min(self.shown, self.budget) if has_model else self.budget
            best = self._rank_passages(paths, seeds, count, spread=has_model)
            answer = read_answer(self.reader, question, best, recorder, self.recipe)
            return self._read_on(question, answer, recorder)
        visited = self._visited_hits(paths)
        hits = visited if self.context == "visited" else self.path_hits(paths)
        return read_answer(self.reader, question, hits, recorder, self.recipe, visited)

    def _read_on(self, question: Question, answer: Answer, recorder: TrailRecorder) -> Answer:
        """Return the answer after what its reader says is missing was looked for, at most ``rounds`` times: the walk
        goes on from that text, the next evidence of Eq. 1, and what is new is read behind what was quoted. An answer
        stays where more passages give none."""
        read = list(answer.context)
        for _ in range(self.rounds):
            if not answer.missing:
                break
            if recorder.should_stop():
                return replace(answer, text=CUT_SHORT) if answer.abstained else answer
            wanted = replace(question, text=answer.missing)
            seeds = self._find_seeds(wanted, self.shown + len(read), recorder)
            near = self._rank_passages(
                self._walk(wanted, seeds, recorder), seeds, self.shown + len(read), spread=True
            )
            quoted, known = answer.evidence[: self.shown - 1], {hit.node.id for hit in read}
            new = [hit for hit in near if hit.node.id not in known][: self.shown - len(quoted)]
            if not new:
                break
            read += new
            again = read_answer(self.reader, question, [*quoted, *new], recorder, self.recipe, read)
            if again.abstained and not answer.abstained:
                again = replace(answer, trail=again.trail, usage=again.usage, missing="")
            answer = again
        return answer

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best passages, each with the path to it: the visited ones, and with a ``prior`` also those
        that only the seeding found."""
        seeds = self._find_seeds(question, k, None)
        return self._rank_passages(self._walk(question, seeds, None), seeds, k, spread=self.prior is not None)

    def walk(self, question: Question, recorder: TrailRecorder) -> list[Path]:
        """Return the paths of the walk that were not extended, in the order in which they were found."""
        return self._walk(question, self._find_seeds(question, self.budget, recorder), recorder)

    def _find_structures(self, question: Question, recorder: TrailRecorder) -> StructureResult:
        try:
            return self.structures.find(question, recorder) if self.structures else StructureResult()
        except BudgetExceeded as error:
            record_stop(recorder, error)
            return StructureResult()

    def _walk(self, question: Question, seeds: Sequence[Path], recorder: TrailRecorder | None) -> list[Path]:
        """Run the search from ``seeds``. Without a recorder, a spent budget is raised."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        seeds = seeds[: min(self.seeds, self.budget)]

        def expand(paths: Sequence[Path]) -> list[list[Path]] | None:
            if recorder is not None and recorder.should_stop():
                return None
            try:
                return [after for _, after in self._expand(question, paths, allowed, recorder)]
            except BudgetExceeded as error:
                if recorder is None:
                    raise
                record_stop(recorder, error)
                return None

        if self.search == "paper":

            def graph_traversal(path: Path, near: Rows) -> list[Path] | None:
                expansions = expand([path])
                return None if expansions is None else expansions[0]

            neighbours = partial(self._neighbours, allowed=allowed)
            paths = traverse(seeds, neighbours, graph_traversal, self.budget, self.hops)
            # The algorithm loses a seed without neighbours; it was retrieved, and it may be all there is.
            started = {path.rows[0] for path in paths}
            return paths + [seed for seed in seeds if seed.rows[0] not in started]
        search = BestFirst(self.budget, self.hops, self.width, self.worth)
        return search.search(
            seeds, expand, lambda paths: self.guide.missing(question, [p.rows for p in paths])
        )

    def _find_seeds(self, question: Question, k: int, recorder: TrailRecorder | None) -> list[Path]:
        """Return paths of one passage, best first: the seeds of the walk, and further hits of the seeding (line
        1)."""
        started = time.perf_counter()
        count = min(self.seeds, self.budget)
        depth = count if self.prior is None else max(count, k, self.beyond)
        if isinstance(self.seeding, ContextualSearch):
            rows, scores = self.seeding.rank_rows(question, depth)
            seeds = () if recorder is None else tuple(as_hits(self.snapshot, rows[:count], scores[:count]))
        else:
            hits = explore_retriever(self.seeding, question, depth, recorder or TrailRecorder())
            rows = self.snapshot.rows([hit.node.id for hit in hits])
            scores, seeds = np.array([hit.score for hit in hits]), tuple(hits[:count])
        if self.relative and len(scores) and scores[0] > 0:
            scores = scores / scores[0]
        if recorder is not None:
            recorder.add(SeedStep(len(seeds), hits=seeds, seconds=time.perf_counter() - started))
        return [
            Path((row,), (score,))
            for row, score in zip(rows.tolist(), self._to_probabilities(scores).tolist(), strict=True)
        ]

    def _to_probabilities(self, scores: Floats) -> Floats:
        """Return the softmax of scores; without ``sharpness``, the scores."""
        if self.sharpness is None or not len(scores):
            return scores
        weights = np.exp(self.sharpness * (scores - scores.max()))
        probabilities: Floats = weights / weights.sum()
        return probabilities

    def _expand(
        self, question: Question, paths: Sequence[Path], allowed: Mask, trail: Trail | None
    ) -> list[tuple[Path, list[Path]]]:
        """Return the ``branch`` best continuations of each path, best first."""
        started = time.perf_counter()
        neighbours = [self._neighbours(path.rows[-1], allowed) for path in paths]
        open_candidates = OpenCandidates(0 if self.prior is None else self.beyond, allowed)
        ranked = self.guide.score_neighbours(
            question, [path.rows for path in paths], neighbours, open_candidates
        )
        opinions: Sequence[Opinion | None] = ranked.opinions or [None] * len(paths)
        expansions = [
            (path, self._continue(path, rows, scores, near, opinion))
            for path, (rows, scores), near, opinion in zip(
                paths, ranked.scores, neighbours, opinions, strict=True
            )
        ]
        if trail is not None:
            trail.add(self._expand_step(expansions, ranked, time.perf_counter() - started))
        return expansions

    def _neighbours(self, row: int, allowed: Mask) -> Rows:
        rows = self.graph.neighbours(row)
        return rows[allowed[rows]]

    def _continue(
        self, path: Path, rows: Rows, scores: Floats, neighbours: Rows, opinion: Opinion | None
    ) -> list[Path]:
        """Return the best continuations of a path among ``rows``, which have ``scores``; ``neighbours`` are those
        that an edge leads to."""
        linked = np.isin(rows, neighbours)
        strengths = np.zeros(len(rows))
        if self.prior is not None:
            strengths[linked] = self.graph.strengths(path.rows[-1], rows[linked])
            scores = scores + self.prior * strengths
        unvisited = ~np.isin(rows, path.rows)
        probabilities = self._to_probabilities(scores[unvisited])
        if opinion is not None and self.sharpness is not None and unvisited.any():
            second = opinion.calibration.guide * opinion.scores + opinion.calibration.edge * strengths
            weights = np.exp(second[unvisited] - second[unvisited].max())
            probabilities = (1 - opinion.trust) * probabilities + opinion.trust * weights / weights.sum()
        linked_rows = set(neighbours.tolist())
        return [
            Path(
                (*path.rows, row),
                (*path.scores, path.score * score),
                (*path.follows_edge, row in linked_rows),
            )
            for row, score in best_rows(self.snapshot, rows[unvisited], probabilities, self.branch)
        ]

    def _expand_step(
        self, expansions: Sequence[tuple[Path, list[Path]]], ranked: NeighbourScores, seconds: float
    ) -> ExpandStep:
        ids = [self.snapshot.ids(np.array(path.rows)) for path, _ in expansions]
        expected: Sequence[str | None] = ranked.expected or [None] * len(expansions)
        paths = tuple(
            ExpandedPath(tuple(path), len(rows), len(continuations), text)
            for path, (rows, _), (_, continuations), text in zip(
                ids, ranked.scores, expansions, expected, strict=True
            )
        )
        hits = self._to_hits([(path.rows[-1], path) for _, group in expansions for path in group])
        hop = len(expansions[0][0].rows) + 1
        return ExpandStep(hop, self.graph.name, paths, hits=tuple(hits), usage=ranked.usage, seconds=seconds)

    # Paths as evidence

    def path_hits(self, paths: Iterable[Path]) -> list[Hit]:
        """Return one hit per path: its last passage, reached by the others."""
        return self._to_hits([(path.rows[-1], path) for path in paths])

    def _visited_hits(self, paths: Iterable[Path]) -> list[Hit]:
        """Return the passages of paths, each once, in the order of the paths."""
        first_path: dict[int, Path] = {}
        for path in paths:
            for prefix in path.prefixes():
                first_path.setdefault(prefix.rows[-1], prefix)
        return self._to_hits(list(first_path.items()))

    def _rank_passages(
        self, paths: Sequence[Path], seeds: Sequence[Path], k: int, *, spread: bool
    ) -> list[Hit]:
        """Return the ``k`` best passages, best first, each once with the best path that leads to it; ``spread`` over
        pages if that is wanted."""
        best_path: dict[int, Path] = {}
        for path in (*paths, *(seeds if self.prior is not None else ())):
            for prefix in path.prefixes():
                row = prefix.rows[-1]
                if row not in best_path or prefix.score > best_path[row].score:
                    best_path[row] = prefix
        rows = np.array(list(best_path), dtype=np.int64)
        scores = np.array([path.score for path in best_path.values()])
        ranked = best_rows(self.snapshot, rows, scores, len(rows) if spread else k)
        if spread:
            ranked = self._spread_over_pages(ranked)[:k]
        hits = self._to_hits([(row, best_path[row]) for row, _ in ranked])
        return (
            [replace(hit, score=score) for hit, (_, score) in zip(hits, ranked, strict=True)]
            if spread
            else hits
        )

    def _spread_over_pages(self, ranked: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Return rows and scores, best first, in the order of the scores that ``same_page`` leaves them."""
        rows = np.array([row for row, _ in ranked], dtype=np.int64)
        document, page = self.snapshot.column("document")[rows], self.snapshot.column("page")[rows]
        seen: Counter[tuple[int, int]] = Counter()
        scores = []
        for (_, score), place in zip(ranked, zip(document.tolist(), page.tolist(), strict=True), strict=True):
            scores.append(score * self.same_page ** seen[place])
            seen[place] += place[1] > 0
        return [(int(rows[n]), scores[n]) for n in np.argsort(-np.array(scores), kind="stable").tolist()]

    def _to_hits(self, passages: Sequence[tuple[int, Path]]) -> list[Hit]:
        """Return passages, each a row with the path that leads to it, as hits."""
        nodes = self.snapshot.nodes(np.array([row for row, _ in passages], dtype=np.int64))
        return [
            Hit(node, path.score, tuple(self.snapshot.ids(np.array(path.rows))), self._explain_edges(path))
            for node, (_, path) in zip(nodes, passages, strict=True)
        ]

    def _explain_edges(self, path: Path) -> tuple[str, ...]:
        pairs = zip(path.rows, path.rows[1:], path.follows_edge, strict=False)
        return tuple(
            self.graph.explain_edge(source, target) if linked else "no edge: best match"
            for source, target, linked in pairs
        )


def best_rows(snapshot: Snapshot, rows: Rows, scores: Floats, k: int) -> list[tuple[int, float]]:
    """Return the ``k`` best rows and scores, best first, ties by node id; scores rounded to 9 decimals."""
    scores = scores.round(9)
    if len(rows) > k:
        # All rows that tie with the k-th stay in, so that the result does not depend on row order.
        keep = scores >= np.partition(scores, -k)[-k]
        rows, scores = rows[keep], scores[keep]
    ranked = zip((-scores).tolist(), snapshot.ids(rows), rows.tolist(), strict=True)
    return [(row, -negative) for negative, _, row in sorted(ranked)[:k]]


def _require_sentences(snapshot: Snapshot) -> None:
    parsers = sorted(document.parser for document in snapshot.documents())
    if others := [parser for parser in parsers if "passages=sentence" not in parser]:
        raise UsageError(
            f"'kgp-paper' needs sentences as passages; this base has documents of {others[0]}",
            "Make a base for it: clew add FOLDER --passages sentence --kb OTHER",
        )
