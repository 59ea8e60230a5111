"""How an endpoint's own search is asked for names that are like a given one.

A service turns a name into SPARQL questions, the strictest first. Each question gives resources (``?x``) and, where
it can, the label by which each was found (``?l``); how like the names are is for
:mod:`clew.store.sparql.name_lookup` to say.

* ``wikidata``: the MediaWiki API service of the Wikidata Query Service: EntitySearch, which completes labels and
  aliases, then the full-text search with a letter or two to spare (``word~``).
* ``virtuoso``: ``bif:contains``, the full-text index of a Virtuoso store: all words, then beginnings of some.
* ``qlever``: ``ql:contains-word``, the text index of a QLever store that was built with its literals: the same.
* ``scan``: no index, plain SPARQL 1.1. Every label is looked at, so it is for stores of up to some hundred thousand
  labels, such as a small Oxigraph.

``scan`` is tested on a real Oxigraph. The questions of the other three follow their documentation and were tested
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

#: What ``lookup`` may be: ``auto`` looks what there is, ``labels`` uses no search at all.
AUTO_LOOKUP, LABELS_LOOKUP = "auto", "labels"
#: Answers that one question may bring.
RESULT_LIMIT = 200
#: Letters that a beginning must have: the indexes of Virtuoso and QLever know no shorter ones.
_BEGINNING = 4
_WORD = re.compile(r"\w+")
_WIKIDATA = (
    "PREFIX bd: <http://www.bigdata.com/rdf#> PREFIX wikibase: <http://wikiba.se/ontology#> "
    "PREFIX mwapi: <https://www.mediawiki.org/ontology#API/> "
)
_QLEVER = "PREFIX ql: <http://qlever.cs.uni-freiburg.de/builtin-functions/> "

Service = Callable[[str, Sequence[str]], list[str]]
"""Turns a name into questions, given the languages of labels."""


def wikidata_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Ask the search of wikidata.org through ``SERVICE wikibase:mwapi``; labels have to be asked for afterwards."""

    def asked(api: str, item: str) -> str:
        return (
            f"{_WIKIDATA}SELECT DISTINCT ?x WHERE {{ SERVICE wikibase:mwapi {{ "
            f'bd:serviceParam wikibase:endpoint "www.wikidata.org" ; wikibase:limit {RESULT_LIMIT} ; {api} . '
            f"?x wikibase:apiOutputItem mwapi:{item} }} }} LIMIT {RESULT_LIMIT}"
        )

    entity = [
        f'wikibase:api "EntitySearch" ; mwapi:search {format_literal(name)} ; mwapi:language "{one}"'
        for one in languages
    ]
    loose = " ".join(f"{word}~" if len(word) > _BEGINNING else word for word in _words(name))
    generator = (
        f'wikibase:api "Generator" ; mwapi:generator "search" ; mwapi:gsrsearch {format_literal(loose)} ; '
        f'mwapi:gsrlimit "max"'
    )
    return [asked(one, "item") for one in entity] + ([asked(generator, "title")] if loose else [])


def virtuoso_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Ask Virtuoso's full-text index by ``bif:contains``."""

    def asked(pattern: str) -> str:
        return _of_labels(f"?l <bif:contains> {format_literal(pattern)}", languages)

    words, beginnings = _words(name), _beginnings(name)
    questions = [" AND ".join(f"'{word}'" for word in words), " OR ".join(f"'{one}*'" for one in beginnings)]
    return [asked(one) for one in questions if one]


def qlever_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Ask QLever's text index by ``ql:contains-word``; a text that it holds is joined to its label."""

    def asked(*patterns: str) -> str:
        found = (
            f"{{ ?t ql:contains-word {format_literal(one)} . ?t ql:contains-entity ?l }}" for one in patterns
        )
        return _QLEVER + _of_labels(" UNION ".join(found), languages)

    words, beginnings = _words(name), _beginnings(name)
    return ([asked(" ".join(words))] if words else []) + (
        [asked(*(f"{one}*" for one in beginnings))] if beginnings else []
    )


def scan_queries(name: str, languages: Sequence[str]) -> list[str]:
    """Look at every label: those that have most of the name's letters in pieces, the longest pieces first.

    Long words are cut in half: a wrong letter then spoils one half, and the label is found by the other.
    """
    pieces = dict.fromkeys(piece for word in _words(name) for piece in _halves(word))
    if not pieces:
        return []
    points = " + ".join(f"IF(CONTAINS(?n, {format_literal(one)}), {len(one)}, 0)" for one in pieces)
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


def _of_labels(found: str, languages: Sequence[str]) -> str:
    """Return a question for what is called by a label that a pattern finds. Two branches and not a path of
    alternatives: a text index is asked for the objects of one property."""
    either = " UNION ".join(f"{{ ?x <{one}> ?l . {found} }}" for one in (LABEL, ALIAS))
    return f"SELECT DISTINCT ?x ?l WHERE {{ {either} FILTER(isIRI(?x)) {language_filter('l', languages)} }} LIMIT {RESULT_LIMIT}"  # noqa: E501


def _words(name: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(name.lower())))


def _beginnings(name: str) -> list[str]:
    """Return the first half of every word, at least four letters of it; none of shorter words."""
    long = (word for word in _words(name) if len(word) >= _BEGINNING)
    return list(dict.fromkeys(word[: max(_BEGINNING, len(word) // 2)] for word in long))


def _halves(word: str) -> list[str]:
    plain = fold_name(word)
    spelled = [word] if plain == word else [word, plain]
    middle = len(word) // 2
    return [half for one in spelled for half in ((one[:middle], one[middle:]) if len(one) > 3 else (one,))]


#: Nodes asked about in one question.
IRIS_PER_QUERY = 100
#: Labels up to which ``auto`` chooses to look at all of them.
MAX_SCANNED_LABELS = 200_000
#: The search of wikidata.org finds what its endpoint holds; that of another Wikibase would not.
_WIKIDATA_lookup = "http://www.wikidata.org/"


@dataclass(frozen=True, slots=True)
class NameLookup:
    """Looks names up in ``answers``; ``service`` names its search, "labels" for none."""

    source: SparqlSource
    options: MountOptions
    service: str = LABELS_LOOKUP
    titles: TitleTable | None = None

    def find_by_name(self, name: str) -> list[str]:
        """Return the resources with this name or alias, ascending.

        What the table of titles says comes first: it is one article, where a label may be that of a hundred things.
        Then labels as ``name`` is spelled and in other capitals, which every store has an index of; where there is
        none, equal ones among those that the search finds.
        """
        return self._titled(name) or self._spelled(name) or self._found(name)

    def find_similar_names(self, name: str, k: int) -> list[tuple[str, float]]:
        """Return at most ``k`` resources whose names are most like ``name``, best first, ties by IRI, and likeness.

        Likeness is rapidfuzz's ``ratio`` of the folded names, from 0 to 1; that of several names the highest.
        """
        named = dict.fromkeys(self._titled(name) or self._spelled(name), 1.0)
        found = self._candidates(name, k) if len(named) < k else {}
        ranked = sorted((found | named).items(), key=lambda one: (-one[1], one[0]))
        return ranked[:k]

    def _titled(self, name: str) -> list[str]:
        iris = self.titles.find_ids(name) if self.titles is not None else []
        return existing_resources(self.source, iris)

    def _spelled(self, name: str) -> list[str]:
        said = name.strip()
        spelled = dict.fromkeys((said, said.title(), said.capitalize(), said.lower(), said.upper()))
        terms = [format_literal(one, tag) for one in spelled if one for tag in ("", *self.options.languages)]
        if not terms:
            return []
        pattern = f"{format_values('l', terms)} ?x <{LABEL}>|<{ALIAS}> ?l FILTER(isIRI(?x))"
        wanted = fold_name(name)
        found = self.source.select(f"SELECT DISTINCT ?x ?l WHERE {{ {pattern} }}")
        return sorted({one["x"]["value"] for one in found if fold_name(one["l"]["value"]) == wanted})

    def _found(self, name: str) -> list[str]:
        """Return what the strictest of the search's questions finds under an equal name."""
        for found in self._asked(name, 1):
            return sorted(iri for iri, likeness in found.items() if likeness == 1.0)
        return []

    def _candidates(self, name: str, k: int) -> dict[str, float]:
        """Return the likeness of what the search finds; it is asked less strictly until there are ``k``."""
        found: dict[str, float] = {}
        for more in self._asked(name):
            found |= more
            if len(found) >= k:
                break
        return found

    def _asked(self, name: str, most: int | None = None) -> Iterator[dict[str, float]]:
        """Yield for each question of the search what it finds, with its likeness."""
        from rapidfuzz import fuzz

        service = SERVICES.get(self.service)
        wanted = fold_name(name)
        if service is None or not wanted:
            return
        for question in service(name.strip(), self.options.languages)[:most]:
            best: dict[str, float] = {}
            for iri, label in self._labelled(question):
                said = fold_name(label)
                likeness = 1.0 if said == wanted else fuzz.ratio(said, wanted) / 100
                best[iri] = max(best.get(iri, 0.0), likeness)
            yield best

    def _labelled(self, question: str) -> Iterator[tuple[str, str]]:
        """Yield the resources that a question finds, each with a name; several times where it has several."""
        bare = []
        for one in self.source.select(question):
            if "x" in one and "l" in one:
                yield one["x"]["value"], one["l"]["value"]
            elif "x" in one:
                bare.append(one["x"]["value"])
        for batch in split_iris([iri for iri in bare if is_iri(iri)]):
            query = (
                f"SELECT ?x ?l WHERE {{ {values_clause('x', batch)} ?x <{LABEL}>|<{ALIAS}> ?l "
                f"{self.options.language_filter('l')} }}"
            )
            for one in self.source.select(query):
                yield one["x"]["value"], one["l"]["value"]


def detect_service(answers: SparqlSource, options: MountOptions, wikidata: bool) -> str:
    """Return the search that is used: the one asked for, or for ``auto`` the first that finds what is known to be
    there. ``wikidata``: its properties are Wikidata's.

    That an endpoint takes a question says nothing: to many, another's search is a property that nothing has.
    """
    if options.lookup != AUTO_LOOKUP:
        return options.lookup
    query = f"SELECT ?l WHERE {{ ?x <{LABEL}> ?l FILTER(isIRI(?x)) {options.language_filter('l')} }} LIMIT 20"
    known = sorted((one["l"]["value"] for one in answers.select(query)), key=len)
    if not known:
        return LABELS_LOOKUP
    # A label of middling length: neither a sign nor a sentence. What Wikidata has first may be no item.
    usual = known[len(known) // 2]
    probes = [("wikidata", "Earth")] if wikidata else []
    for name, probe in (*probes, ("virtuoso", usual), ("qlever", usual)):
        try:
            if any(answers.select(question) for question in SERVICES[name](probe, options.languages)[:1]):
                return name
        except RemoteError:  # refused: it has no such search
            continue
    counted = answers.select(
        f"SELECT (COUNT(*) AS ?n) WHERE {{ SELECT ?x WHERE {{ ?x <{LABEL}> ?l }} LIMIT {MAX_SCANNED_LABELS + 1} }}"
    )
    return "scan" if int(counted[0]["n"]["value"]) <= MAX_SCANNED_LABELS else LABELS_LOOKUP


def is_wikidata(properties: Iterable[str]) -> bool:
    """Return whether properties are those of wikidata.org."""
    return any(one.startswith(_WIKIDATA_lookup) for one in properties)


def existing_resources(answers: SparqlSource, iris: Sequence[str]) -> list[str]:
    """Return those resources of which anything is said, in the order given."""
    found: set[str] = set()
    for batch in split_iris([iri for iri in dict.fromkeys(iris) if is_iri(iri)]):
        said = "{ ?x ?p ?o } UNION { ?s ?q ?x }"
        query = f"SELECT DISTINCT ?x WHERE {{ {values_clause('x', batch)} FILTER EXISTS {{ {said} }} }}"
        found |= {one["x"]["value"] for one in answers.select(query)}
    return [iri for iri in iris if iri in found]


def split_iris(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield items as many at a time as one question asks about."""
    return (items[start : start + IRIS_PER_QUERY] for start in range(0, len(items), IRIS_PER_QUERY))


def values_clause(name: str, iris: Iterable[str]) -> str:
    """Return ``VALUES ?name { <iri> ... }``."""
    return format_values(name, (f"<{iri}>" for iri in iris))


# MERGED: Names of a mounted graph: found as they are spelled, by a table of titles, or by the endpoint's own search.
