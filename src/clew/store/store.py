"""The knowledge base: one folder, its truth in SQLite, everything derived from it beside it.

Three classes of data, and nothing belongs to two (design, 4): the truth (documents, nodes, asserted edges,
settings); what is derived from one document (segments, vectors); and views over all of them, made when they
are asked for (:meth:`Snapshot.remember`). Opening, listing and showing import no numpy.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Self

from clew.core.config import expand_path
from clew.core.errors import Locked, NotFound, StoreError, UsageError
from clew.core.types import Document, Edge, Location, Node, ParsedDocument
from clew.store import documents as reading
from clew.store import documents as writing
from clew.store import dump as canonical
from clew.store import info
from clew.store.database import DATABASE_FILE, Database, hold_lock
from clew.store.graphs import tables as graphs_truth
from clew.store.info import StoreInfo

if TYPE_CHECKING:
    from clew.core.protocols import Encoder
    from clew.store.graphs.graph_store import GraphStore
    from clew.store.segment_index import SegmentIndex
    from clew.store.snapshot import StoreSnapshot

PASSAGE_UNITS = ("paragraph", "sentence")
PASSAGES_SETTING = "passages"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that ``doctor`` found wrong, and whether it put it right."""

    what: str
    problem: str
    repaired: bool


class Store:
    """An open base. Several processes may have one folder open; one writes at a time, and readers never wait."""

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self.database = database
        self.derived = path / "derived"
        #: Whether a snapshot first indexes what is not yet. A server leaves that to the process that adds.
        self.index_on_snapshot = True
        self._snapshot: tuple[object, StoreSnapshot] | None = None
        self._making = threading.Lock()

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False, passages: str = "paragraph") -> Store:
        """Open the base in ``path``; ``create`` makes one, whose passages are paragraphs or sentences.

        Raises NotFound where there is none, StoreError or Damaged where it cannot be used, and UsageError
        where ``create`` asks for other passages than the base has.
        """
        path = Path(path)
        if passages not in PASSAGE_UNITS:
            raise UsageError(f"passages cannot be '{passages}'", f"Known: {', '.join(PASSAGE_UNITS)}")
        fresh = not cls.exists(path)
        if fresh and not create:
            raise NotFound(f"no knowledge base at {path}", "Make one: clew add FOLDER")
        if fresh:
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"no knowledge base can be made at {path}: {error.strerror or error}"
                ) from error
            Database.create(path, {PASSAGES_SETTING: passages})
        base = cls(path, Database(path))
        if create and base.passage_unit != passages and passages != "paragraph":
            base.close()
            raise UsageError(
                f"the knowledge base at {path} has {base.passage_unit}s as passages, not {passages}s",
                "Make another: --kb OTHER",
            )
        return base

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Return whether there is a knowledge base in ``path``."""
        return (Path(path) / DATABASE_FILE).exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._snapshot = None
        self.database.close()

    @property
    def passage_unit(self) -> str:
        """What a passage is here: ``paragraph`` or ``sentence``."""
        return self.get_setting(PASSAGES_SETTING) or "paragraph"

    def get_setting(self, name: str, default: str | None = None) -> str | None:
        """Return a setting of the base."""
        with self.database.read_transaction() as connection:
            row = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
        return row[0] if row else default

    def set_setting(self, name: str, value: str) -> None:
        """Keep a setting; an empty value forgets it."""
        with self.database.write_transaction() as connection:
            connection.execute("DELETE FROM setting WHERE name = ?", (name,))
            if value:
                connection.execute("INSERT INTO setting VALUES (?, ?)", (name, value))

    # Reading the truth

    def documents(self) -> list[Document]:
        """Return every document, sorted by key."""
        with self.database.read_transaction() as connection:
            found = reading.read_entries(connection)
        return sorted((one.document for one in found), key=lambda document: document.key)

    def document(self, name: str) -> Document:
        """Return the document with this key, path or file name. Raises NotFound, UsageError if ambiguous."""
        documents = self.documents()
        absolute = str(expand_path(name))
        for same in (
            lambda one: one.key == name,
            lambda one: name in one.paths or absolute in one.paths,
            lambda one: name in {PurePath(path).name for path in one.paths},
        ):
            found = [one for one in documents if same(one)]
            if len(found) > 1:
                raise UsageError(
                    f"{len(found)} documents are named '{name}'", "Give a path or key: clew list"
                )
            if found:
                return found[0]
        raise NotFound(f"no document named '{name}'", "See: clew list")

    def locations(self) -> dict[str, tuple[Location, str]]:
        """Return every path, with its location and its document's key."""
        with self.database.read_transaction() as connection:
            return reading.read_locations(connection)

    def has_document(self, key: str) -> bool:
        """Return whether there is a document with this key."""
        with self.database.read_transaction() as connection:
            return writing.has_document(connection, key)

    def node(self, id: str) -> Node:
        """Return a node. Raises NotFound."""
        with self.database.read_transaction() as connection:
            row = writing.find_row(connection, id)
            owner = reading.read_entry(connection, id.rpartition(":")[0])
            return reading.NodeReader(connection).nodes([row], [owner])[0]

    def document_nodes(self, key: str) -> list[Node]:
        """Return a document's nodes in reading order, itself first. Raises NotFound."""
        with self.database.read_transaction() as connection:
            owner = reading.read_entry(connection, key)
            rows = range(owner.first, owner.end)
            return reading.NodeReader(connection).nodes(rows, [owner] * len(rows))

    def document_text(self, key: str) -> str:
        """Return a document's canonical text. Raises NotFound."""
        with self.database.read_transaction() as connection:
            return reading.read_text(connection, reading.find_first_row(connection, key))

    def dump(self) -> Iterator[str]:
        """Yield the truth in its canonical form, sorted by key: the same for the same content."""
        with self.database.read_transaction() as connection:
            owners = sorted(reading.read_entries(connection), key=lambda one: one.document.key)
            for one in owners:
                yield from canonical.dump_document(reading.read_parsed_document(connection, one))
            yield from sorted(map(canonical.dump_edge, reading.read_edges(connection)))
            yield from graphs_truth.dump_graphs(connection)
            settings = connection.execute("SELECT name, value FROM setting ORDER BY name").fetchall()
            yield from (canonical.dump_setting(name, value) for name, value in settings)

    def digest(self) -> str:
        """Return one hash of the truth, made of the documents' own: equal for bases with equal dumps."""
        with self.database.read_transaction() as connection:
            made = sorted(row[0].hex() for row in connection.execute("SELECT digest FROM document"))
            lines = sorted(map(canonical.dump_edge, reading.read_edges(connection)))
            lines += graphs_truth.graph_digest_lines(connection)
            settings = connection.execute("SELECT name, value FROM setting ORDER BY name").fetchall()
        return canonical.hash_lines(
            [*made, *lines, *(canonical.dump_setting(*one) for one in settings)]
        ).hex()

    def info(self, *, digest: bool = True) -> StoreInfo:
        """Return the sizes of the base; without its ``digest``, which reads all edges, if that is not wanted."""
        with self.database.read_transaction() as connection:
            truth = reading.read_entries(connection)
            kinds = dict(connection.execute("SELECT kind, sum(nodes) FROM tally GROUP BY kind").fetchall())
            relations = dict(
                connection.execute("SELECT relation, count(*) FROM edge GROUP BY relation").fetchall()
            )
            generation = reading.read_counter(connection, "generation")
            kept = reading.count_derived(connection)
            graphs = graphs_truth.read_graph_infos(connection)
        indexed = info.indexed_documents(self.derived)
        return StoreInfo(
            documents=len(truth),
            pages=sum(one.document.pages for one in truth),
            nodes=kinds,
            bytes=info.folder_size(self.path),
            generation=generation,
            pending=sum((one.first, one.stamp) not in indexed for one in truth),
            encoders=info.vector_counts(self.derived),
            relations=relations,
            digest=self.digest() if digest else "",
            kept=kept,
            imported=graphs,
        )

    # Writing the truth

    def put_document(self, parsed: ParsedDocument, location: Location) -> str:
        """Put a document at a path, in one transaction; what was there before goes with its last path.

        Return ``added``, ``replaced``, ``located`` (the same bytes at another path) or ``unchanged``.
        """
        with self.database.write_transaction() as connection:
            done = writing.put_document(connection, parsed, location)
        if done == "replaced":
            self.database.scrub()
        return done

    def put_location(self, location: Location, key: str) -> str:
        """Put a known document at a path; return ``located``, ``replaced`` or ``unchanged``."""
        with self.database.write_transaction() as connection:
            done = writing.put_location(connection, location, key)
        if done == "replaced":
            self.database.scrub()
        return done

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Forget paths; return the documents that are gone with their last. Raises NotFound.

        Their text is gone from the database, its log and the vectors when this returns.
        """
        with self.database.write_transaction() as connection:
            gone = writing.remove_paths(connection, paths)
        self.database.scrub()
        if gone and info.vector_counts(self.derived):
            self._forget_vectors()
        return gone

    def assert_edges(self, edges: Iterable[Edge]) -> None:
        """Add edges. Raises NotFound for a node that is not there; then none is added."""
        with self.database.write_transaction() as connection:
            writing.assert_edges(connection, edges)

    def retract(self, owner: str) -> int:
        """Take away every edge of ``owner``; return how many."""
        with self.database.write_transaction() as connection:
            return connection.execute("DELETE FROM edge WHERE owner = ?", (owner,)).rowcount

    # Graphs

    @property
    def graphs(self) -> GraphStore:
        """The imported and mounted graphs."""
        from clew.store.graphs.graph_store import GraphStore

        return GraphStore(self.database, self.derived, self._index_lock)

    # Derived data

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Index every document that is not yet; return how many. Waits for another process that is at it."""
        with hold_lock(self._index_lock):
            return self._index.catch_up(self.database, progress or _silent)

    def encode(self, encoder: Encoder, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the vectors that ``encoder`` has not made yet; return how many. Stopped, it continues."""
        from clew.store import encoding

        self.catch_up()
        with hold_lock(self._index_lock):
            made = encoding.encode_missing(self.database, self.derived, encoder, progress or _silent)
        self._snapshot = None
        return made

    def snapshot(self) -> StoreSnapshot:
        """Return the base as it is now. What is not indexed yet is indexed first, unless another process is
        at it, or ``catches_up`` is False: then ``pending`` says how many documents the view lacks."""
        state, known = self._state(), self._snapshot
        if known is not None and known[0] == state and not (known[1].pending and self.index_on_snapshot):
            return known[1]
        if self.index_on_snapshot:
            self._index_what_is_new()
        # Of several threads that ask after a commit, one makes the view, and all share what it remembers.
        with self._making:
            # The state is read first: what changes while the view is made makes a further view, never none.
            state, known = self._state(), self._snapshot
            if known is None or known[0] != state:
                known = (state, self._seen(None if known is None else known[1]))
                self._snapshot = known
            return known[1]

    def _index_what_is_new(self) -> None:
        """Index what is not yet, unless another process is at it."""
        with self.database.read_transaction() as connection:
            truth = reading.read_entries(connection)
        if self._index.unindexed_documents(truth, self._index.load()):
            with suppress(Locked), hold_lock(self._index_lock, timeout=0):
                self._index.catch_up(self.database, _silent)

    def _seen(self, before: StoreSnapshot | None) -> StoreSnapshot:
        from clew.store.snapshot import StoreSnapshot

        segments = self._index.load()
        with self.database.read_transaction() as connection:
            truth = reading.read_entries(connection)
            generation = reading.read_counter(connection, "generation")
        made = StoreSnapshot(self.database, self.derived, generation, truth, segments, self.graphs)
        if before is not None:
            made.reuse_views(before)
        return made

    def doctor(self, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Check everything; rebuild derived data that is missing or damaged. The truth cannot be rebuilt."""
        findings = [Finding(DATABASE_FILE, problem, False) for problem in self.database.check_integrity()]
        with self.database.read_transaction() as connection:
            truth = reading.read_entries(connection)
            owed = reading.read_counter(connection, "scrub")
        if owed:
            done = repair and self.database.scrub()
            findings.append(Finding("write-ahead log", "holds removed text", done))
        listed = self._index.manifest()
        faults = self._index.find_faults() if checksums else []
        if faults or (listed and not self._index.load()):
            if repair:
                with hold_lock(self._index_lock):
                    self._index.delete()
            findings += [Finding(fault, "missing or damaged", repair) for fault in faults or ["segments"]]
        behind = len(self._index.unindexed_documents(truth, self._index.load()))
        if behind:
            if repair:
                self.catch_up()
            findings.append(Finding("segments", f"{behind} documents are not indexed", repair))
        findings += self._check_vectors(repair, checksums)
        findings += [Finding(*one) for one in self.graphs.check(repair, checksums)]
        self._snapshot = None
        return findings

    def _check_vectors(self, repair: bool, checksums: bool) -> list[Finding]:
        from clew.store.vectors import VectorFiles

        findings = []
        for path in sorted(self.derived.glob("vectors/*")):
            store = VectorFiles(path)
            if not store.read_manifest():
                if repair:
                    shutil.rmtree(path)
                findings.append(Finding(path.name, "vectors are damaged; encode again", repair))
            elif (signs := store.binary_index_file()) is not None and not (
                signs.matches(store.vectors()) if checksums else signs.is_complete()
            ):
                if repair:
                    with hold_lock(self._index_lock):
                        signs.rebuild(store.vectors())
                findings.append(Finding(f"{path.name}/{signs.path.name}", "missing or damaged", repair))
        return findings

    @property
    def _index(self) -> SegmentIndex:
        from clew.store.segment_index import SegmentIndex

        return SegmentIndex(self.derived / "segments")

    @property
    def _index_lock(self) -> Path:
        return self.path / "index.lock"

    def _state(self) -> object:
        with self.database.read_transaction() as connection:
            generation = reading.read_counter(connection, "generation")
        return generation, info.manifest_times(self.derived)

    def _forget_vectors(self) -> None:
        from clew.store import encoding

        with hold_lock(self._index_lock):
            encoding.clear_removed_vectors(self.database, self.derived)
        self._snapshot = None


def _silent(done: int, total: int) -> None:
    pass
