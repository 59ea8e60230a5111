"""Bad rows: remembered with their line, and what is done about them; and the bytes of a file as lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import IO, Any

from clew.core.errors import BadRows, UnreadableFile

#: After so many bad rows, a file that must be right is given up.
MAX_MESSAGES = 20
_BLOCK = 1 << 20
_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class BadRow(ValueError):
    """A row that cannot be part of a graph, and why."""


@dataclass(slots=True)
class RowErrors:
    """The bad rows of an import. Without ``skip``, the first twenty end it; with it, they are counted.

    ``first`` holds the first twenty as ``FILE: line N: why``. ``left_out`` counts, by reason, what is no fault and
    yet not taken.
    """

    skip: bool = False
    count: int = 0
    messages: list[str] = field(default_factory=list)
    omitted: dict[str, int] = field(default_factory=dict)

    def add(self, file: Path, line: int, why: str) -> None:
        """Note a bad row. Raises BadRows after too many."""
        self.count += 1
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(f"{file.name}: line {line:,}: {why}")
        if not self.skip and self.count >= MAX_MESSAGES:
            self.raise_errors()

    def raise_errors(self) -> None:
        """Raise BadRows where there is one and it must not be."""
        if self.count and not self.skip:
            raise BadRows(self.messages)

    def omit(self, what: str) -> None:
        """Count what is not taken."""
        self.omitted[what] = self.omitted.get(what, 0) + 1


def is_compressed(path: Path) -> bool:
    """Return whether a file's name says that it is compressed (gzip, bzip2, xz)."""
    return path.suffix.lower() in _COMPRESSED


@contextmanager
def open_graph_file(path: Path, tick: Callable[[int], None]) -> Iterator[GraphFile]:
    """Open a file, decompressed. Raises UnreadableFile where it cannot be read."""
    try:
        with path.open("rb") as raw:
            opener = _COMPRESSED.get(path.suffix.lower())
            file: IO[bytes] = opener(raw, "rb") if opener else raw
            yield GraphFile(path, raw, file, tick)
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise UnreadableFile(f"{path}: the compressed file is damaged ({error})") from error
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error


@dataclass(slots=True)
class GraphFile:
    """An open file. ``tick`` is told how many of its bytes on disk are read."""

    path: Path
    raw: IO[bytes]
    file: IO[bytes]
    report_progress: Callable[[int], None]

    def read_lines(self, faults: RowErrors) -> Iterator[str]:
        """Yield the lines with their ends; one that is not UTF-8 is a bad row, and empty here."""
        first = 1
        while block := self.file.readlines(_BLOCK):
            if first == 1:
                block[0] = block[0].removeprefix(b"\xef\xbb\xbf")
            try:
                yield from StringIO(b"".join(block).decode(), newline="\n")
            except UnicodeDecodeError:
                yield from self._one_by_one(block, first, faults)
            first += len(block)
            self.report_progress(self.raw.tell())

    def _one_by_one(self, block: list[bytes], first: int, faults: RowErrors) -> Iterator[str]:
        for number, line in enumerate(block, first):
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                faults.add(self.path, number, f"byte {error.start + 1} is not UTF-8")
                yield "\n"
