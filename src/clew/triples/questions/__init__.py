"""Plain questions over graphs, read as typed triples without a language model.

* :mod:`~clew.triples.questions.parser` writes a question as typed triples, with their probability.
* :mod:`~clew.triples.questions.names` finds the names of nodes in it, :mod:`~clew.triples.questions.paths` the paths
  from them and what speaks for each, :mod:`~clew.triples.questions.scoring` weighs that by learned weights.
* :mod:`~clew.triples.questions.conditions` adds further names, comparisons, superlatives and counting.
* :mod:`~clew.triples.questions.words` and ``lexicon.txt`` know which words name which relation.
"""

from __future__ import annotations

from clew.triples.questions.parser import PlainParser, Reading

__all__ = ["PlainParser", "Reading"]
