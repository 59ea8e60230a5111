"""Files into a knowledge base: scan, decide, read, commit, catch up; and what that would cost."""

from clew.ingest.add import IngestTarget, add
from clew.ingest.estimate import Estimate, estimate
from clew.ingest.graphs import GraphFiles, GraphReport, add_graph, default_graph_name
from clew.ingest.report import Event, Failure, Progress, Report, ignore_event

__all__ = [
    "IngestTarget",
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
    "default_graph_name",
    "ignore_event",
]
