"""A graph that stays where it is: a SPARQL endpoint, asked when it is needed, never written to.

Resources are nodes, their IRIs ids, properties relations called by their labels. Rows are given out as nodes are
seen, so they follow no order, and a tie must be broken by id. What differs from an imported graph, because an
endpoint can only be asked for what it has an index of:

* :meth:`MountedGraph.named` finds a name as it was given and in other capitals, not without its accents.
* A relation's examples and types of ends are not known; what an endpoint says of itself (types, properties and how
  many statements each has) is asked once and kept beside the base until it is mounted again. A Wikibase, such as
  Wikidata, lists its properties; how many statements each has is not asked, nor its types.
* Blank nodes are left out: they cannot be asked for again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.errors import NotFound, RemoteError, unknown
from clew.kb.graphs.packing import readable
from clew.kb.graphs.sparql import Endpoint, Term, is_iri, literal, values
from clew.kb.segments import starts_of, write_manifest
from clew.text import folded_name
from clew.types import Entity, Relation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Floats, Rows

_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
_TEXTS = ("http://www.w3.org/2000/01/rdf-schema#comment", "http://schema.org/description")
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_WIKIBASE = "http://wikiba.se/ontology#"
_INSTANCE_OF = "http://www.wikidata.org/prop/direct/P31"
#: Nodes asked about in one question.
BATCH = 100


@dataclass(frozen=True, slots=True)
class MountOptions:
    """How an endpoint is asked: languages of names, the preferred first; seconds; which property gives types; at most
    how many nodes a question about a whole type may bring."""

    languages: tuple[str, ...] = ("en",)
    timeout: float = 60.0
    interval: float = 0.0
    type_property: str = _TYPE
    most: int = 100_000

    def said(self) -> str:
        """Return the options as they are stored."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, said: str) -> MountOptions:
        """Return the options that :meth:`said` stored."""
        kept = json.loads(said)
        return cls(**(kept | {"languages": tuple(kept["languages"])}))


class MountedGraph:
    """:class:`clew.protocols.PropertyGraph` of a SPARQL endpoint. ``kept`` is the file of what it says of itself."""

    def __init__(self, name: str, endpoint: Endpoint, options: MountOptions, kept: Path) -> None:
        self.name = name
        self.endpoint = endpoint
        self._options, self._kept = options, kept
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
        """Return the property that gives types, and types and properties: IRI -> [label, number]."""
        with self._turn:
            if self._said is None:
                try:
                    self._said = json.loads(self._kept.read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    self._said = self._asked()
                    self._kept.parent.mkdir(parents=True, exist_ok=True)
                    write_manifest(self._kept, self._said)
            return self._said

    def _asked(self) -> dict[str, Any]:
        """Ask for types and properties. A Wikibase lists its properties; counting its statements would take hours."""
        listed = self.endpoint.select(
            f"SELECT ?e ?p WHERE {{ ?e <{_TYPE}> <{_WIKIBASE}Property> ; <{_WIKIBASE}directClaim> ?p }}"
        )
        if listed:
            labels = self._labels({one["e"]["value"] for one in listed})
            called = {one["p"]["value"]: labels.get(one["e"]["value"], "") for one in listed}
            type = _INSTANCE_OF if self._options.type_property == _TYPE else self._options.type_property
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
        for batch in _batches([iri for iri in iris if is_iri(iri)]):
            query = (
                f"SELECT ?x ?l WHERE {{ {_listed('x', batch)} ?x <{_LABEL}> ?l {self._in_language('l')} }}"
            )
            for one in self.endpoint.select(query):
                rank = (self._preference(one["l"]), one["l"]["value"])
                iri = one["x"]["value"]
                best[iri] = min(best.get(iri, rank), rank)
        return {iri: label for iri, (_, label) in best.items()}

    def _in_language(self, name: str) -> str:
        """Return a filter that keeps what is no literal, or has a language that is asked for, or none."""
        wanted = [f'langMatches(lang(?{name}), "{one}")' for one in self._options.languages]
        return f'FILTER(!isLiteral(?{name}) || lang(?{name}) = "" || {" || ".join(wanted)})'

    def _preference(self, term: Term) -> int:
        language = term.get("xml:lang", "").lower()
        for place, wanted in enumerate(self._options.languages):
            if language == wanted or language.startswith(f"{wanted}-"):
                return place
        return len(self._options.languages)

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
        for batch in _batches(new):
            said = "{ ?x ?p ?o } UNION { ?s ?q ?x }"
            found = self.endpoint.select(
                f"SELECT DISTINCT ?x WHERE {{ {_listed('x', batch)} FILTER EXISTS {{ {said} }} }}"
            )
            there = {one["x"]["value"] for one in found}
            for iri in batch:
                if iri not in there:
                    raise self._unknown(f"{self.name}:{iri}")
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
        for batch in _batches(list(dict.fromkeys(iris))):
            query = (
                f"SELECT ?x ?p ?o WHERE {{ {_listed('x', batch)} ?x ?p ?o "
                f"FILTER(isLiteral(?o) || ?p = <{self._type}>) {self._in_language('o')} }}"
            )
            for one in self.endpoint.select(query):
                said.setdefault(one["x"]["value"], []).append((one["p"]["value"], one["o"]))
        types = self._labels({o["value"] for found in said.values() for p, o in found if p == self._type})
        return [self._entity(iri, said.get(iri, []), types) for iri in iris]

    def _entity(self, iri: str, said: Sequence[tuple[str, Term]], types: Mapping[str, str]) -> Entity:
        names = sorted((self._preference(o), o["value"]) for p, o in said if p == _LABEL)
        name = names[0][1] if names else readable(iri)
        aliases = {o["value"] for p, o in said if p in {_LABEL, _ALIAS}} - {name}
        of = sorted(types.get(o["value"], readable(o["value"])) for p, o in said if p == self._type)
        properties: dict[str, list[Any]] = {}
        for p, o in sorted(said, key=lambda one: (one[0], one[1]["value"])):
            if p not in {_LABEL, _ALIAS, *_TEXTS, self._type}:
                properties.setdefault(readable(p), []).append(_scalar(o))
        return Entity(
            f"{self.name}:{iri}",
            of[0] if of else "",
            name,
            tuple(sorted(aliases)),
            "\n".join(sorted({o["value"] for p, o in said if p in _TEXTS})),
            {key: found[0] if len(found) == 1 else tuple(found) for key, found in properties.items()},
            tuple(of[1:]),
        )

    def of_type(self, type: str) -> Rows:
        """Return the rows of a type, ascending. Raises RemoteError where there are too many to ask for."""
        schema = self._schema()["types"]
        iris = [iri for iri, (label, _) in schema.items() if label == type]
        if not schema:  # a Wikibase, whose types are nodes like any other
            iris = [self._iris[row] for row in self.named(type).tolist()]
        if not iris:
            return np.empty(0, dtype=np.int64)
        pattern = f"{_listed('t', iris)} ?x <{self._type}> ?t FILTER(isIRI(?x))"
        found = self.endpoint.select(f"SELECT DISTINCT ?x {{ {pattern} }} LIMIT {self._options.most + 1}")
        if len(found) > self._options.most:
            raise RemoteError(
                f"'{self.name}' has more than {self._options.most:,} nodes of the type '{type}'",
                "Ask for something that narrows them down first",
            )
        return np.unique(self._seen(one["x"]["value"] for one in found))

    def named(self, name: str) -> Rows:
        """Return the rows with this name or alias, as it was given or in other capitals, ascending."""
        spelled = dict.fromkeys(
            (
                name.strip(),
                name.strip().title(),
                name.strip().capitalize(),
                name.strip().lower(),
                name.strip().upper(),
            )
        )
        terms = [
            literal(one, language) for one in spelled if one for language in ("", *self._options.languages)
        ]
        if not terms:
            return np.empty(0, dtype=np.int64)
        pattern = f"{values('l', terms)} ?x <{_LABEL}>|<{_ALIAS}> ?l FILTER(isIRI(?x))"
        query = f"SELECT DISTINCT ?x ?l WHERE {{ {pattern} }}"
        wanted = folded_name(name)
        found = [one for one in self.endpoint.select(query) if folded_name(one["l"]["value"]) == wanted]
        return np.unique(self._seen(one["x"]["value"] for one in found))

    # Edges

    def similar(self, name: str, k: int) -> tuple[Rows, Floats]:
        """Return the rows whose name or alias is ``name``, with a likeness of 1."""
        rows = self.named(name)[:k]
        return rows, np.ones(len(rows))

    def adjacent(self, rows: Rows, relation: str, inverse: bool = False) -> tuple[NDArray[np.int64], Rows]:
        """Return the tails of ``rows`` (with ``inverse``: the heads): offsets (n + 1), rows ascending for each."""
        properties = {label: iri for iri, (label, _) in self._schema()["properties"].items()}
        if relation not in properties:
            raise unknown(f"relation in the graph '{self.name}'", relation, properties)
        iris = [self._iris[row] for row in np.asarray(rows).tolist()]
        pattern = f"?y <{properties[relation]}> ?x" if inverse else f"?x <{properties[relation]}> ?y"
        found: dict[str, list[str]] = {}
        for batch in _batches(list(dict.fromkeys(iris))):
            query = f"SELECT DISTINCT ?x ?y WHERE {{ {_listed('x', batch)} {pattern} FILTER(isIRI(?y)) }}"
            for one in self.endpoint.select(query):
                found.setdefault(one["x"]["value"], []).append(one["y"]["value"])
        others = [np.unique(self._seen(found.get(iri, ()))) for iri in iris]
        offsets = starts_of(np.array([len(one) for one in others], dtype=np.int64))
        return offsets, np.concatenate([np.empty(0, dtype=np.int64), *others])

    def statements(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return nothing: a statement of RDF has no properties."""
        return []


def _distinct(labels: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, list[Any]]:
    """Return for each IRI what it is called and its count: its label, else its readable part; itself where another
    is called the same."""
    called = {iri: labels.get(iri) or readable(iri) for iri in sorted(counts)}
    times = Counter(called.values())
    return {iri: [name if times[name] == 1 else iri, counts[iri]] for iri, name in called.items()}


def kept_in(derived: Path, name: str, url: str, options: str) -> Path:
    """Return the file of what an endpoint says of itself."""
    made = hashlib.blake2b(f"{name}\n{url}\n{options}".encode(), digest_size=16).hexdigest()
    return derived / "mounts" / f"{made}.json"


def opened(derived: Path, name: str, url: str, options: str) -> MountedGraph:
    """Return the graph of a mount; nothing is asked yet."""
    chosen = MountOptions.read(options)
    endpoint = Endpoint(url, chosen.timeout, chosen.interval)
    return MountedGraph(name, endpoint, chosen, kept_in(derived, name, url, options))


def _batches(items: Sequence[str]) -> Iterator[Sequence[str]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _listed(name: str, iris: Iterable[str]) -> str:
    return values(name, (f"<{iri}>" for iri in iris))


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
