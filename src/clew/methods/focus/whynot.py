"""Why something is no answer: the constraints that drop it, of the reading and the graphs that answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.errors import NotFound
from clew.focus import why_not
from clew.methods.focus.attempts import Interpretation
from clew.methods.focus.constants import LEAST
from clew.types import Exclusion, Question

if TYPE_CHECKING:
    from clew.protocols import EntityLinker, Snapshot, Trail

#: Nodes that a name may stand for that are looked at.
MEANT = 3
_RESTRICTED = "it is not of the types that may answer (clew graph add --answers)"
_CONSTANT = "it is what the question itself names"
_UNANSWERED = "nothing of the question restricts what may answer, so nothing does"


def explain_exclusions(
    snapshot: Snapshot, made: Interpretation, linker: EntityLinker, question: Question, name: str, trail: Trail
) -> list[Exclusion]:
    """Return for each node that ``name`` may stand for why it is no answer of an attempt.

    The constraints as they were asked count: what was given up for an answer drops it nevertheless. Raises NotFound
    where the graph has nothing called so.
    """
    # Of several graphs, what the others leave is no constraint of this one.
    graph, pattern = made.graph, made.join.main.original_pattern if made.join else made.pattern
    linked = linker.link(graph, [name], question.text, MEANT, trail)[0]
    linked = tuple(one for one in linked if one.score >= max(LEAST, linked[0].score - 0.01))
    if not linked:
        raise NotFound(
            f"the graph '{graph.name}' has nothing called '{name}'", "clew graph show finds what is alike"
        )
    rows = np.array([one.row for one in linked], dtype=np.int64)
    explained = made.explain(rows)
    found = []
    for place, one in enumerate(linked):
        why = why_not(graph, pattern, one.row)
        constraints = [made.prepared.constraint_text(constraint, pattern) for constraint in why.constraints]
        restricted = ""
        if why.restricted:
            kept_out = one.row in pattern.variable(pattern.target).excluded
            restricted = _CONSTANT if kept_out else _RESTRICTED
        elif not constraints and not made.has_answers:
            restricted = _UNANSWERED
        checks = made.checks(explained, snapshot, place, firm=not (constraints or restricted))
        elsewhere = made.join.others if made.join else ()
        if not constraints and not restricted and elsewhere and not made.holds_in_other_graphs(one.row):
            constraints = [text for part in elsewhere for text in part.texts]
        alone = why.alone or (len(constraints) == 1 and not why.constraints)
        found.append(Exclusion(one.id, one.name, tuple(constraints), alone, restricted, checks))
    return found
