"""Several servers over one base in object storage: questions, uploads to any of them, one killed at any time."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

import clew
from clew.knowledge_base.base_copy import copy_base
from clew.store.object_store import FolderObjects
from clew.store.remote.store import RemoteStore
from serve_app import PATIENCE, ServedApp, multipart, waited_for

TOKEN = "a-token-of-the-tests-of-servers"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def address(tmp_path):
    (tmp_path / "mill.md").write_text("# Mill\n\nThe mill at Oxlade grinds barley.\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([tmp_path / "mill.md"])
    copy_base(str(tmp_path / "kb"), f"file://{tmp_path}/copy")
    return f"file://{tmp_path}/copy"


def serve(tmp_path, address, name, **settings):
    folder = tmp_path / name
    return ServedApp(folder, addresses={folder: address}, **settings)


def names(app):
    return {item["document"] for item in app.get(f"{app.api}/documents")[1]["documents"]}


@pytest.mark.slow
def test_two_servers_over_one_base(tmp_path, address):
    with serve(tmp_path, address, "a") as one, serve(tmp_path, address, "b") as other:
        question = "What does the mill at Oxlade grind?"
        assert one.ask(question)["evidence"] and other.ask(question)["evidence"]
        done = one.upload("ferry.md", b"# Ferry\n\nThe ferry at Hollow carries nine.\n")
        assert done["state"] == "done", done
        time.sleep(1.1)  # the other looks at most once a second
        assert other.ask("How many does the ferry at Hollow carry?")["evidence"]
        # Uploads to both at once: all are there in the end, each once.
        problems = []

        def send(app, label):
            for number in range(3):
                outcome = app.upload(
                    f"{label}{number}.md", f"# {label}\n\nLine {number} of {label}.\n".encode()
                )
                if outcome["state"] != "done":
                    problems.append(outcome)

        threads = [threading.Thread(target=send, args=pair) for pair in ((one, "north"), (other, "south"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        expected = {"mill.md", "ferry.md"} | {
            f"{label}{n}.md" for label in ("north", "south") for n in range(3)
        }
        for app in (one, other):
            waited_for(lambda app=app: app.ask(question)["evidence"] and names(app) == expected)
        # Removed on one, gone on the other.
        key = next(
            item["key"]
            for item in one.get(f"{one.api}/documents")[1]["documents"]
            if item["document"] == "ferry.md"
        )
        assert other.delete(f"{other.api}/documents/{key}")[0] == 200
        waited_for(lambda: one.ask(question)["evidence"] and "ferry.md" not in names(one))


@pytest.mark.slow
def test_a_token_is_that_of_every_server(tmp_path, address):
    with (
        serve(tmp_path, address, "a", token=TOKEN) as one,
        serve(tmp_path, address, "b", token=TOKEN) as other,
    ):
        assert one.get("/api/bases")[0] == other.get("/api/bases")[0] == 401
        assert one.get("/api/bases", **AUTHORISED)[0] == other.get("/api/bases", **AUTHORISED)[0] == 200


class Process:
    """``clew serve`` in a process of its own, with its own folder for data."""

    def __init__(self, address: str, data: Path) -> None:
        environment = os.environ | {
            "CLEW_DATA": str(data),
            "CLEW_ENCODER": "none",
            "CLEW_CACHE": str(data / "cache"),
        }
        command = [sys.executable, "-m", "clew", "serve", "--kb", address, "--port", "0"]
        self.child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().partition(" ")[2].strip()
        (base,) = self.get("/api/bases")["bases"]
        self.api = f"/api/bases/{base['base']}"

    def get(self, path: str):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as reply:
            return json.load(reply)

    def upload(self, name: str, text: str) -> None:
        head = {"Content-Type": "multipart/form-data; boundary=----a-boundary-of-the-tests"}
        request = urllib.request.Request(
            f"{self.url}{self.api}/uploads", multipart((name, text.encode())), head, method="POST"
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            assert reply.status == 202

    def names(self) -> set[str]:
        return {item["document"] for item in self.get(f"{self.api}/documents")["documents"]}

    def ask(self, question: str) -> str:
        """Ask and wait; return the answer's text, or what went wrong."""
        head = {"Content-Type": "application/json"}
        body = json.dumps({"question": question}).encode()
        request = urllib.request.Request(f"{self.url}{self.api}/questions", body, head, method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            events = json.load(reply)["events"]
        with urllib.request.urlopen(self.url + events, timeout=PATIENCE) as stream:
            lines = stream.read().decode().splitlines()
        last = json.loads([line for line in lines if line.startswith("data: ")][-1].removeprefix("data: "))
        return str(last.get("answer", last))

    def kill(self) -> None:
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        assert self.child.stdout is not None
        self.child.stdout.close()


@pytest.mark.slow
def test_a_server_killed_during_an_upload_loses_nothing(tmp_path, address):
    """Killed at random instants after the server has accepted a file: the storage always has a whole state, and the
    next server of the same machine completes the upload."""
    rng = random.Random(25)
    objects = FolderObjects(tmp_path / "copy")
    data, accepted = tmp_path / "data", {"mill.md"}
    for number in range(6):
        server = Process(address, data)
        server.upload(f"note{number}.md", f"# Note {number}\n\nThe note number {number} is about the quay.\n")
        accepted.add(f"note{number}.md")
        time.sleep(rng.random() * 2.5)
        server.kill()
        time.sleep(0.3)  # the process that reads uploads ends with its server
        reader = RemoteStore(objects, tmp_path / f"reader{number}")
        stored = {Path(path).name for path in reader.locations()}
        assert stored <= accepted and reader.snapshot().pending == 0
        reader.close()
    server = Process(address, data)
    try:
        waited_for(lambda: server.names() == accepted)
    finally:
        server.kill()


@pytest.mark.slow
def test_one_of_two_servers_killed_while_both_are_used(tmp_path, address):
    """Two processes; both take uploads while one is asked without pause, and the other is killed at random instants
    and started again: every answer is right, and in the end both have every accepted document."""
    rng = random.Random(26)
    question = "What does the mill at Oxlade grind?"
    asked, accepted, done = [], {"mill.md"}, threading.Event()
    steady, killed = Process(address, tmp_path / "steady"), Process(address, tmp_path / "killed")

    def ask() -> None:
        while not done.is_set():
            try:
                asked.append(steady.ask(question))
            except (OSError, ValueError, KeyError) as error:
                asked.append(repr(error))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for number in range(4):
            for server, label in ((killed, "quay"), (steady, "weir")):
                server.upload(f"{label}{number}.md", f"# {label}\n\nLine {number} of the {label} is here.\n")
                accepted.add(f"{label}{number}.md")
            time.sleep(rng.random() * 2.5)
            killed.kill()
            before = len(asked)
            waited_for(lambda before=before: len(asked) > before)  # the other goes on
            killed = Process(address, tmp_path / "killed")
        waited_for(lambda: steady.names() == killed.names() == accepted)
        assert killed.ask("Which line of the weir is here?")
    finally:
        done.set()
        asking.join()
        steady.kill()
        killed.kill()
    assert len(asked) > 4 and set(asked) == {asked[0]} and "barley" in asked[0], Counter(asked)
