"""Formats of graph files: what each one declares about itself, and the list of those that are installed."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

from clew.core.component import GRAPH_FORMAT_PLUGINS, usable_declarations
from clew.core.protocols import GraphSink
from clew.parse.graphs.files import RowErrors


@dataclass(frozen=True, slots=True)
class GraphReadOptions:
    """Options of reading graph files.

    - ``format`` is the name of a format; "" is that of each file's suffix.
    - ``columns`` names the columns of tables. ``header`` says whether their first row does (None: detected).
    - ``kind``: a table holds ``nodes`` or ``edges`` ("": detected).
    - ``languages`` are those of texts in RDF, in lower case, the preferred one first; ``*`` is any.
    - ``answers`` are the types of nodes that may answer a question; none: those that the files declare, else all.

    The fields are stored with each graph, as JSON: they cannot be renamed.
    """

    format: str = ""
    columns: tuple[str, ...] = ()
    header: bool | None = None
    kind: Literal["", "nodes", "edges"] = ""
    languages: tuple[str, ...] = ("en",)
    answers: tuple[str, ...] = ()


class ReadFunction(Protocol):
    """Reads a graph from the file, or folder, at ``path``."""

    def __call__(
        self,
        path: Path,
        sink: GraphSink,
        options: GraphReadOptions,
        errors: RowErrors,
        report_progress: Callable[[int], None],
    ) -> None:
        """Add all nodes and edges to ``sink``. Raises UnreadableFile, BadRows, MissingExtra.

        Bad rows go to ``errors``. ``report_progress`` is called now and then with the number of bytes on disk that
        are read.
        """


@dataclass(frozen=True, slots=True)
class GraphFormat:
    """A format of graph files: how they are recognised, and the function that reads them.

    To add a format, put a module with ``FORMATS`` into ``clew.parse.graphs``, or name the object in the entry point
    group ``clew.graph_formats`` of another package. The module is imported even where only file names are checked,
    so it imports its parsing library inside the read function.

    - ``name`` is what ``--format`` takes.
    - ``suffixes`` are in lower case and have their dot. A format without them cannot be uploaded.
    - ``options`` are the options that the read function takes; the others have their defaults when it is called.
    - ``matches`` examines what lies at a path. It decides before the suffix does.
    - ``list_files`` returns the files on disk that are read for a path; None: the path itself.
    - ``answer_types`` returns the types of nodes that a file declares to be answers.
    - ``has_iri_ids``: the ids of nodes are IRIs.
    - ``package`` is a package that the read function needs and clew alone does not bring.
    """

    name: str
    read: ReadFunction
    suffixes: tuple[str, ...] = ()
    options: tuple[Literal["columns", "header", "kind", "languages"], ...] = ()
    matches: Callable[[Path], bool] | None = None
    list_files: Callable[[Path], list[Path]] | None = None
    answer_types: Callable[[Path], tuple[str, ...]] | None = None
    has_iri_ids: bool = False
    package: str = ""


def has_rdf_ids(options: str) -> bool:
    """Return whether a graph with these stored options, JSON, was read from files whose ids are IRIs."""
    formats = json.loads(options).get("format", ()) if options.startswith("{") else ()
    return any(form.has_iri_ids for form in graph_formats() if form.name in formats)


def readable_suffixes() -> list[str]:
    """Return the suffixes of the formats that can be read with the packages that are installed."""
    readable = (form for form in graph_formats() if not form.package or find_spec(form.package))
    return list(dict.fromkeys(suffix for form in readable for suffix in form.suffixes))


@lru_cache(maxsize=1)
def graph_formats() -> tuple[GraphFormat, ...]:
    """Return the installed formats. Those of other packages come first, so that they can replace clew's own."""
    package = import_module(__name__.rpartition(".")[0])
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    own = [form for module in modules for form in getattr(module, "FORMATS", ())]
    return (*usable_declarations(GRAPH_FORMAT_PLUGINS, GraphFormat), *own)
