"""The baselines of D3 (Nair et al., EMNLP 2023, Section 4): every paragraph of a document is looked at.

MONOT5 and the cross-encoder are :class:`~clew.drill.paragraphs.RerankerSelector`; PARAGRAPH is
:class:`~clew.drill.paragraphs.YesNoSelector`; CHUNK is :class:`~clew.drill.paragraphs.PromptSelector` with a chunk size;
MAP-REDUCE is PARAGRAPH, then BASE; MAP-REDUCE OPTIMIZED is CHUNK, then BASE. DPR is
:class:`clew.retrieve.dense.DenseSearch`.

Deviation: the second stage of MAP-REDUCE is a single call in the paper, whatever the relevant paragraphs add up to;
here it is as many calls as the context needs, which is one wherever the paper's would have been answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.drill.paragraphs import ParagraphSelector
from clew.errors import BudgetExceeded
from clew.protocols import Snapshot
from clew.trail import TrailRecorder
from clew.types import RETRIEVED_KINDS, Hit, Node, Question, Scope, Step

if TYPE_CHECKING:
    from clew.protocols import Trail


@dataclass(frozen=True, slots=True)
class ExhaustiveRetriever:
    """Gives all passages and table rows in the scope of a question to a selector.

    In the paper the scope is one document. Deviation: it may be any, and what it costs grows with it.
    """

    snapshot: Snapshot
    selector: ParagraphSelector

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return at most ``k`` of the passages that the selector chooses, best first. Raises ModelError."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same; the selector's steps go to the trail. A budget that is spent ends the search, with nothing
        chosen where it ended it before the first choice."""
        try:
            chosen = self.selector.select(question.text, scope_passages(self.snapshot, question.scope), trail)
        except BudgetExceeded as error:
            trail.add(Step("stopped", {"budget": error.problem}))
            return []
        return [Hit(node, score, (node.id,)) for node, score in chosen[:k]]


def scope_passages(snapshot: Snapshot, scope: Scope) -> list[Node]:
    """Return the passages and table rows in a scope: documents by name and key, each in reading order."""
    nodes = snapshot.nodes(np.flatnonzero(snapshot.mask(scope, RETRIEVED_KINDS)))
    return sorted(nodes, key=lambda node: (node.document_name, node.document, node.position))
