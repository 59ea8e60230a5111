"""Worker processes that parse files: a crash, a hang or a glut of memory costs one file and no other.

Workers are spawned, never forked: the parent may have threads. Each has a pipe to the parent; when the
parent goes, however it ends, the pipe ends and the worker with it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Self

from clew.errors import UnreadableFile
from clew.parse.build import Unit
from clew.parse.read import read_file
from clew.types import ParsedDocument

Outcome = ParsedDocument | UnreadableFile
#: A function of a module that a spawned process can import.
ReadFile = Callable[..., ParsedDocument]

#: Seconds that one file may take. A filing of 260 pages takes ten; a thousand pages with tables, a minute.
TIME_LIMIT = 900.0
#: Bytes of address space that a worker may use.
MEMORY_LIMIT = 8 << 30


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
        reader: ReadFile = read_file,
        seconds: float = TIME_LIMIT,
        memory: int = MEMORY_LIMIT,
    ) -> None:
        self._size = max(workers or os.cpu_count() or 1, 1)
        self._reader = reader
        self._seconds = seconds
        self._memory = memory
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, paths: Iterable[Path], unit: str = "paragraph") -> Iterator[tuple[Path, Outcome]]:
        """Yield every path with its document, or with why there is none, as they are done."""
        waiting = deque(paths)
        while waiting or any(worker.path for worker in self._workers):
            self._hand_out(waiting, unit)
            busy = [worker for worker in self._workers if worker.path is not None]
            soonest = min(worker.deadline for worker in busy)
            ready = set(wait([worker.pipe for worker in busy], max(soonest - time.monotonic(), 0)))
            for worker in busy:
                path = worker.path
                if path is None:
                    continue
                if worker.pipe in ready:
                    yield path, self._received(worker)
                elif time.monotonic() >= worker.deadline:
                    self._dismiss(worker)
                    yield path, UnreadableFile(f"the parser took longer than {self._seconds:g} seconds")

    def close(self) -> None:
        """End the workers."""
        for worker in list(self._workers):
            self._dismiss(worker)

    def _hand_out(self, waiting: deque[Path], unit: str) -> None:
        for worker in self._workers:
            if waiting and worker.path is None:
                self._give(worker, waiting.popleft(), unit)
        while waiting and len(self._workers) < self._size:
            worker = self._start()
            self._workers.append(worker)
            self._give(worker, waiting.popleft(), unit)

    def _give(self, worker: _Worker, path: Path, unit: str) -> None:
        worker.path, worker.deadline = path, time.monotonic() + self._seconds
        # A worker that died idle shows when its answer is awaited.
        with suppress(OSError):
            worker.pipe.send((path, unit))

    def _received(self, worker: _Worker) -> Outcome:
        worker.path = None
        try:
            outcome: Outcome = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            code = worker.process.exitcode or 0
            self._dismiss(worker)
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            return UnreadableFile(f"the parser crashed on it ({how})")
        return outcome

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._reader, self._memory), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _dismiss(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
        worker.process.close()


def _work(pipe: Connection, reader: ReadFile, memory: int) -> None:
    """Serve one parent until it goes."""
    _limit_memory(memory)
    while True:
        try:
            path, unit = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            outcome = _outcome(reader, path, unit)
            pipe.send(outcome)
        except KeyboardInterrupt:
            return


def _outcome(reader: ReadFile, path: Path, unit: Unit) -> Outcome:
    try:
        return reader(path, unit=unit)
    except UnreadableFile as refused:
        return refused
    except MemoryError:
        return UnreadableFile("it needs more memory than a parser may use")
    except RecursionError:
        return UnreadableFile("it is nested too deeply")


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
