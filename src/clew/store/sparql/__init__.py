"""Graphs that stay in a SPARQL endpoint or an RDF store and are queried there."""
