"""What a server serves, and how much it takes on. Everything here comes from the person who starts it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from clew.core.config import knowledge_base_name
from clew.core.errors import UsageError, unknown_name_error
from clew.core.text import slugify
from clew.models.names import describe_destination, leaves_machine, parse_roles

MIB = 1 << 20
#: A token that a person chooses has at least so many characters.
MIN_TOKEN_LENGTH = 16
#: The id of having no language model, among the choices of models.
NO_MODEL = "none"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a server takes on. Sizes in bytes, times in seconds.

    ``files`` of one upload, each of at most ``file_bytes``, together ``upload_bytes``; ``spool_bytes`` and
    ``spool_files`` are what may arrive and wait to be read, ``arriving`` uploads at once; a request of which nothing
    comes for ``idle_seconds`` is given up. ``parse_seconds`` and ``parse_memory`` hold for one file. ``asks``
    questions are answered at once, ``waiting`` more wait for their turn. ``page_cache`` is for pages that were drawn.
    """

    file_bytes: int = 100 * MIB
    files: int = 50
    upload_bytes: int = 500 * MIB
    spool_bytes: int = 4096 * MIB
    spool_files: int = 1_000
    arriving: int = 16
    idle_seconds: float = 60.0
    body_bytes: int = MIB
    parse_seconds: float = 300.0
    parse_memory: int = 2048 * MIB
    asks: int = 4
    waiting: int = 32
    question_characters: int = 4_000
    page_cache: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A language model that may be chosen. Requests know it by ``id``; ``name``, which may hold an address, stays
    here. ``goes`` says in words where texts go; ``leaves`` whether that is another machine."""

    id: str
    name: str = field(repr=False)
    goes: str
    leaves: bool


@dataclass(frozen=True, slots=True)
class QuestionBudget:
    """What one question may cost at most; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A server.

    ``bases`` are folders of knowledge bases by the names that pages and requests know them by; one that is not there
    is made, with ``encoder``. ``models`` are those that may be chosen, the first by default; without any, answers are
    extracted. ``recipes`` are the methods that may be chosen, by name; empty for all that need no web search.
    ``hosts`` are further names under which the server may be reached. ``token``: who does not give it is refused.
    ``read_only``: documents and graphs can neither be added nor removed.
    """

    bases: Mapping[str, Path]
    models: tuple[ModelChoice, ...] = ()
    encoder: str | None = None
    recipes: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8321
    hosts: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    read_only: bool = False
    budget: QuestionBudget = QuestionBudget()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not self.bases:
            raise UsageError("no knowledge base to serve", "For example: clew serve --kb FOLDER")
        if self.token is None and not is_loopback_host(self.host):
            raise UsageError(
                f"'{self.host}' can be reached from other machines, so a token is needed",
                "Give one: --token TOKEN (or CLEW_TOKEN)",
            )
        if self.token is not None and len(self.token) < MIN_TOKEN_LENGTH:
            raise UsageError(
                f"a token of {len(self.token)} characters can be guessed",
                f"Take at least {MIN_TOKEN_LENGTH}, or leave it out: one is made",
            )

    def model(self, id: str | None) -> ModelChoice | None:
        """Return the model that a request names: the first for None. Raises UsageError."""
        if id == NO_MODEL or (id is None and not self.models):
            return None
        if id is None:
            return self.models[0]
        for one in self.models:
            if one.id == id:
                return one
        raise unknown_name_error("model", id, [NO_MODEL, *(one.id for one in self.models)])


def is_loopback_host(host: str) -> bool:
    """Return whether a server that is bound to ``host`` can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """Return a token that nobody guesses."""
    return secrets.token_urlsafe(24)


def name_bases(folders: Sequence[Path]) -> dict[str, Path]:
    """Return folders by names for addresses and pages: the folder's own, for a hidden one its parent's; numbered
    where two are alike."""
    found: dict[str, Path] = {}
    for folder in folders:
        path = folder.expanduser().absolute()
        stem = slugify(knowledge_base_name(path)) or "base"
        name, number = stem, 2
        while name in found:
            name, number = f"{stem}-{number}", number + 1
        if path not in found.values():
            found[name] = path
    return found


def name_models(names: Sequence[str]) -> tuple[ModelChoice, ...]:
    """Return the choices that model names make. Their ids hold no address: ``gpt-4o-mini``. Raises UsageError."""
    found: list[ModelChoice] = []
    for name in names:
        parts = parse_roles(name)
        stem = "+".join(dict.fromkeys(one.rest.rpartition("#")[2] for one in parts.values()))
        id, number = stem, 2
        while id in {NO_MODEL, *(one.id for one in found)}:
            id, number = f"{stem} ({number})", number + 1
        found.append(ModelChoice(id, name, describe_destination(name), leaves_machine(name)))
    return tuple(found)
