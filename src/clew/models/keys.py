"""Keys of model services in the keyring of the system (package keyring); where there is none, in memory until the
process ends. A key belongs to one address, and is sent to no other."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from clew.core.errors import UsageError

#: What the entries of the keyring are called.
SERVICE = "clew"
#: Backends that store nothing.
_EMPTY_BACKENDS = ("keyring.backends.fail", "keyring.backends.null")
#: The keys of this process by address, where the system has no keyring.
_IN_MEMORY: dict[str, str] = {}


def name_keyring() -> str:
    """Return the name of the system's keyring, "" where none is open to programs."""
    if find_spec("keyring") is None:
        return ""
    backend: Any = import_module("keyring").get_keyring()
    backends = [part for part in getattr(backend, "backends", [backend]) if _stores(part)]
    return str(getattr(backends[0], "name", type(backends[0]).__name__)) if backends else ""


def _stores(backend: object) -> bool:
    return type(backend).__module__ not in _EMPTY_BACKENDS


def origin(url: str) -> str:
    """Return the part of an address that a key belongs to: ``https://api.openai.com``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def read_key(url: str) -> str | None:
    """Return the key for an address, None where there is none or the keyring cannot be read."""
    if origin(url) in _IN_MEMORY or find_spec("keyring") is None:
        return _IN_MEMORY.get(origin(url))
    keyring: Any = import_module("keyring")
    try:
        key: str | None = keyring.get_password(SERVICE, origin(url))
    except keyring.errors.KeyringError:
        return None
    return key


def store_key(url: str, key: str) -> None:
    """Keep a key for an address. Raises UsageError where the keyring refuses it."""
    if not name_keyring():
        _IN_MEMORY[origin(url)] = key
        return
    keyring: Any = import_module("keyring")
    try:
        keyring.set_password(SERVICE, origin(url), key)
    except keyring.errors.KeyringError as error:
        raise UsageError(
            f"the key cannot be kept: {error}",
            "Set it as OPENAI_API_KEY or CLEW_API_KEY before clew is started",
        ) from error


def delete_key(url: str) -> bool:
    """Forget the key for an address; return whether there was one."""
    was_in_memory = _IN_MEMORY.pop(origin(url), None) is not None
    if find_spec("keyring") is None:
        return was_in_memory
    keyring: Any = import_module("keyring")
    with suppress(keyring.errors.KeyringError):
        keyring.delete_password(SERVICE, origin(url))
        return True
    return was_in_memory
