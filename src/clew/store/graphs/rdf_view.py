"""An imported graph as RDF, so that SPARQL can be asked of it. Needs the extra ``rdf`` (pyoxigraph).

The mapping, with the prefixes of :data:`PREFIXES`. A name stands in an IRI with its letters, digits, ``_``, ``-`` and
``.`` as they are and every other character percent-encoded: ``directed by`` is ``r:directed%20by``.

===================================  ======================================================================
``node:7``                           the node of row 7
``node:7 r:directed_by node:2``      an edge
``node:7 clew:id "tt0032138"``       its id in the files of the graph (in clew: ``films:tt0032138``)
``node:7 clew:name "Nine Lanterns"`` its name, as clew shows it; ``clew:alias`` for each alias
``node:7 clew:folded-name "..."``    its name and each alias as names are compared (``fold_name``)
``node:7 clew:name-number 1935.0``   a name that is a number or a day, like ``n:``; ``clew:name-year`` like ``y:``,
                                     ``clew:name-day`` like ``d:``
``node:7 clew:type "film"``          each of its types
``node:7 clew:text "..."``           its text, where it has one
``node:7 p:released "1935-04-02"``   a value of a property, as it is written: a plain literal
``node:7 f:released "1935 04 02"``   the value as texts are compared (``fold_name``)
``node:7 n:released 1935.2493``      the value as a number, xsd:double, where ``parse_number`` reads one
``node:7 y:released 1935.0``         the same, but a day is the number of its year
``node:7 d:released "1935-04-02"``   the value as xsd:date, where it is a day
===================================  ======================================================================

The engine (:mod:`clew.triples.engine.predicates`) reads values with the same functions, so its tests are exactly:

* ``=`` with a text, ``contains``, ``says``: on ``f:``, whose literal equals the folded text, contains it, or contains
  it between blanks.
* Comparisons and ``=`` with a number that has a fraction, or with a day as its number: on ``n:``.
* With a whole number, which may be a year: on ``y:``. So "after 1990" is after the last day of 1990.
* Between a whole number and a day: ``>=`` a whole number is the same on ``n:`` and ``y:``, so ``n:`` serves. Between
  a day and a whole number: a value of ``y:`` between both, or a ``d:`` on or after the day and before the year's end.

Left out are the properties of edges, and the difference between a number and a text that is written alike. Values of
a node that are written alike are one triple.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from clew.core.arrays import write_manifest
from clew.core.errors import UsageError, require_packages
from clew.core.text import encode_iri_name, fold_name, parse_number, read_count, scalar_text

if TYPE_CHECKING:
    import pyoxigraph

    from clew.core.protocols import ProgressCallback, PropertyGraph
    from clew.core.types import Entity

_BASE = "urn:clew:"
_NODE, _RELATION, _PROPERTY = f"{_BASE}node:", f"{_BASE}relation:", f"{_BASE}property:"
_NUMBER, _YEAR, _DAY, _FOLDED = f"{_BASE}number:", f"{_BASE}year:", f"{_BASE}day:", f"{_BASE}folded:"
_XSD = "http://www.w3.org/2001/XMLSchema#"

TYPE, NAME, ALIAS, ID, TEXT = (f"{_BASE}{word}" for word in ("type", "name", "alias", "id", "text"))
FOLDED_NAME = f"{_BASE}folded-name"
NAME_NUMBER, NAME_YEAR, NAME_DAY = (f"{_BASE}name-{word}" for word in ("number", "year", "day"))
#: The prefixes that a query over a graph need not declare.
PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "clew": _BASE,
        "node": _NODE,
        "r": _RELATION,
        "p": _PROPERTY,
        "n": _NUMBER,
        "y": _YEAR,
        "d": _DAY,
        "f": _FOLDED,
        "xsd": _XSD,
    }
)

#: Changing the mapping changes this name, and the stores of every graph are rebuilt.
MAKER = "rdf/1"
MANIFEST = "rdf.json"
#: Nodes, and edges, whose triples are in memory at once.
_NODE_BATCH, _EDGE_BATCH = 1 << 12, 1 << 15
#: Bytes that the loader is given at once.
_PART = 1 << 25
#: Seconds between two reports of progress.
_REPORT_INTERVAL = 0.5
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
#: What a name that is a number or a day may begin with.
_NUMBER_STARTS = frozenset("0123456789+-. \t")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")

# Names as IRIs


def node_iri(row: int) -> str:
    """Return the IRI of the node of a row."""
    return f"{_NODE}{row}"


def relation_iri(name: str) -> str:
    """Return the IRI of a relation.

    >>> relation_iri("directed by"), relation_iri("50% réel")
    ('urn:clew:relation:directed%20by', 'urn:clew:relation:50%25%20réel')
    """
    return _RELATION + encode_iri_name(name)


def property_iri(name: str) -> str:
    """Return the IRI by which a node has the values of a property as they are written."""
    return _PROPERTY + encode_iri_name(name)


def number_iri(name: str) -> str:
    """Return the IRI by which a node has the values of a property as numbers."""
    return _NUMBER + encode_iri_name(name)


def year_iri(name: str) -> str:
    """Return the IRI by which a node has the values of a property as numbers, days as the number of their year."""
    return _YEAR + encode_iri_name(name)


def day_iri(name: str) -> str:
    """Return the IRI by which a node has those values of a property that are days."""
    return _DAY + encode_iri_name(name)


def folded_iri(name: str) -> str:
    """Return the IRI by which a node has the values of a property as texts are compared."""
    return _FOLDED + encode_iri_name(name)


def row_of(iri: str) -> int | None:
    """Return the row of the node with that IRI; None for an IRI of something else.

    >>> row_of("urn:clew:node:7"), row_of("urn:clew:relation:7")
    (7, None)
    """
    digits = iri.removeprefix(_NODE)
    return read_count(digits) if digits != iri and digits.isascii() else None


def name_of(iri: str) -> str | None:
    """Return the name of the relation or property with that IRI; None for an IRI of something else.

    >>> name_of("urn:clew:relation:directed%20by"), name_of("urn:clew:number:year"), name_of("urn:clew:name")
    ('directed by', 'year', None)
    """
    for prefix in (_RELATION, _PROPERTY, _NUMBER, _YEAR, _DAY, _FOLDED):
        if iri.startswith(prefix):
            try:
                return unquote(iri[len(prefix) :], errors="strict")
            except UnicodeDecodeError:
                return None
    return None


# The store


def open_rdf_store(graph: PropertyGraph, progress: ProgressCallback | None = None) -> pyoxigraph.Store:
    """Return a store in memory of the triples of an imported graph.

    ``progress`` is called with the number of nodes and edges done, and the total. Raises UsageError for a mounted
    graph, and MissingExtra.
    """
    store: pyoxigraph.Store = _import_pyoxigraph().Store()
    _load(store, graph, progress)
    return store


def build_rdf_store(graph: PropertyGraph, folder: Path, progress: ProgressCallback | None = None) -> None:
    """Build a store of the triples of an imported graph in an empty folder; otherwise as :func:`open_rdf_store`."""
    store = _import_pyoxigraph().Store(str(folder))
    _load(store, graph, progress)
    store.flush()
    write_manifest(folder / MANIFEST, {"maker": MAKER})


def read_rdf_store(folder: Path) -> pyoxigraph.Store | None:
    """Open the store in a folder, read-only; None where there is none, or one of another version of the mapping.

    Several processes may have it open at once. Raises MissingExtra.
    """
    pyoxigraph = _import_pyoxigraph()
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return pyoxigraph.Store.read_only(str(folder)) if manifest["maker"] == MAKER else None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def rdf_folder(derived: Path, digest: str) -> Path:
    """Return the folder of the store of a graph."""
    return derived / "rdf" / digest


def delete_stale_stores(derived: Path, digests: Sequence[str], unfinished_age: float) -> None:
    """Delete the stores of graphs other than those with one of ``digests``, and unfinished ones in which nothing was
    written for ``unfinished_age`` seconds."""
    for folder in (derived / "rdf").glob("*"):
        digest, _, unfinished = folder.name.partition(".")
        in_progress = unfinished and time.time() - folder.stat().st_mtime < unfinished_age
        if digest not in digests or (unfinished and not in_progress):
            shutil.rmtree(folder, ignore_errors=True)


def _import_pyoxigraph() -> Any:
    require_packages("rdf", "pyoxigraph", part="pyoxigraph, which answers SPARQL,")
    import pyoxigraph

    return pyoxigraph


def _load(store: pyoxigraph.Store, graph: PropertyGraph, progress: ProgressCallback | None) -> None:
    from pyoxigraph import RdfFormat

    if graph.is_mounted:
        raise UsageError(
            f"'{graph.name}' is a mounted graph, whose triples are not on this machine",
            "Ask it where it is, or add it from files: clew graph add FILE",
        )
    # In parts: given all at once, the loader takes three times the memory and is no faster. What is generated here is
    # valid, so it need not check the IRIs.
    for part in _join_chunks(generate_triples(graph, progress)):
        store.bulk_load(input=part, format=RdfFormat.N_TRIPLES, lenient=True)


def _join_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks joined to parts of about ``_PART`` bytes, which the loader sorts in memory."""
    part: list[bytes] = []
    size = 0
    for chunk in chunks:
        part.append(chunk)
        size += len(chunk)
        if size >= _PART:
            yield b"".join(part)
            part, size = [], 0
    yield b"".join(part)


# Triples


def generate_triples(graph: PropertyGraph, progress: ProgressCallback | None = None) -> Iterator[bytes]:
    """Yield the triples of an imported graph as N-Triples, many lines at a time: nodes by row, edges by relation."""
    relations = {name: relation.edges for name, relation in graph.relations().items()}
    total, reported = graph.size + sum(relations.values()), time.monotonic()
    done = 0
    for chunk, count in _all_chunks(graph, list(relations)):
        yield chunk
        done += count
        if progress and (done == total or time.monotonic() - reported > _REPORT_INTERVAL):
            progress(done, total)
            reported = time.monotonic()


def _all_chunks(graph: PropertyGraph, relations: list[str]) -> Iterator[tuple[bytes, int]]:
    """Yield lines, with the number of nodes or edges that they are of."""
    for first in range(0, graph.size, _NODE_BATCH):
        entities = graph.entities(np.arange(first, min(first + _NODE_BATCH, graph.size)))
        lines: list[str] = []
        for row, entity in enumerate(entities, first):
            _add_node_lines(lines, row, entity, len(graph.name) + 1)
        yield "".join(lines).encode(), len(entities)
    for relation in relations:
        edges = graph.adjacency(relation)
        assert edges is not None  # an imported graph lists its edges
        heads = np.arange(graph.size, dtype=np.uint32) if edges.heads is None else edges.heads
        sources = np.repeat(heads, np.diff(edges.starts))
        line = f"<{_NODE}%d> <{relation_iri(relation).replace('%', '%%')}> <{_NODE}%d> .\n"
        for first in range(0, len(sources), _EDGE_BATCH):
            part = slice(first, first + _EDGE_BATCH)
            pairs = np.column_stack([sources[part], edges.tails[part]])
            yield (line * len(pairs) % tuple(pairs.ravel().tolist())).encode(), len(pairs)


def _add_node_lines(lines: list[str], row: int, entity: Entity, id_start: int) -> None:
    """Add the lines of a node; its external id starts at ``id_start`` of its id."""
    subject = f"<{_NODE}{row}> "
    lines.append(f"{subject}{_literal(ID, entity.id[id_start:])}{subject}{_literal(NAME, entity.name)}")
    lines += [subject + _literal(ALIAS, alias) for alias in entity.aliases]
    folded_names = {fold_name(name) for name in (entity.name, *entity.aliases)}
    lines += [subject + _literal(FOLDED_NAME, name) for name in folded_names]
    for name in (entity.name, *entity.aliases):
        if name[:1] in _NUMBER_STARTS:
            lines += [
                subject + literal for literal in _number_literals(NAME_NUMBER, NAME_YEAR, NAME_DAY, name)
            ]
    lines += [subject + _literal(TYPE, type) for type in (entity.type, *entity.more_types) if type]
    if entity.text:
        lines.append(subject + _literal(TEXT, entity.text))
    for property, content in entity.properties.items():
        for value in content if isinstance(content, tuple) else (content,):
            lines += [subject + literal for literal in _value_literals(property, value)]


@lru_cache(1 << 14, typed=True)  # years, colours and the like repeat
def _value_literals(property: str, value: Any) -> tuple[str, ...]:
    """Return the ends of the lines of a value: predicates and literals."""
    encoded, text = encode_iri_name(property), scalar_text(value)
    literals = [_literal(_PROPERTY + encoded, text), _literal(_FOLDED + encoded, fold_name(text))]
    literals += _number_literals(_NUMBER + encoded, _YEAR + encoded, _DAY + encoded, value)
    return tuple(literals)


def _number_literals(number_iri: str, year_iri: str, day_iri: str, value: Any) -> list[str]:
    """Return the ends of the lines of a value that is a number or a day; none of another value."""
    number = parse_number(value)
    if math.isnan(number):
        return []
    # A number is read from the text of a day only if there is such a day.
    day = _DATE.match(value.strip()) if isinstance(value, str) else None
    year = math.floor(number) if day else number
    literals = [
        _literal(number_iri, _format_double(number), "double"),
        _literal(year_iri, _format_double(year), "double"),
    ]
    return [*literals, _literal(day_iri, day[0], "date")] if day else literals


def _literal(predicate: str, text: str, datatype: str = "") -> str:
    """Return a line without its subject."""
    suffix = f"^^<{_XSD}{datatype}>" if datatype else ""
    return f'<{predicate}> "{escape_literal(text)}"{suffix} .\n'


def escape_literal(text: str) -> str:
    """Return a text as it stands between the quotes of a literal in N-Triples."""
    return text.translate(_ESCAPES)


def _format_double(number: float) -> str:
    return repr(float(number)) if math.isfinite(number) else "INF" if number > 0 else "-INF"
