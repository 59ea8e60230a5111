"""Readers for the tests of the parse pool: they do what a file's first word says. Spawned workers import
this module, so it imports little."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.files import read_bytes
from clew.parse.documents.formats import document_formats
from clew.parse.documents.reader import parse


def obey(  # noqa: C901
    path: Path, *, unit: str
) -> ParsedDocument:
    """Read a file whose first word says how the reading ends."""
    text = read_bytes(path).decode()
    match text.split()[0]:
        case "refuse":
            raise UnreadableFile("is not to my liking", "Try another")
        case "hang":
            time.sleep(1_000)
        case "spin":
            re.match(r"(a+)+$", "a" * 60 + "b")  # holds the interpreter's lock
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "hog":
            bytearray(1 << 34)
        case "creep":
            hoard = []
            while True:
                hoard.append(bytearray(1 << 24))
        case "recurse":
            obey(path, unit=unit)
        case "bug":
            return {}["no such key"]
        case "order":
            return Order(path.with_name("ordered"))
        case "escape":
            return parse(
                f"escapes: {' '.join(escapes(path)) or 'none'}".encode(), path.name, unit="paragraph"
            )
        case "die-later":
            # The formats are loaded first, so that the answer is given in time; then the process is killed while it
            # waits for the next file.
            document_formats()
            os.posix_spawn("/bin/sh", ["sh", "-c", f"sleep 0.5; kill -9 {os.getpid()}"], {})
    return parse(text.encode(), path.name, unit="sentence" if unit == "sentence" else "paragraph")


class Order:
    """Whoever unpickles it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        """What a pickle of this has to be read by."""
        return os.mkdir, (str(self.folder),)


def escapes(path: Path) -> list[str]:
    """Return which of the things that a parser has no need for this process can do."""
    other = path.with_name("other.txt")
    ways = {
        "read": other.read_text,
        "read-again": path.read_text,
        "list": lambda: list(path.parent.iterdir()),
        "read-password-file": Path("/etc/passwd").read_text,
        "write-beside": lambda: path.with_suffix(".new").write_text("x"),
        "write-at-home": lambda: (Path.home() / "clew-escape-test").write_text("x"),
        "change": lambda: other.write_text("x"),
        "cut": lambda: os.truncate(other, 0),
        "delete": other.unlink,
        "rename": lambda: other.rename(path.with_name("renamed.txt")),
        "folder": lambda: path.with_suffix(".folder").mkdir(),
        "link": lambda: path.with_suffix(".link").symlink_to(path),
        "tcp": lambda: socket.create_connection(("127.0.0.1", int(os.environ["ESCAPE_PORT"])), 1),
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "local-socket": lambda: socket.socket(socket.AF_UNIX),
        "signal": lambda: os.kill(os.getppid(), 0),
        "program": lambda: subprocess.run(["/bin/rm", str(other)], check=True),
    }
    succeeded = []
    for name, attempt in ways.items():
        with suppress(OSError, subprocess.CalledProcessError):
            attempt()
            succeeded.append(name)
    return succeeded


def escape_beside_base(path: Path, *, unit: str = "", base: str, **options: str) -> None:
    """Write into the folder of a base what this process can do outside it."""
    Path(base, "escapes").write_text(" ".join(escapes(Path(base).parent / "outside.txt")))


def announce(path: Path, *, unit: str) -> ParsedDocument:
    """Write this process's id beside the file, then read."""
    path.with_suffix(".pid").write_text(str(os.getpid()))
    return obey(path, unit=unit)
