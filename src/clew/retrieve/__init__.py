"""Retrievers: each takes a question and returns the nodes that most likely answer it, best first."""
