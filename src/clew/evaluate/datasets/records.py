"""Records of a file, one at a time, with where each stands: JSON lines, JSON arrays and objects, CSV.

Benchmarks are published as arrays of gigabytes. They are read in blocks, and a record is decoded when its end
has come.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from clew.core.errors import UsageError

_BLOCK = 1 << 16
#: A record beyond this many characters is no record: the file is something else.
_LONGEST = 1 << 28
_BETWEEN = re.compile(r"[\s,]*")


def read_records(path: Path, keyed: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield (place, record) of a JSON array or of JSON lines; of a JSON object, ``keyed``, its [key, value].

    The place is for people: ``train.json, line 7``. Raises UsageError for a file that is none of them.
    """
    with _decoding(path), _opened(path) as stream:
        first = _first(stream)
        stream.seek(0)
        if not first:
            raise UsageError(f"{path} is empty")
        if first == "[" or (keyed and first == "{"):
            yield from _elements(path, stream, first, "]" if first == "[" else "}")
        else:
            yield from _lines(path, stream)


def starts_with(path: Path, beginning: str) -> bool:
    """Return whether a file begins so, white space left out. Raises UsageError."""
    with _decoding(path), _opened(path) as stream:
        return all(_first(stream) == character for character in beginning)


def _first(stream: IO[str]) -> str:
    first = stream.read(1)
    while first.isspace():
        first = stream.read(1)
    return first


def read_csv_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (place, cells) of a CSV file. Raises UsageError."""
    with _decoding(path), _opened(path) as stream:
        reader = csv.reader(stream)
        try:
            for row in reader:
                if any(row):
                    yield f"{path.name}, line {reader.line_num}", row
        except csv.Error as error:
            raise UsageError(f"{path.name}, line {reader.line_num}: {error}") from error


def read_text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (place, line) of the lines of a text file that are not blank. Raises UsageError."""
    with _decoding(path), _opened(path) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield f"{path.name}, line {number}", line.rstrip("\r\n")


@contextmanager
def _decoding(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name} is not text in UTF-8", f"At byte {error.start} of a block") from error


def _opened(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _lines(path: Path, stream: IO[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            place = f"{path.name}, line {number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                raise UsageError(f"{place} is not JSON: {error}") from error
            yield place, record


def _elements(path: Path, stream: IO[str], opening: str, closing: str) -> Iterator[tuple[str, Any]]:
    decode = json.JSONDecoder().raw_decode
    buffer, line, number = "", 1, 0
    at = 0
    while True:
        block = stream.read(_BLOCK)
        buffer = buffer[at:] + block
        at = 0
        if number == 0 and opening in buffer and not buffer[: buffer.index(opening)].strip():
            line += buffer[: buffer.index(opening)].count("\n")
            at, number = buffer.index(opening) + 1, 1
        while number:
            start = _skipped(buffer, at)
            if start == len(buffer):
                break
            if buffer[start] == closing:
                return
            place = f"{path.name}, line {line + buffer.count(chr(10), at, start)}"
            try:
                record, end = _decoded(decode, buffer, start, opening)
            except ValueError as error:
                # A record that goes on in the next block, unless there is none.
                if block and len(buffer) - start < _LONGEST:
                    break
                raise UsageError(f"{place} is not JSON: {error}") from error
            if end == len(buffer) and block:
                break
            line += buffer.count("\n", at, end)
            at, number = end, number + 1
            yield place, record
        if not block:
            raise UsageError(f"{path.name} ends before its '{closing}'", "Is it a whole file?")


def _skipped(buffer: str, at: int) -> int:
    match = _BETWEEN.match(buffer, at)
    return match.end() if match else at


def _decoded(decode: Any, buffer: str, start: int, opening: str) -> tuple[Any, int]:
    record, end = decode(buffer, start)
    if opening == "[":
        return record, end
    colon = re.compile(r"\s*:\s*").match(buffer, end)
    if not colon:
        raise ValueError("no ':' after a key")
    value, end = decode(buffer, colon.end())
    return [record, value], end


def require_field(place: str, record: Any, key: str, kind: type | tuple[type, ...] = str) -> Any:
    """Return ``record[key]``. Raises UsageError that names the place where it is missing or of another type."""
    if not isinstance(record, dict):
        raise UsageError(f"{place}: not a JSON object")
    if key not in record:
        raise UsageError(f"{place}: no '{key}'", f"It has: {', '.join(list(record)[:8])}")
    value = record[key]
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(one.__name__ for one in kinds)
        raise UsageError(f"{place}: '{key}' is not a {wanted}: {str(value)[:60]}")
    return value


def distinct_texts(values: Iterator[str] | list[str]) -> tuple[str, ...]:
    """Return values without repetitions and without empty ones, in their order."""
    return tuple(dict.fromkeys(value for value in values if value.strip()))
