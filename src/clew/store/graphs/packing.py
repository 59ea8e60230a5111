"""How a graph is packed: the canonical line of a node, and the sizes of what is stored together. No numpy."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.core.types import Entity

#: Nodes in one compressed row: few enough that reading one node is quick, enough to compress.
NODES_PER_BLOB = 64
#: Pairs in one row of edges, half a megabyte.
PAIRS_PER_BLOB = 1 << 16
#: Edges whose properties are stored together.
STATEMENTS_PER_BLOB = 1 << 10
#: A name of this rank or a higher one serves only where there is no other, and is no alias.
FALLBACK_RANK = 1000
_LEVEL = 3


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """The row of one graph in the table ``graph``. ``relations`` maps a relation to its own id where that differs;
    ``answers`` are the types of nodes that may answer, as its options say."""

    number: int
    name: str
    digest: str
    nodes: int
    edges: int
    relations: Mapping[str, str]
    answer_types: tuple[str, ...] = ()


def canonical_json(value: object) -> str:
    """Return the canonical JSON of a value."""
    return _encode(value)


def compress_lines(lines: Sequence[bytes]) -> bytes:
    """Return lines as they are stored."""
    return zlib.compress(b"\n".join(lines), _LEVEL)


def decompress_lines(blob: bytes) -> list[bytes]:
    """Return the lines that :func:`compressed` stored. Raises zlib.error for what it did not."""
    return zlib.decompress(blob).split(b"\n")


def node_fields(
    id: str,
    types: Iterable[str],
    name: str,
    aliases: Iterable[str],
    text: str,
    properties: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what is stored of a node: its id and whatever is not empty; a name that is the id is left out."""
    kept: dict[str, Any] = {"id": id}
    if types and (types := [one for one in dict.fromkeys(types) if one]):
        kept["types"] = types
    if name and name != id:
        kept["name"] = name
    if aliases and (aliases := sorted({one for one in aliases if one} - {name})):
        kept["aliases"] = aliases
    if text:
        kept["text"] = text
    # Nothing, and what is not a number, is no value: it is not equal to itself either.
    if properties and (
        said := {key: value for key, value in properties.items() if value is not None and value == value}
    ):
        kept["properties"] = said
    return kept


def merge_node_parts(
    id: str, parts: Sequence[Mapping[str, Any]], readable: str, called: Mapping[str, str]
) -> dict[str, Any]:
    """Return one node of what was given in parts; the same whatever their order.

    The name is the one of the lowest rank, alphabetically the first among several, else ``readable``. ``called``
    says what types and properties are called.
    """
    named = sorted((one.get("rank", 0), one["name"]) for one in parts if "name" in one)
    aliases = {name for rank, name in named[1:] if rank < FALLBACK_RANK}
    properties: dict[str, set[str]] = {}
    for one in parts:
        aliases.update(one.get("aliases", ()))
        for key, value in one.get("properties", {}).items():
            several = value if isinstance(value, list) else [value]
            properties.setdefault(called.get(key, key), set()).update(map(canonical_json, several))
    plain = {
        key: found[0] if len(found) == 1 else found
        for key, values in properties.items()
        if (found := [json.loads(text) for text in sorted(values)])
    }
    return node_fields(
        id,
        sorted({called.get(type, type) for one in parts for type in one.get("types", ())}),
        named[0][1] if named else readable,
        aliases,
        "\n".join(sorted({one["text"] for one in parts if "text" in one})),
        plain,
    )


def parse_entity(graph: str, line: bytes) -> Entity:
    """Return the node of a stored line."""
    kept = json.loads(line.decode())
    types = kept.get("types", ())
    return Entity(
        f"{graph}:{kept['id']}",
        types[0] if types else "",
        kept.get("name", kept["id"]),
        tuple(kept.get("aliases", ())),
        kept.get("text", ""),
        {k: tuple(v) if isinstance(v, list) else v for k, v in kept.get("properties", {}).items()},
        tuple(types[1:]),
    )


def split_batches(items: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield items in lists of ``size``, the last one shorter."""
    batch: list[bytes] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
