"""Updating the arrays of a graph (:mod:`clew.store.graphs.arrays`) after an edit, from those of before.

The result equals, but for the order of properties, what :mod:`clew.store.graphs.array_builder` makes of the edited
graph. Arrays that the change does not concern are shared with the folder of before. The others are copied around the
change: nothing is parsed, folded, hashed or sorted again but the nodes and edges that are new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import (
    DENSE,
    DirectedEdges,
    distinct,
    find_in_runs,
    run_offsets,
    sorted_unique,
    write_arrays,
    write_manifest,
)
from clew.core.files import create_folder
from clew.store.graphs.array_builder import (
    NodeCollector,
    NodeTypes,
    describe_relation,
    example_rows,
    join_edges,
)
from clew.store.graphs.arrays import MANIFEST, GraphArrays, find_faults
from clew.store.graphs.graph_edits import GraphChange, edit_keys, pack_keys, split_keys
from clew.store.graphs.spelling_index import update_spelling_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Arrays, Rows
    from clew.store.graphs.graph_edits import Keys

#: From this share of changed nodes on the arrays are built anew.
MAX_CHANGED_SHARE = 0.1
#: The groups of arrays by the first part of their names.
_NODE_GROUPS, _EDGE_GROUPS = {"ids", "types", "names", "grams", "columns"}, {"out", "in", "any"}


def update_arrays(
    opened: GraphArrays,
    old_folder: Path,
    change: GraphChange,
    folder: Path,
    names_of: Callable[[Sequence[int]], list[str]],
) -> bool:
    """Make the arrays of the edited graph in ``folder``; ``names_of`` returns the names of its nodes.

    Return False, and make nothing, where the arrays of before are damaged or most of them would change.
    """
    changed_nodes = len(change.replaced) + len(change.described)
    if changed_nodes > MAX_CHANGED_SHARE * max(change.size, 1) + 1000:
        return False
    groups = set[str]()
    if changed_nodes:
        groups |= _NODE_GROUPS
    if change.removed or change.added or change.moves_rows:
        groups |= _EDGE_GROUPS
    copied = [name for name in opened.arrays if name.partition(".")[0] in groups]
    if find_faults(old_folder, copied):
        return False
    arrays: Arrays = {}
    manifest = dict(opened.manifest)
    types = _NodeUpdate(opened, change).update(arrays, manifest, folder) if changed_nodes else _types(opened)
    edges = _EdgeUpdate(opened, change)
    if groups & _EDGE_GROUPS:
        directions, merged = edges.update()
        relations = {
            name: (forward, backward)
            for name, forward, backward in zip(edges.names, directions["out"], directions["in"], strict=True)
        }
        edge_arrays, places = join_edges(directions, merged)
        arrays |= edge_arrays
        manifest |= places
    else:
        relations = {name: (edges.old(name, False), edges.old(name, True)) for name in edges.names}
    manifest["relations"] = _describe_relations(opened, change, relations, types, names_of)
    old_files = opened.manifest["files"]
    unchanged = {old_folder / file: old_files[file] for file in old_files if Path(file).stem not in arrays}
    manifest["files"] = write_arrays(arrays, folder, unchanged)
    write_manifest(folder / MANIFEST, manifest)
    return True


def changed_text_rows(opened: GraphArrays, change: GraphChange) -> Rows:
    """Return the old rows of the nodes whose texts may have changed.

    The text of a node says what describes it, its edges, and the names of the nodes at their other ends.
    """
    everywhere = [change.replaced]
    for keys in change.removed.values():
        everywhere += split_keys(keys)
    old_rows = np.flatnonzero(change.row_map >= 0)
    for keys in change.added.values():
        for rows in split_keys(keys):
            places = np.searchsorted(change.row_map[old_rows], rows)
            inside = places < len(old_rows)
            places, rows = places[inside], rows[inside]
            everywhere.append(old_rows[places[change.row_map[old_rows[places]] == rows]])
    for inverse in (False, True):
        everywhere.append(opened.edges(None, inverse).neighbours(change.replaced)[1])
    return sorted_unique(np.concatenate(everywhere))


def _types(opened: GraphArrays) -> NodeTypes:
    return NodeTypes.from_rows(_rows_by_type(opened), len(opened.arrays["ids.starts"]) - 1)


def _rows_by_type(opened: GraphArrays) -> dict[str, NDArray[np.uint32]]:
    starts: Any = opened.arrays["types.starts"]
    rows: Any = opened.arrays["types.rows"]
    return {
        name: rows[start:end]
        for name, (start, end) in zip(opened.manifest["types"], pairwise(starts.tolist()), strict=True)
    }


def _describe_relations(
    opened: GraphArrays,
    change: GraphChange,
    relations: dict[str, tuple[DirectedEdges, DirectedEdges]],
    types: NodeTypes,
    names_of: Callable[[Sequence[int]], list[str]],
) -> dict[str, Any]:
    """Return what the manifest says about each relation."""
    known = opened.manifest["relations"]
    redescribed = np.array(list(change.described), dtype=np.int64)
    described = {}
    for name, (forward, backward) in relations.items():
        is_changed = name not in known or name in change.removed or name in change.added
        if not is_changed and len(redescribed):
            bounds = [edges.bounds(redescribed) for edges in (forward, backward)]
            is_changed = any((ends > starts).any() for starts, ends in bounds)
        if is_changed:
            rows = example_rows(np.column_stack(split_keys(_keys(forward, change.size))))
            described[name] = describe_relation(forward, backward, types, names_of(rows))
        else:
            described[name] = known[name]
    return described


class _EdgeUpdate:
    """Updates the edges of all relations."""

    def __init__(self, opened: GraphArrays, change: GraphChange) -> None:
        self._opened, self._change = opened, change
        self._old_size = len(change.row_map)
        self._numbers = {name: number for number, name in enumerate(opened.manifest["relations"])}
        sizes = {name: info["edges"] for name, info in opened.manifest["relations"].items()}
        for name, keys in change.removed.items():
            sizes[name] -= len(keys)
        for name, keys in change.added.items():
            sizes[name] = sizes.get(name, 0) + len(keys)
        self.names = sorted(name for name, size in sizes.items() if size)

    def old(self, name: str, inverse: bool) -> DirectedEdges:
        """Return the edges of a relation before the change."""
        return self._opened.edges(self._numbers[name], inverse)

    def update(self) -> tuple[dict[str, list[DirectedEdges]], dict[str, list[DirectedEdges]]]:
        """Return the edges of each relation, and of all as one, by direction."""
        directions = {
            direction: [self._relation(name, direction == "in") for name in self.names]
            for direction in ("out", "in")
        }
        removed, added = self._change_of_all(directions["out"])
        merged = {
            direction: [
                self._edit(self._opened.edges(None, inverse), _turn(removed, inverse), _turn(added, inverse))
            ]
            for direction, inverse in (("out", False), ("in", True))
        }
        return directions, merged

    def _relation(self, name: str, inverse: bool) -> DirectedEdges:
        none = np.empty(0, dtype=np.uint64)
        removed, added = self._change.removed.get(name, none), self._change.added.get(name, none)
        if name not in self._numbers:
            return _from_keys(_turn(added, inverse), self._change.size)
        edges = self.old(name, inverse)
        if not len(removed) and not len(added) and not self._change.moves_rows:
            return edges
        return self._edit(edges, _turn(removed, inverse), _turn(added, inverse))

    def _edit(self, edges: DirectedEdges, removed: Keys, added: Keys) -> DirectedEdges:
        row_map = self._change.row_map if self._change.moves_rows else None
        if edges.heads is None:
            return _edit_dense(edges, removed, added, row_map, self._change.size)
        keys = edit_keys(_keys(edges, self._old_size), removed, added, row_map)
        return _from_keys(keys, self._change.size)

    def _change_of_all(self, relations: list[DirectedEdges]) -> tuple[Keys, Keys]:
        """Return the pairs of nodes that no relation joins any more, in old rows, and those that one joins now."""
        removed = _union(list(self._change.removed.values()))
        heads, tails = (self._change.row_map[rows] for rows in split_keys(removed))
        places = np.flatnonzero((heads >= 0) & (tails >= 0))
        is_joined = np.zeros(len(removed), dtype=np.bool_)
        for edges in relations:
            is_joined[places] |= _has_pairs(edges, heads[places], tails[places])
        # What is added and was not removed may be there by another relation: it is then not added again.
        return removed[~is_joined], _union(list(self._change.added.values()))


def _edit_dense(
    edges: DirectedEdges, removed: Keys, added: Keys, row_map: NDArray[np.int64] | None, size: int
) -> DirectedEdges:
    """Do as :func:`edit_keys` with edges that have a start for each row, without making keys of all of them."""
    heads, ends = split_keys(removed)
    tails = edges.tails
    if len(heads):
        tails = np.delete(tails, find_in_runs(tails, *edges.bounds(heads), ends))
    counts = np.diff(edges.starts)
    np.subtract.at(counts, heads, 1)
    if row_map is not None:
        remains = row_map >= 0
        old_counts, counts = counts, np.zeros(size, dtype=np.int64)
        counts[row_map[remains]] = old_counts[remains]
        tails = row_map.astype(np.uint32)[tails]
    if len(added):
        heads, ends = split_keys(added)
        starts = run_offsets(counts)
        places = find_in_runs(tails, starts[heads], starts[heads + 1], ends)
        is_there = places < starts[heads + 1]
        is_there[is_there] = tails[places[is_there]] == ends[is_there]
        tails = np.insert(tails, places[~is_there], ends[~is_there])
        np.add.at(counts, heads[~is_there], 1)
    if np.count_nonzero(counts) >= max(DENSE * size, 1):
        return DirectedEdges(None, run_offsets(counts), tails)
    sources = np.flatnonzero(counts)
    return DirectedEdges(sources.astype(np.uint32), run_offsets(counts[sources]), tails)


def _keys(edges: DirectedEdges, size: int) -> Keys:
    heads = np.arange(size, dtype=np.uint64) if edges.heads is None else edges.heads
    return pack_keys(np.repeat(heads, np.diff(edges.starts)), edges.tails)


def _from_keys(keys: Keys, size: int) -> DirectedEdges:
    heads, tails = split_keys(keys)
    return DirectedEdges.from_pairs(heads.astype(np.uint32), tails.astype(np.uint32), size)


def _turn(keys: Keys, inverse: bool) -> Keys:
    """Return the keys of edges from their tails to their heads, if ``inverse``."""
    return np.sort(pack_keys(*reversed(split_keys(keys)))) if inverse else keys


def _union(parts: list[Keys]) -> Keys:
    return distinct(np.concatenate([np.empty(0, dtype=np.uint64), *parts]))


def _has_pairs(edges: DirectedEdges, heads: Rows, tails: Rows) -> NDArray[np.bool_]:
    """Return which pairs are among the edges."""
    starts, ends = edges.bounds(heads)
    places = find_in_runs(edges.tails, starts, ends, tails)
    has_pair = places < ends
    has_pair[has_pair] = edges.tails[places[has_pair]] == tails[has_pair]
    return has_pair


class _NodeUpdate:
    """Updates ids, types, names and properties."""

    def __init__(self, opened: GraphArrays, change: GraphChange) -> None:
        self._opened, self._change = opened, change
        self._collector = NodeCollector(set())
        for row, line in change.described.items():
            self._collector.add(row, [json.loads(line)])
        self._is_replaced = np.zeros(len(change.row_map), dtype=np.bool_)
        self._is_replaced[change.replaced] = True

    def update(self, arrays: Arrays, manifest: dict[str, Any], folder: Path) -> NodeTypes:
        """Add the new arrays to ``arrays`` and change the manifest; return the types."""
        self._update_ids(arrays)
        self._update_names(arrays, folder)
        arrays_of_columns, manifest["columns"] = self._columns()
        arrays |= arrays_of_columns
        types = self._types()
        manifest["types"] = types.names
        arrays |= {"types.starts": types.starts, "types.rows": types.rows}
        return types

    def _update_ids(self, arrays: Arrays) -> None:
        change = self._change
        gone = np.flatnonzero(change.row_map < 0)
        remaining = np.flatnonzero(change.row_map >= 0)
        is_new = np.ones(change.size, dtype=np.bool_)
        is_new[change.row_map[remaining]] = False
        new_rows = np.flatnonzero(is_new)
        # Before which old row each new id comes: so many old rows are smaller.
        before = np.searchsorted(change.row_map[remaining], new_rows)
        places = np.append(remaining, len(change.row_map))[before]
        texts = [json.loads(change.described[row])["id"].encode() for row in new_rows.tolist()]
        arrays["ids"], arrays["ids.starts"] = _splice_texts(
            self._opened.arrays["ids"], self._opened.arrays["ids.starts"], gone, places, texts
        )

    def _types(self) -> NodeTypes:
        collected, rows_by_type = self._collector.rows_by_type(), {}
        old = _rows_by_type(self._opened)
        for name in {*old, *collected}:
            rows = old.get(name, np.empty(0, dtype=np.uint32))
            rows = self._change.row_map[rows[~self._is_replaced[rows]]].astype(np.uint32)
            rows = np.sort(np.concatenate([rows, collected.get(name, rows[:0])]))
            if len(rows):
                rows_by_type[name] = rows
        return NodeTypes.from_rows(rows_by_type, self._change.size)

    def _update_names(self, arrays: Arrays, folder: Path) -> None:
        old: Any = self._opened.arrays
        hashes: NDArray[np.uint64] = old["names.hashes"]
        counts = np.diff(old["names.owners"])
        rows = old["names.rows"]
        remains = ~self._is_replaced[rows]
        # The names of the remaining nodes, as numbers of the old names.
        numbers = np.repeat(np.arange(len(hashes)), counts)[remains]
        rows = self._change.row_map[rows[remains]].astype(np.uint32)
        new_hashes, new_rows, new_texts = self._collector.name_entries()
        order = np.lexsort((new_rows, new_hashes))
        new_hashes, new_rows = new_hashes[order], new_rows[order]
        new_texts = [new_texts[n] for n in order.tolist()]
        is_used = np.zeros(len(hashes), dtype=np.bool_)
        is_used[numbers] = True
        places = np.searchsorted(hashes, new_hashes)
        is_known = np.zeros(len(new_hashes), dtype=np.bool_)
        inside = places < len(hashes)
        is_known[inside] = hashes[places[inside]] == new_hashes[inside]
        is_used[places[is_known]] = True
        firsts = np.flatnonzero(
            ~is_known & np.append(True, new_hashes[1:] != new_hashes[:-1])[: len(new_hashes)]
        )
        inserted = new_hashes[firsts]
        gone = np.flatnonzero(~is_used)
        texts, starts = _splice_texts(
            old["names.texts"],
            old["names.starts"],
            gone,
            places[firsts],
            [new_texts[n] for n in firsts.tolist()],
        )
        all_hashes = np.insert(hashes[is_used], np.searchsorted(hashes[is_used], inserted), inserted)
        name_map = np.where(is_used, np.searchsorted(all_hashes, hashes), -1)
        # Owners: the names of all nodes as (number of the name, row), those of the new ones inserted.
        keys = edit_keys(
            pack_keys(name_map[numbers], rows),
            np.empty(0, dtype=np.uint64),
            distinct(pack_keys(np.searchsorted(all_hashes, new_hashes), new_rows)),
            None,
        )
        owners, owner_rows = split_keys(keys)
        arrays |= {
            "names.hashes": all_hashes,
            "names.owners": run_offsets(np.bincount(owners, minlength=len(all_hashes))),
            "names.rows": owner_rows.astype(np.uint32),
            "names.texts": texts,
            "names.starts": starts,
        }
        create_folder(folder.parent)
        arrays |= update_spelling_index(
            old, name_map, texts, starts, np.searchsorted(all_hashes, inserted), folder.parent
        )

    def _columns(self) -> tuple[Arrays, dict[str, list[int]]]:
        """Return the arrays of all properties, and the place of each."""
        old: Any = self._opened.arrays
        places: dict[str, list[int]] = self._opened.manifest["columns"]
        new, new_places = self._collector.columns.arrays()
        parts: dict[str, list[Any]] = {"rows": [], "numbers": [], "texts": [], "starts": []}
        columns: dict[str, list[int]] = {}
        at = byte = 0
        for name in dict.fromkeys([*places, *new_places]):
            rows, numbers, texts, starts = _column(old, places, name)
            new_rows, new_numbers, new_texts, new_starts = _column(new, new_places, name)
            gone = np.flatnonzero(self._is_replaced[rows])
            remaining = self._change.row_map[np.delete(rows, gone)].astype(np.uint32)
            among_kept = np.searchsorted(remaining, new_rows)
            among_old = np.append(np.flatnonzero(~self._is_replaced[rows]), len(rows))[among_kept]
            content = new_texts.tobytes()
            texts, starts = _splice_texts(
                texts, starts, gone, among_old, [content[a:b] for a, b in pairwise(new_starts.tolist())]
            )
            if not len(remaining) + len(new_rows):
                continue
            parts["rows"].append(np.insert(remaining, among_kept, new_rows))
            parts["numbers"].append(np.insert(np.delete(numbers, gone), among_kept, new_numbers))
            parts["texts"].append(texts)
            parts["starts"].append(starts)
            columns[name] = [at, len(starts) - 1, byte, len(texts)]
            at, byte = at + len(starts) - 1, byte + len(texts)
        dtypes = {"rows": np.uint32, "numbers": np.float64, "texts": np.uint8, "starts": np.int64}
        return {
            f"columns.{part}": np.concatenate([np.empty(0, dtype=dtypes[part]), *chunks])
            for part, chunks in parts.items()
        }, columns


def _column(arrays: Any, places: dict[str, list[int]], name: str) -> tuple[Any, Any, Any, Any]:
    """Return the rows, numbers, texts and starts of a property; empty ones where it is not there."""
    at, count, byte, byte_count = places.get(name, (0, 0, 0, 0))
    if not count:
        return (
            np.empty(0, np.uint32),
            np.empty(0, np.float64),
            np.empty(0, np.uint8),
            np.zeros(1, np.int64),
        )
    first = at + list(places).index(name)  # every property before it has one start more than values
    return (
        arrays["columns.rows"][at : at + count],
        arrays["columns.numbers"][at : at + count],
        arrays["columns.texts"][byte : byte + byte_count],
        arrays["columns.starts"][first : first + count + 1],
    )


def _splice_texts(
    content: Any, starts: Any, gone: Rows, places: Rows, texts: Sequence[bytes]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return texts without those at ``gone``, and with ``texts`` each before the old one at its place; ascending."""
    bounds = np.asarray(starts)
    pieces: list[Any] = []
    at = 0  # the next old text
    events = sorted(
        [(int(place), 0, number) for number, place in enumerate(places)]
        + [(int(place), 1, 0) for place in gone]
    )
    for place, is_removal, number in events:
        pieces.append(content[bounds[at] : bounds[place]])
        if is_removal:
            at = place + 1
        else:
            at = place
            pieces.append(np.frombuffer(texts[number], dtype=np.uint8))
    pieces.append(content[bounds[at] : bounds[-1]])
    lengths = np.delete(np.diff(bounds), gone)
    kept_before = places - np.searchsorted(gone, places)
    lengths = np.insert(lengths, kept_before, [len(text) for text in texts])
    return np.concatenate([np.empty(0, dtype=np.uint8), *pieces]), run_offsets(lengths)
