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

from clew.chains import NOT, ONLY, TESTS, Count, at_least, at_most, exactly
from clew.focus.counting import in_order
from clew.focus.meeting import met
from clew.focus.patterns import (
    ANY,
    EITHER,
    Constant,
    Constraint,
    Pattern,
    Predicate,
    TypedTriple,
    Variable,
    Way,
    along,
    components,
)
from clew.focus.predicates import Test
from clew.focus.relaxing import WhyNot, conflicting, fixed, relaxed, why_not
from clew.focus.several import SubstitutedRows, substitute_all, substitute_rows
from clew.focus.substitution import Substituted, substitute

__all__ = [
    "ANY",
    "EITHER",
    "NOT",
    "ONLY",
    "TESTS",
    "Constant",
    "Constraint",
    "Count",
    "Pattern",
    "Predicate",
    "Substituted",
    "SubstitutedRows",
    "Test",
    "TypedTriple",
    "Variable",
    "Way",
    "WhyNot",
    "along",
    "at_least",
    "at_most",
    "components",
    "conflicting",
    "exactly",
    "fixed",
    "in_order",
    "met",
    "relaxed",
    "substitute",
    "substitute_all",
    "substitute_rows",
    "why_not",
]
