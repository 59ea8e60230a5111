"""Knowledge Graph Prompting (Wang et al., AAAI 2024): walk a graph of passages towards the answer.

A question about structure ("what does the table on page 4 say") is answered from the structure nodes it
names. Any other is answered by Algorithm 1: from seed passages, breadth first, to the neighbours that best
match the evidence still missing (:mod:`clew.methods.kgp.guides`).

Deviations from the printed algorithm (Supplementary 8.3), each on purpose:

- It returns what is left in the queue, so a path that was dequeued and had no neighbour is lost. Here every
  path that was visited comes back: those that were not extended, and with them all their prefixes.
- It stops at K + 1 passages. Here K (``budget``) bounds the paths that are returned, which is what 8.2 fixes
  at 30 for every method ("10 passages, and 3 each, which totally forms 30 reasoning paths").
- A whole level of the queue is expanded at a time, as far as the budget reaches, so that a language model is
  asked about many paths in one batch. The paths visited are those of the queue, one by one.
- ``prior``: the graph as a preference instead of a fence. Any passage may be visited next, and a neighbour's
  match is raised by ``prior`` times the strength of the edge. ``None`` is the paper's fence.
- ``sharpness``: scores become probabilities, ``softmax(sharpness * score)`` over what a step considered, and
  a path's score is their product, so that a passage ranks by the likeliest way to it. Where no continuation
  stands out, as in a question that one passage answers, the order of the seeds stays as it is. With ``None``
  a path's score is the product of its steps' matches.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from clew.core.component import Resources, component
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Graph, Reader, Retriever, Snapshot, Trail
from clew.core.recipe import Recipe
from clew.core.steps import ExpandedPath, ExpandStep, SeedStep
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import RETRIEVED_KINDS, Answer, Hit, Question
from clew.methods.answering import read_answer, record_stop
from clew.methods.kgp.guides import Guide, NeighbourScores, OpenCandidates, ResidualGuide, create_guide
from clew.methods.readers.extractive import ContentsReader
from clew.retrieve.structure.lookup import StructureReader, StructureSearch

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows


class StructureFinder(Protocol):
    """Recognises a question about structure."""

    def find(self, question: Question, trail: Trail) -> Sequence[Hit]:
        """Return the nodes that the question names, or nothing if it asks about content."""
        ...


@dataclass(frozen=True, slots=True)
class Path:
    """A reasoning path: rows of passages, seed first, and whether an edge led to each after the first.

    ``scores`` holds for every prefix how well it fits: the product of its steps' scores or probabilities.
    The seed's score is the seeding's.
    """

    rows: tuple[int, ...]
    scores: tuple[float, ...]
    follows_edge: tuple[bool, ...] = ()

    @property
    def score(self) -> float:
        """How well the whole path fits."""
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
    """The whole method. ``seeds``, ``branch``, ``hops`` and ``budget`` (K) count passages per path and paths.

    ``structures`` recognises questions about structure; ``contents``, where given, reads what they name in
    place of ``reader``. ``beyond`` is how many passages outside the neighbourhood a prior considers.
    ``relative`` says that a seed's score counts by its share of the best seed's; False where the seeding scores
    as the guide does. ``context`` says what the reader is given: ``paths``, of which each stands for its passages
    together (Listing 4); the passages of these paths, each once (``visited``); or the best passages of all.
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
        """Return the answer to a question about structure or content."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        hits = self._structures(question, record)
        if hits:
            return read_answer(self.contents or self.reader, question, hits, record, self.recipe)
        found = self._seeds(question, self.budget, record)
        paths = self._walk(question, found, record)
        if self.context == "passages":
            best = self._ranked(paths, found, self.budget)
            return read_answer(self.reader, question, best, record, self.recipe)
        visited = self._visited(paths)
        items = visited if self.context == "visited" else self.path_hits(paths)
        return read_answer(self.reader, question, items, record, self.recipe, visited)

    def _structures(self, question: Question, record: TrailRecorder) -> Sequence[Hit]:
        try:
            return self.structures.find(question, record) if self.structures else ()
        except BudgetExceeded as error:
            record_stop(record, error)
            return ()

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best passages, each with the path to it: visited ones, and with a ``prior`` also
        those that only the seeding found."""
        found = self._seeds(question, k, None)
        return self._ranked(self._walk(question, found, None), found, k)

    def walk(self, question: Question, trail: TrailRecorder) -> list[Path]:
        """Return every path of Algorithm 1 that was visited and not extended, in the order of the queue."""
        return self._walk(question, self._seeds(question, self.budget, trail), trail)

    def _walk(self, question: Question, found: Sequence[Path], trail: TrailRecorder | None) -> list[Path]:
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        queue = list(found[: min(self.seeds, self.budget)])
        ended: list[Path] = []
        while queue and len(queue[0].rows) < self.hops:
            # One continuation each makes paths longer, not more: seeds that fill the budget are extended too.
            if self.branch > 1 and len(queue) + len(ended) >= self.budget:
                break
            if trail is not None and trail.should_stop():
                break
            batch, queue = self._affordable(queue, len(ended))
            room = self.budget - len(queue) - len(ended) - len(batch)
            try:
                expanded = self._expand(question, batch, allowed, trail)
            except BudgetExceeded as error:
                if trail is None:
                    raise
                record_stop(trail, error)
                return (ended + batch + queue)[: self.budget]
            for path, children in expanded:
                children = children[: room + 1]
                room -= max(len(children) - 1, 0)
                at_end = not children or len(children[0].rows) >= self.hops
                (ended if at_end else queue).extend(children or [path])
        return (ended + queue)[: self.budget]

    def path_hits(self, paths: Iterable[Path]) -> list[Hit]:
        """Return one hit per path: its last passage, reached by the others."""
        return self._hits([(path.rows[-1], path) for path in paths])

    def _visited(self, paths: Iterable[Path]) -> list[Hit]:
        """Return the passages of paths, each once, in the order of the paths."""
        first: dict[int, Path] = {}
        for path in paths:
            for prefix in path.prefixes():
                first.setdefault(prefix.rows[-1], prefix)
        return self._hits(list(first.items()))

    def _ranked(self, paths: Sequence[Path], found: Sequence[Path], k: int) -> list[Hit]:
        """Return each passage once, with the best path that leads to it; the ``k`` best, best first."""
        best: dict[int, Path] = {}
        for path in (*paths, *(found if self.prior is not None else ())):
            for prefix in path.prefixes():
                row = prefix.rows[-1]
                if row not in best or prefix.score > best[row].score:
                    best[row] = prefix
        rows = np.array(list(best), dtype=np.int64)
        scores = np.array([path.score for path in best.values()])
        return self._hits([(row, best[row]) for row, _ in best_rows(self.snapshot, rows, scores, k)])

    def _seeds(self, question: Question, k: int, trail: Trail | None) -> list[Path]:
        """Return paths of one passage, best first: what the walk starts from, and what else was found."""
        started = time.perf_counter()
        wanted = min(self.seeds, self.budget)
        depth = wanted if self.prior is None else max(wanted, k, self.beyond)
        hits = explore_retriever(self.seeding, question, depth, trail or TrailRecorder())
        rows = self.snapshot.rows([hit.node.id for hit in hits])
        scores = np.array([hit.score for hit in hits])
        if self.relative and len(hits) and scores[0] > 0:
            scores = scores / scores[0]
        if trail is not None:
            seeds = tuple(hits[:wanted])
            trail.add(SeedStep(len(seeds), hits=seeds, seconds=time.perf_counter() - started))
        return [
            Path((row,), (score,))
            for row, score in zip(rows.tolist(), self._probable(scores).tolist(), strict=True)
        ]

    def _probable(self, scores: Floats) -> Floats:
        """Return scores as probabilities of what they score, if the method has them."""
        if self.sharpness is None or not len(scores):
            return scores
        likely = np.exp(self.sharpness * (scores - scores.max()))
        found: Floats = likely / likely.sum()
        return found

    def _affordable(self, queue: list[Path], ended: int) -> tuple[list[Path], list[Path]]:
        """Split off the front of the queue: paths of one length, no more than the budget can extend."""
        same = next((n for n, path in enumerate(queue) if len(path.rows) != len(queue[0].rows)), len(queue))
        room = self.budget - ended - len(queue)
        most = same if self.branch == 1 else min(same, -(-room // (self.branch - 1)))
        return queue[:most], queue[most:]

    def _expand(
        self, question: Question, paths: Sequence[Path], allowed: Mask, trail: Trail | None
    ) -> list[tuple[Path, list[Path]]]:
        """Return the ``branch`` best continuations of each path, best first."""
        started = time.perf_counter()
        near = [self._neighbours(path, allowed) for path in paths]
        beyond = OpenCandidates(0 if self.prior is None else self.beyond, allowed)
        judged = self.guide.score_neighbours(question, [path.rows for path in paths], near, beyond)
        expanded = [
            (path, self._continue(path, rows, scores, neighbours))
            for path, (rows, scores), neighbours in zip(paths, judged.scores, near, strict=True)
        ]
        if trail is not None:
            trail.add(self._step(expanded, judged, time.perf_counter() - started))
        return expanded

    def _neighbours(self, path: Path, allowed: Mask) -> Rows:
        rows = self.graph.neighbours(path.rows[-1])
        return rows[allowed[rows]]

    def _continue(self, path: Path, rows: Rows, scores: Floats, near: Rows) -> list[Path]:
        fresh = ~np.isin(rows, path.rows)
        rows, scores = rows[fresh], scores[fresh]
        if self.prior is not None:
            joined = np.isin(rows, near)
            scores = scores.copy()
            scores[joined] += self.prior * self.graph.strengths(path.rows[-1], rows[joined])
        scores = self._probable(scores)
        chosen = best_rows(self.snapshot, rows, scores, self.branch)
        neighbours = set(near.tolist())
        return [
            Path(
                (*path.rows, row), (*path.scores, path.score * score), (*path.follows_edge, row in neighbours)
            )
            for row, score in chosen
        ]

    def _step(
        self, expanded: Sequence[tuple[Path, list[Path]]], judged: NeighbourScores, seconds: float
    ) -> ExpandStep:
        ids = [self.snapshot.ids(np.array(path.rows)) for path, _ in expanded]
        expected: Sequence[str | None] = judged.expected or [None] * len(expanded)
        paths = tuple(
            ExpandedPath(tuple(path), len(rows), len(children), text)
            for path, (rows, _), (_, children), text in zip(
                ids, judged.scores, expanded, expected, strict=True
            )
        )
        hits = self._hits([(child.rows[-1], child) for _, children in expanded for child in children])
        hop = len(expanded[0][0].rows) + 1
        return ExpandStep(hop, self.graph.name, paths, hits=tuple(hits), usage=judged.usage, seconds=seconds)

    def _hits(self, found: Sequence[tuple[int, Path]]) -> list[Hit]:
        nodes = self.snapshot.nodes(np.array([row for row, _ in found], dtype=np.int64))
        return [
            Hit(node, path.score, tuple(self.snapshot.ids(np.array(path.rows))), self._via(path))
            for node, (_, path) in zip(nodes, found, strict=True)
        ]

    def _via(self, path: Path) -> tuple[str, ...]:
        steps = zip(path.rows, path.rows[1:], path.follows_edge, strict=False)
        return tuple(
            self.graph.explain_edge(one, other) if joined else "no edge: best match"
            for one, other, joined in steps
        )


def best_rows(snapshot: Snapshot, rows: Rows, scores: Floats, k: int) -> list[tuple[int, float]]:
    """Return the ``k`` best rows and scores, best first, ties by node id; scores rounded to 9 decimals."""
    scores = scores.round(9)
    if len(rows) > k:
        # All rows that tie with the k-th stay in, so that the cut does not depend on row order.
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
