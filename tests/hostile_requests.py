"""Nine hundred hostile requests to a server that needs a token, made from a seed.

    python tests/hostile_requests.py [--seed 0] [--number 900] [--clients 24]

Request N depends on the seed and N alone. Half of them come without the token, with a wrong one or from another
site's page, and must learn and change nothing; the others have it, and must be refused or harmless. They are bytes on
a socket: addresses, methods, headers, lengths, chunks, JSON, forms and uploads, changed at random, cut off, or sent
twice in one. Prints a table by kind, and the rules that were broken: a reply without the token that is not a refusal
or the login page, a reply of 500, a trace of the program, a file from outside the base, more than 15 seconds.
Afterwards the server must answer a question as before. Exit status 1 if a rule was broken.
"""

from __future__ import annotations

import argparse
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))

import clew
from fuzz import mutate
from serve_app import BOUNDARY, FILES, QUESTION, SAMPLES, ServedApp, multipart

TOKEN = "right-token-of-the-owner"
SECRET = "the-secret-outside-of-the-base"
SECONDS = 15.0
HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1@evil",
    "[::1",
    "",
    "a b",
    "127.0.0.1:99999",
    "0",
    "*",
]
JSON_BODIES = [
    b'{"question": "What is the toll?", "documents": ["' + b"0" * 32 + b'"]}',
    b'{"question": "x", "recipe": "kgp(seeds=3)", "graphs": ["films"], "chain": "a >> b >> #1"}',
    b'{"model": "clew", "messages": [{"role": "user", "content": "x"}], "stream": true, "max_tokens": 9}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "show", "arguments": {}}}',
]


@dataclass(frozen=True)
class Request:
    """The bytes of a request, of which kind they are, and whether they have the right token."""

    kind: str
    data: bytes
    has_token: bool


def compose(method: bytes, path: bytes, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> bytes:
    head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return method + b" " + path + b" HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n" + body


class Maker:
    """Draws requests to a server at ``api`` on ``port``."""

    def __init__(self, api: str, port: int, keys: list[str]) -> None:
        self._api, self._port, self._keys = api, port, keys
        self._kinds: list[
            Callable[[random.Random], tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]]
        ] = [
            self.address,
            self.json,
            self.upload,
            self.length,
            self.chunks,
            self.header,
            self.read,
            self.change,
        ]

    def request(self, seed: int, number: int) -> Request:
        rng = random.Random(f"{seed}/{number}")
        make = self._kinds[number % len(self._kinds)]
        has_token = number // len(self._kinds) % 2 == 0
        method, path, headers, body = make(rng)
        if not any(name.lower() == b"host" for name, _ in headers):
            headers.insert(0, (b"Host", b"127.0.0.1:%d" % self._port))
        if has_token:
            headers.append((b"Authorization", b"Bearer " + TOKEN.encode()))
        else:
            headers += rng.choice([self.wrong_token(rng), self.wrong_token(rng), []])
        data = compose(method, path, headers, body)
        kind = make.__name__
        if rng.random() < 0.15:
            kind, data = f"{kind}, cut off", data[: rng.randrange(1, len(data))]
        elif rng.random() < 0.1:
            kind, data = f"{kind}, twice", data.replace(b"Connection: close\r\n", b"") + data
        elif rng.random() < 0.1:
            kind, data = f"{kind}, changed at random", mutate(data, [data], rng)
            # A change may leave out a host that is refused; it cannot make the token.
        return Request(kind, data, has_token)

    def wrong_token(self, rng: random.Random) -> list[tuple[bytes, bytes]]:
        token = TOKEN.encode()
        wrong = [
            token[:-1],
            token + b"x",
            token.upper(),
            b"",
            b"null",
            token[::-1],
            b"' OR 1=1",
            b"\xff" * 9,
            token + b"\0",
        ]
        value = rng.choice(wrong)
        return rng.choice(
            [
                [(b"Authorization", b"Bearer " + value)],
                [(b"Authorization", b"Basic " + value)],
                [(b"Cookie", b"clew_" + b"0" * 12 + b"=" + value)],
                [(b"Authorization", b"Bearer"), (b"X-Token", token)],
                [(b"X-Forwarded-For", b"127.0.0.1"), (b"X-Real-IP", b"127.0.0.1")],
            ]
        )

    def path(self, rng: random.Random) -> bytes:
        key = rng.choice([*self._keys, "0" * 32])
        up = rng.choice(["../", "..%2f", "%2e%2e/", "..\\", "....//", "%252e%252e%252f"]) * rng.randint(1, 6)
        page = rng.choice([0, -1, 10**30, up])
        place = rng.choice(
            [
                f"/static/{up}secret.txt",
                f"/api/bases/{up}secret.txt",
                f"{self._api}/documents/{key}/text?start={rng.choice([-1, 10**20, 'nan', '1e9'])}",
                f"{self._api}/documents/{up}etc/passwd",
                f"{self._api}/documents/{key}/pages/{page}.png?scale={rng.choice(['1e300', 'nan', -1])}",
                f"{self._api}/nodes/{key}:{rng.choice([0, -1, 10**20, '%00'])}",
                f"{self._api}/graphs/{quote(rng.choice(['x', up, chr(0), 'é' * 99]))}",
                f"{self._api}/questions?limit={rng.choice([0, -1, 10**19, 'x'])}&before={rng.choice(['nan', '-1'])}",
                f"//evil.example{self._api}/documents",
                f"http://evil.example{self._api}/documents",
                f"{self._api}/documents;x=y",
                f"/{'a/' * rng.randint(1, 3_000)}",
                f"/{'%41' * rng.randint(1, 9_000)}",
                "*",
                f"/b/{up}",
                "/mcp",
                "/v1/models",
                f"{self._api}/events",
            ]
        )
        return place.encode("utf-8", "replace")

    def address(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        methods = [
            b"GET",
            b"HEAD",
            b"DELETE",
            b"PUT",
            b"OPTIONS",
            b"TRACE",
            b"CONNECT",
            b"PROPFIND",
            b"G\0T",
            b"get",
        ]
        return rng.choice(methods), self.path(rng), [], b""

    def read(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        """What is read from the base."""
        places = ["/documents", "/questions", "/graphs", "", "/uploads", f"/documents/{self._keys[0]}/text"]
        headers = rng.choice(
            [[], [(b"Range", b"bytes=0-99999999999999")], [(b"Accept-Encoding", b"gzip;q=nan, *")]]
        )
        return b"GET", f"{self._api}{rng.choice(places)}".encode(), list(headers), b""

    def change(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        """What would change the base, from another site's page."""
        origin = [
            b"https://evil.example",
            b"null",
            b"file://",
            b"http://127.0.0.1:1",
            b"http://localhost.evil.example",
        ]
        site = rng.choice(
            [(b"Origin", rng.choice(origin)), (b"Sec-Fetch-Site", rng.choice([b"cross-site", b"same-site"]))]
        )
        method, path = rng.choice(
            [
                (b"DELETE", f"{self._api}/documents/{self._keys[0]}"),
                (b"DELETE", f"{self._api}/questions"),
                (b"POST", f"{self._api}/uploads"),
                (b"POST", "/login"),
                (b"POST", f"/b/{self._api.rpartition('/')[2]}/ask"),
            ]
        )
        return method, path.encode(), [site, (b"Content-Type", b"text/plain")], b""

    def json(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        body = mutate(rng.choice(JSON_BODIES), JSON_BODIES, rng)
        path = rng.choice([f"{self._api}/questions", f"{self._api}/search", "/v1/chat/completions", "/mcp"])
        return b"POST", path.encode(), [*self.sized(body), (b"Content-Type", b"application/json")], body

    def upload(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        names = ["../../a.md", "a.md\0.exe", "x" * 999 + ".md", "CON.md", "<script>.md", "a.zip", "…", ".md"]
        body = mutate(multipart((rng.choice(names), b"Words.")), [b"\r\n--" + BOUNDARY.encode()], rng)
        form = (
            f"multipart/form-data; boundary={rng.choice([BOUNDARY, BOUNDARY, BOUNDARY[:-1], '', 'x' * 999])}"
        )
        path = rng.choice([f"{self._api}/uploads", f"{self._api}/graphs"])
        return b"POST", path.encode(), [*self.sized(body), (b"Content-Type", form.encode())], body

    def sized(self, body: bytes) -> list[tuple[bytes, bytes]]:
        return [(b"Content-Length", str(len(body)).encode())]

    def length(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        body = JSON_BODIES[0]
        claims = [
            b"-1",
            b"1e9",
            b"9" * 30,
            b"0x10",
            b"",
            b"\xb2",
            b"1, 2",
            b"+5",
            b" 5 ",
            b"0" * 5_000 + b"5",
            b"1073741824",
        ]
        headers = [(b"Content-Length", rng.choice(claims))]
        if rng.random() < 0.5:
            headers += rng.choice([self.sized(body), [(b"Transfer-Encoding", b"chunked")]])
        return (
            b"POST",
            f"{self._api}/questions".encode(),
            [*headers, (b"Content-Type", b"application/json")],
            body,
        )

    def chunks(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        size = rng.choice(
            [b"10000000000000000", b"-1", b"zz", b"5;" + b"x" * 9_000, b"fffffff", b"0", b"5\n", b" 5"]
        )
        coding = rng.choice(
            [b"chunked", b"Chunked", b"gzip, chunked", b"chunked, chunked", b"identity", b"\x0bchunked"]
        )
        body = size + b"\r\n" + JSON_BODIES[0] + b"\r\n0\r\n\r\n"
        headers = [(b"Transfer-Encoding", coding), (b"Content-Type", b"application/json")]
        return b"POST", f"{self._api}/search".encode(), headers, body

    def header(self, rng: random.Random) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        headers = rng.choice(
            [
                [(b"Host", rng.choice(HOSTS).encode())],
                [(b"Host", b"127.0.0.1"), (b"Host", b"evil.example")],
                [(b"X-A", b"b" * log_size(rng))],
                [(b"X-%d" % number, b"b") for number in range(rng.randint(10, 5_000))],
                [(b"Cookie", b"a=b; " * log_size(rng, 5))],
                [(b"X-Forwarded-Host", b"localhost"), (b"Host", b"evil.example")],
                [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Key", b"eA==")],
                [(b"Upgrade", b"h2c"), (b"HTTP2-Settings", b"AAMAAABkAAQAAP__")],
                [(b"Expect", b"100-continue"), (b"Content-Length", b"5")],
                [(b"Accept-Language", b"\xff\xfe" * 99)],
                [(b"Last-Event-ID", rng.choice([b"-1", b"9" * 99, b"nan", b"\x00"]))],
            ]
        )
        return b"GET", f"{self._api}/documents".encode(), list(headers), b""


def log_size(rng: random.Random, times: int = 1) -> int:
    return int(10 ** (rng.random() * 5)) // times + 1


def send(port: int, data: bytes) -> tuple[bytes, float]:
    """Send bytes and read until the server ends the connection; return the reply and the seconds it took."""
    started = time.monotonic()
    reply = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=3 * SECONDS) as connection:
            connection.settimeout(3 * SECONDS)
            with suppress(OSError):  # it may be refused before all of it was read
                connection.sendall(data)
            while len(reply) < 1 << 22 and (part := connection.recv(65_536)):
                reply += part
    except OSError as error:
        reply += b"" if isinstance(error, ConnectionError) else repr(error).encode()
    return reply, time.monotonic() - started


def broken_rules(request: Request, reply: bytes, seconds: float) -> list[str]:
    rules = []
    statuses = [part[:3] for part in reply.split(b"HTTP/1.1 ")[1:]]
    if seconds > SECONDS:
        rules.append(f"{seconds:.0f} seconds")
    if any(status.startswith(b"5") and status not in (b"503", b"507", b"501", b"505") for status in statuses):
        rules.append("a reply of 500")
    if b"Traceback" in reply or SECRET.encode() in reply or b"root:x" in reply:
        rules.append("a trace or a file of the system")
    if not request.has_token and any(name.encode() in reply for name in FILES):
        rules.append("a document was named without the token")
    # The login page and what lies below /static/ are for everyone.
    is_open = b"login" in request.data or b"/static/" in request.data
    if not request.has_token and not is_open and any(status in (b"200", b"202") for status in statuses):
        rules.append("let in without the token")
    return rules


def run(seed: int, number: int, clients: int) -> int:
    """Send the requests, print the table, and return how many broke a rule."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "kb"
        Path(place, "secret.txt").write_text(SECRET)
        with clew.open(folder, create=True) as base:
            base.add([SAMPLES / name for name in FILES], workers=1)
            keys = [document.key for document in base.documents()]
        with ServedApp(folder, token=TOKEN) as app:
            owner = {"Authorization": f"Bearer {TOKEN}"}
            before = _answer(app, owner)
            maker = Maker(app.api, app.port, keys)
            requests = [maker.request(seed, item) for item in range(number)]
            with ThreadPoolExecutor(clients) as pool:
                replies = list(pool.map(lambda request: send(app.port, request.data), requests))
            after = _answer(app, owner)
            there = {document["key"] for document in app.get(f"{app.api}/documents", **owner)[1]["documents"]}
    broken = _print_table(requests, replies)
    if before != after or not there >= set(keys):
        sys.stdout.write(f"the server answers or holds something else: {before} {after}\n")
        broken += 1
    return broken


def _answer(app: ServedApp, owner: dict[str, str]) -> str:
    status, reply = app.post(f"{app.api}/search", {"question": QUESTION}, **owner)
    return f"{status} {[hit['id'] for hit in reply['hits']][:1]}"


def _print_table(requests: list[Request], replies: list[tuple[bytes, float]]) -> int:
    counts: Counter[str] = Counter()
    slowest: dict[str, float] = {}
    statuses: dict[str, Counter[str]] = {}
    lines = []
    for number, (request, (reply, seconds)) in enumerate(zip(requests, replies, strict=True)):
        kind = f"{request.kind.partition(',')[0]}{'' if request.has_token else ', without the token'}"
        counts[kind] += 1
        slowest[kind] = max(slowest.get(kind, 0.0), seconds)
        status = reply[9:12].decode("latin-1") if reply.startswith(b"HTTP/1.1 ") else "closed"
        statuses.setdefault(kind, Counter())[status] += 1
        if rules := broken_rules(request, reply, seconds):
            lines.append(
                f"{number} ({request.kind}): {'; '.join(rules)}: {request.data[:200]!r} -> {reply[:200]!r}"
            )
    sys.stdout.write("| kind | requests | slowest, s | replies |\n| --- | ---: | ---: | --- |\n")
    for kind in sorted(counts):
        shown = ", ".join(f"{status} {times}" for status, times in sorted(statuses[kind].items()))
        sys.stdout.write(f"| {kind} | {counts[kind]} | {slowest[kind]:.1f} | {shown} |\n")
    sys.stdout.write(f"\n{len(requests)} requests, {len(lines)} broke a rule\n")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return len(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=900)
    parser.add_argument("--clients", type=int, default=24)
    given = parser.parse_args()
    return int(run(given.seed, given.number, given.clients) > 0)


if __name__ == "__main__":
    sys.exit(main())
