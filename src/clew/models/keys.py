"""Keys of model services in the keyring of the system (extra: keys). A key belongs to one address, and is sent to no
other."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from clew.core.errors import MissingExtra, UsageError

#: What the entries of the keyring are called.
SERVICE = "clew"
#: Backends that store nothing.
_EMPTY_BACKENDS = ("keyring.backends.fail", "keyring.backends.null")


def describe_keyring() -> tuple[str, str]:
    """Return the name of the system's keyring and "", or "" and why there is none."""
    if find_spec("keyring") is None:
        return "", "the package for the system's keyring is not installed (pip install 'clew[keys]')"
    backend: Any = import_module("keyring").get_keyring()
    backends = [part for part in getattr(backend, "backends", [backend]) if _stores(part)]
    if not backends:
        return "", "this system has no keyring that is open to programs"
    return str(getattr(backends[0], "name", type(backends[0]).__name__)), ""


def _stores(backend: object) -> bool:
    return type(backend).__module__ not in _EMPTY_BACKENDS


def origin(url: str) -> str:
    """Return the part of an address that a key belongs to: ``https://api.openai.com``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def read_key(url: str) -> str | None:
    """Return the key for an address, None where there is none or the keyring cannot be read."""
    if find_spec("keyring") is None:
        return None
    keyring: Any = import_module("keyring")
    try:
        key: str | None = keyring.get_password(SERVICE, origin(url))
    except keyring.errors.KeyringError:
        return None
    return key


def store_key(url: str, key: str) -> None:
    """Keep a key for an address. Raises MissingExtra, and UsageError where the system has no keyring."""
    if find_spec("keyring") is None:
        raise MissingExtra("the system's keyring", "keys")
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
    if find_spec("keyring") is None:
        return False
    keyring: Any = import_module("keyring")
    try:
        keyring.delete_password(SERVICE, origin(url))
    except keyring.errors.KeyringError:
        return False
    return True
