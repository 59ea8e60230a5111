"""The schema of a graph, as ``clew graph schema`` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.app.cli.output import format_count, print_line
from clew.core.protocols import PropertyGraph
from clew.core.types import Relation
from clew.methods.focus.schema import property_examples, property_kind, type_examples


def schema_to_dict(graph: PropertyGraph) -> dict[str, Any]:
    """Return the whole schema of a graph as JSON."""
    relations, properties = graph.relations(), graph.properties()
    examples = property_examples(graph, list(properties))
    return {
        "graph": graph.name,
        "nodes": graph.size,
        "types": dict(graph.types()),
        "answers": list(graph.answer_types()),
        "relations": [relation.to_dict(name) for name, relation in _by_size(relations)],
        "properties": [property.to_dict(name, examples[name]) for name, property in properties.items()],
    }


def print_schema(graph: PropertyGraph, limit: int) -> None:
    """Print at most ``limit`` types, relations and properties of a graph, the most frequent first."""
    types, relations, properties = graph.types(), graph.relations(), graph.properties()
    nodes = f"{format_count(graph.size, 'node')}, " if graph.size else ""
    edges = sum(relation.edges for relation in relations.values())
    print_line(f"{graph.name}: {nodes}{format_count(edges, 'edge')}")
    if answer_types := graph.answer_types():
        print_line(f"answers: {', '.join(answer_types)}")
    _print_types(graph, sorted(types, key=lambda type: (-types[type], type))[:limit], types)
    for name, relation in _by_size(relations)[:limit]:
        print_line(f"relation {name}: {format_count(relation.edges, 'edge')}{_describe_ends(relation)}")
        for head, tail in relation.examples:
            print_line(f"    {head} >> {name} >> {tail}")
    keys = sorted(properties, key=lambda key: (-properties[key].values, key))[:limit]
    examples = property_examples(graph, keys)
    for key in keys:
        property = properties[key]
        owners = f" of {_main_type(property.types)}" if property.types else ""
        kind, values = property_kind(property, examples[key]), format_count(property.values, "value")
        print_line(f"property {key}{owners}: {kind}, {values}, such as {examples[key]}")
    totals = {"more type": len(types), "more relation": len(relations), "more property": len(properties)}
    rest = [format_count(total - limit, noun) for noun, total in totals.items() if total > limit]
    if rest:
        print_line(f"... {', '.join(rest)}; see --limit")


def _print_types(graph: PropertyGraph, types: list[str], counts: Mapping[str, int]) -> None:
    names = type_examples(graph, types)
    for type in types:
        examples = "; ".join(dict.fromkeys(names.get(type, ())))
        such_as = f", such as {examples}" if examples else ""
        print_line(f"type {type}: {format_count(counts[type], 'node')}{such_as}")


def _by_size(relations: Mapping[str, Relation]) -> list[tuple[str, Relation]]:
    return sorted(relations.items(), key=lambda item: (-item[1].edges, item[0]))


def _describe_ends(relation: Relation) -> str:
    if not relation.head_types and not relation.tail_types:
        return ""
    return f", {_main_type(relation.head_types)} to {_main_type(relation.tail_types)}"


def _main_type(types: Mapping[str, int]) -> str:
    """Return the most frequent of some types, and how many others there are."""
    if not types:
        return "untyped"
    first = max(types, key=lambda type: (types[type], type))
    return first if len(types) == 1 else f"{first} (or {len(types) - 1} more)"
