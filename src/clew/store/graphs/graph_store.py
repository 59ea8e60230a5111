"""The imported and mounted graphs of one base: adding, opening, checking and removing them."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from clew.core.errors import (
    Damaged,
    RemovedMeanwhile,
    UsageError,
    refuse_password,
    unknown_name_error,
)
from clew.core.files import create_folder, guard_disk, mend_rights
from clew.core.types import GRAPH_EDITED, GraphEditCounts, GraphInfo, GraphSource
from clew.store.database import LOCK_TIMEOUT, Database, hold_lock
from clew.store.graphs import tables
from clew.store.graphs.tables import StoredGraph

if TYPE_CHECKING:
    import pyoxigraph

    from clew.core.protocols import PropertyGraph
    from clew.store.graphs.arrays import GraphArrays
    from clew.store.graphs.builder import GraphBuilder
    from clew.store.graphs.graph_edits import GraphChange, GraphEdits
    from clew.store.graphs.imported_graph import ImportedGraph
    from clew.store.sparql.mount_options import MountOptions
    from clew.store.sparql.mounted_graph import MountedGraph

_NAME = re.compile(r"[^\W_][\w.-]*")
#: Seconds without a write after which an unfinished index of titles, or RDF store, counts as abandoned.
_ABANDONED = 3600
#: The form of a document's key: ids of its nodes begin with it, as ids of a graph's nodes begin with its name.
_KEY = re.compile(r"[0-9a-f]{32}")


class GraphStore:
    """The graphs of a base. ``lock`` is the lock file of derived data."""

    def __init__(self, database: Database, derived: Path, lock: Path) -> None:
        self._database, self._derived, self._lock = database, derived, lock

    def graph_infos(self) -> list[GraphInfo]:
        """Return a description of every graph, sorted by name."""
        with self._database.read_transaction() as connection:
            return tables.read_graph_infos(connection)

    def create_builder(self, name: str, *, iris: bool = False) -> GraphBuilder:
        """Return a builder for the graph ``name``, to be filled by a reader and passed to :meth:`store_graph`.

        ``iris``: its ids are IRIs. Raises UsageError for an invalid name, and for the name of a mount.
        """
        check_graph_name(name)
        if any(info.name == name and info.url for info in self.graph_infos()):
            raise mounted_name_error(name)
        from clew.store.graphs.builder import GraphBuilder

        return GraphBuilder(name, self._derived.parent, iris=iris)

    def store_graph(
        self,
        builder: GraphBuilder,
        sources: Sequence[GraphSource],
        options: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> str:
        """Store the graph of a builder in one transaction, in place of a graph of that name, and build its arrays.

        Return ``added``, ``replaced`` or ``unchanged``. ``progress`` counts each node twice: when it is packed, and
        when it is in the arrays.
        """
        total = 2 * builder.count_nodes()
        try:
            packed = builder.pack(progress and (lambda done, _: progress(done, total)))
        finally:
            builder.close()
        try:
            with self._database.write_transaction() as connection:
                status = tables.store_graph(connection, builder.name, packed, sources, options)
        finally:
            packed.close()
        self._database.scrub()
        (stored,) = (graph for graph in self._read_graphs() if graph.name == builder.name)
        self._open_imported(stored, progress and (lambda done, nodes: progress(nodes + done, total)))
        if progress:
            progress(total, total)
        self.delete_stale_files()
        return status

    def edit_graph(self, name: str, edits: GraphEdits, *, iris: bool = False) -> GraphEditCounts:
        """Remove and add edges and nodes of an imported graph in one transaction; ``iris``: its ids are IRIs.

        Afterwards the graph is the one that would be stored if it were read again from files with these nodes and
        edges, and nothing of what was removed remains. Raises UsageError where there is no such graph, or no node
        would be left, and Damaged.
        """
        from clew.store.graphs import arrays
        from clew.store.graphs.graph_edits import GraphEditor

        self._open_imported(self._find_imported(name))  # its ids are looked up in its arrays
        with self._database.write_transaction() as connection:
            stored = {graph.name: graph for graph in tables.read_graphs(connection)}.get(name)
            folder = arrays.arrays_folder(self._derived, stored.digest) if stored else None
            opened = arrays.load_arrays(folder) if folder else None
            if stored is None or folder is None or opened is None:
                raise RemovedMeanwhile(
                    f"the graph '{name}' was removed or replaced a moment ago", "Ask again"
                )
            if arrays.find_faults(folder, ("ids", "ids.starts")):
                raise Damaged(f"the arrays of the graph '{name}' are damaged", "Run: clew doctor")
            (options,) = (info.options for info in tables.read_graph_infos(connection) if info.name == name)
            editor = GraphEditor(connection, stored, opened, edits, iris=iris)
            edited, change, counts = editor.apply(mark_edited(options))
        self._database.scrub()
        if edited.digest != stored.digest:
            self._update_derived(stored, edited, opened, change)
            self.delete_stale_files()
        return counts

    def _find_imported(self, name: str) -> StoredGraph:
        infos = {info.name: info for info in self.graph_infos()}
        if name not in infos:
            raise tables.unknown_graph_error(name, infos)
        if infos[name].url:
            raise UsageError(f"'{name}' is a mounted graph", "Change it where it is")
        return next(graph for graph in self._read_graphs() if graph.name == name)

    def _update_derived(
        self, stored: StoredGraph, edited: StoredGraph, opened: GraphArrays, change: GraphChange
    ) -> None:
        """Make the derived data of an edited graph from those of before."""
        import numpy as np

        from clew.store.graphs import arrays, node_index
        from clew.store.graphs.array_updater import changed_text_rows, update_arrays

        old_folder, folder = (arrays.arrays_folder(self._derived, graph.digest) for graph in (stored, edited))

        def names_of(rows: Sequence[int]) -> list[str]:
            with self._database.read_transaction() as connection:
                return [entity.name for entity in tables.read_entities(connection, edited, rows)]

        with hold_lock(self._lock):
            if arrays.load_arrays(folder) is None and edited.digest in self._digests():
                update_arrays(opened, old_folder, change, folder, names_of)
        stale = changed_text_rows(opened, change)
        node_index.carry_node_data(
            self._derived, stored.digest, edited.digest, np.asarray(change.row_map), stale, change.size
        )
        self._open_imported(edited)  # builds the arrays where they could not be updated

    def update_sources(self, name: str, sources: Sequence[GraphSource]) -> None:
        """Update the sources of a graph, whose files have new times."""
        with self._database.write_transaction() as connection:
            tables.update_sources(connection, name, sources)

    def remove(self, name: str) -> GraphInfo:
        """Remove a graph; nothing of it remains when this returns. Raises UsageError where there is none."""
        with self._database.write_transaction() as connection:
            removed = tables.remove_graph(connection, name)
        self._database.scrub()
        self.delete_stale_files()
        return removed

    def mount(self, name: str, url: str, options: MountOptions) -> MountedGraph:
        """Mount a graph that stays elsewhere, in a SPARQL endpoint or an Oxigraph store, and ask for its schema.

        Raises UsageError for an invalid name, option or place, UnreadableFile for an invalid table of titles,
        MissingExtra, and RemoteError where the graph does not answer. Nothing is stored then.
        """
        check_graph_name(name)
        refuse_password(url, "the address of the graph", "Only endpoints that need none can be mounted")
        from clew.store.sparql.mounted_graph import is_endpoint, open_mounted_graph, schema_file
        from clew.store.sparql.name_lookup import LOOKUPS

        if options.lookup not in LOOKUPS:
            raise unknown_name_error("look-up", options.lookup, LOOKUPS)
        if options.titles:
            options = replace(options, titles=str(Path(options.titles).expanduser().absolute()))
        if not is_endpoint(url):
            url = str(Path(url).expanduser().absolute())
        schema_file(self._derived, name, url, options.to_json()).unlink(missing_ok=True)
        graph = open_mounted_graph(self._derived, name, url, options.to_json())
        graph.relations()
        with self._database.write_transaction() as connection:
            tables.store_mount(connection, name, url, options.to_json())
        return graph

    def graphs_by_name(self) -> dict[str, StoredGraph | tuple[str, str, str]]:
        """Return every graph and mount by name, in the form that :meth:`open` accepts."""
        with self._database.read_transaction() as connection:
            imported: dict[str, StoredGraph | tuple[str, str, str]] = {
                graph.name: graph for graph in tables.read_graphs(connection)
            }
            return imported | {mount[0]: mount for mount in tables.read_mounts(connection)}

    def open(self, stored: StoredGraph | tuple[str, str, str]) -> PropertyGraph:
        """Open a graph or a mount; missing arrays are built. Raises Damaged and NotFound."""
        if isinstance(stored, tuple):
            from clew.store.sparql.mounted_graph import open_mounted_graph

            return open_mounted_graph(self._derived, *stored)
        return self._open_imported(stored)

    def _open_imported(
        self, stored: StoredGraph, progress: Callable[[int, int], None] | None = None
    ) -> PropertyGraph:
        from clew.store.graphs import arrays
        from clew.store.graphs.imported_graph import ImportedGraph
        from clew.store.graphs.node_index import node_folder

        folder = arrays.arrays_folder(self._derived, stored.digest)
        opened = arrays.load_arrays(folder)
        if opened is None:
            with hold_lock(self._lock):
                opened = arrays.load_arrays(folder)  # another process may have built them meanwhile
                if opened is None:
                    self._build_arrays(stored, folder, progress)
                    opened = arrays.load_arrays(folder)
        if opened is None:
            raise Damaged(f"the arrays of the graph '{stored.name}' cannot be read", "Run: clew doctor")
        nodes = node_folder(self._derived, stored.digest, lambda: stored.digest in self._digests())
        return ImportedGraph(self._database, stored, opened, nodes)

    def open_rdf_store(
        self, graph: ImportedGraph, progress: Callable[[int, int], None] | None = None
    ) -> pyoxigraph.Store:
        """Return the store of the triples of an imported graph (:mod:`clew.store.graphs.rdf_view`).

        It lies beside the arrays, and is built where it is missing. Raises NotFound where the graph was removed or
        replaced meanwhile, and MissingExtra.
        """
        from clew.store.graphs import rdf_view

        folder = rdf_view.rdf_folder(self._derived, graph.digest)
        store = rdf_view.read_rdf_store(folder)
        if store is not None:
            return store
        create_folder(folder.parent)
        # Building may take minutes, so no lock is held meanwhile: if two processes build it, the second is used.
        unfinished = Path(mkdtemp(dir=folder.parent, prefix=f"{folder.name}."))
        try:
            with guard_disk(folder):
                rdf_view.build_rdf_store(graph, unfinished, progress)
            mend_rights(unfinished.rglob("*"))
            with hold_lock(self._lock):
                if graph.digest not in self._digests():
                    raise RemovedMeanwhile(
                        f"the graph '{graph.name}' was removed or replaced a moment ago", "Ask again"
                    )
                shutil.rmtree(folder, ignore_errors=True)
                unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        store = rdf_view.read_rdf_store(folder)
        if store is None:
            raise Damaged(f"the RDF store of the graph '{graph.name}' cannot be read", "Ask again")
        return store

    def _build_arrays(
        self, stored: StoredGraph, folder: Path, progress: Callable[[int, int], None] | None
    ) -> None:
        from clew.store.graphs.array_builder import build_arrays

        with self._database.separate_read_transaction() as connection:
            if stored.digest not in {graph.digest for graph in tables.read_graphs(connection)}:
                raise RemovedMeanwhile(
                    f"the graph '{stored.name}' was removed or replaced a moment ago", "Ask again"
                )
            build_arrays(connection, stored, folder, progress)

    def _read_graphs(self) -> list[StoredGraph]:
        with self._database.read_transaction() as connection:
            return tables.read_graphs(connection)

    def _digests(self) -> list[str]:
        return [graph.digest for graph in self._read_graphs()]

    def delete_stale_files(self, timeout: float = LOCK_TIMEOUT) -> None:
        """Delete the derived data of graphs and mounts that are gone. Raises Locked after ``timeout`` seconds."""
        from clew.store.graphs import arrays, node_index, rdf_view

        with hold_lock(self._lock, timeout):
            rdf_view.delete_stale_stores(self._derived, self._digests(), _ABANDONED)
            arrays.delete_stale_arrays(self._derived, self._digests())
            self._delete_stale_mount_files()
        node_index.delete_stale_node_data(self._derived, self._digests())

    def _delete_stale_mount_files(self) -> None:
        folder = self._derived / "mounts"
        if not folder.exists():
            return
        from clew.store.sparql.mounted_graph import mount_files
        from clew.store.sparql.title_table import UNFINISHED_SUFFIX

        with self._database.read_transaction() as connection:
            used = {
                path
                for mount in tables.read_mounts(connection)
                for path in mount_files(self._derived, *mount)
            }
        for path in folder.iterdir():
            # Another process may be writing an unfinished file; one that a killed process left is deleted later.
            in_progress = path.suffix == UNFINISHED_SUFFIX and time.time() - path.stat().st_mtime < _ABANDONED
            if path not in used and not in_progress:
                path.unlink(missing_ok=True)

    def copy_files(self, target: Path) -> None:
        """Copy the arrays of the graphs, and the vectors and words of their nodes, into the folder ``target``.

        The caller holds the lock of derived data. What a question computes again is left out.
        """
        from clew.core.arrays import link_folder
        from clew.store.graphs import arrays, node_index

        digests = self._digests()
        for digest in digests:
            folder = arrays.arrays_folder(self._derived, digest)
            if arrays.load_arrays(folder) is not None:
                link_folder(folder, arrays.arrays_folder(target, digest))
        node_index.copy_node_data(self._derived, target, digests)

    def check(self, repair: bool, checksums: bool) -> list[tuple[str, str, bool]]:
        """Return each problem as graph, description, and whether it was repaired. With ``repair`` damaged arrays are
        rebuilt."""
        stored_graphs = self._read_graphs()
        if not stored_graphs:
            return []
        from clew.store.graphs import arrays, node_index

        findings = []
        for graph in stored_graphs:
            subject = f"graph {graph.name}"
            folder = arrays.arrays_folder(self._derived, graph.digest)
            is_built = folder.exists()
            sound = arrays.load_arrays(folder) is not None and not (checksums and arrays.find_faults(folder))
            if checksums and (problem := self._content_problem(graph)):
                findings.append((subject, problem, False))
            elif not sound:
                if repair:
                    with hold_lock(self._lock):
                        shutil.rmtree(folder, ignore_errors=True)
                    self._open_imported(graph)
                # A process that is killed after it stored a graph leaves this to the first that asks it.
                problem = "its arrays are damaged" if is_built else "its arrays are not built yet"
                findings.append((subject, problem, repair))
            for problem, repaired in node_index.check_node_data(
                self._derived, graph.digest, repair, checksums
            ):
                findings.append((subject, problem, repaired))
        return findings

    def _content_problem(self, graph: StoredGraph) -> str:
        """Describe the damage of a graph's stored content; "" if it is sound."""
        try:
            with self._database.separate_read_transaction() as connection:
                if tables.recompute_digest(connection, graph) == graph.digest:
                    return ""
        except Damaged as error:
            return error.problem
        return f"its content has changed since it was added; clew graph remove {graph.name}, and add it again"


def mark_edited(options: str) -> str:
    """Return a graph's options as JSON, marked as edited: its files no longer define its content."""
    values = json.loads(options) if options.startswith("{") else {}
    return json.dumps(values | {GRAPH_EDITED: True}, sort_keys=True)


def mounted_name_error(name: str) -> UsageError:
    """Return the error for adding files under the name of a mount."""
    return UsageError(
        f"'{name}' is a mounted graph", f"Give another --name, or first: clew graph remove {name}"
    )


def check_graph_name(name: str) -> None:
    """Raise UsageError for an invalid name of a graph."""
    if not _NAME.fullmatch(name) or _KEY.fullmatch(name):
        raise UsageError(
            f"a graph cannot be named '{name}'",
            "A name is letters, digits, '.', '-' and '_', such as films; give one: --name films",
        )
