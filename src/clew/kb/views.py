"""Values that are made when they are first asked for, and then kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class ViewCache:
    """Values by key, each made once, though several threads ask for it at once: the others wait for the one."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._turns: dict[str, threading.RLock] = {}

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of ``key``, made by ``make()``, which may ask for other values."""
        if key not in self._made:
            # A lock for each: who makes one may need others, which must not wait for it.
            with self._turns.setdefault(key, threading.RLock()):
                if key not in self._made:
                    self._made[key] = make()
        return self._made[key]
