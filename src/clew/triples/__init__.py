"""Readers of graph files: triples, node and edge tables, JSON lines, Parquet, RDF, extractions from text,
STaRK's knowledge bases.

A reader gives what it finds to a :class:`clew.protocols.GraphSink`, row by row, and holds no more than a row.
"""

from clew.triples.read import FORMATS, Options, answers_in, files_of, format_of, gives_iris, read
from clew.triples.rows import BadRow, Faults

__all__ = [
    "FORMATS",
    "BadRow",
    "Faults",
    "Options",
    "answers_in",
    "files_of",
    "format_of",
    "gives_iris",
    "read",
]
