"""The schema of graphs as text for a prompt: types, relations and properties, with counts and examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.core.protocols import PropertyGraph, RelationLinker
from clew.core.text import is_stop_term, scalar_text, shorten, stem
from clew.core.types import Entity, Property, Relation
from clew.triples.linking.relation_words import verbalise_relation, word_stems
from clew.triples.linking.relations import GraphRelationLinker

#: Names that are shown as examples of a type.
EXAMPLES = 3
#: A name or a value is shown up to this many characters.
_LENGTH = 60
#: So many types, relations and properties of a graph stay in a prompt however long it is.
_NEEDED_LINES = 4
#: Parts of a question that are compared with relations.
_PHRASES = 24
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:T.*)?")


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """How many types, relations and properties of a graph are shown at most; together some 3,000 tokens."""

    types: int = 30
    relations: int = 40
    properties: int = 20


@dataclass(frozen=True, slots=True)
class Schema:
    """Graphs as a prompt shows them; ``summary`` says for each how much of it that is (``films: 2 types, ...``).

    ``optional`` are the lines that may be left out where a prompt is too long, the least likely to be asked about
    first.
    """

    text: str
    summary: str
    optional: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def describe_schema(
    graphs: Sequence[PropertyGraph],
    question: str,
    linker: RelationLinker | None = None,
    room: SchemaLimits = SchemaLimits(),
) -> Schema:
    """Return the schema of ``graphs``, one part for each, cut to ``room`` and to what the question may need.

    If a graph has more relations than there is room for, two thirds of the room go to those that ``linker`` (by
    default one that compares words) finds most like parts of the question, the rest to the largest that connect their
    types. Types are kept if they share words with the question or if such relations connect them, then the largest;
    properties if they share words, then those of such types. The text says what was cut.
    """
    linker = linker or GraphRelationLinker()
    parts = [_part(graph, question, linker, room) for graph in graphs]
    optional = tuple(line for part in parts for line in part.optional)
    text, summary = "\n\n".join(part.text for part in parts), "; ".join(part.summary for part in parts)
    return Schema(text, summary, optional)


def _part(graph: PropertyGraph, question: str, linker: RelationLinker, room: SchemaLimits) -> Schema:
    relations, types, properties = graph.relations(), graph.types(), graph.properties()
    ways = _relations_kept(graph, question, linker, room.relations)
    kinds = _types_kept(types, [relations[way] for way in ways], question, room.types)
    keys = _properties_kept(properties, kinds, question, room.properties)
    type_names, values = type_examples(graph, kinds), property_examples(graph, keys)
    counts = [
        _of("type", len(kinds), len(types)),
        _of("relation", len(ways), len(relations)),
        _of("property", len(keys), len(properties)),
    ]
    lines = [f"Graph {graph.name}{f', {graph.size:,} nodes' if graph.size and not graph.is_mounted else ''}"]
    lines += ["", f"Node types ({_share(kinds, types)}):"] if kinds else ["", "Its nodes have no types."]
    type_lines = [
        f"- {kind}: {_format_count(types[kind], 'node')}{_such(type_names.get(kind, ()))}" for kind in kinds
    ]
    relation_lines = [format_relation(way, relations[way]) for way in ways]
    property_lines = [format_property(key, properties[key], values[key]) for key in keys]
    lines += type_lines
    lines += ["", f"Relations ({_share(ways, relations)}), as head type >> relation >> tail type:"]
    lines += relation_lines
    if keys:
        lines += ["", f"Properties of nodes ({_share(keys, properties)}):"]
        lines += property_lines
    ranked = [
        (place / len(group), f"\n{line}")
        for group in (type_lines, relation_lines, property_lines)
        for place, line in enumerate(group)
        if place >= _NEEDED_LINES
    ]
    optional = tuple(line for _, line in sorted(ranked, reverse=True))
    return Schema("\n".join(lines), f"{graph.name}: {', '.join(counts)}", optional)


def format_relation(name: str, relation: Relation) -> str:
    """Return the line about a relation."""
    head, tail = format_types(relation.head_types), format_types(relation.tail_types)
    joined = f"{head} >> {name} >> {tail}" if head or tail else name
    ends = [[shorten(end, _LENGTH) for end in pair] for pair in relation.examples[:1]]
    examples = [f"{start} >> {name} >> {end}" for start, end in ends]
    edges = f": {_format_count(relation.edges, 'edge')}" if relation.edges else ""
    return f"- {joined}{edges}{_such(examples)}"


def format_property(name: str, property: Property, example: str) -> str:
    """Return the line about a property."""
    owners = format_types(property.types)
    return (
        f"- {name}{f' of {owners}' if owners else ''}: {property_kind(property, example)}, "
        f"{_format_count(property.values, 'value')}{_such([example] if example else ())}"
    )


def property_kind(property: Property, example: str) -> str:
    """Return the kind of a property's values: number, day, text, or number or text."""
    if not property.numbers:
        return "text"
    kind = "day" if _DAY.fullmatch(example) else "number"
    return kind if property.numbers == property.values else f"{kind} or text"


def format_types(types: Mapping[str, int]) -> str:
    """Return the two most frequent types, and how many others there are; "" for none."""
    first = sorted(types, key=lambda type: (-types[type], type))
    more = f" (or {len(first) - 2} more)" if len(first) > 2 else ""
    return " or ".join(first[:2]) + more


def type_examples(graph: PropertyGraph, types: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of a few nodes of each type, spread over its rows; none of a mounted graph, which costs
    queries."""
    if graph.is_mounted:
        return {}
    rows: list[int] = []
    owners: list[str] = []
    for type in types:
        every = graph.rows_of_type(type)
        places = sorted({len(every) * part // (EXAMPLES + 1) for part in range(1, EXAMPLES + 1)})
        chosen = every[places].tolist() if len(every) else []
        rows += chosen
        owners += [type] * len(chosen)
    examples: dict[str, list[str]] = {}
    for type, entity in zip(owners, _entities(graph, rows), strict=True):
        examples.setdefault(type, []).append(shorten(entity.name, _LENGTH))
    return examples


def property_examples(graph: PropertyGraph, names: Sequence[str]) -> dict[str, str]:
    """Return a value of each property."""
    properties = graph.properties()
    entities = _entities(graph, [properties[name].example_row for name in names])
    examples = {}
    for name, entity in zip(names, entities, strict=True):
        value = entity.properties.get(name, "")
        examples[name] = shorten(scalar_text(value[0] if isinstance(value, tuple) else value), _LENGTH)
    return examples


def _entities(graph: PropertyGraph, rows: Sequence[int]) -> list[Entity]:
    import numpy as np

    return graph.entities(np.array(rows, dtype=np.int64)) if rows else []


def _relations_kept(graph: PropertyGraph, question: str, linker: RelationLinker, most: int) -> list[str]:
    relations = graph.relations()
    by_size = sorted(relations, key=lambda name: (-relations[name].edges, name))
    if len(relations) <= most:
        return by_size
    scores: dict[str, float] = {}
    for linked in linker.link(graph, question_phrases(question), k=most):
        for relation in linked:
            scores[relation.name] = max(scores.get(relation.name, 0.0), relation.score)
    likest = sorted(scores, key=lambda name: (-scores[name], name))
    near = likest[: max(most * 2 // 3, 1)]
    ends = {type for name in near for type in _ends(relations[name])}
    joining = [name for name in by_size if ends.issuperset(_ends(relations[name]) or {""})]
    return list(dict.fromkeys([*near, *joining, *likest, *by_size]))[:most]


def _types_kept(types: Mapping[str, int], ways: Iterable[Relation], question: str, most: int) -> list[str]:
    by_size = sorted(types, key=lambda type: (-types[type], type))
    if len(types) <= most:
        return by_size
    joined = dict.fromkeys(type for way in ways for type in _ends(way) if type in types)
    shared = _sharing(by_size, question)
    # Words first: relations join the big types, and the question may ask for a small one.
    chosen = list(dict.fromkeys([*shared[: most // 2], *joined, *shared, *by_size]))[:most]
    return sorted(chosen, key=lambda type: (-types[type], type))


def _properties_kept(
    properties: Mapping[str, Property], types: Iterable[str], question: str, most: int
) -> list[str]:
    by_size = sorted(properties, key=lambda name: (-properties[name].values, name))
    if len(properties) <= most:
        return by_size
    known = set(types)
    of_types = [name for name in by_size if known & properties[name].types.keys()]
    return list(dict.fromkeys([*_sharing(by_size, question), *of_types, *by_size]))[:most]


def _sharing(names: Iterable[str], question: str) -> list[str]:
    """Return the names that share words with a question, those of which it has the greatest share first."""
    asked = word_stems(question)
    shares = {}
    for name in names:
        words = word_stems(verbalise_relation(name))
        if common := len(words & asked):
            shares[name] = common / len(words)
    return sorted(shares, key=lambda name: -shares[name])


def question_phrases(question: str) -> list[str]:
    """Return the parts of a question that may name a relation: words that are no function words, and pairs of words
    that begin with one; the pairs first, since they say more."""
    words = [match.group().casefold() for match in _WORD.finditer(question)]
    content = [not is_stop_term(stem(word)) for word in words]
    singles = [word for word, counts in zip(words, content, strict=True) if counts]
    pairs = [f"{words[n]} {words[n + 1]}" for n in range(len(words) - 1) if content[n]]
    singles, pairs = list(dict.fromkeys(singles)), list(dict.fromkeys(pairs))
    few = _PHRASES // 2
    return [*pairs[: max(few, _PHRASES - len(singles))], *singles][:_PHRASES] or [question]


def _ends(relation: Relation) -> set[str]:
    """Return the most frequent type at each end."""
    sides = (relation.head_types, relation.tail_types)
    return {max(types, key=lambda type: (types[type], type)) for types in sides if types}


def _of(what: str, shown: int, every: int) -> str:
    many = "properties" if what == "property" else f"{what}s"
    if shown == every:
        return f"{every:,} {what if every == 1 else many}"
    return f"{shown:,} of {every:,} {many}"


def _share(shown: Sequence[str], every: Mapping[str, object]) -> str:
    return f"{len(shown):,}" if len(shown) == len(every) else f"{len(shown):,} of {len(every):,}"


def _format_count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _such(examples: Sequence[str]) -> str:
    return f", such as {'; '.join(dict.fromkeys(examples))}" if examples else ""
