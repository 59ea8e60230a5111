"""How a graph that stays elsewhere is asked, and by what words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
#: What an answer says of one variable: its kind (``uri``, ``literal``, ``bnode``), value, language, datatype.
Term = Mapping[str, str]


class SparqlSource(Protocol):
    """What answers SPARQL: an endpoint, or a store on this machine."""

    def select(self, query: str) -> list[dict[str, Term]]:
        """Return the solutions of a SELECT query. Raises RemoteError."""
        ...


@dataclass(frozen=True, slots=True)
class MountOptions:
    """How a mounted graph is asked: languages of names, the preferred first; seconds; which property gives types; at
    most how many nodes a question about a whole type may bring.

    ``lookup`` is what finds names that are not spelled as they are given (:mod:`clew.store.sparql.name_lookup`);
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
        """Return the options as they are stored."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, said: str) -> MountOptions:
        """Return the options that :meth:`said` stored."""
        kept = json.loads(said)
        return cls(**(kept | {"languages": tuple(kept["languages"])}))

    def language_filter(self, name: str) -> str:
        """Return a filter that keeps what is no literal, or has a language that is asked for, or none."""
        return language_filter(name, self.languages)

    def language_rank(self, term: Term) -> int:
        """Return the place of a text's language among those asked for; theirs last that have none or another."""
        language = term.get("xml:lang", "").lower()
        for place, wanted in enumerate(self.languages):
            if language == wanted or language.startswith(f"{wanted}-"):
                return place
        return len(self.languages)


def language_filter(name: str, languages: Sequence[str]) -> str:
    """Return the filter of :meth:`MountOptions.in_language`."""
    wanted = [f'langMatches(lang(?{name}), "{one}")' for one in languages]
    return f'FILTER(!isLiteral(?{name}) || lang(?{name}) = "" || {" || ".join(wanted)})'
