"""A base that is read in object storage: the same results, states of the copy, the cache, faults, and errors."""

import gc
import json
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from clew.core.config import cache_path
from clew.core.errors import BaseReplaced, Damaged, NotFound, StoreError, UsageError
from clew.core.types import RETRIEVED_KINDS, Scope
from clew.knowledge_base.base_copy import copy_base, upload_base
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.retrieve.lexical import TfIdf
from clew.store import object_store
from clew.store.object_store import FolderObjects, open_object_store
from clew.store.remote import layout, manifest, pieces
from clew.store.remote import store as remote
from clew.store.remote.store import RemoteStore
from clew.store.segments import FIELDS, SegmentIndex
from clew.store.store import Store
from command_line import run
from kb_documents import HashEncoder, document, location
from request_chain import count_request_chain
from retrieve_documents import make_document
from schema_graphs import films

SECRET = "Xyzzyplugh"


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces and arrays so small that a question reads several ranges."""
    monkeypatch.setattr(manifest, "POSTINGS_PIECE", 256)
    monkeypatch.setattr(manifest, "TEXTS_PIECE", 512)
    monkeypatch.setattr(layout, "MAX_WHOLE", 192)  # with what stands before the numbers of an array
    monkeypatch.setattr(layout, "MAX_RESIDENT", 0)
    monkeypatch.setattr(remote, "CHECK_INTERVAL", 0.0)


@pytest.fixture
def written(tmp_path, small_pieces):
    with Store.open(tmp_path / "kb", create=True) as store:
        for number in range(4):
            store.put_document(document(number), location(f"/docs/{number}.txt"))
        store.put_document(make_document(SECRET, [f"{SECRET} is the word."]), location("/docs/secret.txt"))
        films(store)
        store.encode(HashEncoder())
        yield store


@pytest.fixture
def objects(tmp_path):
    return FolderObjects(tmp_path / "copy")


def publish(store, objects, shards=None):
    return upload_base(store.path, objects, take_over=False, shards=shards, progress=lambda done, total: None)


def results(store):
    """Return what retrieval reads of a base, to the last bit."""
    snapshot = store.snapshot()
    encoder = HashEncoder()
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    view = snapshot.vectors(encoder.name)
    near, scores = view.search(encoder.encode(["a question", "another"], query=True), 5)
    values = [store.documents(), snapshot.ids(rows), snapshot.nodes(rows), view.vectors(rows).tolist()]
    values += [near.tolist(), scores.tolist(), store.info().nodes, store.table_nodes(), store.digest()]
    values.append([snapshot.document_openings([item.key], 50) for item in store.documents()])
    values.append([store.parsed_document(item.key) for item in store.documents()])
    for field in FIELDS:
        postings = snapshot.postings(field)
        terms, frequency = postings.vocabulary()
        some = terms[::3]
        values += [terms.tolist(), frequency.tolist(), postings.document_frequency(some).tolist()]
        values += [[part.tolist() for part in postings.rows_with(term)] for term in some.tolist()]
        values += [part.tolist() for part in postings.term_matrix(rows[::2])]
        values += [postings.average_length, postings.lengths(rows).tolist()]
    for name in snapshot.graphs():
        graph = snapshot.graph(name)
        values += [graph.entities(np.arange(graph.size)), graph.relations(), graph.ids(np.arange(graph.size))]
    return values


def test_a_copy_gives_what_its_base_gives_and_follows_it(written, objects, tmp_path):
    publish(written, objects)
    reader = RemoteStore(objects)
    assert results(reader) == results(written)
    # A state that a question began with stays; the next question has the new one.
    before = reader.snapshot()
    written.remove(["/docs/0.txt", "/docs/secret.txt"])
    written.put_document(document(7), location("/docs/7.txt"))
    written.encode(HashEncoder())
    publish(written, objects)
    assert reader.snapshot() is not before and results(reader) == results(written)
    assert before.documents() != reader.snapshot().documents()
    # Nothing of the removed document is left on this machine either.
    del before
    gc.collect()
    cache = [path for path in cache_path().rglob("*") if path.is_file()]
    packed = json.dumps(SECRET)[1:-1].encode()
    assert cache and not [path for path in cache if packed in path.read_bytes()]
    known = {path.name for path in cache if path.parents[1].name == "pieces"}
    assert known <= manifest.read_manifest(objects).pieces()
    reader.close()


@pytest.mark.slow
def test_any_number_of_shards_gives_the_same(written, tmp_path):
    """After random additions and removals, with vectors and a graph; and the way back through a working folder."""
    rng = np.random.default_rng(25)
    for number in range(10, 30):
        written.put_document(document(number), location(f"/docs/{number}.txt"))
    readers = {}
    for shards in (1, 2, 4, 8, None):
        target = FolderObjects(tmp_path / f"copy {shards}")
        publish(written, target, shards)
        readers[shards] = target, RemoteStore(target)
    for turn in range(4):
        paths = sorted(written.locations())
        written.remove(rng.choice(paths, len(paths) // 3, replace=False).tolist())
        for number in range(30 + 5 * turn, 30 + 5 * turn + int(rng.integers(1, 6))):
            written.put_document(document(number), location(f"/docs/{number}.txt"))
        written.encode(HashEncoder())
        for shards, (target, reader) in readers.items():
            publish(written, target, shards)
            assert results(reader) == results(written), shards
    # The segments of the folder are written anew as one; those of a copy stay shards.
    segments = SegmentIndex(written.derived / "segments")
    segments.delete()
    written.catch_up()
    assert len(segments.load()) == 1
    for shards, (target, reader) in readers.items():
        publish(written, target, shards)
        assert results(reader) == results(written), shards
    counts = [len(readers[shards][1].snapshot()._segments) for shards in (1, 2, 4, 8)]
    assert counts == sorted(counts) and counts[0] < counts[2] < counts[3]
    copy_base(readers[8][0].url, str(tmp_path / "back"))
    with Store.open(tmp_path / "back") as back:
        divided = SegmentIndex(back.derived / "segments")
        assert divided.shard_rows and results(back) == results(written)
        for store in (back, written):
            store.put_document(document(99), location("/docs/99.txt"))
            store.encode(HashEncoder())
        assert results(back) == results(written)
        shards = [segment.documents[:, 0] // divided.shard_rows for segment in divided.load()]
        assert len(shards) > 2 and all(len(np.unique(rows)) == 1 for rows in shards)
    for _, reader in readers.values():
        reader.close()


class CountedObjects(FolderObjects):
    """Notes what is read, and lets pieces wait while ``gate`` is closed."""

    def __init__(self, folder):
        super().__init__(folder)
        self.names, self.gate = [], threading.Event()
        self.gate.set()

    def read(self, name):
        self.names.append(name)
        if name.startswith(manifest.PIECES):
            self.gate.wait()
        return super().read(name)


def wait_for_prefetch():
    for thread in threading.enumerate():
        if thread.name == "clew-prefetch":
            thread.join()


@pytest.mark.parametrize("max_resident", [0, 12 << 20])
def test_a_first_question_waits_for_three_requests_in_turn(written, tmp_path, monkeypatch, max_resident):
    """The manifest, the resident file, and what is fetched ahead."""
    monkeypatch.setattr(remote, "CHECK_INTERVAL", 1000.0)
    monkeypatch.setattr(layout, "MAX_RESIDENT", max_resident)
    objects = CountedObjects(tmp_path / "copy")
    publish(written, objects, shards=4)
    files = manifest.read_manifest(objects).all_files()
    with KnowledgeBase(written) as here:
        question = "Which mill is on the river of document 2?"
        expected = here.ask(question)
    objects.names.clear()
    with KnowledgeBase(RemoteStore(objects)) as base:
        assert set(objects.names) == {
            manifest.MANIFEST,
            *(manifest.piece_name(piece) for piece in files[layout.RESIDENT].pieces),
        }
        assert len(base.store.snapshot()._segments) > 2
        wait_for_prefetch()
        assert len(objects.names) == len(set(objects.names)) < len(list((tmp_path / "copy/pieces").iterdir()))
        count = len(objects.names)
        answer = base.ask(question)
        assert answer.text == expected.text and expected.evidence
        assert [(hit.node.id, hit.score) for hit in answer.evidence] == [
            (hit.node.id, hit.score) for hit in expected.evidence
        ]
        assert len(objects.names) == count


@pytest.fixture(scope="module")
def mills(tmp_path_factory):
    """A base of sixty mills and those who built them, with the vectors of clew:hops."""
    path = tmp_path_factory.mktemp("mills") / "kb"
    with Store.open(path, create=True) as store:
        for number in range(60):
            builder = f"Ada Number{number}"
            texts = [
                f"The Oskell{number} mill was built by {builder} and stands on the river Garrow.",
                f"{builder} was born in Hollow{number}, where the toll of the ferry was paid.",
                f"In Hollow{number} there is a gauge of stone, from the year {1800 + number}.",
            ]
            for part, text in enumerate(texts):
                parsed = make_document(f"{('Mill', 'Builder', 'Town')[part]} {number}", [text])
                store.put_document(parsed, location(f"/docs/{number}-{part}.txt"))
        with KnowledgeBase(store) as base:
            base.encoding.set("clew:hops")
            base.encoding.encode_missing()
    return path


@pytest.mark.parametrize(
    "question",
    [
        "In which town was the builder of the Oskell7 mill born?",
        "Which year is the gauge from in the town where Ada Number40 was born?",
        "Who lived in Hollow12?",
    ],
)
def test_a_first_question_to_a_large_base_waits_for_few_requests(
    mills, small_pieces, tmp_path, monkeypatch, question
):
    """Postings and nodes are read in ranges: the manifest; the resident file; names, words and vectors; the terms and
    the nodes of the best passages; of a further hop its passages. They are more where nothing is fetched ahead."""
    monkeypatch.setattr(remote, "CHECK_INTERVAL", 1000.0)
    monkeypatch.setattr(remote, "MAX_PREFETCH", 0)
    objects = FolderObjects(tmp_path / "copy")
    with Store.open(mills) as store, KnowledgeBase(store) as here:
        publish(store, objects, shards=2)
        expected = here.ask(question)
    assert len(objects.sizes("pieces")) > 100

    def ask(*, ahead):
        monkeypatch.setenv("CLEW_CACHE", str(tmp_path / f"cache {ahead}"))
        with count_request_chain(ahead=ahead) as chain, KnowledgeBase(RemoteStore(objects)) as base:
            answer = base.ask(question)
            wait_for_prefetch()
        assert answer.text == expected.text
        assert [(hit.node.id, hit.score, hit.path) for hit in answer.evidence] == [
            (hit.node.id, hit.score, hit.path) for hit in expected.evidence
        ]
        return chain.length

    length, longer = ask(ahead=True), ask(ahead=False)
    assert length <= 5 and longer > length + 2, (length, longer)


def test_the_length_of_a_vector_is_computed_when_its_passage_is_compared(
    mills, small_pieces, tmp_path, monkeypatch
):
    monkeypatch.setattr(remote, "CHECK_INTERVAL", 1000.0)
    monkeypatch.setattr(remote, "MAX_PREFETCH", 0)
    query = "the mill that was built by Ada Number7 in Hollow7"
    objects = CountedObjects(tmp_path / "copy")
    with Store.open(mills) as store:
        publish(store, objects, shards=2)
        snapshot = store.snapshot()
        rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))[20:23]
        some, whole = TfIdf(snapshot).scores(query, rows), TfIdf(snapshot).all_scores(query)
    view = RemoteStore(objects).snapshot()
    wait_for_prefetch()
    before = len(set(objects.names))
    assert TfIdf(view).scores(query, rows).tolist() == some.tolist()
    read = len(set(objects.names)) - before
    assert TfIdf(view).all_scores(query).tolist() == whole.tolist()
    assert 0 < 5 * read < len(set(objects.names)) - before


def test_what_is_fetched_ahead_of_an_earlier_state_leaves_no_trace(written, tmp_path):
    objects = CountedObjects(tmp_path / "copy")
    publish(written, objects)
    reader = RemoteStore(objects)
    objects.gate.clear()
    reader.snapshot()  # begins to fetch ahead
    removed = reader._view.folder
    opened = threading.Event()
    written.remove(["/docs/secret.txt"])
    publish(written, FolderObjects(tmp_path / "copy"))

    def follow():
        opened.set()
        reader.refresh()

    follower = threading.Thread(target=follow)
    follower.start()
    assert opened.wait(10)
    objects.gate.set()
    follower.join()
    # Nothing holds the earlier state any more, whose folder goes with it.
    reader.snapshot()
    gc.collect()
    # Another thread may be collecting it at this moment; this collection did nothing then.
    waited_until = time.monotonic() + 30
    while removed.exists() and time.monotonic() < waited_until:
        time.sleep(0.01)
    assert not removed.exists() and reader._view.folder.exists()
    wait_for_prefetch()
    assert reader._cache.stored() <= manifest.read_manifest(objects).pieces()
    reader.close()


def test_what_is_gone_or_damaged_is_noticed(written, objects, monkeypatch, tmp_path):
    monkeypatch.setattr(remote, "MAX_PREFETCH", 0)  # nothing is fetched behind the test's back
    publish(written, objects)
    base = KnowledgeBase(RemoteStore(objects))
    expected = [(hit.node.id, hit.score) for hit in base.search(SECRET, retriever="bm25")]
    assert expected and KnowledgeBase(written).search(SECRET, retriever="bm25")[0].node.id == expected[0][0]
    # A damaged file of the cache is fetched again; a cache that cannot be written is done without.
    cached = [path for path in cache_path().rglob("pieces/*/*") if path.is_file()]
    for path in cached:
        path.write_bytes(b"damaged")
    base.close()
    reader = RemoteStore(objects)
    base = KnowledgeBase(reader)

    def forget_all():
        reader._cache.forget(reader._cache.stored())

    assert [(hit.node.id, hit.score) for hit in base.search(SECRET, retriever="bm25")] == expected
    # A question that began before the copy was replaced begins again.
    snapshot = base.store.snapshot()
    forget_all()
    monkeypatch.setattr(remote, "CHECK_INTERVAL", 1000.0)
    written.remove(["/docs/1.txt"])
    written.put_document(document(8), location("/docs/8.txt"))
    publish(written, objects)
    with pytest.raises(BaseReplaced):
        snapshot.nodes(np.flatnonzero(snapshot.mask(Scope())))
    again = base.search(SECRET, retriever="bm25")
    assert [hit.node.id for hit in again] == [
        hit.node.id for hit in KnowledgeBase(written).search(SECRET, retriever="bm25")
    ]
    # So does one that still reads the earlier state while another thread has taken up the new one.
    earlier, snapshot_now = base.store.snapshot(), base.store.snapshot
    forget_all()
    written.remove(["/docs/8.txt"])
    publish(written, objects)
    refresh, refreshed = reader.refresh, []

    def take_view():
        refresh()
        return snapshot_now() if refreshed else earlier

    with monkeypatch.context() as patched:
        patched.setattr(reader, "snapshot", take_view)
        patched.setattr(reader, "refresh", lambda: refreshed.append(refresh()))
        again = base.search(SECRET, retriever="bm25")
    assert refreshed == [False]
    assert [hit.node.id for hit in again] == [
        hit.node.id for hit in KnowledgeBase(written).search(SECRET, retriever="bm25")
    ]
    # Where a piece is gone for another reason, that is said, and no question goes on for ever.
    forget_all()
    for name in objects.sizes("pieces"):
        objects.write(name, b"other")
    with pytest.raises(Damaged, match="is damaged"):
        base.search("river mill", retriever="bm25")
    objects.delete(sorted(objects.sizes("pieces")))
    with pytest.raises(BaseReplaced, match="copy the base there again"):
        base.search("river mill", retriever="bm25")
    base.close()


def test_the_cache_is_bounded_and_shared(objects, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "MEMORY", 0)
    contents = {manifest.piece_digest(bytes([n]) * 1000): bytes([n]) * 1000 for n in range(20)}
    for digest, content in contents.items():
        objects.write(manifest.piece_name(digest), content)
    cache = pieces.PieceCache(objects, tmp_path / "cache", 8000)
    for digest in contents:
        assert cache.get([digest]) == {digest: contents[digest]}
    assert 0 < len(cache.stored()) <= 8 and list(contents)[-1] in cache.stored()
    reads, read = [], objects.read
    monkeypatch.setattr(objects, "read", lambda name: reads.append(name) or read(name))
    other = pieces.PieceCache(objects, tmp_path / "cache", 8000)
    assert other.get(cache.stored()) and reads == []
    # A piece that several threads ask for at once is fetched once.
    (missing, *_) = contents.keys() - cache.stored()
    threads = [threading.Thread(target=cache.get, args=([missing],)) for _ in range(4)]
    monkeypatch.setattr(
        objects, "read", lambda name: reads.append(name) or threading.Event().wait(0.05) or read(name)
    )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 1
    cache.close()
    other.close()


def test_a_copy_cannot_be_changed_where_it_lies(written, objects, monkeypatch):
    with pytest.raises(NotFound, match="no complete copy of a knowledge base at file://"):
        RemoteStore(objects)
    publish(written, objects)
    reader = RemoteStore(objects)
    for change in (
        lambda: reader.put_document(document(9), location("/docs/9.txt")),
        lambda: reader.remove(["/docs/0.txt"]),
        lambda: reader.set_setting("encoder", "none"),
        lambda: reader.encode(HashEncoder()),
    ):
        with pytest.raises(UsageError, match="is only read there"):
            change()
    for refused in (reader.doctor, lambda: reader.write_copy(Path("x"))):
        with pytest.raises(UsageError, match="clew copy file://"):
            refused()
    reader.finish_removals()
    assert reader.catch_up() == 0 and reader.database.scrub()
    # What is derived can be kept beside it.
    key = reader.documents()[0].key
    assert reader.snapshot().write_derived("maker", key, {"a": b"1"})
    assert reader.snapshot().read_derived("maker", key) == {"a": b"1"}
    reader.close()
    content = json.loads(objects.read("manifest.json")[0])
    content["reading"]["layout"] = "0"
    objects.write("manifest.json", json.dumps(content).encode())
    with pytest.raises(StoreError, match="written by another version of clew") as refused:
        RemoteStore(objects)
    assert f"clew copy {objects.url} FOLDER" in refused.value.hint
    back = copy_base(objects.url, str(objects.url.removeprefix("file://")) + " back")
    assert back.digest == written.digest()
    del content["reading"]["layout"]
    objects.write("manifest.json", json.dumps(content).encode())
    with pytest.raises(Damaged, match="no file of clew"):
        RemoteStore(objects)


def test_an_archive_stays_in_its_folder(tmp_path):
    folder = tmp_path / "view"
    (folder / "reading").mkdir(parents=True)
    for name in ("../outside", "/outside", "derived/../../outside"):
        with zipfile.ZipFile(folder / layout.RESIDENT, "w") as archive:
            archive.writestr(name, b"1")
        with pytest.raises(Damaged, match="outside of its folder"):
            layout.unpack_archive(folder, layout.RESIDENT)
    (folder / layout.RESIDENT).write_bytes(b"no archive")
    with pytest.raises(Damaged, match="is damaged"):
        layout.unpack_archive(folder, layout.RESIDENT)
    assert [path.name for path in tmp_path.iterdir()] == ["view"]


def test_objects_in_a_folder(tmp_path):
    objects = open_object_store(f"file://{tmp_path}/objects")
    assert isinstance(objects, FolderObjects)
    assert objects.read("a") is None and objects.version("a") is None and objects.sizes("pieces") == {}
    assert objects.write_if("a", b"1", None) and not objects.write_if("a", b"2", None)
    content, version = objects.read("a") or (b"", None)
    assert content == b"1" and version == objects.version("a")
    assert objects.write_if("a", b"2", version) and not objects.write_if("a", b"3", version)
    objects.write("pieces/b", b"123")
    assert objects.sizes("pieces") == {"pieces/b": 3}
    objects.delete(["pieces/b", "pieces/none"])
    assert objects.sizes("pieces") == {}
    objects.write("file", b"1")
    for failing in (
        lambda: objects.write("file/b", b"1"),
        lambda: objects.read("file/b"),
        lambda: objects.sizes("file"),
        lambda: objects.delete(["pieces"]),
        lambda: FolderObjects(tmp_path / "objects" / "file").write_if("a", b"1", None),
    ):
        with pytest.raises(StoreError, match="cannot be used"):
            failing()


# S3, over HTTP


@pytest.mark.slow
def test_s3_commands_answer_as_from_the_folder(written, object_server, address, tmp_path):
    publish(written, open_object_store(address))
    kb = str(written.path)
    for command in (
        ["search", "river mill", "--json"],
        ["search", SECRET, "--json", "--retriever", "tfidf"],
        ["list", "--json"],
        ["show", "secret.txt", "--json"],
        ["graph", "list", "--json"],
        ["info", "--digest"],
    ):
        there, here = run(*command, "--kb", address), run(*command, "--kb", kb)
        assert there.exit_code == here.exit_code == 0, (command, there.stderr)
        assert there.stdout == here.stdout
    assert json.loads(run("info", "--json", "-b", address).stdout)["path"] == address
    (tmp_path / "new.txt").write_text("A new text.")
    assert "is only read there" in run("add", tmp_path / "new.txt", "-b", address, status=2).output


@pytest.mark.slow
def test_s3_faults_while_reading(written, object_server, address, monkeypatch):
    monkeypatch.setattr(object_store, "PAUSE", 0.001)
    publish(written, open_object_store(address))
    expected = results(written)
    # Every fourth request fails in a way that passes.
    for fault in (503, 500, "lost", 429):
        object_server.fault = lambda method, path, number, fault=fault: fault if number % 4 == 0 else None
        reader = RemoteStore.open_url(address)
        assert results(reader) == expected
        reader._cache.forget(reader._cache.stored())
        reader.close()
    object_server.fault = None
    monkeypatch.setattr(object_store, "ATTEMPTS", 1)
    monkeypatch.setattr(object_store, "RETRY_TIMEOUT", 1)
    for fault, message in (
        (503, "503"),
        (403, "refuses these credentials"),
        (401, "refuses these credentials"),
    ):
        object_server.fault = lambda method, path, number, fault=fault: fault
        with pytest.raises(StoreError, match=message):
            RemoteStore.open_url(address)
    object_server.fault = None
    with pytest.raises(NotFound, match="there is no bucket of"):
        RemoteStore.open_url("s3://elsewhere/base")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match="cannot be reached"):
        RemoteStore.open_url(address)


@pytest.mark.slow
def test_s3_readers_while_the_copy_is_replaced_again_and_again(written, object_server, address, monkeypatch):
    """Three threads search without pause; every answer is that of one state of the base."""
    objects = open_object_store(address)
    publish(written, objects)
    known, problems, done = {}, [], threading.Event()

    def state():
        base = KnowledgeBase(written)
        hits = base.search("river mill", retriever="bm25", k=20)
        known[tuple((hit.node.id, hit.score) for hit in hits)] = written.digest()

    def read():
        base = KnowledgeBase(RemoteStore.open_url(address))
        try:
            while not done.is_set():
                hits = base.search("river mill", retriever="bm25", k=20)
                answer = tuple((hit.node.id, hit.score) for hit in hits)
                if answer not in known:
                    problems.append(answer)
        except Exception as error:  # noqa: BLE001 (reported below)
            problems.append(error)
        finally:
            base.close()

    state()
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(10, 18):
        written.put_document(document(number % 10), location(f"/docs/{number}.txt"))
        if number % 2:
            written.remove([f"/docs/{number - 1}.txt"])
        state()
        publish(written, objects)
    done.set()
    for thread in threads:
        thread.join()
    assert problems == [] and len(known) > 1


@pytest.mark.slow
def test_copies_that_are_written_elsewhere_and_read_in_a_folder(written, tmp_path):
    copied = copy_base(str(written.path), f"file://{tmp_path}/copy")
    assert run("info", "--digest", "-b", str(tmp_path / "copy")).stdout.strip() == copied.digest
    back = copy_base(f"file://{tmp_path}/copy", str(tmp_path / "back"))
    assert back.digest == copied.digest
