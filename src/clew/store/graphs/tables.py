"""The tables of packed graphs in SQLite: graphs are stored and removed as a whole, and read in part. No numpy."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING

from clew.core.errors import Damaged, UsageError, unknown_name_error
from clew.core.types import Entity, GraphInfo, GraphSource
from clew.store.dump import dump_line
from clew.store.graphs.packing import (
    NODES_PER_BLOB,
    PAIRS_PER_BLOB,
    STATEMENTS_PER_BLOB,
    StoredGraph,
    canonical_json,
    decompress_lines,
    parse_entity,
)

if TYPE_CHECKING:
    from clew.store.graphs.builder import PackedGraph

_GRAPHS = "SELECT number, name, digest, nodes, edges, relations, options FROM graph"
_TABLES = ("graph_node", "graph_edge", "graph_statement")


def read_graphs(connection: sqlite3.Connection) -> list[StoredGraph]:
    """Return every imported graph, sorted by name."""
    rows = connection.execute(f"{_GRAPHS} ORDER BY name")
    return [
        StoredGraph(number, name, digest, nodes, edges, json.loads(relations), _answer_types(options))
        for number, name, digest, nodes, edges, relations, options in rows
    ]


def _answer_types(options: str) -> tuple[str, ...]:
    return tuple(json.loads(options).get("answers", ())) if options.startswith("{") else ()


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
    # A large graph goes through the write-ahead log, which is emptied after the transaction.
    connection.execute("UPDATE state SET value = 1 WHERE name = 'scrub'")
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
    connection.execute("UPDATE state SET value = 1 WHERE name = 'scrub'")
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


# Reading


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


def read_entities(connection: sqlite3.Connection, graph: StoredGraph, rows: Sequence[int]) -> list[Entity]:
    """Return the nodes of rows. Raises Damaged."""
    batches: dict[int, list[bytes]] = {}
    for number in sorted({row // NODES_PER_BLOB for row in rows}):
        row = connection.execute(
            "SELECT lines FROM graph_node WHERE graph = ? AND number = ?", (graph.number, number)
        ).fetchone()
        batches[number] = _unpack(graph, row[0] if row else b"")
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
    try:
        return decompress_lines(blob)
    except zlib.error as error:
        raise Damaged(
            f"the graph '{graph.name}' is damaged",
            f"Add it again: clew graph remove {graph.name}, then clew graph add",
        ) from error


# Dump and digest


def dump_graphs(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the canonical lines of every graph and mount: nodes in order of ids, edges by relation and ids."""
    for graph in read_graphs(connection):
        yield dump_line(graph=graph.name, relations=graph.relations)
        ids = []
        for line in read_node_lines(connection, graph):
            ids.append(json.loads(line)["id"])
            yield f'{{"graph":{canonical_json(graph.name)},"node":{line.decode()}}}'
        for relation in read_relations(connection, graph):
            statements = _read_statements(connection, graph, relation)
            for number, blob in enumerate(read_pairs(connection, graph, relation)):
                for place, (head, tail) in enumerate(
                    struct.iter_unpack("<II", blob), number * PAIRS_PER_BLOB
                ):
                    properties = statements.get(place)
                    more = {} if properties is None else {"properties": properties}
                    yield dump_line(graph=graph.name, edge=[ids[head], relation, ids[tail]], **more)
    for name, url, options in read_mounts(connection):
        yield dump_line(mount=name, url=url, options=options)


def _read_statements(connection: sqlite3.Connection, graph: StoredGraph, relation: str) -> dict[int, object]:
    rows = connection.execute(
        "SELECT lines FROM graph_statement WHERE graph = ? AND relation = ?", (graph.number, relation)
    )
    return dict(json.loads(line) for (blob,) in rows for line in _unpack(graph, blob))


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
        rows = connection.execute(
            "SELECT lines FROM graph_statement WHERE graph = ? AND relation = ? ORDER BY number",
            (graph.number, relation),
        )
        for (blob,) in rows:
            for line in _unpack(graph, blob):
                digest.update(line + b"\n")
    return digest.hexdigest()
