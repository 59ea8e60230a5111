"""What a copy in object storage withstands and how it grows: killed writers, and bases of several sizes.

docs/benchmarks/storage.md quotes it. `kills`: processes that copy a small base to moto's S3 server are killed at
random instants, some while another base is copied to the same address; what is there afterwards has to be one whole
state, and copying again has to complete it. `scale`: bases of synthetic passages (random sentences of the paragraphs
of `object_storage.py`, vectors drawn by chance) are copied in 1 and 8 shards to a folder that stands for object
storage; two-hop questions are asked of it with an empty cache, and a further one after each: requests, bytes, entries
of postings, rows whose terms are read, and CPU-seconds; at last the slopes. Seed 25.

    python benchmarks/storage_limits.py kills --folder /tmp/object-storage
    python benchmarks/storage_limits.py scale --folder /tmp/object-storage --sizes 10000 100000
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import numpy as np

import clew
from clew.core.errors import Locked
from clew.core.types import PASSAGE, Location, ParsedDocument, Question, Scope
from clew.knowledge_base.base_copy import copy_base
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.parse.documents.builder import DocumentBuilder
from clew.retrieve.lexical import BM25
from clew.store.object_store import FolderObjects
from clew.store.remote.manifest import MANIFEST
from clew.store.remote.store import RemoteStore
from clew.store.segments import SegmentedPostings
from clew.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from object_server import ObjectServer, Request, serve_objects
from object_storage import PER_DOCUMENT, SEED, RandomVectors, client, format_quantiles, open_base

# Killed writers

#: A process that copies a base; it says when it begins.
COPYING = """
import sys
from clew.knowledge_base.base_copy import copy_base
print("begins", flush=True)
copy_base(sys.argv[1], sys.argv[2])
"""
#: Documents of the bases that are copied while processes are killed, and the latency of each request then.
KILLED_DOCUMENTS, KILLED_LATENCY = 12, 0.01
#: What a killed writer had done last, by what its requests show.
STAGES = ("nothing was written", "its note was there", "pieces were being written", "it had committed")


@dataclass
class Copier:
    """A base in a folder that changes from turn to turn, with its documents that are not in it, by path."""

    folder: Path
    removed: dict[str, ParsedDocument]
    rng: np.random.Generator

    def change(self) -> str:
        """Remove some random documents, add others again, and return the digest."""
        with Store.open(self.folder) as store:
            paths = sorted(store.locations())
            again = self.rng.choice(sorted(self.removed), 2, replace=False).tolist()
            for path in self.rng.choice(paths, 2, replace=False).tolist():
                self.removed[path] = store.parsed_document(store.document(path).key)
                store.remove([path])
            for path in again:
                parsed = self.removed.pop(path)
                store.put_document(parsed, Location(path, "/", len(parsed.text), 0, 0))
            store.encode(RandomVectors())
            return store.digest()

    def start(self, address: str) -> subprocess.Popen[str]:
        """Begin to copy the base in a process of its own; return once it has."""
        child = subprocess.Popen(
            [sys.executable, "-c", COPYING, str(self.folder), address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None and child.stdout.readline() == "begins\n"
        return child


def open_copier(folder: Path, name: str, seed: int) -> Copier:
    """Return a small base of documents of the benchmark, and some that are not in it."""
    with open_base(folder)[0] as store:
        parsed = {
            path: store.parsed_document(store.document(path).key)
            for path in sorted(store.locations())[:: -1 if name == "other" else 1][: 2 * KILLED_DOCUMENTS]
        }
    shutil.rmtree(folder / name, ignore_errors=True)
    with Store.open(folder / name, create=True) as store:
        for path in list(parsed)[:KILLED_DOCUMENTS]:
            document = parsed.pop(path)
            store.put_document(document, Location(path, "/", len(document.text), 0, 0))
    return Copier(folder / name, parsed, np.random.default_rng([SEED, seed]))


def measure_kills(folder: Path, count: int) -> None:
    """Kill copying processes at random instants, and print at which stage, and what was wrong afterwards.

    In every third turn another base is copied to the same address at the same time. After each kill the address has
    to give a whole state, that of before or the new one; copied once more, by the base of the killed process and
    without any option, it has to be the new one, with no object that its manifest does not name.
    """
    rng = np.random.default_rng(SEED)
    stages: Counter[str] = Counter()
    second: Counter[str] = Counter()
    problems = 0
    with serve_objects() as server:
        os.environ.update({name.upper(): value for name, value in server.options().items()})
        address = f"s3://{server.bucket}/kills"
        one, other = open_copier(folder, "one", 1), open_copier(folder, "other", 2)
        server.delay = lambda method, path: KILLED_LATENCY
        one.change()
        one.start(address).communicate()
        one.change()
        child, requests = one.start(address), len(server.requests)
        started = time.perf_counter()
        child.communicate()
        longest, usual = time.perf_counter() - started, len(server.requests) - requests
        print(f"a copy takes {longest:.1f} s and {usual} requests; {count} kills, seed {SEED}", flush=True)
        with RemoteStore.open_url(address) as reader:
            stored = {reader.digest()}
        for turn in range(count):
            before = len(server.requests)
            allowed = stored | {one.change()}
            rival = None
            if turn % 3 == 2:
                allowed.add(other.change())
            if turn % 6 == 2:  # sometimes the other one is first, sometimes that which is killed
                rival = other.start(address)
            child = one.start(address)
            if turn % 6 == 5:
                rival = other.start(address)
            # Half of the instants are drawn over time, half over requests: most of the time nothing is sent.
            until = time.perf_counter() + rng.uniform(0, longest)
            limit = before + int(rng.integers(1, usual)) if turn % 2 else None
            while child.poll() is None:
                if time.perf_counter() > until if limit is None else len(server.requests) >= limit:
                    break
                time.sleep(0.002)
            killed = child.poll() is None
            child.kill()
            child.communicate()
            if rival is not None:
                _, told = rival.communicate()
                outcome = "completed" if rival.returncode == 0 else "was refused"
                second[f"{'one was killed' if killed else 'one ended'}, the other {outcome}"] += 1
                if rival.returncode and "Locked" not in told:
                    problems += 1
                    print(f"turn {turn}: the second writer: {told[-300:]}", flush=True)
            else:
                stages[_stage_of(server.requests[before:]) if killed else "it had ended"] += 1
            problems += _find_problems(turn, address, server, allowed, None)
            with Store.open(one.folder) as store:
                expected = store.digest()
            try:
                copy_base(str(one.folder), address)
            except Locked as error:
                problems += 1
                print(f"turn {turn}: {error}", flush=True)
            problems += _find_problems(turn, address, server, {expected}, expected)
            stored = {expected}
    for stage in (*STAGES, "it had ended"):
        print(f"killed when {stage}: {stages[stage]}")
    for outcome, number in sorted(second.items()):
        print(f"two at once: {outcome}: {number}")
    print(f"problems: {problems}")


def _stage_of(requests: Sequence[Request]) -> str:
    """Return what a killed writer had done, from its requests."""
    written = [request.path for request in requests if request.method == "PUT" and request.status == 200]
    committed = any(path.endswith("manifest.json") for path in written)
    pieces = any("/pieces/" in path for path in written)
    return STAGES[3 if committed else 2 if pieces else 1 if written else 0]


def _find_problems(
    turn: int, address: str, server: ObjectServer, allowed: set[str], complete: str | None
) -> int:
    """Print what is wrong with what is at an address, and return how much that is. Where it is ``complete``, nothing
    else may be there."""
    problems = []
    with RemoteStore.open_url(address) as reader:
        digest = reader.digest()
        snapshot = reader.snapshot()
        texts = [node.text for node in snapshot.nodes(np.flatnonzero(snapshot.mask(Scope(), (PASSAGE,))))]
        found = BM25(snapshot).retrieve(Question(texts[turn % len(texts)]), 1)
        pieces = {f"pieces/{piece}" for piece in reader._view.manifest.pieces()}
    if digest not in allowed:
        problems.append(f"the digest is {digest}")
    if not found or found[0].node.text != texts[turn % len(texts)]:
        problems.append("a passage is not found by its own words")
    obstore, store = client(server)
    prefix = f"{urlsplit(address).path.strip('/')}/"
    names = {o["path"].removeprefix(prefix) for batch in obstore.list(store, prefix) for o in batch}
    if missing := pieces - names:
        problems.append(f"{len(missing)} pieces are missing")
    if complete is not None and (extra := names - pieces - {"manifest.json"}):
        problems.append(f"left over: {sorted(extra)[:3]}")
    for problem in problems:
        print(f"turn {turn}: {problem}", flush=True)
    return len(problems)


# Size


class CountedObjects(FolderObjects):
    """A folder in place of object storage, which counts requests that read, and their bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gets = self.received = 0

    def read(self, name: str) -> tuple[bytes, Any] | None:
        """Return an object and its version."""
        stored = super().read(name)
        self.gets += 1
        self.received += 0 if stored is None else len(stored[0])
        return stored

    def version(self, name: str) -> Any:
        """Return the version of an object; its bytes are not fetched."""
        self.gets += 1
        stored = super().read(name)
        return None if stored is None else stored[1]


def open_scaled_base(folder: Path, size: int) -> tuple[KnowledgeBase, list[str]]:
    """Return a base of ``size`` passages, each of five random sentences of the paragraphs under a random title of
    theirs, twenty to a document; print what adding them takes. An interrupted base is continued."""
    original, questions = open_base(folder)
    target = folder / f"scale{size}"
    if not (target / "complete").exists():
        with original:
            snapshot = original.snapshot()
            rows = np.flatnonzero(snapshot.mask(Scope(), (PASSAGE,)))
            texts = [node.text for node in snapshot.nodes(rows)]
        titles = [text.partition(". ")[0] for text in texts]
        sentences = [part for text in texts for part in text.split(". ")[1:] if len(part) > 20]
        rng = np.random.default_rng([SEED, size])
        with Store.open(target, create=True) as store:
            there = store.locations()
            started, stored_before = time.process_time(), len(there)
            for first in range(0, size, PER_DOCUMENT):
                builder = DocumentBuilder()
                for _ in range(PER_DOCUMENT):
                    chosen = [sentences[n] for n in rng.integers(len(sentences), size=5).tolist()]
                    builder.add_paragraph(f"{titles[rng.integers(len(titles))]}. {'. '.join(chosen)}.")
                if f"/{first}" in there:
                    continue
                document = builder.finish(
                    data=str(first).encode(),
                    title=f"from {first}",
                    media_type="text/plain",
                    parser="benchmark/1",
                )
                store.put_document(document, Location(f"/{first}", "/", 1, 0, 0))
            stored = time.process_time()
            store.catch_up()
            indexed = time.process_time()
        documents = size / PER_DOCUMENT
        print(
            f"{size:,} passages: CPU-seconds a document: "
            f"{(stored - started) / max(1, documents - stored_before):.4f} to store, "
            f"{(indexed - stored) / documents:.4f} to index; {peak_memory()}",
            flush=True,
        )
        (target / "complete").touch()
    else:
        original.close()
    base = clew.open(target)
    if base.encoding.name != "clew:hops":
        base.encoding.set("clew:hops")
    encoder = base.encoding.require()
    base.store.encode(RandomVectors(encoder.name, encoder.dimension))
    return base, questions


def peak_memory() -> str:
    """Return the most memory that this process has had, for people."""
    return f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB of memory until now"


@dataclass
class Work:
    """What questions read: entries of postings, and rows whose terms were read."""

    entries: int = 0
    rows: int = 0

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count what the postings of any base give, from now on to the end of the block."""
        rows_with, term_matrix = SegmentedPostings.rows_with, SegmentedPostings.term_matrix

        def count_entries(postings: SegmentedPostings, term: int) -> Any:
            rows, counts = rows_with(postings, term)
            self.entries += len(rows)
            return rows, counts

        def count_rows(postings: SegmentedPostings, rows: Any) -> Any:
            self.rows += len(rows)
            return term_matrix(postings, rows)

        with (
            patch.object(SegmentedPostings, "rows_with", count_entries),
            patch.object(SegmentedPostings, "term_matrix", count_rows),
        ):
            yield


#: What is measured of a question.
COLUMNS = ("GETs", "MB", "entries of postings", "rows", "CPU-seconds")


def measure_scale(folder: Path, sizes: Sequence[int], shards: Sequence[int], count: int) -> None:
    """Print what copies of bases of several sizes take, and what questions to them read, with nothing fetched ahead;
    then the slopes: the exponent by which each grows from the smallest to the largest base."""
    os.environ["CLEW_CACHE"] = str(folder / "scale-cache")
    medians: dict[int, dict[str, float]] = {size: {} for size in sizes}
    for size in sizes:
        base, questions = open_scaled_base(folder, size)
        two_hop = questions[: len(questions) // 2]
        order = np.random.default_rng(SEED).permutation(len(two_hop))[: count + 1]
        texts = [two_hop[number] for number in order.tolist()]
        with base:
            for text in ("the models are loaded", texts[0]):
                started = time.process_time()
                base.ask(text)
                seconds = time.process_time() - started
                print(
                    f"{size:,} passages, in the folder: {seconds:.2f} CPU-seconds; {peak_memory()}",
                    flush=True,
                )
        for number in shards:
            place = folder / f"scale{size}-{number}"
            if not (place / MANIFEST).exists():
                shutil.rmtree(place, ignore_errors=True)
                started = time.process_time()
                report = copy_base(str(base.path), f"file://{place}", shards=number)
                seconds = time.process_time() - started
                pieces = len(list((place / "pieces").iterdir()))
                print(
                    f"{size:,} passages, {number} shards: {report.bytes / 1e6:.1f} MB in {pieces} pieces, "
                    f"copied in {seconds:.1f} CPU-seconds",
                    flush=True,
                )
            print(f"{size:,} passages, {number} shards; {peak_memory()}", flush=True)
            for state, values in ask_questions(place, folder, texts).items():
                columns = dict(zip(COLUMNS, zip(*values, strict=True), strict=True))
                parts = [f"{name} {format_quantiles(column)}" for name, column in columns.items()]
                print(f"  {state}: {'; '.join(parts)}", flush=True)
                for name, column in columns.items():
                    medians[size][f"{name}, {state}, {number} shards"] = float(np.median(column))
    small, large = min(sizes), max(sizes)
    for name, value in medians[large].items():
        if small < large and medians[small][name]:
            slope = np.log(value / medians[small][name]) / np.log(large / small)
            print(f"slope of {name}: {slope:.2f}")


def ask_questions(place: Path, folder: Path, texts: Sequence[str]) -> dict[str, list[tuple[float, ...]]]:
    """Return for each question what it takes with an empty cache, and what the next takes after it."""
    objects, work = CountedObjects(place), Work()
    values: dict[str, list[tuple[float, ...]]] = {"first question": [], "a further one": []}
    for first, second in pairwise(texts):
        shutil.rmtree(folder / "scale-cache", ignore_errors=True)
        store = RemoteStore(objects, folder / "scale-data", prefetch=False)
        with closing(KnowledgeBase(store)) as there, work.count():
            objects.gets, objects.received = 1, 0  # the manifest was read
            for state, question in zip(values, (first, second), strict=True):
                work.entries = work.rows = 0
                began = time.process_time()
                there.ask(question)
                took = time.process_time() - began
                line = objects.gets, objects.received / 1e6, work.entries, work.rows, took
                values[state].append(line)
                print(f"  {state}: {line}", file=sys.stderr, flush=True)
                objects.gets = objects.received = 0
    return values


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["kills", "scale"])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/object-storage"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000], help="passages")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--questions", type=int, default=10)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.part == "kills":
        measure_kills(arguments.folder, arguments.kills)
    else:
        measure_scale(arguments.folder, arguments.sizes, arguments.shards, arguments.questions)


if __name__ == "__main__":
    main()
