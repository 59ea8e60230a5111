"""Algorithm 1 of Knowledge Graph Prompting (Wang et al., AAAI 2024, Supplementary 8.3), line by line.

``kgp-paper`` runs it; :mod:`clew.methods.kgp.best_first` is our own search. The algorithm is kept with what it costs:
a path that has no neighbour is lost, and paths are not compared with each other. Two things are added from the text:
the depth (``hops``: 8.2 has "a 2-hop retrieval"), and a caller may end the traversal (a spent budget).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.arrays import Rows


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


#: Returns the neighbours of a passage.
Neighbours = Callable[[int], "Rows"]
#: ``Graph Traversal`` of line 7: the best continuations of a path among its candidates by Eq. (1), best first. None
#: ends the traversal.
GraphTraversal = Callable[[Path, "Rows"], "Sequence[Path] | None"]


def traverse(
    seeds: Iterable[Path], neighbours: Neighbours, graph_traversal: GraphTraversal, budget: int, hops: int
) -> list[Path]:
    """Return the queue of retrieved passages (paths) from ``seeds``, the initial search of line 1.

    ``budget`` is K: the number of passages visited, seeds included, after which the traversal ends. The numbers are
    the lines of the algorithm.
    """
    paths = deque(seeds)  # 2
    candidates = deque(neighbours(path.rows[-1]) for path in paths)  # 3
    visited = sum(len(path.rows) for path in paths)  # 4
    while paths and candidates and len(paths[0].rows) < hops:  # 5
        path, near = paths.popleft(), candidates.popleft()  # 6
        continuations = graph_traversal(path, near)  # 7
        if continuations is None:
            return [path, *paths]
        for continuation in continuations:  # 8
            paths.append(continuation)  # 9
            candidates.append(neighbours(continuation.rows[-1]))  # 10
            visited += 1  # 11
            if visited > budget:  # 12
                return list(paths)  # 13
    return list(paths)  # 14
