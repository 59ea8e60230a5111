"""How ``clew graph schema`` shows a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.app.cli.output import format_count
from clew.core.protocols import PropertyGraph
from clew.core.types import Relation
from clew.methods.focus.schema import property_examples, property_kind, type_examples


def schema_to_dict(graph: PropertyGraph) -> dict[str, Any]:
    """Return all of a graph's schema as JSON."""
    relations, properties = graph.relations(), graph.properties()
    values = property_examples(graph, list(properties))
    return {
        "graph": graph.name,
        "nodes": graph.size,
        "types": dict(graph.types()),
        "answers": list(graph.answer_types()),
        "relations": [relation.to_dict(name) for name, relation in _by_size(relations)],
        "properties": [one.to_dict(name, values[name]) for name, one in properties.items()],
    }


def print_schema(graph: PropertyGraph, limit: int) -> None:
    """Print at most ``limit`` types, relations and properties of a graph, the biggest first."""
    types, relations, properties = graph.types(), graph.relations(), graph.properties()
    nodes = f"{format_count(graph.size, 'node')}, " if graph.size else ""
    print(f"{graph.name}: {nodes}{format_count(sum(one.edges for one in relations.values()), 'edge')}")
    if answers := graph.answer_types():
        print(f"answers: {', '.join(answers)}")
    kinds = sorted(types, key=lambda one: (-types[one], one))[:limit]
    names = type_examples(graph, kinds)
    for type in kinds:
        such = "; ".join(dict.fromkeys(names.get(type, ())))
        print(f"type {type}: {format_count(types[type], 'node')}{f', such as {such}' if such else ''}")
    for relation, found in _by_size(relations)[:limit]:
        print(f"relation {relation}: {format_count(found.edges, 'edge')}{_ends(found)}")
        for head, tail in found.examples:
            print(f"    {head} >> {relation} >> {tail}")
    keys = sorted(properties, key=lambda one: (-properties[one].values, one))[:limit]
    values = property_examples(graph, keys)
    for key in keys:
        owners = f" of {_most(properties[key].types)}" if properties[key].types else ""
        kind = property_kind(properties[key], values[key])
        print(
            f"property {key}{owners}: {kind}, {format_count(properties[key].values, 'value')}, such as {values[key]}"
        )
    more = {"more type": len(types), "more relation": len(relations), "more property": len(properties)}
    left = [format_count(number - limit, what) for what, number in more.items() if number > limit]
    if left:
        print(f"... {', '.join(left)}; see --limit")


def _by_size(relations: Mapping[str, Relation]) -> list[tuple[str, Relation]]:
    return sorted(relations.items(), key=lambda one: (-one[1].edges, one[0]))


def _ends(relation: Relation) -> str:
    if not relation.head_types and not relation.tail_types:
        return ""
    return f", {_most(relation.head_types)} to {_most(relation.tail_types)}"


def _most(types: Mapping[str, int]) -> str:
    """Return the most frequent of the types at one end, and how many others there are."""
    if not types:
        return "untyped"
    first = max(types, key=lambda type: (types[type], type))
    return first if len(types) == 1 else f"{first} (or {len(types) - 1} more)"
