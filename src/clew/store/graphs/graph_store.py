"""The graphs of one base: put in, opened, checked, taken out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.errors import Damaged, NotFound, UsageError, refuse_password, unknown_name_error
from clew.core.types import GraphInfo, GraphSource
from clew.store.database import Database, hold_lock
from clew.store.graphs import tables as truth

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph
    from clew.store.graphs.builder import GraphBuilder
    from clew.store.graphs.node_index import NodeFolder
    from clew.store.graphs.packing import StoredGraph
    from clew.store.sparql.mount_options import MountOptions
    from clew.store.sparql.mounted_graph import MountedGraph

_NAME = re.compile(r"[^\W_][\w.-]*")
#: Seconds after which an index of titles that nobody writes on is taken to be abandoned.
_ABANDONED = 3600
#: What the key of a document looks like: its nodes' ids begin with it, as a graph's begin with the graph's name.
_KEY = re.compile(r"[0-9a-f]{32}")


class GraphStore:
    """The imported and mounted graphs of a base. ``lock`` is that of derived data."""

    def __init__(self, database: Database, derived: Path, lock: Path) -> None:
        self._database, self._derived, self._lock = database, derived, lock

    def graph_infos(self) -> list[GraphInfo]:
        """Return what is known of every graph, sorted by name."""
        with self._database.read_transaction() as connection:
            return truth.read_graph_infos(connection)

    def create_builder(self, name: str, *, iris: bool = False) -> GraphBuilder:
        """Return what takes the graph of that name as it is read, to be given to :meth:`store`.

        ``iris``: its ids are IRIs. Raises UsageError for a name that cannot be one, or is a mount's.
        """
        check_graph_name(name)
        if any(one.name == name and one.url for one in self.graph_infos()):
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
        """Pack what was read and store it in one transaction, in place of a graph of that name; make its arrays.

        Return ``added``, ``replaced`` or ``unchanged``.
        """
        try:
            packed = builder.pack(progress)
        finally:
            builder.close()
        try:
            with self._database.write_transaction() as connection:
                done = truth.store_graph(connection, builder.name, packed, sources, options)
        finally:
            packed.close()
        self._database.scrub()
        (known,) = (one for one in self._stored() if one.name == builder.name)
        self._opened(known)
        self._tidy()
        return done

    def update_sources(self, name: str, sources: Sequence[GraphSource]) -> None:
        """Note new times of the files that a graph was made of."""
        with self._database.write_transaction() as connection:
            truth.update_sources(connection, name, sources)

    def remove(self, name: str) -> GraphInfo:
        """Forget a graph: nothing of it remains when this returns. Raises UsageError where there is none."""
        with self._database.write_transaction() as connection:
            gone = truth.remove_graph(connection, name)
        self._database.scrub()
        self._tidy()
        return gone

    def mount(self, name: str, url: str, options: MountOptions) -> MountedGraph:
        """Note a graph that stays elsewhere, a SPARQL endpoint or an Oxigraph store, and ask what it holds.

        Raises UsageError for a name, an option or a place that cannot be one, UnreadableFile for a table of titles
        that is none, MissingExtra, RemoteError where it does not answer: then nothing is noted.
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
            truth.store_mount(connection, name, url, options.to_json())
        return graph

    def graphs_by_name(self) -> dict[str, StoredGraph | tuple[str, str, str]]:
        """Return every graph and mount by name, as :meth:`open` takes them."""
        with self._database.read_transaction() as connection:
            found: dict[str, StoredGraph | tuple[str, str, str]] = {
                one.name: one for one in truth.read_graphs(connection)
            }
            return found | {one[0]: one for one in truth.read_mounts(connection)}

    def open(self, known: StoredGraph | tuple[str, str, str]) -> PropertyGraph:
        """Open a graph; its arrays are made where they are missing. Raises Damaged, NotFound."""
        if isinstance(known, tuple):
            from clew.store.sparql.mounted_graph import open_mounted_graph

            return open_mounted_graph(self._derived, *known)
        return self._opened(known)

    def _opened(self, known: StoredGraph) -> PropertyGraph:
        from clew.store.graphs import arrays
        from clew.store.graphs.imported_graph import ImportedGraph

        folder = arrays.arrays_folder(self._derived, known.digest)
        found = arrays.load_arrays(folder)
        if found is None:
            with hold_lock(self._lock):
                found = arrays.load_arrays(folder)  # another process may have made them meanwhile
                if found is None:
                    self._build(known, folder)
                    found = arrays.load_arrays(folder)
        if found is None:
            raise Damaged(f"the arrays of the graph '{known.name}' cannot be read", "Run: clew doctor")
        return ImportedGraph(self._database, known, found, self._place(known))

    def _place(self, known: StoredGraph) -> NodeFolder:
        from clew.store.graphs.node_index import node_folder

        def there() -> bool:
            return known.digest in {one.digest for one in self._stored()}

        return node_folder(self._derived, known.digest, there)

    def _build(self, known: StoredGraph, folder: Path) -> None:
        from clew.store.graphs.array_builder import build_arrays

        with self._database.separate_read_transaction() as connection:
            if known.digest not in {one.digest for one in truth.read_graphs(connection)}:
                raise NotFound(f"the graph '{known.name}' was removed or replaced a moment ago", "Ask again")
            build_arrays(connection, known, folder)

    def _stored(self) -> list[StoredGraph]:
        with self._database.read_transaction() as connection:
            return truth.read_graphs(connection)

    def _tidy(self) -> None:
        from clew.store.graphs import arrays
        from clew.store.graphs import node_index as nodes

        with hold_lock(self._lock):
            arrays.delete_stale_arrays(self._derived, [one.digest for one in self._stored()])
            self._tidy_mounts()
        nodes.delete_stale_node_data(self._derived, [one.digest for one in self._stored()])

    def _tidy_mounts(self) -> None:
        folder = self._derived / "mounts"
        if folder.exists():
            from clew.store.sparql.mounted_graph import mount_files
            from clew.store.sparql.title_table import UNFINISHED_SUFFIX

            with self._database.read_transaction() as connection:
                kept = {
                    path for one in truth.read_mounts(connection) for path in mount_files(self._derived, *one)
                }
            for path in folder.iterdir():
                # What another process is writing just now is its own; what a killed one left goes later.
                fresh = path.suffix == UNFINISHED_SUFFIX and time.time() - path.stat().st_mtime < _ABANDONED
                if path not in kept and not fresh:
                    path.unlink(missing_ok=True)

    def check(self, repair: bool, checksums: bool) -> list[tuple[str, str, bool]]:
        """Return what is wrong, as what, problem, and whether it was put right; arrays are made anew."""
        if not (stored := self._stored()):
            return []
        import shutil

        from clew.store.graphs import arrays
        from clew.store.graphs import node_index as nodes

        findings = []
        for one in stored:
            folder = arrays.arrays_folder(self._derived, one.digest)
            sound = arrays.load_arrays(folder) is not None and not (checksums and arrays.find_faults(folder))
            if checksums and (problem := self._damage(one)):
                findings.append((f"graph {one.name}", problem, False))
            elif not sound:
                if repair:
                    with hold_lock(self._lock):
                        shutil.rmtree(folder, ignore_errors=True)
                    self._opened(one)
                findings.append((f"graph {one.name}", "its arrays are missing or damaged", repair))
            for problem, done in nodes.check_node_data(self._derived, one.digest, repair, checksums):
                findings.append((f"graph {one.name}", problem, done))
        return findings

    def _damage(self, one: StoredGraph) -> str:
        try:
            with self._database.separate_read_transaction() as connection:
                whole = truth.recompute_digest(connection, one) == one.digest
        except Damaged as error:
            return error.problem
        return (
            "" if whole else f"does not hold what was added; clew graph remove {one.name}, and add it again"
        )


def mounted_name_error(name: str) -> UsageError:
    """Return the error for adding files under the name of a mount."""
    return UsageError(
        f"'{name}' is a mounted graph", f"Give another --name, or first: clew graph remove {name}"
    )


def check_graph_name(name: str) -> None:
    """Raise UsageError for what cannot be the name of a graph."""
    if not _NAME.fullmatch(name) or _KEY.fullmatch(name):
        raise UsageError(
            f"a graph cannot be named '{name}'",
            "A name is letters, digits, '.', '-' and '_', such as films; give one: --name films",
        )
