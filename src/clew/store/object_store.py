"""Object storage: ``s3://``, ``gs://`` and ``az://`` through the library obstore, behind a small protocol; and
``file://``, a folder that is used in the same way, such as one that several machines have mounted.

An object is written whole and never changed in part. Two processes that write the same name at once are told apart
by *conditional* writes: a write that names the version it replaces (or that there must be none) is done by the
storage itself in one step, or refused. Everything that needs a single winner is decided by one such write.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

from clew.core.config import data_path
from clew.core.errors import NotFound, StoreError, UsageError, require_packages
from clew.core.files import create_folder
from clew.core.text import shorten
from clew.store.database import hold_lock

T = TypeVar("T")

SCHEMES = ("s3", "gs", "az", "file")
#: What a storage tells of one state of an object: a conditional write names it.
Version = Any
#: Attempts of a request that may be repeated, beyond those of the library, and seconds before the second; each
#: further pause is twice as long, and a random part of it is left out, so that uploads that were refused together
#: do not come back together.
ATTEMPTS, PAUSE = 4, 0.25
#: Seconds for which the library itself repeats a request; its own default is three minutes.
RETRY_TIMEOUT = 15
_LOCK = ".lock"


class ObjectStore(Protocol):
    """The objects below one address. Names are relative to it. Every method raises StoreError."""

    @property
    def url(self) -> str:
        """The address, for messages."""
        ...

    def read(self, name: str) -> tuple[bytes, Version] | None:
        """Return an object and its version; None where there is none."""
        ...

    def version(self, name: str) -> Version | None:
        """Return the version of an object without reading it; None where there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write an object, in place of one with that name."""
        ...

    def write_if(self, name: str, content: bytes, version: Version | None) -> bool:
        """Write an object if its version is still ``version`` (None: if there is none); return whether it was.

        No two objects of the same name may have the same ``content``: where the answer to a write is lost, its
        success is recognised by reading the object.
        """
        ...

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the names that begin with the folder ``prefix``, and the bytes of each object."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone already are passed over."""
        ...


def is_object_url(place: str) -> bool:
    """Return whether ``place`` is an address rather than a folder. Raises UsageError for an unknown kind."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return False
    if scheme not in SCHEMES or not rest.strip("/"):
        raise UsageError(f"'{place}' is no folder and no address of object storage", "s3://BUCKET/PREFIX")
    return True


def local_name(url: str) -> str:
    """Return the name of the folders on this machine that belong to an address."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", url).strip("-.")[-40:].lstrip("-.")
    return f"{readable}-{hashlib.blake2b(url.encode(), digest_size=6).hexdigest()}"


def storage_path(url: str) -> Path:
    """Return the folder for what the users of this machine have beside the base at an address."""
    return data_path() / "storage" / local_name(url)


def open_object_store(url: str) -> ObjectStore:
    """Return the storage at ``url``. Credentials, region and endpoint come from the environment, as its own tools
    read them (``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT``, ...); so does the account of Azure.

    Raises MissingExtra, UsageError and StoreError.
    """
    is_object_url(url)
    if url.startswith("file://"):
        return FolderObjects(Path(url.removeprefix("file://")))
    require_packages("scale", "obstore", part="obstore, the client of object storage,")
    import obstore.store

    try:
        client = obstore.store.from_url(
            url.rstrip("/"),
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_TIMEOUT)},
        )
        return RemoteObjects(url.rstrip("/"), obstore, client)
    except obstore.exceptions.BaseError as error:
        raise _storage_error(url, error) from error


class RemoteObjects:
    """An :class:`ObjectStore` of the library obstore (``library``), which was opened as ``client``."""

    def __init__(self, url: str, library: ModuleType, client: Any) -> None:
        self.url = url
        self._library, self._client = library, client
        self._missing = library.exceptions.NotFoundError, FileNotFoundError

    def read(self, name: str) -> tuple[bytes, Version] | None:
        """Return an object and its version; None where there is none."""

        def get() -> tuple[bytes, Version] | None:
            try:
                reply = self._library.get(self._client, name)
                return bytes(reply.bytes()), _version_of(reply.meta)
            except self._missing as error:
                self._refuse_missing_bucket(error)
                return None

        return self._attempt(get)

    def version(self, name: str) -> Version | None:
        """Return the version of an object without reading it; None where there is none."""

        def head() -> Version | None:
            try:
                return _version_of(self._library.head(self._client, name))
            except self._missing:
                return None

        return self._attempt(head)

    def _refuse_missing_bucket(self, error: Exception) -> None:
        """Raise NotFound where the storage says that not only the object is missing."""
        if any(code in str(error) for code in ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")):
            raise NotFound(
                f"there is no bucket of {self.url}",
                "Check the address, or make the bucket (on Azure: the container) first",
            ) from error

    def write(self, name: str, content: bytes) -> None:
        """Write an object, in place of one with that name."""
        self._attempt(lambda: self._library.put(self._client, name, content))

    def write_if(self, name: str, content: bytes, version: Version | None) -> bool:
        """Write an object if its version is still ``version`` (None: if there is none); return whether it was."""
        refusals = self._library.exceptions.AlreadyExistsError, self._library.exceptions.PreconditionError

        def put() -> bool:
            try:
                self._library.put(self._client, name, content, mode=version or "create")
                return True
            except refusals as refusal:
                # Refused, or a repetition of a write whose answer was lost: the object shows which.
                stored = self.read(name)
                if stored is not None and stored[0] == content:
                    return True
                if (stored is None and version is None) or (stored is not None and stored[1] == version):
                    raise _Undecided from refusal  # another write at the same instant, which came to nothing
                return False

        return self._attempt(put)

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the names that begin with the folder ``prefix``, and the bytes of each object."""

        def list_sizes() -> dict[str, int]:
            batches = self._library.list(self._client, prefix)
            return {meta["path"]: meta["size"] for batch in batches for meta in batch}

        return self._attempt(list_sizes)

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone already are passed over."""
        for name in names:
            self._attempt(lambda name=name: self._delete(name))  # type: ignore[misc]

    def _delete(self, name: str) -> None:
        try:
            self._library.delete(self._client, name)
        except self._missing:
            return

    def _attempt(self, request: Callable[[], T]) -> T:
        """Return ``request()``, repeated where it fails in a way that may pass. It must be repeatable."""
        errors = self._library.exceptions
        lasting = errors.PermissionDeniedError, errors.UnauthenticatedError, *self._missing
        for attempt in range(ATTEMPTS):
            try:
                return request()
            except lasting as error:
                raise _storage_error(self.url, error) from error
            except (errors.BaseError, _Undecided) as error:
                if attempt == ATTEMPTS - 1:
                    raise _storage_error(self.url, error) from error
            time.sleep(PAUSE * 2**attempt * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable")


def _version_of(meta: Any) -> Version:
    marks = {name: meta[name] for name in ("e_tag", "version")}
    return {name: mark for name, mark in marks.items() if mark is not None}


class FolderObjects:
    """An :class:`ObjectStore` in a folder: an object is a file, its version the hash of its bytes.

    Conditional writes take turns by a lock file, which must work on the file system (NFS: from version 4 on).
    """

    def __init__(self, folder: Path) -> None:
        self.url = f"file://{folder}"
        self._folder = folder

    def read(self, name: str) -> tuple[bytes, Version] | None:
        """Return an object and its version; None where there is none."""
        try:
            content = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _storage_error(self.url, error) from error
        return content, hashlib.blake2b(content, digest_size=16).hexdigest()

    def version(self, name: str) -> Version | None:
        """Return the version of an object; None where there is none."""
        stored = self.read(name)
        return None if stored is None else stored[1]

    def write(self, name: str, content: bytes) -> None:
        """Write an object, in place of one with that name; it appears when it is complete."""
        path = self._folder / name
        try:
            create_folder(path.parent)
            descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                Path(unfinished).replace(path)
            except BaseException:
                with suppress(OSError):
                    Path(unfinished).unlink()
                raise
        except OSError as error:
            raise _storage_error(self.url, error) from error

    def write_if(self, name: str, content: bytes, version: Version | None) -> bool:
        """Write an object if its version is still ``version`` (None: if there is none); return whether it was."""
        try:
            create_folder(self._folder)
        except OSError as error:
            raise _storage_error(self.url, error) from error
        with hold_lock(self._folder / _LOCK):
            if self.version(name) != version:
                return False
            self.write(name, content)
            return True

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the names that begin with the folder ``prefix``, and the bytes of each object."""
        try:
            with os.scandir(self._folder / prefix) as entries:
                return {
                    f"{prefix}/{entry.name}": entry.stat().st_size for entry in entries if entry.is_file()
                }
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _storage_error(self.url, error) from error

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone already are passed over."""
        try:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise _storage_error(self.url, error) from error


class _Undecided(Exception):
    """A conditional write was refused, although the object is as it was."""


#: Where the environment has the credentials of a storage, by the scheme of its address.
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}
_SET_CREDENTIALS = "Set the credentials in the environment: {}"
#: Words in errors of the library, what they mean, and what to do.
_REASONS = (
    # Where the environment has no credentials, the library asks the machine of a cloud for them, at these addresses.
    (("169.254.169.254", "metadata.google.internal"), "there are no credentials for it", _SET_CREDENTIALS),
    (("Account must be specified",), "the account is missing", _SET_CREDENTIALS),
    (("necessary privileges", "valid authentication"), "it refuses these credentials", _SET_CREDENTIALS),
    (
        ("error sending request", "timed out"),
        "it cannot be reached",
        "Check the network, and the address (for another S3 than Amazon's: AWS_ENDPOINT)",
    ),
)
#: What the library tells of a request before it tells what is wrong.
_REQUEST = re.compile(r"Error performing \w+ \S+ in \S+?(, after \d+ retries.*?)? - ")


def _storage_error(url: str, error: Exception) -> StoreError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    problem = shorten(_REQUEST.sub("", lines[0]), 200)
    variables = _CREDENTIALS.get(url.partition("://")[0], _CREDENTIALS["s3"])
    for words, reason, hint in _REASONS:
        if any(word in str(error) for word in words):
            return StoreError(f"{url} cannot be used: {reason} ({problem})", hint.format(variables))
    return StoreError(
        f"{url} cannot be used: {problem}",
        f"Check the address, the credentials in the environment ({variables}; for another S3 than Amazon's also "
        "AWS_ENDPOINT) and the network, and run the same command again",
    )
