"""A question as typed triples, fitted to what graphs call things where that is plain, and what is not there said.

Only names of the schema are fitted: types and properties. What a relation or a constant means is linked later, by
likeness, with several candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.chains import NOT, Chain, Condition, Count, Term, Triple, TypedChain
from clew.link.wording import spelled, stems
from clew.methods.focus.constants import describes
from clew.protocols import PropertyGraph
from clew.text import folded_name

#: Spelling from which on a type is taken for another, of 100: "persno" for "person".
_ALIKE = 83
#: A shorter name than this is one letter away from too many others: "genre" is no "gene".
_SHORT = 6
_CALLED = re.compile(r"(?P<name>.+\S)\s*\((?P<type>[^()]+)\)")


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fitted question, and what was changed or is not there, in words."""

    chain: TypedChain
    notes: tuple[str, ...] = ()


def fitted(chain: TypedChain, graphs: Sequence[PropertyGraph]) -> Fitted:
    """Return the question with types and properties called as ``graphs`` call them.

    A type that no graph has stays as it is, unless one has its words or almost its spelling ("Films", "persno").
    A triple whose relation is called as a property is, and as no relation, is a condition. ``David Lynch (person)``
    is David Lynch, a person, where no node is called so and ``person`` is a type. Raises RemoteError.
    """
    types = list(dict.fromkeys(type for graph in graphs for type in graph.types()))
    properties = list(dict.fromkeys(name for graph in graphs for name in graph.properties()))
    notes: dict[str, None] = {}
    # Of a mounted graph neither may be known; what is not among them may be there all the same.
    typed, described = all(graph.types() for graph in graphs), not any(graph.mounted for graph in graphs)

    def known(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_named("type", one, types, notes, typed) for one in given))

    chain = _without_types_in_names(chain, graphs, types)
    chain = _with_conditions(chain, graphs, properties, notes)
    conditions = tuple(
        replace(one, property=_named("property", one.property, properties, notes, described))
        for one in chain.conditions
    )
    made = replace(
        chain,
        types={number: known(given) for number, given in chain.types.items()},
        kinds={name: known(given) for name, given in chain.kinds.items()},
        conditions=conditions,
    )
    return Fitted(made, tuple(notes))


def _named(what: str, name: str, known: Sequence[str], notes: dict[str, None], complete: bool) -> str:
    if name in known:
        return name
    near = _nearest(name, known)
    if near is None:
        if complete:
            notes[f"no graph has the {what} '{name}'"] = None
        return name
    if folded_name(near) != folded_name(name):
        notes[f"{what} '{name}' read as '{near}'"] = None
    return near


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the one that is called the same in other words or almost so spelled; None where none or several are."""
    from rapidfuzz import fuzz, process

    folded = folded_name(spelled(name))
    for same in (
        [one for one in known if folded_name(spelled(one)) == folded],
        [one for one in known if stems(spelled(one)) == stems(folded)],
        # "gene" where there is "gene/protein"; every word that is said must be one of its.
        [one for one in known if stems(folded) < stems(spelled(one))],
    ):
        if same:
            return same[0] if len(same) == 1 else None
    if len(folded) < _SHORT:
        return None
    found = process.extract(
        folded, [spelled(one) for one in known], scorer=fuzz.ratio, score_cutoff=_ALIKE, limit=2
    )
    clear = found and (len(found) == 1 or found[0][1] > found[1][1])
    return known[found[0][2]] if clear else None


def _without_types_in_names(
    chain: TypedChain, graphs: Sequence[PropertyGraph], types: Sequence[str]
) -> TypedChain:
    renamed: dict[str, str] = {}
    kinds = dict(chain.kinds)
    for name in _constants(chain.chain.triples):
        match = _CALLED.fullmatch(name)
        type = _nearest(match["type"], types) if match and types else None
        if match is None or type is None or any(len(graph.named(name)) for graph in graphs):
            continue
        renamed[name] = match["name"]
        kinds.setdefault(match["name"], kinds.pop(name, (type,)))
    if not renamed:
        return chain

    def term(one: Term) -> Term:
        return Term(renamed.get(one.text, one.text))

    triples = tuple(Triple(term(one.head), one.relation, term(one.tail)) for one in chain.chain.triples)
    return replace(chain, chain=Chain(triples, chain.chain.answer), kinds=kinds)


def _with_conditions(
    chain: TypedChain, graphs: Sequence[PropertyGraph], properties: Sequence[str], notes: dict[str, None]
) -> TypedChain:
    relations = {folded_name(spelled(name)) for graph in graphs for name in graph.relations()}
    called: Mapping[str, str] = {folded_name(spelled(name)): name for name in reversed(properties)}
    triples: list[Triple] = []
    counts: dict[int, Count] = {}
    conditions = list(chain.conditions)
    for place, triple in enumerate(chain.chain.triples):
        count = chain.counts.get(place)
        relation = folded_name(spelled(triple.relation))
        property = called.get(relation) if relation not in relations else None
        unknown = triple.head.unknown
        if property and unknown is not None and triple.tail.unknown is None and count in (None, NOT):
            # "green" is said of what is light green as well; a name or a number is that alone.
            test = "says" if describes(triple.tail.text) else "="
            conditions.append(Condition(unknown, property, test, triple.tail.text, None, count == NOT))
            notes[f"'{triple.relation}' is a property, so its triple is a condition"] = None
            continue
        if count is not None:
            counts[len(triples)] = count
        triples.append(triple)
    if len(triples) == len(chain.chain.triples):
        return chain
    left = set(_constants(triples))
    return replace(
        chain,
        chain=Chain(tuple(triples), chain.chain.answer),
        counts=counts,
        conditions=tuple(dict.fromkeys(conditions)),
        kinds={name: types for name, types in chain.kinds.items() if name in left},
    )


def _constants(triples: Iterable[Triple]) -> list[str]:
    ends = (end for triple in triples for end in (triple.head, triple.tail))
    return list(dict.fromkeys(end.text for end in ends if end.unknown is None))
