"""RDF: N-Triples, Turtle, RDF/XML. Needs the extra ``rdf`` (pyoxigraph).

Resources become nodes whose ids are their IRIs; ``rdf:type`` the type; ``rdfs:label`` and the like the name; what
``skos:altLabel`` says, and the other labels, aliases; ``rdfs:comment`` and the like the text; other literals
properties; other statements edges. A text with a language tag is taken in the languages asked for, in their order of
preference, and without a tag; a label in another language serves where there is no other. Blank nodes are numbered
in the order in which they occur.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import MissingExtra, UnreadableFile
from clew.core.protocols import GraphSink
from clew.parse.graphs.files import GraphFile, RowErrors

if TYPE_CHECKING:
    from clew.parse.graphs.reader import Options

_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
_XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
#: What names a resource, the most telling first.
NAMES = (f"{_RDFS}label", f"{_SKOS}prefLabel", *(f"{one}name" for one in _SCHEMA))
ALIASES = frozenset({f"{_SKOS}altLabel", *(f"{one}alternateName" for one in _SCHEMA)})
TEXTS = frozenset(
    {
        f"{_RDFS}comment",
        f"{_SKOS}definition",
        "http://purl.org/dc/terms/description",
        "http://purl.org/dc/elements/1.1/description",
        *(f"{one}description" for one in _SCHEMA),
    }
)
_WHOLE = frozenset(
    _XSD + one
    for one in "integer int long short byte nonNegativeInteger positiveInteger negativeInteger "
    "nonPositiveInteger unsignedInt unsignedLong unsignedShort unsignedByte".split()
)
_DECIMAL = frozenset(_XSD + one for one in ("decimal", "double", "float"))
#: The rank of a name in a language that was not asked for: it serves only where there is no other.
_FOREIGN = 1000
#: Lines that are parsed at a time. Those of a batch with a fault in it are parsed again one by one.
_BATCH = 2_000
_LINE = re.compile(r"line (\d+)")


def read_rdf(source: GraphFile, sink: GraphSink, options: Options, faults: RowErrors) -> None:
    """Read an RDF file. Raises UnreadableFile, BadRows, MissingExtra."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtra("pyoxigraph, which reads RDF,", "rdf") from error
    taking = _Statements(sink, options.languages, faults, source.path)
    if options.format == "ntriples":
        quads = _lines(source, faults)
    else:
        form = {"turtle": pyoxigraph.RdfFormat.TURTLE, "rdfxml": pyoxigraph.RdfFormat.RDF_XML}[options.format]
        base = source.path.absolute().as_uri()
        quads = _counted(pyoxigraph.parse(source.file, form, base_iri=base), source)
    try:
        for quad in quads:
            taking.take(quad.subject, quad.predicate.value, quad.object)
    except SyntaxError as error:
        raise UnreadableFile(
            f"{source.path}: {_said(error)}",
            "What follows cannot be told apart from it, so --skip-bad cannot leave it out; N-Triples can be skipped",
        ) from error


def _counted(quads: Iterable[Any], source: GraphFile) -> Iterator[Any]:
    for number, quad in enumerate(quads):
        if not number % 10_000:
            source.report_progress(source.raw.tell())
        yield quad


def _lines(source: GraphFile, faults: RowErrors) -> Iterator[Any]:
    """Parse N-Triples, whose lines stand each for itself."""
    import pyoxigraph

    form = pyoxigraph.RdfFormat.N_TRIPLES
    lines = source.read_lines(faults)
    first = 1
    while batch := list(islice(lines, _BATCH)):
        try:
            yield from list(pyoxigraph.parse("".join(batch), form))
        except SyntaxError:
            for number, line in enumerate(batch, first):
                try:
                    yield from list(pyoxigraph.parse(line, form))
                except SyntaxError as error:
                    faults.add(source.path, number, _said(error, with_line=False))
        first += len(batch)


def _said(error: SyntaxError, with_line: bool = True) -> str:
    said = str(error.msg or error)
    line = error.lineno or (int(found[1]) if (found := _LINE.search(said)) else None)
    said = re.sub(r"\s*(?:\(?(?:at|on|between)? ?line \d+.*|Parser error (?:at|between) [^:]*: )", "", said)
    return f"line {line:,}: {said}" if line and with_line else said


class _Statements:
    """Gives statements to a sink."""

    def __init__(self, sink: GraphSink, languages: tuple[str, ...], faults: RowErrors, path: Path) -> None:
        import pyoxigraph

        self._sink, self._languages, self._faults = sink, languages, faults
        self._named, self._blank = pyoxigraph.NamedNode, pyoxigraph.BlankNode
        self._literal = pyoxigraph.Literal
        self._blanks: dict[str, str] = {}
        self._scope = path.name

    def take(self, subject: Any, predicate: str, object: Any) -> None:
        """Take one statement."""
        if not isinstance(subject, (self._named, self._blank)) or not isinstance(
            object, (self._named, self._blank, self._literal)
        ):
            self._faults.omit("statements about statements")
            return
        id = self._id(subject)
        if isinstance(object, self._literal):
            self._take_literal(id, predicate, object)
        elif predicate == TYPE and isinstance(object, self._named):
            self._sink.add_node(id, types=[object.value])
        else:
            self._sink.add_edge(id, predicate, self._id(object))

    def _id(self, node: Any) -> str:
        if isinstance(node, self._named):
            return str(node.value)
        # Two files may use the same label for two things.
        return self._blanks.setdefault(node.value, f"_:{self._scope}/{len(self._blanks) + 1}")

    def _take_literal(self, id: str, predicate: str, literal: Any) -> None:
        said, language = str(literal.value), literal.language or ""
        place = self._preference(language)
        if predicate in NAMES and said.strip():
            rank = place * len(NAMES) + NAMES.index(predicate) if place >= 0 else _FOREIGN
            self._sink.add_node(id, name=said.strip(), rank=rank)
        elif place < 0:
            self._faults.omit(f"texts in other languages than {', '.join(self._languages)}")
        elif predicate in ALIASES:
            self._sink.add_node(id, aliases=[said.strip()])
        elif predicate in TEXTS:
            self._sink.add_node(id, text=said.strip())
        else:
            self._sink.add_node(id, properties={predicate: _value(said, literal.datatype.value)})

    def _preference(self, language: str) -> int:
        """Return the place of a language among those asked for, theirs last that have none; -1 for another."""
        if not language:
            return len(self._languages)
        for place, wanted in enumerate(self._languages):
            if wanted == "*" or language.lower() == wanted or language.lower().startswith(f"{wanted}-"):
                return place
        return -1


def _value(said: str, datatype: str) -> Any:
    """Return a literal as a JSON scalar; one that is not what its datatype says stays text."""
    try:
        if datatype in _WHOLE:
            return int(said)
        if datatype in _DECIMAL:
            number = float(said)
            return number if number - number == 0 else said  # no infinity in JSON
    except ValueError:
        return said
    if datatype == f"{_XSD}boolean" and said in {"true", "false", "1", "0"}:
        return said in {"true", "1"}
    return said
