"""How far the reading of one file is: parsers report pages, and the pool that runs them passes that on."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

#: A function that receives how many pages of how many are done.
PageReceiver = Callable[[int, int], None]


def _ignore(done: int, total: int) -> None:
    """Ignore progress: nobody asked for it."""


_RECEIVER: ContextVar[PageReceiver] = ContextVar("page_receiver", default=_ignore)


def receive_pages(receiver: PageReceiver) -> None:
    """Let ``receiver`` have the progress of the files that this thread reads from now on."""
    _RECEIVER.set(receiver)


def report_pages(done: int, total: int) -> None:
    """Report that the work of ``done`` of ``total`` pages is done. A parser that goes through the pages more than
    once reports shares of that work."""
    _RECEIVER.get()(done, total)
