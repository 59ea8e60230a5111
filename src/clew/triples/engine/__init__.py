"""The substitution engine of 4StepFocus (Boer et al., 2024, Algorithm 2): patterns over the rows of one graph.

>>> from clew.triples.engine.patterns import Constant, Pattern, TypedTriple, Variable, along
>>> pattern = Pattern("film", (Variable("film", types=("film",)),), (Constant("Lynch", (7,)),),
...                   (TypedTriple("film", along("directed_by"), "Lynch"),))

* ``substitution.substitute`` narrows the candidates of every term until nothing changes; those of the target are
  exact.
* ``relaxation.relax`` does the same, and where constraints contradict each other it gives up the weakest, one at a
  time, until there is an answer.
* ``constraint_scores.constraint_scores`` says how far each row of the target meets each constraint;
  ``relaxation.why_not`` says which constraints exclude a row.

A pattern belongs to one graph: its constants are rows of that graph. :mod:`clew.triples.engine.reference` is the
paper's algorithm in 30 lines, which the tests compare the engine with.
"""
