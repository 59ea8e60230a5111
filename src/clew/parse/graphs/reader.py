"""Reads a graph file of any format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Literal

from clew.core.errors import UnreadableFile, unknown_name_error
from clew.core.protocols import GraphSink
from clew.parse.graphs.files import RowErrors, empty_file_error, is_compressed, open_graph_file
from clew.parse.graphs.jsonlines import read_json_lines
from clew.parse.graphs.rdf import read_rdf
from clew.parse.graphs.stark import answer_types, is_stark, list_stark_files, read_stark
from clew.parse.graphs.tables import read_parquet, read_table

#: The formats of graph files, each with the suffixes that mean it.
FORMATS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "jsonl": ("jsonl", "ndjson"),
    "parquet": ("parquet", "pq"),
    "ntriples": ("nt",),
    "turtle": ("ttl",),
    "rdfxml": ("rdf", "owl", "xml"),
    "stark": (),  # a folder or zip archive, recognised by the files in it
}
_RDF = frozenset({"ntriples", "turtle", "rdfxml"})


@dataclass(frozen=True, slots=True)
class GraphReadOptions:
    """Options of reading graph files.

    - ``format`` is one of ``FORMATS``; "" is that of each file's suffix.
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


def detect_format(path: Path, format: str = "") -> str:
    """Return ``format`` if it is given, else the format of a file by its name and, for STaRK, by what is in it.

    Raises UsageError for an unknown format, UnreadableFile for an unknown suffix.
    """
    if format:
        if format not in FORMATS:
            raise unknown_name_error("format of graph files", format, FORMATS)
        return format
    if is_stark(path):
        return "stark"
    name = PurePath(path.stem) if is_compressed(path) else path
    suffix = name.suffix.lower().removeprefix(".")
    for known_format, suffixes in FORMATS.items():
        if suffix in suffixes:
            return known_format
    known = ", ".join(f".{suffix}" for suffixes in FORMATS.values() for suffix in suffixes)
    raise UnreadableFile(
        f"{path}: its name does not tell the format of its graph",
        f"Name the format: --format {'|'.join(FORMATS)}; known suffixes: {known}",
    )


def list_files(path: Path, format: str = "") -> list[Path]:
    """Return the files that are read for a path: the path itself, but for a folder. Raises as detect_format."""
    return list_stark_files(path) if detect_format(path, format) == "stark" else [path]


def declared_answer_types(path: Path, format: str = "") -> tuple[str, ...]:
    """Return the types of nodes that a file declares to be answers. Raises as detect_format."""
    return answer_types(path) if detect_format(path, format) == "stark" else ()


def has_iri_ids(path: Path, format: str = "") -> bool:
    """Return whether the ids in a file are IRIs. Raises as detect_format."""
    return detect_format(path, format) in _RDF


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
    options = replace(options, format=detect_format(path, options.format))
    if path.is_file() and not path.stat().st_size:
        raise empty_file_error(path)
    if options.format == "stark":
        read_stark(path, sink, report_progress)
    elif options.format == "parquet":
        read_parquet(path, sink, options, errors, report_progress)
    else:
        with open_graph_file(path, report_progress) as file:
            if options.format in _RDF:
                read_rdf(file, sink, options, errors)
            elif options.format == "jsonl":
                read_json_lines(file, sink, errors)
            else:
                read_table(file, sink, options, errors)
