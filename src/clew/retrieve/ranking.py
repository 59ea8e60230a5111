"""Turn scores into hits: rounded, best first, ties broken by node id.

The order of hits therefore depends on the documents alone, not on the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew.core.arrays import Floats, Mask, Rows
from clew.core.protocols import Snapshot
from clew.core.types import Hit

#: Scores are rounded to this many decimals before they are compared, so that the order in which floating
#: point numbers were added cannot decide between nodes.
DECIMALS = 9


def best_rows(snapshot: Snapshot, rows: Rows, scores: Floats, k: int) -> tuple[Rows, Floats]:
    """Return the ``k`` best of ``rows`` and their rounded scores, best first, ties by node id."""
    if k < 1 or not len(rows):
        return rows[:0], scores[:0]
    if len(rows) > k:
        # Every row whose rounded score could equal the k-th stays in: ids, not rows, decide among them.
        near_best = scores >= np.partition(scores, -k)[-k] - 10.0**-DECIMALS
        rows, scores = rows[near_best], scores[near_best]
    scores = scores.round(DECIMALS) + 0.0  # no negative zero
    if len(rows) > k:
        among_best = scores >= np.partition(scores, -k)[-k]
        rows, scores = rows[among_best], scores[among_best]
    ids = snapshot.ids(rows)
    order = sorted(range(len(rows)), key=lambda n: (-scores[n], ids[n]))[:k]
    return rows[order], scores[order]


def positive_rows(scores: Floats, allowed: Mask) -> Rows:
    """Return the allowed rows with a score above 0, ascending; ``scores`` has one number per row."""
    return np.flatnonzero((scores > 0) & allowed)


def as_hits(snapshot: Snapshot, rows: Rows, scores: Floats) -> list[Hit]:
    """Return rows as hits that were reached directly: the path of each is the node alone."""
    nodes = snapshot.nodes(rows)
    return [Hit(node, score, (node.id,)) for node, score in zip(nodes, scores.tolist(), strict=True)]


def merge_hits(lists: Sequence[Sequence[Hit]], scores: dict[str, float], k: int) -> list[Hit]:
    """Return the ``k`` best hits of several lists by ``scores`` (by node id), each node once.

    A node that several lists contain keeps the path of the first list.
    """
    first: dict[str, Hit] = {}
    for hits in lists:
        for hit in hits:
            first.setdefault(hit.node.id, hit)
    ranked = sorted((-round(scores[id], DECIMALS), id) for id in first)[:k]
    return [Hit(first[id].node, -negative, first[id].path, first[id].via) for negative, id in ranked]
