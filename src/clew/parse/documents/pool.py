"""Worker processes that parse files: a crash, a hang or a glut of memory costs one file and no other.

Workers are spawned, never forked: the parent may have threads. Each has a pipe to the parent for files and
documents. When the parent goes, however it ends, its workers end with it, even in the middle of a file.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import MappingProxyType, ModuleType, TracebackType
from typing import Any, Self

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.reader import read_file

Outcome = ParsedDocument | UnreadableFile
#: A function of a module that a spawned process can import. It returns a document, or what its caller expects.
FileReader = Callable[..., Any]

#: Seconds that one file may take. A filing of 260 pages takes ten; a thousand pages with tables, a minute.
TIME_LIMIT = 900.0
#: Bytes of address space that a worker may use.
MEMORY_LIMIT = 4 << 30


@dataclass(frozen=True, slots=True)
class _Crash:
    """The last message of a worker that an unforeseen error ends."""

    error: str


@dataclass(slots=True)
class _Worker:
    process: multiprocessing.process.BaseProcess
    pipe: Connection
    path: Path | None = None
    deadline: float = 0.0


class ParsePool:
    """A context manager of ``workers`` processes (default: one per core), started when they are needed."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        reader: FileReader = read_file,
        time_limit: float = TIME_LIMIT,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._size = max(workers or os.cpu_count() or 1, 1)
        self._reader = reader
        self._seconds = time_limit
        self._memory = memory_limit
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_files(
        self,
        paths: Iterable[Path],
        unit: str = "paragraph",
        options: Mapping[Path, Mapping[str, Any]] = MappingProxyType({}),
    ) -> Iterator[tuple[Path, Outcome]]:
        """Yield every path with its document, or with why there is none, as they are done.

        ``more`` are further arguments of the reader, by path: the ``name`` that the file is to have.
        """
        waiting = deque((path, {"unit": unit, **options.get(path, {})}) for path in paths)
        self._hand_out(waiting)
        while busy := [worker for worker in self._workers if worker.path is not None]:
            soonest = min(worker.deadline for worker in busy)
            ready = set(wait([worker.pipe for worker in busy], max(soonest - time.monotonic(), 0)))
            for worker in busy:
                path = worker.path
                if path is None:
                    continue
                if worker.pipe in ready:
                    outcome = self._received(worker)
                elif time.monotonic() >= worker.deadline:
                    self._dismiss(worker)
                    outcome = UnreadableFile(f"the parser took longer than {self._seconds:g} seconds")
                else:
                    continue
                # Before the caller deals with this one, which may take a while.
                self._hand_out(waiting)
                yield path, outcome

    def close(self) -> None:
        """End the workers."""
        for worker in list(self._workers):
            self._dismiss(worker)

    def _hand_out(self, waiting: deque[tuple[Path, dict[str, Any]]]) -> None:
        """Give every idle worker a file, and start workers while there are more files and fewer workers."""
        for worker in list(self._workers):
            # One that was killed while idle must not take a file with it.
            if worker.path is None and worker.process.exitcode is not None:
                self._dismiss(worker)
            elif waiting and worker.path is None:
                self._give(worker, *waiting.popleft())
        while waiting and len(self._workers) < self._size:
            worker = self._start()
            self._workers.append(worker)
            self._give(worker, *waiting.popleft())

    def _give(self, worker: _Worker, path: Path, options: dict[str, Any]) -> None:
        worker.path, worker.deadline = path, time.monotonic() + self._seconds
        # A worker that has just died shows when its answer is awaited.
        with suppress(OSError):
            worker.pipe.send((path, options))

    def _received(self, worker: _Worker) -> Outcome:
        worker.path = None
        try:
            outcome: Outcome | _Crash = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            outcome = _Crash(_ending(worker.process.exitcode or 0))
        if isinstance(outcome, _Crash):
            self._dismiss(worker)
            return UnreadableFile(f"the parser crashed on it ({outcome.error})")
        return outcome

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._reader, self._memory), daemon=True)
        with _STARTING:
            # A spawned process imports the program that started it, and would run a script all over again
            # that does not guard against that. Ours needs nothing of the program.
            program = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                with _interrupts_held():
                    process.start()
            finally:
                sys.modules["__main__"] = program
        theirs.close()
        return _Worker(process, ours)

    def _dismiss(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.path = None
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
        worker.process.close()


_STARTING = threading.Lock()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back, in this thread and in a process started meanwhile: it is deaf to it from the start, not
    only once it has imported what ignores it. Here it takes effect afterwards."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    # Starting this helper of multiprocessing lets Ctrl-C through again, so it goes first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ending(code: int) -> str:
    """Return in words how a process ended."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _work(pipe: Connection, reader: FileReader, memory: int) -> None:
    """Serve one parent until it goes."""
    # A person's Ctrl-C reaches every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _silence()
    _end_with_parent()
    _limit(memory)
    with _LastWords(pipe):
        while True:
            try:
                path, options = pipe.recv()
            except EOFError:
                return
            pipe.send(_outcome(reader, path, options))


def _outcome(reader: FileReader, path: Path, options: dict[str, Any]) -> Outcome:
    try:
        made: Outcome = reader(path, **options)
        return made
    except UnreadableFile as refused:
        return refused
    except MemoryError:
        return UnreadableFile("it needs more memory than a parser may use")
    except RecursionError:
        return UnreadableFile("it is nested too deeply")


class _LastWords:
    """Tells the parent what error ends the worker: nobody reads a worker's traceback."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __enter__(self) -> None:
        """Begin to listen."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, BrokenPipeError):
            return
        last = traceback.extract_tb(trace)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        with suppress(OSError):
            self._pipe.send(_Crash(f"{said}, {Path(last.filename).name}:{last.lineno}"))


def _silence() -> None:
    """Keep what libraries print out of the parent's progress bars."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _end_with_parent() -> None:
    """End this process when its parent is gone, even if it never comes back from the file in its hands."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        import fcntl

        # The sentinel is a pipe that only the parent holds open. The kernel itself then ends this process:
        # no thread of ours would run if a regular expression kept the interpreter's lock for ever.
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
        if wait([parent.sentinel], 0):
            os._exit(1)
    else:
        threading.Thread(target=_outlive, args=(parent,), daemon=True).start()


def _outlive(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _limit(most: int) -> None:
    """Limit the memory, and leave no image of it, with a person's document inside, where it crashed."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
