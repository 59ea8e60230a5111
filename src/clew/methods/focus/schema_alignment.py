"""A question as typed triples, fitted to what graphs call things where that is plain, and what is not there said.

Only names of the schema are fitted: types and properties. What a relation or a constant means is linked later, by
likeness, with several candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.core.protocols import PropertyGraph
from clew.core.text import fold_name
from clew.methods.focus.constant_matcher import property_test_for
from clew.triples.language.chain import Chain, Term, Triple
from clew.triples.language.quantifiers import split_negation, split_quantifier
from clew.triples.language.typed_chain import NOT, ONLY, Condition, Quantifier, TypedChain
from clew.triples.linking.relation_words import verbalise_relation, word_stems

#: Spelling from which on a type is taken for another, of 100: "persno" for "person".
_ALIKE = 83
#: A shorter name than this is one letter away from too many others: "genre" is no "gene".
_SHORT = 6
_CALLED = re.compile(r"(?P<name>.+\S)\s*\((?P<type>[^()]+)\)")


@dataclass(frozen=True, slots=True)
class SchemaAlignment:
    """The fitted question, and what was changed or is not there, in words."""

    chain: TypedChain
    notes: tuple[str, ...] = ()


def align_to_schema(chain: TypedChain, graphs: Sequence[PropertyGraph]) -> SchemaAlignment:
    """Return the question with types and properties called as ``graphs`` call them.

    A type that no graph has stays as it is, unless one has its words or almost its spelling ("Films", "persno").
    A triple whose relation is called as a property is, and as no relation, is a condition. ``David Lynch (person)``
    is David Lynch, a person, where no node is called so and ``person`` is a type. "not David Lynch", where no node
    is called so, denies its triple, as does a relation "not directed by" that no graph has; nothing that denies is
    fitted to what does not. Raises RemoteError.
    """
    types = list(dict.fromkeys(type for graph in graphs for type in graph.types()))
    properties = list(dict.fromkeys(name for graph in graphs for name in graph.properties()))
    notes: dict[str, None] = {}
    # Of a mounted graph neither may be known; what is not among them may be there all the same.
    typed, described = all(graph.types() for graph in graphs), not any(graph.is_mounted for graph in graphs)

    def known(given: tuple[str, ...]) -> tuple[str, ...]:
        made = [_named("type", one, types, notes, typed) for one in given if one in types or not _denies(one)]
        notes.update(
            {f"type '{one}' left out: it denies": None for one in given if one not in types and _denies(one)}
        )
        return tuple(dict.fromkeys(made))

    chain = _with_denials(chain, graphs, properties, notes)
    chain = _without_types_in_names(chain, graphs, types)
    chain = _with_conditions(chain, graphs, properties, notes)
    conditions = tuple(
        replace(one, property=_named("property", one.property, properties, notes, described))
        for one in _denied_conditions(chain.conditions, properties)
    )
    made = replace(
        chain,
        types={number: fits for number, given in chain.types.items() if (fits := known(given))},
        constant_types={name: fits for name, given in chain.constant_types.items() if (fits := known(given))},
        conditions=conditions,
    )
    return SchemaAlignment(made, tuple(notes))


def _named(what: str, name: str, known: Sequence[str], notes: dict[str, None], complete: bool) -> str:
    if name in known:
        return name
    near = _nearest(name, known)
    if near is None:
        if complete:
            notes[f"no graph has the {what} '{name}'"] = None
        return name
    if fold_name(near) != fold_name(name):
        notes[f"{what} '{name}' read as '{near}'"] = None
    return near


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the one that is called the same in other words or almost so spelled; None where none or several are."""
    from rapidfuzz import fuzz, process

    folded = fold_name(verbalise_relation(name))
    # Words that deny are none that stems keep.
    known = [one for one in known if _denies(one) == _denies(name)]
    for same in (
        [one for one in known if fold_name(verbalise_relation(one)) == folded],
        [one for one in known if word_stems(verbalise_relation(one)) == word_stems(folded)],
        # "gene" where there is "gene/protein"; every word that is said must be one of its.
        [one for one in known if word_stems(folded) < word_stems(verbalise_relation(one))],
    ):
        if same:
            return same[0] if len(same) == 1 else None
    if len(folded) < _SHORT:
        return None
    found = process.extract(
        folded, [verbalise_relation(one) for one in known], scorer=fuzz.ratio, score_cutoff=_ALIKE, limit=2
    )
    clear = found and (len(found) == 1 or found[0][1] > found[1][1])
    return known[found[0][2]] if clear else None


def _denies(name: str) -> bool:
    return split_negation(verbalise_relation(name))[0]


def _denied_conditions(conditions: Iterable[Condition], properties: Sequence[str]) -> Iterable[Condition]:
    """Yield conditions without the words of a property that deny it: "not year" above 3 is a year that is not."""
    called = {fold_name(verbalise_relation(name)) for name in properties}
    for one in conditions:
        denied, name = split_negation(one.property)
        if denied and fold_name(verbalise_relation(one.property)) not in called:
            yield replace(one, property=name, negated=not one.negated)
        else:
            yield one


def _with_denials(
    chain: TypedChain, graphs: Sequence[PropertyGraph], properties: Sequence[str], notes: dict[str, None]
) -> TypedChain:
    """Return the question with triples denied by the words of their relations and names, unless a graph calls a
    relation, a property or a node just so."""
    relations = [name for graph in graphs for name in graph.relations()]
    called = {fold_name(verbalise_relation(name)) for name in (*relations, *properties)}
    denying = {
        fold_name(rest): name
        for name in relations
        for no, rest in [split_negation(verbalise_relation(name))]
        if no
    }
    triples: list[Triple] = []
    counts = dict(chain.quantifiers)
    kinds = dict(chain.constant_types)
    for place, triple in enumerate(chain.chain.triples):
        said = counts.get(place)
        relation, count = _relation_denied(triple.relation, said, called, denying)
        if (relation, count) != (triple.relation, said):
            notes[f"'{triple.relation}' read as '{'not ' if count == NOT else ''}{relation}'"] = None
        ends = []
        for end in (triple.head, triple.tail):
            within, name = (None, end.text) if end.unknown is not None else _name_denied(end.text, graphs)
            if within is not None:
                count = within if within == NOT or count is None else count
                kinds |= {name: kinds.pop(end.text)} if end.text in kinds and name not in kinds else {}
                notes[f"'{end.text}' read as '{within}' of '{name}': no node is called so"] = None
            ends.append(Term(name))
        triples.append(Triple(ends[0], relation, ends[1]))
        counts.pop(place, None)
        if count is not None:
            counts[place] = count
    if tuple(triples) == chain.chain.triples and counts == chain.quantifiers:
        return chain
    left = set(_constants(triples))
    kinds = {name: types for name, types in kinds.items() if name in left}
    return replace(
        chain, chain=Chain(tuple(triples), chain.chain.answer), quantifiers=counts, constant_types=kinds
    )


def _relation_denied(
    relation: str, count: Quantifier | None, called: Collection[str], denying: Mapping[str, str]
) -> tuple[str, Quantifier | None]:
    """Return a relation without the words that deny it, and the quantifier of its triple. What is denied, and only
    the denial of which is a relation ("not compatible with"), is that relation."""
    own = fold_name(verbalise_relation(relation))
    if own in called:
        return relation, count
    denied, rest = split_negation(relation)
    if denied and count in (None, NOT):
        relation, count = rest, NOT
        own = fold_name(verbalise_relation(rest))
    if count == NOT and own not in called and own in denying:
        return denying[own], None
    return relation, count


def _name_denied(name: str, graphs: Sequence[PropertyGraph]) -> tuple[Quantifier | None, str]:
    """Return the quantifier that a name begins with, and the rest; none where a node is called so."""
    count, rest = (NOT, name[4:].strip()) if name[:4].casefold() == "not " else split_quantifier(name)
    if count not in (NOT, ONLY) or not rest or any(len(graph.find_by_name(name)) for graph in graphs):
        return None, name
    # "Not Another Teen Movie" is a name, though no node is called so; "Not David Lynch" is that of a node denied.
    titled = name[0].isupper() and not name[:3].isupper()
    return (
        (None, name)
        if titled and not any(len(graph.find_by_name(rest)) for graph in graphs)
        else (count, rest)
    )


def _without_types_in_names(
    chain: TypedChain, graphs: Sequence[PropertyGraph], types: Sequence[str]
) -> TypedChain:
    renamed: dict[str, str] = {}
    kinds = dict(chain.constant_types)
    for name in _constants(chain.chain.triples):
        match = _CALLED.fullmatch(name)
        type = _nearest(match["type"], types) if match and types else None
        if match is None or type is None or any(len(graph.find_by_name(name)) for graph in graphs):
            continue
        renamed[name] = match["name"]
        kinds.setdefault(match["name"], kinds.pop(name, (type,)))
    if not renamed:
        return chain

    def term(one: Term) -> Term:
        return Term(renamed.get(one.text, one.text))

    triples = tuple(Triple(term(one.head), one.relation, term(one.tail)) for one in chain.chain.triples)
    return replace(chain, chain=Chain(triples, chain.chain.answer), constant_types=kinds)


def _with_conditions(
    chain: TypedChain, graphs: Sequence[PropertyGraph], properties: Sequence[str], notes: dict[str, None]
) -> TypedChain:
    relations = {fold_name(verbalise_relation(name)) for graph in graphs for name in graph.relations()}
    called: Mapping[str, str] = {fold_name(verbalise_relation(name)): name for name in reversed(properties)}
    triples: list[Triple] = []
    counts: dict[int, Quantifier] = {}
    conditions = list(chain.conditions)
    for place, triple in enumerate(chain.chain.triples):
        count = chain.quantifiers.get(place)
        relation = fold_name(verbalise_relation(triple.relation))
        property = called.get(relation) if relation not in relations else None
        unknown = triple.head.unknown
        if property and unknown is not None and triple.tail.unknown is None and count in (None, NOT):
            value = triple.tail.text
            conditions.append(
                Condition(unknown, property, property_test_for(value), value, None, count == NOT)
            )
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
        quantifiers=counts,
        conditions=tuple(dict.fromkeys(conditions)),
        constant_types={name: types for name, types in chain.constant_types.items() if name in left},
    )


def _constants(triples: Iterable[Triple]) -> list[str]:
    ends = (end for triple in triples for end in (triple.head, triple.tail))
    return list(dict.fromkeys(end.text for end in ends if end.unknown is None))
