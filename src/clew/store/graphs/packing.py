"""The packed form of a graph: the canonical line of a node, and how many items share a database row. No numpy."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from clew.core.types import Entity

if TYPE_CHECKING:
    from clew.core.protocols import NodeColumns

#: Nodes in one compressed row: few enough that reading one node is quick, enough to compress well.
NODES_PER_BLOB = 64
#: Pairs in one row of edges: half a megabyte.
PAIRS_PER_BLOB = 1 << 16
#: Edges whose properties share a row.
STATEMENTS_PER_BLOB = 1 << 10
#: A name of this rank or a higher one serves only where there is no other, and is never an alias.
FALLBACK_RANK = 1000
_COMPRESSION = 3
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """The row of one graph in the table ``graph``.

    ``relations`` maps a relation to its own id where that differs from its name; ``answer_types`` are the types of
    nodes that may answer a question, from its options.
    """

    number: int
    name: str
    digest: str
    nodes: int
    edges: int
    relations: Mapping[str, str]
    answer_types: tuple[str, ...] = ()


def canonical_json(value: object) -> str:
    """Return the canonical JSON of a value."""
    return _ENCODER.encode(value)


def compress_lines(lines: Sequence[bytes]) -> bytes:
    """Return lines in their stored form."""
    return zlib.compress(b"\n".join(lines), _COMPRESSION)


def decompress_lines(blob: bytes) -> list[bytes]:
    """Return the lines that :func:`compress_lines` compressed. Raises zlib.error for other bytes."""
    return zlib.decompress(blob).split(b"\n")


def node_fields(
    id: str,
    types: Iterable[str],
    name: str,
    aliases: Iterable[str],
    text: str,
    properties: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the stored form of a node: its id and all non-empty fields; a name equal to the id is omitted."""
    fields: dict[str, Any] = {"id": id}
    if types and (types := [type for type in dict.fromkeys(types) if type]):
        fields["types"] = types
    if name and name != id:
        fields["name"] = name
    if aliases and (aliases := sorted({alias for alias in aliases if alias} - {name})):
        fields["aliases"] = aliases
    if text:
        fields["text"] = text
    # None and NaN, which is not equal to itself, are no values.
    if properties and (
        values := {key: value for key, value in properties.items() if value is not None and value == value}
    ):
        fields["properties"] = values
    return fields


def node_lines(nodes: NodeColumns) -> list[bytes]:
    """Return the stored lines of whole nodes: the canonical JSON of :func:`node_fields` of each, column by column."""
    encode = encode_basestring
    ids = [encode(id) for id in nodes.ids]
    # In the order of their keys.
    columns: list[list[str]] = []
    if nodes.aliases:
        names = nodes.names or [""] * len(ids)
        columns.append(
            [_aliases_member(texts, name) for texts, name in zip(nodes.aliases, names, strict=True)]
        )
    columns.append([f'"id":{id}' for id in ids])
    if nodes.names:
        columns.append(
            [
                f',"name":{encode(name)}' if name and name != id else ""
                for name, id in zip(nodes.names, nodes.ids, strict=True)
            ]
        )
    if nodes.properties:
        columns.append(_properties_members(nodes.properties))
    if nodes.texts:
        columns.append([f',"text":{encode(text)}' if text else "" for text in nodes.texts])
    if nodes.types:
        member_of: dict[tuple[str, ...], str] = {}
        columns.append([])
        for types in map(tuple, nodes.types):
            if types not in member_of:
                names = [type for type in dict.fromkeys(types) if type]
                member_of[types] = f',"types":{canonical_json(names)}' if names else ""
            columns[-1].append(member_of[types])
    return [f"{{{''.join(members)}}}".encode() for members in zip(*columns, strict=True)]


def _aliases_member(aliases: Sequence[str], name: str) -> str:
    names = sorted({alias for alias in aliases if alias} - {name}) if aliases else ()
    return f'"aliases":{canonical_json(names)},' if names else ""


def _properties_members(properties: Mapping[str, Sequence[Any]]) -> list[str]:
    columns = []
    for key in sorted(properties):
        prefix = f"{encode_basestring(key)}:"
        columns.append(
            [
                "" if value is None or value != value else prefix + _scalar_json(value)
                for value in properties[key]
            ]
        )
    members = [",".join(filter(None, values)) for values in zip(*columns, strict=True)]
    return [f',"properties":{{{member}}}' if member else "" for member in members]


def _scalar_json(value: Any) -> str:
    if type(value) is str:
        return encode_basestring(value)
    return str(value) if type(value) is int else canonical_json(value)


def merge_node_parts(
    id: str, parts: Sequence[Mapping[str, Any]], fallback_name: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return one node from its parts; their order does not matter.

    The name is the one of the lowest rank, alphabetically the first among several, else ``fallback_name``. ``labels``
    are the names of types and properties.
    """
    ranked_names = sorted((part.get("rank", 0), part["name"]) for part in parts if "name" in part)
    aliases = {name for rank, name in ranked_names[1:] if rank < FALLBACK_RANK}
    properties: dict[str, set[str]] = {}
    for part in parts:
        aliases.update(part.get("aliases", ()))
        for key, value in part.get("properties", {}).items():
            values = value if isinstance(value, list) else [value]
            properties.setdefault(labels.get(key, key), set()).update(map(canonical_json, values))
    sorted_values = {
        key: [json.loads(text) for text in sorted(encoded)] for key, encoded in properties.items() if encoded
    }
    return node_fields(
        id,
        sorted({labels.get(type, type) for part in parts for type in part.get("types", ())}),
        ranked_names[0][1] if ranked_names else fallback_name,
        aliases,
        "\n".join(sorted({part["text"] for part in parts if "text" in part})),
        {key: values[0] if len(values) == 1 else values for key, values in sorted_values.items()},
    )


def parse_entity(graph: str, line: bytes) -> Entity:
    """Return the node of a stored line."""
    fields = json.loads(line.decode())
    types = fields.get("types", ())
    return Entity(
        f"{graph}:{fields['id']}",
        types[0] if types else "",
        fields.get("name", fields["id"]),
        tuple(fields.get("aliases", ())),
        fields.get("text", ""),
        {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in fields.get("properties", {}).items()
        },
        tuple(types[1:]),
    )
