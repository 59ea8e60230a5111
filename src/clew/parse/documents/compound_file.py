"""Compound files: the containers of old Microsoft Office files and of Outlook messages ([MS-CFB]).

A file system in a file: chains of sectors, listed in an allocation table, and a tree of storages (folders) and
streams (files). Every chain is followed at most once through each of its sectors, so that a loop ends.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from clew.core.errors import UnreadableFile

SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_END, _FREE = 0xFFFFFFFE, 0xFFFFFFFF
_NO_ENTRY = 0xFFFFFFFF
_STORAGE, _STREAM, _ROOT = 1, 2, 5
_MINI_LIMIT = 4096
_DAMAGED = "is damaged: its container cannot be read"


class CompoundFile:
    """An open compound file. Raises UnreadableFile where it is damaged."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 512 or not data.startswith(SIGNATURE):
            raise UnreadableFile(_DAMAGED)
        self._data = data
        shift, mini_shift = struct.unpack_from("<HH", data, 30)
        if shift not in (9, 12) or mini_shift != 6:
            raise UnreadableFile(_DAMAGED)
        self._size = 1 << shift
        directory, _, self._mini_limit, mini_table, _, extra, extra_count = struct.unpack_from(
            "<7I", data, 48
        )
        if self._mini_limit != _MINI_LIMIT:
            raise UnreadableFile(_DAMAGED)
        self._table = self._read_table(extra, extra_count)
        self._entries = list(_read_entries(b"".join(self._chain(directory))))
        if not self._entries or self._entries[0][1] != _ROOT:
            raise UnreadableFile(_DAMAGED)
        self._mini_table = _numbers(b"".join(self._chain(mini_table))) if mini_table < _END else ()
        self._mini_stream = b"".join(self._chain(self._entries[0][5])) if self._entries[0][6] else b""

    def _read_table(self, extra: int, extra_count: int) -> tuple[int, ...]:
        """Return the allocation table: for each sector the next of its chain."""
        sectors = list(struct.unpack_from("<109I", self._data, 76))
        seen: set[int] = set()
        for _ in range(extra_count):
            if extra >= _END or extra in seen:
                break
            seen.add(extra)
            *more, extra = _numbers(self._sector(extra))
            sectors += more
        return _numbers(b"".join(self._sector(sector) for sector in sectors if sector < _END))

    def _sector(self, number: int) -> bytes:
        start = (number + 1) * self._size
        sector = self._data[start : start + self._size]
        if not sector:
            raise UnreadableFile("is damaged: it is cut off")
        # The last sector of some files is not filled up.
        return sector.ljust(self._size, b"\0")

    def _chain(self, start: int) -> Iterator[bytes]:
        seen: set[int] = set()
        while start < _END:
            if start in seen or start >= len(self._table):
                raise UnreadableFile(_DAMAGED)
            seen.add(start)
            yield self._sector(start)
            start = self._table[start]

    def names(self, path: tuple[str, ...] = ()) -> list[str]:
        """Return the names of the storages and streams in a storage, [] where there is no such storage."""
        number = self._find(path)
        return [self._entries[child][0] for child in self._children(number)] if number is not None else []

    def read(self, *path: str) -> bytes | None:
        """Return the content of a stream, None where there is none."""
        number = self._find(path)
        if number is None or self._entries[number][1] != _STREAM:
            return None
        _, _, _, _, _, start, size = self._entries[number]
        if size >= self._mini_limit:
            content = b"".join(self._chain(start))
        else:
            content = b"".join(self._mini_chain(start)) if size else b""
        if len(content) < size:
            raise UnreadableFile("is damaged: it is cut off")
        return content[:size]

    def _mini_chain(self, start: int) -> Iterator[bytes]:
        seen: set[int] = set()
        while start < _END:
            if start in seen or start >= len(self._mini_table):
                raise UnreadableFile(_DAMAGED)
            seen.add(start)
            yield self._mini_stream[start * 64 : start * 64 + 64]
            start = self._mini_table[start]

    def _find(self, path: tuple[str, ...]) -> int | None:
        number = 0
        for name in path:
            children = {self._entries[child][0].casefold(): child for child in self._children(number)}
            child = children.get(name.casefold())
            if child is None:
                return None
            number = child
        return number

    def _children(self, number: int) -> list[int]:
        """Return the entries of a storage, which are a binary tree."""
        children: list[int] = []
        seen: set[int] = set()
        waiting = [self._entries[number][4]]
        while waiting:
            child = waiting.pop()
            if child == _NO_ENTRY:
                continue
            if child in seen or child >= len(self._entries):
                raise UnreadableFile(_DAMAGED)
            seen.add(child)
            children.append(child)
            waiting += [self._entries[child][3], self._entries[child][2]]
        return children


def _numbers(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


def _read_entries(data: bytes) -> Iterator[tuple[str, int, int, int, int, int, int]]:
    """Yield name, kind, left and right sibling, first child, first sector and size of each entry of the directory."""
    for start in range(0, len(data) - 127, 128):
        length, kind = struct.unpack_from("<HB", data, start + 64)
        name = data[start : start + min(max(length - 2, 0), 62)].decode("utf-16-le", "replace")
        left, right, child = struct.unpack_from("<3I", data, start + 68)
        first, size = struct.unpack_from("<IQ", data, start + 116)
        # Version 3 leaves the upper half of the size undefined.
        yield name, kind, left, right, child, first, size & 0xFFFFFFFF
