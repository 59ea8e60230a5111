"""The store: one folder on disk with everything that a knowledge base knows.

It holds three classes of data, and nothing belongs to two. The *truth* is in SQLite: documents, nodes, imported
graphs, settings. What is *derived* from single documents lies beside it, in segments and vector files, and can be
rebuilt. *Views* over all of them are computed when they are needed (:meth:`StoreSnapshot.memoize
<clew.store.snapshot.StoreSnapshot.memoize>`). Opening, listing and showing import no numpy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from clew.core.errors import Locked, NotFound, StoreError, UsageError
from clew.core.files import FILE_RIGHTS, create_folder, mend_rights
from clew.core.sources import Source, expand_path, read_source
from clew.core.text import clean_name, file_name
from clew.core.types import Document, GraphInfo, Location, Node, ParsedDocument
from clew.store import documents
from clew.store.database import (
    DATABASE_FILE,
    LOCK_TIMEOUT,
    UNFINISHED_VECTORS,
    Database,
    hold_lock,
    refuse_exhaustion,
)
from clew.store.dump import dump_document, dump_setting, hash_lines
from clew.store.graphs import tables

if TYPE_CHECKING:
    from clew.core.protocols import Encoder
    from clew.store.graphs.graph_store import GraphStore
    from clew.store.segments import SegmentIndex
    from clew.store.snapshot import StoreSnapshot

PASSAGE_UNITS = ("paragraph", "sentence")
PASSAGES_SETTING = "passages"
#: What a base may have in its folder; all else is somebody's own.
_OWN_FILE = re.compile(
    r"base\.sqlite.*|.*\.lock|derived|uploads|temporary|spool|grids|trash|versions"
    r"|(basket|copies|serve|sources)\..*"
)
#: The folder, in that of a base, of files that are needed for a while: those within archives and mails.
_TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that ``doctor`` found: in ``what``, and whether it was repaired."""

    what: str
    problem: str
    repaired: bool


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """The sizes of a base.

    ``nodes`` counts nodes by kind. ``encoders`` maps an encoder's name to its number of vectors. ``pending`` counts
    documents that are not yet searchable. ``derived`` maps a maker (such as a summariser) to the number of document
    parts for which it stored a value. ``graphs`` are the imported and mounted graphs. ``languages`` counts documents
    by the code of their language, "" for those without one.
    """

    documents: int
    pages: int
    nodes: dict[str, int]
    bytes: int
    generation: int
    pending: int
    encoders: dict[str, int]
    relations: dict[str, int]
    digest: str
    derived: dict[str, int] = field(default_factory=dict)
    graphs: list[GraphInfo] = field(default_factory=list)
    languages: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes, JSON-compatible."""
        values = asdict(self)
        return values | {"kept": values.pop("derived"), "imported": values.pop("graphs")}


class Store:
    """An open base. Several processes may open one folder; one writes at a time, and readers never wait."""

    #: Whether it lies in object storage, so that reading waits for requests.
    is_remote = False

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        #: Where the base lies, for people.
        self.place = str(path)
        #: The folder for what is not copied: the trash and earlier versions.
        self.own_path = path
        self.database = database
        self.derived = path / "derived"
        #: Whether :meth:`snapshot` first indexes new documents. A server leaves that to the process that adds them.
        self.index_on_snapshot = True
        self._snapshot: tuple[object, StoreSnapshot] | None = None
        self._snapshot_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = False,
        passages: str = "paragraph",
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> Store:
        """Open the base in ``path``; with ``create``, make one whose passages are paragraphs or sentences.

        It is made with its ``settings``, or not at all; one that is there gets those that it lacks. Raises NotFound
        where there is none, StoreError or Damaged where it cannot be used, and UsageError where ``create`` asks for
        other passages than the base has.
        """
        path = Path(path)
        if passages not in PASSAGE_UNITS:
            raise UsageError(f"passages cannot be '{passages}'", f"Known: {', '.join(PASSAGE_UNITS)}")
        if not Database.exists(path):
            if not create:
                raise NotFound(f"no knowledge base at {path}", "Make one: clew add FOLDER")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                create_folder(path)
            except OSError as error:
                raise StoreError(
                    f"no knowledge base can be made at {path}: {error.strerror or error}"
                ) from error
            Database.create(path, {PASSAGES_SETTING: passages, **settings})
        store = cls(path, Database(path))
        if store.database.path.stat().st_mode & 0o777 != FILE_RIGHTS:
            store.mend_rights()
        if create:
            store.complete_settings(settings)
        store._finish_interrupted_removals()
        store._delete_abandoned_folders()
        if create and store.passage_unit != passages and passages != "paragraph":
            store.close()
            raise UsageError(
                f"the knowledge base at {path} has {store.passage_unit}s as passages, not {passages}s",
                "Make another: --kb OTHER",
            )
        return store

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Return whether there is a knowledge base in ``path``."""
        return Database.exists(Path(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._snapshot = None
        self.database.close()

    @contextmanager
    def temporary_folder(self) -> Iterator[Path]:
        """Create a folder within the base's folder, and delete it afterwards.

        If the process is killed, the next opening of the base deletes it: unpacked archives contain texts of
        documents, and the system's temporary folder is rarely emptied.
        """
        parent = self.path / _TEMPORARY
        with ExitStack() as resources:
            with self.database.hold_lock():  # nobody deletes it before its own lock is held
                create_folder(parent)
                folder = Path(tempfile.mkdtemp(dir=parent))
                resources.callback(shutil.rmtree, folder, ignore_errors=True)
                resources.enter_context(hold_lock(folder / _TEMPORARY))
            yield folder
        self._delete_abandoned_folders()

    def _delete_abandoned_folders(self) -> None:
        """Delete the temporary folders whose process has ended, which the lock in each of them shows."""
        parent = self.path / _TEMPORARY
        if not parent.exists():
            return
        with suppress(StoreError, OSError), self.database.hold_lock(timeout=0):
            for folder in parent.iterdir():
                with suppress(StoreError):
                    with hold_lock(folder / _TEMPORARY, timeout=0):
                        pass
                    shutil.rmtree(folder, ignore_errors=True)
            parent.rmdir()

    # Settings

    @property
    def passage_unit(self) -> str:
        """The unit of passages: ``paragraph`` or ``sentence``."""
        return self.get_setting(PASSAGES_SETTING) or "paragraph"

    def get_setting(self, name: str, default: str | None = None) -> str | None:
        """Return a setting of the base."""
        with self.database.read_transaction() as connection:
            row = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
        return row[0] if row else default

    def set_setting(self, name: str, value: str) -> None:
        """Store a setting; an empty value removes it."""
        with self.database.write_transaction() as connection:
            connection.execute("DELETE FROM setting WHERE name = ?", (name,))
            if value:
                connection.execute("INSERT INTO setting VALUES (?, ?)", (name, value))

    def complete_settings(self, settings: Mapping[str, str], *, repair: bool = True) -> list[str]:
        """Store the ``settings`` that the base lacks, unless ``repair`` is False, and return their names."""
        lacking = {name: value for name, value in settings.items() if self.get_setting(name) is None}
        if lacking and repair:
            with self.database.write_transaction() as connection:
                connection.executemany("INSERT OR IGNORE INTO setting VALUES (?, ?)", lacking.items())
        return list(lacking)

    def mend_rights(self, *, repair: bool = True) -> tuple[int, int]:
        """Take from other users the right to read files of the base; return how many they could read, and how many of
        these they cannot read any more. The folder itself stays as it is where it has other people's files, too."""
        # The database comes last: its rights say that those of the others are right.
        entries = sorted(self.path.iterdir(), key=lambda path: path.name == DATABASE_FILE)
        own = [path for path in entries if _OWN_FILE.fullmatch(path.name)]
        folder = [self.path] if len(own) == len(entries) else []
        return mend_rights(chain(folder, *([path, *path.rglob("*")] for path in own)), repair=repair)

    # Reading documents

    def documents(self) -> list[Document]:
        """Return every document, sorted by key."""
        with self.database.read_transaction() as connection:
            entries = documents.read_entries(connection)
        return sorted((entry.document for entry in entries), key=lambda document: document.key)

    def document(self, name: Source) -> Document:
        """Return the document with this key, path or file name. Raises NotFound, and UsageError if ambiguous."""
        name, absolute = read_source(name), str(expand_path(name))
        stored = self.documents()
        for matches in (
            [document for document in stored if document.key == name],
            [document for document in stored if name in document.paths or absolute in document.paths],
            [document for document in stored if clean_name(name) in map(file_name, document.paths)],
        ):
            if len(matches) > 1:
                raise UsageError(
                    f"{len(matches)} documents are named '{name}'", "Give a path or key: clew list"
                )
            if matches:
                return matches[0]
        raise NotFound(f"no document named '{name}'", "See: clew list")

    def locations(self) -> dict[str, tuple[Location, str]]:
        """Return every path, with its location and the key of its document."""
        with self.database.read_transaction() as connection:
            return documents.read_locations(connection)

    def keys_without_fields(self) -> frozenset[str]:
        """Return the keys of documents that were stored before fields were read from files."""
        with self.database.read_transaction() as connection:
            rows = connection.execute("SELECT key FROM document WHERE fields IS NULL").fetchall()
        return frozenset(key for (key,) in rows)

    def tags(self) -> dict[str, list[str]]:
        """Return the tags that each path was given with :meth:`tag`."""
        with self.database.read_transaction() as connection:
            return documents.read_tags(connection)

    def tag(self, paths: Sequence[str], add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        """Give tags to paths, and take tags away; a tag is compared without case."""
        if not (paths and (add or remove)):
            return
        removed = {name.casefold() for name in (*remove, *add)}
        with self.database.write_transaction() as connection:
            tags = documents.read_tags(connection, paths)
            for path in paths:
                rest = [name for name in tags.get(path, ()) if name.casefold() not in removed]
                by_word = {name.casefold(): name for name in (*rest, *add)}
                documents.write_tags(connection, path, [by_word[word] for word in sorted(by_word)])

    def has_document(self, key: str) -> bool:
        """Return whether there is a document with this key."""
        with self.database.read_transaction() as connection:
            return documents.has_document(connection, key)

    def node(self, id: str) -> Node:
        """Return a node. Raises NotFound."""
        with self.database.read_transaction() as connection:
            row = documents.find_row(connection, id)
            owner = documents.read_entry(connection, id.rpartition(":")[0])
            return documents.NodeReader(documents.open_records(self.database, connection)).nodes(
                [row], [owner]
            )[0]

    def nodes(self, ids: Sequence[str]) -> list[Node]:
        """Return nodes in the order of their ids. Raises NotFound."""
        with self.database.read_transaction() as connection:
            keys = dict.fromkeys(id.rpartition(":")[0] for id in ids)
            owner_of = {key: documents.read_entry(connection, key) for key in keys}
            rows = [documents.find_row(connection, id) for id in ids]
            owners = [owner_of[id.rpartition(":")[0]] for id in ids]
            return documents.NodeReader(documents.open_records(self.database, connection)).nodes(rows, owners)

    def document_nodes(self, key: str) -> list[Node]:
        """Return a document's nodes in reading order, the document's own node first. Raises NotFound."""
        with self.database.read_transaction() as connection:
            owner = documents.read_entry(connection, key)
            rows = range(owner.first, owner.end)
            return documents.NodeReader(documents.open_records(self.database, connection)).nodes(
                rows, [owner] * len(rows)
            )

    def table_nodes(self) -> list[Node]:
        """Return the nodes of all tables, those of a document in reading order."""
        with self.database.read_transaction() as connection:
            rows, owners = documents.find_table_rows(connection)
            return documents.NodeReader(documents.open_records(self.database, connection)).nodes(rows, owners)

    def document_text(self, key: str) -> str:
        """Return a document's canonical text. Raises NotFound."""
        with self.database.read_transaction() as connection:
            first = documents.find_first_row(connection, key)
            return documents.open_records(self.database, connection).text(first)

    def parsed_document(self, key: str) -> ParsedDocument:
        """Return a document as it was stored, with its fields and what was left out. Raises NotFound."""
        with self.database.read_transaction() as connection:
            entry = documents.read_entry(connection, key)
            parsed = documents.read_parsed_document(documents.open_records(self.database, connection), entry)
        return replace(parsed, fields=entry.document.fields, left_out=entry.document.left_out)

    # The whole base

    def dump(self) -> Iterator[str]:
        """Yield the truth in its canonical form, sorted by key: the same lines for the same content."""
        with self.database.read_transaction() as connection:
            records = documents.open_records(self.database, connection)
            for entry in sorted(documents.read_entries(connection), key=lambda entry: entry.document.key):
                yield from dump_document(documents.read_parsed_document(records, entry))
            yield from tables.dump_graphs(connection)
            settings = connection.execute("SELECT name, value FROM setting ORDER BY name").fetchall()
            yield from (dump_setting(name, value) for name, value in settings)

    def digest(self) -> str:
        """Return one hash of the truth, made from the digests of documents and graphs; equal for equal dumps."""
        with self.database.read_transaction() as connection:
            lines = sorted(row[0].hex() for row in connection.execute("SELECT digest FROM document"))
            lines += tables.graph_digest_lines(connection)
            # Tags belong to paths, and locations are no part of the digest.
            settings = connection.execute(
                "SELECT name, value FROM setting WHERE name NOT LIKE 'tags:%' ORDER BY name"
            ).fetchall()
        return hash_lines([*lines, *(dump_setting(name, value) for name, value in settings)]).hex()

    def info(self, *, digest: bool = True) -> StoreInfo:
        """Return the sizes of the base, and its digest unless ``digest`` is False."""
        with self.database.read_transaction() as connection:
            entries = documents.read_entries(connection)
            kinds = dict(connection.execute("SELECT kind, sum(nodes) FROM tally GROUP BY kind").fetchall())
            relations = dict(
                connection.execute("SELECT relation, count(*) FROM edge GROUP BY relation").fetchall()
            )
            generation = documents.read_counter(connection, "generation")
            derived_counts = documents.count_derived(connection)
            graphs = tables.read_graph_infos(connection)
        indexed = indexed_documents(self.derived)
        return StoreInfo(
            documents=len(entries),
            pages=sum(entry.document.pages for entry in entries),
            nodes=kinds,
            bytes=folder_size(self.path),
            generation=generation,
            pending=sum((entry.first, entry.stamp) not in indexed for entry in entries),
            encoders=vector_counts(self.derived),
            relations=relations,
            digest=self.digest() if digest else "",
            derived=derived_counts,
            graphs=graphs,
            languages=dict(Counter(entry.document.language for entry in entries).most_common()),
        )

    # Writing documents

    def put_document(self, parsed: ParsedDocument, location: Location) -> str:
        """Store a document found at a path, in one transaction; the one there before is removed with its last path.

        Return ``added``, ``replaced``, ``located`` (the same bytes at another path) or ``unchanged``.
        """
        with self.database.write_transaction() as connection:
            status = documents.put_document(connection, parsed, location)
        if status == "replaced":
            self.database.scrub()
        return status

    def put_location(self, location: Location, key: str) -> str:
        """Record that a stored document is at a path; return ``located``, ``replaced`` or ``unchanged``."""
        with self.database.write_transaction() as connection:
            status = documents.put_location(connection, location, key)
        if status == "replaced":
            self.database.scrub()
        return status

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Remove paths; return the documents that had no other path and were removed. Raises NotFound.

        When this returns, their text is no longer in the database, its log or the vectors.
        """
        with self.database.write_transaction() as connection:
            removed = documents.remove_paths(connection, paths)
            for path in documents.read_tags(connection, paths):
                documents.write_tags(connection, path, ())
        self.finish_removals()
        return removed

    def finish_removals(self, timeout: float = LOCK_TIMEOUT) -> None:
        """Delete what a removal leaves: vectors, data of graphs, and text in the write-ahead log.

        The database counts the removals that are not finished; a process that was killed in between is followed by
        one that opens the base. ``timeout``: seconds to wait for other processes. Raises Locked.
        """
        with self.database.read_transaction() as connection:
            leftovers = documents.read_counter(connection, "leftovers")
        if (leftovers and vector_counts(self.derived)) or self._has_unfinished_vectors():
            from clew.store.vectors import clear_removed_vectors

            with hold_lock(self._index_lock, timeout):
                clear_removed_vectors(self.database, self.derived)
            self._snapshot = None
        if leftovers:
            if any((self.derived / name).exists() for name in ("graphs", "mounts", "nodes", "rdf")):
                self.graphs.delete_stale_files(timeout)
            with self.database.write_transaction(truth=False) as connection:
                # Another removal that was committed meanwhile has raised the count.
                connection.execute(
                    "UPDATE state SET value = 0 WHERE name = 'leftovers' AND value = ?", (leftovers,)
                )
        self.database.scrub(timeout)

    def _finish_interrupted_removals(self) -> None:
        """Finish what a killed process began, unless another process is at work or nothing can be written."""
        with self.database.read_transaction() as connection:
            counts = [documents.read_counter(connection, name) for name in ("leftovers", "scrub")]
        if any(counts) or self.database.has_log() or self._has_unfinished_vectors():
            with suppress(StoreError, OSError):
                self.finish_removals(timeout=0)

    def _has_unfinished_vectors(self) -> bool:
        return any(path.suffix in UNFINISHED_VECTORS for path in self.derived.glob("vectors/*"))

    # Graphs

    @property
    def graphs(self) -> GraphStore:
        """The imported and mounted graphs."""
        from clew.store.graphs.graph_store import GraphStore

        return GraphStore(self.database, self.derived, self._index_lock)

    # Derived data

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Index every document that is not indexed yet; return how many. Waits while another process does it."""
        with hold_lock(self._index_lock):
            return self._index.catch_up(self.database, progress or _ignore_progress)

    def encode(self, encoder: Encoder, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing vectors of ``encoder``; return how many. If interrupted, the next call resumes."""
        from clew.store.vectors import encode_missing

        self.catch_up()
        with hold_lock(self._index_lock):
            count = encode_missing(self.database, self.derived, encoder, progress or _ignore_progress)
        self._snapshot = None
        return count

    def fetch_file(self, path: str) -> Path:
        """Return where a file of the base is on this machine, such as an uploaded one; it may be missing."""
        return self.path / path

    def refresh(self) -> bool:
        """Take up the present state of a base in object storage; return whether it is another one."""
        return False

    def copy_id(self) -> str:
        """Return which state of a base in object storage is read; empty where the base lies on this machine."""
        return ""

    def snapshot(self) -> StoreSnapshot:
        """Return a view of the base as it is now.

        New documents are indexed first, unless another process is indexing or ``index_on_snapshot`` is False:
        ``pending`` of the view then says how many documents it lacks.
        """
        state, current = self._state(), self._snapshot
        if (
            current is not None
            and current[0] == state
            and not (current[1].pending and self.index_on_snapshot)
        ):
            return current[1]
        if self.index_on_snapshot:
            self._index_new_documents()
        # After a commit several threads may ask at once: one makes the view, and all share what it memoizes.
        with self._snapshot_lock:
            # Read the state first: a change while the view is made leads to another view, never to none.
            state, current = self._state(), self._snapshot
            if current is None or current[0] != state:
                current = (state, self._make_snapshot(None if current is None else current[1]))
                self._snapshot = current
            return current[1]

    def _index_new_documents(self) -> None:
        """Index new documents, unless another process is indexing them."""
        with self.database.read_transaction() as connection:
            entries = documents.read_entries(connection)
        if self._index.unindexed_documents(entries, self._index.load()):
            with suppress(Locked), hold_lock(self._index_lock, timeout=0):
                self._index.catch_up(self.database, _ignore_progress)

    def _make_snapshot(self, previous: StoreSnapshot | None) -> StoreSnapshot:
        from clew.store.snapshot import StoreSnapshot

        segments = self._index.load()
        with self.database.read_transaction() as connection:
            entries = documents.read_entries(connection)
            generation = documents.read_counter(connection, "generation")
        snapshot = StoreSnapshot(self.database, self.derived, generation, entries, segments, self.graphs)
        if previous is not None:
            snapshot.reuse_views(previous)
        return snapshot

    @property
    def _index(self) -> SegmentIndex:
        from clew.store.segments import SegmentIndex

        return SegmentIndex(self.derived / "segments")

    @property
    def _index_lock(self) -> Path:
        return self.path / "index.lock"

    def _state(self) -> object:
        """Return a value that changes with every change of the truth or of derived data."""
        with self.database.read_transaction() as connection:
            generation = documents.read_counter(connection, "generation")
        return generation, manifest_times(self.derived)

    # Copying

    def write_copy(self, folder: Path, shard_rows: int | None = None) -> str:
        """Write a copy of the base, as it is now, into an empty folder, and return its digest.

        Its shards (:mod:`clew.store.segments`) have ``shard_rows`` rows each (None: as here; 0: there are none). It
        has nothing of removed documents: no text, no vector, no term count. Other processes may add and remove
        documents meanwhile, but index none. The same content gives the same bytes, so that a copy which was
        interrupted can be continued.
        """
        from clew.store.graphs.graph_store import GraphStore
        from clew.store.vectors import VectorFiles, live_mask

        self.catch_up()
        self.finish_removals()
        with hold_lock(self._index_lock):
            self.database.write_copy(folder)
            with Store.open(folder) as copy:
                with copy.database.read_transaction() as connection:
                    entries = documents.read_entries(connection)
                self._index.copy_live(copy._index, entries, shard_rows)
                for path in _vector_folders(self.derived):
                    VectorFiles(path).copy_live(
                        VectorFiles(copy.derived / "vectors" / path.name), live_mask(entries)
                    )
                GraphStore(copy.database, self.derived, self._index_lock).copy_files(copy.derived)
                digest = copy.digest()
        for name in ("write.lock", "index.lock", f"{DATABASE_FILE}-wal", f"{DATABASE_FILE}-shm"):
            (folder / name).unlink(missing_ok=True)
        return digest

    # Checking

    def doctor(self, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Check everything; rebuild derived data that is missing or damaged. The truth cannot be rebuilt."""
        findings = [Finding(DATABASE_FILE, problem, False) for problem in self.database.check_integrity()]
        readable, mended = self.mend_rights(repair=repair)
        if readable:
            problem = f"{readable} files and folders have other rights than 600 and 700"
            findings.append(Finding("rights", problem, mended == readable))
        with self.database.read_transaction() as connection:
            entries = documents.read_entries(connection)
            unscrubbed = documents.read_counter(connection, "scrub")
            leftovers = documents.read_counter(connection, "leftovers")
        if unscrubbed:
            scrubbed = repair and self.database.scrub()
            findings.append(Finding("write-ahead log", "contains removed text", scrubbed))
        if leftovers and repair:
            self.finish_removals()
        listed = self._index.read_manifest()
        faults = self._index.find_faults() if checksums else []
        if faults or (listed and not self._index.load()):
            if repair:
                with hold_lock(self._index_lock):
                    self._index.delete()
            findings += [Finding(fault, "missing or damaged", repair) for fault in faults or ["segments"]]
        unindexed = len(self._index.unindexed_documents(entries, self._index.load()))
        if unindexed:
            if repair:
                self.catch_up()
            findings.append(Finding("segments", f"{unindexed} documents are not indexed", repair))
        findings += self._check_vectors(repair, checksums)
        findings += [Finding(*finding) for finding in self.graphs.check(repair, checksums)]
        self._snapshot = None
        return findings

    def _check_vectors(self, repair: bool, checksums: bool) -> list[Finding]:
        from clew.store.vectors import VectorFiles

        findings = []
        for path in sorted(_vector_folders(self.derived)):
            vector_files = VectorFiles(path)
            if not vector_files.read_manifest():
                if repair:
                    shutil.rmtree(path)
                findings.append(Finding(path.name, "vectors are damaged; encode again", repair))
            elif faulty := vector_files.find_faulty_binary_index(checksums):
                if repair:
                    with hold_lock(self._index_lock):
                        faulty.rebuild(vector_files.vectors())
                findings.append(Finding(f"{path.name}/{faulty.path.name}", "missing or damaged", repair))
        return findings


def _ignore_progress(done: int, total: int) -> None:
    pass


# Sizes of derived data, read from its manifests without numpy and while other processes write


def indexed_documents(derived: Path) -> set[tuple[int, int]]:
    """Return the documents (first row, stamp) that the manifest of the segments lists."""
    try:
        manifest = json.loads((derived / "segments" / "segments.json").read_text(encoding="utf-8"))
        return {(first, stamp) for first, stamp in manifest["documents"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        refuse_exhaustion(error)
        return set()


def vector_counts(derived: Path) -> dict[str, int]:
    """Return the number of vectors of each encoder."""
    counts = {}
    for path in sorted(folder / "vectors.json" for folder in _vector_folders(derived)):
        with suppress(OSError, ValueError, KeyError):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            counts[str(manifest["name"])] = int(manifest["count"])
    return counts


def _vector_folders(derived: Path) -> list[Path]:
    """Return the folders of vectors, without those that are being rewritten."""
    return [path for path in derived.glob("vectors/*") if path.suffix not in UNFINISHED_VECTORS]


def manifest_times(derived: Path) -> tuple[tuple[str, int], ...]:
    """Return the manifests of derived data with the time of their last change, in nanoseconds."""
    times = []
    vectors = (folder / "vectors.json" for folder in _vector_folders(derived))
    for path in sorted([derived / "segments" / "segments.json", *vectors]):
        with suppress(FileNotFoundError):
            times.append((str(path), path.stat().st_mtime_ns))
    return tuple(times)


def folder_size(folder: Path) -> int:
    """Return the bytes of the files in a folder. Files that another process deletes meanwhile do not count."""
    total = 0
    # os.walk skips a folder that is gone by the time it is read; Path.rglob raises.
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(f"{place}{os.sep}{name}").st_size
    return total
