"""Parsing: documents of any format as trees of nodes, and graph files as nodes and edges."""
