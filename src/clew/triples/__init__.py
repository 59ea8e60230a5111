"""Readers of graph files: triples, node and edge tables, JSON lines, Parquet, RDF, extractions from text.

A reader gives what it finds to a :class:`clew.protocols.GraphSink`, row by row, and holds no more than a row.
"""

from clew.triples.read import FORMATS, Options, format_of, gives_iris, read
from clew.triples.rows import BadRow, Faults

__all__ = ["FORMATS", "BadRow", "Faults", "Options", "format_of", "gives_iris", "read"]
