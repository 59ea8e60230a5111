"""Places for work that threads do: some at once, some waiting, the others refused while they still listen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from clew.serve.problems import ServerBusy


class AdmissionLimiter:
    """``most`` pieces of work at once, ``waiting`` more for their turn; ``what`` they are called in a refusal."""

    def __init__(self, most: int, waiting: int, what: str) -> None:
        self._free = threading.Semaphore(most)
        self._most = most + waiting
        self._what = what
        self._in = 0
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, retry_after: int = 5) -> Iterator[None]:
        """Hold a place, once it is free. Raises Busy where too many wait already."""
        with self._lock:
            if self._in >= self._most:
                raise ServerBusy(f"{self._in} {self._what} are under way or wait for their turn", retry_after)
            self._in += 1
        try:
            with self._free:
                yield
        finally:
            with self._lock:
                self._in -= 1
