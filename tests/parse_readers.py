"""Readers for the tests of the parse pool: they do what a file's first word says. Spawned workers import
this module, so it imports little."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import time
from pathlib import Path

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.formats import document_formats
from clew.parse.documents.reader import parse


def obey(  # noqa: C901
    path: Path, *, unit: str
) -> ParsedDocument:
    """Read a file whose first word says how the reading ends."""
    text = path.read_text()
    match text.split()[0]:
        case "refuse":
            raise UnreadableFile("is not to my liking", "Try another")
        case "hang":
            time.sleep(1_000)
        case "spin":
            re.match(r"(a+)+$", "a" * 60 + "b")  # holds the interpreter's lock
        case "segfault":
            ctypes.string_at(0)
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
        case "die-later":
            # The formats are loaded first, so that the answer is given in time; then the process is killed while it
            # waits for the next file.
            document_formats()
            os.posix_spawn("/bin/sh", ["sh", "-c", f"sleep 0.5; kill -9 {os.getpid()}"], {})
    return parse(text.encode(), path.name, unit="sentence" if unit == "sentence" else "paragraph")


def announce(path: Path, *, unit: str) -> ParsedDocument:
    """Write this process's id beside the file, then read."""
    path.with_suffix(".pid").write_text(str(os.getpid()))
    return obey(path, unit=unit)
