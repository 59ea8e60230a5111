"""Object storage: ``s3://``, ``gs://`` and ``az://`` through the library obstore, behind a small protocol.

An object is written whole and never changed in part. Two processes that write the same name at once are told apart
by *conditional* writes: a write that names the version it replaces (or that there must be none) is done by the
storage itself in one step, or refused. Everything that needs a single winner is decided by one such write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from clew.core.errors import MissingExtra, StoreError, UsageError
from clew.core.text import shorten

if TYPE_CHECKING:
    from types import ModuleType

T = TypeVar("T")

SCHEMES = ("s3", "gs", "az")
#: What a storage tells of one state of an object: a conditional write names it.
Version = Any
#: Attempts of a request that may be repeated, beyond those of the library, and seconds before the second; each
#: further pause is twice as long.
ATTEMPTS, PAUSE = 4, 0.25


class ObjectStore(Protocol):
    """The objects below one address. Names are relative to it. Every method raises StoreError."""

    @property
    def url(self) -> str:
        """The address, for messages."""
        ...

    def read(self, name: str) -> tuple[bytes, Version] | None:
        """Return an object and its version; None where there is none."""
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


def open_object_store(url: str) -> ObjectStore:
    """Return the storage at ``url``. Credentials, region and endpoint come from the environment, as its own tools
    read them (``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT``, ...).

    Raises MissingExtra, UsageError and StoreError.
    """
    is_object_url(url)
    try:
        import obstore
        import obstore.store
    except ModuleNotFoundError as error:
        raise MissingExtra("obstore, the client of object storage,", "scale") from error
    try:
        return RemoteObjects(url.rstrip("/"), obstore, obstore.store.from_url(url.rstrip("/")))
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
                marks = {name: reply.meta[name] for name in ("e_tag", "version")}
                return bytes(reply.bytes()), {name: mark for name, mark in marks.items() if mark is not None}
            except self._missing:
                return None

        return self._attempt(get)

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
            time.sleep(PAUSE * 2**attempt)
        raise AssertionError("unreachable")


class _Undecided(Exception):
    """A conditional write was refused, although the object is as it was."""


def _storage_error(url: str, error: Exception) -> StoreError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return StoreError(
        f"{url} cannot be used: {shorten(lines[0], 200)}",
        "Check the address, the credentials in the environment (for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
        "AWS_REGION, and AWS_ENDPOINT where it is not Amazon's) and the network, and run the same command again",
    )
