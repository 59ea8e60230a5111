"""Why something is no answer: the constraints that drop it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.chains import TypedChain
from clew.errors import NotFound
from clew.focus import why_not
from clew.methods.focus.attempts import Attempts
from clew.methods.focus.constants import LEAST
from clew.methods.focus.explaining import explained
from clew.methods.focus.preparing import distinct
from clew.types import Exclusion, Question

if TYPE_CHECKING:
    from clew.protocols import EntityLinker, PropertyGraph, Trail

#: Nodes that a name may stand for that are looked at.
MEANT = 3
_RESTRICTED = "it is not of the types that may answer (clew graph add --answers)"
_CONSTANT = "it is what the question itself names"


def why_nots(
    attempts: Attempts,
    linker: EntityLinker,
    graph: PropertyGraph,
    typed: TypedChain,
    question: Question,
    name: str,
    trail: Trail,
) -> list[Exclusion]:
    """Return for each node that ``name`` may stand for why it is no answer to a question.

    The constraints as they were asked count: what was given up for an answer drops it nevertheless. Raises NotFound
    where the graph has nothing called so.
    """
    linked = linker.link(graph, [name], question.text, MEANT, trail)[0]
    linked = tuple(one for one in linked if one.score >= max(LEAST, linked[0].score - 0.01))
    if not linked:
        raise NotFound(
            f"the graph '{graph.name}' has nothing called '{name}'", "clew graph show finds what is alike"
        )
    answers = attempts.answers(graph, question)
    prepared = attempts.preparer.prepare(graph, typed, question, answers, trail)
    pattern = distinct(prepared.pattern)
    rows = np.array([one.row for one in linked], dtype=np.int64)
    checks = explained(prepared, pattern, rows)
    made = []
    for place, one in enumerate(linked):
        found = why_not(graph, pattern, one.row)
        restricted = ""
        if found.restricted:
            restricted = _CONSTANT if one.row in pattern.variable(pattern.target).without else _RESTRICTED
        made.append(
            Exclusion(
                one.id,
                one.name,
                tuple(prepared.text(constraint, pattern) for constraint in found.constraints),
                found.alone,
                restricted,
                checks.checks(attempts.snapshot, place),
            )
        )
    return made
