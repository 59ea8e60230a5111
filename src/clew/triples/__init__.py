"""Readers of graph files: triples, node and edge tables, JSON lines, Parquet, RDF, extractions from text,
STaRK's knowledge bases.

A reader gives what it finds to a :class:`clew.protocols.GraphSink`, row by row, and holds no more than a row.
"""

from clew.triples.read import FORMATS, Options, declared_answer_types, list_files, detect_format, has_iri_ids, read_graph
from clew.triples.rows import BadRow, RowErrors

__all__ = [
    "FORMATS",
    "BadRow",
    "RowErrors",
    "Options",
    "declared_answer_types",
    "list_files",
    "detect_format",
    "has_iri_ids",
    "read_graph",
]
