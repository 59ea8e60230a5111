"""How an endpoint's own search is asked for names that are like a given one.

A service turns a name into SPARQL questions, the strictest first. Each question gives resources (``?x``) and, where
it can, the label by which each was found (``?l``); how like the names are is for :mod:`clew.kb.graphs.lookup` to say.

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
from collections.abc import Callable, Mapping, Sequence

from clew.kb.graphs.mounting import ALIAS, LABEL, language_filter
from clew.kb.graphs.sparql import format_literal
from clew.text import fold_name

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
        found = (f"{{ ?t ql:contains-word {format_literal(one)} . ?t ql:contains-entity ?l }}" for one in patterns)
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
    return f"SELECT DISTINCT ?x ?l WHERE {{ {either} FILTER(isIRI(?x)) {language_filter('l', languages)} }} LIMIT {RESULT_LIMIT}"


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
