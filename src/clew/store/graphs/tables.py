"""The tables of graphs in SQLite, and the packed form of nodes and edges in their rows. No numpy.

Graphs are stored and removed as a whole, and read in part. A node is a canonical line of JSON. A row of a table holds
many of these lines, compressed, or many edges, as pairs of nodes' numbers.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Literal

from clew.core.errors import Damaged, UsageError, unknown_name_error
from clew.core.text import clean_name, clean_names
from clew.core.types import Entity, GraphInfo, GraphSource
from clew.store.database import note_removal
from clew.store.dump import dump_line

if TYPE_CHECKING:
    from clew.core.protocols import NodeColumns
    from clew.store.graphs.builder import PackedGraph


_GRAPHS = "SELECT number, name, digest, nodes, edges, relations, options FROM graph"
_Table = Literal["graph_node", "graph_edge", "graph_statement"]
_TABLES: tuple[_Table, ...] = ("graph_node", "graph_edge", "graph_statement")
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


def read_graphs(connection: sqlite3.Connection) -> list[StoredGraph]:
    """Return every imported graph, sorted by name."""
    rows = connection.execute(f"{_GRAPHS} ORDER BY name")
    return [
        StoredGraph(number, name, digest, nodes, edges, json.loads(relations), _answer_types(options))
        for number, name, digest, nodes, edges, relations, options in rows
    ]


def _answer_types(options: str) -> tuple[str, ...]:
    return tuple(json.loads(options).get("answers", ())) if options.startswith("{") else ()


def has_graph(connection: sqlite3.Connection, graph: StoredGraph) -> bool:
    """Return whether a graph is stored as it was when ``graph`` was read."""
    row = connection.execute(
        "SELECT 1 FROM graph WHERE number = ? AND name = ? AND digest = ?",
        (graph.number, graph.name, graph.digest),
    ).fetchone()
    return row is not None


def relations_with_statements(connection: sqlite3.Connection, graph: StoredGraph) -> frozenset[str]:
    """Return the relations that have edges with properties."""
    rows = connection.execute(
        "SELECT DISTINCT relation FROM graph_statement WHERE graph = ?", (graph.number,)
    )
    return frozenset(row[0] for row in rows)


def read_graph_infos(connection: sqlite3.Connection) -> list[GraphInfo]:
    """Return a description of every imported or mounted graph, sorted by name."""
    rows = connection.execute("SELECT name, digest, nodes, edges, sources, options FROM graph")
    infos = [
        GraphInfo(
            name,
            digest,
            nodes,
            edges,
            tuple(GraphSource(**source) for source in json.loads(sources)),
            options,
        )
        for name, digest, nodes, edges, sources, options in rows
    ]
    infos += [GraphInfo(name, options=options, url=url) for name, url, options in read_mounts(connection)]
    return sorted(infos, key=lambda info: info.name)


def read_mounts(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return every mount: name, URL, options as JSON; sorted by name."""
    return connection.execute("SELECT name, url, options FROM mount ORDER BY name").fetchall()


def store_graph(
    connection: sqlite3.Connection,
    name: str,
    packed: PackedGraph,
    sources: Sequence[GraphSource],
    options: str,
) -> str:
    """Store a graph under a name, in place of the one there; return ``added``, ``replaced`` or ``unchanged``.

    ``unchanged``: the content was the same; only its sources are updated. Raises UsageError for the name of a mount.
    """
    if name in {mount for mount, _, _ in read_mounts(connection)}:
        raise UsageError(f"'{name}' was mounted a moment ago", "Add the graph under another name")
    stored = {graph.name: graph for graph in read_graphs(connection)}.get(name)
    sources_json = canonical_json([asdict(source) for source in sources])
    if stored is not None and stored.digest == packed.digest:
        connection.execute(
            "UPDATE graph SET sources = ?, options = ? WHERE name = ? AND (sources != ? OR options != ?)",
            (sources_json, options, name, sources_json, options),
        )
        return "unchanged"
    if stored is not None:
        _delete(connection, stored.number)
    _insert(connection, name, packed, sources_json, options)
    # A large graph goes through the write-ahead log too, which is emptied after the transaction.
    note_removal(connection)
    return "added" if stored is None else "replaced"


def _insert(
    connection: sqlite3.Connection, name: str, packed: PackedGraph, sources: str, options: str
) -> None:
    (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM graph").fetchone()
    connection.execute(
        "INSERT INTO graph VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            name,
            packed.digest,
            packed.nodes,
            packed.edges,
            canonical_json(packed.relations),
            sources,
            options,
        ),
    )
    connection.executemany(
        "INSERT INTO graph_node VALUES (?, ?, ?)",
        ((number, batch, blob) for batch, blob in enumerate(packed.node_blobs)),
    )
    tables = [("graph_edge", packed.pairs, packed.edge_blobs)]
    if packed.statement_blobs is not None:
        tables.append(("graph_statement", packed.statements, packed.statement_blobs))
    for table, keys, blobs in tables:
        connection.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?)",
            ((number, *key, blob) for key, blob in zip(keys, blobs, strict=True)),
        )


def update_graph(connection: sqlite3.Connection, graph: StoredGraph, options: str) -> None:
    """Update the row of a graph whose nodes and edges were edited."""
    connection.execute(
        "UPDATE graph SET digest = ?, nodes = ?, edges = ?, relations = ?, options = ? WHERE number = ?",
        (graph.digest, graph.nodes, graph.edges, canonical_json(graph.relations), options, graph.number),
    )
    note_removal(connection)


def write_blob(
    connection: sqlite3.Connection, table: _Table, key: tuple[int | str, ...], blob: bytes
) -> None:
    """Write a row of packed nodes, edges or properties, in place of one with that key."""
    places = ", ".join("?" * (len(key) + 1))
    connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", (*key, blob))


def delete_blobs(
    connection: sqlite3.Connection, table: _Table, graph: int, numbers: range, relation: str | None = None
) -> None:
    """Delete the rows of packed nodes, or of a relation's edges, with these numbers."""
    condition, key = (" AND relation = ?", (relation,)) if relation is not None else ("", ())
    connection.execute(
        f"DELETE FROM {table} WHERE graph = ? AND number >= ? AND number < ?{condition}",
        (graph, numbers.start, numbers.stop, *key),
    )


def delete_statements(connection: sqlite3.Connection, graph: StoredGraph, relation: str) -> None:
    """Delete the properties of a relation's edges."""
    connection.execute(
        "DELETE FROM graph_statement WHERE graph = ? AND relation = ?", (graph.number, relation)
    )


def update_sources(connection: sqlite3.Connection, name: str, sources: Sequence[GraphSource]) -> None:
    """Update the sources of a graph."""
    sources_json = canonical_json([asdict(source) for source in sources])
    connection.execute("UPDATE graph SET sources = ? WHERE name = ?", (sources_json, name))


def remove_graph(connection: sqlite3.Connection, name: str) -> GraphInfo:
    """Remove a graph or a mount; return its description. Raises UsageError where there is none."""
    infos = {info.name: info for info in read_graph_infos(connection)}
    if name not in infos:
        raise unknown_graph_error(name, infos)
    if infos[name].url:
        connection.execute("DELETE FROM mount WHERE name = ?", (name,))
    else:
        _delete(connection, {graph.name: graph.number for graph in read_graphs(connection)}[name])
    note_removal(connection)
    return infos[name]


def unknown_graph_error(name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a graph that does not exist."""
    if not known:
        return UsageError(f"no graph named '{name}'", "There are none; to add one: clew graph add FILE")
    return unknown_name_error("graph", name, known)


def _delete(connection: sqlite3.Connection, number: int) -> None:
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE graph = ?", (number,))
    connection.execute("DELETE FROM graph WHERE number = ?", (number,))


def store_mount(connection: sqlite3.Connection, name: str, url: str, options: str) -> None:
    """Store a mount, in place of one of that name. Raises UsageError for the name of an imported graph."""
    if name in {graph.name for graph in read_graphs(connection)}:
        raise UsageError(f"there is an imported graph named '{name}'", "Give another --name")
    connection.execute("INSERT OR REPLACE INTO mount VALUES (?, ?, ?)", (name, url, options))


def read_node_lines(connection: sqlite3.Connection, graph: StoredGraph) -> Iterator[bytes]:
    """Yield the line of every node, in order of rows. Raises Damaged."""
    rows = connection.execute("SELECT lines FROM graph_node WHERE graph = ? ORDER BY number", (graph.number,))
    for (blob,) in rows:
        yield from _unpack(graph, blob)


def read_relations(connection: sqlite3.Connection, graph: StoredGraph) -> list[str]:
    """Return the names of a graph's relations, sorted."""
    rows = connection.execute("SELECT DISTINCT relation FROM graph_edge WHERE graph = ?", (graph.number,))
    return sorted(row[0] for row in rows)


def read_pairs(connection: sqlite3.Connection, graph: StoredGraph, relation: str) -> Iterator[bytes]:
    """Yield the packed pairs of a relation."""
    rows = connection.execute(
        "SELECT pairs FROM graph_edge WHERE graph = ? AND relation = ? ORDER BY number",
        (graph.number, relation),
    )
    return (row[0] for row in rows)


def count_pairs(connection: sqlite3.Connection, graph: StoredGraph, relation: str) -> int:
    """Return how many edges a relation has."""
    (size,) = connection.execute(
        "SELECT coalesce(sum(length(pairs)), 0) FROM graph_edge WHERE graph = ? AND relation = ?",
        (graph.number, relation),
    ).fetchone()
    return int(size) // 8


def read_node_batch(connection: sqlite3.Connection, graph: StoredGraph, number: int) -> list[bytes]:
    """Return the lines of the nodes that share a row of the database. Raises Damaged."""
    row = connection.execute(
        "SELECT lines FROM graph_node WHERE graph = ? AND number = ?", (graph.number, number)
    ).fetchone()
    return _unpack(graph, row[0] if row else b"")


def read_node_batches(connection: sqlite3.Connection, graph: StoredGraph) -> Iterator[bytes]:
    """Yield the lines of the nodes that share a row of the database, joined, row after row. Raises Damaged."""
    rows = connection.execute("SELECT lines FROM graph_node WHERE graph = ? ORDER BY number", (graph.number,))
    for (blob,) in rows:
        yield _decompress(graph, blob)


def read_entities(connection: sqlite3.Connection, graph: StoredGraph, rows: Sequence[int]) -> list[Entity]:
    """Return the nodes of rows. Raises Damaged."""
    batches: dict[int, list[bytes]] = {}
    for number in sorted({row // NODES_PER_BLOB for row in rows}):
        batches[number] = read_node_batch(connection, graph, number)
    return [parse_entity(graph.name, batches[row // NODES_PER_BLOB][row % NODES_PER_BLOB]) for row in rows]


def read_edge_properties(
    connection: sqlite3.Connection, graph: StoredGraph, relation: str, place: int
) -> list[dict[str, object]]:
    """Return the properties of the edge at position ``place`` among the pairs of a relation."""
    row = connection.execute(
        "SELECT lines FROM graph_statement WHERE graph = ? AND relation = ? AND number = ?",
        (graph.number, relation, place // STATEMENTS_PER_BLOB),
    ).fetchone()
    prefix = b"[%d," % place
    for line in _unpack(graph, row[0]) if row else ():
        if line.startswith(prefix):
            return list(json.loads(line)[1])
    return []


def _unpack(graph: StoredGraph, blob: bytes) -> list[bytes]:
    return _decompress(graph, blob).split(b"\n")


def _decompress(graph: StoredGraph, blob: bytes) -> bytes:
    try:
        return zlib.decompress(blob)
    except zlib.error as error:
        raise Damaged(
            f"the graph '{graph.name}' is damaged",
            f"Add it again: clew graph remove {graph.name}, then clew graph add",
        ) from error


def dump_graphs(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the canonical lines of every graph and mount: nodes in order of ids, edges by relation and ids."""
    for graph in read_graphs(connection):
        yield dump_line(graph=graph.name, relations=graph.relations)
        ids = []
        for line in read_node_lines(connection, graph):
            ids.append(json.loads(line)["id"])
            yield f'{{"graph":{canonical_json(graph.name)},"node":{line.decode()}}}'
        for relation in read_relations(connection, graph):
            statements = dict(map(json.loads, read_statement_lines(connection, graph, relation)))
            for number, blob in enumerate(read_pairs(connection, graph, relation)):
                for place, (head, tail) in enumerate(
                    struct.iter_unpack("<II", blob), number * PAIRS_PER_BLOB
                ):
                    properties = statements.get(place)
                    more = {} if properties is None else {"properties": properties}
                    yield dump_line(graph=graph.name, edge=[ids[head], relation, ids[tail]], **more)
    for name, url, options in read_mounts(connection):
        yield dump_line(mount=name, url=url, options=options)


def read_statement_lines(
    connection: sqlite3.Connection, graph: StoredGraph, relation: str
) -> Iterator[bytes]:
    """Yield the lines of the properties of a relation's edges, by their positions. Raises Damaged."""
    rows = connection.execute(
        "SELECT lines FROM graph_statement WHERE graph = ? AND relation = ? ORDER BY number",
        (graph.number, relation),
    )
    for (blob,) in rows:
        yield from _unpack(graph, blob)


def graph_digest_lines(connection: sqlite3.Connection) -> list[str]:
    """Return one line for each graph and mount, from which the digest of the base is made."""
    lines = [dump_line(graph=graph.name, digest=graph.digest) for graph in read_graphs(connection)]
    return lines + [dump_line(mount=name, url=url, options=o) for name, url, o in read_mounts(connection)]


def recompute_digest(connection: sqlite3.Connection, graph: StoredGraph) -> str:
    """Return the digest of the stored rows, as ``GraphBuilder.pack`` computes it. Raises Damaged."""
    digest = blake2b(digest_size=16)
    digest.update(f"{graph.nodes}\n{canonical_json(graph.relations)}\n".encode())
    for line in read_node_lines(connection, graph):
        digest.update(line + b"\n")
    for relation in read_relations(connection, graph):
        blobs = list(read_pairs(connection, graph, relation))
        digest.update(f"{canonical_json(relation)}\n{sum(map(len, blobs)) // 8}\n".encode())
        for blob in blobs:
            digest.update(blob)
        for line in read_statement_lines(connection, graph, relation):
            digest.update(line + b"\n")
    return digest.hexdigest()


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
    """Return lines in their stored form; :func:`zlib.decompress` gives them back, joined."""
    return zlib.compress(b"\n".join(lines), _COMPRESSION)


def clean_id(id: str) -> str:
    """Return the id of a node, or the name of a relation, as it is stored; U+FFFD where nothing of it can be seen."""
    return clean_name(id) or "\ufffd"


def node_fields(
    id: str,
    types: Iterable[str],
    name: str,
    aliases: Iterable[str],
    text: str,
    properties: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the stored form of a node: its id and all non-empty fields; a name equal to the id is omitted."""
    id, name = clean_id(id), clean_name(name)
    fields: dict[str, Any] = {"id": id}
    if types and (types := [type for type in dict.fromkeys(map(clean_name, types)) if type]):
        fields["types"] = types
    if name and name != id:
        fields["name"] = name
    if aliases and (aliases := sorted(set(map(clean_name, aliases)) - {name, ""})):
        fields["aliases"] = aliases
    if text:
        fields["text"] = text
    # None and NaN, which is not equal to itself, are no values.
    if properties and (
        values := {
            clean_name(key): value
            for key, value in properties.items()
            if value is not None and value == value
        }
    ):
        fields["properties"] = values
    return fields


def node_lines(nodes: NodeColumns) -> list[bytes]:
    """Return the stored lines of whole nodes: the canonical JSON of :func:`node_fields` of each, column by column."""
    encode = encode_basestring
    ids = [encode(id) for id in nodes.ids]
    names = clean_names(nodes.names) or [""] * len(ids)
    # In the order of their keys.
    columns: list[list[str]] = []
    if nodes.aliases:
        columns.append(
            [_aliases_member(texts, name) for texts, name in zip(nodes.aliases, names, strict=True)]
        )
    columns.append([f'"id":{id}' for id in ids])
    if nodes.names:
        columns.append(
            [
                f',"name":{encode(name)}' if name and name != id else ""
                for name, id in zip(names, nodes.ids, strict=True)
            ]
        )
    if nodes.properties:
        columns.append(_properties_members({clean_name(key): it for key, it in nodes.properties.items()}))
    if nodes.texts:
        columns.append([f',"text":{encode(text)}' if text else "" for text in nodes.texts])
    if nodes.types:
        member_of: dict[tuple[str, ...], str] = {}
        columns.append([])
        for types in map(tuple, nodes.types):
            if types not in member_of:
                kinds = [type for type in dict.fromkeys(map(clean_name, types)) if type]
                member_of[types] = f',"types":{canonical_json(kinds)}' if kinds else ""
            columns[-1].append(member_of[types])
    return [f"{{{''.join(members)}}}".encode() for members in zip(*columns, strict=True)]


def _aliases_member(aliases: Sequence[str], name: str) -> str:
    names = sorted(set(map(clean_name, aliases)) - {name, ""}) if aliases else ()
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
