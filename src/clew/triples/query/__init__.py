"""Questions in typed triples over one graph, with an exact meaning.

* :func:`compile_question` takes every name for what is called exactly so (:mod:`clew.triples.query.question`).
* :func:`solve_question` returns the exact set of answers (:mod:`clew.triples.query.evaluation`).
* :func:`to_sparql` returns the same question as SPARQL (:mod:`clew.triples.query.sparql`), which defines its meaning.
* :func:`write_query` does so for a mounted graph too (:mod:`clew.triples.query.mounted`).
"""

from __future__ import annotations

from clew.triples.query.evaluation import solve_question
from clew.triples.query.mounted import write_query
from clew.triples.query.question import Compilation, GraphQuestion, compile_question
from clew.triples.query.sparql import to_sparql

__all__ = ["Compilation", "GraphQuestion", "compile_question", "solve_question", "to_sparql", "write_query"]
