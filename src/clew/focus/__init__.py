"""The substitution engine of 4StepFocus (Boer et al., 2024, Algorithm 2): patterns over the rows of one graph.

>>> pattern = Pattern("film", (Variable("film", types=("film",)),), (Constant("Lynch", (7,)),),
...                   (TypedTriple("film", along("directed_by"), "Lynch"),))

* :func:`substitute` narrows the candidates of every term until nothing changes; those of the target are exact.
  :func:`substitute_all` does so for many patterns at once, :func:`substitute_rows` for one with columns of constants.
* :func:`relaxed` does so, and gives up the weakest of contradictory constraints, one at a time, until there is an
  answer; it says which contradicted each other.
* :func:`met` says how far each row of the target meets each constraint; :func:`why_not` which of them drop a row.

A pattern belongs to one graph, whose rows its constants are. Answers from several graphs are several calls.
"""

from clew.chains import NOT, ONLY, TESTS, Quantifier, at_least, at_most, exactly
from clew.focus.counting import order_quantifiers
from clew.focus.meeting import constraint_scores
from clew.focus.patterns import (
    ANY_RELATION,
    ANY_DIRECTION,
    Constant,
    Constraint,
    Pattern,
    Predicate,
    TypedTriple,
    Variable,
    DirectedRelation,
    along,
    connected_terms,
)
from clew.focus.predicates import PropertyTest
from clew.focus.relaxing import WhyNot, find_conflict, restrict_variable, relax, why_not
from clew.focus.several import SubstitutedRows, substitute_all, substitute_rows
from clew.focus.substitution import Substitution, substitute

__all__ = [
    "ANY_RELATION",
    "ANY_DIRECTION",
    "NOT",
    "ONLY",
    "TESTS",
    "Constant",
    "Constraint",
    "Quantifier",
    "Pattern",
    "Predicate",
    "Substitution",
    "SubstitutedRows",
    "PropertyTest",
    "TypedTriple",
    "Variable",
    "DirectedRelation",
    "WhyNot",
    "along",
    "at_least",
    "at_most",
    "connected_terms",
    "find_conflict",
    "exactly",
    "restrict_variable",
    "order_quantifiers",
    "constraint_scores",
    "relax",
    "substitute",
    "substitute_all",
    "substitute_rows",
    "why_not",
]
