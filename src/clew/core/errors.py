"""Every error that clew raises on purpose.

ClewError                     problem and hint; the command line prints both and exits 2
├── UsageError                an invalid name, option or question
├── NotFound                  no such document, node, or knowledge base
│   └── RemovedMeanwhile      a document or graph was removed or replaced while it was read: begin again
├── UnreadableFile            a file that cannot be added; the other files are
│   └── BadRows               invalid rows of a graph file, by line; nothing of the file is added
├── MissingExtra              an optional package is not installed; the hint is the command that installs it
├── PluginError               a plug-in of another package cannot be used
├── RemoteError               a mounted graph or a web search cannot be reached, or its answer is unusable
├── StoreError                the knowledge base on disk
│   ├── Locked                another process is writing
│   ├── BaseReplaced          a base in object storage was replaced while it was read: begin again
│   └── Damaged               a file of the base is missing, truncated or does not match its manifest
└── ModelError                a language model or encoder
    ├── Unavailable           busy, disconnected or too slow: the same call may succeed later
    │   └── TimedOut          it took longer than allowed; not called again
    ├── ContextExceeded       the prompt is longer than the model's context
    ├── BudgetExceeded        stopped before a call that would exceed the limit
    └── BadCompletion         the model replied, but not in the requested form
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from clew.core.installation import format_install_command


class ClewError(Exception):
    """A problem and, where there is one, a hint at what to do: ``Problem: value. Hint.``"""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"{problem}. {hint}" if hint else problem)
        self.problem = problem
        self.hint = hint


class UsageError(ClewError):
    """An invalid name, option or question."""


class NotFound(ClewError):
    """No such document, node or knowledge base."""


class RemovedMeanwhile(NotFound):
    """A document or graph was removed or replaced while it was read; what was begun has to begin again."""


class UnreadableFile(ClewError):
    """A file that cannot be added. ``problem`` is the reason alone; the caller names the file."""

    @property
    def reason(self) -> str:
        """The problem and what to do about it, in one line."""
        return f"{self.problem}; {self.hint[0].lower()}{self.hint[1:]}" if self.hint else self.problem

    def __reduce__(self) -> tuple[Any, Any]:
        # Crosses from a parse worker to the parent.
        return type(self), (self.problem, self.hint)


class BadRows(UnreadableFile):
    """Invalid rows of a graph file: ``rows`` lists each as ``FILE: line N: problem``."""

    def __init__(self, rows: Sequence[str]) -> None:
        listed = "\n  ".join(rows)
        super().__init__(f"bad rows, so nothing was added:\n  {listed}", "Leave such rows out: --skip-bad")
        self.rows = tuple(rows)

    def __reduce__(self) -> tuple[Any, Any]:
        return type(self), (self.rows,)


class MissingExtra(ClewError):
    """An optional package is not installed; ``extra`` is the extra of clew that installs it."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f"{part} is not installed", f"Install it: {format_install_command(extra)}")


def require_packages(extra: str, *packages: str, part: str = "") -> None:
    """Raise MissingExtra for a package of an extra that is not installed, or for the ``part`` that needs it."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(part or package, extra)


class PluginError(ClewError):
    """A plug-in that another package brings cannot be imported, or is not what its entry point says."""


class RemoteError(ClewError):
    """A mounted graph or a web search cannot be reached, or its answer is unusable."""


class StoreError(ClewError):
    """A problem of the knowledge base on disk."""


class Locked(StoreError):
    """Another process is writing to this knowledge base."""


class BaseReplaced(StoreError):
    """A base in object storage was replaced while it was read; what was begun has to begin again."""


class Damaged(StoreError):
    """A file of the knowledge base is missing, truncated or does not match its manifest."""


class ModelError(ClewError):
    """A language model or encoder failed or cannot be reached."""


class Unavailable(ModelError):
    """A model that may answer the same call later; ``retry_after`` is in seconds, if the model named a time."""

    def __init__(self, problem: str, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(problem, hint)
        self.retry_after = retry_after


class TimedOut(Unavailable):
    """A model that was too slow: to call it again would take as long again."""


class ContextExceeded(ModelError):
    """A prompt that is longer than the model's context, or of which the server read a part only."""


class BudgetExceeded(ModelError):
    """The next call would exceed the limit that the caller set."""


class BadCompletion(ModelError):
    """The model replied, but not in the requested form."""


def unknown_name_error(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a ``name`` that is not one of ``known``, with the nearest one as a suggestion."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(names)}"
    return UsageError(f"no {kind} named '{name}'", hint)


def refuse_password(url: str, what: str, hint: str) -> None:
    """Raise UsageError for an address that contains a user or password; the error does not repeat it.

    Addresses are stored and shown: with answers, in reports, in lists of graphs.
    """
    if "@" in urlsplit(url).netloc:
        raise UsageError(f"{what} has a password in it", hint)
