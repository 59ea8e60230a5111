"""A graph that stays where it is: a SPARQL endpoint or an RDF store, asked when it is needed, never written to.

Resources are nodes, their IRIs ids, properties relations called by their labels. Rows are given out as nodes are
seen, so they follow no order, and a tie must be broken by id. What differs from an imported graph, because what is
not in this base can only be asked for what it has an index of:

* :meth:`MountedGraph.named` finds a name as it was given and in other capitals; without its accents only by a table
  of titles or by the endpoint's search (:mod:`clew.store.sparql.name_lookup`).
* :meth:`MountedGraph.similar` ranks what that search finds. Without a search, it finds equal names alone.
* A relation's examples and types of ends are not known; what an endpoint says of itself (types, properties and how
  many statements each has, which search it offers) is asked once and kept beside the base until it is mounted again.
  A Wikibase, such as Wikidata, lists its properties; how many statements each has is not asked, nor its types.
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

from clew.core.arrays import run_offsets
from clew.core.errors import NotFound, RemoteError, UnreadableFile, UsageError, unknown_name_error
from clew.core.text import iri_label
from clew.core.types import Entity, Property, Relation
from clew.store.array_files import write_manifest
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
from clew.store.sparql.title_table import TitleTable
from clew.store.sparql.title_table import open_title_table as opened_titles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Mask, Rows
    from clew.core.protocols import Encoder, NodeTexts, NodeVectors, Postings, ProgressCallback

_TEXTS = ("http://www.w3.org/2000/01/rdf-schema#comment", "http://schema.org/description")
_WIKIBASE = "http://wikiba.se/ontology#"
_INSTANCE_OF = "http://www.wikidata.org/prop/direct/P31"


class MountedGraph:
    """:class:`clew.core.protocols.PropertyGraph` of what answers SPARQL. ``kept`` is the file of what it says
    of itself."""

    is_mounted = True

    def __init__(
        self,
        name: str,
        endpoint: SparqlSource,
        options: MountOptions,
        kept: Path,
        titles: TitleTable | None = None,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self._options, self._kept, self._titles = options, kept, titles
        self._iris: list[str] = []
        self._numbers: dict[str, int] = {}
        self._turn = threading.RLock()
        self._said: dict[str, Any] | None = None

    @property
    def size(self) -> int:
        """Number of nodes seen so far."""
        return len(self._iris)

    # What the endpoint says of itself

    def _schema(self) -> dict[str, Any]:
        """Return the property that gives types, types and properties (IRI -> [label, number]), and the search."""
        with self._turn:
            if self._said is None:
                try:
                    self._said = json.loads(self._kept.read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    self._said = self._asked()
                    wikidata = is_wikidata(self._said["properties"])
                    self._said["lookup"] = detect_service(self.endpoint, self._options, wikidata)
                    self._kept.parent.mkdir(parents=True, exist_ok=True)
                    write_manifest(self._kept, self._said)
            return self._said

    def _asked(self) -> dict[str, Any]:
        """Ask for types and properties. A Wikibase lists its properties; counting its statements would take hours."""
        listed = self.endpoint.select(
            f"SELECT ?e ?p WHERE {{ ?e <{TYPE}> <{_WIKIBASE}Property> ; <{_WIKIBASE}directClaim> ?p }}"
        )
        if listed:
            labels = self._labels({one["e"]["value"] for one in listed})
            called = {one["p"]["value"]: labels.get(one["e"]["value"], "") for one in listed}
            type = _INSTANCE_OF if self._options.type_property == TYPE else self._options.type_property
            return {"type": type, "types": {}, "properties": _distinct(called, dict.fromkeys(called, 0))}
        type = self._options.type_property
        types = self.endpoint.select(
            f"SELECT ?x (COUNT(?s) AS ?n) WHERE {{ ?s <{type}> ?x FILTER(isIRI(?x)) }} GROUP BY ?x"
        )
        properties = self.endpoint.select(
            "SELECT ?x (COUNT(*) AS ?n) WHERE { ?s ?x ?o FILTER(isIRI(?s) && isIRI(?o)) } GROUP BY ?x"
        )
        others = [one for one in properties if "x" in one and one["x"]["value"] != type]
        return {"type": type, "types": self._labelled(types), "properties": self._labelled(others)}

    def _labelled(self, found: Sequence[Mapping[str, Term]]) -> dict[str, list[Any]]:
        counts = {one["x"]["value"]: int(one["n"]["value"]) for one in found if "x" in one}
        return _distinct(self._labels(counts), counts)

    def _labels(self, iris: Iterable[str]) -> dict[str, str]:
        """Return the best label of each resource that has one."""
        best: dict[str, tuple[int, str]] = {}
        for batch in split_iris([iri for iri in iris if is_iri(iri)]):
            query = f"SELECT ?x ?l WHERE {{ {values_clause('x', batch)} ?x <{LABEL}> ?l {self._options.language_filter('l')} }}"  # noqa: E501
            for one in self.endpoint.select(query):
                rank = (self._options.language_rank(one["l"]), one["l"]["value"])
                iri = one["x"]["value"]
                best[iri] = min(best.get(iri, rank), rank)
        return {iri: label for iri, (_, label) in best.items()}

    @property
    def _type(self) -> str:
        return str(self._schema()["type"])

    def types(self) -> Mapping[str, int]:
        """Return the node types, with how many nodes have each; none of a Wikibase, where counting takes hours."""
        return dict(self._schema()["types"].values())

    def relations(self) -> Mapping[str, Relation]:
        """Return the relations by name; their types of ends and examples are not known."""
        return {
            label: Relation(number, id="" if label == iri else iri)
            for iri, (label, number) in self._schema()["properties"].items()
        }

    # Nodes

    def rows(self, ids: Sequence[str]) -> Rows:
        """Return the row of each id. Raises NotFound for one of which nothing is said."""
        iris = []
        for id in ids:
            graph, _, iri = id.partition(":")
            if graph != self.name or not is_iri(iri):
                raise self._unknown(id)
            iris.append(iri)
        new = [iri for iri in dict.fromkeys(iris) if iri not in self._numbers]
        if missing := set(new).difference(existing_resources(self.endpoint, new)):
            raise self._unknown(f"{self.name}:{next(iri for iri in new if iri in missing)}")
        return self._seen(iris)

    def _unknown(self, id: str) -> NotFound:
        return NotFound(
            f"no node '{id}' in the graph '{self.name}'",
            f"Ids are {self.name}:IRI, for example {self.name}:http://...",
        )

    def _seen(self, iris: Iterable[str]) -> Rows:
        """Return the rows of resources, new ones for those not seen before."""
        rows = []
        with self._turn:
            for iri in iris:
                if iri not in self._numbers:
                    self._numbers[iri] = len(self._iris)
                    self._iris.append(iri)
                rows.append(self._numbers[iri])
        return np.array(rows, dtype=np.int64)

    def ids(self, rows: Rows) -> list[str]:
        """Return the id of each row."""
        return [f"{self.name}:{self._iris[row]}" for row in np.asarray(rows).tolist()]

    def entities(self, rows: Rows) -> list[Entity]:
        """Return the nodes of ``rows``, in that order."""
        iris = [self._iris[row] for row in np.asarray(rows).tolist()]
        said: dict[str, list[tuple[str, Term]]] = {}
        for batch in split_iris(list(dict.fromkeys(iris))):
            query = (
                f"SELECT ?x ?p ?o WHERE {{ {values_clause('x', batch)} ?x ?p ?o "
                f"FILTER(isLiteral(?o) || ?p = <{self._type}>) {self._options.language_filter('o')} }}"
            )
            for one in self.endpoint.select(query):
                said.setdefault(one["x"]["value"], []).append((one["p"]["value"], one["o"]))
        types = self._labels({o["value"] for found in said.values() for p, o in found if p == self._type})
        return [self._entity(iri, said.get(iri, []), types) for iri in iris]

    def _entity(self, iri: str, said: Sequence[tuple[str, Term]], types: Mapping[str, str]) -> Entity:
        names = sorted((self._options.language_rank(o), o["value"]) for p, o in said if p == LABEL)
        name = names[0][1] if names else iri_label(iri)
        aliases = {o["value"] for p, o in said if p in {LABEL, ALIAS}} - {name}
        of = sorted(types.get(o["value"], iri_label(o["value"])) for p, o in said if p == self._type)
        properties: dict[str, list[Any]] = {}
        for p, o in sorted(said, key=lambda one: (one[0], one[1]["value"])):
            if p not in {LABEL, ALIAS, *_TEXTS, self._type}:
                properties.setdefault(iri_label(p), []).append(_scalar(o))
        return Entity(
            f"{self.name}:{iri}",
            of[0] if of else "",
            name,
            tuple(sorted(aliases)),
            "\n".join(sorted({o["value"] for p, o in said if p in _TEXTS})),
            {key: found[0] if len(found) == 1 else tuple(found) for key, found in properties.items()},
            tuple(of[1:]),
        )

    def rows_of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending. Raises RemoteError where there are too many to ask for."""
        schema = self._schema()["types"]
        iris = [iri for iri, (label, _) in schema.items() if label == type]
        if not schema:  # a Wikibase, whose types are nodes like any other
            iris = [self._iris[row] for row in self.find_by_name(type).tolist()]
        if not iris:
            return np.empty(0, dtype=np.int64)
        pattern = f"{values_clause('t', iris)} ?x <{self._type}> ?t FILTER(isIRI(?x))"
        found = self.endpoint.select(f"SELECT DISTINCT ?x {{ {pattern} }} LIMIT {self._options.most + 1}")
        if len(found) > self._options.most:
            raise RemoteError(
                f"'{self.name}' has more than {self._options.most:,} nodes of the type '{type}'",
                "Ask for something that narrows them down first",
            )
        return np.unique(self._seen(one["x"]["value"] for one in found))

    def has_type(self, rows: Rows, type: str) -> Mask:
        """Return which of ``rows`` have a type, (n,)."""
        found = self.entities(rows)
        return np.array([type in (one.type, *one.more_types) for one in found], dtype=np.bool_)

    @property
    def lookup(self) -> NameLookup:
        """What finds names; ``lookup.service`` is the search that is used."""
        service = self._schema().get("lookup", self._options.lookup)
        return NameLookup(self.endpoint, self._options, service, self._titles)

    def find_by_name(self, name: str) -> Rows:
        """Return the rows with this name or alias, ascending; :meth:`Lookup.named` says where it is looked for."""
        return np.unique(self._seen(self.lookup.find_by_name(name)))

    def find_similar_names(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return the rows whose names are most like ``name``, (k,) at most, best first, with their likeness."""
        found = self.lookup.find_similar_names(name, k)
        return self._seen(iri for iri, _ in found), np.array([likeness for _, likeness in found])

    # Edges

    def neighbours(
        self, rows: Rows, relation: str | None, inverse: bool = False
    ) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each;
        ``relation`` None: along any."""
        known = self._schema()["properties"]
        properties = {label: iri for iri, (label, _) in known.items()}
        if relation is not None and relation not in properties:
            raise unknown_name_error(f"relation in the graph '{self.name}'", relation, properties)
        iris = [self._iris[row] for row in np.asarray(rows).tolist()]
        along = "?p" if relation is None else f"<{properties[relation]}>"
        pattern = f"?y {along} ?x" if inverse else f"?x {along} ?y"
        named = " ?p" if relation is None else ""
        found: dict[str, list[str]] = {}
        for batch in split_iris(list(dict.fromkeys(iris))):
            query = f"SELECT DISTINCT ?x ?y{named} WHERE {{ {values_clause('x', batch)} {pattern} FILTER(isIRI(?y)) }}"  # noqa: E501
            for one in self.endpoint.select(query):
                if relation is not None or one["p"]["value"] in known:
                    found.setdefault(one["x"]["value"], []).append(one["y"]["value"])
        others = [np.unique(self._seen(found.get(iri, ()))) for iri in iris]
        offsets = run_offsets(np.array([len(one) for one in others], dtype=np.int64))
        return offsets, np.concatenate([np.empty(0, dtype=np.int64), *others])

    def adjacency(self, relation: str | None, inverse: bool = False) -> None:
        """Return nothing: what an endpoint holds is asked for, never copied."""

    def properties(self) -> Mapping[str, Property]:
        """Return none: to count the literals of every property may take an endpoint hours."""
        return {}

    def property_values(self, property: str) -> None:
        """Return nothing, as :meth:`adjacency`."""

    def relations_at(self, rows: Rows) -> list[str]:
        """Return the relations that have an edge at one of ``rows``, at either end, sorted by name."""
        properties = self._schema()["properties"]
        found: set[str] = set()
        for batch in split_iris([self._iris[row] for row in np.asarray(rows).tolist()]):
            some = values_clause("x", batch)
            ends = f"{{ {some} ?x ?p ?o FILTER(isIRI(?o)) }} UNION {{ {some} ?s ?p ?x }}"
            asked = self.endpoint.select(f"SELECT DISTINCT ?p WHERE {{ {ends} }}")
            found.update(one["p"]["value"] for one in asked)
        return sorted(properties[iri][0] for iri in found if iri in properties)

    def edge_properties(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return nothing: a statement of RDF has no properties."""
        return []

    def answer_types(self) -> Sequence[str]:
        """Return none: any node may answer."""
        return ()

    def node_vectors(self, encoder: Encoder, what: str) -> NodeVectors:
        """Raise UsageError: nothing is kept of the nodes of a mounted graph."""
        raise self._not_kept()

    def node_postings(
        self, what: str, texts: NodeTexts | None = None, progress: ProgressCallback | None = None
    ) -> Postings | None:
        """Raise UsageError: nothing is kept of the nodes of a mounted graph."""
        raise self._not_kept()

    def _not_kept(self) -> UsageError:
        return UsageError(
            f"'{self.name}' is a mounted graph: no texts of its nodes are kept",
            "Add it from files to search it: clew graph add FILE",
        )


def _distinct(labels: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, list[Any]]:
    """Return for each IRI what it is called and its count: its label, else its readable part; itself where another
    is called the same."""
    called = {iri: labels.get(iri) or iri_label(iri) for iri in sorted(counts)}
    times = Counter(called.values())
    return {iri: [name if times[name] == 1 else iri, counts[iri]] for iri, name in called.items()}


def schema_file(derived: Path, name: str, url: str, options: str) -> Path:
    """Return the file of what an endpoint says of itself."""
    made = hashlib.blake2b(f"{name}\n{url}\n{options}".encode(), digest_size=16).hexdigest()
    return derived / "mounts" / f"{made}.json"


def open_mounted_graph(derived: Path, name: str, url: str, options: str) -> MountedGraph:
    """Return the graph of a mount; nothing is asked yet. Raises UnreadableFile where its table of titles is gone."""
    chosen = MountOptions.from_json(options)
    answers = Endpoint(url, chosen.timeout, chosen.interval) if is_endpoint(url) else OxigraphStore(Path(url))
    titles = opened_titles(chosen.titles, derived / "mounts") if chosen.titles else None
    return MountedGraph(name, answers, chosen, schema_file(derived, name, url, options), titles)


def mount_files(derived: Path, name: str, url: str, options: str) -> list[Path]:
    """Return the files that are kept for a mount, there or not."""
    files = [schema_file(derived, name, url, options)]
    if titles := MountOptions.from_json(options).titles:
        try:
            index = opened_titles(titles, derived / "mounts").index
        except UnreadableFile:  # an unplugged disk: what is kept for it is made again
            index = None
        files += [index] if index else []
    return files


def is_endpoint(url: str) -> bool:
    """Return whether a mount is of an endpoint, not of a folder."""
    return url.startswith(("http://", "https://"))


def _scalar(term: Term) -> Any:
    said, datatype = term["value"], term.get("datatype", "").rpartition("#")[2]
    try:
        if datatype in {"integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger"}:
            return int(said)
        if datatype in {"decimal", "double", "float"}:
            return float(said)
    except ValueError:
        return said
    return said == "true" if datatype == "boolean" else said
