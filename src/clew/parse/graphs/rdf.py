"""RDF: N-Triples, Turtle, RDF/XML. Needs the extra ``rdf`` (pyoxigraph).

A resource becomes a node with its IRI as id. Its ``rdf:type`` is the node's type, ``rdfs:label`` and the like its
name, ``skos:altLabel`` and further labels its aliases, ``rdfs:comment`` and the like its text, other literals its
properties. Other statements become edges. Texts are taken in the languages that are asked for, in their order of
preference, and without a language tag; a label in another language serves as name where there is no other. Blank
nodes are numbered in the order in which they occur.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from clew.core.errors import UnreadableFile, require_packages
from clew.core.protocols import GraphSink
from clew.parse.graphs.files import GraphFile, RowErrors, open_graph_file
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions

_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
_XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
#: The predicates whose literals name a resource, in order of preference.
NAMES = (f"{_RDFS}label", f"{_SKOS}prefLabel", *(f"{prefix}name" for prefix in _SCHEMA))
ALIASES = frozenset({f"{_SKOS}altLabel", *(f"{prefix}alternateName" for prefix in _SCHEMA)})
TEXTS = frozenset(
    {
        f"{_RDFS}comment",
        f"{_SKOS}definition",
        "http://purl.org/dc/terms/description",
        "http://purl.org/dc/elements/1.1/description",
        *(f"{prefix}description" for prefix in _SCHEMA),
    }
)
_WHOLE = frozenset(
    _XSD + name
    for name in "integer int long short byte nonNegativeInteger positiveInteger negativeInteger "
    "nonPositiveInteger unsignedInt unsignedLong unsignedShort unsignedByte".split()
)
_DECIMAL = frozenset(_XSD + name for name in ("decimal", "double", "float"))
#: The rank of a name in a language that was not asked for: it serves only where there is no other.
_FOREIGN = 1000
#: Lines that are parsed at a time. Those of a batch with an error are parsed again, each by itself.
_BATCH = 2_000
_LINE = re.compile(r"line (\d+)")
#: Where in the file an error is, in the words of the parsers.
_POSITION = re.compile(r"\(?(?:at|on|between)? ?line \d+.*|\AParser error (?:at|between) [^:]*: ")
#: Characters of an error that are shown at its beginning and at its end: the name in it may be as long as the file.
_SHOWN = 150


def _read_rdf(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None],
    *,
    syntax: Literal["N_TRIPLES", "TURTLE", "RDF_XML"],
) -> None:
    """Read an RDF file. Raises UnreadableFile, BadRows, MissingExtra."""
    with open_graph_file(path, report_progress) as file:
        require_packages("rdf", "pyoxigraph", part="pyoxigraph, which reads RDF,")
        import pyoxigraph

        reader = _StatementReader(sink, options.languages, errors, path)
        if syntax == "N_TRIPLES":
            quads = _parse_lines(file, errors)
        else:
            form = getattr(pyoxigraph.RdfFormat, syntax)
            base = path.absolute().as_uri()
            quads = _with_progress(pyoxigraph.parse(file.file, form, base_iri=base), file)
        try:
            for quad in quads:
                reader.read_statement(quad.subject, quad.predicate.value, quad.object)
        except SyntaxError as error:
            raise UnreadableFile(
                f"{path}: {_error_message(error)}",
                "The rest of the file cannot be read, so --skip-bad does not help; "
                "in N-Triples bad lines can be skipped",
            ) from error


def _with_progress(quads: Iterable[Any], file: GraphFile) -> Iterator[Any]:
    for number, quad in enumerate(quads):
        if not number % 10_000:
            file.report_progress(file.raw.tell())
        yield quad


def _parse_lines(file: GraphFile, errors: RowErrors) -> Iterator[Any]:
    """Parse N-Triples, in which each line stands for itself."""
    import pyoxigraph

    form = pyoxigraph.RdfFormat.N_TRIPLES
    lines = file.read_lines(errors)
    first = 1
    while batch := list(islice(lines, _BATCH)):
        try:
            yield from list(pyoxigraph.parse("".join(batch), form))
        except SyntaxError:
            for number, line in enumerate(batch, first):
                try:
                    yield from list(pyoxigraph.parse(line, form))
                except SyntaxError as error:
                    errors.add(file.path, number, _error_message(error, with_line=False))
        first += len(batch)


def _error_message(error: SyntaxError, with_line: bool = True) -> str:
    message = str(error.msg or error)
    line = error.lineno or (int(match[1]) if (match := _LINE.search(message)) else None)
    message = _POSITION.sub("", " ".join(message.split())).strip()
    if len(message) > 2 * _SHOWN:
        message = f"{message[:_SHOWN]} … {message[-_SHOWN:]}"
    return f"line {line:,}: {message}" if line and with_line else message


class _StatementReader:
    """Adds statements to a sink."""

    def __init__(self, sink: GraphSink, languages: tuple[str, ...], errors: RowErrors, path: Path) -> None:
        import pyoxigraph

        self._sink, self._languages, self._errors = sink, languages, errors
        self._named, self._blank = pyoxigraph.NamedNode, pyoxigraph.BlankNode
        self._literal = pyoxigraph.Literal
        self._blank_ids: dict[str, str] = {}
        self._file_name = path.name

    def read_statement(self, subject: Any, predicate: str, object: Any) -> None:
        """Add a statement; statements about statements are left out."""
        if not isinstance(subject, (self._named, self._blank)) or not isinstance(
            object, (self._named, self._blank, self._literal)
        ):
            self._errors.omit("statements about statements")
            return
        id = self._id(subject)
        if isinstance(object, self._literal):
            self._add_literal(id, predicate, object)
        elif predicate == TYPE and isinstance(object, self._named):
            self._sink.add_node(id, types=[object.value])
        else:
            self._sink.add_edge(id, predicate, self._id(object))

    def _id(self, node: Any) -> str:
        if isinstance(node, self._named):
            return str(node.value)
        # Two files may use the same label for two nodes, so the id has the file's name.
        return self._blank_ids.setdefault(node.value, f"_:{self._file_name}/{len(self._blank_ids) + 1}")

    def _add_literal(self, id: str, predicate: str, literal: Any) -> None:
        text = str(literal.value)
        preference = self._preference(literal.language or "")
        if predicate in NAMES and text.strip():
            rank = preference * len(NAMES) + NAMES.index(predicate) if preference >= 0 else _FOREIGN
            self._sink.add_node(id, name=text.strip(), rank=rank)
        elif preference < 0:
            self._errors.omit(f"texts in other languages than {', '.join(self._languages)}")
        elif predicate in ALIASES:
            self._sink.add_node(id, aliases=[text.strip()])
        elif predicate in TEXTS:
            self._sink.add_node(id, text=text.strip())
        else:
            self._sink.add_node(id, properties={predicate: _literal_value(text, literal.datatype.value)})

    def _preference(self, language: str) -> int:
        """Return the place of a language among those asked for; no language comes last, -1 is any other."""
        if not language:
            return len(self._languages)
        for place, wanted in enumerate(self._languages):
            if wanted == "*" or language.lower() == wanted or language.lower().startswith(f"{wanted}-"):
                return place
        return -1


def _literal_value(text: str, datatype: str) -> Any:
    """Return a literal as a JSON scalar; one that does not fit its datatype stays text."""
    try:
        if datatype in _WHOLE:
            return int(text)
        if datatype in _DECIMAL:
            number = float(text)
            return number if math.isfinite(number) else text  # JSON has no infinity
    except ValueError:
        return text
    if datatype == f"{_XSD}boolean" and text in {"true", "false", "1", "0"}:
        return text in {"true", "1"}
    return text


def _rdf_format(name: str, syntax: Literal["N_TRIPLES", "TURTLE", "RDF_XML"], *suffixes: str) -> GraphFormat:
    return GraphFormat(
        name,
        partial(_read_rdf, syntax=syntax),
        suffixes,
        ("languages",),
        has_iri_ids=True,
        package="pyoxigraph",
    )


FORMATS = (
    _rdf_format("ntriples", "N_TRIPLES", ".nt"),
    _rdf_format("turtle", "TURTLE", ".ttl"),
    _rdf_format("rdfxml", "RDF_XML", ".rdf", ".owl", ".xml"),
)
