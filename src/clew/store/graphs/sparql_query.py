"""SPARQL queries that a person writes over a graph: their results with the names of nodes, and errors with places.

Over an imported graph a query runs in its store of :mod:`clew.store.graphs.rdf_view`, over a mounted graph where that
graph is. Only SELECT, ASK, CONSTRUCT and DESCRIBE are allowed. Over a store on this machine, SERVICE is refused:
it would send parts of the query elsewhere.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clew.core.errors import Damaged, RemoteError, UsageError
from clew.store.graphs import rdf_view
from clew.store.sparql.endpoint import Endpoint, OxigraphStore
from clew.store.sparql.mount_options import Term

if TYPE_CHECKING:
    import pyoxigraph

    from clew.core.protocols import PropertyGraph
    from clew.store.sparql.mounted_graph import MountedGraph

_Result = TypeVar("_Result")

_FORMS = frozenset({"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"})
_UPDATES = frozenset("INSERT DELETE LOAD CLEAR CREATE DROP COPY MOVE ADD WITH".split())
_FORM_HINT = 'A query looks like this: SELECT ?name WHERE { ?film clew:type "film" ; clew:name ?name }'
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|#[^\n]*"
    r"|<(?P<iri>[^<>\"{}|^`\\\s]*)>"
    r"|[?$]\w+"
    r"|(?P<prefix>[\w.-]*):(?P<local>(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\.)*)"
    r"|(?P<word>\w+)",
    re.DOTALL,
)
_CODE_POINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_PLACE = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_VOCABULARY = (
    rdf_view.ID,
    rdf_view.NAME,
    rdf_view.ALIAS,
    rdf_view.FOLDED_NAME,
    rdf_view.TYPE,
    rdf_view.TEXT,
)


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """The name of a node and its id in clew, such as ``films:tt0032138``."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query. Terms are as in SPARQL's JSON results: ``type``, ``value``, perhaps ``datatype``.

    ``solutions`` are those of a SELECT query, ``answer`` is that of ASK, ``triples`` are those of CONSTRUCT and
    DESCRIBE. ``more``: there are further solutions or triples, which the limit cut off. ``nodes`` has the names of
    the nodes in the result by IRI. ``warnings`` name the relations and properties that the graph does not have.
    """

    variables: tuple[str, ...] = ()
    solutions: tuple[Mapping[str, Term], ...] = ()
    answer: bool | None = None
    triples: tuple[tuple[Term, Term, Term], ...] | None = None
    more: bool = False
    nodes: Mapping[str, NodeLabel] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return SPARQL 1.1 JSON results with ``nodes``, ``more`` and ``warnings`` beside them; triples as a list."""
        result: dict[str, Any] = {"head": {"vars": list(self.variables)} if self.variables else {}}
        if self.answer is not None:
            result["boolean"] = self.answer
        elif self.triples is not None:
            result["triples"] = [
                {"subject": subject, "predicate": predicate, "object": object}
                for subject, predicate, object in self.triples
            ]
        else:
            result["results"] = {"bindings": [dict(solution) for solution in self.solutions]}
        nodes = {iri: {"name": node.name, "id": node.id} for iri, node in self.nodes.items()}
        return result | {"nodes": nodes, "more": self.more, "warnings": list(self.warnings)}

    def to_ntriples(self) -> str:
        """Return the triples as N-Triples, "" where there are none."""
        return "".join(f"{' '.join(map(format_term, triple))} .\n" for triple in self.triples or ())

    def iris(self) -> Iterator[str]:
        """Yield the IRIs of the result, repeatedly where they occur repeatedly."""
        for terms in (*(solution.values() for solution in self.solutions), *(self.triples or ())):
            yield from (term["value"] for term in terms if term["type"] == "uri")


def query_imported_graph(
    graph: PropertyGraph,
    store: pyoxigraph.Store,
    query: str,
    limit: int | None = None,
    timeout: float | None = None,
) -> QueryResult:
    """Return the result of a query over an imported graph, whose ``store`` is that of its RDF view.

    Raises UsageError for an update, SERVICE, a syntax error (with its place), and after ``timeout`` seconds.
    """
    check_query(query)
    try:
        result = _query_store(store, query, limit, timeout, rdf_view.PREFIXES)
    except OSError as error:
        raise Damaged(
            f"the RDF store of the graph '{graph.name}' cannot be read ({error})",
            "Delete the folder derived/rdf of the base: it is built again",
        ) from error
    rows = {iri: row for iri in result.iris() if (row := rdf_view.row_of(iri)) is not None}
    rows = {iri: row for iri, row in rows.items() if row < graph.size}
    entities = graph.entities(np.array(list(rows.values()), dtype=np.int64))
    nodes = {iri: NodeLabel(entity.name, entity.id) for iri, entity in zip(rows, entities, strict=True)}
    # The triples of CONSTRUCT may have names that the graph does not have.
    warnings = () if result.triples else tuple(_unknown_names(graph, query))
    return _with_nodes(result, nodes, warnings)


def query_mounted_graph(
    graph: MountedGraph, query: str, limit: int | None = None, timeout: float | None = None
) -> QueryResult:
    """Return the result of a query over a mounted graph, which is asked of its endpoint or store as it is written.

    An endpoint is asked for solutions and yes or no only, with the time limit of its mount. Raises UsageError as
    :func:`query_imported_graph` does, and RemoteError.
    """
    form = check_query(query, remote=isinstance(graph.endpoint, Endpoint))
    if isinstance(graph.endpoint, OxigraphStore):
        try:
            result = _query_store(graph.endpoint.open_store(), query, limit, timeout, {})
        except OSError as error:
            raise RemoteError(
                f"{graph.endpoint.folder} cannot be read ({error})", "Was it changed meanwhile?"
            ) from error
    elif isinstance(graph.endpoint, Endpoint) and form in ("SELECT", "ASK"):
        result = _read_json_results(graph.endpoint.query(query), limit, graph.endpoint.url)
    else:
        raise UsageError(
            f"{form} is not sent to the endpoint of a mounted graph",
            "Ask with SELECT, or ask the endpoint itself",
        )
    labels = graph.labels(dict.fromkeys(result.iris()))
    return _with_nodes(result, {iri: NodeLabel(name, f"{graph.name}:{iri}") for iri, name in labels.items()})


def _with_nodes(
    result: QueryResult, nodes: Mapping[str, NodeLabel], warnings: tuple[str, ...] = ()
) -> QueryResult:
    return QueryResult(
        result.variables, result.solutions, result.answer, result.triples, result.more, nodes, warnings
    )


# Checking a query


def _tokens(query: str) -> Iterator[re.Match[str]]:
    """Yield the IRIs, prefixed names and words of a query, which are not inside texts and comments."""
    decoded = _CODE_POINT.sub(_decode_code_point, query)
    return (token for token in _TOKEN.finditer(decoded) if token.lastgroup is not None)


def _decode_code_point(match: re.Match[str]) -> str:
    number = int(match[1] or match[2], 16)
    return chr(number) if number < 0x110000 else match[0]


def check_query(query: str, remote: bool = False) -> str:
    """Return the form of a query. Raises UsageError for an update, and unless ``remote`` for SERVICE."""
    words = [token["word"] for token in _tokens(query) if token["word"]]
    first = next((word for word in words if word.upper() not in ("PREFIX", "BASE")), "")
    form = first.upper()
    if form in _UPDATES:
        raise UsageError(
            f"{form} is an update, and queries do not change a graph",
            "Change its files, and add them again: clew graph add FILE",
        )
    if form not in _FORMS:
        problem = f"a query does not begin with '{first}'" if first else "the query is empty"
        raise UsageError(problem, _FORM_HINT)
    if not remote and "SERVICE" in map(str.upper, words):
        raise UsageError(
            "SERVICE would send a part of the query to another machine",
            "Mount that endpoint and ask it: clew graph mount NAME URL",
        )
    return form


def _unknown_names(graph: PropertyGraph, query: str) -> Iterator[str]:
    """Yield a warning for each relation, property and word of clew in a query that the graph does not have."""
    tokens = list(_tokens(query))
    declared = {
        token["prefix"] for before, token in pairwise(tokens) if (before["word"] or "").upper() == "PREFIX"
    }
    prefixes = {prefix: iri for prefix, iri in rdf_view.PREFIXES.items() if prefix not in declared}
    iris = dict.fromkeys(
        token["iri"]
        if token["iri"] is not None
        else prefixes[token["prefix"]] + re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)\.+\Z", "", token["local"]))
        for token in tokens
        if token["iri"] is not None or token["prefix"] in prefixes
    )
    for iri in iris:
        name = rdf_view.name_of(iri)
        if name is None:
            word = iri.removeprefix(rdf_view.PREFIXES["clew"])
            if word != iri and ":" not in word and iri not in _VOCABULARY:
                known = ", ".join(word.rpartition(":")[2] for word in _VOCABULARY)
                yield f"there is no clew:{word}; known: {known}"
        elif iri == rdf_view.relation_iri(name):
            if name not in graph.relations():
                yield _describe_unknown(graph, "relation", name, graph.relations(), rdf_view.relation_iri)
        elif (column := graph.property_values(name)) is not None and not len(column.rows):
            yield _describe_unknown(graph, "property", name, graph.properties(), rdf_view.property_iri)


def _describe_unknown(
    graph: PropertyGraph, kind: str, name: str, known: Iterable[str], make_iri: Callable[[str], str]
) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = (
        f"did you mean {_shorten_iri(make_iri(near[0]))}?" if near else f"see clew graph schema {graph.name}"
    )
    return f"the graph '{graph.name}' has no {kind} '{name}'; {hint}"


def _shorten_iri(iri: str) -> str:
    """Return the IRI of a relation or property with its prefix, in the form in which a query can have it."""
    prefix, start = max(
        rdf_view.PREFIXES.items(), key=lambda item: len(item[1]) if iri.startswith(item[1]) else 0
    )
    local = iri[len(start) :]
    return f"{prefix}:{local}" if re.fullmatch(r"(?:[\w-]|%..)+(?:\.(?:[\w-]|%..)+)?", local) else f"<{iri}>"


# Running a query


def _query_store(
    store: pyoxigraph.Store,
    query: str,
    limit: int | None,
    timeout: float | None,
    prefixes: Mapping[str, str],
) -> QueryResult:
    def run() -> QueryResult:
        return _read_results(store.query(query, prefixes=dict(prefixes)), limit)

    try:
        return _run_with_timeout(run, timeout)
    except SyntaxError as error:
        raise _syntax_error(query, error) from None


def _run_with_timeout(task: Callable[[], _Result], timeout: float | None) -> _Result:
    """Return the result of a task. It runs in a thread that the process does not wait for, so that a long one can be
    interrupted. Raises UsageError after ``timeout`` seconds."""
    results: list[_Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(task())
        except (SyntaxError, OSError, ValueError, RuntimeError) as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise UsageError(
            f"the query took more than {timeout:g} seconds", "Narrow it down, or give it more time: --timeout"
        )
    if errors:
        raise errors[0]
    return results[0]


def _read_results(results: Any, limit: int | None) -> QueryResult:
    import pyoxigraph

    if isinstance(results, pyoxigraph.QueryBoolean):
        return QueryResult(answer=bool(results))
    items = list(islice(results, None if limit is None else limit + 1))
    more = limit is not None and len(items) > limit
    items = items[:limit]
    if isinstance(results, pyoxigraph.QueryTriples):
        triples = tuple(
            (_read_term(item.subject), _read_term(item.predicate), _read_term(item.object)) for item in items
        )
        return QueryResult(triples=triples, more=more)
    variables = tuple(variable.value for variable in results.variables)
    solutions = tuple(
        {name: _read_term(term) for name in variables if (term := item[name]) is not None} for item in items
    )
    return QueryResult(variables, solutions, more=more)


def _read_term(term: Any) -> Term:
    import pyoxigraph

    if isinstance(term, pyoxigraph.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, pyoxigraph.BlankNode):
        return {"type": "bnode", "value": term.value}
    if not isinstance(term, pyoxigraph.Literal):
        return {"type": "triple", "value": str(term)}
    literal = {"type": "literal", "value": term.value}
    if term.language:
        return literal | {"xml:lang": term.language}
    datatype = term.datatype.value
    return literal if datatype == f"{rdf_view.PREFIXES['xsd']}string" else literal | {"datatype": datatype}


def _read_json_results(document: Mapping[str, Any], limit: int | None, url: str) -> QueryResult:
    try:
        if "boolean" in document:
            return QueryResult(answer=bool(document["boolean"]))
        solutions = tuple(dict(solution) for solution in document["results"]["bindings"])
        variables = tuple(map(str, document["head"]["vars"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RemoteError(f"{url} answered with something other than SPARQL results") from error
    return QueryResult(variables, solutions[:limit], more=limit is not None and len(solutions) > limit)


def format_term(term: Term) -> str:
    """Return a term as N-Triples has it."""
    value = term["value"]
    if term["type"] == "uri":
        return f"<{value}>"
    if term["type"] == "bnode":
        return f"_:{value}"
    if term["type"] == "triple":
        return value
    escaped = rdf_view.escape_literal(value)
    if "xml:lang" in term:
        return f'"{escaped}"@{term["xml:lang"]}'
    return f'"{escaped}"^^<{term["datatype"]}>' if "datatype" in term else f'"{escaped}"'


def _syntax_error(query: str, error: SyntaxError) -> UsageError:
    """Return the error for a query that cannot be parsed: its place, and the line with a mark below the place."""
    match = _PLACE.search(str(error.msg or error))
    if match is None:
        return UsageError(f"the query cannot be read: {error}", _FORM_HINT)
    number, column, expectation = int(match[1]), int(match[2]), match[3]
    lines = query.split("\n")
    line = lines[number - 1] if number <= len(lines) else ""
    # Among the tokens that would be right there, the parser lists what it knows to be wrong, as sentences.
    reasons = re.findall(r"[A-Z][a-z]+ \w[\w ]+", expectation)
    rest = line[column - 1 :].split()
    near = f"unexpected '{rest[0]}'" if rest else "something is missing here"
    problem = reasons[0].strip() if reasons else near
    if problem == "Prefix not found" and (name := re.search(r"([\w.-]*:)\S*\Z", line[: column - 1])):
        column, problem = name.start() + 1, f"the prefix {name[1]} is not declared"
    mark = "".join("\t" if character == "\t" else " " for character in line[: column - 1]) + "^"
    return UsageError(
        f"the query cannot be read at line {number}, column {column}: {problem}\n    {line}\n    {mark}"
    )
