"""Knowledge Graph Prompting (Wang et al., AAAI 2024): walk a graph of passages towards the answer.

:meth:`KGP.answer` is the method of Supplementary 8.3. A question about structure ("what does the table on page 4
say") is answered from the pages, tables and sections that it names. Any other question is answered by Algorithm 1
(:meth:`KGP.walk`): from seed passages, breadth first, to the neighbours that best match the evidence still missing
(Eq. 1, :mod:`clew.methods.kgp.guides`).

Deviations from Algorithm 1, each on purpose:

- The algorithm returns what is left in the queue, so a path that was dequeued and had no neighbour is lost. Here
  every path that was visited is returned: those that were not extended, and with them all their prefixes.
- The algorithm stops at K + 1 passages. Here K (``budget``) bounds the paths that are returned, which 8.2 sets to 30
  for every method ("10 passages, and 3 each, which totally forms 30 reasoning paths").
- A whole level of the queue is expanded at a time, as far as the budget reaches, so that a language model is asked
  about many paths in one batch. The visited paths are the same.
- ``prior`` makes the graph a preference instead of a fence: any passage may be visited next, and the match of a
  neighbour is raised by ``prior`` times the strength of the edge. ``None`` is the paper's fence.
- ``sharpness`` turns scores into probabilities, ``softmax(sharpness * score)`` over the candidates of a step. The
  score of a path is their product, so that a passage ranks by the likeliest path to it; where no continuation stands
  out, as in a question that one passage answers, the order of the seeds stays. With ``None`` the score of a path is
  the product of its steps' matches.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from clew.core.component import Recipe, Resources, component
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Graph, Reader, Retriever, Snapshot, Trail
from clew.core.trail import ExpandedPath, ExpandStep, SeedStep, TrailRecorder, explore_retriever
from clew.core.types import RETRIEVED_KINDS, Answer, Hit, Question
from clew.methods.answering import computed_answer, read_answer, record_stop
from clew.methods.kgp.guides import Guide, NeighbourScores, OpenCandidates, ResidualGuide, create_guide
from clew.methods.readers.extractive import ContentsReader
from clew.retrieve.structure.lookup import StructureReader, StructureResult, StructureSearch

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows


class StructureFinder(Protocol):
    """Finds the pages, tables and sections that a question names."""

    def find(self, question: Question, trail: Trail) -> StructureResult:
        """Return what the question names, with an answer where that is computed; false if it asks about content."""
        ...


@dataclass(frozen=True, slots=True)
class Path:
    """A reasoning path: rows of passages, seed first, and whether an edge led to each after the first.

    ``scores`` has for every prefix the product of its steps' scores or probabilities; the score of the seed comes
    from the seeding.
    """

    rows: tuple[int, ...]
    scores: tuple[float, ...]
    follows_edge: tuple[bool, ...] = ()

    @property
    def score(self) -> float:
        """The score of the whole path."""
        return self.scores[-1]

    def prefixes(self) -> list[Path]:
        """Return the path cut after each of its passages; the last is itself."""
        return [
            Path(self.rows[:n], self.scores[:n], self.follows_edge[: n - 1])
            for n in range(1, len(self.rows) + 1)
        ]


#: The paper's own setting (Supplementary 8.2).
_PAPER_SETTING = (
    "graph=keywords, guide=question, seeding=tfidf, reader=auto, prior=off, sharpness=off, context=paths"
)


@component(
    "kgp(graph=mentions, guide=residual, seeding=search, reader=auto)",
    kind="recipe",
    summary="Knowledge Graph Prompting: walk a graph of passages from seeds to evidence",
    paper="Wang et al., AAAI 2024",
)
@component(
    f"kgp-paper({_PAPER_SETTING})",
    kind="recipe",
    summary="the same as the paper has it: 10 TF-IDF seeds, 2 hops, branch 3, 30 paths, only along edges; "
    "guide 'question' is the paper's 'without LM'",
    paper="Wang et al., AAAI 2024",
)
@component(
    "kgp(graph=mentions, guide=residual, seeding=search, reader=auto)",
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

    The walk starts from ``seeds`` passages, continues each path with at most ``branch`` neighbours up to ``hops``
    passages, and returns at most ``budget`` paths (K). With a ``prior``, the guide may also propose the ``beyond``
    best passages that no edge leads to. ``relative`` divides the scores of the seeds by the best one; False if the
    seeding scores as the guide does.

    ``structures`` finds what a question about structure names; ``contents``, if given, reads that in place of
    ``reader``. ``context`` is what the reader is given: ``paths``, each as its passages together (Listing 4); the
    passages of these paths, each once (``visited``); or the best passages of all (``passages``).
    """

    snapshot: Snapshot
    seeding: Retriever
    graph: Graph
    guide: Guide
    reader: Reader
    structures: StructureFinder | None = None
    contents: Reader | None = None
    seeds: int = 10
    branch: int = 3
    hops: int = 2
    budget: int = 30
    prior: float | None = None
    beyond: int = 100
    sharpness: float | None = None
    relative: bool = True
    context: Literal["paths", "visited", "passages"] = "passages"
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
        hops: int = 2,
        budget: int = 30,
        prior: float | None = 1.0,
        beyond: int = 100,
        sharpness: float | None = 8,
        context: Literal["paths", "passages"] = "passages",
    ) -> KGP:
        """Return the method with the parts of a recipe. Raises UsageError, also for ``kgp-paper`` over a base
        whose passages are not sentences."""
        if recipe.name == "kgp-paper":
            _require_sentences(resources.snapshot)
        chosen, recipe = resources.choose_reader(recipe, "paper" if recipe.name == "kgp-paper" else "cited")
        seeds_from = resources.local_retriever(seeding, recipe.name, "seeding")
        ranking = create_guide(guide, resources, seeds_from)
        finder = None
        if structures:
            model = resources.model
            finder = StructureSearch(
                resources.snapshot,
                None if model is None else StructureReader(model, load_prompt("structure")),
            )
        # Only the paper's reader reads paths (Listing 4); any other is given the passages of the paths.
        paths: Literal["paths", "visited"] = (
            "paths" if recipe.option("reader") == Recipe("paper") else "visited"
        )
        return cls(
            resources.snapshot,
            seeds_from,
            resources.graph(graph),
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
            relative=not (isinstance(ranking, ResidualGuide) and ranking.search is seeds_from),
            context=paths if context == "paths" else "passages",
            recipe=str(recipe),
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer to a question about structure or content (Supplementary 8.3)."""
        recorder = TrailRecorder.forwarding_to(trail)
        named = self._find_structures(question, recorder)
        if named.text:
            return computed_answer(named.text, named.hits, recorder, self.recipe, abstained=named.is_missing)
        if named:
            return read_answer(self.contents or self.reader, question, named.hits, recorder, self.recipe)
        seeds = self._find_seeds(question, self.budget, recorder)
        paths = self._walk(question, seeds, recorder)
        if self.context == "passages":
            best = self._rank_passages(paths, seeds, self.budget)
            return read_answer(self.reader, question, best, recorder, self.recipe)
        visited = self._visited_hits(paths)
        hits = visited if self.context == "visited" else self.path_hits(paths)
        return read_answer(self.reader, question, hits, recorder, self.recipe, visited)

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best passages, each with the path to it: the visited ones, and with a ``prior`` also those
        that only the seeding found."""
        seeds = self._find_seeds(question, k, None)
        return self._rank_passages(self._walk(question, seeds, None), seeds, k)

    def walk(self, question: Question, recorder: TrailRecorder) -> list[Path]:
        """Return every path of Algorithm 1 that was visited and not extended, in the order of the queue."""
        return self._walk(question, self._find_seeds(question, self.budget, recorder), recorder)

    def _find_structures(self, question: Question, recorder: TrailRecorder) -> StructureResult:
        try:
            return self.structures.find(question, recorder) if self.structures else StructureResult()
        except BudgetExceeded as error:
            record_stop(recorder, error)
            return StructureResult()

    # Algorithm 1

    def _walk(self, question: Question, seeds: Sequence[Path], recorder: TrailRecorder | None) -> list[Path]:
        """Run Algorithm 1 from ``seeds``. Without a recorder, a spent budget is raised."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        queue = list(seeds[: min(self.seeds, self.budget)])  # line 2
        ended: list[Path] = []
        while queue and len(queue[0].rows) < self.hops:  # line 5
            # One continuation each makes paths longer, not more: seeds that fill the budget are extended too.
            if self.branch > 1 and len(queue) + len(ended) >= self.budget:
                break
            if recorder is not None and recorder.should_stop():
                break
            batch, queue = self._split_queue(queue, len(ended))  # line 6, for many paths at once
            room = self.budget - len(queue) - len(ended) - len(batch)
            try:
                expansions = self._expand(question, batch, allowed, recorder)  # line 7
            except BudgetExceeded as error:
                if recorder is None:
                    raise
                record_stop(recorder, error)
                return (ended + batch + queue)[: self.budget]
            for path, continuations in expansions:  # lines 8 to 13
                continuations = continuations[: room + 1]
                room -= max(len(continuations) - 1, 0)
                at_end = not continuations or len(continuations[0].rows) >= self.hops
                (ended if at_end else queue).extend(continuations or [path])
        return (ended + queue)[: self.budget]  # line 14

    def _find_seeds(self, question: Question, k: int, recorder: TrailRecorder | None) -> list[Path]:
        """Return paths of one passage, best first: the seeds of the walk, and further hits of the seeding (line
        1)."""
        started = time.perf_counter()
        count = min(self.seeds, self.budget)
        depth = count if self.prior is None else max(count, k, self.beyond)
        hits = explore_retriever(self.seeding, question, depth, recorder or TrailRecorder())
        rows = self.snapshot.rows([hit.node.id for hit in hits])
        scores = np.array([hit.score for hit in hits])
        if self.relative and len(hits) and scores[0] > 0:
            scores = scores / scores[0]
        if recorder is not None:
            seeds = tuple(hits[:count])
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

    def _split_queue(self, queue: list[Path], ended: int) -> tuple[list[Path], list[Path]]:
        """Split off the front of the queue: paths of one length, as many as the budget can extend."""
        same_length = next(
            (n for n, path in enumerate(queue) if len(path.rows) != len(queue[0].rows)), len(queue)
        )
        room = self.budget - ended - len(queue)
        size = same_length if self.branch == 1 else min(same_length, -(-room // (self.branch - 1)))
        return queue[:size], queue[size:]

    def _expand(
        self, question: Question, paths: Sequence[Path], allowed: Mask, trail: Trail | None
    ) -> list[tuple[Path, list[Path]]]:
        """Return the ``branch`` best continuations of each path, best first."""
        started = time.perf_counter()
        neighbours = [self._neighbours(path, allowed) for path in paths]
        open_candidates = OpenCandidates(0 if self.prior is None else self.beyond, allowed)
        ranked = self.guide.score_neighbours(
            question, [path.rows for path in paths], neighbours, open_candidates
        )
        expansions = [
            (path, self._continue(path, rows, scores, near))
            for path, (rows, scores), near in zip(paths, ranked.scores, neighbours, strict=True)
        ]
        if trail is not None:
            trail.add(self._expand_step(expansions, ranked, time.perf_counter() - started))
        return expansions

    def _neighbours(self, path: Path, allowed: Mask) -> Rows:
        rows = self.graph.neighbours(path.rows[-1])
        return rows[allowed[rows]]

    def _continue(self, path: Path, rows: Rows, scores: Floats, neighbours: Rows) -> list[Path]:
        """Return the best continuations of a path among ``rows``, which have ``scores``; ``neighbours`` are those
        that an edge leads to."""
        unvisited = ~np.isin(rows, path.rows)
        rows, scores = rows[unvisited], scores[unvisited]
        if self.prior is not None:
            linked = np.isin(rows, neighbours)
            scores = scores.copy()
            scores[linked] += self.prior * self.graph.strengths(path.rows[-1], rows[linked])
        linked_rows = set(neighbours.tolist())
        return [
            Path(
                (*path.rows, row),
                (*path.scores, path.score * score),
                (*path.follows_edge, row in linked_rows),
            )
            for row, score in best_rows(self.snapshot, rows, self._to_probabilities(scores), self.branch)
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

    def _rank_passages(self, paths: Sequence[Path], seeds: Sequence[Path], k: int) -> list[Hit]:
        """Return the ``k`` best passages, best first, each once with the best path that leads to it."""
        best_path: dict[int, Path] = {}
        for path in (*paths, *(seeds if self.prior is not None else ())):
            for prefix in path.prefixes():
                row = prefix.rows[-1]
                if row not in best_path or prefix.score > best_path[row].score:
                    best_path[row] = prefix
        rows = np.array(list(best_path), dtype=np.int64)
        scores = np.array([path.score for path in best_path.values()])
        return self._to_hits([(row, best_path[row]) for row, _ in best_rows(self.snapshot, rows, scores, k)])

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
