"""The settings and limits of a server, all given by the person who starts it."""

from __future__ import annotations

import secrets
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.addresses import is_loopback_host
from clew.core.config import knowledge_base_name
from clew.core.errors import UsageError
from clew.core.text import slugify
from clew.models import describe_destination, leaves_machine, parse_roles

MIB = 1 << 20
#: The least number of characters of a token.
MIN_TOKEN_LENGTH = 16
#: Bytes a second that a request's body has to arrive at, on average.
SLOWEST = 1 << 10
#: Characters of a name in paths.
_MAX_NAME = 60
#: Servers of language models for one's own machine, at the ports that they have unless they are set otherwise.
MODEL_SERVERS = (
    ("Ollama", "http://127.0.0.1:11434"),
    ("LM Studio", "http://127.0.0.1:1234"),
    ("llama.cpp", "http://127.0.0.1:8080"),
)
#: The choice of no language model.
NO_MODEL = "none"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server. Sizes are in bytes, times in seconds.

    An upload has at most ``files`` files of ``file_bytes`` each, and ``upload_bytes`` in all. At most ``spool_files``
    files of ``spool_bytes`` in all wait to be read, and ``arriving`` uploads arrive at the same time. The headers of
    a request arrive within ``header_seconds``. A request is dropped if nothing of its body arrives for
    ``body_seconds``, or if it arrives more slowly than :data:`SLOWEST` after that time. A reply of which nothing is
    read for ``idle_seconds`` is dropped. ``streams`` of events are open at the same time, ``client_streams`` of
    them from one address. ``parse_seconds`` and ``parse_memory`` are for one file. ``asks`` questions are answered
    at the same time, and ``waiting`` more may wait. ``page_cache`` is for images of pages.
    """

    file_bytes: int = 100 * MIB
    files: int = 50
    upload_bytes: int = 500 * MIB
    spool_bytes: int = 4096 * MIB
    spool_files: int = 1_000
    arriving: int = 16
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    idle_seconds: float = 60.0
    streams: int = 400
    client_streams: int = 200
    body_bytes: int = MIB
    parse_seconds: float = 300.0
    parse_memory: int = 2048 * MIB
    asks: int = 4
    waiting: int = 32
    question_characters: int = 4_000
    page_cache: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A language model that may be chosen. Requests name it by ``id``; ``name`` may contain an address and is not
    shown. ``goes`` says in words where texts are sent, ``leaves`` whether that is another machine."""

    id: str
    name: str = field(repr=False)
    goes: str
    leaves: bool


@dataclass(frozen=True, slots=True)
class QuestionBudget:
    """The most that one question may cost; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server.

    ``bases`` are the folders of knowledge bases by the names that pages and requests use; a missing one is created,
    with ``encoder``. Those that lie in object storage have their ``addresses`` by the folder on this machine that has
    their questions. ``projects`` is the folder for those that are made in the app, None where none can be made.
    ``own_settings`` is the file with the models that the person who runs the server chooses in the app, and
    ``model_servers`` are the titles and addresses of servers of models that are looked for on this machine.
    ``models`` are the models that may be chosen, the first by default; without any, answers are
    extracted. ``recipes`` are the methods that may be chosen; empty for all that do not search the web. ``hosts`` are
    further host names that the server answers to. With a ``token``, requests without it are refused. With
    ``read_only``, documents and graphs can neither be added nor removed.
    """

    bases: Mapping[str, Path]
    addresses: Mapping[Path, str] = field(default_factory=dict)
    projects: Path | None = None
    models: tuple[ModelChoice, ...] = ()
    own_settings: Path | None = None
    model_servers: tuple[tuple[str, str], ...] = MODEL_SERVERS
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


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(24)


def name_bases(folders: Sequence[Path], addresses: Mapping[Path, str] | None = None) -> dict[str, Path]:
    """Return folders by the names that paths and pages use: the folder's own, its parent's for a hidden folder, the
    last part of the address for one that belongs to an address; with a number if two are the same."""
    bases: dict[str, Path] = {}
    for folder in folders:
        path = folder.expanduser().absolute()
        if path not in bases.values():
            bases[free_name(knowledge_base_name((addresses or {}).get(path, path)), bases)] = path
    return bases


def free_name(title: str, taken: Container[str]) -> str:
    """Return the name that paths use for a title, with a number if it is taken."""
    stem = slugify(title)[:_MAX_NAME].strip("-") or "base"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name


def name_models(names: Sequence[str]) -> tuple[ModelChoice, ...]:
    """Return the choices for some model names, with ids without addresses, such as ``gpt-4o-mini``. Raises
    UsageError."""
    choices: list[ModelChoice] = []
    for name in names:
        parts = parse_roles(name)
        stem = "+".join(dict.fromkeys(part.rest.rpartition("#")[2] for part in parts.values()))
        id, number = stem, 2
        while id in {NO_MODEL, *(choice.id for choice in choices)}:
            id, number = f"{stem} ({number})", number + 1
        choices.append(ModelChoice(id, name, describe_destination(name), leaves_machine(name)))
    return tuple(choices)
