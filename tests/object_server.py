"""An object store for tests: moto's S3 server on loopback, behind a proxy that counts requests and injects faults.

moto compares the condition of a conditional write and writes in two steps, so that two of six writers may win (S3
decides in one step). The proxy therefore lets one write pass at a time.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from clew.store.object_store import ObjectStore

#: Settings of an S3 client for the server; moto checks no signature.
CREDENTIALS = {
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
    "aws_region": "us-east-1",
    "aws_allow_http": "true",
}
BUCKET = "bucket"


@dataclass(frozen=True)
class Request:
    """A request that reached the proxy, with the status and the bytes of the body that it got back, and when it
    began and ended, in seconds."""

    method: str
    path: str
    sent: int
    status: int
    received: int
    began: float = 0.0
    ended: float = 0.0


@dataclass
class ObjectServer:
    """The address of the proxy, and what went through it.

    ``fault`` is called with method, path and number of the request; it returns ``None``, or a status to answer with
    instead of asking the server, or ``"lost"``: the server does what was asked, and the answer is replaced by 503.
    ``delay`` are the seconds added to each request.
    """

    endpoint: str
    requests: list[Request] = field(default_factory=list)
    fault: Callable[[str, str, int], int | str | None] | None = None
    delay: Callable[[str, str], float] | None = None
    bucket: str = BUCKET

    def options(self) -> dict[str, str]:
        """Return the settings of an S3 client."""
        return {**CREDENTIALS, "aws_endpoint": self.endpoint}

    def count(self, method: str) -> int:
        """Return how many requests of a method there were."""
        return sum(request.method == method for request in self.requests)


def missing_package() -> str | None:
    """Return which package the server needs and is not installed."""
    return next(
        (name for name in ("moto", "flask", "flask_cors", "obstore") if find_spec(name) is None), None
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serve_objects() -> Iterator[ObjectServer]:
    """Start moto's S3 server and the proxy, make the bucket, and stop both afterwards."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", f"/{BUCKET}")
        assert connection.getresponse().status == 200
        with _proxy(port) as server:
            yield server
    finally:
        child.terminate()
        child.wait()


@contextmanager
def _proxy(port: int) -> Iterator[ObjectServer]:
    server = ObjectServer("")
    writing = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path
            began = time.perf_counter()
            if server.delay is not None:
                time.sleep(server.delay(self.command, self.path))
            fault = server.fault and server.fault(self.command, self.path, len(server.requests))
            status, headers, content = (int(fault), [], b"") if isinstance(fault, int) else self.forward(body)
            if fault == "lost":
                status, headers, content = 503, [], b""
            server.requests.append(
                Request(self.command, path, len(body), status, len(content), began, time.perf_counter())
            )
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                    self.send_header(name, value)
            length = dict(headers).get("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in {"connection", "expect"}}
            with writing if self.command == "PUT" else nullcontext():
                connection.request(self.command, self.path, body, headers)
                reply = connection.getresponse()
                content = reply.read()
            connection.close()
            return reply.status, reply.getheaders(), content

    for method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
        setattr(Handler, f"do_{method}", Handler.handle_any)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:  # a client that went away
            pass

    proxy = Server(("127.0.0.1", 0), Handler)
    server.endpoint = f"http://127.0.0.1:{proxy.server_port}"
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def race_for_writes(clients: Sequence[ObjectStore], turns: int) -> bytes:
    """Let all clients write the same object at once, again and again, each naming the version it replaces; return the
    last content. Fails unless each turn has exactly one winner, whose content is there."""
    version = None
    content = b""
    for turn in range(turns):
        wins: list[int] = []

        def write(number: int, turn: int = turn, version: object = version, wins: list[int] = wins) -> None:
            if clients[number].write_if("manifest.json", f"{turn} {number}".encode(), version):
                wins.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(len(clients))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = clients[0].read("manifest.json")
        assert stored is not None
        content, version = stored
        assert [f"{turn} {number}".encode() for number in wins] == [content]
    return content
