"""Shows the progress of long work on stderr: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.app.cli.output import make_console, print_note

if TYPE_CHECKING:
    from clew.knowledge_base.ingest.report import Event, Progress

_TITLES = {
    "files": "Reading",
    "index": "Indexing",
    "encode": "Encoding",
    "annotate": "Annotating",
    "summarise": "Summarising",
    "extract": "Extracting",
    "train": "Training",
    "graph": "Bytes read",
    "pack": "Packing",
    "words": "Counting",
}
#: Plain lines of a stage that does not name files: one for each tenth of its work.
_PLAIN_LINES = 10


@contextmanager
def progress_display(quiet: bool = False) -> Iterator[Progress]:
    """Yield a receiver of progress events that shows them on stderr; ``quiet`` shows none."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        with _bars() as show:
            yield show
    else:
        yield _Lines()


@contextmanager
def _bars() -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[file]}", markup=False),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=make_console(stderr=True)) as bars:

        def show(event: Event) -> None:
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(_TITLES[event.stage], total=event.total, file="")
            name = Path(event.path).name if event.path else ""
            bars.update(tasks[event.stage], completed=event.done, total=event.total, file=name)

        yield show


class _Lines:
    """Prints a line per file, and a line per tenth of the other stages."""

    def __init__(self) -> None:
        self._printed: dict[str, int] = {}  # tenths, by stage

    def __call__(self, event: Event) -> None:
        if event.stage == "files":
            print_note(f"{event.outcome:>9}  {event.path}  ({event.done} of {event.total})")
            return
        part = event.done * _PLAIN_LINES // max(event.total, 1)
        if part and part > self._printed.get(event.stage, 0):
            print_note(f"{_TITLES[event.stage]} {event.done:,} of {event.total:,}")
        self._printed[event.stage] = part if event.done < event.total else 0


def show_progress(stage: str) -> Callable[[int, int], None]:
    """Return a receiver of a stage's progress, done and total: it rewrites one line on a terminal, and prints a line
    per tenth elsewhere."""
    printed = 0

    def show(done: int, total: int) -> None:
        nonlocal printed
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{stage[:60]}: {done:,} of {total:,}" + ("\n" if done == total else ""))
        elif done * _PLAIN_LINES // max(total, 1) > printed:
            printed = done * _PLAIN_LINES // max(total, 1)
            print_note(f"{stage}: {done:,} of {total:,}")

    return show
