"""The knowledge bases of a server: opened once, shared by its threads, and warmed up after every change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import clew
from clew.app.web.errors import LOG
from clew.app.web.history import QuestionHistory
from clew.app.web.settings import Settings
from clew.core.errors import ClewError, Locked, NotFound, StoreError
from clew.core.files import create_folder
from clew.core.types import Question
from clew.knowledge_base.knowledge_base import ENCODER_SETTING, KnowledgeBase, encoder_setting
from clew.knowledge_base.registry import build_retriever
from clew.models import leaves_machine
from clew.store.database import hold_lock
from clew.store.object_store import storage_path
from clew.store.remote.store import RemoteStore
from clew.store.store import Store

LOCK = "serve.lock"
#: Servers of one machine over the same base in object storage.
_MAX_SERVERS = 64
#: The setting of a base with the title that it was given in the app.
TITLE_SETTING = "title"


@dataclass(frozen=True, slots=True)
class ServedBase:
    """One base of a server: its name, the knowledge base, and the history of its questions."""

    name: str
    knowledge_base: KnowledgeBase
    history: QuestionHistory
    resources: ExitStack

    @property
    def title(self) -> str:
        """What people call it."""
        return self.knowledge_base.store.get_setting(TITLE_SETTING) or self.name

    @property
    def api_path(self) -> str:
        """The path of the base's part of the API, with non-ASCII characters quoted."""
        return f"/api/bases/{quote(self.name, safe='')}"


class ServedBases:
    """The bases by name. Threads share them for reading; a writer opens its own connection
    (:func:`open_served_base`), so that readers never wait for it."""

    def __init__(self, settings: Settings) -> None:
        """Open the bases. Raises StoreError if one cannot be opened, Locked if another server has it."""
        self._settings = settings
        self._bases: dict[str, ServedBase] = {}
        try:
            for name, path in settings.bases.items():
                try:
                    self.open(name, path)
                except StoreError as error:
                    if path.parent != settings.projects:
                        raise
                    LOG.warning("the project %s is left out: %s", name, error)
        except BaseException:
            self.close()
            raise

    def open(self, name: str, path: Path, title: str = "") -> ServedBase:
        """Open a base, which is created if it does not exist. Raises StoreError, and Locked if another server has
        it."""
        settings = self._settings
        with ExitStack() as stack:
            base = stack.enter_context(open_served_base(settings, path, title))
            history = stack.enter_context(QuestionHistory(path))
            if not settings.read_only:
                stack.enter_context(_exclusive(path))
                base.store.index_on_snapshot = False  # the upload worker does it
                history.mark_interrupted()
            else:
                # Otherwise the open questions belong to the other server.
                with suppress(Locked), _exclusive(path):
                    history.mark_interrupted()
            self._bases[name] = ServedBase(name, base, history, stack.pop_all())
        return self._bases[name]

    def drop(self, name: str) -> None:
        """Close a base, and serve it no more."""
        self._bases.pop(name).resources.close()

    def __getitem__(self, name: str) -> ServedBase:
        """Return a base. Raises NotFound."""
        if name not in self._bases:
            raise NotFound(f"no knowledge base named '{name}'", "See: /api/bases")
        return self._bases[name]

    def names(self) -> list[str]:
        """Return the names of all bases."""
        return list(self._bases)

    def all(self) -> list[ServedBase]:
        """Return all bases, in the order of the settings."""
        return list(self._bases.values())

    def close(self) -> None:
        """Close the bases."""
        for name in reversed(list(self._bases)):
            self.drop(name)

    def __contains__(self, name: str) -> bool:
        return name in self._bases


def _exclusive(folder: Path) -> AbstractContextManager[None]:
    """Hold the lock of the one server that takes uploads into a base. Raises Locked."""
    problem = f"another clew serve has the knowledge base {folder}"
    return hold_lock(folder / LOCK, 0, problem, "Stop it, or start this one with --read-only")


def open_served_base(settings: Settings, path: Path, title: str = "") -> KnowledgeBase:
    """Open a base in a connection of its own; it is created if it does not exist, but not in object storage."""
    if path in settings.addresses:
        return KnowledgeBase(RemoteStore.open_url(settings.addresses[path], path))
    given = {TITLE_SETTING: title} if title else {}
    if settings.encoder is not None and not Store.exists(path):
        given[ENCODER_SETTING] = encoder_setting(settings.encoder)
    return clew.open(path, create=True, settings=given)


def find_storage_folder(url: str) -> Path:
    """Return the folder of this machine for a server of the base at an address: of several servers on one machine
    each has its own."""
    first = storage_path(url)
    for folder in [first, *(first.with_name(f"{first.name}.{number}") for number in range(2, _MAX_SERVERS))]:
        create_folder(folder)
        with suppress(Locked), _exclusive(folder):
            return folder
    raise Locked(f"{_MAX_SERVERS} servers of this machine have the knowledge base {url}", "Stop some of them")


class BaseWarmer:
    """Searches a base after it changed, in its own thread, so that its derived data are ready for the next question.

    It does not while questions are answered (``busy``): they build the derived data themselves, and would wait.
    """

    def __init__(self, bases: ServedBases, busy: Callable[[], bool]) -> None:
        self._bases, self._busy = bases, busy
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="clew-warm")
        self._waiting: set[str] = set()
        self._lock = threading.Lock()

    def schedule(self, base: str) -> None:
        """Search a base soon; several calls before that count as one."""
        with self._lock:
            if base in self._waiting:
                return
            # The pool refuses work after it was closed.
            with suppress(RuntimeError):
                self._pool.submit(self._search, base)
                self._waiting.add(base)

    def close(self) -> None:
        """Wait for the current search."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _search(self, name: str) -> None:
        with self._lock:
            self._waiting.discard(name)
        base = self._bases[name].knowledge_base
        # Errors are reported to the next person who asks.
        with suppress(ClewError):
            if not self._busy() and base.documents():
                encoder = base.encoding.name
                # Nothing is sent to an encoder on another machine without a question.
                local = encoder is not None and not leaves_machine(encoder)
                retriever = build_retriever(
                    "default", base.store, encoder=base.encoding.encoder() if local else None
                )
                retriever.retrieve(Question("What is here?"), 1)
