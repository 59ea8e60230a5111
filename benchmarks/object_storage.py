"""The store on object storage: which engine can carry it, and what reading a base there gives and costs.

Decision 38 and docs/benchmarks/storage.md quote it. The S3 server is moto's, on loopback, behind a proxy that counts.

Reading a base where it lies. `equality`: copies of a base with vectors in 1, 2, 4 and 8 shards give the ids and
scores of its folder, to the last bit, for 300 questions (the default search, and by words alone), for 100 walks with
their answers, and for chains of triples in the sample graph, one for each edge and each two that follow one another;
also after a random fifth of the documents was removed and half of them were added again, and after all segments of
the folder were written anew as one.
`resent`: the bytes of a copy that are sent again after 1, 10 and 100 random documents were removed, in pieces of
equal size and in those that the content cuts, for 1, 8, 32 and the usual number of shards. `cost`: of two-hop
questions as `clew ask` answers them, with an empty cache and with the cache that others left: requests, bytes, the
longest chain of requests that wait for one another, and seconds with a latency added to each GET (median 63 ms, 99 %
below 78) and each PUT (100 and 195); lognormal, drawn with the seed. Every answer is compared with that from the
folder. `--paragraphs 500 --samples` makes a small base, with the sample documents and their graph. `--slower 10`
multiplies the latencies: on a busy machine requests that are sent together begin at different times, and where these
are further apart than a latency, they count as rounds.

`rounds`: the longest chain of requests that wait for one another, counted without a clock (`tests/request_chain.py`),
of first questions to a base whose postings and nodes are all read in ranges, as those of a large base are; also where
nothing is fetched before it is waited for.

Choosing the engine: Lance and our own arrays, in shards. `scores`: the postings of a base are written in 1, 2 and 4
shards; a shard answers the terms of a question with rows, counts and lengths, the counts are added, and BM25 has to
be equal, bit by bit, to the base's own, for 200 questions (the first twelve also count requests and bytes; then four
are timed with 63 ms added to each).
`removal`: what remains of a removed row in Lance's files after each step, what a reader of the version before sees,
and what a writer loses that had not committed. `commits`: appends of three writers at once, and under faults.

The base holds the pooled paragraphs of the three multi-hop sets in ../shared/data; it is made in --folder, and used
again.
Needs obstore, moto[s3], flask, flask-cors; the last three parts pylance.

    python benchmarks/object_storage.py equality --folder /tmp/object-storage
    python benchmarks/object_storage.py resent --folder /tmp/object-storage
    python benchmarks/object_storage.py cost --folder /tmp/object-storage --questions 20
    python benchmarks/object_storage.py rounds --folder /tmp/object-storage --questions 20
    python benchmarks/object_storage.py scores --folder /tmp/object-storage
    python benchmarks/object_storage.py removal --folder /tmp/object-storage
    python benchmarks/object_storage.py commits
"""

from __future__ import annotations

import argparse
import hashlib
import json
import operator
import os
import secrets
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import clew
from clew.core.types import Location
from clew.knowledge_base.base_copy import copy_base
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.parse.documents.builder import DocumentBuilder
from clew.retrieve.lexical import BM25, QueryTerms
from clew.store.object_store import FolderObjects
from clew.store.remote import layout
from clew.store.remote import manifest as stored_files
from clew.store.remote import store as remote_store
from clew.store.remote.store import RemoteStore
from clew.store.segments import FieldPostings
from clew.store.snapshot import StoreSnapshot
from clew.store.store import Store

if TYPE_CHECKING:
    from clew.core.arrays import Vectors

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from object_server import CREDENTIALS, ObjectServer, Request, serve_objects  # noqa: E402 (shared with the tests)
from request_chain import count_request_chain  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
GRAPH = ROOT / "samples" / "graphs" / "oskell-people-and-ships.tsv"
SETS = ("2wikimultihopqa/train500", "hotpotqa/train100", "musique/train100")
SEED, COUNTED, TIMED = 25, 12, 4
SHARDS = (1, 2, 4)
PER_DOCUMENT = 20
K1, B = 1.2, 0.75
#: Terms of a block of a vocabulary, whose first the reader of our own arrays knows.
TERM_BLOCK = 256
#: Ranges of an object that are nearer than so many bytes are read in one request.
COALESCE = 1 << 14
ROUND_TRIP = 0.063

#: For each term of a question the rows that contain it, how often, and the lengths of these rows.
Answer = dict[int, tuple[Any, Any, Any]]
Ask = Callable[["QueryTerms"], list[Answer]]


@dataclass(frozen=True)
class Shard:
    """The postings of a part of the documents: of each term rows, counts and the lengths of the rows."""

    vocabulary: Any
    starts: Any
    rows: Any
    counts: Any
    lengths: Any
    nodes: int
    terms_in_all: int


def open_base(folder: Path, limit: int | None = None) -> tuple[Store, list[str]]:
    """Return the base of the pooled paragraphs (of the first ``limit``), twenty to a document, and the questions."""
    paragraphs: dict[tuple[str, str], None] = {}
    questions = []
    for name in SETS:
        for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            questions.append(record["question"])
            texts = [(p["title"], p["paragraph_text"]) for p in record.get("paragraphs", ())]
            texts += [(title, "".join(sentences)) for title, sentences in record.get("context", ())]
            paragraphs |= dict.fromkeys(texts)
    store = Store.open(folder / "base", create=True)
    stored = {path for document in store.documents() for path in document.paths}
    for first in range(0, limit or len(paragraphs), PER_DOCUMENT):
        if f"/{first}" not in stored:
            builder, batch = DocumentBuilder(), list(paragraphs)[first : first + PER_DOCUMENT]
            for title, text in batch:
                builder.add_paragraph(f"{title}. {text}")
            data, title = repr(batch).encode(), f"paragraphs from {first}"
            document = builder.finish(data=data, title=title, media_type="text/plain", parser="benchmark/1")
            store.put_document(document, Location(f"/{first}", "/", len(data), 0, 0))
    store.catch_up()
    return store, questions


def split(snapshot: StoreSnapshot, count: int) -> list[Shard]:
    """Divide the documents of a base over ``count`` shards, in turn."""
    document = snapshot.column("document")
    owner = np.zeros(snapshot.size, dtype=np.int64)
    owner[document >= 0] = np.unique(document[document >= 0], return_inverse=True)[1] % count
    lengths = snapshot.postings("text").lengths(np.arange(snapshot.size))
    shards = []
    for number in range(count):
        parts = [segment.fields["text"] for segment in snapshot._segments]
        columns = zip(*(part.select_rows(owner[part.rows] == number) for part in parts), strict=True)
        field = FieldPostings.from_terms(*(np.concatenate(column) for column in columns))
        rows = field.rows[field.holders]
        shards.append(
            Shard(
                field.vocabulary,
                field.holder_starts,
                rows.astype(np.uint32),
                field.holder_counts.astype(np.uint32),
                lengths[rows].astype(np.uint32),
                len(field.rows),
                int(lengths[field.rows].sum()),
            )
        )
    return shards


def add_scores(size: int, terms: QueryTerms, shards: Sequence[Shard], answers: Sequence[Answer]) -> Any:
    """Return BM25 of every row from the answers of the shards, in the arithmetic of :class:`BM25`."""
    nodes = sum(shard.nodes for shard in shards)
    slope = K1 * B / (sum(shard.terms_in_all for shard in shards) / nodes)
    frequency = np.array([sum(len(a[t][0]) for a in answers if t in a) for t in terms.hashes.tolist()])
    weights = terms.counts * np.log1p((nodes - frequency + 0.5) / (frequency + 0.5)) * (K1 + 1)
    sums = np.zeros(size)
    for term, weight in zip(terms.hashes.tolist(), weights.tolist(), strict=True):
        for rows, counts, lengths in (answer[term] for answer in answers if term in answer):
            number = counts.astype(np.int64)
            sums[rows] += weight * (number / (number + K1 * (1 - B) + slope * lengths.astype(np.float64)))
    return sums


# Engines


def client(server: ObjectServer) -> tuple[Any, Any]:
    """Return the library obstore and a client of the server."""
    import obstore
    import obstore.store

    settings = {name.removeprefix("aws_"): value for name, value in CREDENTIALS.items() if "http" not in name}
    store = obstore.store.S3Store(
        server.bucket, endpoint=server.endpoint, client_options={"allow_http": True}, **settings
    )
    return obstore, store


def write_lance(server: ObjectServer, shards: Sequence[Shard]) -> Callable[[], Ask]:
    """Write each shard as a Lance dataset with a row for each term; return what opens them."""
    import lance
    import pyarrow as pa

    places = [f"s3://{server.bucket}/lance{len(shards)}/{number}" for number in range(len(shards))]
    for place, shard in zip(places, shards, strict=True):
        starts = pa.array(shard.starts, pa.int32())
        lists = {name: getattr(shard, name) for name in ("rows", "counts", "lengths")}
        columns = {name: pa.ListArray.from_arrays(starts, pa.array(values)) for name, values in lists.items()}
        table = pa.table({"term": pa.array(shard.vocabulary.view(np.int64)), **columns})
        lance.write_dataset(table, place, storage_options=server.options()).create_scalar_index(
            "term", "BTREE"
        )

    def open_datasets() -> Ask:
        datasets = [lance.dataset(place, storage_options=server.options()) for place in places]

        def ask(terms: QueryTerms) -> list[Answer]:
            wanted = ",".join(map(str, terms.hashes.view(np.int64).tolist()))
            answers = []
            for dataset in datasets:
                table = dataset.scanner(filter=f"term IN ({wanted})").to_table()
                columns = [table[name] for name in ("rows", "counts", "lengths")]
                found = np.asarray(table["term"]).view(np.uint64).tolist()
                lists = (tuple(np.asarray(column[n].values) for column in columns) for n in range(len(found)))
                answers.append(dict(zip(found, lists, strict=True)))
            return answers

        return ask

    return open_datasets


def write_arrays(server: ObjectServer, shards: Sequence[Shard]) -> Callable[[], Ask]:
    """Write each shard as one object: hashes, starts, and rows, counts and lengths; return what opens them."""
    obstore, store = client(server)
    names = [f"arrays{len(shards)}/{number}" for number in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        postings = np.stack([shard.rows, shard.counts, shard.lengths], axis=1)
        content = shard.vocabulary.tobytes() + shard.starts.astype(np.int64).tobytes() + postings.tobytes()
        obstore.put(store, name, content)

    def read(name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        if not ranges:
            return []
        return [
            bytes(b) for b in obstore.get_ranges(store, name, starts=starts, ends=ends, coalesce=COALESCE)
        ]

    def ask_shard(name: str, shard: Shard, terms: QueryTerms) -> Answer:
        size = len(shard.vocabulary)
        places = np.searchsorted(shard.vocabulary[::TERM_BLOCK], terms.hashes, side="right") - 1
        blocks = [block * TERM_BLOCK for block in sorted({int(place) for place in places} - {-1})]
        ends = [min(block + TERM_BLOCK, size) for block in blocks]
        vocabularies = [(8 * block, 8 * end) for block, end in zip(blocks, ends, strict=True)]
        starts = [(8 * (size + block), 8 * (size + end + 1)) for block, end in zip(blocks, ends, strict=True)]
        replies = read(name, vocabularies + starts)
        ranges: dict[int, tuple[int, int]] = {}
        for first, second in zip(replies[: len(blocks)], replies[len(blocks) :], strict=True):
            hashes, offsets = np.frombuffer(first, np.uint64), np.frombuffer(second, np.int64)
            for place in np.flatnonzero(np.isin(hashes, terms.hashes)).tolist():
                ranges[int(hashes[place])] = int(offsets[place]), int(offsets[place + 1])
        base = 8 * (2 * size + 1)
        postings = read(name, [(base + 12 * start, base + 12 * end) for start, end in ranges.values()])
        columns = [tuple(np.frombuffer(reply, np.uint32).reshape(-1, 3).T) for reply in postings]
        return dict(zip(ranges, columns, strict=True))  # type: ignore[arg-type]

    def ask(terms: QueryTerms) -> list[Answer]:
        return [ask_shard(name, shard, terms) for name, shard in zip(names, shards, strict=True)]

    return lambda: ask


def measure_scores(folder: Path, count: int) -> None:
    """Print for each engine and number of shards how many score vectors are equal, and what a question takes."""
    store, questions = open_base(folder)
    order = np.random.default_rng(SEED).permutation(len(questions))[:count]
    chosen = [questions[number] for number in order.tolist()]
    with store, serve_objects() as server:
        snapshot = store.snapshot()
        obstore, objects = client(server)
        terms = [QueryTerms.for_documents(question, snapshot) for question in chosen]
        nodes, bm25 = snapshot.postings("text").node_count, BM25(snapshot)
        print(f"{nodes:,} paragraphs, {len(chosen)} of {len(questions)} questions, seed {SEED}")
        for number in SHARDS:
            shards = split(snapshot, number)
            for engine, write in (("lance", write_lance), ("arrays", write_arrays)):
                open_shards = write(server, shards)
                sizes = [o["size"] for batch in obstore.list(objects, f"{engine}{number}/") for o in batch]
                ask = open_shards()
                before = len(server.requests)
                answers = [ask(query) for query in terms[:COUNTED]]
                requests = server.requests[before:]
                answers += [ask(query) for query in terms[COUNTED:]]
                scores = [
                    add_scores(snapshot.size, query, shards, answer)
                    for query, answer in zip(terms, answers, strict=True)
                ]
                equal = sum(
                    np.array_equal(bm25.all_scores(t), s) for t, s in zip(chosen, scores, strict=True)
                )
                ask = open_shards()
                server.delay = lambda method, path: ROUND_TRIP
                seconds = []
                for query in terms[COUNTED : COUNTED + TIMED]:
                    started = time.perf_counter()
                    ask(query)
                    seconds.append(f"{time.perf_counter() - started:.2f}")
                server.delay = None
                print(
                    f"{engine:7} {number} shards: equal {equal} of {len(chosen)}; "
                    f"GETs {len(requests) / COUNTED:.1f}, "
                    f"kB {sum(r.received for r in requests) / COUNTED / 1000:.0f} a question; "
                    f"{len(sizes)} objects, {sum(sizes) / 1e6:.1f} MB; "
                    f"seconds at {ROUND_TRIP * 1000:.0f} ms {' '.join(seconds)}"
                )


# Removal and commits


def measure_removal(folder: Path) -> None:
    """Print after each step of a removal in which files of a Lance dataset the removed row still is."""
    import lance
    import pyarrow as pa
    from lance.fragment import LanceFragment

    place = folder / "removal"
    marks = [secrets.token_bytes(32) for _ in range(10)]

    def rows(first: int, last: int, texts: Sequence[bytes] = ()) -> Any:
        values = [*texts, *(secrets.token_bytes(32) for _ in range(last - first - len(texts)))]
        keys = [f"key {number // 10:05}" for number in range(first, last)]
        return pa.table({"key": keys, "text": pa.array(values, pa.binary(32))})

    def traces() -> dict[str, int]:
        files = [path for path in place.rglob("*") if path.is_file()]
        needles = [*marks, b"key 00000"]
        with_traces = [path for path in files if any(n in path.read_bytes() for n in needles)]
        return dict(Counter(path.relative_to(place).parts[0] for path in with_traces))

    for unverified in (False, True):
        shutil.rmtree(place, ignore_errors=True)
        dataset = lance.write_dataset(rows(0, 1000, marks), str(place))
        reader = lance.dataset(str(place))
        print(f"delete_unverified={unverified}: before {traces()}")
        dataset.delete("key = 'key 00000'")
        print(f"  deleted {traces()}")
        dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
        print(f"  compacted {traces()}")
        other = LanceFragment.create(str(place), rows(2000, 2100))  # a writer that has not committed
        dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=unverified)
        print(f"  cleaned up {traces()}")
        print(f"  a reader of the version before: {_outcome(partial(read_rows, reader))}")
        append = lance.LanceOperation.Append([other])
        latest = lance.dataset(str(place)).version
        committed = lance.LanceDataset.commit(str(place), append, read_version=latest)
        print(f"  the other writer commits; reading then: {_outcome(partial(read_rows, committed))}")
    shutil.rmtree(place)
    dataset = lance.write_dataset(rows(100, 200), str(place))
    LanceFragment.create(str(place), rows(0, 100, marks))
    dataset.cleanup_old_versions(older_than=timedelta(0))
    print(f"what a killed writer left, after cleaning up: {traces()}")


def read_rows(dataset: Any) -> int:
    """Return how many rows a dataset has, after reading them all."""
    return int(dataset.to_table().num_rows)


def _outcome(action: Callable[[], int]) -> str:
    try:
        return f"{action()} rows"
    except Exception as error:  # noqa: BLE001 (whatever an engine raises is the result)
        return f"fails, {type(error).__name__}: {str(error)[:60]}"


def measure_commits() -> None:
    """Print what becomes of appends to a Lance dataset by three writers at once, and under faults of the storage."""
    import lance
    import pyarrow as pa

    with serve_objects() as server:
        place = f"s3://{server.bucket}/commits"

        def append(writer: int, number: int) -> int:
            table = pa.table({"writer": [writer], "number": [number]})
            lance.write_dataset(table, place, mode="append", storage_options=server.options())
            return 1

        def rows(writer: int) -> int:
            dataset = lance.dataset(place, storage_options=server.options())
            return int(dataset.count_rows(filter=f"writer = {writer}"))

        empty = pa.table({"writer": pa.array([], pa.int64()), "number": pa.array([], pa.int64())})
        lance.write_dataset(empty, place, storage_options=server.options())
        threads = [
            threading.Thread(target=list, args=(map(partial(append, writer), range(5)),))
            for writer in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        conflicts = sum(request.status == 412 for request in server.requests)
        stored = [rows(writer) for writer in range(3)]
        print(f"three writers, five appends each: {stored} rows, {conflicts} conflicts")
        faults: dict[str, Callable[[str, str, int], int | str | None]] = {
            "503 for every fifth request": lambda method, path, n: 503 if n % 5 == 0 else None,
            "the answer to every fifth PUT lost": lambda method, path, n: (
                "lost" if method == "PUT" and n % 5 == 0 else None
            ),
            "409 for every fifth PUT": lambda method, path, n: (
                409 if method == "PUT" and n % 5 == 0 else None
            ),
        }
        for writer, (name, fault) in enumerate(faults.items(), 10):
            server.fault = fault
            outcomes = [_outcome(partial(append, writer, n)) for n in range(5)]
            server.fault = None
            print(f"{name}: {outcomes.count('1 rows')} of 5 appends succeeded, {rows(writer)} rows")


# Reading a base where it lies

#: Median and 99th percentile of the latency that is added to a request, in seconds.
LATENCY = {"GET": (0.063, 0.078), "HEAD": (0.063, 0.078), "PUT": (0.100, 0.195)}
WALK = "kgp"


@dataclass(frozen=True)
class RandomVectors:
    """An encoder by its name alone: the vector of a text is drawn with its hash as the seed. So many passages have
    vectors of the usual size at little cost; what is near what, is chance."""

    name: str = "random"
    dimension: int = 384
    objective: str = ""

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (texts, dimension)."""
        seeds = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) for text in texts]
        drawn = np.stack([np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds])
        vectors: Vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
        return vectors


def open_encoded_base(
    folder: Path, limit: int | None = None, *, samples: bool = False, random_vectors: bool = False
) -> tuple[KnowledgeBase, list[str]]:
    """Return the base of the pooled paragraphs with the vectors of clew:hops, or random ones in their place, and the
    questions; with ``samples`` the documents and the graph that come with clew are in it, too."""
    store, questions = open_base(folder, limit)
    base = KnowledgeBase(store)
    if base.encoding.name != "clew:hops":
        base.encoding.set("clew:hops")
    if random_vectors and (encoder := base.encoding.encoder()) is not None:
        store.encode(RandomVectors(encoder.name))
    if samples and not base.graphs.infos():
        base.add([ROOT / "samples" / "documents"])
        base.graphs.add(GRAPH)
    base.encoding.encode_missing(
        lambda done, total: print(f"\rvectors {done} of {total}", end="", file=sys.stderr)
    )
    return base, questions


def copy_to(server: ObjectServer, base: KnowledgeBase, name: str, shards: int | None = None) -> str:
    """Copy a base to the server; return its address."""
    os.environ.update({name.upper(): value for name, value in server.options().items()})
    address = f"s3://{server.bucket}/{name}"
    report = copy_base(str(base.path), address, shards=shards)
    print(f"copied {report.bytes / 1e6:.1f} MB, of which {report.transferred / 1e6:.1f} MB were sent")
    return address


def search_results(base: KnowledgeBase, question: str, retriever: str = "default") -> list[tuple[str, float]]:
    """Return ids and scores of a search; by default of the default one."""
    return [(hit.node.id, hit.score) for hit in base.search(question, k=10, retriever=retriever)]


def walk_results(base: KnowledgeBase, question: str) -> tuple[str, list[tuple[str, float, tuple[str, ...]]]]:
    """Return the answer of a walk, and ids, scores and paths of its evidence."""
    answer = base.ask(question, recipe=WALK)
    return answer.text, [(hit.node.id, hit.score, tuple(hit.path)) for hit in answer.evidence]


def answer_content(base: KnowledgeBase, question: str) -> tuple[str, list[tuple[str, float]]]:
    """Return an answer by the default method: its text, ids and scores of its evidence."""
    answer = base.ask(question)
    return answer.text, [(hit.node.id, hit.score) for hit in answer.evidence]


#: What is compared of a question: the default search, the search by words alone, walks, and chains of triples.
Results = dict[str, list[Any]]


def read_chains(path: Path) -> list[str]:
    """Return a question in triples for each edge of a graph file, and for each two edges that follow one another."""
    edges = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    one = {f"{head} >> {relation} >> #1; final answer: #1" for head, relation, _ in edges}
    two = {
        f"{head} >> {first} >> #1; #1 >> {second} >> #2; final answer: #2"
        for head, first, tail in edges
        for start, second, _ in edges
        if start == tail
    }
    return sorted(one | two)


def chain_results(base: KnowledgeBase, chain: str) -> tuple[str, list[tuple[str, float]]]:
    """Return the answer of a graph to a chain of triples, and ids and scores of its evidence."""
    answer = base.ask("", chain=chain, recipe="chain")
    return answer.text, [(hit.node.id, hit.score) for hit in answer.evidence]


def read_results(base: KnowledgeBase, questions: Sequence[str], walks: int) -> Results:
    """Return the results of a base: walks of the first ``walks`` questions, searches of the others, and chains."""
    searched = questions[walks:]
    return {
        "default search": [search_results(base, text) for text in searched],
        "search by words": [search_results(base, text, retriever="bm25") for text in searched],
        "walks": [walk_results(base, text) for text in questions[:walks]],
        "chains": [chain_results(base, chain) for chain in read_chains(GRAPH)],
    }


def measure_equality(folder: Path, count: int, walks: int, shards: Sequence[int]) -> None:
    """Print how many results are equal from the folder and from copies in shards: at first, after random changes, and
    after the segments of the folder were written anew."""
    rng = np.random.default_rng(SEED)
    original, questions = open_encoded_base(folder)
    original.close()
    work = folder / "changed"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / "base", work)
    chosen = [questions[number] for number in rng.permutation(len(questions))[: count + walks].tolist()]
    with serve_objects() as server, clew.open(work) as here:
        here.graphs.add(GRAPH)

        def compare() -> None:
            segments = len(here.store.snapshot()._segments)
            expected = read_results(here, chosen, walks)
            print(f"the folder: {segments} segments, {len(expected['chains'])} chains", flush=True)
            for number in shards:
                address = copy_to(server, here, f"equality{number}", number)
                with clew.open(address) as there:
                    assert there.store.digest() == here.store.digest()
                    segments = len(there.store.snapshot()._segments)
                    stored = read_results(there, chosen, walks)
                for name, results in stored.items():
                    equal = sum(map(operator.eq, results, expected[name]))
                    print(
                        f"--shards {number}, {segments} segments: {name}: {equal} of {len(results)} equal",
                        flush=True,
                    )

        compare()
        store = here.store
        paths = sorted(store.locations())
        removed = rng.choice(paths, len(paths) // 5, replace=False).tolist()
        again = removed[: len(removed) // 2]
        stored = {path: store.parsed_document(store.document(path).key) for path in again}
        store.remove(removed)
        for path, parsed in stored.items():
            store.put_document(parsed, Location(path, "/", len(parsed.text), 0, 0))
        here.encoding.encode_missing()
        print(f"removed {len(removed)} of {len(paths)} documents, added {len(again)} of them again")
        compare()
        store._index.delete()
        store.catch_up()
        print("all segments were written anew")
        compare()


def measure_resent(folder: Path) -> None:
    """Print how many bytes of a copy are sent again after some documents were removed, or one was added."""
    original, _ = open_encoded_base(folder)
    original.close()
    work = folder / "resent"
    content_cut = stored_files.cut_file

    def cut_evenly(path: Path, name: str) -> tuple[int, ...]:
        size = path.stat().st_size
        piece = (1 << 18) if stored_files.is_postings(name) else (8 << 20)
        return tuple(min(start + piece, size) for start in range(0, size, piece))

    for name, shards, cut in (
        ("even pieces of 8 MiB, one shard", 1, cut_evenly),
        ("pieces cut by content, one shard", 1, content_cut),
        ("pieces cut by content, shards by default", None, content_cut),
        ("pieces cut by content, --shards 8", 8, content_cut),
        ("pieces cut by content, --shards 32", 32, content_cut),
    ):
        stored_files.cut_file = cut
        for change in (1, 10, 100, "the last", "one more"):
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(folder / "base", work)
            target = f"file://{folder / 'resent-copy'}"
            shutil.rmtree(folder / "resent-copy", ignore_errors=True)
            first = copy_base(str(work), target, shards=shards)
            pieces = len(list((folder / "resent-copy" / "pieces").iterdir()))
            with clew.open(work) as base:
                paths = sorted(base.store.locations())
                if isinstance(change, int):
                    rng = np.random.default_rng(SEED)
                    base.store.remove(rng.choice(paths, change, replace=False).tolist())
                elif change == "the last":
                    base.store.remove([max(paths, key=lambda path: int(path[1:]))])
                else:
                    parsed = base.store.parsed_document(base.store.document(paths[0]).key)
                    builder = DocumentBuilder()
                    builder.add_paragraph(parsed.text[::-1])
                    document = builder.finish(
                        data=b"new", title="new", media_type="text/plain", parser="benchmark/1"
                    )
                    base.store.put_document(document, Location("/new", "/", 1, 0, 0))
                    base.encoding.encode_missing()
            second = copy_base(str(work), target, shards=shards)
            what = f"{change} of {len(paths)} documents removed" if isinstance(change, int) else change
            if change == "the last":
                what = "the last document removed"
            print(
                f"{name} ({first.bytes / 1e6:.1f} MB, {pieces} pieces): {what}: "
                f"{second.transferred / 1e6:.2f} MB sent",
                flush=True,
            )
    stored_files.cut_file = content_cut


def count_rounds(requests: Sequence[Request]) -> int:
    """Return the length of the longest chain of requests of which each began after the one before had ended."""
    ends: list[tuple[float, int]] = []
    for request in sorted(requests, key=lambda request: request.began):
        depth = 1 + max((depth for ended, depth in ends if ended <= request.began), default=0)
        ends.append((request.ended, depth))
    return max((depth for _, depth in ends), default=0)


def measure_cost(
    folder: Path,
    original: KnowledgeBase,
    two_hop: Sequence[str],
    count: int,
    shards: int | None,
    slower: float = 1.0,
) -> None:
    """Print requests, bytes, rounds and seconds of questions, with an empty cache and with a filled one."""
    rng = np.random.default_rng(SEED)
    chosen = [two_hop[number] for number in rng.permutation(len(two_hop))[:count].tolist()]
    search_results(original, "the models are loaded")
    seconds, expected = [], {}
    for text in chosen:
        with clew.open(folder / "base") as here:
            started = time.perf_counter()
            expected[text] = answer_content(here, text)
            seconds.append(time.perf_counter() - started)
    print(f"{len(chosen)} questions, seed {SEED}; in the folder {format_quantiles(seconds)} s")

    def delay(method: str, path: str) -> float:
        median, high = LATENCY.get(method, LATENCY["GET"])
        return float(slower * median * np.exp(rng.normal() * np.log(high / median) / 2.326))

    cache = folder / "cache"
    os.environ["CLEW_CACHE"] = str(cache)
    os.environ["CLEW_DATA"] = str(folder / "data")
    with serve_objects() as server:
        started = time.perf_counter()
        server.delay = delay
        address = copy_to(server, original, "cost", shards)
        puts = server.count("PUT")
        print(f"copying: {puts} PUTs, {time.perf_counter() - started:.1f} s with their latency")
        shutil.rmtree(cache, ignore_errors=True)
        lines: dict[str, list[tuple[int, int, int, float]]] = {}
        equal: list[bool] = []

        def measure(state: str, text: str, base: KnowledgeBase | None = None) -> None:
            before, started = len(server.requests), time.perf_counter()
            if base is not None:
                content = answer_content(base, text)
            else:
                with clew.open(address) as opened:
                    content = answer_content(opened, text)
            took = time.perf_counter() - started
            equal.append(content == expected[text])
            requests = server.requests[before:]
            received = sum(request.received for request in requests)
            lines.setdefault(state, []).append((len(requests), received, count_rounds(requests), took))

        for text in chosen:
            shutil.rmtree(cache, ignore_errors=True)
            measure("first question, empty cache", text)
            measure("same question, new process", text)
        shutil.rmtree(cache, ignore_errors=True)
        for text in chosen:
            measure("another question, new process", text)
        shutil.rmtree(cache, ignore_errors=True)
        with clew.open(address) as base:
            base.ask("a first question")
            for text in chosen:
                time.sleep(remote_store.CHECK_INTERVAL + 0.05)
                measure("another question, same process", text, base)
            for text in chosen:
                time.sleep(remote_store.CHECK_INTERVAL + 0.05)
                measure("same question, same process", text, base)
        print(f"answers equal to those from the folder: {sum(equal)} of {len(equal)}")
        for state, values in lines.items():
            requests, received, rounds, took = (list(column) for column in zip(*values, strict=True))
            print(
                f"{state}: requests {format_quantiles(requests)}; "
                f"kB {format_quantiles([n / 1000 for n in received])}; "
                f"rounds {format_quantiles(rounds)}; s {format_quantiles(took)}",
                flush=True,
            )
    original.close()


def measure_rounds(folder: Path, original: KnowledgeBase, two_hop: Sequence[str], count: int) -> None:
    """Print how many requests of first questions to a large base wait for one another, fetched ahead and in turn."""
    order = np.random.default_rng(SEED).permutation(len(two_hop))[:count]
    chosen = [two_hop[number] for number in order.tolist()]
    expected = {text: answer_content(original, text) for text in chosen}
    layout.MAX_RESIDENT = remote_store.MAX_PREFETCH = 0
    place = folder / "rounds"
    shutil.rmtree(place, ignore_errors=True)
    copy_base(str(original.path), f"file://{place}")
    os.environ["CLEW_CACHE"] = str(folder / "cache")
    for ahead in (True, False):
        lengths, equal = [], 0
        for text in chosen:
            shutil.rmtree(folder / "cache", ignore_errors=True)
            with count_request_chain(ahead=ahead) as chain:
                store = RemoteStore(FolderObjects(place), folder / "data")
                with KnowledgeBase(store) as base:
                    equal += answer_content(base, text) == expected[text]
            lengths.append(chain.length)
        counted = ", ".join(f"{number} times {length}" for length, number in sorted(Counter(lengths).items()))
        print(
            f"{'ahead' if ahead else 'in turn'}: {len(chosen)} questions, seed {SEED}, {equal} answers equal; "
            f"rounds {format_quantiles(lengths)}: {counted}",
            flush=True,
        )
    original.close()


def format_quantiles(values: Sequence[float]) -> str:
    """Return the median and the largest value."""
    return f"{np.median(values):.4g} ({max(values):.4g})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "part", choices=["equality", "resent", "cost", "rounds", "scores", "removal", "commits"]
    )
    parser.add_argument("--folder", type=Path, default=Path("/tmp/object-storage"))
    parser.add_argument(
        "--questions", type=int, help="default: 300 for equality, 20 for cost and rounds, 200 for scores"
    )
    parser.add_argument("--walks", type=int, default=100)
    parser.add_argument("--shards", type=int, nargs="+", help="equality (default: 1 2 4 8); cost: the first")
    parser.add_argument("--paragraphs", type=int, help="only so many of them; cost")
    parser.add_argument(
        "--samples", action="store_true", help="with the sample documents and their graph; cost"
    )
    parser.add_argument("--random-vectors", action="store_true", help="do not encode passages; cost, rounds")
    parser.add_argument("--slower", type=float, default=1.0, help="factor of the latencies; cost")
    parser.add_argument("--prefetch", type=int, help="MiB that may be fetched ahead; cost")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.part == "equality":
        count = 300 if arguments.questions is None else arguments.questions
        measure_equality(arguments.folder, count, arguments.walks, arguments.shards or [1, 2, 4, 8])
    elif arguments.part == "resent":
        measure_resent(arguments.folder)
    elif arguments.part == "cost":
        if arguments.prefetch is not None:
            remote_store.MAX_PREFETCH = arguments.prefetch << 20
        shards = arguments.shards[0] if arguments.shards else None
        base, questions = open_encoded_base(
            arguments.folder,
            arguments.paragraphs,
            samples=arguments.samples,
            random_vectors=arguments.random_vectors,
        )
        two_hop = questions[: (arguments.paragraphs or len(questions) * 5) // 10]  # of 2WikiMultihopQA
        count = arguments.questions or 20
        measure_cost(arguments.folder, base, two_hop, count, shards, arguments.slower)
    elif arguments.part == "rounds":
        base, questions = open_encoded_base(arguments.folder, random_vectors=arguments.random_vectors)
        measure_rounds(arguments.folder, base, questions[: len(questions) // 2], arguments.questions or 20)
    elif arguments.part == "scores":
        measure_scores(arguments.folder, arguments.questions or 200)
    elif arguments.part == "removal":
        measure_removal(arguments.folder)
    else:
        measure_commits()


if __name__ == "__main__":
    main()
