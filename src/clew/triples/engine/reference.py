"""Algorithms 2 and 3 of 4StepFocus (Boer et al., 2024, Section 3), SUBSTITUTE and PREPARE_TRIPLETS_FOR_SUBSTITUTION,
line by line as the paper prints them.

``focus(paper=yes)`` runs them (:mod:`clew.methods.focus.paper`), and tests compare the engine with them
(:func:`clew.triples.engine.substitution.substitute`). A set of nodes is an array of rows, ascending, each once; the
union of the neighbours of several nodes (lines 10 to 13, 15 to 18) is one call. The engine differs in two points:

* Lines 14 and 19 as printed intersect each end of a triple with *its own* neighbours, so that a chain over two
  variables usually comes out empty. Line 14 has to narrow the tail's candidates and line 19 the head's
  (``as_printed`` False).
* Where triples form a cycle, a fixpoint keeps candidates that no assignment to all variables contains. The engine
  joins the triples of a cycle (:func:`clew.triples.engine.substitution.enforce_consistency`); here they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from clew.core.arrays import Rows

#: A variable or a constant is its name; the node that a constant was matched to is its row.
Name: TypeAlias = str
Node: TypeAlias = int
#: Head, edge type, tail. Algorithm 3 replaces the names of constants by nodes.
RawTriplet: TypeAlias = tuple[Name, str, Name]
PreparedTriplet: TypeAlias = tuple[Name | Node, str, Name | Node]
#: ``neighbours(nodes, e, "-")``: the nodes to which an edge of type e leads from one of ``nodes``; ``"+"``: those
#: from which one leads to one of ``nodes``. Ascending, each once.
Neighbours = Callable[["Rows", str, str], "Rows"]


def prepare_triplets(
    triplets: Iterable[RawTriplet],
    variables: Iterable[Name],
    match: Callable[[Name], Node | None],
) -> list[PreparedTriplet]:
    """Return the valid triplets, with constants replaced by nodes (Algorithm 3, lines 4 to 18).

    ``match`` returns the node of C that a constant (almost) matches an alias of, None for none. The first lines,
    ``substitute[x]`` for every variable, are ``candidates`` of :func:`substitute`.
    """
    names, prepared = set(variables), dict[PreparedTriplet, None]()  # line 4
    for h, e, t in triplets:  # line 5
        if h not in names and t not in names:  # line 6
            continue
        if h not in names:  # lines 7 to 10
            if (node := match(h)) is not None:
                prepared[node, e, t] = None
        elif t not in names:  # lines 11 to 14
            if (node := match(t)) is not None:
                prepared[h, e, node] = None
        elif h != t:  # lines 15 and 16
            prepared[h, e, t] = None
    return list(prepared)


def substitute(
    triplets: Iterable[PreparedTriplet],
    candidates: Mapping[Name, Rows],
    neighbours: Neighbours,
    as_printed: bool = False,
) -> tuple[dict[Name, Rows], int]:
    """Return what all triplets leave of every variable (Algorithm 2), and how often lines 2 to 21 ran.

    ``candidates`` are the nodes that each variable begins with: those of C that have its type (Algorithm 3, lines 1
    to 3), ascending, each once.
    """
    triplets, left, rounds = list(triplets), dict(candidates), 0

    def narrow(variable: Name, rows: Rows) -> None:
        left[variable] = np.intersect1d(left[variable], rows, assume_unique=True)

    while True:
        before, rounds = {variable: len(rows) for variable, rows in left.items()}, rounds + 1
        for h, e, t in triplets:  # line 2
            if isinstance(h, Node) and isinstance(t, Name):  # lines 3 to 5
                narrow(t, neighbours(np.array([h]), e, "-"))
            if isinstance(h, Name) and isinstance(t, Node):  # lines 6 to 8
                narrow(h, neighbours(np.array([t]), e, "+"))
            if isinstance(h, Name) and isinstance(t, Name) and h != t:  # line 9
                narrow(h if as_printed else t, neighbours(left[h], e, "-"))  # lines 10 to 14
                narrow(t if as_printed else h, neighbours(left[t], e, "+"))  # lines 15 to 19
        if {variable: len(rows) for variable, rows in left.items()} == before:  # line 22
            return left, rounds
