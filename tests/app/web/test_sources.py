"""Folders that a project follows, web pages and pasted text: added through the server, read by its worker."""

from __future__ import annotations

import io
import json
import os
import signal

import pytest

import clew
from clew.app.web.sources.manager import FILE, SourceManager
from clew.app.web.sources.worker import SourceWorker
from page_reader import fetch_page
from serve_app import ServedApp, waited_for

WEIR = "# The weir\n\nThe weir at Oxlade was raised by Ines Harrow in 1911.\n"


def source(app, id):
    return next(one for one in app.get(f"{app.api}/sources")[1]["sources"] if one["id"] == id)


def state(app, id):
    return source(app, id)["state"]


def names(app):
    return sorted(document["document"] for document in app.get(f"{app.api}/documents")[1]["documents"])


def test_what_cannot_be_a_folder_to_follow_says_why(own, tmp_path) -> None:
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    places = ("papers", str(tmp_path / "nothing"), str(folder / "broken.pdf"), str(own.settings.projects))
    own.settings.projects.mkdir(exist_ok=True)
    for place in places:
        status, problem = own.post(f"{own.api}/sources", {"kind": "folder", "place": place})
        assert status in {400, 404} and problem["error"]
    # Who is not the person at this machine can neither add a folder nor look for one.
    proxied = {"X-Forwarded-For": "203.0.113.7"}
    assert own.post(f"{own.api}/sources", {"kind": "folder", "place": "/etc"}, **proxied)[0] == 403
    assert own.get(f"{own.api}/folders?start=/", **proxied)[0] == 403
    assert own.get(f"{own.api}/folders?start={folder}/o")[1] == {"folders": [str(folder / "old")]}
    assert own.get(f"{own.api}/folders?start=papers")[1] == {"folders": []}
    assert own.get(f"{own.api}/sources")[1] == {"sources": []}


def test_a_system_folder_is_followed_only_where_that_is_meant(own, tmp_path, monkeypatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to("/etc")
    monkeypatch.setenv("HOME", str(home))
    for place in ("/", "/etc", "/usr/", "/usr/../var", "/proc", "/sys", "/dev", "~", str(tmp_path / "link")):
        status, problem = own.post(f"{own.api}/sources", {"kind": "folder", "place": place})
        assert status == 400 and "folder" in problem["error"] and "anyway" in problem["hint"], place
    assert own.get(f"{own.api}/sources")[1] == {"sources": []}


@pytest.mark.slow
def test_the_home_folder_is_followed_with_anyway(own, tmp_path, monkeypatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.md").write_text(WEIR)
    monkeypatch.setenv("HOME", str(home))
    own.base = own.post("/api/bases", {"title": "Anyway"})[1]["base"]
    status, reply = own.post(f"{own.api}/sources", {"kind": "folder", "place": "~", "anyway": True})
    assert status == 202 and reply["place"] == str(home)
    waited_for(lambda: "weir.md" in names(own))
    # It is followed in the same way by the server that is started next.
    kept = [json.loads(file.read_text()) for file in own.settings.projects.glob(f"*/{FILE}")]
    assert [True] in [[source["anyway"] for source in sources] for sources in kept]
    assert own.delete(f"{own.api}/sources/{reply['id']}")[0] == 200


@pytest.mark.slow
def test_a_folder_is_followed_with_its_subfolders(own, tmp_path) -> None:
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "weir.md").write_text(WEIR)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    own.base = own.post("/api/bases", {"title": "Followed"})[1]["base"]
    status, reply = own.post(
        f"{own.api}/sources", {"kind": "folder", "place": str(folder), "tags": ["river"]}
    )
    assert status == 202
    waited_for(lambda: state(own, reply["id"]).get("files") == 1)
    assert state(own, reply["id"])["failed"][0][0] == "broken.pdf" and names(own) == ["weir.md"]
    [document] = own.get(f"{own.api}/documents")[1]["documents"]
    assert document["tags"] == ["river"] and document["folders"] == []
    page = fetch_page(own, f"/b/{own.base}/")
    assert "followed, 1 file" in page.text and "1 file was not added" in page.text
    assert own.post(f"{own.api}/sources", {"kind": "folder", "place": str(folder)})[0] == 400
    assert own.delete(f"{own.api}/sources/{reply['id']}", **{"Via": "1.1 proxy"})[0] == 403
    assert own.delete(f"{own.api}/sources/{reply['id']}")[0] == 200 and names(own) == ["weir.md"]
    assert own.get(f"{own.api}/sources")[1] == {"sources": []}
    assert own.delete(own.api)[0] == 200


@pytest.mark.parametrize("path", ["", "?find=a&tag=lease"])
def test_a_source_of_which_nothing_was_read_has_its_place_on_the_page(path: str, own, tmp_path) -> None:
    own.base = own.post("/api/bases", {"title": "Paused"})[1]["base"]
    id = own.post(f"{own.api}/sources", {"kind": "folder", "place": str(tmp_path)})[1]["id"]
    assert own.json("PATCH", f"{own.api}/sources/{id}", {"paused": True})[0] == 200
    waited_for(lambda: state(own, id)["state"] == "paused")
    status, _, content = own.request("GET", f"/b/{own.base}/{path}")
    assert status == 200 and str(tmp_path) in content.decode()
    assert own.delete(own.api)[0] == 200


@pytest.mark.slow
def test_what_changes_and_disappears_in_a_followed_folder(own, tmp_path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "weir.md").write_text(WEIR)
    own.base = own.post("/api/bases", {"title": "Changing"})[1]["base"]
    id = own.post(f"{own.api}/sources", {"kind": "folder", "place": str(folder)})[1]["id"]
    waited_for(lambda: state(own, id).get("files") == 1)
    assert "Harrow" in own.ask("Who raised the weir at Oxlade?")["answer"]
    (folder / "weir.md").write_text(WEIR.replace("Ines Harrow", "Otto Pell"))
    (folder / "mill.md").write_text("# The mill\n\nThe mill burned in 1920.\n")
    waited_for(lambda: state(own, id).get("files") == 2)
    waited_for(lambda: "Pell" in own.ask("Who raised the weir at Oxlade?")["answer"])
    (folder / "mill.md").unlink()
    waited_for(lambda: names(own) == ["weir.md"])
    [entry] = own.get(f"{own.api}/trash")[1]["documents"]
    assert own.post(f"{own.api}/trash/restore", {"ids": [entry["id"]]}) == (200, {"restored": 1})
    assert names(own) == ["mill.md", "weir.md"]
    # A worker that is killed is started again; one that is paused does nothing.
    process = own.serving.app.state.server.sources._process
    os.kill(process.pid, signal.SIGKILL)
    (folder / "lock.md").write_text("# The lock\n\nThe lock has two gates.\n")
    waited_for(lambda: "lock.md" in names(own))
    assert own.json("PATCH", f"{own.api}/sources/{id}", {"paused": True})[0] == 200
    waited_for(lambda: state(own, id)["state"] == "paused")
    folder.rename(tmp_path / "elsewhere")
    assert own.json("PATCH", f"{own.api}/sources/{id}", {"paused": False})[0] == 200
    waited_for(lambda: state(own, id)["state"] == "missing")
    assert len(names(own)) == 3
    assert own.delete(own.api)[0] == 200


@pytest.mark.slow
def test_sources_are_followed_again_after_the_server_ended(tmp_path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "weir.md").write_text(WEIR)
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        id = app.post(f"{app.api}/sources", {"kind": "folder", "place": str(folder)})[1]["id"]
        waited_for(lambda: state(app, id).get("files") == 1)
    (folder / "mill.md").write_text("# The mill\n\nThe mill burned in 1920.\n")
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        waited_for(lambda: names(app) == ["mill.md", "weir.md"])


def test_text_is_pasted_and_a_page_that_must_not_be_read_says_why(own) -> None:
    own.base = own.post("/api/bases", {"title": "Pasted"})[1]["base"]
    status, reply = own.post(f"{own.api}/texts", {"text": WEIR})
    assert status == 202 and own.ended(reply["upload"]["id"])["state"] == "done"
    assert names(own) == ["The weir.md"]
    titled = own.post(f"{own.api}/texts", {"text": "The lamp is lit at dusk.", "title": "Lamp/rules"})[1]
    assert own.ended(titled["upload"]["id"])["state"] == "done" and "Lamp rules.md" in names(own)
    assert own.post(f"{own.api}/texts", {"text": " "})[0] == 422
    # An address of this machine is refused, as by clew add.
    status, reply = own.post(
        f"{own.api}/sources", {"kind": "page", "place": f"http://127.0.0.1:{own.port}/login"}
    )
    waited_for(lambda: state(own, reply["id"])["state"] == "failed")
    assert "on this machine" in state(own, reply["id"])["error"]
    assert own.json("PATCH", f"{own.api}/sources/{reply['id']}", {"again": True})[0] == 200
    waited_for(lambda: source(own, reply["id"])["read"])
    for place in ("ftp://example.org/a", "file:///etc/passwd", "https://"):
        assert own.post(f"{own.api}/sources", {"kind": "page", "place": place})[0] == 400
    assert own.json("PATCH", f"{own.api}/sources/nothing", {"again": True})[0] == 404
    assert own.delete(f"{own.api}/sources/nothing")[0] == 404
    assert own.delete(own.api)[0] == 200


@pytest.mark.parametrize(
    "place", ["http://me:secret@127.0.0.1:9/a", "https://me:secret@example.org", "me:secret@example.org/a"]
)
def test_the_password_of_an_address_is_not_stored(own, place, tmp_path) -> None:
    status, problem = own.post(f"{own.api}/sources", {"kind": "page", "place": place})
    assert status == 400 and "password" in str(problem) and "secret" not in str(problem)
    assert own.get(f"{own.api}/sources")[1]["sources"] == []
    with clew.open(tmp_path / "base", create=True) as base:
        address = place if "//" in place else f"https://{place}"
        report = base.add([address], workers=1)
        assert "password" in report.failed[0].reason and "secret" not in str(report)
        assert base.documents() == []
    assert not any(b"secret" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_password_that_an_earlier_version_stored_is_removed(tmp_path) -> None:
    record = {
        "id": "1",
        "kind": "page",
        "place": "http://me:secret@127.0.0.1:9/a",
        "tags": ["t"],
        "read": True,
    }
    (tmp_path / FILE).write_text(json.dumps([record]))
    manager = SourceManager({}, lambda base, fresh: None, read_only=False)
    try:
        manager.add_base("kb", tmp_path)
        assert manager.sources("kb")[0]["place"] == "http://127.0.0.1:9/a"
    finally:
        manager.close()
    assert "secret" not in (tmp_path / FILE).read_text()


def test_a_damaged_list_of_sources_is_no_reason_not_to_start(tmp_path) -> None:
    (tmp_path / FILE).write_text("[{")
    manager = SourceManager({"kb": tmp_path}, lambda base, fresh: None, read_only=False)
    assert manager.sources("kb") == [] and manager.sources("other") == []
    (tmp_path / FILE).write_text(json.dumps([{"id": "1"}]))
    assert SourceManager({"kb": tmp_path}, lambda base, fresh: None, read_only=False).sources("kb") == []


def messages(out):
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    out.seek(0)
    out.truncate()
    return lines


def test_the_worker_reads_what_is_new_and_tells_the_state_of_each_source(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("clew.app.web.sources.worker.QUIET", 0.0)
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "weir.md").write_text(WEIR)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    clew.open(tmp_path / "kb", create=True).close()
    out = io.StringIO()
    worker = SourceWorker(out)
    kept = {
        "id": "a",
        "kind": "folder",
        "place": str(folder),
        "tags": ["river"],
        "paused": False,
        "anyway": False,
    }
    gone = kept | {"id": "b", "place": str(tmp_path / "gone")}
    page = {"id": "c", "kind": "page", "place": "http://127.0.0.1:9/", "tags": [], "read": False}
    worker.follow("base", str(tmp_path / "kb"), [kept, gone, page, kept | {"id": "d", "paused": True}])
    worker.look()
    states = {}
    for message in messages(out):
        states.setdefault(message["id"], []).append(message["state"])
    assert states["b"] == [{"state": "missing"}] and states["d"] == [{"state": "paused"}]
    assert states["c"][-1]["state"] == "failed" and states["c"][-1]["error"]
    last = states["a"][-1]
    assert (last["state"], last["files"], last["failures"]) == ("watching", 1, 1)
    assert last["failed"][0][0] == "broken.pdf"
    with clew.open(tmp_path / "kb") as base:
        assert [document.name for document in base.documents()] == ["weir.md"]
        assert base.search("Oxlade weir", where="tag = river")
    # Nothing has changed: nothing is told.
    worker.look()
    assert messages(out) == []
    worker.follow("base", str(tmp_path / "kb"), [])
    assert messages(out) == [{"base": "base", "closed": True}]
