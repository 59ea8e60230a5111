"""Best-first search over passages: clew's own walk, the extension of Algorithm 1.

Algorithm 1 visits paths in the order of a queue, so that ten seeds with three continuations each spend its budget on
paths of two passages, whatever the question. Here the most promising path is continued next, whichever its length:

- A path's *promise* is its probability times the share of the question that it leaves open. A question that a path
  covers is not looked into further; one that needs four passages is followed for four. From the third passage on,
  that share is also the probability that there is a next one: the score of a longer path is multiplied by it.
- The budget counts passages read, seeds included, each once: what a reader or a model is given in the end.
- Several paths are continued at a time (``width``), so that an encoder or a model is asked about them in one batch.
- Every path is returned, also those that were not continued.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from clew.methods.kgp.algorithm1 import Path

#: Returns the continuations of each path, best first. None ends the search.
Expand = Callable[[Sequence[Path]], "Sequence[Sequence[Path]] | None"]
#: Returns for each path the share of the question that it leaves open, from 0 to 1.
Missing = Callable[[Sequence[Path]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class BestFirst:
    """The search: at most ``budget`` passages are read, and no path has more than ``hops`` of them.

    A path whose promise is less than ``worth`` times the probability of the best seed is not continued.
    """

    budget: int
    hops: int
    width: int = 4
    worth: float = 0.02

    def search(self, seeds: Sequence[Path], expand: Expand, missing: Missing) -> list[Path]:
        """Return the paths that were reached and that no other extends, in the order of their discovery."""
        reached = {path.rows: path for path in seeds[: self.budget]}
        read = {path.rows[-1] for path in reached.values()}
        least = self.worth * max((path.score for path in seeds), default=0.0)
        frontier: list[tuple[float, int, Path, float]] = []
        order = itertools.count()

        def push(paths: Iterable[Path]) -> None:
            going_on = [path for path in paths if len(path.rows) < self.hops]
            for path, share in zip(going_on, missing(going_on), strict=True):
                if path.score * share >= least:
                    # The order of discovery breaks ties.
                    heapq.heappush(frontier, (-path.score * share, next(order), path, share))

        push(reached.values())
        while frontier and len(read) < self.budget:
            batch = [heapq.heappop(frontier)[2:] for _ in range(min(self.width, len(frontier)))]
            expansions = expand([path for path, _ in batch])
            if expansions is None:
                break
            discovered: list[Path] = []
            for (path, share), continuations in zip(batch, expansions, strict=True):
                for continuation in continuations:
                    row = continuation.rows[-1]
                    if continuation.rows not in reached and (row in read or len(read) < self.budget):
                        read.add(row)
                        if len(path.rows) > 1:
                            last = continuation.scores[-1] * share
                            continuation = replace(continuation, scores=(*continuation.scores[:-1], last))
                        discovered.append(continuation)
                        reached[continuation.rows] = continuation
                        reached.pop(path.rows, None)
            push(discovered)
        return list(reached.values())
