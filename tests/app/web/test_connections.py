"""Connections that are slow, endless or many: each ends or is refused by itself, and no other request waits."""

import asyncio
import http.client
import json
import shutil
import socket
import sys
import time

import pytest

from clew.app.web.errors import ServerBusy
from clew.app.web.events import EventChannel, StreamLimiter
from clew.app.web.settings import Limits
from scripted import Reply, ScriptedServer
from serve_app import QUESTION, ServedApp, waited_for

LIMITS = Limits(header_seconds=0.5, body_seconds=0.5, idle_seconds=0.5)
JSON_HEAD = "POST {api}/questions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
#: Seconds in which a connection has to be answered or closed: the limits, what is left to read a reply, and some.
PATIENCE = 4.0


@pytest.fixture(scope="module")
def hasty(made_base, tmp_path_factory):
    """A server that waits for half a second."""
    copy = tmp_path_factory.mktemp("hasty") / "harbour"
    shutil.copytree(made_base, copy)
    with ServedApp(copy, limits=LIMITS) as app:
        yield app


def talk(app, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send parts, and return what comes back until the server closes. Raises TimeoutError if it does not close."""
    deadline = time.monotonic() + PATIENCE
    with socket.create_connection(("127.0.0.1", app.port), timeout=PATIENCE) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
                if time.monotonic() > deadline:
                    raise TimeoutError("still open")
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except ConnectionError:
            return b"reset"


@pytest.mark.parametrize("size", ["10000000000000000", "FFFFFFFFFFFFFFFFFFFF", "40000000"])
@pytest.mark.parametrize("path", ["questions", "uploads"])
def test_a_chunk_larger_than_any_request_is_refused_at_once(app, path, size) -> None:
    head = f"POST {app.api}/{path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    head += "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    assert talk(app, f"{head}{size}\r\nabc".encode()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "length", ["18446744073709551616", "9" * 19, "9" * 5_000, "-1", "+3", "0x3", "3_0", ""]
)
def test_a_content_length_that_cannot_be_is_refused_at_once(app, length) -> None:
    head = f"{JSON_HEAD.format(api=app.api)}Content-Length: {length}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", app.port), timeout=PATIENCE) as connection:
        connection.sendall(f"{head}abc".encode())
        assert connection.recv(100)[9:12] in {b"400", b"413"}


@pytest.mark.slow
def test_a_request_that_does_not_come_to_an_end_is_dropped(hasty) -> None:
    head = JSON_HEAD.format(api=hasty.api).encode()
    drip = [b"x"] * 100
    assert talk(hasty, b"") == talk(hasty, b"GET / HTTP/1.1\r\nHo") == b""  # headers that do not come
    assert talk(hasty, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", *drip, pause=0.1) in {b"", b"reset"}
    body = head + b"Content-Length: 100\r\n\r\n"
    assert talk(hasty, body)[9:12] in {b"400", b"408"}  # a body that does not come
    answer = talk(hasty, body, *drip, pause=0.1)  # a body of ten bytes a second
    assert answer[9:12] in {b"400", b"408"} or answer == b"reset"
    assert hasty.get("/api/bases")[0] == 200


@pytest.mark.slow
def test_a_reply_that_nobody_reads_is_given_up(hasty) -> None:
    connections = hasty.serving._server.server_state.connections
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", hasty.port))
        # Each reply has some tens of thousands of bytes: more in all than the system keeps for a reader.
        connection.sendall(b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400)
        waited_for(lambda: connections)
        waited_for(lambda: not connections)
    assert hasty.get("/api/bases")[0] == 200


def test_streams_are_counted_in_all_and_for_each_client() -> None:
    limiter, ended = StreamLimiter(3, 2), []

    def hold(client):
        return limiter.open_stream(client, lambda: ended.append(client))

    with hold("a"), hold("a"):
        with pytest.raises(ServerBusy), hold("a"):
            pass
        with hold("b"):
            assert not ended
            # All are taken: who has most makes room, once for each that has fewer.
            with hold("c"):
                assert ended == ["a"]
                with pytest.raises(ServerBusy), hold("d"):
                    pass
                with pytest.raises(ServerBusy), hold("c"):
                    pass
    with hold("a"):
        assert ended == ["a"]


def test_events_that_wait_are_written_together() -> None:
    channel = EventChannel()
    for number in range(600):
        channel.send("step", {"number": number})
    channel.close()

    async def read_all():
        return [text async for text in channel.follow(after=100)]

    writes = asyncio.run(read_all())
    assert len(writes) == 2
    assert "".join(writes).count("event: step") == 500 and writes[0].startswith("id: 101\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a second address on loopback")
def test_who_has_most_streams_makes_room_for_another(made_base, tmp_path) -> None:
    folder = tmp_path / "harbour"
    shutil.copytree(made_base, folder)
    with ServedApp(folder, limits=Limits(streams=4)) as app:

        def follow(address):
            connection = http.client.HTTPConnection(
                "127.0.0.1", app.port, timeout=10, source_address=(address, 0)
            )
            connection.request("GET", f"{app.api}/uploads/events")
            return connection, connection.getresponse()

        first = [follow("127.0.0.1") for _ in range(4)]
        refused, other = follow("127.0.0.1"), follow("127.0.0.2")
        assert refused[1].status == 503
        assert other[1].status == 200
        assert first[0][1].read() == b"" and [reply.status for _, reply in first] == [200] * 4
        for connection, _ in [*first, refused, other]:
            connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(False, marks=pytest.mark.slow), True])
def test_many_streams_of_events_are_answered_or_refused_and_nobody_waits(made_base, tmp_path, page) -> None:
    folder = tmp_path / "harbour"
    shutil.copytree(made_base, folder)
    limits = Limits(client_streams=40)
    with (
        ScriptedServer(lambda request: Reply("9", delay=3.0)) as model,
        ServedApp(folder, models=[model.llm], limits=limits) as app,
    ):
        asked = app.post(f"{app.api}/questions", {"question": QUESTION})[1]
        path = f"/b/{app.base}/q/{asked['id']}/events" if page else asked["events"]
        connections = [http.client.HTTPConnection("127.0.0.1", app.port, timeout=10) for _ in range(100)]
        for connection in connections:
            connection.request("GET", path)
        replies = [connection.getresponse() for connection in connections]
        statuses = [reply.status for reply in replies]
        assert statuses.count(200) == 40 and statuses.count(503) == 60
        refused = next(reply for reply in replies if reply.status == 503)
        assert int(refused.headers["Retry-After"]) > 0 and set(json.loads(refused.read())) == {
            "error",
            "hint",
        }
        started = time.monotonic()
        assert (
            app.get("/api/bases")[0] == 200 and app.post(f"{app.api}/search", {"question": "hire"})[0] == 200
        )
        assert time.monotonic() - started < 3.0
        for connection in connections:
            connection.close()
        app.post(f"{app.api}/questions/{asked['id']}/stop")
