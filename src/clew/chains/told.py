"""What the steps of a trail tell of the chains that were tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def best_filling(fillings: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the chain that was answered from, of the ``filling`` of each step ``filled``; None where there is none.

    A chain counts as it was filled last, and of several the best is taken (``worth``, as the method ``chain`` does),
    the first of equals.
    """
    tried = {one["chain"]: one for one in fillings}.values()
    return max(tried, key=lambda one: list(one["worth"]), default=None)
