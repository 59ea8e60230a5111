"""Reads a graph file of any format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from clew.core.errors import UnreadableFile, unknown_name_error
from clew.core.protocols import GraphSink
from clew.parse.graphs.files import RowErrors, empty_file_error, is_compressed
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions, graph_formats


def detect_format(path: Path, format: str = "") -> str:
    """Return ``format`` if it is given, else the name of the format of a file by what is in it, or by its name.

    Raises UsageError for an unknown format, UnreadableFile for an unknown suffix.
    """
    return _find_format(path, format).name


def list_files(path: Path, format: str = "") -> list[Path]:
    """Return the files that are read for a path: the path itself, but for a folder. Raises as detect_format."""
    list_files = _find_format(path, format).list_files
    return list_files(path) if list_files else [path]


def declared_answer_types(path: Path, format: str = "") -> tuple[str, ...]:
    """Return the types of nodes that a file declares to be answers. Raises as detect_format."""
    answer_types = _find_format(path, format).answer_types
    return answer_types(path) if answer_types else ()


def has_iri_ids(path: Path, format: str = "") -> bool:
    """Return whether the ids in a file are IRIs. Raises as detect_format."""
    return _find_format(path, format).has_iri_ids


def read_graph(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Add the nodes and edges of a file to ``sink``; bad rows go to ``errors``.

    ``report_progress`` is called now and then with the number of bytes that are read. Raises UnreadableFile for a
    file that cannot be read, BadRows for bad rows unless ``errors`` skips them, MissingExtra.
    """
    form = _find_format(path, options.format)
    if path.is_file() and not path.stat().st_size:
        raise empty_file_error(path)
    taken = GraphReadOptions(**{name: getattr(options, name) for name in form.options})
    form.read(path, sink, taken, errors, report_progress)


def _find_format(path: Path, name: str) -> GraphFormat:
    formats = graph_formats()
    names = list(dict.fromkeys(form.name for form in formats))
    if name:
        if name not in names:
            raise unknown_name_error("format of graph files", name, names)
        return next(form for form in formats if form.name == name)
    for form in formats:
        if form.matches is not None and form.matches(path):
            return form
    suffix = (PurePath(path.stem) if is_compressed(path) else path).suffix.lower()
    for form in formats:
        if suffix in form.suffixes:
            return form
    known = ", ".join(suffix for form in formats for suffix in form.suffixes)
    raise UnreadableFile(
        f"{path}: its name does not tell the format of its graph",
        f"Name the format: --format {'|'.join(names)}; known suffixes: {known}",
    )
