"""Files of arrays: written as a whole with their checksums, opened memory-mapped, listed in a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import Damaged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.generic]]


def write_arrays(
    arrays: Arrays, folder: Path, unchanged: Mapping[Path, list[int | str]] = MappingProxyType({})
) -> dict[str, list[int | str]]:
    """Write each array to a file of a new folder; return the size and checksum of every file.

    ``unchanged`` are files of another folder, with their sizes and checksums, that the new one shares: no file is
    ever written again. The folder appears with all its files or not at all.
    """
    unfinished = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    files: dict[str, list[int | str]] = {}
    for name, array in arrays.items():
        path = unfinished / f"{name}.npy"
        with path.open("wb") as file:
            np.save(file, array)
            file.flush()
            os.fsync(file.fileno())
        files[path.name] = [path.stat().st_size, file_checksum(path)]
    for path, entry in unchanged.items():
        try:
            os.link(path, unfinished / path.name)
        except OSError:  # a file system without links
            shutil.copyfile(path, unfinished / path.name)
        files[path.name] = entry
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    return files


def read_arrays(folder: Path, files: dict[str, list[int | str]]) -> Arrays:
    """Open arrays, memory-mapped, by name. Raises Damaged where a file is missing or has another size than listed."""
    arrays: Arrays = {}
    for file, (size, _) in files.items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != size:
            raise Damaged(f"{path} is missing or truncated", "It is rebuilt: clew doctor")
        try:
            # A plain array: slicing np.memmap itself costs microseconds, for every term of every query.
            arrays[path.stem] = np.load(path, mmap_mode="r").view(np.ndarray)
        except ValueError as error:
            raise Damaged(f"{path} is damaged", "It is rebuilt: clew doctor") from error
    return arrays


def file_checksum(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def write_manifest(path: Path, content: object) -> None:
    """Replace a manifest atomically, also if the machine stops meanwhile."""
    unfinished = path.with_suffix(".new")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
