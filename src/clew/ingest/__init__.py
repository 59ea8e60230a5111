"""Files into a knowledge base: scan, decide, read, commit, catch up; and what that would cost."""

from clew.ingest.add import Base, add
from clew.ingest.estimate import Estimate, estimate
from clew.ingest.graphs import GraphFiles, GraphReport, add_graph, graph_name
from clew.ingest.report import Event, Failure, Progress, Report, silent

__all__ = [
    "Base",
    "Estimate",
    "Event",
    "Failure",
    "GraphFiles",
    "GraphReport",
    "Progress",
    "Report",
    "add",
    "add_graph",
    "estimate",
    "graph_name",
    "silent",
]
