"""Chains: a question as triples over constants and unknowns (Su et al., NAACL 2024, Section 3.1).

A term of a triple is a constant, an unknown (``#1``), or text that contains unknowns (``flag of the #1``). The same
type serves every method that writes a question down before it answers it.
"""
