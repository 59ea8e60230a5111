"""The options of a mounted graph, and the interface of the sources that answer SPARQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
#: The value of one variable in a solution: its kind (``uri``, ``literal``, ``bnode``), value, language, datatype.
Term = Mapping[str, str]


class SparqlSource(Protocol):
    """Anything that answers SPARQL: an endpoint, or a store on this machine."""

    def select(self, query: str) -> list[dict[str, Term]]:
        """Return the solutions of a SELECT query. Raises RemoteError."""
        ...


@dataclass(frozen=True, slots=True)
class MountOptions:
    """How a mounted graph is queried.

    ``languages`` are those of names, the preferred one first. ``timeout`` and ``interval`` are in seconds.
    ``type_property`` is the property that gives the types of nodes. Nodes of a type are listed up to ``most``.
    ``lookup`` is the search that finds similar names (:mod:`clew.store.sparql.name_lookup`);
    ``titles`` the path of a table from titles to ids (:mod:`clew.store.sparql.title_table`), "" for none.
    """

    languages: tuple[str, ...] = ("en",)
    timeout: float = 60.0
    interval: float = 0.0
    type_property: str = TYPE
    most: int = 100_000
    lookup: str = "auto"
    titles: str = ""

    def to_json(self) -> str:
        """Return the options in their stored form."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> MountOptions:
        """Return the options that :meth:`to_json` wrote."""
        options = json.loads(text)
        return cls(**(options | {"languages": tuple(options["languages"])}))

    def language_filter(self, name: str) -> str:
        """Return a SPARQL filter for literals in one of the languages or in none; other terms pass."""
        return language_filter(name, self.languages)

    def language_rank(self, term: Term) -> int:
        """Return the rank of a text's language among the languages; texts in another or none rank last."""
        language = term.get("xml:lang", "").lower()
        for rank, preferred in enumerate(self.languages):
            if language == preferred or language.startswith(f"{preferred}-"):
                return rank
        return len(self.languages)


def language_filter(name: str, languages: Sequence[str]) -> str:
    """Return the filter of :meth:`MountOptions.language_filter`."""
    matches = [f'langMatches(lang(?{name}), "{language}")' for language in languages]
    return f'FILTER(!isLiteral(?{name}) || lang(?{name}) = "" || {" || ".join(matches)})'
