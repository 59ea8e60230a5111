"""What commands print: JSON, plain lines for people, and the progress of long work on stderr.

Nothing else prints (the linter refuses ``print``), so that no name of a document or graph commands a terminal: what
it would obey is left out, and escaped where programs read on.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.core.text import clean_text, escape_hidden, file_name, shorten

if TYPE_CHECKING:
    from rich.console import Console

    from clew.core.types import Usage
    from clew.knowledge_base.ingest.report import Event, Progress
    from clew.knowledge_base.knowledge_base import KnowledgeBase


def print_line(*lines: object, flush: bool = False) -> None:
    """Print lines on stdout; a break within one becomes a space."""
    print(*map(_clean_line, lines), sep="\n", flush=flush)


def print_note(*lines: object) -> None:
    """Print remarks on stderr, a line each, so that programs that read stdout do not see them."""
    print(*map(_clean_line, lines), sep="\n", file=sys.stderr)


def print_text(text: str) -> None:
    """Print a text of several lines on stdout."""
    print(clean_text(text))


def print_json(value: Any) -> None:
    """Print ``value`` as JSON on stdout."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    print(escape_hidden(text, lambda character: json.dumps(character)[1:-1]))


def print_code(text: str) -> None:
    """Print SPARQL or N-Triples on stdout."""
    print(escape_hidden(text, lambda character: f"\\U{ord(character):08X}"))


def print_grid(header: Sequence[str], rows: Sequence[Sequence[str]], width: int, empty: str) -> None:
    """Print rows below a header, in columns as wide as their widest cell, cut to ``width``; ``empty`` if none."""
    lines = [[shorten(clean_text(cell), width) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * size for size in widths])
    for line in lines:
        print_line("  ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)).rstrip())
    if not rows:
        print_line(empty)


def _clean_line(line: object) -> str:
    return re.sub(r"[\n\t]", " ", clean_text(str(line)))


def make_console(stderr: bool = False) -> Console:
    """Return a rich console that prints texts as :func:`print_text` does: no markup, no emoji codes, colours only
    where we set them."""
    from rich.console import Console
    from rich.segment import Segment

    class CleanConsole(Console):
        def render(self, *args: Any, **options: Any) -> Iterator[Segment]:
            for segment in super().render(*args, **options):
                yield segment if segment.control else Segment(clean_text(segment.text), segment.style)

    stream: Any = sys.stderr if stderr else sys.stdout
    file: Any = None if stream.isatty() else _TrimmedStream(stream)
    return CleanConsole(file=file, stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)


class _TrimmedStream:
    """A file or pipe, without the spaces with which rich fills the lines of an indented text."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(re.sub(r" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def format_count(number: int, noun: str) -> str:
    """Return ``1 page``, ``2 pages``, ``1,037 pages``."""
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def format_duration(seconds: float) -> str:
    """Return ``0.12 s``, ``3.4 s``, ``2 min 5 s``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def format_size(number: int) -> str:
    """Return a number of bytes in words: ``12 KB``, ``3.4 MB``."""
    amount = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit in {"bytes", "KB"} else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def format_cost(usage: Usage) -> str:
    """Return the cost of model calls: ``3 calls, 1,200 tokens in, 80 out, $0.0004``; "" for none."""
    if not usage.calls:
        return ""
    money = "price unknown" if usage.money is None else f"${usage.money:.4f}"
    return f"{format_count(usage.calls, 'call')}, {usage.tokens_in:,} tokens in, {usage.tokens_out:,} out, {money}"


def describe_unsearchable(base: KnowledgeBase) -> list[str]:
    """Return lines that say what a search cannot find yet: documents without an index, passages without vectors."""
    pending, unencoded = base.store.snapshot().pending, base.encoding.count_missing()
    lines = [f"{format_count(pending, 'document')} added but not searchable yet."] if pending else []
    if unencoded:
        passages = format_count(unencoded, "passage")
        lines.append(f"{passages} can be found by words alone; to make the vectors: clew encoder encode")
    return lines


_TITLES = {
    "files": "Reading",
    "pages": "Page",
    "index": "Indexing",
    "encode": "Encoding",
    "annotate": "Annotating",
    "summarise": "Summarising",
    "extract": "Extracting",
    "grid": "Answering",
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
            if event.stage == "files" and "pages" in tasks:
                bars.remove_task(tasks.pop("pages"))  # one of the files is done; the others report again
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(_TITLES[event.stage], total=event.total, file="")
            name = file_name(event.path)
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
        if event.stage == "pages":
            # Of several files that are read at once each has lines of its own.
            if part > self._printed.get(event.path, 0):
                print_note(f"  reading  {event.path}  (page {event.done:,} of {event.total:,})")
            self._printed[event.path] = part
            return
        if part and part > self._printed.get(event.stage, 0):
            print_note(f"{_TITLES[event.stage]} {event.done:,} of {event.total:,}")
        self._printed[event.stage] = part if event.done < event.total else 0


def show_progress(stage: str, describe: Callable[[int], str] = "{:,}".format) -> Callable[[int, int], None]:
    """Return a receiver of a stage's progress, done and total, which ``describe`` writes: it rewrites one line on a
    terminal, and prints a line per tenth elsewhere."""
    printed = 0

    def show(done: int, total: int) -> None:
        nonlocal printed
        line = _clean_line(f"{stage}: {describe(done)} of {describe(total)}")
        if sys.stderr.isatty():
            print(f"\r{line[:78]:40}", end="\n" * (done == total), file=sys.stderr, flush=True)
        elif done * _PLAIN_LINES // max(total, 1) > printed:
            printed = done * _PLAIN_LINES // max(total, 1)
            print_note(line)

    return show
