"""Threads that call a function on many inputs, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_threads(function: Callable[[T], R], inputs: Sequence[T], workers: int) -> list[R]:
    """Return ``function`` of every input, in order, computed by at most ``workers`` threads.

    The first failure is raised once the running calls have ended; calls that have not begun are not made.
    """
    if len(inputs) <= 1 or workers == 1:
        return [function(item) for item in inputs]
    with ThreadPoolExecutor(min(workers, len(inputs))) as pool:
        futures = [pool.submit(function, item) for item in inputs]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
