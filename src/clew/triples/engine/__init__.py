"""The substitution engine of 4StepFocus (Boer et al., 2024, Algorithm 2): patterns over the rows of one graph.

>>> pattern = Pattern("film", (Variable("film", types=("film",)),), (Constant("Lynch", (7,)),),
...                   (TypedTriple("film", along("directed_by"), "Lynch"),))

* :func:`substitute` narrows the candidates of every term until nothing changes; those of the target are exact.
* :func:`relax` does the same, and where constraints contradict each other it gives up the weakest, one at a time,
  until there is an answer.
* :func:`constraint_scores` says how far each row of the target meets each constraint; :func:`why_not` says which
  constraints exclude a row.

A pattern belongs to one graph: its constants are rows of that graph. :mod:`clew.triples.engine.reference` is the
paper's algorithm in 30 lines, which the tests compare the engine with.
"""

from __future__ import annotations

from clew.triples.engine.constraint_scores import constraint_scores
from clew.triples.engine.patterns import (
    ANY_DIRECTION,
    ANY_RELATION,
    Constant,
    Constraint,
    DirectedRelation,
    Pattern,
    Predicate,
    TypedTriple,
    Variable,
    along,
    connected_terms,
    restrict_variable,
)
from clew.triples.engine.predicates import PropertyTest
from clew.triples.engine.relaxation import WhyNot, find_conflict, relax, why_not
from clew.triples.engine.substitution import Substitution, order_quantifiers, substitute
from clew.triples.language.chain import NOT, ONLY, TESTS, Quantifier, at_least, at_most, exactly

__all__ = [
    "ANY_DIRECTION",
    "ANY_RELATION",
    "NOT",
    "ONLY",
    "TESTS",
    "Constant",
    "Constraint",
    "DirectedRelation",
    "Pattern",
    "Predicate",
    "PropertyTest",
    "Quantifier",
    "Substitution",
    "TypedTriple",
    "Variable",
    "WhyNot",
    "along",
    "at_least",
    "at_most",
    "connected_terms",
    "constraint_scores",
    "exactly",
    "find_conflict",
    "order_quantifiers",
    "relax",
    "restrict_variable",
    "substitute",
    "why_not",
]
