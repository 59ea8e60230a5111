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

from clew.config import named_path
from clew.errors import Locked, NotFound, StoreError, UsageError
from clew.kb import canonical, info, reading, writing
from clew.kb.database import FILE, Database, held
from clew.kb.graphs import truth as graphs_truth
from clew.kb.info import Info
from clew.types import Document, Edge, Location, Node, ParsedDocument

if TYPE_CHECKING:
    from clew.kb.snapshot import BaseSnapshot
    from clew.protocols import Encoder

UNITS = ("paragraph", "sentence")
PASSAGES = "passages"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that ``doctor`` found wrong, and whether it put it right."""

    what: str
    problem: str
    repaired: bool


class KnowledgeBase:
    """An open base. Several processes may have one folder open; one writes at a time, and readers never wait."""

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self.database = database
        self.derived = path / "derived"
        #: Whether a snapshot first indexes what is not yet. A server leaves that to the process that adds.
        self.catches_up = True
        self._snapshot: tuple[object, BaseSnapshot] | None = None
        self._making = threading.Lock()

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False, passages: str = "paragraph") -> KnowledgeBase:
        """Open the base in ``path``; ``create`` makes one, whose passages are paragraphs or sentences.

        Raises NotFound where there is none, StoreError or Damaged where it cannot be used, and UsageError
        where ``create`` asks for other passages than the base has.
        """
        path = Path(path)
        if passages not in UNITS:
            raise UsageError(f"passages cannot be '{passages}'", f"Known: {', '.join(UNITS)}")
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
            Database.create(path, {PASSAGES: passages})
        base = cls(path, Database(path))
        if create and base.passages != passages and passages != "paragraph":
            base.close()
            raise UsageError(
                f"the knowledge base at {path} has {base.passages}s as passages, not {passages}s",
                "Make another: --kb OTHER",
            )
        return base

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Return whether there is a knowledge base in ``path``."""
        return (Path(path) / FILE).exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._snapshot = None
        self.database.close()

    @property
    def passages(self) -> str:
        """What a passage is here: ``paragraph`` or ``sentence``."""
        return self.setting(PASSAGES) or "paragraph"

    def setting(self, name: str, default: str | None = None) -> str | None:
        """Return a setting of the base."""
        with self.database.reading() as connection:
            row = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
        return row[0] if row else default

    def set_setting(self, name: str, value: str) -> None:
        """Keep a setting; an empty value forgets it."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM setting WHERE name = ?", (name,))
            if value:
                connection.execute("INSERT INTO setting VALUES (?, ?)", (name, value))

    # Reading the truth

    def documents(self) -> list[Document]:
        """Return every document, sorted by key."""
        with self.database.reading() as connection:
            found = reading.entries(connection)
        return sorted((one.document for one in found), key=lambda document: document.key)

    def document(self, name: str) -> Document:
        """Return the document with this key, path or file name. Raises NotFound, UsageError if ambiguous."""
        documents = self.documents()
        absolute = str(named_path(name))
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

    def located(self) -> dict[str, tuple[Location, str]]:
        """Return every path, with its location and its document's key."""
        with self.database.reading() as connection:
            return reading.locations(connection)

    def has(self, key: str) -> bool:
        """Return whether there is a document with this key."""
        with self.database.reading() as connection:
            return writing.has(connection, key)

    def node(self, id: str) -> Node:
        """Return a node. Raises NotFound."""
        with self.database.reading() as connection:
            row = writing.row_of(connection, id)
            owner = reading.entry(connection, id.rpartition(":")[0])
            return reading.NodeReader(connection).nodes([row], [owner])[0]

    def tree(self, key: str) -> list[Node]:
        """Return a document's nodes in reading order, itself first. Raises NotFound."""
        with self.database.reading() as connection:
            owner = reading.entry(connection, key)
            rows = range(owner.first, owner.end)
            return reading.NodeReader(connection).nodes(rows, [owner] * len(rows))

    def text_of(self, key: str) -> str:
        """Return a document's canonical text. Raises NotFound."""
        with self.database.reading() as connection:
            return reading.text(connection, reading.first_row(connection, key))

    def dump(self) -> Iterator[str]:
        """Yield the truth in its canonical form, sorted by key: the same for the same content."""
        with self.database.reading() as connection:
            owners = sorted(reading.entries(connection), key=lambda one: one.document.key)
            for one in owners:
                yield from canonical.document_lines(reading.parsed(connection, one))
            yield from sorted(map(canonical.edge_line, reading.edges(connection)))
            yield from graphs_truth.dump(connection)
            settings = connection.execute("SELECT name, value FROM setting ORDER BY name").fetchall()
            yield from (canonical.setting_line(name, value) for name, value in settings)

    def digest(self) -> str:
        """Return one hash of the truth, made of the documents' own: equal for bases with equal dumps."""
        with self.database.reading() as connection:
            made = sorted(row[0].hex() for row in connection.execute("SELECT digest FROM document"))
            lines = sorted(map(canonical.edge_line, reading.edges(connection)))
            lines += graphs_truth.digests(connection)
            settings = connection.execute("SELECT name, value FROM setting ORDER BY name").fetchall()
        return canonical.digest_of([*made, *lines, *(canonical.setting_line(*one) for one in settings)]).hex()

    def info(self, *, digest: bool = True) -> Info:
        """Return the sizes of the base; without its ``digest``, which reads all edges, if that is not wanted."""
        with self.database.reading() as connection:
            truth = reading.entries(connection)
            kinds = dict(connection.execute("SELECT kind, sum(nodes) FROM tally GROUP BY kind").fetchall())
            relations = dict(
                connection.execute("SELECT relation, count(*) FROM edge GROUP BY relation").fetchall()
            )
            generation = reading.state(connection, "generation")
            kept = reading.makers(connection)
            graphs = graphs_truth.infos(connection)
        indexed = info.indexed(self.derived)
        return Info(
            documents=len(truth),
            pages=sum(one.document.pages for one in truth),
            nodes=kinds,
            bytes=info.size(self.path),
            generation=generation,
            pending=sum((one.first, one.stamp) not in indexed for one in truth),
            encoders=info.encoders(self.derived),
            relations=relations,
            digest=self.digest() if digest else "",
            kept=kept,
            imported=graphs,
        )

    # Writing the truth

    def commit(self, parsed: ParsedDocument, location: Location) -> str:
        """Put a document at a path, in one transaction; what was there before goes with its last path.

        Return ``added``, ``replaced``, ``located`` (the same bytes at another path) or ``unchanged``.
        """
        with self.database.writing() as connection:
            done = writing.commit(connection, parsed, location)
        if done == "replaced":
            self.database.scrub()
        return done

    def locate(self, location: Location, key: str) -> str:
        """Put a known document at a path; return ``located``, ``replaced`` or ``unchanged``."""
        with self.database.writing() as connection:
            done = writing.locate(connection, location, key)
        if done == "replaced":
            self.database.scrub()
        return done

    def remove(self, paths: Sequence[str]) -> list[Document]:
        """Forget paths; return the documents that are gone with their last. Raises NotFound.

        Their text is gone from the database, its log and the vectors when this returns.
        """
        with self.database.writing() as connection:
            gone = writing.remove(connection, paths)
        self.database.scrub()
        if gone and info.encoders(self.derived):
            self._forget_vectors()
        return gone

    def assert_edges(self, edges: Iterable[Edge]) -> None:
        """Add edges. Raises NotFound for a node that is not there; then none is added."""
        with self.database.writing() as connection:
            writing.assert_edges(connection, edges)

    def retract(self, owner: str) -> int:
        """Take away every edge of ``owner``; return how many."""
        with self.database.writing() as connection:
            return connection.execute("DELETE FROM edge WHERE owner = ?", (owner,)).rowcount

    # Graphs

    @property
    def graphs(self) -> Graphs:
        """The imported and mounted graphs."""
        from clew.kb.graphs.shelf import Graphs

        return Graphs(self.database, self.derived, self._index_lock)

    # Derived data

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Index every document that is not yet; return how many. Waits for another process that is at it."""
        with held(self._index_lock):
            return self._index.catch_up(self.database, progress or _silent)

    def encode(self, encoder: Encoder, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the vectors that ``encoder`` has not made yet; return how many. Stopped, it continues."""
        from clew.kb import encoding

        self.catch_up()
        with held(self._index_lock):
            made = encoding.encode(self.database, self.derived, encoder, progress or _silent)
        self._snapshot = None
        return made

    def snapshot(self) -> BaseSnapshot:
        """Return the base as it is now. What is not indexed yet is indexed first, unless another process is
        at it, or ``catches_up`` is False: then ``pending`` says how many documents the view lacks."""
        state, known = self._state(), self._snapshot
        if known is not None and known[0] == state and not (known[1].pending and self.catches_up):
            return known[1]
        if self.catches_up:
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
        with self.database.reading() as connection:
            truth = reading.entries(connection)
        if self._index.behind(truth, self._index.load()):
            with suppress(Locked), held(self._index_lock, patience=0):
                self._index.catch_up(self.database, _silent)

    def _seen(self, before: BaseSnapshot | None) -> BaseSnapshot:
        from clew.kb.snapshot import BaseSnapshot

        segments = self._index.load()
        with self.database.reading() as connection:
            truth = reading.entries(connection)
            generation = reading.state(connection, "generation")
        made = BaseSnapshot(self.database, self.derived, generation, truth, segments, self.graphs)
        if before is not None:
            made.take_over(before)
        return made

    def doctor(self, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Check everything; rebuild derived data that is missing or damaged. The truth cannot be rebuilt."""
        findings = [Finding(FILE, problem, False) for problem in self.database.check()]
        with self.database.reading() as connection:
            truth = reading.entries(connection)
            owed = reading.state(connection, "scrub")
        if owed:
            done = repair and self.database.scrub()
            findings.append(Finding("write-ahead log", "holds removed text", done))
        listed = self._index.manifest()
        faults = self._index.faults() if checksums else []
        if faults or (listed and not self._index.load()):
            if repair:
                with held(self._index_lock):
                    self._index.forget()
            findings += [Finding(fault, "missing or damaged", repair) for fault in faults or ["segments"]]
        behind = len(self._index.behind(truth, self._index.load()))
        if behind:
            if repair:
                self.catch_up()
            findings.append(Finding("segments", f"{behind} documents are not indexed", repair))
        findings += self._check_vectors(repair, checksums)
        findings += [Finding(*one) for one in self.graphs.check(repair, checksums)]
        self._snapshot = None
        return findings

    def _check_vectors(self, repair: bool, checksums: bool) -> list[Finding]:
        from clew.kb.vectors import Store

        findings = []
        for path in sorted(self.derived.glob("vectors/*")):
            store = Store(path)
            if not store.manifest():
                if repair:
                    shutil.rmtree(path)
                findings.append(Finding(path.name, "vectors are damaged; encode again", repair))
            elif (signs := store.signs()) is not None and not (
                signs.right(store.vectors()) if checksums else signs.whole()
            ):
                if repair:
                    with held(self._index_lock):
                        signs.rebuild(store.vectors())
                findings.append(Finding(f"{path.name}/{signs.path.name}", "missing or damaged", repair))
        return findings

    @property
    def _index(self) -> Index:
        from clew.kb.index import Index

        return Index(self.derived / "segments")

    @property
    def _index_lock(self) -> Path:
        return self.path / "index.lock"

    def _state(self) -> object:
        with self.database.reading() as connection:
            generation = reading.state(connection, "generation")
        return generation, info.manifests(self.derived)

    def _forget_vectors(self) -> None:
        from clew.kb import encoding

        with held(self._index_lock):
            encoding.forget(self.database, self.derived)
        self._snapshot = None


def _silent(done: int, total: int) -> None:
    pass


if TYPE_CHECKING:
    from clew.kb.graphs.shelf import Graphs
    from clew.kb.index import Index
