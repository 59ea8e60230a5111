"""Algorithm 2 of 4StepFocus (Boer et al., 2024, Section 3), SUBSTITUTE, as the paper writes it: on Python sets.

Nothing calls it but the tests, which compare the engine with it (:func:`clew.triples.engine.substitute`). The paper's
algorithm and the engine's answers differ in two points:

* Lines 14 and 19 as printed intersect each end of a triple with *its own* neighbours, so that a chain over two
  variables comes out empty. Line 14 has to narrow the tail's candidates and line 19 the head's. ``as_printed`` keeps
  the misprint.
* Where triples form a cycle, a fixpoint keeps candidates that no assignment to all variables contains. The engine
  joins the triples of a cycle (:mod:`clew.triples.engine.cycle_join`); here they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

#: A node is its row in the graph; a variable is its name.
Node = int
Variable = str
#: ``neighbours(v, e, "-")``: the nodes to which an edge of type e leads from v; ``"+"``: those from which one leads
#: to v.
Neighbours = Callable[[Node, str, str], set[Node]]


def substitute(
    triples: Iterable[tuple[Node | Variable, str, Node | Variable]],
    candidates: Mapping[Variable, Iterable[Node]],
    neighbours: Neighbours,
    as_printed: bool = False,
) -> dict[Variable, set[Node]]:
    """Return the candidates of every variable that all triples leave.

    ``triples`` are what Algorithm 3 prepares: their constants are nodes of the graph. ``candidates`` are the nodes
    that each variable begins with, by its type (Algorithm 3, lines 1 to 3).
    """
    triples = list(triples)
    substitute = {variable: set(nodes) for variable, nodes in candidates.items()}
    while True:
        before = {variable: set(nodes) for variable, nodes in substitute.items()}
        for h, e, t in triples:  # line 2
            if isinstance(h, Node) and isinstance(t, Variable):  # lines 3 to 5
                substitute[t] &= neighbours(h, e, "-")
            if isinstance(h, Variable) and isinstance(t, Node):  # lines 6 to 8
                substitute[h] &= neighbours(t, e, "+")
            if isinstance(h, Variable) and isinstance(t, Variable) and h != t:  # lines 9 to 20
                reached = {n for v in substitute[h] for n in neighbours(v, e, "-")}
                substitute[h if as_printed else t] &= reached  # line 14
                reached = {n for v in substitute[t] for n in neighbours(v, e, "+")}
                substitute[t if as_printed else h] &= reached  # line 19
        if substitute == before:  # line 22
            return substitute
