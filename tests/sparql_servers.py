"""SPARQL for tests: a real Oxigraph, served on loopback or as a folder; and a scripted endpoint."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

import pytest

OXIGRAPH = shutil.which("oxigraph") or shutil.which("oxigraph", path=str(Path(sys.executable).parent))


def store_turtle(folder: Path, turtle: str) -> Path:
    """Make an Oxigraph store of some Turtle."""
    import pyoxigraph

    store = pyoxigraph.Store(str(folder))
    store.load(turtle.encode(), pyoxigraph.RdfFormat.TURTLE)
    store.flush()
    return folder


def serving(folder: Path, turtle: str) -> Iterator[str]:
    """Serve some Turtle on loopback, and yield the URL of its endpoint."""
    if not OXIGRAPH:
        pytest.skip("oxigraph, the SPARQL server of these tests, is not installed (pip install oxigraph)")
    (folder / "a.ttl").write_text(turtle)
    store = folder / "store"
    subprocess.run(
        [OXIGRAPH, "load", "--location", store, "--file", folder / "a.ttl"], check=True, capture_output=True
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = subprocess.Popen(
        [OXIGRAPH, "serve-read-only", "--location", store, "--bind", f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/query"
    finally:
        child.terminate()
        child.wait()


Bindings = Sequence[dict[str, str]]


class Served:
    """An endpoint on loopback while it is entered, whose questions ``handler`` answers."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = HTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/sparql"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class ScriptedEndpoint(Served):
    """An endpoint that answers with what ``answer`` makes of a query: solutions (an IRI where a value begins with
    ``http``, else an English text), or None, which is refused. ``queries`` are those that it got."""

    def __init__(self, answer: Callable[[str], Bindings | None]) -> None:
        self.queries: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                (query,) = parse_qs(body)["query"]
                outer.queries.append(query)
                result = answer(query)
                self.send_response(400 if result is None else 200)
                self.end_headers()
                bindings = [{name: _term(value) for name, value in item.items()} for item in result or ()]
                self.wfile.write(json.dumps({"results": {"bindings": bindings}}).encode())

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler)


def _term(value: str) -> dict[str, str]:
    if value.startswith("http"):
        return {"type": "uri", "value": value}
    return {"type": "literal", "value": value, "xml:lang": "en"}
