"""Graph files: triples, node and edge tables, JSON lines, Parquet, RDF, STaRK's knowledge bases.

:func:`clew.parse.graphs.reader.read_graph` reads a file row by row into a :class:`clew.core.protocols.GraphSink`, and
keeps no more than a row in memory.
"""
