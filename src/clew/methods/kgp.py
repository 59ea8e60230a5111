"""Knowledge Graph Prompting (Wang et al., AAAI 2024): walk a graph of passages towards the answer.

A question about structure ("what does the table on page 4 say") is answered from the structure nodes it
names. Any other is answered by Algorithm 1: from seed passages, breadth first, to the neighbours that best
match the evidence still missing (:mod:`clew.methods.guides`).

Deviations from the printed algorithm (Supplementary 8.3), each on purpose:

- It returns what is left in the queue, so a path that was dequeued and had no neighbour is lost. Here every
  path that was visited comes back: those that were not extended, and with them all their prefixes.
- It stops at K + 1 passages. Here K (``budget``) bounds the paths that are returned, which is what 8.2 fixes
  at 30 for every method ("10 passages, and 3 each, which totally forms 30 reasoning paths").
- A whole level of the queue is expanded at a time, as far as the budget reaches, so that a language model is
  asked about many paths in one batch. The paths visited are those of the queue, one by one.
- ``prior``: the graph as a preference instead of a fence. Any passage may be visited next, and a neighbour's
  match is raised by ``prior``. ``None`` is the paper's fence.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from clew.methods.guides import Beyond, Expectation, Generated, Matcher
from clew.protocols import Graph, Reader, Retriever, Snapshot, Trail
from clew.trail import Recorder
from clew.types import RETRIEVED, Answer, Hit, Question, Step, Usage

if TYPE_CHECKING:
    from clew.protocols import Floats, Mask, Rows


class Structures(Protocol):
    """Recognises a question about structure."""

    def find(self, question: Question, trail: Trail) -> Sequence[Hit]:
        """Return the nodes that the question names, or nothing if it asks about content."""
        ...


@dataclass(frozen=True, slots=True)
class Path:
    """A reasoning path: rows of passages, seed first, and what joined each step to the one before.

    ``scores`` holds for every prefix how well it fits: the product of its steps' matches, the first being the
    seed's score relative to the best seed's.
    """

    rows: tuple[int, ...]
    scores: tuple[float, ...]
    via: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """How well the whole path fits."""
        return self.scores[-1]

    def prefixes(self) -> list[Path]:
        """Return the path cut after each of its passages; the last is itself."""
        return [Path(self.rows[:n], self.scores[:n], self.via[: n - 1]) for n in range(1, len(self.rows) + 1)]


@dataclass(frozen=True, slots=True)
class KGP:
    """The whole method. ``seeds``, ``branch``, ``hops`` and ``budget`` (K) count passages per path and paths.

    ``structures`` recognises questions about structure; ``contents``, where given, reads what they name in
    place of ``reader``. ``beyond`` is how many passages outside the neighbourhood a prior considers.
    ``context`` says what a context item for the reader is: a path's passages together (Listing 4) or each
    visited passage once. With ``order`` ``threads`` a passage is followed by the best continuation of it in
    another document, since half an answer is none; with ``scores`` passages come in order of their scores.
    """

    snapshot: Snapshot
    seeding: Retriever
    graph: Graph
    expectation: Expectation
    matcher: Matcher
    reader: Reader
    structures: Structures | None = None
    contents: Reader | None = None
    seeds: int = 10
    branch: int = 3
    hops: int = 2
    budget: int = 30
    prior: float | None = None
    beyond: int = 50
    context: Literal["paths", "passages"] = "passages"
    order: Literal["threads", "scores"] = "threads"
    recipe: str = "kgp"

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer to a question about structure or content."""
        record = Recorder(watch=trail.add, stop=trail.stopped)
        hits = list(self.structures.find(question, record)) if self.structures else []
        reader = self.contents if hits and self.contents else self.reader
        if not hits:
            paths = self.walk(question, record)
            hits = self.as_items(paths) if self.context == "paths" else self.as_passages(paths)[: self.budget]
        answer = reader.read(question, hits, record)
        return replace(answer, trail=tuple(record.steps), usage=record.usage(), recipe=self.recipe)

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best visited passages, each with the path that reached it."""
        return self.as_passages(self.walk(question, Recorder()))[:k]

    def walk(self, question: Question, trail: Trail) -> list[Path]:
        """Return every path of Algorithm 1 that was visited and not extended, in the order of the queue."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED)
        queue = self._seed(question, trail)
        ended: list[Path] = []
        while queue and len(queue) + len(ended) < self.budget and not trail.stopped():
            batch, queue = self._affordable(queue, len(ended))
            room = self.budget - len(queue) - len(ended) - len(batch)
            for path, children in self._expand(question, batch, allowed, trail):
                children = children[: room + 1]
                room -= max(len(children) - 1, 0)
                at_end = not children or len(children[0].rows) >= self.hops
                (ended if at_end else queue).extend(children or [path])
        return (ended + queue)[: self.budget]

    def as_items(self, paths: Iterable[Path]) -> list[Hit]:
        """Return one hit per path: its last passage, reached by the others."""
        return self._hits([(path.rows[-1], path) for path in paths])

    def as_passages(self, paths: Iterable[Path]) -> list[Hit]:
        """Return each visited passage once, with the best path that leads to it, best first."""
        best: dict[int, Path] = {}
        for path in paths:
            for prefix in path.prefixes():
                row = prefix.rows[-1]
                if row not in best or prefix.score > best[row].score:
                    best[row] = prefix
        hits = self._hits(list(best.items()))
        ranked = sorted(hits, key=lambda hit: (-round(hit.score, 9), hit.node.id))
        return threaded(ranked) if self.order == "threads" else ranked

    def _seed(self, question: Question, trail: Trail) -> list[Path]:
        started = time.perf_counter()
        hits = list(self.seeding.retrieve(question, min(self.seeds, self.budget)))
        rows = self.snapshot.rows([hit.node.id for hit in hits])
        top = max((hit.score for hit in hits), default=0.0)
        paths = [
            Path((int(row),), (hit.score / top if top > 0 else 1.0,))
            for row, hit in zip(rows, hits, strict=True)
        ]
        trail.add(Step("seed", {"seeds": len(hits)}, tuple(hits), seconds=time.perf_counter() - started))
        return paths if self.hops > 1 else paths[: self.budget]

    def _affordable(self, queue: list[Path], ended: int) -> tuple[list[Path], list[Path]]:
        """Split off the front of the queue: paths of one length, no more than the budget can extend."""
        same = next((n for n, path in enumerate(queue) if len(path.rows) != len(queue[0].rows)), len(queue))
        room = self.budget - ended - len(queue)
        most = same if self.branch == 1 else min(same, -(-room // (self.branch - 1)))
        return queue[:most], queue[most:]

    def _expand(
        self, question: Question, paths: Sequence[Path], allowed: Mask, trail: Trail
    ) -> list[tuple[Path, list[Path]]]:
        """Return the ``branch`` best continuations of each path, best first."""
        started = time.perf_counter()
        texts = [[node.text for node in self.snapshot.nodes(np.array(path.rows))] for path in paths]
        wanted, usage = self.expectation.expect(question.text, texts)
        neighbours = [self._neighbours(path, allowed) for path in paths]
        beyond = Beyond(0 if self.prior is None else self.beyond, allowed)
        matched = self.matcher.match(wanted, neighbours, beyond)
        expanded = [
            (path, self._continue(path, rows, scores, near))
            for path, (rows, scores), near in zip(paths, matched, neighbours, strict=True)
        ]
        seconds = time.perf_counter() - started
        trail.add(self._step(expanded, wanted, [len(rows) for rows, _ in matched], usage, seconds))
        return expanded

    def _neighbours(self, path: Path, allowed: Mask) -> Rows:
        rows = self.graph.neighbours(path.rows[-1])
        return rows[allowed[rows]]

    def _continue(self, path: Path, rows: Rows, scores: Floats, near: Rows) -> list[Path]:
        fresh = ~np.isin(rows, path.rows)
        rows, scores = rows[fresh], scores[fresh]
        if self.prior is not None:
            scores = scores + self.prior * np.isin(rows, near)
        chosen = best_rows(self.snapshot, rows, scores, self.branch)
        neighbours = set(near.tolist())
        return [
            Path(
                (*path.rows, row),
                (*path.scores, path.score * score),
                (
                    *path.via,
                    self.graph.why(path.rows[-1], row) if row in neighbours else "no edge: best match",
                ),
            )
            for row, score in chosen
        ]

    def _step(
        self,
        expanded: Sequence[tuple[Path, list[Path]]],
        wanted: Sequence[str],
        considered: Sequence[int],
        usage: Usage,
        seconds: float,
    ) -> Step:
        generated = isinstance(self.expectation, Generated)
        ids = [self.snapshot.ids(np.array(path.rows)) for path, _ in expanded]
        detail = {
            "hop": len(expanded[0][0].rows) + 1,
            "graph": self.graph.name,
            "paths": [
                {"path": path, "considered": count, "chosen": len(children)}
                | ({"expected": text} if generated else {})
                for path, count, (_, children), text in zip(ids, considered, expanded, wanted, strict=True)
            ],
        }
        hits = self._hits([(child.rows[-1], child) for _, children in expanded for child in children])
        return Step("expand", detail, tuple(hits), usage, seconds)

    def _hits(self, found: Sequence[tuple[int, Path]]) -> list[Hit]:
        nodes = self.snapshot.nodes(np.array([row for row, _ in found], dtype=np.int64))
        return [
            Hit(node, path.score, tuple(self.snapshot.ids(np.array(path.rows))), path.via)
            for node, (_, path) in zip(nodes, found, strict=True)
        ]


def threaded(ranked: Sequence[Hit]) -> list[Hit]:
    """Return ranked hits with each followed by the best one that was reached from it in another document."""
    following: dict[str, Hit] = {}
    for hit in ranked:
        if len(hit.path) > 1 and hit.via and not hit.via[-1].startswith("no edge"):
            before = hit.path[-2]
            if before.rpartition(":")[0] != hit.node.document:
                following.setdefault(before, hit)
    ordered: dict[str, Hit] = {}
    for hit in ranked:
        ordered.setdefault(hit.node.id, hit)
        after = following.get(hit.node.id)
        if after is not None:
            ordered.setdefault(after.node.id, after)
    return list(ordered.values())


def best_rows(snapshot: Snapshot, rows: Rows, scores: Floats, k: int) -> list[tuple[int, float]]:
    """Return the ``k`` best rows and scores, best first, ties by node id; scores rounded to 9 decimals."""
    scores = scores.round(9)
    if len(rows) > k:
        # All rows that tie with the k-th stay in, so that the cut does not depend on row order.
        keep = scores >= np.partition(scores, -k)[-k]
        rows, scores = rows[keep], scores[keep]
    ranked = zip((-scores).tolist(), snapshot.ids(rows), rows.tolist(), strict=True)
    return [(row, -negative) for negative, _, row in sorted(ranked)[:k]]
