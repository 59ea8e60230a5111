"""What a copy of a base in object storage takes, before it is made: bytes, requests, CPU time and money.

The copy is written to a temporary folder in the form that it has in storage, and questions are asked of it there,
with an empty cache: requests and bytes are counted. For another number of passages they are extrapolated
(:meth:`_Measurement.extrapolate`). Nothing is asked of the network.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from clew.core.config import cache_path
from clew.core.errors import UsageError
from clew.core.types import RETRIEVED_KINDS, Location, Scope
from clew.knowledge_base.base_copy import choose_shard_rows, commit_base
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.models import leaves_machine
from clew.retrieve.lexical import QueryTerms
from clew.store.documents import read_counter
from clew.store.object_store import FolderObjects, Version, local_name
from clew.store.remote.layout import OPENINGS, RECORDS, TEXTS, ranged_postings
from clew.store.remote.manifest import (
    PIECES,
    POSTINGS_PIECE,
    Manifest,
    is_postings,
    read_manifest,
    usual_piece_size,
)
from clew.store.remote.store import RemoteStore, choose_prefetched
from clew.store.store import Store

#: Questions that are asked of the copy, beside the user's: titles of documents.
QUESTIONS = 4
#: Passages of the documents that are added again to measure what adding takes.
SAMPLE = 300
#: Bytes of one entry of the postings of a term: a row and a count.
_ENTRY = 8


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for: a GB (10^9 bytes) stored for a month, a thousand PUTs, a thousand GETs, a GB that leaves the
    storage, and an hour of one CPU.

    The defaults are Amazon's list prices of June 2026 in us-east-1: S3 Standard, transfer to the internet (within the
    region it is free), and half of an m7g.large.
    """

    storage: float = 0.023
    put: float = 0.005
    get: float = 0.0004
    out: float = 0.09
    cpu: float = 0.0408

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Prices:
        """Return the prices with those changed that ``texts`` give, as in ``get=0.0005``. Raises UsageError."""
        names = [field.name for field in fields(cls)]
        changed = {}
        for text in texts:
            name, _, value = text.partition("=")
            try:
                changed[name] = float(value)
            except ValueError:
                changed[name] = math.nan
            if name not in names or not 0 <= changed[name] < math.inf:
                raise UsageError(f"'{text}' is no price", f"NAME=DOLLARS, where NAME is {', '.join(names)}")
        return replace(cls(), **changed)


@dataclass(frozen=True, slots=True)
class QuestionCost:
    """What a question takes: GETs, their bytes, and CPU-seconds."""

    gets: int
    bytes: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class CopyEstimate:
    """What the copy of a base takes that has ``passages`` passages and rows of tables; ``measured`` are there.

    ``copy_cpu_seconds`` are those of writing the copy, ``add_cpu_seconds`` those of indexing and encoding all
    passages (None: the encoder is on another machine); reading the files is not included. ``first`` is the first
    question on a machine, ``later`` another one there. ``dollars`` has the sum for a month in storage, for copying,
    adding, and for a thousand questions of either kind.
    """

    passages: int
    measured: int
    shards: int
    bytes: int
    vector_bytes: int
    objects: int
    puts: int
    copy_cpu_seconds: float
    add_cpu_seconds: float | None
    first: QuestionCost
    later: QuestionCost
    prices: Prices
    dollars: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate, JSON-compatible."""
        return asdict(self)


def estimate_copy(
    base: KnowledgeBase,
    question: str | None = None,
    *,
    passages: int | None = None,
    added: int = 0,
    shards: int | None = None,
    prices: Prices | None = None,
) -> CopyEstimate:
    """Return what a copy of ``base`` in object storage takes; for ``passages`` (default: those that it has) and
    ``added`` more.

    Needs room for two copies in the folder of the base. Raises UsageError for a base that is empty or a copy itself.
    """
    if isinstance(base.store, RemoteStore):
        raise UsageError("a copy in storage cannot be estimated again", "Name the base that it is a copy of")
    snapshot = base.store.snapshot()
    measured = int(np.count_nonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)))
    if not measured:
        raise UsageError("the knowledge base is empty", "Add a sample of your documents first: clew add PATH")
    wanted = (passages or measured) + added
    documents = snapshot.documents()
    titles = [documents[n].title for n in np.linspace(0, len(documents) - 1, QUESTIONS).astype(int)]
    questions = [question or titles[0], *titles[1:]]
    base.ask(questions[0])  # the models are loaded
    with base.store.temporary_folder() as folder:
        objects = _CountedObjects(folder / "storage")
        started = process_time()
        commit_base(base.store, objects, None, lambda done, total: None, shards, wanted / measured)
        copy_seconds = process_time() - started
        manifest = read_manifest(objects)
        assert manifest is not None
        asked = _ask_copy(objects, manifest, questions, folder / "reader")
        add_seconds = _measure_adding(base, folder / "added")
    terms = QueryTerms.for_documents(questions[0], snapshot).hashes
    entries = int(snapshot.postings("text").document_frequency(terms).sum())
    with base.store.database.read_transaction() as connection:
        rows = read_counter(connection, "next_row")
    measurement = _Measurement(manifest, rows, shards, asked, len(terms), entries, copy_seconds, add_seconds)
    return measurement.extrapolate(measured, wanted, prices or Prices())


class _CountedObjects(FolderObjects):
    """A folder in place of object storage, which notes the names of the objects that are read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.names: list[str] = []

    def read(self, name: str) -> tuple[bytes, Version] | None:
        """Return an object and its version; None where there is none."""
        self.names.append(name)
        return super().read(name)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question to the copy: the pieces that were read for it, by the path of their file, and its CPU-seconds."""

    pieces: dict[str, set[str]]
    cpu_seconds: float


def _ask_copy(
    objects: _CountedObjects, manifest: Manifest, questions: Sequence[str], folder: Path
) -> list[_Asked]:
    """Ask the copy each question, in this order; only the first finds an empty cache. Nothing is fetched ahead, so
    that the pieces are those that were needed."""
    path_of = {piece: path for path, file in manifest.all_files().items() for piece in file.pieces}
    asked = []
    try:
        with closing(KnowledgeBase(RemoteStore(objects, folder, prefetch=False))) as copy:
            for question in questions:
                started = process_time()
                copy.ask(question)
                seconds = process_time() - started
                pieces: dict[str, set[str]] = {}
                for name in objects.names:
                    if name.startswith(f"{PIECES}/"):
                        digest = name.removeprefix(f"{PIECES}/")
                        pieces.setdefault(path_of[digest], set()).add(digest)
                asked.append(_Asked(pieces, seconds))
                objects.names.clear()
    finally:
        shutil.rmtree(cache_path() / "storage" / local_name(objects.url), ignore_errors=True)
    return asked


def _measure_adding(base: KnowledgeBase, folder: Path) -> float | None:
    """Return the CPU-seconds that indexing and encoding a passage take, measured on some documents; None where the
    encoder is on another machine."""
    name = base.encoding.name
    if name is not None and leaves_machine(name):
        return None
    documents = base.store.documents()
    order = np.random.default_rng(0).permutation(len(documents))
    seconds, passages = 0.0, 0
    with Store.open(folder, create=True) as added:
        for number in order.tolist():
            parsed = base.store.parsed_document(documents[number].key)
            passages += sum(node.kind in RETRIEVED_KINDS for node in parsed.nodes)
            started = process_time()
            added.put_document(parsed, Location(f"/{number}", "/", 0, 0, 0))
            seconds += process_time() - started
            if passages >= SAMPLE:
                break
        started = process_time()
        added.catch_up()
        if (encoder := base.encoding.encoder()) is not None:
            added.encode(encoder)
        return (seconds + process_time() - started) / max(passages, 1)


@dataclass(frozen=True, slots=True)
class _Measurement:
    """What was measured: the manifest of the copy, its rows and into how many shards it is to be divided, the
    questions, how many terms the first has and how many postings these in all, and CPU-seconds of copying, and of
    adding a passage."""

    manifest: Manifest
    rows: int
    shards: int | None
    asked: list[_Asked]
    terms: int
    entries: int
    copy_seconds: float
    add_seconds: float | None

    def extrapolate(self, measured: int, passages: int, prices: Prices) -> CopyEstimate:
        """Return the estimate for ``passages``.

        All files grow with the passages, and are cut as :func:`~clew.store.remote.manifest.cut_file` does. A question
        reads the same files whole, as many chunks of nodes, of the postings of its terms those that are more, and
        pieces of each term in every shard. CPU time grows with the passages.
        """
        scaled = _Scaled(self, passages / measured)
        further = [scaled.cost(asked) for asked in self.asked[1:]]
        later = QuestionCost(
            round(sum(cost.gets for cost in further) / len(further)),
            round(sum(cost.bytes for cost in further) / len(further)),
            sum(cost.cpu_seconds for cost in further) / len(further),
        )
        first = scaled.cost(self.asked[0], first=True)
        size, puts = (
            sum(scaled.sizes.values()),
            scaled.objects + 2,
        )  # the note of who writes, and the manifest
        copy_seconds = self.copy_seconds * scaled.factor
        add_seconds = None if self.add_seconds is None else self.add_seconds * passages

        def cpu(seconds: float) -> float:
            return seconds / 3600 * prices.cpu

        def ask(cost: QuestionCost) -> float:
            return cost.gets / 1000 * prices.get + cost.bytes / 1e9 * prices.out + cpu(cost.cpu_seconds)

        dollars = {
            "storage a month": size / 1e9 * prices.storage,
            "copying": puts / 1000 * prices.put + cpu(copy_seconds),
            "a thousand first questions": 1000 * ask(first),
            "a thousand later questions": 1000 * ask(later),
        }
        if add_seconds is not None:
            dollars["indexing and encoding"] = cpu(add_seconds)
        vectors = sum(size for path, size in scaled.sizes.items() if path.startswith("derived/vectors/"))
        return CopyEstimate(
            passages,
            measured,
            scaled.shards,
            size,
            vectors,
            scaled.objects,
            puts,
            copy_seconds,
            add_seconds,
            first,
            later,
            prices,
            dollars,
        )


class _Scaled:
    """A measured copy with ``factor`` times as many passages."""

    def __init__(self, measured: _Measurement, factor: float) -> None:
        self.measured, self.factor = measured, factor
        self.files = measured.manifest.all_files()
        self.sizes = {path: round(file.size * factor) for path, file in self.files.items()}
        self.ahead, self.ranged = set(choose_prefetched(self.sizes)), ranged_postings(self.sizes)
        if factor == 1:
            self.objects = len(measured.manifest.pieces())  # two files may have the same piece
        else:
            self.objects = sum(map(self.count_objects, self.sizes))
        self.shards = self._count_shards(factor)

    def _count_shards(self, factor: float) -> int:
        rows = max(1, round(self.measured.rows * factor))
        return math.ceil(rows / choose_shard_rows(rows, self.measured.shards, 0))

    def count_objects(self, path: str) -> int:
        """Return how many pieces a file has."""
        if self.factor == 1:
            return len(set(self.files[path].pieces))
        return math.ceil(self.sizes[path] / usual_piece_size(self.sizes[path], path))

    def cost(self, asked: _Asked, *, first: bool = False) -> QuestionCost:
        """Return what a question takes; with an empty cache the ``first``."""
        gets, size = 1, 0  # the manifest, or the question whether it is still the same
        if first:
            size += len(self.files) * 200 + self.objects * 42
            gets += sum(map(self.count_objects, self.ahead))
            size += sum(self.sizes[path] for path in self.ahead)
        by_term = 0
        for path, pieces in asked.pieces.items():
            lengths = {
                piece: self.files[path].piece_length(n) for n, piece in enumerate(self.files[path].pieces)
            }
            if path in self.ahead:
                continue
            if is_postings(path) and ".holder" in path:
                by_term += len(pieces)
            elif is_postings(path) or path in {RECORDS, TEXTS, OPENINGS}:
                gets += len(pieces)
                size += sum(lengths[piece] for piece in pieces)
            else:
                gets += self.count_objects(path)
                size += self.sizes[path]
        if not self.ranged <= self.ahead:
            # Of each term at least a piece of either array of each shard; and what is more than these.
            by_term = round(by_term * self.shards / self._count_shards(1.0))
            by_term = max(by_term, 2 * self.measured.terms * self.shards) if self.factor > 1 else by_term
            by_term += round(self.measured.entries * max(self.factor - 1, 0) * _ENTRY / POSTINGS_PIECE)
            gets += by_term
            size += by_term * POSTINGS_PIECE
        return QuestionCost(gets, size, asked.cpu_seconds * self.factor)
