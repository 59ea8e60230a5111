"""A server on this machine, as ``clew serve`` runs it, for tests: real sockets, real processes.

with ServedApp(tmp_path / "kb", models=[scripted.llm]) as app:
    app.upload("notes.md", b"# Notes")          # waits until it is read; returns what became of it
    answer = app.ask("Who built the bridge?")   # the last event: an answer, or a problem
    status, body = app.get("/api/bases")
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.app.web.application import RunningServer
from clew.app.web.settings import Settings, name_bases, name_models

SAMPLES = Path(__file__).parents[1] / "samples" / "documents"
#: What the base that the tests share holds, and a question that it answers with $9.
FILES = ("lighter-hire-contract.pdf", "merrowgate-charter.md", "gauge-readings-march-1929.csv")
QUESTION = "What does the hirer pay a day if the lighter is returned late?"
FILMS = b"Kismet\tdirector\tLudwig Berger\nLudwig Berger\tborn in\tMainz\n"
#: Seconds after which a test that waits gives up.
PATIENCE = 60.0


class ServedApp:
    """A context manager: a server in a thread. ``base`` is the name of its first base."""

    def __init__(self, *folders: Path, models: list[str] = (), **settings: Any) -> None:
        self.settings = Settings(
            bases=name_bases(folders), models=name_models(models), **{"port": 0, **settings}
        )
        self.base = next(iter(self.settings.bases))
        self.serving = RunningServer(self.settings)
        self.port = self.serving.port
        self._thread = threading.Thread(target=self.serving.run, daemon=True)

    def __enter__(self) -> ServedApp:
        self._thread.start()
        waited_for(lambda: self.serving.is_serving or not self._thread.is_alive())
        assert self.serving.is_serving
        return self

    def __exit__(self, *_: object) -> None:
        self.serving.stop()
        self._thread.join(PATIENCE)
        self.serving.__exit__(None, None, None)
        assert not self._thread.is_alive()

    @property
    def api(self) -> str:
        """The path of the first base."""
        return f"/api/bases/{self.base}"

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request; return status, headers (names in lower case) and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """Return status and JSON of a GET."""
        return self.json("GET", path, headers=headers)

    def post(self, path: str, shape: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and JSON of a POST of JSON."""
        return self.json("POST", path, shape, headers)

    def delete(self, path: str, **headers: str) -> tuple[int, Any]:
        """Return status and JSON of a DELETE."""
        return self.json("DELETE", path, headers=headers)

    def json(
        self, method: str, path: str, shape: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send JSON, return status and JSON."""
        body = None if shape is None else json.dumps(shape).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        status, _, got = self.request(method, path, body, sent)
        return status, json.loads(got)

    def send_files(
        self, *files: tuple[str, bytes], to: str = "uploads", fields: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Upload files; return status and JSON of the reply."""
        body = multipart(*files, fields=fields)
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        status, _, got = self.request("POST", f"{self.api}/{to}", body, headers)
        return status, json.loads(got)

    def upload(self, name: str, data: bytes, **more: Any) -> dict[str, Any]:
        """Upload one file and wait until it is done or has failed; return what became of it."""
        status, reply = self.send_files((name, data), **more)
        assert status == 202 and not reply["refused"], reply
        return self.ended(reply["uploads"][0]["id"])

    def ended(self, id: str) -> dict[str, Any]:
        """Wait until an upload is done or has failed; return it."""
        return waited_for(
            lambda: next(
                (
                    upload
                    for upload in self.get(f"{self.api}/uploads")[1]["uploads"]
                    if upload["id"] == id and upload["state"] in {"done", "failed"}
                ),
                None,
            )
        )

    def ask(self, question: str, **more: Any) -> dict[str, Any]:
        """Ask and wait; return the last event's data, with its name as ``event``."""
        status, reply = self.post(f"{self.api}/questions", {"question": question, **more})
        assert status == 202, reply
        *_, (event, data) = self.events(reply["events"])
        return {"event": event, **data}

    def events(self, path: str, **headers: str) -> Iterator[tuple[str, Any]]:
        """Yield the server-sent events of an address, until it ends or the caller does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            event = ""
            for line in iter(reply.readline, b""):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    event = value
                elif name == "data":
                    yield event, json.loads(value)
        finally:
            connection.close()


BOUNDARY = "----a-boundary-of-the-tests"


def multipart(*files: tuple[str, bytes], fields: dict[str, str] | None = None) -> bytes:
    """Return the body of an upload."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in (fields or {}).items()
    ]
    for name, data in files:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="{quoted}"\r\n\r\n'
        parts += [head.encode(), data, b"\r\n"]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def waited_for(look: Any) -> Any:
    """Return what ``look`` finds, as soon as it finds something."""
    deadline = time.monotonic() + PATIENCE
    while not (result := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return result
