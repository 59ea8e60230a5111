"""triples."""
