"""Uploads as they arrive: in pieces of unknown number, slowly, into a spool that is full, beside one another."""

import http.client
import json
from contextlib import closing
from dataclasses import replace

import pytest

from clew.app.web.errors import ServerBusy
from clew.app.web.settings import Limits, Settings
from clew.app.web.uploads.manager import _LISTED, UploadManager
from clew.app.web.uploads.spool import FAILED, new_upload
from serve_app import BOUNDARY, FILMS, ServedApp, multipart

HEADERS = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def sent_in_pieces(app, pieces):
    """Send a body that does not say how long it is; return status and JSON."""
    with closing(http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)) as connection:
        connection.request("POST", f"{app.api}/uploads", pieces, HEADERS, encode_chunked=True)
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), json.loads(reply.read())


@pytest.mark.slow
def test_an_upload_that_does_not_say_its_size_is_counted_as_it_arrives(tmp_path):
    limits = Limits(spool_bytes=200_000)
    with ServedApp(tmp_path / "kb", limits=limits, encoder="none") as app:
        small = multipart(("small.md", b"# Small\n\nIt has room.\n"))
        status, _, text = sent_in_pieces(app, iter([small[:50], small[50:]]))
        assert status == 202 and app.ended(text["uploads"][0]["id"])["state"] == "done"
        large = multipart(("large.md", b"x" * 300_000))
        pieces = (large[at : at + 50_000] for at in range(0, len(large), 50_000))
        status, headers, text = sent_in_pieces(app, pieces)
        assert status == 429 and "more are not taken on" in text["error"] and int(headers["retry-after"]) > 0
        assert not list((tmp_path / "kb" / "spool").iterdir())
        # What was refused is counted no longer.
        assert app.upload("after.md", b"# After\n\nThere is room again.\n")["state"] == "done"


@pytest.mark.slow
def test_an_upload_of_which_nothing_more_comes_is_given_up(tmp_path):
    with ServedApp(tmp_path / "kb", limits=Limits(body_seconds=0.3), encoder="none") as app:
        body = multipart(("half.md", b"# Half\n\nThe rest never comes.\n"))
        with closing(http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)) as connection:
            connection.putrequest("POST", f"{app.api}/uploads")
            for name, value in (HEADERS | {"Content-Length": str(len(body))}).items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(body[:-60])  # in the middle of the file
            reply = connection.getresponse()
            assert reply.status == 408 and b"nothing more of the request came" in reply.read()
        assert not list((tmp_path / "kb" / "spool").iterdir())
        assert app.upload("whole.md", b"# Whole\n\nAll of it came.\n")["state"] == "done"


@pytest.fixture
def uploads(tmp_path):
    (tmp_path / "kb").mkdir()
    settings = Settings({"kb": tmp_path / "kb"}, limits=Limits(arriving=2, spool_bytes=1_000))
    result = UploadManager(settings, lambda base: None)
    yield result
    result.close()


def add_upload(uploads, name, data=b"text"):
    id, file = uploads.spools["kb"].begin()
    with file:
        file.write(data)
    return new_upload(id, "document", name, len(data))


def test_only_so_many_uploads_arrive_at_once(uploads):
    with uploads.reserve_space("kb", 0) as take, uploads.reserve_space("kb", 0):
        take(900)
        with (
            pytest.raises(ServerBusy, match="2 uploads are arriving already"),
            uploads.reserve_space("kb", 0),
        ):
            pass
    with pytest.raises(ServerBusy, match="more are not taken on"), uploads.reserve_space("kb", 1_001):
        pass
    # What was refused holds no place.
    with uploads.reserve_space("kb", 1_000), uploads.reserve_space("kb", 1_000):
        pass


def test_a_file_that_cannot_be_stored_takes_no_other_with_it(uploads):
    first, lost, last = (add_upload(uploads, f"{name}.md") for name in ("first", "lost", "last"))
    uploads.spools["kb"].discard(lost.id)  # the disk has lost it
    [(upload, error)] = uploads.accept("kb", [first, lost, last])
    assert upload == lost and error.status == 507
    assert [item["name"] for item in uploads.all_uploads("kb")] == ["first.md", "last.md"]
    assert {path.stem for path in uploads.spools["kb"].path.iterdir()} == {first.id, last.id}


def test_of_many_files_that_could_not_be_read_the_oldest_are_forgotten(tmp_path, uploads):
    folder = uploads.spools["kb"].path
    folder.mkdir()
    for number in range(_LISTED + 1):
        failed = replace(new_upload(f"{number:024x}", "document", "x", 1), state=FAILED, uploaded=number)
        (folder / f"{failed.id}.json").write_text(json.dumps(failed.to_dict()), encoding="utf-8")
    again = UploadManager(Settings({"kb": tmp_path / "kb"}), lambda base: None)
    new = add_upload(again, "new.md")
    assert again.accept("kb", [new]) == []
    stored = again.all_uploads("kb")
    assert len(stored) == _LISTED + 1 and stored[0]["uploaded"] == 1 and stored[-1]["id"] == new.id
    assert not (folder / f"{0:024x}.json").exists()
    again.close()


@pytest.mark.slow
def test_two_graph_files_of_one_name_are_not_one_graph(tmp_path):
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        status, reply = app.send_files(("films.tsv", FILMS), ("films.csv", b"a,b,c\n"), to="graphs")
        assert status == 202 and [upload["name"] for upload in reply["uploads"]] == ["films.tsv"]
        assert "there is a graph named 'films'" in reply["refused"][0]["error"]
        assert app.ended(reply["uploads"][0]["id"])["state"] == "done"
        assert app.delete(f"{app.api}/graphs/films")[0] == 200
        assert app.upload("films.tsv", FILMS, to="graphs")["state"] == "done"
        assert [graph["graph"] for graph in app.get(f"{app.api}/graphs")[1]["graphs"]] == ["films"]
