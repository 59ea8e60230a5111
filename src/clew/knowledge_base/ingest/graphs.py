"""Adds a graph to a knowledge base: known files are skipped, others read whole and stored in one transaction."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from clew.core.errors import UnreadableFile, UsageError
from clew.core.protocols import GraphSink
from clew.core.text import slugify
from clew.core.types import GraphInfo, GraphSource
from clew.knowledge_base.ingest.report import Event, Progress, ignore_event
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.reader import (
    GraphReadOptions,
    declared_answer_types,
    detect_format,
    has_iri_ids,
    list_files,
    read_graph,
)

#: Raised when a reader gives another graph for the same file: graphs are then read again.
READER_VERSION = 2


class GraphBuilder(GraphSink, Protocol):
    """A sink that counts and may be given up."""

    def count_undescribed(self) -> int:
        """Return how many nodes edges alone name, where others are described."""
        ...

    def close(self) -> None:
        """Forget what was taken."""
        ...


class GraphTarget(Protocol):
    """What adding a graph needs of a knowledge base."""

    def graph_infos(self) -> list[GraphInfo]:
        """Return what is known of every graph."""
        ...

    def create_builder(self, name: str, *, iris: bool = False) -> GraphBuilder:
        """Return what takes the graph of that name as it is read; ``iris``: its ids are IRIs."""
        ...

    def store_graph(
        self,
        builder: Any,
        sources: Sequence[GraphSource],
        options: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Store what was read; ``added``, ``replaced`` or ``unchanged``."""
        ...

    def update_sources(self, name: str, sources: Sequence[GraphSource]) -> None:
        """Note new times of a graph's files."""
        ...


@dataclass(frozen=True, slots=True)
class GraphFiles:
    """The files of one graph: those whose rows say what they are, tables of nodes, tables of edges."""

    files: tuple[Path, ...] = ()
    nodes: tuple[Path, ...] = ()
    edges: tuple[Path, ...] = ()

    @property
    def all_files(self) -> tuple[Path, ...]:
        """All files, nodes before edges."""
        return (*self.files, *self.nodes, *self.edges)

    def kind_of(self, number: int) -> str:
        """Return what the ``number``-th of all files was said to hold: ``nodes``, ``edges`` or ""."""
        inside = number - len(self.files)
        return "" if inside < 0 else "nodes" if inside < len(self.nodes) else "edges"


@dataclass(frozen=True, slots=True)
class GraphReport:
    """What adding a graph did: ``outcome`` is ``added``, ``replaced`` or ``unchanged``.

    ``bad`` counts the rows that were skipped; ``bad_rows`` are the first twenty, ``FILE: line N: why``. ``left_out``
    counts what was left out on purpose, by reason. ``undescribed`` counts the nodes that only edges name, where other
    nodes are described: a table of nodes may lack some.
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
    """Add the graph that ``files`` hold, under ``name``, in place of one of that name.

    Files that did not change, read in the same way, are not read again. Raises UnreadableFile (BadRows among them:
    then nothing is added), UsageError, MissingExtra.
    """
    started = time.monotonic()
    options = options or GraphReadOptions()
    if not files.all_files:
        raise UsageError("no file was given", "For example: clew graph add films.tsv")
    if len({has_iri_ids(path, options.format) for path in files.all_files}) > 1:
        raise UsageError("RDF and other files cannot make one graph", "Add them as two: their ids differ")
    said = _said(files, options, skip_bad)
    known = next((one for one in graphs.graph_infos() if one.name == name and one.options == said), None)
    sources = _sources(files.all_files, options.format, known.sources if known else ())
    if known and _contents(known.sources) == _contents(sources):
        if tuple(sources) != known.sources:
            graphs.update_sources(name, sources)
        known = replace(known, sources=tuple(sources))
        return GraphReport(known, "unchanged", seconds=time.monotonic() - started)
    faults = RowErrors(skip_bad)
    builder = graphs.create_builder(name, iris=has_iri_ids(files.all_files[0], options.format))
    try:
        _read(builder, files, sources, options, faults, progress)
        undescribed = builder.count_undescribed()
        done = graphs.store_graph(
            builder, sources, said, lambda done, total: progress(Event("pack", done, total))
        )
    finally:
        builder.close()
    (made,) = (one for one in graphs.graph_infos() if one.name == name)
    return GraphReport(
        made,
        done,
        faults.count,
        tuple(faults.messages),
        dict(faults.omitted),
        undescribed,
        time.monotonic() - started,
    )


def default_graph_name(path: Path) -> str:
    """Return what a graph from this file is called: the file's name without its endings; of STaRK's folders
    ``processed`` that of the folder around it."""
    stem = path.absolute().parent.name if path.name in {"processed", "processed.zip"} else path.name
    while (shorter := Path(stem).stem) != stem:
        stem = shorter
    return slugify(stem)


def _read(
    builder: GraphSink,
    files: GraphFiles,
    sources: Sequence[GraphSource],
    options: GraphReadOptions,
    faults: RowErrors,
    progress: Progress,
) -> None:
    total, before = sum(one.size for one in sources), 0
    for number, (path, source) in enumerate(zip(files.all_files, sources, strict=True)):

        def tick(done: int, before: int = before, path: Path = path) -> None:
            progress(Event("graph", min(before + done, total), total, str(path)))

        read_graph(path, builder, replace(options, kind=files.kind_of(number)), faults, tick)  # type: ignore[arg-type]
        before += source.size
        tick(0, before)
    faults.raise_errors()


def _contents(sources: Sequence[GraphSource]) -> list[tuple[str, str]]:
    return [(one.path, one.sha256) for one in sources]


def _said(files: GraphFiles, options: GraphReadOptions, skip_bad: bool) -> str:
    kinds = [files.kind_of(number) for number in range(len(files.all_files))]
    forms = [detect_format(path, options.format) for path in files.all_files]
    said = asdict(options) | {"kind": kinds, "format": forms, "skip_bad": skip_bad, "readers": READER_VERSION}
    declared = (type for path in files.all_files for type in declared_answer_types(path, options.format))
    said["answers"] = options.answers or tuple(dict.fromkeys(declared))
    if not said["answers"]:
        del said["answers"]  # as graphs say it that were added before there was such an option
    return json.dumps(said, sort_keys=True)


def _sources(paths: Sequence[Path], form: str, known: Sequence[GraphSource]) -> list[GraphSource]:
    """Return what the files are; the checksum of one of the same size and time is taken to be as it was. A folder has
    the sizes of its files together, the time of the latest, and one checksum of all."""
    seen = {(one.path, one.size, one.mtime_ns): one for one in known}
    found = []
    for path in paths:
        place = str(path.absolute())
        try:
            files = list_files(path, form)
            states = [one.stat() for one in files]
            size, latest = sum(one.st_size for one in states), max(one.st_mtime_ns for one in states)
            same = seen.get((place, size, latest))
            if same is None:
                sums = hashlib.sha256()
                for one in files:
                    with one.open("rb") as file:
                        digest = hashlib.file_digest(file, "sha256")
                    sums.update(digest.digest())
                single = digest if files == [path] else sums
                same = GraphSource(place, size, latest, single.hexdigest())
        except OSError as error:
            raise UnreadableFile(f"{path}: {error.strerror or error}") from error
        found.append(same)
    return found
