"""Every error that clew raises on purpose.

ClewError                     problem and hint; the command line prints both and exits 2
├── UsageError                a name, option or question that makes no sense
├── NotFound                  no such document, node, or knowledge base
├── UnreadableFile            a file that cannot be added, and why; the others are added
│   └── BadRows               rows of a graph file that make no sense, by line; nothing of the file is added
├── MissingExtra              a part whose package is not installed; the hint is the line that installs it
├── RemoteError               a mounted graph or a web search cannot be asked, or its answer cannot be used
├── StoreError                the knowledge base on disk
│   ├── Locked                another process is writing
│   └── Damaged               a file of the base is missing, truncated or refused by its manifest
└── ModelError                a language model or encoder
    ├── Unavailable           busy, broken off or too slow: the same call may succeed later
    ├── BudgetExceeded        stopped before a call that would exceed the limit
    └── BadCompletion         the model answered, but not in the form that was asked for
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit


class ClewError(Exception):
    """A problem with, where there is one, a hint at what to do: ``Problem: value. Hint.``"""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"{problem}. {hint}" if hint else problem)
        self.problem = problem
        self.hint = hint


class UsageError(ClewError):
    """A name, option or question that makes no sense."""


class NotFound(ClewError):
    """No such document, node or knowledge base."""


class UnreadableFile(ClewError):
    """A file that cannot be added. ``problem`` is the reason alone; the caller names the file."""

    def __reduce__(self) -> tuple[Any, Any]:
        # Crosses from a parse worker to the parent.
        return type(self), (self.problem, self.hint)


class BadRows(UnreadableFile):
    """Rows of a graph file that make no sense: ``rows`` has each as ``FILE: line N: why``."""

    def __init__(self, rows: Sequence[str]) -> None:
        listed = "\n  ".join(rows)
        super().__init__(f"bad rows, so nothing was added:\n  {listed}", "Leave such rows out: --skip-bad")
        self.rows = tuple(rows)

    def __reduce__(self) -> tuple[Any, Any]:
        return type(self), (self.rows,)


class MissingExtra(ClewError):
    """A part whose package is not installed."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f"{part} is not installed", f"Install it: pip install 'clew[{extra}]'")


class RemoteError(ClewError):
    """A mounted graph or a web search cannot be asked, or its answer cannot be used."""


class StoreError(ClewError):
    """The knowledge base on disk."""


class Locked(StoreError):
    """Another process is writing to this knowledge base."""


class Damaged(StoreError):
    """A file of the knowledge base is missing, truncated or refused by its manifest."""


class ModelError(ClewError):
    """A language model or encoder failed or cannot be reached."""


class Unavailable(ModelError):
    """A model that may answer the same call later; ``retry_after`` seconds if it said when."""

    def __init__(self, problem: str, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(problem, hint)
        self.retry_after = retry_after


class BudgetExceeded(ModelError):
    """The next call would exceed the limit that the caller set."""


class BadCompletion(ModelError):
    """The model answered, but not in the form that was asked for."""


def unknown_name_error(what: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that is not one of ``known``, with the nearest as a suggestion."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(names)}"
    return UsageError(f"no {what} named '{name}'", hint)


def refuse_password(url: str, what: str, hint: str) -> None:
    """Raise UsageError for an address with a user or password in it; the error does not repeat it.

    Addresses are written down and shown: with answers, in reports, in lists of graphs.
    """
    if "@" in urlsplit(url).netloc:
        raise UsageError(f"{what} has a password in it", hint)
