"""Graph files as lines, decompressed; and the errors of their rows."""

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

#: So many messages are kept. After so many bad rows, the reading of a file that must be correct ends.
MAX_MESSAGES = 20
_BLOCK = 1 << 20
_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class BadRow(ValueError):
    """A row that cannot be part of a graph, and why."""


@dataclass(slots=True)
class RowErrors:
    """The bad rows of an import. With ``skip`` they are counted; without it, twenty of them end the import.

    ``messages`` has the first twenty as ``FILE: line N: why``. ``omitted`` counts, by reason, correct rows that are
    not taken.
    """

    skip: bool = False
    count: int = 0
    messages: list[str] = field(default_factory=list)
    omitted: dict[str, int] = field(default_factory=dict)

    def add(self, file: Path, line: int, why: str) -> None:
        """Count a bad row. Raises BadRows if there are too many."""
        self.count += 1
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(f"{file.name}: line {line:,}: {why}")
        if not self.skip and self.count >= MAX_MESSAGES:
            self.raise_errors()

    def raise_errors(self) -> None:
        """Raise BadRows if there is a bad row and bad rows are not skipped."""
        if self.count and not self.skip:
            raise BadRows(self.messages)

    def omit(self, reason: str) -> None:
        """Count a row that is correct but not taken."""
        self.omitted[reason] = self.omitted.get(reason, 0) + 1


def empty_file_error(path: Path) -> UnreadableFile:
    """Return the error for a file without content."""
    return UnreadableFile(f"{path}: the file is empty", "A graph has at least a node or an edge")


def is_compressed(path: Path) -> bool:
    """Return whether a file is compressed (gzip, bzip2, xz), by its suffix."""
    return path.suffix.lower() in _COMPRESSED


@dataclass(slots=True)
class GraphFile:
    """An open graph file: its bytes on disk (``raw``) and decompressed (``file``).

    ``report_progress`` is called with the number of bytes on disk that are read.
    """

    path: Path
    raw: IO[bytes]
    file: IO[bytes]
    report_progress: Callable[[int], None]

    def read_blocks(self) -> Iterator[bytes]:
        """Yield the bytes in blocks of whole lines, without a byte order mark."""
        is_first = True
        while block := self.file.read(_BLOCK):
            block += self.file.readline()
            yield block.removeprefix(b"\xef\xbb\xbf") if is_first else block
            is_first = False
            self.report_progress(self.raw.tell())

    def decode_lines(self, block: bytes, first: int, errors: RowErrors) -> list[str]:
        """Return the lines of a block with their ends; ``first`` is the number of its first line, from 1.

        A line that is not UTF-8 is a bad row, and returned empty.
        """
        try:
            return list(StringIO(block.decode(), newline="\n"))
        except UnicodeDecodeError:
            return list(self._decode_each(block.removesuffix(b"\n").split(b"\n"), first, errors))

    def read_lines(self, errors: RowErrors) -> Iterator[str]:
        """Yield the lines with their ends. A line that is not UTF-8 is a bad row, and yielded empty."""
        first = 1
        for block in self.read_blocks():
            lines = self.decode_lines(block, first, errors)
            yield from lines
            first += len(lines)

    def _decode_each(self, lines: list[bytes], first: int, errors: RowErrors) -> Iterator[str]:
        for number, line in enumerate(lines, first):
            try:
                yield f"{line.decode()}\n"
            except UnicodeDecodeError as error:
                errors.add(self.path, number, f"byte {error.start + 1} is not UTF-8")
                yield "\n"


@contextmanager
def open_graph_file(path: Path, report_progress: Callable[[int], None]) -> Iterator[GraphFile]:
    """Open a file, decompressed. Raises UnreadableFile where it cannot be read."""
    try:
        with path.open("rb") as raw:
            opener = _COMPRESSED.get(path.suffix.lower())
            file: IO[bytes] = opener(raw, "rb") if opener else raw
            yield GraphFile(path, raw, file, report_progress)
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise UnreadableFile(f"{path}: the compressed file is damaged ({error})") from error
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
