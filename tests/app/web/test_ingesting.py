"""The process that reads uploads, where something else than a file is at fault: nothing that was accepted is lost."""

import io
import json
from contextlib import closing
from dataclasses import replace

import pytest

import clew
from clew.app.web.uploads.spool import INDEXING, Spool, new_upload
from clew.app.web.uploads.worker import ServerCommands, UploadWorker
from clew.core.errors import StoreError
from serve_app import FILMS, ServedApp, waited_for

SECONDS, MEMORY = 60.0, 1 << 30


@pytest.fixture
def work(tmp_path, without_encoder):
    commands = ServerCommands()
    commands.may_write.set()
    with clew.open(tmp_path / "kb", create=True) as base:
        result = UploadWorker("kb", base, Spool(tmp_path / "kb"), io.StringIO(), commands)
        with closing(result.resources):
            yield result


def accept_upload(work, name, data, kind="document", **more):
    id, file = work.spool.begin()
    with file:
        file.write(data)
    work.spool.accept(replace(new_upload(id, kind, name, len(data)), **more))
    return id


def last_told(work):
    return json.loads(work.out.getvalue().splitlines()[-1])["upload"]


@pytest.mark.slow
def test_a_file_waits_as_long_as_the_base_cannot_be_written_to(work):
    id = accept_upload(work, "mill.md", b"# Mill\n\nThe mill grinds barley.\n")
    blocked = work.base.path / "uploads"
    blocked.write_text("no folder, so nothing can be kept in it")
    for _ in range(5):
        (waiting,) = work.spool.waiting_uploads()
        with pytest.raises(StoreError, match="the base cannot be written to"):
            work.read_upload(waiting, SECONDS, MEMORY)
        assert last_told(work)["state"] == "waiting" and "cannot be written to" in last_told(work)["error"]
        assert work.spool.data_path(id).exists()
    blocked.unlink()
    work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    assert last_told(work)["state"] == INDEXING and not last_told(work)["error"]


def test_what_the_spool_cannot_be_told_is_no_fault_of_the_file_either(work):
    id = accept_upload(work, "mill.md", b"# Mill\n\nThe mill grinds barley.\n")
    blocked = work.spool.path / f"{id}.new"
    blocked.mkdir()
    with pytest.raises(StoreError, match="the base cannot be written to"):
        work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    blocked.rmdir()
    (work.base.path / "uploads").write_text("no folder")
    for tries in range(1, 6):
        with pytest.raises(StoreError):
            work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
        # A disk that took the note of the beginning, and not that of the end.
        work.spool.write_record(replace(work.spool.waiting_uploads()[0], tries=tries))
    (work.base.path / "uploads").unlink()
    work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    assert last_told(work)["state"] == INDEXING


@pytest.mark.slow
def test_a_graph_waits_as_long_as_the_base_cannot_be_written_to(work, tmp_path):
    id = accept_upload(work, "films.tsv", FILMS, "graph", graph="films", form="tsv")
    database = work.base.path / "base.sqlite"
    away = database.rename(tmp_path / "away.sqlite")
    database.write_text("no database")
    with pytest.raises(StoreError):
        work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    assert last_told(work)["state"] == "waiting" and work.spool.data_path(id).exists()
    away.replace(database)
    work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    assert last_told(work)["state"] == "done" and not work.spool.all_uploads()


def next_server(work):
    """The work of a process that starts over the same base, where the one of ``work`` was killed."""
    return UploadWorker("kb", work.base, work.spool, io.StringIO(), work.commands)


def test_a_document_that_is_in_the_base_is_not_read_again_however_often_the_server_is_killed(work):
    id = accept_upload(work, "mill.md", b"# Mill\n\nThe mill grinds barley.\n")
    work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    for _ in range(5):
        later = next_server(work)
        later.read_upload(later.spool.waiting_uploads()[0], SECONDS, MEMORY)
        assert last_told(later)["state"] == INDEXING and last_told(later)["key"] and not later.readers
    later.catch_up()
    assert last_told(later)["state"] == "done" and not work.spool.all_uploads()
    assert not work.spool.data_path(id).exists() and work.base.search("barley")


@pytest.mark.slow
def test_a_commit_that_a_power_cut_took_is_made_again(work):
    accept_upload(work, "mill.md", b"# Mill\n\nThe mill grinds barley.\n")
    work.read_upload(work.spool.waiting_uploads()[0], SECONDS, MEMORY)
    work.base.remove(last_told(work)["key"])
    later = next_server(work)
    with closing(later.resources):
        later.read_upload(later.spool.waiting_uploads()[0], SECONDS, MEMORY)
    assert [document.name for document in work.base.documents()] == ["mill.md"]


@pytest.mark.slow
def test_a_document_that_is_removed_before_it_is_searchable_does_not_come_back(tmp_path, without_encoder):
    clew.open(tmp_path / "kb", create=True).close()
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        key = app.upload("mill.md", b"# Mill\n\nThe mill grinds barley.\n")["key"]
        with app.serving.app.state.server.uploads.pause_worker():
            # As the process that reads leaves it where more files wait: committed, and in the spool still.
            spool = Spool(tmp_path / "kb")
            id, file = spool.begin()
            with file:
                file.write(b"# Mill\n\nThe mill grinds barley.\n")
            spool.accept(replace(new_upload(id, "document", "mill.md", 40), state=INDEXING, key=key))
            assert app.delete(f"{app.api}/documents/{key}")[0] == 200
            assert not list(spool.path.iterdir())
    with ServedApp(tmp_path / "kb", encoder="none") as again:
        assert again.upload("ferry.md", b"# Ferry\n\nThe ferry carries nine.\n")["state"] == "done"
        assert [document["document"] for document in again.get(f"{again.api}/documents")[1]["documents"]] == [
            "ferry.md"
        ]


@pytest.mark.slow
def test_a_file_during_which_the_server_ends_again_and_again_is_not_given_up(tmp_path):
    slow = b"".join(b"Line %d of a very long text.\n\n" % number for number in range(500_000))
    for start in range(5):
        with ServedApp(tmp_path / "kb", encoder="none") as app:
            if not start:
                app.send_files(("slow.md", slow))

            def reading(app=app):
                (upload,) = app.get(f"{app.api}/uploads")[1]["uploads"]
                assert upload["state"] in {"waiting", "reading"}, upload
                return upload["state"] == "reading"

            waited_for(reading)
        (stored,) = Spool(tmp_path / "kb").all_uploads()
        assert stored.tries == 0 and Spool(tmp_path / "kb").data_path(stored.id).stat().st_size == len(slow)
