"""A retriever: passages that share a word with the question, those near the start of their document first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clew.core.component import component
from clew.core.protocols import Snapshot
from clew.core.types import RETRIEVED_KINDS, Hit, Question


@component(
    "first-lines", summary="passages that share a word with the question, the first of a document first"
)
@dataclass(frozen=True, slots=True)
class FirstLines:
    """Looks at the ``depth`` first nodes of each document."""

    snapshot: Snapshot
    depth: int = 20

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return at most ``k`` hits, best first."""
        words = set(question.text.lower().strip("?").split())
        rows = np.flatnonzero(self.snapshot.mask(question.scope, RETRIEVED_KINDS))
        nodes = [node for node in self.snapshot.nodes(rows) if node.position <= self.depth]
        scores = {node.id: len(words & set(node.text.lower().strip(".").split())) for node in nodes}
        ranked = sorted(nodes, key=lambda node: (-scores[node.id], node.position, node.id))
        return [Hit(node, float(scores[node.id]), (node.id,)) for node in ranked[:k] if scores[node.id]]
