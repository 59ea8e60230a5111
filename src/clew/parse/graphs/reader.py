"""One file of a graph: what form it has, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Literal

from clew.core.errors import UnreadableFile, unknown_name_error
from clew.core.protocols import GraphSink
from clew.parse.graphs.files import RowErrors, is_compressed, open_graph_file
from clew.parse.graphs.stark import answer_types, is_stark, read_stark
from clew.parse.graphs.stark import list_stark_files as stark_files

#: The forms of files, each with the endings of names that mean it.
FORMATS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "jsonl": ("jsonl", "ndjson"),
    "parquet": ("parquet", "pq"),
    "ntriples": ("nt",),
    "turtle": ("ttl",),
    "rdfxml": ("rdf", "owl", "xml"),
    "stark": (),  # a folder or zip archive, known by what is in it
}
_RDF = frozenset({"ntriples", "turtle", "rdfxml"})


@dataclass(frozen=True, slots=True)
class Options:
    """How files are read.

    ``format`` "" goes by the name of each file. ``columns`` names the columns of tables; ``header`` says whether
    their first row does (None: look); ``kind`` says that a table holds ``nodes`` or ``edges``. ``languages`` are
    those of texts in RDF, lower case, the preferred first; ``*`` for any. ``answers`` are the types of nodes that may
    answer a question; none: as the files declare it, else all.
    """

    format: str = ""
    columns: tuple[str, ...] = ()
    header: bool | None = None
    kind: Literal["", "nodes", "edges"] = ""
    languages: tuple[str, ...] = ("en",)
    answers: tuple[str, ...] = ()


def detect_format(path: Path, asked: str = "") -> str:
    """Return the form of a file: the one asked for, or that of its name. Raises UsageError, UnreadableFile."""
    if asked:
        if asked not in FORMATS:
            raise unknown_name_error("form of graph files", asked, FORMATS)
        return asked
    if is_stark(path):
        return "stark"
    name = PurePath(path.stem) if is_compressed(path) else path
    ending = name.suffix.lower().removeprefix(".")
    for form, endings in FORMATS.items():
        if ending in endings:
            return form
    known = ", ".join(f".{ending}" for endings in FORMATS.values() for ending in endings)
    raise UnreadableFile(
        f"{path}: its name does not say what form of graph it holds",
        f"Say it: --format {'|'.join(FORMATS)}; known by name: {known}",
    )


def list_files(path: Path, asked: str = "") -> list[Path]:
    """Return the files that are read for a path: itself, but for a folder. Raises as :func:`format_of`."""
    return stark_files(path) if detect_format(path, asked) == "stark" else [path]


def declared_answer_types(path: Path, asked: str = "") -> tuple[str, ...]:
    """Return the types of nodes that may answer, where the file declares it. Raises as :func:`format_of`."""
    return answer_types(path) if detect_format(path, asked) == "stark" else ()


def has_iri_ids(path: Path, asked: str = "") -> bool:
    """Return whether the ids in a file are IRIs. Raises as :func:`format_of`."""
    return detect_format(path, asked) in _RDF


def read_graph(
    path: Path,
    sink: GraphSink,
    options: Options,
    faults: RowErrors,
    tick: Callable[[int], None] = lambda done: None,
) -> None:
    """Give what a file holds to ``sink``; ``tick`` is told now and then how many of its bytes are read.

    Raises UnreadableFile for a file that cannot be read, BadRows for rows that make no sense (unless ``faults``
    skips them), MissingExtra.
    """
    options = replace(options, format=detect_format(path, options.format))
    if options.format == "stark":
        read_stark(path, sink, tick)
        return
    if options.format == "parquet":
        from clew.parse.graphs.tables import read_parquet

        read_parquet(path, sink, options, faults, tick)
        return
    with open_graph_file(path, tick) as source:
        if options.format in _RDF:
            from clew.parse.graphs.rdf import read_rdf

            read_rdf(source, sink, options, faults)
        elif options.format == "jsonl":
            from clew.parse.graphs.jsonlines import read_json_lines

            read_json_lines(source, sink, faults)
        else:
            from clew.parse.graphs.tables import read_table

            read_table(source, sink, options, faults)
