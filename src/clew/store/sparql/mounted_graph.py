"""A mounted graph: it stays in a SPARQL endpoint or an RDF store, is queried when needed, and never written to.

Resources are nodes, their IRIs ids, properties relations called by their labels. Rows are assigned as nodes are
seen, so they follow no order, and ties must be broken by id. It differs from an imported graph in what a source can
only be asked for if it has an index of it:

* :meth:`MountedGraph.find_by_name` finds a name as it is spelled and in other capitals; without its accents only by a
  table of titles or by the endpoint's search (:mod:`clew.store.sparql.name_lookup`).
* :meth:`MountedGraph.find_similar_names` ranks the results of that search. Without a search, it finds equal names
  only.
* The examples of a relation and the types of its ends are not known. What an endpoint tells about itself (types,
  properties, the number of statements of each, which search it offers) is asked once and stored beside the base until
  the graph is mounted again. A Wikibase, such as Wikidata, lists its properties; neither its types nor the numbers of
  statements are asked for.
* Blank nodes are left out: they cannot be asked for again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Mask, Rows, run_offsets, write_manifest
from clew.core.errors import NotFound, RemoteError, UnreadableFile, UsageError, unknown_name_error
from clew.core.files import create_folder
from clew.core.text import clean_name, iri_label
from clew.core.types import Entity, Property, Relation
from clew.store.sparql.endpoint import Endpoint, OxigraphStore, is_iri
from clew.store.sparql.mount_options import ALIAS, LABEL, TYPE, MountOptions, SparqlSource, Term
from clew.store.sparql.name_lookup import (
    NameLookup,
    detect_service,
    existing_resources,
    is_wikidata,
    split_iris,
    values_clause,
)
from clew.store.sparql.title_table import TitleTable, open_title_table
from clew.store.sparql.wikibase import INSTANCE_OF, WrittenValues, list_properties, write_time, write_values

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, NodeTexts, NodeVectors, Postings, ProgressCallback

_TEXTS = ("http://www.w3.org/2000/01/rdf-schema#comment", "http://schema.org/description")


class MountedGraph:
    """A :class:`clew.core.protocols.PropertyGraph` that is queried by SPARQL.

    ``schema_path`` is the file in which its schema is stored.
    """

    is_mounted = True

    def __init__(
        self,
        name: str,
        endpoint: SparqlSource,
        options: MountOptions,
        schema_path: Path,
        titles: TitleTable | None = None,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self._options, self._schema_path, self._titles = options, schema_path, titles
        self._iris: list[str] = []
        self._rows: dict[str, int] = {}
        self._lock = threading.RLock()
        self._stored_schema: dict[str, Any] | None = None

    @property
    def size(self) -> int:
        """Number of nodes seen so far."""
        return len(self._iris)

    # Schema

    def _schema(self) -> dict[str, Any]:
        """Return the property that gives types, types and properties (IRI -> [label, number]), and the search."""
        with self._lock:
            if self._stored_schema is None:
                try:
                    self._stored_schema = json.loads(self._schema_path.read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    self._stored_schema = self._query_schema()
                    wikidata = is_wikidata(self._stored_schema["properties"])
                    self._stored_schema["lookup"] = detect_service(self.endpoint, self._options, wikidata)
                    create_folder(self._schema_path.parent)
                    write_manifest(self._schema_path, self._stored_schema)
            return self._stored_schema

    def _query_schema(self) -> dict[str, Any]:
        """Ask for types and properties. A Wikibase lists its properties; counting its statements would take hours."""
        if entities := list_properties(self.endpoint):
            labels = self.labels(set(entities.values()))
            named = {iri: labels.get(entity, "") for iri, entity in entities.items()}
            type = INSTANCE_OF if self._options.type_property == TYPE else self._options.type_property
            properties = _distinct_labels(named, dict.fromkeys(named, 0))
            return {"type": type, "types": {}, "properties": properties, "wikibase": True}
        type = self._options.type_property
        types = self.endpoint.select(
            f"SELECT ?x (COUNT(?s) AS ?n) WHERE {{ ?s <{type}> ?x FILTER(isIRI(?x)) }} GROUP BY ?x"
        )
        counts = self.endpoint.select(
            "SELECT ?x (COUNT(*) AS ?n) WHERE { ?s ?x ?o FILTER(isIRI(?s) && isIRI(?o)) } GROUP BY ?x"
        )
        relations = [solution for solution in counts if "x" in solution and solution["x"]["value"] != type]
        return {"type": type, "types": self._label_counts(types), "properties": self._label_counts(relations)}

    def _label_counts(self, solutions: Sequence[Mapping[str, Term]]) -> dict[str, list[Any]]:
        counts = {
            solution["x"]["value"]: int(solution["n"]["value"]) for solution in solutions if "x" in solution
        }
        return _distinct_labels(self.labels(counts), counts)

    def labels(self, iris: Iterable[str]) -> dict[str, str]:
        """Return the best label of each resource that has one."""
        best: dict[str, tuple[int, str]] = {}
        for batch in split_iris([iri for iri in iris if is_iri(iri)]):
            query = (
                f"SELECT ?x ?l WHERE {{ {values_clause('x', batch)} ?x <{LABEL}> ?l "
                f"{self._options.language_filter('l')} }}"
            )
            for solution in self.endpoint.select(query):
                rank = (self._options.language_rank(solution["l"]), clean_name(solution["l"]["value"]))
                iri = solution["x"]["value"]
                best[iri] = min(best.get(iri, rank), rank)
        return {iri: label for iri, (_, label) in best.items()}

    @property
    def type_property(self) -> str:
        """The IRI of the property that gives the types of nodes."""
        return str(self._schema()["type"])

    def type_iris(self, type: str) -> list[str]:
        """Return the IRIs of a type."""
        return [iri for iri, (label, _) in self._schema()["types"].items() if label == type]

    def relation_iri(self, relation: str) -> str:
        """Return the IRI of a relation."""
        return self.relations()[relation].id or relation

    def types(self) -> Mapping[str, int]:
        """Return the node types, with the number of nodes of each; none of a Wikibase, where counting takes hours."""
        return dict(self._schema()["types"].values())

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name; the types of their ends and examples are not known."""
        return {
            label: Relation(number, id="" if label == iri else iri)
            for iri, (label, number) in self._schema()["properties"].items()
        }

    # Nodes

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id. Raises NotFound for a resource that occurs in no statement."""
        iris = []
        for id in ids:
            graph, _, iri = id.partition(":")
            if graph != self.name or not is_iri(iri):
                raise self._not_found(id)
            iris.append(iri)
        new = [iri for iri in dict.fromkeys(iris) if iri not in self._rows]
        if missing := set(new).difference(existing_resources(self.endpoint, new)):
            raise self._not_found(f"{self.name}:{next(iri for iri in new if iri in missing)}")
        return self._assign_rows(iris)

    def _not_found(self, id: str) -> NotFound:
        return NotFound(
            f"no node '{id}' in the graph '{self.name}'",
            f"Ids are {self.name}:IRI, for example {self.name}:http://...",
        )

    def _assign_rows(self, iris: Iterable[str]) -> Rows:
        """Return the rows of resources; those not seen before get new ones."""
        rows = []
        with self._lock:
            for iri in iris:
                if iri not in self._rows:
                    self._rows[iri] = len(self._iris)
                    self._iris.append(iri)
                rows.append(self._rows[iri])
        return np.array(rows, dtype=np.int64)

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""
        return [f"{self.name}:{self._iris[row]}" for row in np.asarray(rows).tolist()]

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order."""
        iris = [self._iris[row] for row in np.asarray(rows).tolist()]
        statements: dict[str, list[tuple[str, Term]]] = {}
        for batch in split_iris(list(dict.fromkeys(iris))):
            query = (
                f"SELECT ?x ?p ?o WHERE {{ {values_clause('x', batch)} ?x ?p ?o "
                f"FILTER(isLiteral(?o) || ?p = <{self.type_property}>) {self._options.language_filter('o')} }}"
            )
            for solution in self.endpoint.select(query):
                pair = (solution["p"]["value"], solution["o"])
                statements.setdefault(solution["x"]["value"], []).append(pair)
        types = self.labels(
            {
                term["value"]
                for pairs in statements.values()
                for iri, term in pairs
                if iri == self.type_property
            }
        )
        has_literals = any("datatype" in term for pairs in statements.values() for _, term in pairs)
        written = write_values(self.endpoint, iris, self.labels) if self._is_wikibase and has_literals else {}
        return [self._entity(iri, statements.get(iri, []), types, written) for iri in iris]

    @property
    def _is_wikibase(self) -> bool:
        return bool(self._schema().get("wikibase"))

    def _entity(
        self,
        iri: str,
        statements: Sequence[tuple[str, Term]],
        type_labels: Mapping[str, str],
        written: WrittenValues,
    ) -> Entity:
        """Build a node from its statements (property, value). Properties of a Wikibase are named by their labels, and
        values are ``written`` for people; its other statements are ignored."""
        names = sorted(
            (self._options.language_rank(value), clean_name(value["value"]))
            for property, value in statements
            if property == LABEL
        )
        name = names[0][1] if names else iri_label(iri)
        aliases = {clean_name(value["value"]) for property, value in statements if property in {LABEL, ALIAS}}
        types = sorted(
            type_labels.get(value["value"], iri_label(value["value"]))
            for property, value in statements
            if property == self.type_property
        )
        properties: dict[str, list[Any]] = {}
        known = self._schema()["properties"] if self._is_wikibase else {}
        for property, value in sorted(statements, key=lambda pair: (pair[0], pair[1]["value"])):
            if property in {LABEL, ALIAS, *_TEXTS, self.type_property}:
                continue
            if not self._is_wikibase:
                properties.setdefault(iri_label(property), []).append(_scalar(value))
            elif property in known:
                scalar = _scalar(value)
                if value.get("datatype", "").endswith("#dateTime"):
                    scalar = write_time(value["value"])
                scalar = written.get((iri, property, value["value"]), scalar)
                properties.setdefault(known[property][0], []).append(scalar)
        return Entity(
            f"{self.name}:{iri}",
            types[0] if types else "",
            name,
            tuple(sorted(aliases - {name})),
            "\n".join(sorted({value["value"] for property, value in statements if property in _TEXTS})),
            {key: values[0] if len(values) == 1 else tuple(values) for key, values in properties.items()},
            tuple(types[1:]),
        )

    def iris(self, rows: Rows) -> list[str]:
        """Return the IRI of each row."""
        return [self._iris[row] for row in np.asarray(rows).tolist()]

    def select_nodes(self, query: str) -> Rows:
        """Return the rows of the resources that the one variable of a SELECT query can be, ascending.

        Raises RemoteError, and UsageError where there are more than the mount lists.
        """
        solutions = self.endpoint.select(f"{query} LIMIT {self._options.most + 1}")
        if len(solutions) > self._options.most:
            raise UsageError(
                f"'{self.name}' has more than {self._options.most:,} answers", "Ask for something narrower"
            )
        terms = [term for solution in solutions for term in solution.values() if term["type"] == "uri"]
        return np.unique(self._assign_rows(term["value"] for term in terms))

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending. Raises RemoteError where there are too many to ask for."""
        iris = self.type_iris(type)
        if not self._schema()["types"]:  # a Wikibase, whose types are nodes like any other
            iris = [self._iris[row] for row in self.find_by_name(type).tolist()]
        if not iris:
            return np.empty(0, dtype=np.int64)
        pattern = f"{values_clause('t', iris)} ?x <{self.type_property}> ?t FILTER(isIRI(?x))"
        solutions = self.endpoint.select(f"SELECT DISTINCT ?x {{ {pattern} }} LIMIT {self._options.most + 1}")
        if len(solutions) > self._options.most:
            raise RemoteError(
                f"'{self.name}' has more than {self._options.most:,} nodes of the type '{type}'",
                "Ask for something that narrows them down first",
            )
        return np.unique(self._assign_rows(solution["x"]["value"] for solution in solutions))

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""
        entities = self.entities(rows)
        return np.array([type in (entity.type, *entity.more_types) for entity in entities], dtype=np.bool_)

    @property
    def lookup(self) -> NameLookup:
        """The look-up of names; ``lookup.service`` is the search that is used."""
        service = self._schema().get("lookup", self._options.lookup)
        return NameLookup(self.endpoint, self._options, service, self._titles)

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending, as :meth:`NameLookup.find_by_name` finds them."""
        return np.unique(self._assign_rows(self.lookup.find_by_name(name)))

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return at most ``k`` rows with the most similar names, best first, and the similarity."""
        ranked = self.lookup.find_similar_names(name, k)
        return self._assign_rows(iri for iri, _ in ranked), np.array([similarity for _, similarity in ranked])

    # Edges

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each.

        ``relation`` None: along any relation.
        """
        by_iri = self._schema()["properties"]
        by_label = {label: iri for iri, (label, _) in by_iri.items()}
        if relation is not None and relation not in by_label:
            raise unknown_name_error(f"relation in the graph '{self.name}'", relation, by_label)
        iris = [self._iris[row] for row in np.asarray(rows).tolist()]
        path, variables = ("?p", "?x ?y ?p") if relation is None else (f"<{by_label[relation]}>", "?x ?y")
        pattern = f"?y {path} ?x" if inverse else f"?x {path} ?y"
        neighbours: dict[str, list[str]] = {}
        for batch in split_iris(list(dict.fromkeys(iris))):
            query = f"SELECT DISTINCT {variables} WHERE {{ {values_clause('x', batch)} {pattern} FILTER(isIRI(?y)) }}"
            for solution in self.endpoint.select(query):
                if relation is not None or solution["p"]["value"] in by_iri:
                    neighbours.setdefault(solution["x"]["value"], []).append(solution["y"]["value"])
        neighbour_rows = [np.unique(self._assign_rows(neighbours.get(iri, ()))) for iri in iris]
        offsets = run_offsets(np.array([len(rows) for rows in neighbour_rows], dtype=np.int64))
        return offsets, np.concatenate([np.empty(0, dtype=np.int64), *neighbour_rows])

    def adjacency(self, relation: str | None, inverse: bool = False) -> None:
        """Return None: a mounted graph cannot list all its edges."""

    def properties(self) -> Mapping[str, Property]:
        """Return none: counting the literals of every property may take an endpoint hours."""
        return {}

    def property_values(self, property: str) -> None:
        """Return None: a mounted graph cannot list all its values."""

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""
        properties = self._schema()["properties"]
        iris: set[str] = set()
        for batch in split_iris([self._iris[row] for row in np.asarray(rows).tolist()]):
            nodes = values_clause("x", batch)
            ends = f"{{ {nodes} ?x ?p ?o FILTER(isIRI(?o)) }} UNION {{ {nodes} ?s ?p ?x }}"
            solutions = self.endpoint.select(f"SELECT DISTINCT ?p WHERE {{ {ends} }}")
            iris.update(solution["p"]["value"] for solution in solutions)
        return sorted(properties[iri][0] for iri in iris if iri in properties)

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return none: a statement of RDF has no properties."""
        return []

    def answer_types(self) -> Sequence[str]:
        """Return none: any node may answer."""
        return ()

    # Indexes of texts, which a mounted graph does not have

    def node_vectors(self, encoder: Encoder, kind: str) -> NodeVectors:
        """Raise UsageError: nothing of the nodes of a mounted graph is stored."""
        raise self._not_stored_error()

    def node_postings(
        self, kind: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None
    ) -> Postings | None:
        """Raise UsageError: nothing of the nodes of a mounted graph is stored."""
        raise self._not_stored_error()

    def _not_stored_error(self) -> UsageError:
        return UsageError(
            f"'{self.name}' is a mounted graph: no texts of its nodes are stored",
            "Add it from files to search it: clew graph add FILE",
        )


def _distinct_labels(labels: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, list[Any]]:
    """Return the name and the count of each IRI.

    The name is its label, else its readable part; the IRI itself where two would have the same name.
    """
    names = {iri: labels.get(iri) or iri_label(iri) for iri in sorted(counts)}
    times = Counter(names.values())
    return {iri: [name if times[name] == 1 else iri, counts[iri]] for iri, name in names.items()}


def _scalar(term: Term) -> Any:
    """Return the value of a literal as a number or truth value where its datatype is one, else as text."""
    text, datatype = term["value"], term.get("datatype", "").rpartition("#")[2]
    try:
        if datatype in {"integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger"}:
            return int(text)
        if datatype in {"decimal", "double", "float"}:
            return float(text)
    except ValueError:
        return text
    return text == "true" if datatype == "boolean" else text


# Opening mounts


def is_endpoint(url: str) -> bool:
    """Return whether a mount is of an endpoint, not of a folder."""
    return url.startswith(("http://", "https://"))


def open_mounted_graph(derived: Path, name: str, url: str, options: str) -> MountedGraph:
    """Return the graph of a mount without querying it. Raises UnreadableFile where its table of titles is gone."""
    chosen = MountOptions.from_json(options)
    source = Endpoint(url, chosen.timeout, chosen.interval) if is_endpoint(url) else OxigraphStore(Path(url))
    titles = open_title_table(chosen.titles, derived / "mounts") if chosen.titles else None
    return MountedGraph(name, source, chosen, schema_file(derived, name, url, options), titles)


def schema_file(derived: Path, name: str, url: str, options: str) -> Path:
    """Return the file in which the schema of a mounted graph is stored."""
    digest = hashlib.blake2b(f"{name}\n{url}\n{options}".encode(), digest_size=16).hexdigest()
    return derived / "mounts" / f"{digest}.json"


def mount_files(derived: Path, name: str, url: str, options: str) -> list[Path]:
    """Return the files that belong to a mount, whether they exist or not."""
    files = [schema_file(derived, name, url, options)]
    if titles := MountOptions.from_json(options).titles:
        try:
            index = open_title_table(titles, derived / "mounts").index
        except UnreadableFile:  # the disk may be unplugged: the index is built again later
            index = None
        files += [index] if index else []
    return files
