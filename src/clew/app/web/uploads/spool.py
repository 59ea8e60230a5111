"""Uploaded files that wait to be read: a folder inside that of the base, written so that a power cut loses none.

A file arrives as ``ID.part``. It is accepted once it is whole on the disk as ``ID.data``, with its record ``ID.json``
beside it. The record holds the file's name, which is never used as a path. A file that was read is deleted; one that
could not be read leaves its record, which says why, until a user has seen it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from clew.core.errors import NotFound
from clew.core.files import create_folder, open_private, replace_file, sync_folder
from clew.core.text import clean_name

FOLDER = "spool"
WAITING, READING, INDEXING, ENCODING, DONE, FAILED = (
    "waiting",
    "reading",
    "indexing",
    "encoding",
    "done",
    "failed",
)
#: States in which an upload has ended.
FINAL_STATES = (DONE, FAILED)
_ID = re.compile(r"[0-9a-f]{24}")
#: Characters that a name may have.
_MAX_NAME = 180


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file.

    ``kind`` is ``document`` or ``graph``; ``graph`` is the name of the graph, and ``form`` its format, "" for that
    of its name. ``tries`` counts the attempts to read it; ``error`` and ``hint`` say why it could not be read;
    ``key`` is the key of the resulting document, and ``notes`` are remarks of the parser."""

    id: str
    kind: Literal["document", "graph"]
    name: str
    size: int
    uploaded: float
    graph: str = ""
    form: str = ""
    state: str = WAITING
    tries: int = 0
    error: str = ""
    hint: str = ""
    key: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON-compatible dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Upload:
        """Return the upload of a dictionary of :meth:`to_dict`."""
        return cls(**record | {"notes": tuple(record["notes"])})


class Spool:
    """The spool of the base in ``folder``. A server and its upload worker share it: every change is one rename or one
    deletion."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FOLDER

    def begin(self) -> tuple[str, IO[bytes]]:
        """Return the id of a new file, and the file to write it to."""
        create_folder(self.path)
        id = secrets.token_hex(12)
        return id, open_private(self.path / f"{id}.part", "xb")

    def accept(self, upload: Upload) -> None:
        """Accept a file that has arrived; after this it survives a power cut."""
        part = self.path / f"{upload.id}.part"
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(self.data_path(upload.id))
        self.write_record(upload)

    def discard(self, id: str) -> None:
        """Delete a file that was not accepted."""
        for ending in ("part", "new", "json", "data"):
            (self.path / f"{id}.{ending}").unlink(missing_ok=True)

    def data_path(self, id: str) -> Path:
        """Return the path of a file."""
        return self.path / f"{id}.data"

    def write_record(self, upload: Upload) -> None:
        """Write the record of a file."""
        replace_file(self.path / f"{upload.id}.json", json.dumps(upload.to_dict()))
        sync_folder(self.path)

    def all_uploads(self) -> list[Upload]:
        """Return the files that wait or could not be read, the oldest first."""
        uploads = []
        for path in self.path.glob("*.json") if self.path.is_dir() else ():
            try:
                uploads.append(Upload.from_dict(json.loads(path.read_text(encoding="utf-8"))))
            except FileNotFoundError:  # done meanwhile
                continue
        return sorted(uploads, key=lambda upload: (upload.uploaded, upload.id))

    def waiting_uploads(self) -> list[Upload]:
        """Return the files that are still to be read, the smallest first: none waits behind a larger one."""
        waiting = [upload for upload in self.all_uploads() if upload.state not in FINAL_STATES]
        return sorted(waiting, key=lambda upload: upload.size)

    def record_failure(self, upload: Upload, error: str, hint: str = "") -> Upload:
        """Record why a file cannot be read, and delete it."""
        failed = replace(upload, state=FAILED, error=error, hint=hint)
        self.write_record(failed)
        self.data_path(upload.id).unlink(missing_ok=True)
        return failed

    def forget(self, id: str) -> None:
        """Delete a file and its record. Raises NotFound."""
        if not _ID.fullmatch(id):
            raise NotFound(f"no upload '{id}'")
        try:
            (self.path / f"{id}.json").unlink()
        except FileNotFoundError:
            raise NotFound(f"no upload '{id}'") from None
        self.data_path(id).unlink(missing_ok=True)

    def delete_leftovers(self) -> None:
        """Delete files that a killed server had not accepted; called before the first upload."""
        for path in list(self._leftovers()):
            path.unlink(missing_ok=True)

    def _leftovers(self) -> Iterator[Path]:
        if not self.path.is_dir():
            return
        yield from self.path.glob("*.part")
        yield from self.path.glob("*.new")
        for data in self.path.glob("*.data"):
            if not data.with_suffix(".json").exists():
                yield data


def display_name(path: str) -> str:
    r"""Return a file name as it is shown and searched for: the last part of a path, cleaned.

    >>> shown_name("..\\\\..\\\\C:\\\\report.pdf"), shown_name("../../etc/passwd"), shown_name("..")
    ('report.pdf', 'passwd', 'file')
    """
    last = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = " ".join(clean_name(last).split()).lstrip(".").strip()
    stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix[:16]
    return f"{stem[: _MAX_NAME - len(suffix)]}{suffix}" if stem else "file"


def new_upload(id: str, kind: Literal["document", "graph"], name: str, size: int) -> Upload:
    """Return the record of an upload that arrives now."""
    return Upload(id, kind, display_name(name), size, time.time())
