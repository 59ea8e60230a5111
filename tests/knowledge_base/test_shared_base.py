"""A base in object storage that several processes change: turns, whole changes, writers that were killed."""

import json
import threading

import pytest

from clew.core.errors import Locked, NotFound
from clew.knowledge_base import base_copy, shared_base
from clew.knowledge_base.base_copy import upload_base
from clew.knowledge_base.shared_base import SharedBase
from clew.knowledge_base.trash import Trash
from clew.store.object_store import FolderObjects
from clew.store.remote.manifest import WRITER
from clew.store.remote.store import RemoteStore
from clew.store.store import Store
from kb_documents import HashEncoder, document, location


@pytest.fixture
def objects(tmp_path):
    objects = FolderObjects(tmp_path / "copy")
    with Store.open(tmp_path / "first", create=True) as store:
        store.put_document(document(0), location("/docs/0.txt"))
        store.encode(HashEncoder())
    upload_base(tmp_path / "first", objects, take_over=False, progress=lambda done, total: None)
    return objects


def stored_paths(objects):
    reader = RemoteStore(objects)
    paths = sorted(reader.locations())
    reader.close()
    return paths


def add(shared, number, **options):
    with shared.change(**options) as base:
        base.store.put_document(document(number), location(f"/docs/{number}.txt"))
        base.store.encode(HashEncoder())


@pytest.mark.slow
def test_changes_of_several_processes_add_up(objects, tmp_path):
    one, other = SharedBase(objects, tmp_path / "a"), SharedBase(objects, tmp_path / "b")
    add(one, 1)
    add(one, 2)  # the working copy is the present state already
    add(other, 3)
    add(one, 4)
    with other.change() as base:
        base.store.remove(["/docs/2.txt"])
    assert stored_paths(objects) == [f"/docs/{number}.txt" for number in (0, 1, 3, 4)]
    # As if all had been added in one folder.
    with Store.open(tmp_path / "twin", create=True) as twin:
        for number in (4, 3, 1, 0):
            twin.put_document(document(number), location(f"/docs/{number}.txt"))
        reader = RemoteStore(objects)
        assert reader.digest() == twin.digest()
        assert reader.snapshot().vectors("hash-encoder").missing_count() == 0
        reader.close()
    # What is put aside stays with the machine, through other people's changes.
    with one.change() as base:
        Trash(base).add(["/docs/3.txt"])
    add(other, 5)
    with one.change() as base:
        assert [entry.path for entry in Trash(base).documents()] == ["/docs/3.txt"]
    assert objects.read(WRITER) is None


def test_a_change_is_whole_and_writers_take_turns(objects, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_base, "_PAUSE", 0.01)
    one, other = SharedBase(objects, tmp_path / "a"), SharedBase(objects, tmp_path / "b")
    before = objects.read("manifest.json")
    with pytest.raises(ZeroDivisionError), one.change() as base:
        base.store.put_document(document(1), location("/docs/1.txt"))
        with pytest.raises(Locked, match="is being written by process"):
            add(other, 2)
        raise ZeroDivisionError
    assert objects.read("manifest.json") == before
    # What was begun is not in the next change.
    add(one, 3)
    assert stored_paths(objects) == ["/docs/0.txt", "/docs/3.txt"]
    threads = [
        threading.Thread(target=add, args=(SharedBase(objects, tmp_path / f"t{n}"), n), kwargs={"wait": 60.0})
        for n in range(4, 8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored_paths(objects)) == 6
    # Of two that disregard each other's note, the second to commit is refused.
    with pytest.raises(Locked, match="nothing was changed there"), one.change() as base:
        base.store.put_document(document(8), location("/docs/8.txt"))
        upload_base(tmp_path / "first", objects, take_over=True, progress=lambda done, total: None)
    assert stored_paths(objects) == ["/docs/0.txt"]
    with pytest.raises(NotFound, match="no complete copy"):
        add(SharedBase(FolderObjects(tmp_path / "nowhere"), tmp_path / "n"), 1)


@pytest.mark.slow
def test_the_note_of_a_writer_that_was_killed_is_taken_over(objects, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_base, "_PAUSE", 0.01)
    monkeypatch.setattr(shared_base, "STALE", 0.2)
    shared = SharedBase(objects, tmp_path / "a")
    note = {"writer": "0", "process": 1, "host": "elsewhere", "since": "then"}
    objects.write(WRITER, json.dumps(note).encode())
    with pytest.raises(Locked, match="process 1 on elsewhere"):
        add(shared, 1)
    add(shared, 1, wait=30.0)
    assert stored_paths(objects) == ["/docs/0.txt", "/docs/1.txt"] and objects.read(WRITER) is None
    # One that lives shows it.
    monkeypatch.setattr(base_copy, "BEAT", 0.02)
    other = SharedBase(objects, tmp_path / "b")
    with shared.change() as base:
        with pytest.raises(Locked):
            add(other, 2, wait=0.6)
        base.store.put_document(document(3), location("/docs/3.txt"))
    assert len(stored_paths(objects)) == 3
