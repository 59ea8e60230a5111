"""What the next question would pay for, made beforehand: the encoder at the start, views when a base has changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from clew import catalog
from clew.errors import ClewError
from clew.models import leaves_machine
from clew.serve.shelf import ServedBases
from clew.types import Question


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
        base = self._shelf[name].base
        # What is wrong with a base is said to the one who asks it.
        with suppress(ClewError):
            if not self._busy() and base.documents():
                encoder = base.encoder_name()
                # Nothing is sent to an encoder elsewhere that nobody asked.
                here = encoder is not None and not leaves_machine(encoder)
                found = catalog.build_retriever("default", base.store, encoder=base.encoder() if here else None)
                found.retrieve(Question("What is here?"), 1)
