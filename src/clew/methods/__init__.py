"""Methods and readers: how an answer comes from a question and a knowledge base.

One folder per paper: ``kgp`` (Knowledge Graph Prompting), ``chain`` (Semi-Structured Chain-of-Thought), ``d3``
(Drilling Down into the Discourse Structure) and ``focus`` (4StepFocus). In each, ``method.py`` shows the algorithm
from top to bottom. ``baselines`` are the methods that the papers compare with, ``readers`` read an answer out of
evidence.
"""
