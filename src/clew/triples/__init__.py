"""Triples: the language that questions are written in, the engine that answers it over a graph, and linking names."""
