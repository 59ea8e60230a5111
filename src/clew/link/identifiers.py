"""What identifies a node beyond its graph: ids of Wikidata, IRIs, and properties that hold the ids of other
catalogues.

An identifier is a scheme and a value: ``("wikidata", "Q2868")``. Two nodes with the same one are the same thing; with
different ones of one scheme they are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from clew.link.wording import verbalise_relation
from clew.text import hash_term

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, Rows
    from clew.types import Entity

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
