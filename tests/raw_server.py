"""A server on this machine that answers as a test says, byte by byte: what no library of HTTP would send."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO, Self

#: What is sent for a request: its head and body are given; pieces are sent as they come, a float is a pause.
Answer = Callable[[bytes], Iterable[bytes | float]]


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole reply; ``Content_Type`` stands for ``Content-Type``."""
    fields = {"Content-Length": str(len(body)), **{k.replace("_", "-"): v for k, v in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def redirect(place: str, status: int = 302) -> bytes:
    """Return a reply that leads to another place."""
    return reply(status=f"{status} Moved", Location=place)


def endless(head: bytes, piece: bytes = b"x" * 65_536) -> Iterator[bytes]:
    """Yield a reply that does not end."""
    yield head
    while True:
        yield piece


def drip(head: bytes, piece: bytes = b"x") -> Iterator[bytes | float]:
    """Yield a reply that goes on for ever, with less than a tenth of a second between two bytes."""
    yield head
    while True:
        yield 0.02
        yield piece


class RawServer:
    """A context manager. ``asked`` has the requests, ``connections`` their number, ``sent`` the bytes of replies."""

    def __init__(self, answer: Answer, host: str = "127.0.0.1") -> None:
        self._answer, self._host = answer, host
        self.asked: list[bytes] = []
        self.connections = self.sent = 0
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._open:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(client)
            self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream, suppress(OSError):
            while request := self._read(stream):
                self.asked.append(request)
                for piece in self._answer(request):
                    if isinstance(piece, float):
                        time.sleep(piece)
                    elif piece == b"":
                        return  # the connection ends here
                    else:
                        client.sendall(piece)
                        self.sent += len(piece)

    def _read(self, stream: BinaryIO) -> bytes:
        lines = []
        while (line := stream.readline()) not in {b"", b"\r\n"}:
            lines.append(line)
        length = next((int(x.split(b":")[1]) for x in lines if x.lower().startswith(b"content-length:")), 0)
        return b"".join(lines) + stream.read(length)
