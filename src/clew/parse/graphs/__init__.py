"""Readers of graph files: triples, node and edge tables, JSON lines, Parquet, RDF, extractions from text,
STaRK's knowledge bases.

A reader gives what it finds to a :class:`clew.core.protocols.GraphSink`, row by row, and holds no more than a row.
"""

from __future__ import annotations

from clew.parse.graphs.files import BadRow, RowErrors
from clew.parse.graphs.reader import (
    FORMATS,
    Options,
    declared_answer_types,
    detect_format,
    has_iri_ids,
    list_files,
    read_graph,
)

__all__ = [
    "FORMATS",
    "BadRow",
    "Options",
    "RowErrors",
    "declared_answer_types",
    "detect_format",
    "has_iri_ids",
    "list_files",
    "read_graph",
]
