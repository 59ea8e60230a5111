"""A pool of processes that parse files: a file that crashes, hangs or exhausts the memory costs no other file.

Workers are spawned, never forked, since the parent may have threads. Each has a pipe to the parent for files and
documents. When the parent ends, in whatever way, its workers end with it, even in the middle of a file.

A document that takes a worker over through a fault in a parser gets no further: the parent opens the files and hands
them over, one at a time, and takes nothing from the pipe but documents and errors.

concurrent.futures and pebble were considered: decision 0017.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import MappingProxyType, ModuleType, TracebackType
from typing import Any, Self

from clew.core.config import reading_limits
from clew.core.errors import UnreadableFile
from clew.core.messages import read_message
from clew.core.types import ParsedDocument
from clew.parse.documents.files import handed_over, open_descriptor
from clew.parse.documents.formats import document_formats
from clew.parse.documents.limits import MIB, SIMPLER, SMALLER, limit_memory, set_processor_limit
from clew.parse.documents.pdf.recognition import can_recognise
from clew.parse.documents.progress import receive_pages
from clew.parse.documents.reader import read_file
from clew.parse.documents.sandbox import confine_process

Outcome = ParsedDocument | UnreadableFile
#: A function of a module that a spawned process can import. It is called with a path and the keyword arguments of
#: :meth:`ParsePool.read_files`, and returns a document, or another value that its caller expects.
FileReader = Callable[..., Any]

#: Seconds that one file may take, however busy the machine is. 260 pages of a filing take 7 of processor time.
TIME_LIMIT = 900.0
#: The same where pictures of pages are read: a scanned book takes hours.
RECOGNITION_TIME_LIMIT = 6 * 3600.0
#: Seconds of processor time that a file may take for each MiB, beside those that every file may.
SECONDS_PER_MIB = 1.0
#: Where the classes are of what workers send, beside paths.
_MESSAGE_MODULES = ("clew.core.types", "clew.core.errors", "clew.parse.")
#: Seconds between two reports of how far a file is, and between two calls while it is awaited.
_REPORT_EVERY = _WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Crash:
    """The last message of a worker that ends with an unexpected error."""

    error: str


@dataclass(frozen=True, slots=True)
class _Pages:
    """A message of a worker that reads: so many pages of so many are done."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class _Task:
    """A message to a worker: a file and the keyword arguments of its reader.

    ``is_opened``: a descriptor of the file follows. ``problem``: why the parent could not open it.
    """

    path: Path
    options: Mapping[str, Any]
    is_opened: bool = False
    problem: UnreadableFile | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The files that no worker has yet, and the keyword arguments of their reader."""

    paths: deque[Path]
    unit: str
    options: Mapping[Path, Mapping[str, Any]]

    def take(self) -> tuple[Path, dict[str, Any]]:
        """Return the first file with its arguments; it no longer waits."""
        path = self.paths.popleft()
        return path, {"unit": self.unit, **self.options.get(path, {})}


@dataclass(slots=True)
class _Worker:
    process: multiprocessing.process.BaseProcess
    pipe: Connection
    path: Path | None = None
    deadline: float = 0.0


class ParsePool:
    """``workers`` processes (default: one per core), started when they are needed. A context manager.

    ``time_limit``: seconds that a file may take (default: as its format needs). ``processor_limit``: seconds of
    processor time, more for a large file and for each page of a PDF; ``memory_limit``: bytes beyond those of the idle
    process; 0 is no limit, None the one of :func:`clew.core.config.reading_limits`.

    ``confined``: the processes can neither reach a network, nor write files but in ``folder``, nor read files but
    there and those that they are given, where the system can see to it (:mod:`clew.parse.documents.sandbox`). Their
    reader opens what they are given by :func:`clew.parse.documents.files.open_file`. The attribute ``on_pages`` may
    be set to a function that is called with a path and how many of its pages of how many are read, now and then, and
    ``on_wait`` to one that is called about twice a second while a file is read.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        reader: FileReader = read_file,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        processor_limit: float | None = None,
        confined: bool = True,
        folder: Path | None = None,
    ) -> None:
        seconds, mebibytes = reading_limits()
        self._size = max(workers or os.cpu_count() or 1, 1)
        self._reader = reader
        default = RECOGNITION_TIME_LIMIT if can_recognise() else TIME_LIMIT
        self._time_limit = default if time_limit is None else time_limit
        self._memory_limit = int(mebibytes * MIB) if memory_limit is None else memory_limit
        self._processor_limit = seconds if processor_limit is None else processor_limit
        self.on_pages: Callable[[Path, int, int], None] | None = None
        self.on_wait: Callable[[], None] | None = None
        self._confine = partial(confine_process, folder) if confined else None
        # Where nothing can be confined, a worker may as well open its file.
        self._hands_over = confined and sys.platform == "linux"
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
        """Yield each path with its document, or with the error that says why there is none, as they finish.

        ``options`` are further keyword arguments of the reader, by path, such as the file's ``name``. To a deque of
        paths, and to the options, the caller may add while it iterates.
        """
        queue = paths if isinstance(paths, deque) else deque(paths)
        waiting = _Waiting(queue, unit, options)
        self._assign_files(waiting)
        while busy := [worker for worker in self._workers if worker.path is not None]:
            soonest = min(worker.deadline for worker in busy)
            pipes, patience = [worker.pipe for worker in busy], max(soonest - time.monotonic(), 0)
            while self.on_wait is not None and patience > _WAIT_SECONDS and not wait(pipes, _WAIT_SECONDS):
                self.on_wait()
                patience = max(soonest - time.monotonic(), 0)
            ready = set(wait(pipes, patience))
            for worker in busy:
                path = worker.path
                if path is None:
                    continue
                if worker.pipe in ready:
                    received = self._receive(worker)
                    if isinstance(received, _Pages):  # it goes on reading
                        continue
                    outcome = received
                elif time.monotonic() >= worker.deadline:
                    self._kill(worker)
                    outcome = UnreadableFile(
                        f"the parser took longer than {self._time_limit:g} seconds", SMALLER
                    )
                else:
                    continue
                # Before the caller deals with this one, which may take a while.
                self._assign_files(waiting)
                yield path, outcome
                self._assign_files(waiting)

    def close(self) -> None:
        """End the workers."""
        for worker in list(self._workers):
            self._kill(worker)

    def _assign_files(self, waiting: _Waiting) -> None:
        """Send a file to each idle worker; start workers while files are left and fewer workers run than may."""
        for worker in list(self._workers):
            # A worker that was killed while it was idle must not lose a file.
            if worker.path is None and worker.process.exitcode is not None:
                self._kill(worker)
            elif waiting.paths and worker.path is None:
                self._send(worker, *waiting.take())
        while waiting.paths and len(self._workers) < self._size:
            worker = self._start()
            self._workers.append(worker)
            self._send(worker, *waiting.take())

    def _send(self, worker: _Worker, path: Path, options: dict[str, Any]) -> None:
        worker.path, worker.deadline = path, time.monotonic() + self._time_limit
        try:
            if not self._hands_over:
                worker.pipe.send(_Task(path, options))
                return
            try:
                descriptor = open_descriptor(path)
            except UnreadableFile as problem:
                worker.pipe.send(_Task(path, options, problem=problem))
                return
            try:
                worker.pipe.send(_Task(path, options, is_opened=True))
                with _as_socket(worker.pipe) as channel:
                    socket.send_fds(channel, [b"\0"], [descriptor])
            finally:
                os.close(descriptor)
        except OSError:
            # It has just died, or waits for what does not come. Its end is noticed when its answer is awaited.
            worker.process.kill()

    def cancel(self) -> None:
        """End the reading of the current files, which then count as crashed. Called from any thread."""
        for worker in list(self._workers):
            with suppress(ValueError, AttributeError):  # it has ended meanwhile
                worker.process.kill()

    def _receive(self, worker: _Worker) -> Outcome | _Pages:
        """Return what a worker sent: the outcome of its file, or how far it is."""
        try:
            data = worker.pipe.recv_bytes()
            outcome: Outcome | _Crash | _Pages = read_message(
                data, _MESSAGE_MODULES, frozenset({type(Path())})
            )
        except (EOFError, OSError):
            worker.process.join()
            outcome = _Crash(_describe_exit(worker.process.exitcode or 0))
        except pickle.UnpicklingError as error:
            outcome = _Crash(str(error))
        if isinstance(outcome, _Pages):
            if self.on_pages is not None and worker.path is not None:
                self.on_pages(worker.path, outcome.done, outcome.total)
            return outcome
        worker.path = None
        if isinstance(outcome, _Crash):
            self._kill(worker)
            if outcome.error == "SIGXCPU":
                limit = f"{self._processor_limit:g} seconds of processor time"
                return UnreadableFile(
                    f"reading it takes more than {limit} (CLEW_READ_SECONDS sets the limit)"
                )
            if outcome.error == "SIGABRT" and self._memory_limit:
                # So end libraries that cannot get memory: PDFium.
                limit = f"{self._memory_limit // MIB:,} MiB of memory (CLEW_READ_MEMORY sets the limit)"
                return UnreadableFile(f"reading it takes more than {limit}, or it is damaged")
            return UnreadableFile(f"the parser crashed on it ({outcome.error})", SIMPLER)
        return outcome

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve_parent,
            args=(theirs, self._reader, self._memory_limit, self._processor_limit, self._confine),
            daemon=True,
        )
        with _STARTING:
            # A spawned process imports the main module of its parent, and so would run a script again that has no
            # __main__ guard. Workers need nothing of it.
            program = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                with _interrupts_blocked():
                    process.start()
            finally:
                sys.modules["__main__"] = program
        theirs.close()
        return _Worker(process, ours)

    def _kill(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.path = None
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
        worker.process.close()


@contextmanager
def _as_socket(pipe: Connection) -> Iterator[socket.socket]:
    """Yield the socket that a pipe is on Linux: descriptors can be sent through it."""
    channel = socket.socket(fileno=pipe.fileno())
    try:
        channel.setblocking(True)  # a program may have given new sockets a time limit
        yield channel
    finally:
        channel.detach()  # the pipe goes on


_STARTING = threading.Lock()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in this thread, and in a process that is started meanwhile, which inherits the block: it ignores
    Ctrl-C from the start, not only once it has imported enough to say so. Here Ctrl-C takes effect afterwards."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    # Starting multiprocessing's resource tracker unblocks Ctrl-C again, so it is started first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _describe_exit(code: int) -> str:
    """Return the exit status or signal of a process in words."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _serve_parent(
    pipe: Connection, reader: FileReader, memory: int, seconds: float, confine: Callable[[], None] | None
) -> None:
    """Read the files that the parent sends, until it closes the pipe. The main function of a worker."""
    # Ctrl-C reaches every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _silence_output()
    _end_with_parent()
    if confine is not None:
        document_formats()  # while plug-ins can be imported from wherever they are
        confine()
    limit_memory(memory)
    refusal = UnreadableFile(
        f"reading it takes more than {memory // MIB:,} MiB of memory (CLEW_READ_MEMORY sets the limit)"
    )
    receive_pages(_PageReporter(pipe))
    with _CrashReport(pipe):
        while True:
            try:
                task: _Task = pipe.recv()
            except EOFError:
                return
            with suppress(OSError):
                size = task.path.stat().st_size
                set_processor_limit(seconds and seconds + SECONDS_PER_MIB * size / MIB)
            with _take_file(pipe, task):
                outcome = task.problem or _read(reader, task.path, task.options, refusal)
            try:
                pipe.send(outcome)
            except MemoryError:
                outcome = refusal
                pipe.send(outcome)


@contextmanager
def _take_file(pipe: Connection, task: _Task) -> Iterator[None]:
    """Let a reader open the file of a task, if the parent hands it over."""
    if not task.is_opened:
        yield
        return
    with _as_socket(pipe) as channel:
        _, (descriptor,), _, _ = socket.recv_fds(channel, 1, 1)
    with handed_over(task.path, descriptor):
        yield


def _read(reader: FileReader, path: Path, options: Mapping[str, Any], refusal: UnreadableFile) -> Outcome:
    try:
        outcome: Outcome = reader(path, **options)
        return outcome
    except UnreadableFile as error:
        return error
    except MemoryError:
        return refusal
    except RecursionError:
        return UnreadableFile("it is nested too deeply", SIMPLER)


class _PageReporter:
    """Sends the parent how far a file is, not too often."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= _REPORT_EVERY:
            self._last = now
            with suppress(OSError):  # the parent has ended, and so does this process
                self._pipe.send(_Pages(done, total))


class _CrashReport:
    """Sends the parent the error that ends the worker, since nobody reads a worker's traceback. A context manager."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, BrokenPipeError):
            return
        last = traceback.extract_tb(trace)[-1]
        message = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        with suppress(OSError):
            self._pipe.send(_Crash(f"{message}, {Path(last.filename).name}:{last.lineno}"))


def _silence_output() -> None:
    """Discard what libraries print: it would disturb the parent's progress bars."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(null, stream)
    os.close(null)


def _end_with_parent() -> None:
    """End this process when its parent ends, even if it hangs in the middle of a file."""
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
        threading.Thread(target=_wait_for_parent, args=(parent,), daemon=True).start()


def _wait_for_parent(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
