"""A scripted OpenAI-compatible server on this machine, so that tests run the real client.

    with ScriptedServer(["Paris", {"answer": "Paris"}]) as server:
        model = language_model(server.llm)          # http://127.0.0.1:PORT/v1#scripted
        ...
        assert "capital of France" in server.requests[0].prompt

A script is a list of replies, taken in the order in which requests arrive, or a function from request to
reply. A reply is text, a dict (sent as JSON text), or a :class:`ReplyBuilder` that misbehaves. A script that is used
up answers 418, which no client retries and no test overlooks.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """All messages, joined."""
        return "\n".join(message["content"] for message in self.body.get("messages", []))

    @property
    def user(self) -> str:
        """The last user message."""
        return [m["content"] for m in self.body["messages"] if m["role"] == "user"][-1]

    @property
    def system(self) -> str:
        """The system messages, joined."""
        return "\n".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def format(self) -> str:
        """The kind of structured output that was asked for, or "" for none."""
        return self.body.get("response_format", {}).get("type", "")


@dataclass(frozen=True)
class Reply:
    """One reply. ``usage`` None leaves it out; ``raw`` replaces the whole body; ``cut`` closes the connection
    in the middle of it; ``delay`` seconds pass before it."""

    text: str | None = ""
    status: int = 200
    message: str = "scripted refusal"
    param: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    usage: dict[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    )
    finish: str = "stop"
    delay: float = 0.0
    raw: bytes | None = None
    cut: bool = False


def refusal(status: int, message: str = "scripted refusal", **more: Any) -> Reply:
    """Return an error reply: ``refusal(429, headers={"Retry-After": "1"})``."""
    return Reply(status=status, message=message, **more)


Script = Sequence[str | dict | Reply] | Callable[[Request], str | dict | Reply]


def scripted_vector(text: str, dimension: int) -> list[float]:
    """Return the vector that the server gives a text: fixed by the text, not of unit length."""
    digest = hashlib.shake_128(text.encode()).digest(dimension)
    return [byte / 64 - 2 for byte in digest]


class ScriptedServer:
    """The server. ``refuses`` names request features it answers 400 to, without using up the script:
    ``json_schema``, ``json_object``, ``max_tokens``, ``temperature``, or ``stop``."""

    def __init__(self, script: Script = (), *, refuses: Sequence[str] = (), dimension: int = 8) -> None:
        self.requests: list[Request] = []
        self.refuses = tuple(refuses)
        self.key: str | None = None
        self.models = ["scripted", "nomic-embed-text"]
        self.dimension = dimension
        self._script = script
        self._used = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """The base address of the endpoint."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def llm(self) -> str:
        """What ``--llm`` takes."""
        return f"{self.url}#scripted"

    @property
    def answered(self) -> int:
        """How many replies of the script were used."""
        return self._used

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def reply_to(self, request: Request) -> Reply:
        """Record a request and return the reply to it."""
        with self._lock:
            self.requests.append(request)
            refused = self._refused(request)
            if refused:
                return refusal(400, f"{refused} is not supported", param=refused)
            if request.path.endswith("/embeddings"):
                return self._embeddings(request)
            number = self._used
            self._used += 1
            if not callable(self._script) and number >= len(self._script):
                return refusal(418, "the script is used up")
        reply = self._script(request) if callable(self._script) else self._script[number]
        if isinstance(reply, dict):
            reply = json.dumps(reply)
        return Reply(reply) if isinstance(reply, str) else reply

    def _refused(self, request: Request) -> str | None:
        asked = {request.format, *request.body}
        return next((feature for feature in self.refuses if feature in asked), None)

    def _embeddings(self, request: Request) -> Reply:
        texts = request.body["input"]
        texts = [texts] if isinstance(texts, str) else texts
        data = []
        for index, text in enumerate(texts):
            vector: Any = scripted_vector(text, self.dimension)
            if request.body.get("encoding_format") == "base64":
                vector = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
            data.append({"object": "embedding", "index": index, "embedding": vector})
        usage = {"prompt_tokens": sum(len(text.split()) for text in texts), "total_tokens": 0}
        # Last first: a client must go by the index.
        shape = {"object": "list", "model": request.body["model"], "data": data[::-1], "usage": usage}
        return Reply(raw=json.dumps(shape).encode())


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two writes: without this the second waits 40 ms for the first to be acknowledged.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            """List the models, to whoever has the key if there is one."""
            key = server.key
            is_let_in = key is None or self.headers.get("Authorization") == f"Bearer {key}"
            body = json.dumps(
                {"object": "list", "data": [{"id": name, "object": "model"} for name in server.models]}
                if is_let_in
                else {"error": {"message": "wrong key", "type": "scripted", "param": None, "code": None}}
            ).encode()
            self.send_response(200 if is_let_in else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.casefold(): value for name, value in self.headers.items()}
            request = Request(self.path, headers, json.loads(content))
            reply = server.reply_to(request)
            time.sleep(reply.delay)
            body = reply.raw if reply.raw is not None else json.dumps(_shape(request, reply)).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if reply.cut else body)
            except (BrokenPipeError, ConnectionResetError):
                reply = Reply(cut=True)  # the client gave up waiting
            self.close_connection = self.close_connection or reply.cut

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _shape(request: Request, reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        return {"error": {"message": reply.message, "type": "scripted", "param": reply.param, "code": None}}
    message = {"role": "assistant", "content": reply.text}
    shape: dict[str, Any] = {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": request.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
    }
    return shape | ({"usage": reply.usage} if reply.usage is not None else {})
