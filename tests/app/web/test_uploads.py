"""Uploads: read by a process of their own, each refused with its reason, none lost."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import clew
from bad_files import BAD_FILES, good_docx, good_pdf
from clew.app.web.settings import Limits
from clew.app.web.uploads import worker
from clew.app.web.uploads.spool import Spool, display_name, new_upload
from clew.core.errors import UsageError
from clew.parse.documents.sandbox import confinement
from parse_readers import escape_beside_base
from serve_app import BOUNDARY, QUESTION, ServedApp, multipart, waited_for


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server over an empty base of its own; documents of at most a megabyte."""
    folder = tmp_path_factory.mktemp("uploads") / "kb"
    limits = Limits(files=100, file_bytes=1 << 20, upload_bytes=8 << 20, parse_seconds=20.0)
    with ServedApp(folder, limits=limits) as served:
        yield served


def names(app):
    return {document["document"] for document in app.get(f"{app.api}/documents")[1]["documents"]}


@pytest.mark.slow
def test_files_of_several_formats_are_read_and_found(own) -> None:
    # From the first event on, so that none is missed.
    followed = own.events(f"{own.api}/uploads/events", **{"Last-Event-ID": "0"})
    files = [
        ("mill.md", b"# Mill\n\nThe mill at Oxlade grinds barley.\n"),
        ("ferry.docx", good_docx("The ferry at Oxlade carries nine passengers.")),
        ("line.pdf", good_pdf()),
        ("tolls.csv", b"cargo,toll\ngeese,2\nbarley,5\n"),
    ]
    listened = threading.Thread(target=lambda: messages.extend(_until_done(followed, 4)))
    messages: list = []
    listened.start()
    status, reply = own.send_files(*files)
    assert status == 202 and not reply["refused"] and len(reply["uploads"]) == 4
    done = [own.ended(upload["id"]) for upload in reply["uploads"]]
    assert [item["state"] for item in done] == ["done"] * 4
    listened.join(60)
    mine = [item["state"] for item in messages if item["id"] == reply["uploads"][0]["id"]]
    assert mine[-1] == "done" and "reading" in mine
    assert {name for name, _ in files} <= names(own)
    titles = {
        document["document"]: document["title"]
        for document in own.get(f"{own.api}/documents")[1]["documents"]
    }
    assert titles["tolls.csv"] == "tolls"
    assert own.ask("What does the mill at Oxlade grind?")["evidence"][0]["document"] == "mill.md"
    keys = {
        document["document"]: document["key"] for document in own.get(f"{own.api}/documents")[1]["documents"]
    }
    page = own.request("GET", f"{own.api}/documents/{keys['line.pdf']}/pages/1.png?scale=0.5")
    assert page[0] == 200 and page[2].startswith(b"\x89PNG")


def _until_done(events, count):
    done = 0
    for event, data in events:
        if event == "upload":
            yield data
            done += data["state"] == "done"
        if done == count:
            return


@pytest.mark.slow
def test_what_cannot_be_read_is_named_with_its_reason_and_the_rest_is_added(own, tmp_path) -> None:
    files = [(bad.name, bad.write(tmp_path).read_bytes(), bad.reason) for bad in BAD_FILES]
    small = [item for item in files if 0 < len(item[1]) < 1 << 20]
    assert len(small) >= 40
    good = ("between.txt", b"Between bad files stands a good one about the sluice.")
    for start in range(0, len(small), 90):  # a hundred files are taken at a time
        part = small[start : start + 90]
        status, reply = own.send_files(*[item[:2] for item in part], good)
        assert status == 202 and not reply["refused"]
        for upload, (name, _, reason) in zip(reply["uploads"], part, strict=False):
            ended = own.ended(upload["id"])
            assert (ended["name"], ended["state"]) == (name, "failed") and reason in ended["error"]
            assert own.delete(f"{own.api}/uploads/{upload['id']}")[0] == 200
    assert own.ended(reply["uploads"][-1]["id"])["state"] == "done"
    assert "between.txt" in names(own) and not {item[0] for item in small} & names(own)


@pytest.mark.slow
def test_too_large_too_many_and_empty_files_are_refused_one_by_one(tmp_path) -> None:
    limits = Limits(files=3, file_bytes=1_000, upload_bytes=100_000)
    with ServedApp(tmp_path / "kb", limits=limits) as app:
        files = [
            ("large.txt", b"x" * 2_000),
            ("fine.txt", b"A fine file about herons."),
            ("empty.txt", b""),
            ("fourth.txt", b"too many"),
        ]
        status, reply = app.send_files(*files)
        assert status == 202 and [upload["name"] for upload in reply["uploads"]] == ["fine.txt"]
        reasons = {item["name"]: item["error"] for item in reply["refused"]}
        assert "larger than 1,000 bytes" in reasons["large.txt"] and "empty" in reasons["empty.txt"]
        assert "more than 3 files" in reasons["fourth.txt"]
        assert app.ended(reply["uploads"][0]["id"])["state"] == "done" and names(app) == {"fine.txt"}
        # Nothing of what was refused lies anywhere.
        assert list((tmp_path / "kb" / "spool").iterdir()) == []


@pytest.mark.slow
def test_an_upload_that_cannot_be_stored_is_refused_and_questions_go_on(tmp_path) -> None:
    with ServedApp(tmp_path / "kb") as app:
        (tmp_path / "kb" / "spool").write_text("a file where the folder should be")
        status, reply = app.send_files(("a.md", b"text"))
        assert status == 507 and "cannot be stored" in reply["error"]
        assert app.ask("Who?")["event"] == "answer"


@pytest.mark.slow
def test_names_are_shown_and_never_used_as_paths(own, tmp_path_factory) -> None:
    before = set(own.settings.bases[own.base].parent.rglob("*"))
    wild = {
        "../../../escape.md": "escape.md",
        "/etc/cron.d/job.md": "job.md",
        "C:\\Windows\\system32\\evil.md": "evil.md",
        "..": "file",
        "a\u202egpj.md": "agpj.md",
        "<script>alert(1)</script>.md": "script>.md",
        "x" * 400 + ".md": "x" * 177 + ".md",
        "~root.md": "~root.md",
    }
    files = [
        (given, f"# Number {number}\n\nA file with the name {number}.\n".encode())
        for number, given in enumerate(wild)
    ]
    reply = own.send_files(*files)[1]
    for upload, shown in zip(reply["uploads"], wild.values(), strict=True):
        done = own.ended(upload["id"])
        assert (done["state"], done["name"]) == ("done", shown)
    assert set(wild.values()) <= names(own)
    after = set(own.settings.bases[own.base].parent.rglob("*"))
    new = [path.name for path in after - before]
    assert not any(bad in name for name in new for bad in ("escape", "job", "evil", "script", "xxx", "root"))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a\x00b\r\nc.md", "ab c.md"),
        (" . hidden.pdf", "hidden.pdf"),
        ("...", "file"),
        ("café.md", "café.md"),
        (".md", "md"),
    ],
)
def test_display_names_of_uploads_are_sanitised(given, shown) -> None:
    assert display_name(given) == shown


def test_the_same_file_twice_is_one_document_and_removal_leaves_nothing(own) -> None:
    text = b"# Osprey\n\nOspreys of Quillmere fish at dawn.\n"
    first, again = own.upload("osprey.md", text), own.upload("osprey.md", text)
    other = own.upload("copy.md", text)
    assert first["key"] == again["key"] == other["key"]
    folder = own.settings.bases[own.base]
    assert (folder / "uploads" / first["key"]).read_bytes() == text
    own.ask("When do ospreys of Quillmere fish?")
    gone = own.delete(f"{own.api}/documents/{first['key']}?forget=true")[1]
    assert gone["removed"] == [first["key"]]
    left = [path for path in folder.rglob("*") if path.is_file() and b"Quillmere" in path.read_bytes()]
    assert left == [] and not (folder / "uploads" / first["key"]).exists()
    assert own.delete(f"{own.api}/documents/{first['key']}")[0] == 404
    assert own.upload("osprey.md", text)["state"] == "done"
    # The command line knows it by its name, too.
    with clew.open(folder) as base:
        assert [item.name for item in base.remove("osprey.md")] == ["osprey.md"]


@pytest.mark.slow
def test_doctor_deletes_kept_files_of_no_document(tmp_path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        (tmp_path / "a").write_text("Text about a quay.")
        with base.files.open_uploads() as uploads:
            added = uploads.add(tmp_path / "a", "quay.txt")
            with pytest.raises(UsageError, match="no name"):
                uploads.add(tmp_path / "a", "../quay.txt")
        base.store.catch_up()
        folder = tmp_path / "kb" / "uploads"
        old, fresh = folder / ("0" * 32), folder / ("1" * 32)
        for path in (old, fresh):
            path.write_text("left by a kill")
        os.utime(old, (0, 0))
        os.utime(folder / added.key, (0, 0))
        assert [item.what for item in base.doctor()] == ["rights", "uploads"] and base.doctor() == []
        assert {path.name for path in folder.iterdir()} == {added.key, fresh.name}


@pytest.mark.slow
def test_a_base_that_others_add_to_shows_it(own, tmp_path) -> None:
    (tmp_path / "later.md").write_text("Added by hand: the weir at Thornholt.\n")
    with clew.open(own.settings.bases[own.base]) as base:
        base.add([tmp_path / "later.md"])
    assert "weir" in own.post(f"{own.api}/search", {"question": "Thornholt", "k": 1})[1]["hits"][0]["text"]


@pytest.mark.slow
def test_one_slow_file_does_not_keep_questions_waiting(made_base, tmp_path) -> None:
    import shutil

    shutil.copytree(made_base, tmp_path / "kb")
    slow = b"".join(b"Line %d of a very long text.\n\n" % number for number in range(700_000))
    with ServedApp(tmp_path / "kb", limits=Limits(parse_seconds=2.0)) as app:
        _, reply = app.send_files(("slow.md", slow))
        id = reply["uploads"][0]["id"]
        waited_for(lambda: _state(app, id) == "reading")
        answer = app.ask(QUESTION)
        assert "$9" in answer["answer"] and _state(app, id) == "reading"
        ended = app.ended(id)
        assert ended["state"] == "failed" and "took longer than 2 seconds" in ended["error"]
        assert app.upload("after.md", b"Afterwards all is well.\n")["state"] == "done"


def _state(app, id):
    return next(
        upload["state"] for upload in app.get(f"{app.api}/uploads")[1]["uploads"] if upload["id"] == id
    )


@pytest.mark.slow
def test_what_was_accepted_before_a_kill_is_read_afterwards_and_what_was_not_is_gone(tmp_path) -> None:
    folder = tmp_path / "kb"
    clew.open(folder, create=True).close()
    spool = Spool(folder)
    id, file = spool.begin()
    with file:
        file.write(b"# Kept\n\nWhat was accepted is read after the restart.\n")
    spool.accept(new_upload(id, "document", "kept.md", 50))
    cut, file = spool.begin()
    with file:
        file.write(b"half a fi")
    with ServedApp(folder) as app:
        assert app.ended(id)["state"] == "done" and names(app) == {"kept.md"}
        assert not (spool.path / f"{cut}.part").exists()


@pytest.mark.slow
def test_a_killed_server_loses_no_upload(tmp_path) -> None:
    """The command itself, killed with its uploads half read, and started again."""
    folder, count = tmp_path / "kb", 12
    files = [(f"n{n}.md", f"# N{n}\n\n".encode() + b"Words about reeds. " * 20_000) for n in range(count)]
    server, port = _start_server(folder)
    try:
        body = multipart(*files)
        status, reply = _post_json(port, "/api/bases/kb/uploads", body)
        assert status == 202 and len(reply["uploads"]) == count
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.communicate()
    server, port = _start_server(folder)
    try:
        waited_for(lambda: _get_json(port, "/api/bases/kb")["documents"] == count)
        waited_for(lambda: not list((folder / "spool").glob("*.json")))
        assert _get_json(port, "/api/bases/kb")["pending"] == 0
    finally:
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    assert "Traceback" not in errors


def _start_server(folder):
    command = [
        sys.executable,
        "-c",
        "from clew.app.cli.commands import app; app()",
        "serve",
        "--kb",
        str(folder),
        "--port",
        "0",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = server.stdout.readline().split()[-1]
    port = int(url.rpartition(":")[2])
    waited_for(lambda: _answers(port))
    return server, port


def _answers(port):
    try:
        return _get_json(port, "/api/bases")
    except OSError:
        return None


def _get_json(port, path):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _post_json(port, path, body):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        connection.request("POST", path, body, headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.skipif(not all(confinement().values()), reason="this system cannot confine a process")
def test_the_reader_of_an_uploaded_graph_reaches_its_base_alone(tmp_path, monkeypatch) -> None:
    (tmp_path / "other.txt").write_text("not to be touched")
    monkeypatch.setattr(worker, "read_uploaded_graph", escape_beside_base)
    monkeypatch.setenv("ESCAPE_PORT", "9")
    with clew.open(tmp_path / "kb", create=True) as base:
        spool = Spool(base.path)
        id, file = spool.begin()
        file.close()
        spool.data_path(id).write_bytes(b"a\tb\tc\n")
        upload = new_upload(id, "graph", "people.tsv", 9)
        commands = worker.ServerCommands()
        worker.UploadWorker("kb", base, spool, sys.stdout, commands).add_graph(upload, 60.0, 1 << 30)
        # Signals are kept from it by Linux 6.12 and later.
        assert set((base.path / "escapes").read_text().split()) <= {"signal"}
    assert (tmp_path / "other.txt").exists() and not (tmp_path / "outside.new").exists()
