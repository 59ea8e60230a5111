"""Align a question as typed triples with the names of graphs where that is plain, and say which names they do not
have.

Only names of the schema are aligned: types and properties. Relations and constants are linked later, by likeness,
with several candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.core.protocols import PropertyGraph
from clew.core.text import fold_name
from clew.methods.focus.pattern_builder import property_test_for
from clew.triples.language.chain import Chain, Term, Triple
from clew.triples.language.quantifiers import split_negation, split_quantifier
from clew.triples.language.typed_chain import NOT, ONLY, Condition, Quantifier, TypedChain
from clew.triples.linking.relation_words import verbalise_relation, word_stems

#: Similarity of spelling, of 100, from which on a name is taken for another: "persno" for "person".
_SIMILAR = 83
#: Shorter names are one letter away from too many others: "genre" is not "gene".
_MIN_LENGTH = 6
_CALLED = re.compile(r"(?P<name>.+\S)\s*\((?P<type>[^()]+)\)")


@dataclass(frozen=True, slots=True)
class SchemaAlignment:
    """The aligned question, and notes on what was changed and what no graph has."""

    chain: TypedChain
    notes: tuple[str, ...] = ()


def align_to_schema(chain: TypedChain, graphs: Sequence[PropertyGraph]) -> SchemaAlignment:
    """Return the question with types and properties named as ``graphs`` name them.

    A type that no graph has stays as it is, unless a graph has its words or almost its spelling ("Films", "persno").
    A triple whose relation is the name of a property, and of no relation, becomes a condition. If no node is called
    ``David Lynch (person)`` and ``person`` is a type, it becomes David Lynch, a person. "not David Lynch", if no node
    is called so, negates its triple, as does a relation "not directed by" that no graph has. A name that negates is
    never aligned with one that does not. Raises RemoteError.
    """
    types = list(dict.fromkeys(type for graph in graphs for type in graph.types()))
    properties = list(dict.fromkeys(name for graph in graphs for name in graph.properties()))
    notes: dict[str, None] = {}
    # A mounted graph may not know its types and properties: it may have other names too.
    knows_types = all(graph.types() for graph in graphs)
    knows_properties = not any(graph.is_mounted for graph in graphs)

    def align_types(names: tuple[str, ...]) -> tuple[str, ...]:
        refused = [name for name in names if name not in types and _negates(name)]
        aligned = [
            _align_name("type", name, types, notes, knows_types) for name in names if name not in refused
        ]
        notes.update({f"type '{name}' left out: it denies": None for name in refused})
        return tuple(dict.fromkeys(aligned))

    chain = _move_negations(chain, graphs, properties, notes)
    chain = _move_types_out_of_names(chain, graphs, types)
    chain = _move_properties_to_conditions(chain, graphs, properties, notes)
    conditions = tuple(
        replace(
            condition,
            property=_align_name("property", condition.property, properties, notes, knows_properties),
        )
        for condition in _move_negations_of_conditions(chain.conditions, properties)
    )
    aligned = replace(
        chain,
        types={n: matching for n, names in chain.types.items() if (matching := align_types(names))},
        constant_types={
            constant: matching
            for constant, names in chain.constant_types.items()
            if (matching := align_types(names))
        },
        conditions=conditions,
    )
    return SchemaAlignment(aligned, tuple(notes))


def _align_name(what: str, name: str, known: Sequence[str], notes: dict[str, None], complete: bool) -> str:
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
    """Return the known name with the same words, or almost the same spelling; None if there is none or several."""
    from rapidfuzz import fuzz, process

    folded = fold_name(verbalise_relation(name))
    # Stems do not keep the words of a negation.
    known = [other for other in known if _negates(other) == _negates(name)]
    for same in (
        [other for other in known if fold_name(verbalise_relation(other)) == folded],
        [other for other in known if word_stems(verbalise_relation(other)) == word_stems(folded)],
        # "gene" for "gene/protein": each of the words must be one of the known name.
        [other for other in known if word_stems(folded) < word_stems(verbalise_relation(other))],
    ):
        if same:
            return same[0] if len(same) == 1 else None
    if len(folded) < _MIN_LENGTH:
        return None
    similar = process.extract(
        folded,
        [verbalise_relation(other) for other in known],
        scorer=fuzz.ratio,
        score_cutoff=_SIMILAR,
        limit=2,
    )
    is_clear = similar and (len(similar) == 1 or similar[0][1] > similar[1][1])
    return known[similar[0][2]] if is_clear else None


def _negates(name: str) -> bool:
    return split_negation(verbalise_relation(name))[0]


def _move_negations_of_conditions(
    conditions: Iterable[Condition], properties: Sequence[str]
) -> Iterable[Condition]:
    """Yield conditions with the negation of a property's words moved to the condition: "not year" above 3 is a year
    that is not above 3."""
    names = {fold_name(verbalise_relation(name)) for name in properties}
    for condition in conditions:
        negated, property = split_negation(condition.property)
        if negated and fold_name(verbalise_relation(condition.property)) not in names:
            yield replace(condition, property=property, negated=not condition.negated)
        else:
            yield condition


def _move_negations(
    chain: TypedChain, graphs: Sequence[PropertyGraph], properties: Sequence[str], notes: dict[str, None]
) -> TypedChain:
    """Return the question with negations moved from the words of relations and names to quantifiers, unless a graph
    has a relation, a property or a node of that name."""
    relations = [name for graph in graphs for name in graph.relations()]
    names = {fold_name(verbalise_relation(name)) for name in (*relations, *properties)}
    negations = {
        fold_name(rest): name
        for name in relations
        for negated, rest in [split_negation(verbalise_relation(name))]
        if negated
    }
    triples: list[Triple] = []
    quantifiers = dict(chain.quantifiers)
    constant_types = dict(chain.constant_types)
    for place, triple in enumerate(chain.chain.triples):
        own_quantifier = quantifiers.get(place)
        relation, quantifier = _split_relation_negation(triple.relation, own_quantifier, names, negations)
        if (relation, quantifier) != (triple.relation, own_quantifier):
            notes[f"'{triple.relation}' read as '{'not ' if quantifier == NOT else ''}{relation}'"] = None
        ends = []
        for end in (triple.head, triple.tail):
            of_name, name = (
                (None, end.text) if end.unknown is not None else _split_name_quantifier(end.text, graphs)
            )
            if of_name is not None:
                quantifier = of_name if of_name == NOT or quantifier is None else quantifier
                constant_types |= (
                    {name: constant_types.pop(end.text)}
                    if end.text in constant_types and name not in constant_types
                    else {}
                )
                notes[f"'{end.text}' read as '{of_name}' of '{name}': no node is called so"] = None
            ends.append(Term(name))
        triples.append(replace(triple, head=ends[0], relation=relation, tail=ends[1]))
        quantifiers.pop(place, None)
        if quantifier is not None:
            quantifiers[place] = quantifier
    if tuple(triples) == chain.chain.triples and quantifiers == chain.quantifiers:
        return chain
    constants = set(_constants(triples))
    constant_types = {name: types for name, types in constant_types.items() if name in constants}
    return replace(
        chain,
        chain=Chain(tuple(triples), chain.chain.answer),
        quantifiers=quantifiers,
        constant_types=constant_types,
    )


def _split_relation_negation(
    relation: str, quantifier: Quantifier | None, names: Collection[str], negations: Mapping[str, str]
) -> tuple[str, Quantifier | None]:
    """Return a relation without its negation, and the quantifier of its triple. If only the negation is a relation of
    a graph ("not compatible with"), it is that relation, without a quantifier."""
    own = fold_name(verbalise_relation(relation))
    if own in names:
        return relation, quantifier
    negated, rest = split_negation(relation)
    if negated and quantifier in (None, NOT):
        relation, quantifier = rest, NOT
        own = fold_name(verbalise_relation(rest))
    if quantifier == NOT and own not in names and own in negations:
        return negations[own], None
    return relation, quantifier


def _split_name_quantifier(name: str, graphs: Sequence[PropertyGraph]) -> tuple[Quantifier | None, str]:
    """Return the quantifier that a name begins with and the rest; no quantifier if a node has the whole name."""
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


def _move_types_out_of_names(
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

    def rename(term: Term) -> Term:
        return Term(renamed.get(term.text, term.text))

    triples = tuple(
        replace(triple, head=rename(triple.head), tail=rename(triple.tail)) for triple in chain.chain.triples
    )
    return replace(chain, chain=Chain(triples, chain.chain.answer), constant_types=kinds)


def _move_properties_to_conditions(
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
