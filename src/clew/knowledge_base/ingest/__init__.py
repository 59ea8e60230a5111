"""Adds files to a knowledge base: documents, graphs, and triples that a model extracts; and estimates the cost."""

from __future__ import annotations

from clew.knowledge_base.ingest.documents import IngestTarget, add
from clew.knowledge_base.ingest.estimate import Estimate, estimate
from clew.knowledge_base.ingest.graphs import (
    GraphEditReport,
    GraphFiles,
    GraphReport,
    add_graph,
    default_graph_name,
    name_graph,
    read_edits,
)
from clew.knowledge_base.ingest.report import Event, Failure, Progress, Report, ignore_event

__all__ = [
    "Estimate",
    "Event",
    "Failure",
    "GraphEditReport",
    "GraphFiles",
    "GraphReport",
    "IngestTarget",
    "Progress",
    "Report",
    "add",
    "add_graph",
    "default_graph_name",
    "estimate",
    "ignore_event",
    "name_graph",
    "read_edits",
]
