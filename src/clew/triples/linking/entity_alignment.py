"""What identifies a node beyond its graph: ids of Wikidata, IRIs, and properties that hold the ids of other
catalogues.

An identifier is a scheme and a value: ``("wikidata", "Q2868")``. Two nodes with the same one are the same thing; with
different ones of one scheme they are not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import union
from clew.core.errors import NotFound
from clew.core.text import fold_name, hash_term
from clew.triples.linking.entities import split_qualifier
from clew.triples.linking.relation_words import verbalise_relation, word_stems

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph, Snapshot
    from clew.core.types import Entity

Identifier = tuple[str, str]

_WIKIDATA = re.compile(r"^(?:(?:https?://(?:www\.)?wikidata\.org/(?:entity|wiki)/)|wd:)?(?P<id>Q[1-9]\d*)$")
_FORMS = ("{}", "http://www.wikidata.org/entity/{}", "wd:{}", "https://www.wikidata.org/wiki/{}")
_IRI = re.compile(r"^(?:https?|urn):\S+$")
#: Properties whose value is the thing's id in a catalogue, without "id" and punctuation; the scheme of each.
_SCHEMES = dict.fromkeys(
    ("wikidata", "wikidataitem", "wikidataentity", "qid", "wikibaseitem"), "wikidata"
) | {
    one: one
    for one in "imdb tmdb tvdb isbn isbn10 isbn13 issn doi pmid pmcid arxiv orcid ror grid viaf gnd isni lei "
    "musicbrainz discogs geonames osm mesh umls cui omim chebi chembl drugbank pubchem pubchemcid cas inchikey "
    "uniprot ensembl entrez entrezgene ncbigene hgnc mondo doid efo orphanet snomed snomedct icd10 icd11 loinc "
    "rxnorm atc unii cik isin cusip ein duns freebase mid dblp openalex mag semanticscholar iso3166 iata icao "
    "goodreads oclc lccn wikipedia".split()
}
_SAME = frozenset(("same as", "sameas", "exact match", "owl same as", "skos exact match"))
_BATCH = 4096


def identifier_scheme(property: str) -> str:
    """Return the scheme of a property's values, "" for one that identifies nothing.

    >>> scheme_of("imdb_id"), scheme_of("Wikidata ID"), scheme_of("id"), scheme_of("year")
    ('imdb', 'wikidata', '', '')
    """
    key = re.sub(r"[\W_]+", "", verbalise_relation(property))
    for ending in ("identifier", "number", "id", ""):
        if key.endswith(ending) and key[: len(key) - len(ending)] in _SCHEMES:
            return _SCHEMES[key[: len(key) - len(ending)]]
    return ""


def is_same_as_relation(relation: str) -> bool:
    """Return whether a relation, or a property, joins what is the same (``owl:sameAs``, ``skos:exactMatch``)."""
    return verbalise_relation(relation) in _SAME


def parse_external_id(external: str) -> Identifier | None:
    """Return what an external id says beyond its graph: a Wikidata id, or an IRI; None for any other id."""
    if found := _WIKIDATA.match(external):
        return "wikidata", found["id"]
    return ("iri", external) if _IRI.match(external) else None


def external_id_forms(identifier: Identifier) -> tuple[str, ...]:
    """Return the external ids that another graph may give what has this identifier."""
    scheme, value = identifier
    if scheme == "wikidata":
        return tuple(form.format(value) for form in _FORMS)
    return (value,) if scheme == "iri" else ()


def entity_identifiers(entity: Entity) -> dict[Identifier, str]:
    """Return the identifiers of a node, each with where it stands: ``identifier wikidata=Q2868``, ``sameAs``."""
    found: dict[Identifier, str] = {}
    own = parse_external_id(entity.id.partition(":")[2])
    if own is not None:
        found[own] = _said(own)
    for property, value in entity.properties.items():
        for one in value if isinstance(value, tuple) else (value,):
            text = str(one).strip()
            if is_same_as_relation(property):
                if same := parse_external_id(text):
                    found.setdefault(same, "sameAs")
            elif text and (scheme := identifier_scheme(property)):
                wikidata = _WIKIDATA.match(text) if scheme == "wikidata" else None
                identifier = (scheme, wikidata["id"] if wikidata else _plain(scheme, text))
                found.setdefault(identifier, _said(identifier))
    return found


def _plain(scheme: str, value: str) -> str:
    """Return a value as it is compared: without case, the catalogue's address, or the hyphens of numbers."""
    value = value.rstrip("/").casefold()
    if "://" in value:
        value = value.split("://", 1)[1].partition("/")[2] if scheme == "doi" else value.rsplit("/", 1)[1]
    return value.replace("-", "") if scheme.startswith(("isbn", "issn", "isni", "orcid")) else value


def _said(identifier: Identifier) -> str:
    return f"identifier {identifier[0]}={identifier[1]}"


class IdentifierIndex:
    """The rows of a graph by their identifiers: sorted hashes. Making it reads every node once."""

    def __init__(self, graph: PropertyGraph) -> None:
        hashes: list[int] = []
        rows: list[int] = []
        for row, identifier in _every(graph):
            hashes.append(_hash(identifier))
            rows.append(row)
        made = np.array(hashes, dtype=np.uint64)
        owners = np.array(rows, dtype=np.int64)
        order = np.lexsort((owners, made))
        self._hashes, self._rows = made[order], owners[order]

    def rows(self, identifier: Identifier) -> Rows:
        """Return the rows with an identifier, ascending."""
        wanted = np.uint64(_hash(identifier))
        first, end = (
            np.searchsorted(self._hashes, wanted),
            np.searchsorted(self._hashes, wanted, side="right"),
        )
        return self._rows[first:end]


def _hash(identifier: Identifier) -> int:
    return hash_term("\x1f".join(identifier))


def _every(graph: PropertyGraph) -> Iterator[tuple[int, Identifier]]:
    for first in range(0, graph.size, _BATCH):
        rows = np.arange(first, min(first + _BATCH, graph.size))
        for row, entity in zip(rows.tolist(), graph.entities(rows), strict=True):
            for identifier in entity_identifiers(entity):
                yield row, identifier


#: Scores: an identifier or sameAs; a name of the same type; a name alone; a name of another type; a title.
IDENTIFIED, SAME_TYPE, NAMED, OTHER_TYPE, TITLED = 1.0, 0.9, 0.8, 0.6, 0.8
#: A name that more nodes of a graph have says too little to look at each.
COMMON = 50
_BATCH_same = 512


@dataclass(frozen=True, slots=True)
class EntityAlignment:
    """Two nodes, or a node and a document, that are the same thing. ``score`` is from 0 to 1.

    ``source`` is the id of a node; ``target`` that of a node of another graph, or, where ``document``, the key of a
    document that is about it. ``by`` is the evidence: ``name 'Lima'``, ``alias 'Ciudad de los Reyes'``, ``identifier
    wikidata=Q2868``, ``sameAs``, ``title 'Lima'``.
    """

    source: str
    source_name: str
    target: str
    target_name: str
    score: float
    by: tuple[str, ...]
    document: bool = False

    @property
    def summary(self) -> str:
        """The link and its evidence in a line: ``atlas:lima is films:Q2868: identifier wikidata=Q2868``."""
        return f"{self.source} is {self.target}: {'; '.join(self.by)}"

    def to_dict(self) -> dict[str, Any]:
        """Return both ends and the evidence, JSON-compatible."""
        return {
            "source": self.source,
            "source_name": self.source_name,
            "target": self.target,
            "target_name": self.target_name,
            "document": self.document,
            "score": self.score,
            "by": list(self.by),
        }


def align_entity(
    snapshot: Snapshot, id: str, *, remote: Collection[str] = (), thorough: bool = True
) -> tuple[EntityAlignment, ...]:
    """Return what is the same as a node in the other graphs and among the documents, the surest first.

    Names count only where they tell: one node on each side has the name, or one of a type that both share; and never
    against identifiers of one scheme that differ. ``thorough`` also compares identifying properties (``imdb_id``),
    for which every graph is read once in a snapshot; those in ``remote``, mounted ones, never are. Raises NotFound,
    UsageError.
    """
    graph = snapshot.graph(id.partition(":")[0])
    rows = graph.rows([id])
    (entity,) = graph.entities(rows)
    others = [one for one in snapshot.graphs() if one != graph.name]
    return _same(_Look(snapshot, frozenset(remote), thorough), graph, int(rows[0]), entity, others)


def align_entity_with(snapshot: Snapshot, id: str, name: str) -> tuple[EntityAlignment, ...]:
    """Return what is the same as a node in one other graph, the surest first: of :func:`same` without ``thorough``
    the links to it. No other graph is asked, and no document. Raises NotFound, UsageError."""
    graph = snapshot.graph(id.partition(":")[0])
    if name == graph.name:
        return ()
    rows = graph.rows([id])
    (entity,) = graph.entities(rows)
    look = _Look(snapshot, frozenset(), thorough=False)
    return _sorted(_in_graphs(look, graph, int(rows[0]), entity, [name]))


def align_graphs(
    snapshot: Snapshot, graph: str | None = None, *, remote: Collection[str] = ()
) -> Iterator[EntityAlignment]:
    """Yield the links of a graph's nodes, or of every graph's, in the order of their ids; each pair of nodes once.

    A mounted graph's own nodes are not gone through; it is the target of links only. Raises UsageError.
    """
    look = _Look(snapshot, frozenset(remote), thorough=True)
    own = [name for name in snapshot.graphs() if name not in look.remote]
    order = sorted(own, key=lambda name: (snapshot.graph(name).size, name))
    for name in own if graph is None else [graph] if graph in own else []:
        # Between two graphs that can both be gone through, links are looked for from the smaller one.
        behind = order[: order.index(name)] if graph is None else []
        others = [one for one in snapshot.graphs() if one != name and one not in behind]
        opened = snapshot.graph(name)
        rows = np.arange(opened.size) if others else look.titled(opened)
        for first in range(0, len(rows), _BATCH_same):
            some = rows[first : first + _BATCH_same]
            for row, entity in zip(some.tolist(), opened.entities(some), strict=True):
                if _bare(entity) and _rows_told_same(look, opened, row):
                    continue
                yield from _same(look, opened, row, entity, others)


@dataclass(frozen=True, slots=True)
class _Look:
    """Where links are looked for, and what of it is kept for the snapshot."""

    snapshot: Snapshot
    remote: frozenset[str]
    thorough: bool

    def identified(self, graph: PropertyGraph) -> IdentifierIndex | None:
        if not self.thorough or graph.name in self.remote:
            return None
        found: IdentifierIndex = self.snapshot.memoize(
            f"identifiers/{graph.name}", lambda: IdentifierIndex(graph)
        )
        return found

    def saying_same(self, graph: PropertyGraph) -> list[str]:
        """Return the relations of a graph that join what is the same."""
        found: list[str] = self.snapshot.memoize(
            f"same as/{graph.name}", lambda: [one for one in graph.relations() if is_same_as_relation(one)]
        )
        return found

    def titled(self, graph: PropertyGraph) -> Rows:
        """Return the rows of a graph that are called like a document, ascending."""
        return union([graph.find_by_name(title) for title in self.titles()])

    def titles(self) -> dict[str, list[tuple[str, str]]]:
        """Return key and title of the documents by their folded titles, whole and without a qualifier."""

        def make() -> dict[str, list[tuple[str, str]]]:
            found: dict[str, list[tuple[str, str]]] = {}
            for one in self.snapshot.documents():
                for title in {fold_name(one.title), fold_name(split_qualifier(one.title)[0])}:
                    if title:
                        found.setdefault(title, []).append((one.key, one.title))
            return found

        kept: dict[str, list[tuple[str, str]]] = self.snapshot.memoize("titles/folded", make)
        return kept


@dataclass(slots=True)
class _Found:
    score: float = 0.0
    by: dict[str, None] = field(default_factory=dict)

    def take(self, by: str, score: float) -> None:
        self.by[by] = None
        self.score = max(self.score, score)


def _same(
    look: _Look, graph: PropertyGraph, row: int, entity: Entity, others: Collection[str]
) -> tuple[EntityAlignment, ...]:
    return _sorted([*_in_graphs(look, graph, row, entity, others), *_documents(look, graph, entity)])


def _sorted(found: Sequence[EntityAlignment]) -> tuple[EntityAlignment, ...]:
    return tuple(sorted(found, key=lambda one: (-one.score, one.target)))


def _in_graphs(
    look: _Look, graph: PropertyGraph, row: int, entity: Entity, others: Collection[str]
) -> list[EntityAlignment]:
    identifiers = entity_identifiers(entity)
    for end in _told_same(look, graph, row):
        if (identifier := parse_external_id(end)) is not None:
            identifiers.setdefault(identifier, "sameAs")
    found: list[EntityAlignment] = []
    for name in others:
        other = look.snapshot.graph(name)
        rows: dict[int, _Found] = {}
        _by_identifier(look, other, identifiers, rows)
        _by_name(graph, entity, identifiers, other, rows)
        ends = other.entities(np.array(list(rows), dtype=np.int64))
        found += [
            EntityAlignment(entity.id, entity.name, end.id, end.name, one.score, tuple(one.by))
            for end, one in zip(ends, rows.values(), strict=True)
        ]
    return found


def _told_same(look: _Look, graph: PropertyGraph, row: int) -> list[str]:
    """Return the external ids that a node's own edges say it is the same as, either way."""
    told = []
    for relation in look.saying_same(graph):
        for inverse in (False, True):
            ends = graph.neighbours(np.array([row], dtype=np.int64), relation, inverse)[1]
            told += [id.partition(":")[2] for id in graph.ids(ends)]
    return told


def _by_identifier(
    look: _Look, other: PropertyGraph, identifiers: dict[Identifier, str], rows: dict[int, _Found]
) -> None:
    """Find the nodes of another graph that an identifier, or an edge sameAs on either side, leads to."""
    index = look.identified(other)
    for identifier, said in identifiers.items():
        met: dict[int, None] = {}
        for form in external_id_forms(identifier):
            try:
                met[int(other.rows([f"{other.name}:{form}"])[0])] = None
            except NotFound:
                continue
        if index is not None:
            met.update(dict.fromkeys(index.rows(identifier).tolist()))
        for row in met:
            told = _rows_told_same(look, other, row)
            for one in told:
                rows.setdefault(one, _Found()).take("sameAs", IDENTIFIED)
            if not (told and _bare(other.entities(np.array([row], dtype=np.int64))[0])):
                rows.setdefault(row, _Found()).take(said, IDENTIFIED)


def _bare(entity: Entity) -> bool:
    """Return whether nothing is said of a node: as the end of sameAs it only stands for the one that says so."""
    return not (entity.type or entity.text or entity.aliases or entity.properties)


def _rows_told_same(look: _Look, graph: PropertyGraph, row: int) -> list[int]:
    rows = np.array([row], dtype=np.int64)
    told: list[int] = []
    for relation in look.saying_same(graph):
        told += graph.neighbours(rows, relation, inverse=True)[1].tolist()
    return told


def _by_name(
    graph: PropertyGraph,
    entity: Entity,
    identifiers: dict[Identifier, str],
    other: PropertyGraph,
    rows: dict[int, _Found],
) -> None:
    """Find the nodes of another graph with a name of this one, where the name tells one from the others."""
    types = _types(entity)
    names = {fold_name(name): name for name in reversed((entity.name, *entity.aliases)) if name}
    for folded, name in reversed(names.items()):
        theirs, ours = other.find_by_name(name), graph.find_by_name(name)
        if not len(theirs) or max(len(theirs), len(ours)) > COMMON:
            continue
        ends = other.entities(theirs)
        single = len(ours) == len(theirs) == 1
        alike = [end for end in ends if _types(end) & types]
        if not single and (
            len(alike) != 1 or sum(bool(_types(one) & types) for one in graph.entities(ours)) != 1
        ):
            continue
        for end, end_row in zip(ends, theirs.tolist(), strict=True):
            agree = bool(_types(end) & types)
            if not (single or agree) or (
                _differ(identifiers, entity_identifiers(end)) and end_row not in rows
            ):
                continue
            score = SAME_TYPE if agree else OTHER_TYPE if types and _types(end) else NAMED
            kind = "name" if folded == fold_name(entity.name) == fold_name(end.name) else "alias"
            rows.setdefault(end_row, _Found()).take(f"{kind} '{name}'", score)


def _types(entity: Entity) -> frozenset[str]:
    return frozenset(
        stem
        for type in (entity.type, *entity.more_types)
        if type
        for stem in [" ".join(sorted(word_stems(verbalise_relation(type))))]
    )


def _differ(ours: dict[Identifier, str], theirs: dict[Identifier, str]) -> bool:
    """Return whether a scheme that both have says that they are two things. IRIs of two makers say nothing."""
    schemes = {scheme for scheme, _ in ours} & {scheme for scheme, _ in theirs} - {"iri"}
    return any(
        not {one for one in ours if one[0] == scheme} & {one for one in theirs if one[0] == scheme}
        for scheme in schemes
    )


def _documents(look: _Look, graph: PropertyGraph, entity: Entity) -> list[EntityAlignment]:
    """Return links to documents whose title is a name of the node: one document, and one node of this graph."""
    titles = look.titles()
    found: dict[str, EntityAlignment] = {}
    for name in (entity.name, *entity.aliases):
        documents = titles.get(fold_name(name), ()) if titles else ()
        if len(documents) == 1 and len(graph.find_by_name(name)) == 1:
            ((key, title),) = documents
            link = EntityAlignment(
                entity.id, entity.name, key, title, TITLED, (f"title '{title}'",), document=True
            )
            found.setdefault(key, link)
    return list(found.values())


# MERGED: The same thing in several graphs, and in documents: links by identifier, name and alias, each with
# its evidence.
