"""What a caller gives as sources or names: a path, an address or a name, or a series of them.

Every public function that takes names or paths reads them with :func:`list_sources`, so that a lone ``str`` is one of
them and never a series of letters.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit
from urllib.request import url2pathname

from clew.core.errors import UsageError


@runtime_checkable
class Address(Protocol):
    """An address as ``urllib``, ``httpx`` and others have it; ``str`` of it is the whole address."""

    @property
    def scheme(self) -> Any:
        """Such as ``https``."""
        ...


#: A path, an address (``https://...``, ``file:///...``), or the name of something in a knowledge base.
Source: TypeAlias = str | os.PathLike[str] | Address
#: One of them, or several.
Sources: TypeAlias = Source | Iterable[Source]

#: Folders that hold a system, or all that a person has. ``~`` is the home folder.
SYSTEM_FOLDERS = ("/", "/home", "~", "/etc", "/usr", "/var", "/proc", "/sys", "/dev")


def read_source(given: Source) -> str:
    """Return a path, address or name as text. Raises UsageError for other values."""
    if isinstance(given, Address):
        given = given.geturl() if hasattr(given, "geturl") else str(given)
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise UsageError(f"no path, address or name: {given!r}", "Give one, or several of them")
    if not text.lower().startswith("file://"):
        return text
    address = urlsplit(text)
    if address.netloc not in {"", "localhost"}:
        raise UsageError(f"'{text}' is on another machine", "Give a path of this one")
    return url2pathname(address.path)


def list_sources(*given: Sources) -> list[str]:
    """Return paths, addresses and names as a list of texts, in their order. Raises UsageError for other things."""
    texts: list[str] = []
    item: Any
    for item in given:
        is_series = isinstance(item, Iterable) and not isinstance(item, str | bytes | os.PathLike)
        texts += (
            map(read_source, item) if is_series and not isinstance(item, Address) else [read_source(item)]
        )
    return texts


def list_texts(given: str | Iterable[str]) -> list[str]:
    """Return texts that name nothing yet (tags, questions) as a list; a lone ``str`` is one of them."""
    return [given] if isinstance(given, str) else list(given)


def expand_path(given: Source) -> Path:
    """Return a path as an absolute one, without ``..``; links stay, since a person knows a file by this path.

    ``~name`` is expanded only where there is a user of that name.
    """
    return Path(os.path.abspath(os.path.expanduser(read_source(given))))  # noqa: PTH100, PTH111


def list_paths(given: Sources) -> tuple[Path, ...]:
    """Return paths as they are given, in their order; ``~`` is expanded."""
    return tuple(Path(os.path.expanduser(path)) for path in list_sources(given))  # noqa: PTH111


def system_folders() -> dict[tuple[int, int], str]:
    """Return :data:`SYSTEM_FOLDERS` by device and inode, which are the same by every path to them."""
    folders = {}
    for name in SYSTEM_FOLDERS:
        with suppress(OSError):  # it is not there
            status = expand_path(name).stat()
            folders[status.st_dev, status.st_ino] = name
    return folders


def refuse_system_folders(given: Sources) -> None:
    """Raise UsageError where one of the sources is a system folder itself."""
    folders = system_folders()
    for source in list_sources(given):
        with suppress(OSError):  # who reads it says why it cannot be read
            status = expand_path(source).stat()
            if name := folders.get((status.st_dev, status.st_ino)):
                kind = "your home folder" if name == "~" else "a folder of the whole system"
                raise UsageError(
                    f"'{source}' is {kind}",
                    "Give the folders in it that you mean. All of it: --anyway, anyway=True in programs",
                )
