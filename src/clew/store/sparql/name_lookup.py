"""Finding nodes of a mounted graph by name: as it is spelled, by a table of titles, or by the endpoint's own search.

A search service turns a name into SPARQL queries, the strictest first. Each query returns resources (``?x``) and,
where it can, the label by which each was found (``?l``); the similarity of the names is computed here.

* ``wikidata``: the MediaWiki API service of the Wikidata Query Service: EntitySearch, which completes labels and
  aliases, then the full-text search with a letter or two to spare (``word~``).
* ``virtuoso``: ``bif:contains``, the full-text index of a Virtuoso store: all words, then prefixes of some.
* ``qlever``: ``ql:contains-word``, the text index of a QLever store that was built with its literals: the same.
* ``scan``: no index, plain SPARQL 1.1. It looks at every label, so it is for stores of up to some hundred thousand
  labels, such as a small Oxigraph.

``scan`` is tested on a real Oxigraph. The queries of the other three follow their documentation and were tested
against scripted endpoints only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clew.core.errors import RemoteError
from clew.core.text import fold_name
from clew.store.sparql.endpoint import format_literal, format_values, is_iri
from clew.store.sparql.mount_options import ALIAS, LABEL, MountOptions, SparqlSource, language_filter
from clew.store.sparql.title_table import TitleTable

#: Values of the option ``lookup`` besides the services: ``auto`` detects one, ``labels`` uses no search at all.
AUTO_LOOKUP, LABELS_LOOKUP = "auto", "labels"
#: Results of one query at most.
RESULT_LIMIT = 200
#: Nodes in one query.
IRIS_PER_QUERY = 100
#: Labels up to which ``auto`` chooses ``scan``.
MAX_SCANNED_LABELS = 200_000
#: Letters of a prefix at least: the indexes of Virtuoso and QLever accept no shorter ones.
_PREFIX_LENGTH = 4
_WORD = re.compile(r"\w+")
#: The search of wikidata.org returns items of wikidata.org; it does not know those of another Wikibase.
_WIKIDATA = "http://www.wikidata.org/"
_WIKIDATA_PREFIXES = (
    "PREFIX bd: <http://www.bigdata.com/rdf#> PREFIX wikibase: <http://wikiba.se/ontology#> "
    "PREFIX mwapi: <https://www.mediawiki.org/ontology#API/> "
)
_QLEVER_PREFIXES = "PREFIX ql: <http://qlever.cs.uni-freiburg.de/builtin-functions/> "

#: Turns a name into queries, given the languages of labels.
Service = Callable[[str, Sequence[str]], list[str]]

# The search services


def wikidata_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Return queries to the search of wikidata.org by ``SERVICE wikibase:mwapi``; they return no labels."""

    def query(api: str, item: str) -> str:
        return (
            f"{_WIKIDATA_PREFIXES}SELECT DISTINCT ?x WHERE {{ SERVICE wikibase:mwapi {{ "
            f'bd:serviceParam wikibase:endpoint "www.wikidata.org" ; wikibase:limit {RESULT_LIMIT} ; {api} . '
            f"?x wikibase:apiOutputItem mwapi:{item} }} }} LIMIT {RESULT_LIMIT}"
        )

    entity_searches = [
        f'wikibase:api "EntitySearch" ; mwapi:search {format_literal(name)} ; mwapi:language "{language}"'
        for language in languages
    ]
    fuzzy = " ".join(f"{word}~" if len(word) > _PREFIX_LENGTH else word for word in _words(name))
    full_text_search = (
        f'wikibase:api "Generator" ; mwapi:generator "search" ; mwapi:gsrsearch {format_literal(fuzzy)} ; '
        f'mwapi:gsrlimit "max"'
    )
    return [query(api, "item") for api in entity_searches] + (
        [query(full_text_search, "title")] if fuzzy else []
    )


def virtuoso_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Return queries to Virtuoso's full-text index by ``bif:contains``."""
    expressions = [
        " AND ".join(f"'{word}'" for word in _words(name)),
        " OR ".join(f"'{prefix}*'" for prefix in _prefixes(name)),
    ]
    return [
        _label_query(f"?l <bif:contains> {format_literal(expression)}", languages)
        for expression in expressions
        if expression
    ]


def qlever_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Return queries to QLever's text index by ``ql:contains-word``; a text is joined to the label it contains."""

    def query(*expressions: str) -> str:
        patterns = (
            f"{{ ?t ql:contains-word {format_literal(expression)} . ?t ql:contains-entity ?l }}"
            for expression in expressions
        )
        return _QLEVER_PREFIXES + _label_query(" UNION ".join(patterns), languages)

    words, prefixes = _words(name), _prefixes(name)
    return ([query(" ".join(words))] if words else []) + (
        [query(*(f"{prefix}*" for prefix in prefixes))] if prefixes else []
    )


def scan_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Return a query over every label for those with most of the name's letters in pieces, longest pieces first.

    Long words are cut in half: a wrong letter then spoils one half, and the label is found by the other.
    """
    pieces = dict.fromkeys(piece for word in _words(name) for piece in _halves(word))
    if not pieces:
        return []
    points = " + ".join(f"IF(CONTAINS(?n, {format_literal(piece)}), {len(piece)}, 0)" for piece in pieces)
    return [
        f"SELECT DISTINCT ?x ?l ?s (STRLEN(?n) AS ?z) WHERE {{ ?x <{LABEL}>|<{ALIAS}> ?l FILTER(isIRI(?x)) "
        f"{language_filter('l', languages)} BIND(LCASE(STR(?l)) AS ?n) BIND({points} AS ?s) FILTER(?s > 0) }} "
        f"ORDER BY DESC(?s) ?z ?l ?x LIMIT {RESULT_LIMIT}"
    ]


SERVICES: Mapping[str, Service] = {
    "wikidata": wikidata_queries,
    "virtuoso": virtuoso_queries,
    "qlever": qlever_queries,
    "scan": scan_queries,
}
LOOKUPS = (AUTO_LOOKUP, LABELS_LOOKUP, *SERVICES)


def _label_query(pattern: str, languages: Sequence[str]) -> str:
    """Return a query for resources with a label ``?l`` that a pattern finds.

    It has two branches, and not a path of alternatives: a text index is asked for the objects of one property.
    """
    branches = " UNION ".join(f"{{ ?x <{label}> ?l . {pattern} }}" for label in (LABEL, ALIAS))
    return (
        f"SELECT DISTINCT ?x ?l WHERE {{ {branches} FILTER(isIRI(?x)) {language_filter('l', languages)} }} "
        f"LIMIT {RESULT_LIMIT}"
    )


def _words(name: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(name.lower())))


def _prefixes(name: str) -> list[str]:
    """Return the first half of every word, at least four letters of it; none of shorter words."""
    long_words = (word for word in _words(name) if len(word) >= _PREFIX_LENGTH)
    return list(dict.fromkeys(word[: max(_PREFIX_LENGTH, len(word) // 2)] for word in long_words))


def _halves(word: str) -> list[str]:
    folded = fold_name(word)
    spellings = [word] if folded == word else [word, folded]
    middle = len(word) // 2
    return [
        half
        for spelling in spellings
        for half in ((spelling[:middle], spelling[middle:]) if len(spelling) > 3 else (spelling,))
    ]


# Looking names up


@dataclass(frozen=True, slots=True)
class NameLookup:
    """Looks names up in ``source``; ``service`` names the search that is used, "labels" for none."""

    source: SparqlSource
    options: MountOptions
    service: str = LABELS_LOOKUP
    titles: TitleTable | None = None

    def find_by_name(self, name: str) -> list[str]:
        """Return the resources with this name or alias, ascending.

        The table of titles comes first: a title is one article, while a hundred things may have the same label.
        Then labels in the spelling of ``name`` and in other capitals, which every store has an index of; where there
        is none, equal names among those that the search finds.
        """
        return self._find_by_title(name) or self._find_by_spelling(name) or self._find_by_search(name)

    def find_similar_names(self, name: str, k: int) -> list[tuple[str, float]]:
        """Return at most ``k`` resources with the most similar names, best first, ties by IRI, and the similarity.

        Similarity is rapidfuzz's ``ratio`` of the folded names, from 0 to 1; of several names the highest.
        """
        equal = dict.fromkeys(self._find_by_title(name) or self._find_by_spelling(name), 1.0)
        similar = self._find_candidates(name, k) if len(equal) < k else {}
        ranked = sorted((similar | equal).items(), key=lambda candidate: (-candidate[1], candidate[0]))
        return ranked[:k]

    def _find_by_title(self, name: str) -> list[str]:
        iris = self.titles.find_ids(name) if self.titles is not None else []
        return existing_resources(self.source, iris)

    def _find_by_spelling(self, name: str) -> list[str]:
        plain = name.strip()
        spellings = dict.fromkeys((plain, plain.title(), plain.capitalize(), plain.lower(), plain.upper()))
        terms = [
            format_literal(spelling, language)
            for spelling in spellings
            if spelling
            for language in ("", *self.options.languages)
        ]
        if not terms:
            return []
        pattern = f"{format_values('l', terms)} ?x <{LABEL}>|<{ALIAS}> ?l FILTER(isIRI(?x))"
        solutions = self.source.select(f"SELECT DISTINCT ?x ?l WHERE {{ {pattern} }}")
        folded = fold_name(name)
        return sorted(
            {solution["x"]["value"] for solution in solutions if fold_name(solution["l"]["value"]) == folded}
        )

    def _find_by_search(self, name: str) -> list[str]:
        """Return the resources that the strictest query of the search finds under an equal name."""
        for similarities in self._search(name, 1):
            return sorted(iri for iri, similarity in similarities.items() if similarity == 1.0)
        return []

    def _find_candidates(self, name: str, k: int) -> dict[str, float]:
        """Return the similarities of the search's results; queries get less strict until there are ``k``."""
        candidates: dict[str, float] = {}
        for similarities in self._search(name):
            candidates |= similarities
            if len(candidates) >= k:
                break
        return candidates

    def _search(self, name: str, max_queries: int | None = None) -> Iterator[dict[str, float]]:
        """Yield for each query of the search the resources that it finds and the similarity of their names."""
        from rapidfuzz import fuzz

        service = SERVICES.get(self.service)
        folded = fold_name(name)
        if service is None or not folded:
            return
        for query in service(name.strip(), self.options.languages)[:max_queries]:
            similarities: dict[str, float] = {}
            for iri, label in self._select_labelled(query):
                folded_label = fold_name(label)
                similarity = 1.0 if folded_label == folded else fuzz.ratio(folded_label, folded) / 100
                similarities[iri] = max(similarities.get(iri, 0.0), similarity)
            yield similarities

    def _select_labelled(self, query: str) -> Iterator[tuple[str, str]]:
        """Yield the resources that a query finds, each with a name; one with several names several times."""
        unlabelled = []
        for solution in self.source.select(query):
            if "x" in solution and "l" in solution:
                yield solution["x"]["value"], solution["l"]["value"]
            elif "x" in solution:
                unlabelled.append(solution["x"]["value"])
        for batch in split_iris([iri for iri in unlabelled if is_iri(iri)]):
            label_query = (
                f"SELECT ?x ?l WHERE {{ {values_clause('x', batch)} ?x <{LABEL}>|<{ALIAS}> ?l "
                f"{self.options.language_filter('l')} }}"
            )
            for solution in self.source.select(label_query):
                yield solution["x"]["value"], solution["l"]["value"]


def detect_service(source: SparqlSource, options: MountOptions, wikidata: bool) -> str:
    """Return the search to use: that of the options, or for ``auto`` the first that finds a label known to exist.

    ``wikidata``: the properties of the graph are those of Wikidata. That an endpoint accepts a query proves nothing:
    to many, the search of another store is a property that no resource has.
    """
    if options.lookup != AUTO_LOOKUP:
        return options.lookup
    query = f"SELECT ?l WHERE {{ ?x <{LABEL}> ?l FILTER(isIRI(?x)) {options.language_filter('l')} }} LIMIT 20"
    labels = sorted((solution["l"]["value"] for solution in source.select(query)), key=len)
    if not labels:
        return LABELS_LOOKUP
    # A label of middling length is neither a sign nor a sentence. The first labels of Wikidata may be of no item.
    usual = labels[len(labels) // 2]
    probes = [("wikidata", "Earth")] if wikidata else []
    for service, probe in (*probes, ("virtuoso", usual), ("qlever", usual)):
        try:
            if any(source.select(query) for query in SERVICES[service](probe, options.languages)[:1]):
                return service
        except RemoteError:  # refused: the endpoint has no such search
            continue
    count = source.select(
        f"SELECT (COUNT(*) AS ?n) WHERE {{ SELECT ?x WHERE {{ ?x <{LABEL}> ?l }} LIMIT {MAX_SCANNED_LABELS + 1} }}"
    )
    return "scan" if int(count[0]["n"]["value"]) <= MAX_SCANNED_LABELS else LABELS_LOOKUP


def is_wikidata(properties: Iterable[str]) -> bool:
    """Return whether the properties belong to wikidata.org."""
    return any(iri.startswith(_WIKIDATA) for iri in properties)


def existing_resources(source: SparqlSource, iris: Sequence[str]) -> list[str]:
    """Return the resources that occur in any statement, in the given order."""
    existing: set[str] = set()
    for batch in split_iris([iri for iri in dict.fromkeys(iris) if is_iri(iri)]):
        statement = "{ ?x ?p ?o } UNION { ?s ?q ?x }"
        query = f"SELECT DISTINCT ?x WHERE {{ {values_clause('x', batch)} FILTER EXISTS {{ {statement} }} }}"
        existing |= {solution["x"]["value"] for solution in source.select(query)}
    return [iri for iri in iris if iri in existing]


def split_iris(iris: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield IRIs in batches, each for one query."""
    return (iris[start : start + IRIS_PER_QUERY] for start in range(0, len(iris), IRIS_PER_QUERY))


def values_clause(name: str, iris: Iterable[str]) -> str:
    """Return ``VALUES ?name { <iri> ... }``."""
    return format_values(name, (f"<{iri}>" for iri in iris))
