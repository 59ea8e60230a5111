"""Adds an uploaded graph file to a base. Runs in a process of its own, which may be killed at any time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import clew
from clew.core.errors import BadRows, ClewError, StoreError, UnreadableFile
from clew.core.files import is_system_error, system_error
from clew.knowledge_base.source_files import UPLOAD_PREFIX
from clew.parse.graphs.formats import GraphReadOptions


def read_uploaded_graph(
    path: Path, *, unit: str = "", base: str, graph: str, form: str, name: str
) -> StoreError | None:
    """Add the file, called ``name``, as the graph ``graph``. A reader of
    :class:`clew.parse.documents.pool.ParsePool`. Raises UnreadableFile; returns other errors."""
    try:
        with clew.open(base) as opened:
            report = opened.graphs.add(path, name=graph, options=GraphReadOptions(form))
            sources = [replace(source, path=f"{UPLOAD_PREFIX}{name}") for source in report.graph.sources]
            opened.store.graphs.update_sources(graph, sources)
    except BadRows as error:
        rows = "\n  ".join(row.replace(path.name, name) for row in error.rows)
        raise UnreadableFile(f"bad rows:\n  {rows}", "Put them right and upload it again") from error
    except UnreadableFile as error:
        # The user knows the file by its own name, not by that in the spool.
        problem = error.problem.replace(str(path), name).replace(path.name, name)
        raise UnreadableFile(problem, error.hint) from error
    except StoreError as error:
        return StoreError(error.problem, error.hint)
    except OSError as error:
        if not is_system_error(error):
            raise
        return system_error(error, base)
    except ClewError as error:
        raise UnreadableFile(error.problem, error.hint) from error
    return None
