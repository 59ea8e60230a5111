"""Entity alignment: the same thing in several graphs, and in documents, by identifier, name and alias.

Nothing is stored: alignments follow from what the graphs contain, and go with them. They are looked for from one
node, by the ids and names that it has; no pair of nodes is compared that shares neither.

An identifier is a scheme and a value, ``("wikidata", "Q2868")``: an id of Wikidata, an IRI, or the id of another
catalogue in a property. Two nodes with the same identifier are the same thing; with different ones of one scheme they
are not.
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
#: Names of properties with ids of a catalogue, without "id" and punctuation, and the scheme of each.
_SCHEMES = dict.fromkeys(
    ("wikidata", "wikidataitem", "wikidataentity", "qid", "wikibaseitem"), "wikidata"
) | {
    scheme: scheme
    for scheme in "imdb tmdb tvdb isbn isbn10 isbn13 issn doi pmid pmcid arxiv orcid ror grid viaf gnd isni lei "
    "musicbrainz discogs geonames osm mesh umls cui omim chebi chembl drugbank pubchem pubchemcid cas inchikey "
    "uniprot ensembl entrez entrezgene ncbigene hgnc mondo doid efo orphanet snomed snomedct icd10 icd11 loinc "
    "rxnorm atc unii cik isin cusip ein duns freebase mid dblp openalex mag semanticscholar iso3166 iata icao "
    "goodreads oclc lccn wikipedia".split()
}
_SAME = frozenset(("same as", "sameas", "exact match", "owl same as", "skos exact match"))
#: Scores: an identifier or sameAs; a name of the same type; a name alone; a name of another type; a title.
IDENTIFIED, SAME_TYPE, NAMED, OTHER_TYPE, TITLED = 1.0, 0.9, 0.8, 0.6, 0.8
#: A name that more nodes of a graph have is not compared.
COMMON = 50
#: Nodes that are read at once, for the index of identifiers and for alignments.
_INDEXED_BATCH, _ALIGNED_BATCH = 4096, 512


def identifier_scheme(property: str) -> str:
    """Return the scheme of a property's values, "" for one that identifies nothing.

    >>> [identifier_scheme(property) for property in ("imdb_id", "Wikidata ID", "id", "year")]
    ['imdb', 'wikidata', '', '']
    """
    key = re.sub(r"[\W_]+", "", verbalise_relation(property))
    for ending in ("identifier", "number", "id", ""):
        if key.endswith(ending) and key[: len(key) - len(ending)] in _SCHEMES:
            return _SCHEMES[key[: len(key) - len(ending)]]
    return ""


def is_same_as_relation(relation: str) -> bool:
    """Return whether a relation or a property connects the same things (``owl:sameAs``, ``skos:exactMatch``)."""
    return verbalise_relation(relation) in _SAME


def parse_external_id(external: str) -> Identifier | None:
    """Return the identifier in an external id: a Wikidata id or an IRI; None for an id that only its graph knows."""
    if match := _WIKIDATA.match(external):
        return "wikidata", match["id"]
    return ("iri", external) if _IRI.match(external) else None


def external_id_forms(identifier: Identifier) -> tuple[str, ...]:
    """Return the external ids that a node with this identifier may have in another graph."""
    scheme, value = identifier
    if scheme == "wikidata":
        return tuple(form.format(value) for form in _FORMS)
    return (value,) if scheme == "iri" else ()


def entity_identifiers(entity: Entity) -> dict[Identifier, str]:
    """Return the identifiers of a node, each with its evidence: ``identifier wikidata=Q2868``, ``sameAs``."""
    identifiers: dict[Identifier, str] = {}
    own = parse_external_id(entity.id.partition(":")[2])
    if own is not None:
        identifiers[own] = _identifier_evidence(own)
    for property, values in entity.properties.items():
        for value in values if isinstance(values, tuple) else (values,):
            text = str(value).strip()
            if is_same_as_relation(property):
                if same := parse_external_id(text):
                    identifiers.setdefault(same, "sameAs")
            elif text and (scheme := identifier_scheme(property)):
                wikidata = _WIKIDATA.match(text) if scheme == "wikidata" else None
                identifier = (scheme, wikidata["id"] if wikidata else _normalise_value(scheme, text))
                identifiers.setdefault(identifier, _identifier_evidence(identifier))
    return identifiers


def _normalise_value(scheme: str, value: str) -> str:
    """Return a value in the form in which values are compared: without case, the catalogue's address, and hyphens."""
    value = value.rstrip("/").casefold()
    if "://" in value:
        value = value.split("://", 1)[1].partition("/")[2] if scheme == "doi" else value.rsplit("/", 1)[1]
    return value.replace("-", "") if scheme.startswith(("isbn", "issn", "isni", "orcid")) else value


def _identifier_evidence(identifier: Identifier) -> str:
    return f"identifier {identifier[0]}={identifier[1]}"


class IdentifierIndex:
    """The rows of a graph by the hashes of their identifiers: ``hashes``, ascending, and ``owners``. Making it reads
    every id, and every node with an identifying property, once."""

    def __init__(self, graph: PropertyGraph) -> None:
        hashes: list[int] = []
        rows: list[int] = []
        ids = graph.ids(np.arange(graph.size))
        named = [row for row, id in enumerate(ids) if parse_external_id(id.partition(":")[2])]
        names = [name for name in graph.properties() if identifier_scheme(name) or is_same_as_relation(name)]
        columns = [column for name in names if (column := graph.property_values(name)) is not None]
        described = union([np.array(named, dtype=np.int64), *(column.rows for column in columns)])  # type: ignore[list-item]
        for first in range(0, len(described), _INDEXED_BATCH):
            batch = described[first : first + _INDEXED_BATCH]
            for row, entity in zip(batch.tolist(), graph.entities(batch), strict=True):
                for identifier in entity_identifiers(entity):
                    hashes.append(_hash_identifier(identifier))
                    rows.append(row)
        hash_array, row_array = np.array(hashes, dtype=np.uint64), np.array(rows, dtype=np.int64)
        order = np.lexsort((row_array, hash_array))
        self.hashes, self.owners = hash_array[order], row_array[order]

    def rows(self, identifier: Identifier) -> Rows:
        """Return the rows with an identifier, ascending."""
        wanted = np.uint64(_hash_identifier(identifier))
        first = np.searchsorted(self.hashes, wanted)
        end = np.searchsorted(self.hashes, wanted, side="right")
        return self.owners[first:end]


def _hash_identifier(identifier: Identifier) -> int:
    return hash_term("\x1f".join(identifier))


@dataclass(frozen=True, slots=True)
class EntityAlignment:
    """Two nodes, or a node and a document, that are the same thing. ``score`` is from 0 to 1.

    ``source`` is the id of a node; ``target`` is the id of a node of another graph or, with ``document``, the key of
    a document about the node. ``by`` is the evidence: ``name 'Lima'``, ``alias 'Ciudad de los Reyes'``, ``identifier
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
        """The alignment and its evidence in a line: ``atlas:lima is films:Q2868: identifier wikidata=Q2868``."""
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

    A name counts only if one node on each side has it, or one of a type that both share, and never against different
    identifiers of one scheme. ``thorough`` also compares identifying properties (``imdb_id``), for which every graph
    is read once in a snapshot, except the mounted graphs in ``remote``. Raises NotFound, UsageError.
    """
    aligner = _Aligner(snapshot, frozenset(remote), thorough)
    node = _open_node(snapshot, id)
    return aligner.align(node, [name for name in snapshot.graphs() if name != node.graph.name])


def align_entity_with(snapshot: Snapshot, id: str, name: str) -> tuple[EntityAlignment, ...]:
    """Return what is the same as a node in the graph ``name``, the surest first, as :func:`align_entity` without
    ``thorough`` does. Other graphs and documents are not read. Raises NotFound, UsageError."""
    if name == snapshot.graph(id.partition(":")[0]).name:
        return ()
    aligner = _Aligner(snapshot, frozenset(), thorough=False)
    return _sort_alignments(aligner.align_in_graphs(_open_node(snapshot, id), [name]))


def align_graphs(
    snapshot: Snapshot, graph: str | None = None, *, remote: Collection[str] = ()
) -> Iterator[EntityAlignment]:
    """Yield the alignments of a graph's nodes, or of every graph's, in the order of their ids, each pair of nodes
    once.

    The nodes of mounted graphs (``remote``) are not listed; they are only found from other graphs. Raises UsageError.
    """
    aligner = _Aligner(snapshot, frozenset(remote), thorough=True)
    listed = [name for name in snapshot.graphs() if name not in aligner.remote]
    by_size = sorted(listed, key=lambda name: (snapshot.graph(name).size, name))
    for name in listed if graph is None else [graph] if graph in listed else []:
        # Between two graphs that can both be listed, alignments are looked for from the smaller one.
        smaller = by_size[: by_size.index(name)] if graph is None else []
        others = [other for other in snapshot.graphs() if other != name and other not in smaller]
        opened = snapshot.graph(name)
        rows = np.arange(opened.size) if others else aligner.rows_called_like_documents(opened)
        for first in range(0, len(rows), _ALIGNED_BATCH):
            batch = rows[first : first + _ALIGNED_BATCH]
            for row, entity in zip(batch.tolist(), opened.entities(batch), strict=True):
                node = _Node(opened, row, entity)
                if not (node.is_bare and aligner.rows_declaring_same(opened, row)):
                    yield from aligner.align(node, others)


@dataclass(frozen=True, slots=True)
class _Node:
    graph: PropertyGraph
    row: int
    entity: Entity

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known of the node. As the tail of sameAs it only stands for the head."""
        entity = self.entity
        return not (entity.type or entity.text or entity.aliases or entity.properties)


def _open_node(snapshot: Snapshot, id: str) -> _Node:
    graph = snapshot.graph(id.partition(":")[0])
    rows = graph.rows([id])
    (entity,) = graph.entities(rows)
    return _Node(graph, int(rows[0]), entity)


@dataclass(slots=True)
class _Evidence:
    """What speaks for an alignment, and the highest score of it."""

    score: float = 0.0
    by: dict[str, None] = field(default_factory=dict)

    def add(self, by: str, score: float) -> None:
        self.by[by] = None
        self.score = max(self.score, score)


@dataclass(frozen=True, slots=True)
class _Aligner:
    """Looks for alignments in a snapshot, which remembers the indexes that this takes."""

    snapshot: Snapshot
    remote: frozenset[str]
    thorough: bool

    def align(self, node: _Node, others: Collection[str]) -> tuple[EntityAlignment, ...]:
        """Return the alignments of a node with other graphs and with documents, the surest first."""
        return _sort_alignments([*self.align_in_graphs(node, others), *self._align_with_documents(node)])

    def align_in_graphs(self, node: _Node, others: Collection[str]) -> list[EntityAlignment]:
        """Return the alignments of a node with nodes of other graphs."""
        entity, identifiers = node.entity, entity_identifiers(node.entity)
        for external in self._ids_declared_same(node):
            if (identifier := parse_external_id(external)) is not None:
                identifiers.setdefault(identifier, "sameAs")
        alignments: list[EntityAlignment] = []
        for name in others:
            other = self.snapshot.graph(name)
            evidence: dict[int, _Evidence] = {}
            self._find_by_identifier(identifiers, other, evidence)
            _find_by_name(node, identifiers, other, evidence)
            targets = other.entities(np.array(list(evidence), dtype=np.int64))
            alignments += [
                EntityAlignment(entity.id, entity.name, target.id, target.name, of.score, tuple(of.by))
                for target, of in zip(targets, evidence.values(), strict=True)
            ]
        return alignments

    def _align_with_documents(self, node: _Node) -> list[EntityAlignment]:
        """Return the alignments with documents whose title is a name of the node, if one document and one node of the
        graph are called so."""
        entity, titles = node.entity, self._documents_by_title()
        alignments: dict[str, EntityAlignment] = {}
        for name in (entity.name, *entity.aliases):
            documents = titles.get(fold_name(name), ()) if titles else ()
            if len(documents) == 1 and len(node.graph.find_by_name(name)) == 1:
                ((key, title),) = documents
                by = (f"title '{title}'",)
                alignment = EntityAlignment(entity.id, entity.name, key, title, TITLED, by, document=True)
                alignments.setdefault(key, alignment)
        return list(alignments.values())

    def _find_by_identifier(
        self, identifiers: dict[Identifier, str], other: PropertyGraph, evidence: dict[int, _Evidence]
    ) -> None:
        """Add evidence for the nodes of another graph to which an identifier, or sameAs on either side, leads."""
        index = self._identifier_index(other)
        for identifier, by in identifiers.items():
            rows: dict[int, None] = {}
            for form in external_id_forms(identifier):
                try:
                    rows[int(other.rows([f"{other.name}:{form}"])[0])] = None
                except NotFound:
                    continue
            if index is not None:
                rows.update(dict.fromkeys(index.rows(identifier).tolist()))
            for row in rows:
                declaring = self.rows_declaring_same(other, row)
                for head in declaring:
                    evidence.setdefault(head, _Evidence()).add("sameAs", IDENTIFIED)
                if declaring and _Node(other, row, other.entities(np.array([row]))[0]).is_bare:
                    continue  # it only stands for the node that declares it
                evidence.setdefault(row, _Evidence()).add(by, IDENTIFIED)

    def _ids_declared_same(self, node: _Node) -> list[str]:
        """Return the external ids that the node's own edges declare to be the same, in either direction."""
        ids = []
        for relation in self._same_as_relations(node.graph):
            for inverse in (False, True):
                ends = node.graph.neighbours(np.array([node.row], dtype=np.int64), relation, inverse)[1]
                ids += [id.partition(":")[2] for id in node.graph.ids(ends)]
        return ids

    def rows_declaring_same(self, graph: PropertyGraph, row: int) -> list[int]:
        """Return the rows whose edges declare that they are the same as ``row``."""
        rows = np.array([row], dtype=np.int64)
        heads: list[int] = []
        for relation in self._same_as_relations(graph):
            heads += graph.neighbours(rows, relation, inverse=True)[1].tolist()
        return heads

    def rows_called_like_documents(self, graph: PropertyGraph) -> Rows:
        """Return the rows of a graph that are called like a document, ascending."""
        return union([graph.find_by_name(title) for title in self._documents_by_title()])

    def _identifier_index(self, graph: PropertyGraph) -> IdentifierIndex | None:
        if not self.thorough or graph.name in self.remote:
            return None
        index: IdentifierIndex = self.snapshot.memoize(
            f"identifiers/{graph.name}", lambda: IdentifierIndex(graph)
        )
        return index

    def _same_as_relations(self, graph: PropertyGraph) -> list[str]:
        relations: list[str] = self.snapshot.memoize(
            f"same as/{graph.name}",
            lambda: [relation for relation in graph.relations() if is_same_as_relation(relation)],
        )
        return relations

    def _documents_by_title(self) -> dict[str, list[tuple[str, str]]]:
        """Return the keys and titles of documents by their folded titles, whole and without a qualifier."""

        def make() -> dict[str, list[tuple[str, str]]]:
            by_title: dict[str, list[tuple[str, str]]] = {}
            for document in self.snapshot.documents():
                titles = {fold_name(document.title), fold_name(split_qualifier(document.title)[0])}
                for title in titles - {""}:
                    by_title.setdefault(title, []).append((document.key, document.title))
            return by_title

        documents: dict[str, list[tuple[str, str]]] = self.snapshot.memoize("titles/folded", make)
        return documents


def _sort_alignments(alignments: Sequence[EntityAlignment]) -> tuple[EntityAlignment, ...]:
    return tuple(sorted(alignments, key=lambda alignment: (-alignment.score, alignment.target)))


def _find_by_name(
    node: _Node,
    identifiers: dict[Identifier, str],
    other: PropertyGraph,
    evidence: dict[int, _Evidence],
) -> None:
    """Add evidence for the nodes of another graph with a name of this one, if the name distinguishes them."""
    entity, types = node.entity, _type_stems(node.entity)
    names = {fold_name(name): name for name in reversed((entity.name, *entity.aliases)) if name}
    for folded, name in reversed(names.items()):
        theirs, ours = other.find_by_name(name), node.graph.find_by_name(name)
        if not len(theirs) or max(len(theirs), len(ours)) > COMMON:
            continue
        targets = other.entities(theirs)
        single = len(ours) == len(theirs) == 1
        shared_type = sum(bool(_type_stems(target) & types) for target in targets)
        if not single and (
            shared_type != 1 or sum(bool(_type_stems(own) & types) for own in node.graph.entities(ours)) != 1
        ):
            continue
        for target, row in zip(targets, theirs.tolist(), strict=True):
            same_type = bool(_type_stems(target) & types)
            if not (single or same_type):
                continue
            if row not in evidence and _contradict(identifiers, entity_identifiers(target)):
                continue
            score = SAME_TYPE if same_type else OTHER_TYPE if types and _type_stems(target) else NAMED
            kind = "name" if folded == fold_name(entity.name) == fold_name(target.name) else "alias"
            evidence.setdefault(row, _Evidence()).add(f"{kind} '{name}'", score)


def _type_stems(entity: Entity) -> frozenset[str]:
    types = (type for type in (entity.type, *entity.more_types) if type)
    return frozenset(" ".join(sorted(word_stems(verbalise_relation(type)))) for type in types)


def _contradict(ours: dict[Identifier, str], theirs: dict[Identifier, str]) -> bool:
    """Return whether two nodes have different identifiers of one scheme. IRIs of two publishers do not contradict."""
    schemes = {scheme for scheme, _ in ours} & {scheme for scheme, _ in theirs} - {"iri"}
    return any(
        not {identifier for identifier in ours if identifier[0] == scheme}
        & {identifier for identifier in theirs if identifier[0] == scheme}
        for scheme in schemes
    )
