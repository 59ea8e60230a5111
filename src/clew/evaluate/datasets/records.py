"""Streaming readers of JSON lines, JSON arrays and objects, CSV and text lines, and checks of their records.

Every record comes with its place in the file (``train.json, line 7``) for error messages. Some benchmarks are JSON
arrays of several gigabytes, so arrays are read in blocks and decoded one record at a time.
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

_BLOCK_SIZE = 1 << 16
#: A longer record, in characters, means that the file is not JSON.
_LONGEST_RECORD = 1 << 28
_SEPARATORS = re.compile(r"[\s,]*")


def read_records(path: Path, keyed: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield (place, record) for each element of a JSON array, or each line of a file of JSON lines.

    With ``keyed``, a JSON object is read as its [key, value] pairs. Raises UsageError for any other file.
    """
    with _reporting_bad_encoding(path), _open(path) as stream:
        first = _first_character(stream)
        stream.seek(0)
        if not first:
            raise UsageError(f"{path} is empty")
        if first == "[" or (keyed and first == "{"):
            yield from _read_json_elements(path, stream, first, "]" if first == "[" else "}")
        else:
            yield from _read_json_lines(path, stream)


def starts_with(path: Path, beginning: str) -> bool:
    """Return whether the first characters of a file that are not white space are ``beginning``. Raises UsageError."""
    with _reporting_bad_encoding(path), _open(path) as stream:
        return all(_first_character(stream) == character for character in beginning)


def _first_character(stream: IO[str]) -> str:
    first = stream.read(1)
    while first.isspace():
        first = stream.read(1)
    return first


def read_csv_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (place, cells) for each row of a CSV file that is not empty. Raises UsageError."""
    with _reporting_bad_encoding(path), _open(path) as stream:
        reader = csv.reader(stream)
        try:
            for row in reader:
                if any(row):
                    yield f"{path.name}, line {reader.line_num}", row
        except csv.Error as error:
            raise UsageError(f"{path.name}, line {reader.line_num}: {error}") from error


def read_text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (place, line) for each line of a text file that is not blank. Raises UsageError."""
    with _reporting_bad_encoding(path), _open(path) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield f"{path.name}, line {number}", line.rstrip("\r\n")


@contextmanager
def _reporting_bad_encoding(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name} is not text in UTF-8", f"At byte {error.start} of a block") from error


def _open(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _read_json_lines(path: Path, stream: IO[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            place = f"{path.name}, line {number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                raise UsageError(f"{place} is not JSON: {error}") from error
            yield place, record


def _read_json_elements(path: Path, stream: IO[str], opening: str, closing: str) -> Iterator[tuple[str, Any]]:
    decode = json.JSONDecoder().raw_decode
    buffer, line, count = "", 1, 0
    position = 0
    while True:
        block = stream.read(_BLOCK_SIZE)
        buffer = buffer[position:] + block
        position = 0
        if count == 0 and opening in buffer and not buffer[: buffer.index(opening)].strip():
            line += buffer[: buffer.index(opening)].count("\n")
            position, count = buffer.index(opening) + 1, 1
        while count:
            match = _SEPARATORS.match(buffer, position)
            start = match.end() if match else position
            if start == len(buffer):
                break
            if buffer[start] == closing:
                return
            place = f"{path.name}, line {line + buffer.count(chr(10), position, start)}"
            try:
                record, end = _decode_element(decode, buffer, start, opening)
            except ValueError as error:
                # The record may go on in the next block.
                if block and len(buffer) - start < _LONGEST_RECORD:
                    break
                raise UsageError(f"{place} is not JSON: {error}") from error
            if end == len(buffer) and block:
                break
            line += buffer.count("\n", position, end)
            position, count = end, count + 1
            yield place, record
        if not block:
            raise UsageError(f"{path.name} ends before its '{closing}'", "Is it a whole file?")


def _decode_element(decode: Any, buffer: str, start: int, opening: str) -> tuple[Any, int]:
    record, end = decode(buffer, start)
    if opening == "[":
        return record, end
    colon = re.compile(r"\s*:\s*").match(buffer, end)
    if not colon:
        raise ValueError("no ':' after a key")
    value, end = decode(buffer, colon.end())
    return [record, value], end


def require_field(place: str, record: Any, key: str, kind: type | tuple[type, ...] = str) -> Any:
    """Return ``record[key]``. Raises UsageError, naming the place, where it is missing or of another type."""
    if not isinstance(record, dict):
        raise UsageError(f"{place}: not a JSON object")
    if key not in record:
        raise UsageError(f"{place}: no '{key}'", f"It has: {', '.join(list(record)[:8])}")
    value = record[key]
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        type_names = " or ".join(type_.__name__ for type_ in kinds)
        raise UsageError(f"{place}: '{key}' is not a {type_names}: {str(value)[:60]}")
    return value


def distinct_texts(values: Iterator[str] | list[str]) -> tuple[str, ...]:
    """Return the values in order, without duplicates and blank ones."""
    return tuple(dict.fromkeys(value for value in values if value.strip()))
