"""Copies of a base: the same answers and digest, commits, writers, interruptions, damage, and removed documents."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from clew.core.errors import Damaged, Locked, MissingExtra, NotFound, StoreError, UsageError
from clew.core.files import create_folder, open_private
from clew.core.text import hash_term
from clew.core.types import Question
from clew.knowledge_base.base_copy import choose_shard_rows, copy_base, download_base, upload_base
from clew.retrieve.lexical import BM25
from clew.store import object_store
from clew.store.object_store import RemoteObjects, open_object_store
from clew.store.remote import manifest
from clew.store.store import Store
from command_line import run
from kb_documents import HashEncoder, document, location
from object_server import race_for_writes
from retrieve_documents import make_document
from schema_graphs import films

SECRET = "Xyzzyplugh"
TESTS = Path(__file__).parents[1]


class MemoryObjects:
    """An object store in memory. ``before`` is called with method and name before each request, and may raise."""

    url = "memory://"

    def __init__(self):
        self.objects, self.before, self.turns = {}, lambda method, name: None, threading.Lock()

    def _request(self, method, name):
        with self.turns:
            self.before(method, name)

    def read(self, name):
        self._request("read", name)
        return self.objects.get(name)

    def version(self, name):
        self._request("version", name)
        return self.objects[name][1] if name in self.objects else None

    def write(self, name, content):
        self._request("write", name)
        self.objects[name] = (content, object())

    def write_if(self, name, content, version):
        self._request("write_if", name)
        if (name in self.objects and self.objects[name][1]) != (version or False):
            return False
        self.objects[name] = (content, object())
        return True

    def sizes(self, prefix):
        self._request("sizes", prefix)
        return {name: len(o[0]) for name, o in self.objects.items() if name.startswith(f"{prefix}/")}

    def delete(self, names):
        for name in names:
            self._request("delete", name)
            self.objects.pop(name, None)


def stop_after(count, kind="write"):
    """Return a receiver of requests that lets ``count`` of a kind pass."""
    left = [count]

    def check(method, name):
        left[0] -= method == kind
        if left[0] < 0:
            raise StoreError("the storage cannot be reached")

    return check


@pytest.fixture
def objects():
    return MemoryObjects()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A base of five documents with vectors and a graph, and another of three."""
    folder = tmp_path_factory.mktemp("filled")
    return fill(folder / "kb", 4), fill(folder / "other", 2)


@pytest.fixture
def kb(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "PIECE", 4096)
    return Path(shutil.copytree(filled[0], tmp_path / "kb"))


@pytest.fixture
def other(filled, tmp_path):
    return Path(shutil.copytree(filled[1], tmp_path / "other"))


def fill(folder, count):
    with Store.open(folder, create=True) as store:
        for number in range(count):
            store.put_document(document(number), location(f"/docs/{number}.txt"))
        store.put_document(make_document(SECRET, [f"{SECRET} is the word."]), location("/docs/secret.txt"))
        films(store)
        store.encode(HashEncoder())
    return folder


def add(folder, number):
    with Store.open(folder) as store:
        store.put_document(document(number), location(f"/docs/{number}.txt"))


def upload(folder, objects, **options):
    return upload_base(folder, objects, take_over=False, progress=lambda done, total: None, **options)


def download(objects, folder):
    return download_base(objects, folder, lambda done, total: None)


def answers(folder):
    """Return what a base answers: digest, hits with scores by words and vectors, and the contents of its graph."""
    with Store.open(folder) as store:
        snapshot = store.snapshot()
        hits = [
            [(hit.node.id, hit.score) for hit in BM25(snapshot).retrieve(Question(text), 10)]
            for text in ("the river mill", "Ferry 1929 gauge", SECRET)
        ]
        encoder = HashEncoder()
        rows, scores = snapshot.vectors(encoder.name).search(encoder.encode(["mill"], query=True), 8)
        near = list(zip(snapshot.ids(rows[0]), scores[0].tolist(), strict=True))
        graph = snapshot.graph("films")
        assert store.doctor(repair=False) == []
        entities = [repr(entity) for entity in graph.entities(np.arange(4))]
        return store.digest(), hits, near, entities


@pytest.mark.slow
def test_a_copy_and_its_copy_back_answer_the_same(kb, objects, tmp_path):
    expected, counted = answers(kb), []
    first = upload_base(
        kb, objects, take_over=False, progress=lambda done, total: counted.append((done, total))
    )
    assert first.digest == expected[0] and 0 < first.transferred <= first.bytes
    assert counted == sorted(counted) and counted[-1] == (first.bytes, first.bytes) and len(counted) > 5
    assert {name.partition("/")[0] for name in objects.objects} == {"manifest.json", "pieces"}
    assert download(objects, tmp_path / "back").digest == expected[0]
    assert answers(tmp_path / "back") == expected
    # Back and forth: the second copy of the same content has nothing to send.
    assert upload(kb, objects).transferred == 0
    # A folder copied directly; and a copy is a base like any other.
    copied = copy_base(str(tmp_path / "back"), str(tmp_path / "again"))
    # What is only for reading there stays in storage.
    assert answers(tmp_path / "again") == expected and copied.files < first.files
    add(tmp_path / "again", 9)
    objects.objects["pieces/notes.txt"] = (b"not of clew", object())
    changed = upload(tmp_path / "again", objects)
    assert 0 < changed.transferred < changed.bytes and changed.digest != expected[0]
    assert "pieces/notes.txt" in objects.objects
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "back", "kb"]
    assert not (kb / "copies.json").exists() and not (kb / "temporary").exists()


def test_nothing_is_readable_before_the_manifest_and_an_interrupted_copy_continues(kb, objects, tmp_path):
    objects.before = stop_after(7)
    with pytest.raises(StoreError):
        upload(kb, objects)
    sent = [name for name in objects.objects if name.startswith("pieces/")]
    assert 7 >= len(sent) > 0 and "manifest.json" not in objects.objects
    objects.before = lambda method, name: None
    with pytest.raises(NotFound, match="no complete copy"):
        download(objects, tmp_path / "back")
    report = upload(kb, objects)
    assert report.transferred < report.bytes
    # The way back: the second attempt reads only what the first did not.
    objects.before = stop_after(12, "read")
    with pytest.raises(StoreError):
        download(objects, tmp_path / "back")
    assert not (tmp_path / "back").exists() and (tmp_path / "back.copying").is_dir()
    (tmp_path / "back.copying" / "rest").write_text("of another copy")
    objects.before = lambda method, name: None
    continued = download(objects, tmp_path / "back")
    assert 0 < continued.transferred < continued.bytes and answers(tmp_path / "back") == answers(kb)
    assert not (tmp_path / "back" / "rest").exists() and not (tmp_path / "back.copying").exists()


@pytest.mark.slow
def test_of_two_writers_the_second_is_refused(kb, other, objects, tmp_path):

    def during(method, name):
        """While the first copy writes its pieces, another base is copied to the same address, and this one again."""
        objects.before = lambda method, name: None
        objects.turns.release()
        try:
            with pytest.raises(Locked, match=f"by process {os.getpid()} on .*since"):
                upload(other, objects)
            with pytest.raises(Locked, match="another process is copying"):
                upload(kb, objects)
        finally:
            objects.turns.acquire()

    objects.before = lambda method, name: during(method, name) if method == "sizes" else None
    upload(kb, objects)
    assert upload(other, objects).digest == json.loads(objects.objects["manifest.json"][0])["digest"]
    # Taken over by a second writer who completes first: the first is told, and changes nothing.
    objects.before = lambda method, name: take_over(name) if method == "write_if" else None

    def take_over(name):
        if name == "manifest.json":
            objects.before = lambda method, name: None
            objects.turns.release()
            try:
                upload_base(other, objects, take_over=True, progress=lambda done, total: None)
            finally:
                objects.turns.acquire()

    add(other, 7)
    with pytest.raises(Locked, match="completed a copy at memory:// meanwhile"):
        upload(kb, objects)
    download(objects, tmp_path / "back")
    assert answers(tmp_path / "back") == answers(other)
    # Two that begin in the same moment: one conditional write decides.
    objects.before = lambda method, name: begin_other(method, name)

    def begin_other(method, name):
        if (method, name) == ("write_if", "writer.json"):
            objects.objects["writer.json"] = (b'{"writer": "another"}', object())

    with pytest.raises(Locked, match="in this moment"):
        upload(kb, objects)


@pytest.mark.slow
def test_a_killed_writer_is_followed_by_its_own_base_or_by_who_takes_over(kb, other, objects):
    def kill(method, name):
        # Also the removal of the note fails, as if the process had been killed.
        changes = method in {"write", "delete"} or (method, name) == ("read", "writer.json")
        if changes and "writer.json" in objects.objects:
            raise StoreError("gone")

    objects.before = kill
    with pytest.raises(StoreError, match="gone"):
        upload(kb, objects)
    objects.before = lambda method, name: None
    assert "writer.json" in objects.objects
    with pytest.raises(Locked, match="--take-over"):
        upload(other, objects)
    assert upload(kb, objects).digest == answers(kb)[0]
    objects.before = kill
    upload(kb, objects)  # nothing to send, but the note stays
    objects.before = lambda method, name: None
    assert "writer.json" in objects.objects
    upload_base(other, objects, take_over=True, progress=lambda done, total: None)
    assert "writer.json" not in objects.objects


def test_a_writer_that_is_killed_before_it_takes_over_is_followed_by_its_own_base(kb, objects):
    def refuse(*refused):
        def check(method, name):
            if (method, name) in refused:
                raise StoreError("gone")

        return check

    # The first leaves its note; the second is gone before it writes its own.
    for before in (
        refuse(("write_if", "manifest.json"), ("delete", "writer.json")),
        refuse(("write_if", "writer.json")),
    ):
        objects.before = before
        with pytest.raises(StoreError, match="gone"):
            upload(kb, objects)
    objects.before = lambda method, name: None
    assert "writer.json" in objects.objects and "manifest.json" not in objects.objects
    assert upload(kb, objects).digest == answers(kb)[0]
    assert "writer.json" not in objects.objects


@pytest.mark.slow
def test_nothing_of_a_removed_document_is_copied_or_stays_at_the_target(kb, objects, tmp_path):
    create_folder(kb / "trash")
    with open_private(kb / "trash" / "1.json.gz", "w") as file:
        file.write(SECRET)
    with Store.open(kb) as store:
        snapshot = store.snapshot()
        holder = snapshot.postings("text").rows_with(hash_term(SECRET.lower()))[0]
        vector = HashEncoder().encode(["unused"])  # the shape
        slots = snapshot.vectors("hash-encoder")
        vector = np.asarray(slots.slots[np.flatnonzero(slots.slot_rows == holder[0])[0]]).tobytes()
    traces = SECRET.encode(), vector, np.uint64(hash_term(SECRET.lower())).tobytes()

    def traces_left():
        stored = b"\0".join(content for content, _ in objects.objects.values())
        return [trace in stored for trace in traces]

    upload(kb, objects)
    assert traces_left() == [True, True, True]
    # A second copy is interrupted just before its commit, then the document is removed.
    add(kb, 8)
    objects.before = stop_after(1, "write_if")
    with pytest.raises(StoreError):
        upload(kb, objects)
    objects.before = lambda method, name: None
    with Store.open(kb) as store:
        store.remove(["/docs/secret.txt"])
    upload(kb, objects)
    assert traces_left() == [False, False, False]
    copy_base(str(kb), str(tmp_path / "copy"))
    copied = b"\0".join(path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert not any(trace in copied for trace in traces) and answers(tmp_path / "copy") == answers(kb)


def test_uploaded_files_of_documents_are_copied_and_others_are_not(kb, tmp_path):
    with Store.open(kb) as store:
        key = store.documents()[0].key
        store.put_location(location(f"upload:{key}/a.txt"), key)
    (kb / "uploads").mkdir()
    (kb / "uploads" / key).write_text("original")
    (kb / "uploads" / "0123").write_text("of a removed document")
    (kb / "notes.txt").write_text("not of clew")
    copy_base(str(kb), str(tmp_path / "copy"))
    assert [path.name for path in (tmp_path / "copy" / "uploads").iterdir()] == [key]
    assert not (tmp_path / "copy" / "notes.txt").exists()


def change_manifest(objects, **changes):
    content = json.loads(objects.objects["manifest.json"][0])
    content["files"][0] |= changes.pop("file", {})
    objects.objects["manifest.json"] = (json.dumps(content | changes).encode(), object())


def test_damage_is_noticed(kb, objects, tmp_path):
    upload(kb, objects)
    whole = dict(objects.objects)
    # What is read in place lies in pieces of its own, which bringing back does not fetch.
    stored = manifest.read_manifest(objects)
    own = [manifest.piece_name(piece) for file in stored.files for piece in file.pieces]
    piece = max(own, key=lambda name: len(whole[name][0]))
    for damage, error, message in (
        (lambda: objects.objects.update({piece: (b"x" * 4096, 1)}), Damaged, f"{piece} is damaged"),
        (lambda: objects.objects.pop(piece), StoreError, "was replaced meanwhile"),
        (lambda: objects.objects.update({"manifest.json": (b"[1", 1)}), Damaged, "no file of clew"),
        (lambda: change_manifest(objects, format=4), StoreError, "has the format 4; this clew knows 3"),
        (lambda: change_manifest(objects, file={"lengths": [1]}), Damaged, "no file of clew"),
        (lambda: change_manifest(objects, digest="00"), Damaged, "instead of 00"),
        *[
            (
                lambda path=path: change_manifest(objects, file={"path": path}),
                Damaged,
                "outside of its folder",
            )
            for path in ("../evil", "/etc/evil", "a/../../evil", "C:\\evil", "")
        ],
    ):
        objects.objects = dict(whole)
        damage()
        with pytest.raises(error, match=message):
            download(objects, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    # Where a piece is missing or has another length, copying again puts it right.
    objects.objects = dict(whole) | {piece: (b"short", 1)}
    assert upload(kb, objects).transferred == len(whole[piece][0])
    assert download(objects, tmp_path / "back").digest == answers(kb)[0]


def test_wrong_places_are_refused(kb, tmp_path, monkeypatch):
    for source, target, options, error, message in (
        ("s3://a/b", "s3://c/d", {}, UsageError, "one of the two must be a folder"),
        (kb, "ftp://a/b", {}, UsageError, "no address of object storage"),
        (kb, "s3://", {}, UsageError, "no address of object storage"),
        (kb, kb, {}, UsageError, "is not empty"),
        (kb, tmp_path / "x", {"take_over": True}, UsageError, "--take-over"),
        (kb, tmp_path / "x", {"shards": 2}, UsageError, "--shards"),
        (tmp_path / "none", tmp_path / "x", {}, NotFound, "no knowledge base"),
    ):
        with pytest.raises(error, match=message):
            copy_base(str(source), str(target), **options)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[scale\]'"):
        copy_base(str(kb), "s3://bucket/kb")
    assert "[scale]'" in run("copy", kb, "gs://bucket/kb", status=2).output


def test_a_removal_changes_the_pieces_around_it(tmp_path, monkeypatch):
    """Content decides where pieces end: of a MB, 1,536 bytes are taken out and 100 put in."""
    monkeypatch.setattr(manifest, "PIECE", 1 << 15)
    content = np.random.default_rng(25).bytes(1_000_000)
    changed = content[:300_000] + content[301_536:700_000] + bytes(100) + content[700_000:]
    described = []
    for part in (content, changed, b"", bytes(500_000)):
        path = tmp_path / "vectors.f32"
        path.write_bytes(part)
        file = manifest.describe_file(tmp_path, path)
        described.append(file)
        pieces = list(manifest.read_pieces(path, file.ends))
        assert b"".join(piece for _, piece in pieces) == part and file.size == len(part)
        lengths = [len(piece) for _, piece in pieces]
        assert [start for start, _ in pieces] == [file.piece_start(n) for n in range(len(lengths))]
        assert min(lengths[:-1], default=manifest.PIECE) >= manifest.PIECE // 4
        assert max(lengths, default=0) <= manifest.PIECE * 4
    sent = set(described[1].pieces) - set(described[0].pieces)
    assert len(described[1].pieces) > 8 and 0 < len(sent) <= 4
    assert described[2].ends == () and len(set(described[3].pieces[:-1])) == 1


def test_shards_stay_where_they_are_while_they_are_not_too_many():
    for rows, shards, before, expected in (
        (0, None, 0, 2048),
        (12_000, None, 0, 2048),
        (100_000, None, 0, 12_500),
        (131_072, None, 8192, 8192),
        (131_073, None, 8192, 16_385),
        (12_000, None, 6000, 6000),  # two were asked for once
        (12_000, 8, 0, 1500),
        (24_000, 8, 1500, 1500),
        (24_001, 8, 1500, 3001),
        (12_000, 1, 1500, 12_000),
        (12_000, 4, 12_000, 3000),
        (0, 4, 0, 1),
    ):
        assert choose_shard_rows(rows, shards, before) == expected, (rows, shards, before)


# The client of object storage


def memory_store():
    obstore = pytest.importorskip("obstore", reason="obstore, of the extra scale, is not installed")
    return obstore, RemoteObjects("memory:///", obstore, obstore.store.MemoryStore())


def test_objects_through_the_library(kb, tmp_path, monkeypatch):
    _, objects = memory_store()
    assert objects.read("a") is None and objects.sizes("pieces") == {}
    assert objects.write_if("a", b"1", None) and not objects.write_if("a", b"2", None)
    assert objects.write_if("a", b"1", None)  # the answer to the first was lost
    content, version = objects.read("a")
    assert (
        content == b"1" and objects.write_if("a", b"2", version) and not objects.write_if("a", b"3", version)
    )
    objects.write("pieces/b", b"123")
    assert objects.sizes("pieces") == {"pieces/b": 3}
    objects.delete(["pieces/b", "pieces/none"])
    assert objects.sizes("pieces") == {}
    upload(kb, objects)
    download(objects, tmp_path / "back")
    assert answers(tmp_path / "back") == answers(kb)


def test_errors_of_the_library(monkeypatch):
    obstore, objects = memory_store()
    monkeypatch.setattr(object_store, "PAUSE", 0.001)
    errors, calls = obstore.exceptions, []
    for error, attempts in ((errors.PermissionDeniedError, 1), (errors.GenericError, 4)):
        calls.clear()

        def fail(*_, error=error):
            calls.append(error)
            raise error("line one\nline two")

        monkeypatch.setattr(obstore, "put", fail)
        with pytest.raises(StoreError, match=r"memory:/// cannot be used: line one\. Check the address"):
            objects.write("a", b"1")
        assert len(calls) == attempts
    monkeypatch.setattr(
        obstore, "put", lambda *_, **__: (_ for _ in ()).throw(errors.AlreadyExistsError("409"))
    )
    with pytest.raises(StoreError, match="cannot be used"):
        objects.write_if("a", b"1", None)  # refused for ever, although nothing is there
    with pytest.raises(StoreError, match="cannot be used"):
        open_object_store("az://a")


# S3, over HTTP


@pytest.mark.slow
def test_s3_there_and_back_by_the_command_line(kb, object_server, address, tmp_path):
    out = run("copy", kb, address).output
    assert "copied" in out and f"digest {answers(kb)[0]}" in out
    report = json.loads(run("copy", kb, address, "--json").stdout)
    assert report["transferred"] == 0 and report["digest"] == answers(kb)[0]
    run("copy", address, tmp_path / "back")
    assert answers(tmp_path / "back") == answers(kb)
    refused = run("copy", f"s3://{object_server.bucket}/nowhere", tmp_path / "other", status=2)
    assert "no complete copy" in refused.output
    assert "there is no bucket" in run("copy", kb, "s3://no-such-bucket/x", status=2).output


@pytest.mark.slow
def test_s3_faults_lose_nothing(kb, object_server, address, tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "PAUSE", 0.01)
    monkeypatch.setattr(manifest, "PIECE", 1 << 14)
    writes = Counter()

    def refuse_twice(method, path, number):
        """Refuse the first two writes of each object, as where another writer is at it."""
        writes[path] += method == "PUT"
        return 409 if method == "PUT" and writes[path] <= 2 else None

    for number, fault in enumerate(
        (
            lambda method, path, n: 503 if n % 5 == 0 else None,
            lambda method, path, n: "lost" if method == "PUT" and n % 2 == 0 else None,
            refuse_twice,
            lambda method, path, n: 500 if method == "GET" and n % 5 == 0 else None,
        )
    ):
        object_server.fault = fault
        copy_base(str(kb), f"{address}/{number}")
        copy_base(f"{address}/{number}", str(tmp_path / str(number)))
        object_server.fault = None
        assert answers(tmp_path / str(number)) == answers(kb)
    object_server.delay = lambda method, path: 1.0 if "list-type" in path else 0.0
    assert copy_base(str(kb), f"{address}/0").transferred == 0
    # Every ninth request is answered after the client has given it up; what it asked for is still done, late.
    monkeypatch.setenv("AWS_TIMEOUT", "1s")
    numbers = itertools.count(1)
    object_server.delay = lambda method, path: 2.5 if next(numbers) % 9 == 0 else 0.0
    began = time.perf_counter()
    copy_base(str(kb), f"{address}/late")
    copy_base(f"{address}/late", str(tmp_path / "late"))
    assert time.perf_counter() - began > 2.0
    object_server.delay = None
    assert answers(tmp_path / "late") == answers(kb)


@pytest.mark.slow
def test_s3_has_one_winner_of_each_conditional_write(object_server, address):
    race_for_writes([open_object_store(address) for _ in range(6)], 8)


@pytest.mark.slow
def test_s3_copies_killed_at_any_time_continue(kb, object_server, address, tmp_path):
    command = f"from clew.knowledge_base.base_copy import copy_base; copy_base({str(kb)!r}, {address!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    object_server.delay = lambda method, path: 0.05
    for killed_at in (1, 2, 5, 9, 14):  # requests
        before = len(object_server.requests)
        child = subprocess.Popen([sys.executable, "-c", command], env=environment, stderr=subprocess.DEVNULL)
        while len(object_server.requests) < before + killed_at and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
        with pytest.raises(NotFound):
            copy_base(address, str(tmp_path / "back"))
    object_server.delay = None
    copy_base(str(kb), address)
    copy_base(address, str(tmp_path / "back"))
    assert answers(tmp_path / "back") == answers(kb)


@pytest.mark.slow
def test_s3_two_bases_at_once(kb, other, object_server, address, tmp_path):
    digests = {str(folder): answers(folder)[0] for folder in (kb, other)}
    object_server.delay = lambda method, path: 0.02
    outcomes = {}

    def copy(folder):
        try:
            outcomes[folder] = copy_base(folder, address).digest
        except Locked as error:
            outcomes[folder] = str(error)

    threads = [threading.Thread(target=copy, args=(folder,)) for folder in digests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    object_server.delay = None
    winners = [folder for folder, outcome in outcomes.items() if outcome == digests[folder]]
    losers = [outcome for folder, outcome in outcomes.items() if folder not in winners]
    assert winners and all("a copy to" in line or "in this moment" in line for line in losers)
    copy_base(address, str(tmp_path / "back"))
    assert answers(tmp_path / "back")[0] in {digests[folder] for folder in winners}
