"""Adds graphs to a knowledge base: unchanged files are skipped, a changed graph is stored in one transaction."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clew.core.errors import UnreadableFile, UsageError
from clew.core.protocols import GraphSink
from clew.core.text import slugify
from clew.core.types import GraphEditCounts, GraphInfo, GraphSource
from clew.knowledge_base.ingest.report import Event, Progress, ignore_event
from clew.knowledge_base.source_files import UPLOAD_PREFIX
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.formats import GraphReadOptions
from clew.parse.graphs.reader import (
    declared_answer_types,
    detect_format,
    has_iri_ids,
    list_files,
    read_graph,
)

if TYPE_CHECKING:
    from clew.store.graphs.graph_edits import GraphEdits

#: Is increased when a reader makes another graph of the same file: graphs are then read again.
READER_VERSION = 3


class GraphBuilder(GraphSink, Protocol):
    """A sink of a graph that is then stored, or closed unstored."""

    def count_undescribed(self) -> int:
        """Return how many nodes only edges name, where other nodes are described."""
        ...

    def count_nodes(self) -> int:
        """Return how many nodes were added, or mentioned by edges."""
        ...

    def close(self) -> None:
        """Free what was added."""
        ...


class GraphTarget(Protocol):
    """A knowledge base, as far as adding graphs needs it."""

    def graph_infos(self) -> list[GraphInfo]:
        """Return the name, sources and options of every graph."""
        ...

    def create_builder(self, name: str, *, iris: bool = False) -> GraphBuilder:
        """Return a builder of the graph ``name``; ``iris``: its ids are IRIs."""
        ...

    def store_graph(
        self,
        builder: Any,
        sources: Sequence[GraphSource],
        options: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Store a graph; return ``added``, ``replaced`` or ``unchanged``."""
        ...

    def update_sources(self, name: str, sources: Sequence[GraphSource]) -> None:
        """Store new modification times of a graph's files."""
        ...


@dataclass(frozen=True, slots=True)
class GraphFiles:
    """The files of a graph: those whose kind is detected, tables of nodes, and tables of edges."""

    files: tuple[Path, ...] = ()
    nodes: tuple[Path, ...] = ()
    edges: tuple[Path, ...] = ()

    @property
    def all_files(self) -> tuple[Path, ...]:
        """All files: those of nodes before those of edges."""
        return (*self.files, *self.nodes, *self.edges)

    def kind_of(self, number: int) -> str:
        """Return the given kind of the file at ``number`` in ``all_files``: ``nodes``, ``edges`` or ""."""
        if number < len(self.files):
            return ""
        return "nodes" if number < len(self.files) + len(self.nodes) else "edges"


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The report of adding a graph: ``outcome`` is ``added``, ``replaced`` or ``unchanged``.

    ``bad`` counts the rows that were skipped; ``bad_rows`` are the first twenty, ``FILE: line N: why``. ``left_out``
    counts correct rows that were left out, by reason. ``undescribed`` counts the nodes that only edges name, where
    other nodes are described: a table of nodes may be incomplete.
    """

    graph: GraphInfo
    outcome: str
    bad: int = 0
    bad_rows: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    undescribed: int = 0
    seconds: float = 0.0


def add_graph(
    graphs: GraphTarget,
    name: str,
    files: GraphFiles,
    options: GraphReadOptions | None = None,
    *,
    skip_bad: bool = False,
    progress: Progress = ignore_event,
) -> GraphReport:
    """Add the graph in ``files`` under ``name``, in place of a graph of that name.

    Unchanged files with the same options are not read again. Raises UnreadableFile (with BadRows, nothing is added),
    UsageError, MissingExtra.
    """
    started = time.monotonic()
    options = options or GraphReadOptions()
    if not files.all_files:
        raise UsageError("no file was given", "For example: clew graph add films.tsv")
    if len({has_iri_ids(path, options.format) for path in files.all_files}) > 1:
        raise UsageError("RDF and other files cannot make one graph", "Add them as two: their ids differ")
    stored_options = _options_json(files, options, skip_bad)
    known = next(
        (info for info in graphs.graph_infos() if info.name == name and info.options == stored_options), None
    )
    sources = _read_sources(files.all_files, options.format, known.sources if known else ())
    if known and _checksums(known.sources) == _checksums(sources):
        if tuple(sources) != known.sources:
            graphs.update_sources(name, sources)
        known = replace(known, sources=tuple(sources))
        return GraphReport(known, "unchanged", seconds=time.monotonic() - started)
    errors = RowErrors(skip_bad)
    builder = graphs.create_builder(name, iris=has_iri_ids(files.all_files[0], options.format))
    try:
        _read_files(builder, files, sources, options, errors, progress)
        if not builder.count_nodes():
            raise _no_nodes_error(files, errors)
        undescribed = builder.count_undescribed()
        outcome = graphs.store_graph(
            builder, sources, stored_options, lambda done, total: progress(Event("pack", done, total))
        )
    finally:
        builder.close()
    (stored,) = (info for info in graphs.graph_infos() if info.name == name)
    return GraphReport(
        stored,
        outcome,
        errors.count,
        tuple(errors.messages),
        dict(errors.omitted),
        undescribed,
        time.monotonic() - started,
    )


@dataclass(frozen=True, slots=True)
class GraphEditReport:
    """The report of editing a graph. ``bad``, ``bad_rows`` and ``left_out`` are of its files, as in GraphReport."""

    graph: GraphInfo
    counts: GraphEditCounts
    bad: int = 0
    bad_rows: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def read_edits(
    edits: GraphEdits,
    *,
    iris: bool,
    add: Sequence[Path],
    remove: Sequence[Path],
    options: GraphReadOptions,
    errors: RowErrors,
    progress: Progress,
) -> None:
    """Read files of edges and nodes to add and to remove; ``iris``: they are for a graph whose ids are IRIs.

    Raises UnreadableFile, BadRows, MissingExtra, and UsageError for RDF that is not a relation between two nodes: the
    other statements about a node were merged when it was imported, and cannot be told apart again.
    """
    sources = _read_sources([*remove, *add], options.format, ())
    files = [(path, edits.removals) for path in remove] + [(path, edits) for path in add]
    total, before = sum(source.size for source in sources), 0
    for (path, sink), source in zip(files, sources, strict=True):
        is_rdf = has_iri_ids(path, options.format)
        if is_rdf and not iris:
            raise UsageError(f"{path}: RDF cannot edit a graph of other files", "Their ids differ")

        def report_bytes(done: int, before: int = before, path: Path = path) -> None:
            progress(Event("graph", min(before + done, total), total, str(path)))

        read_graph(path, _EdgesOnly(sink, path) if is_rdf else sink, options, errors, report_bytes)
        before += source.size
    errors.raise_errors()


@dataclass(frozen=True, slots=True)
class _EdgesOnly:
    """A sink for the edges of an RDF file."""

    sink: GraphSink
    path: Path

    def add_node(self, id: str, **fields: Any) -> None:
        """Refuse a statement about a node."""
        raise UsageError(
            f"{self.path}: it has a type, name, text or value of {id}; RDF edits relations between nodes",
            "Describe nodes in a table or JSON lines with their IRIs, or add the changed RDF as a whole",
        )

    def has_node(self, id: str) -> bool:
        """Return False: no node is described."""
        return False

    def add_edge(
        self, head: str, relation: str, tail: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        """Pass the edge on."""
        self.sink.add_edge(head, relation, tail, properties)


def _no_nodes_error(files: GraphFiles, errors: RowErrors) -> UnreadableFile:
    names = ", ".join(str(path) for path in files.all_files)
    skipped = f" ({errors.count:,} bad rows were skipped)" if errors.count else ""
    return UnreadableFile(f"{names}: there is no node and no edge{skipped}", "Nothing was added")


def default_graph_name(path: Path) -> str:
    """Return the name of a graph from this file: the file's name without its suffixes.

    The name of STaRK's folder or archive ``processed`` is that of the folder around it.
    """
    stem = path.absolute().parent.name if path.name in {"processed", "processed.zip"} else path.name
    while (shorter := Path(stem).stem) != stem:
        stem = shorter
    return slugify(stem)


def name_graph(graphs: GraphTarget, files: GraphFiles, form: str = "") -> str:
    """Return the default name of a graph, that of its first file.

    The name may be that of the graph that this file made before, or of a graph whose files all have the content of
    some of ``files``, as after a move. Raises UsageError where another graph has the name, which would be lost, and
    UnreadableFile.
    """
    if not files.all_files:
        raise UsageError("no file was given", "For example: clew graph add films.tsv")
    name = default_graph_name(files.all_files[0])
    names = {info.name: info for info in graphs.graph_infos()}
    known = names.get(name)
    if known is None or known.url or str(files.all_files[0].absolute()) in {it.path for it in known.sources}:
        return name
    checksums = {source.sha256 for source in _read_sources(files.all_files, form, ())}
    if known.sources and checksums.issuperset(source.sha256 for source in known.sources):
        return name
    origin = ", ".join(source.path.removeprefix(UPLOAD_PREFIX) for source in known.sources)
    free_name = next(other for number in count(2) if (other := f"{name}-{number}") not in names)
    raise UsageError(
        f"there is a graph '{name}' already, of {origin or 'the documents'}",
        f"To keep both: --name {free_name}. To replace it: --name {name}",
    )


def _read_files(
    builder: GraphSink,
    files: GraphFiles,
    sources: Sequence[GraphSource],
    options: GraphReadOptions,
    errors: RowErrors,
    progress: Progress,
) -> None:
    total, before = sum(source.size for source in sources), 0
    for number, (path, source) in enumerate(zip(files.all_files, sources, strict=True)):

        def report_bytes(done: int, before: int = before, path: Path = path) -> None:
            progress(Event("graph", min(before + done, total), total, str(path)))

        file_options = replace(options, kind=files.kind_of(number))  # type: ignore[arg-type]
        read_graph(path, builder, file_options, errors, report_bytes)
        before += source.size
        report_bytes(0, before)
    errors.raise_errors()


def _checksums(sources: Sequence[GraphSource]) -> list[tuple[str, str]]:
    return [(source.path, source.sha256) for source in sources]


def _options_json(files: GraphFiles, options: GraphReadOptions, skip_bad: bool) -> str:
    """Return everything that the graph depends on but its files, as it is stored with the graph."""
    values = asdict(options) | {
        "kind": [files.kind_of(number) for number in range(len(files.all_files))],
        "format": [detect_format(path, options.format) for path in files.all_files],
        "skip_bad": skip_bad,
        "readers": READER_VERSION,
    }
    declared = (type for path in files.all_files for type in declared_answer_types(path, options.format))
    values["answers"] = options.answers or tuple(dict.fromkeys(declared))
    if not values["answers"]:
        del values["answers"]  # graphs that were added before this option existed are stored without it
    return json.dumps(values, sort_keys=True)


def _read_sources(paths: Sequence[Path], format: str, known: Sequence[GraphSource]) -> list[GraphSource]:
    """Return the size, modification time and checksum of each path.

    A path of the same size and time as in ``known`` has its checksum from there. A folder has the total size of its
    files, the latest of their times, and one checksum of all.
    """
    known_sources = {(source.path, source.size, source.mtime_ns): source for source in known}
    sources = []
    for path in paths:
        absolute = str(path.absolute())
        try:
            files = list_files(path, format)
            states = [file.stat() for file in files]
            size, latest = sum(state.st_size for state in states), max(state.st_mtime_ns for state in states)
            source = known_sources.get((absolute, size, latest))
            if source is None:
                digests = []
                for file in files:
                    with file.open("rb") as stream:
                        digests.append(hashlib.file_digest(stream, "sha256"))
                if files != [path]:
                    digests = [hashlib.sha256(b"".join(digest.digest() for digest in digests))]
                source = GraphSource(absolute, size, latest, digests[0].hexdigest())
        except OSError as error:
            raise UnreadableFile(f"{path}: {error.strerror or error}") from error
        sources.append(source)
    return sources
