"""The knowledge bases of a server, opened once and shared by its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from clew.app.web.history import QuestionHistory
from clew.app.web.settings import Settings
from clew.core.errors import ClewError, Locked, NotFound
from clew.core.types import Question
from clew.knowledge_base import registry as catalog
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.knowledge_base import open as open_base
from clew.models.names import leaves_machine

LOCK = "serve.lock"


@dataclass(frozen=True, slots=True)
class ServedBase:
    """One base of a server: its name, the base, and the questions that were asked of it."""

    name: str
    knowledge_base: KnowledgeBase
    history: QuestionHistory

    @property
    def api_path(self) -> str:
        """Where the base's part of the API is: a path as requests write it, with other letters than ASCII quoted."""
        return f"/api/bases/{quote(self.name, safe='')}"


class ServedBases:
    """The bases by name. Reading is shared by threads; what writes opens the base for itself
    (:meth:`clew.knowledge_base.Base` of another connection), so that nobody who reads waits for a writer."""

    def __init__(self, settings: Settings) -> None:
        """Open them. Raises StoreError for one that cannot be opened, Locked for one that has another server."""
        self._bases: dict[str, ServedBase] = {}
        self._open = ExitStack()
        with ExitStack() as opening:
            for name, path in settings.bases.items():
                base = opening.enter_context(open_served_base(settings, name))
                history = opening.enter_context(QuestionHistory(path))
                if not settings.read_only:
                    opening.enter_context(_alone(path))
                    base.store.index_on_snapshot = False  # the process that reads uploads does it
                    history.mark_interrupted()
                else:
                    with suppress(Locked), _alone(path):  # else what is being answered there is the other's
                        history.mark_interrupted()
                self._bases[name] = ServedBase(name, base, history)
            self._open = opening.pop_all()

    def __getitem__(self, name: str) -> ServedBase:
        """Return a base. Raises NotFound."""
        if name not in self._bases:
            raise NotFound(f"no knowledge base named '{name}'", "See: /api/bases")
        return self._bases[name]

    def all(self) -> list[ServedBase]:
        """Return all bases, in the order in which they were given."""
        return list(self._bases.values())

    def close(self) -> None:
        """Close them."""
        self._open.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the one server that takes uploads into a base: what waits there is its to read. Raises Locked."""
    # Closed by another thread than opened it, perhaps.
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        with lock:
            yield
    except Timeout as error:
        raise Locked(
            f"another clew serve has the knowledge base {folder}",
            "Stop it, or start this one with --read-only",
        ) from error


def open_served_base(settings: Settings, name: str) -> KnowledgeBase:
    """Open a base for one user alone, made where there is none."""
    from clew.store.store import Store

    path = settings.bases[name]
    fresh = not Store.exists(path)
    base = open_base(path, create=True)
    if fresh and settings.encoder is not None:
        base.encoding.set(None if settings.encoder == "none" else settings.encoder)
    return base


class BaseWarmer:
    """Searches a base after it changed, in a thread of its own, so that its views are made before somebody asks.

    Not while questions are ``busy``, which make them anyway: whoever needs a view that another thread is making waits
    for that one. A context in which all ends when it is closed.
    """

    def __init__(self, shelf: ServedBases, busy: Callable[[], bool]) -> None:
        self._shelf, self._busy = shelf, busy
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="clew-warm")
        self._waiting: set[str] = set()
        self._lock = threading.Lock()

    def schedule(self, base: str) -> None:
        """Search a base as soon as that is possible; several calls before then count as one."""
        with self._lock:
            if base in self._waiting:
                return
            # After the close nothing is begun any more.
            with suppress(RuntimeError):
                self._pool.submit(self._search, base)
                self._waiting.add(base)

    def close(self) -> None:
        """Wait for what is being made."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _search(self, name: str) -> None:
        with self._lock:
            self._waiting.discard(name)
        base = self._shelf[name].knowledge_base
        # What is wrong with a base is said to the one who asks it.
        with suppress(ClewError):
            if not self._busy() and base.documents():
                encoder = base.encoding.name
                # Nothing is sent to an encoder elsewhere that nobody asked.
                here = encoder is not None and not leaves_machine(encoder)
                found = catalog.build_retriever(
                    "default", base.store, encoder=base.encoding.encoder() if here else None
                )
                found.retrieve(Question("What is here?"), 1)


# MERGED: What the next question would pay for, made beforehand: the encoder at the start, views when a base
# has changed.
