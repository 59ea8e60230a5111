"""Runs a function in a process of its own that is killed, stopped, or refused at a system call (Linux on x86-64).

The process is forked and traced by ptrace, so the program that forks it must have no threads. Calls are counted from
1, from the start of the function on. A kill comes before the call, so it shows the files as they are after the call
before it; between two calls of :data:`CHANGING` no file changes, but for pages that are mapped.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import platform
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TRACE_ME, _POKE_USER, _SYSCALL, _DETACH, _SET_OPTIONS, _SYSCALL_INFO = 0, 6, 24, 17, 0x4200, 0x420E
_OPTIONS = 1 | 1 << 20  # stops at system calls are told from others; the process dies with the tracer
_ORIG_RAX, _RAX = 120, 80
_STOPPED_AT_CALL = signal.SIGTRAP | 0x80
_ENTRY = 1
#: A call that does nothing marks where the function begins and ends.
_MARK = 110  # getppid
_OPEN, _OPENAT = 2, 257
_CREATES = os.O_CREAT | os.O_TRUNC
#: Calls with a file's descriptor as their first argument that change its file: write, pwrite64, writev, fsync,
#: fdatasync, ftruncate, fallocate, pwritev, copy_file_range, sendfile, and what they may do.
WRITES = frozenset({1, 18, 20, 77, 285, 296, 326, 40})
SYNCS = frozenset({74, 75, 277, 26})
#: rename, mkdir, rmdir, creat, link, unlink, symlink, chmod, and the same with a folder's descriptor.
NAMES = frozenset({82, 83, 84, 85, 86, 87, 88, 90, 258, 263, 264, 265, 266, 316})
#: flock, and fcntl where it locks or unlocks a part of a file (:data:`_LOCKING`).
LOCKS = frozenset({73, 72})
_FCNTL, _LOCKING = 72, (6, 7, 37, 38)
#: With open and openat where they create or cut a file: every call that changes one.
CHANGING = WRITES | SYNCS | NAMES

if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    _libc.ptrace.restype = ctypes.c_long


@dataclass(frozen=True)
class Interference:
    """What happens at the ``point``-th of the ``calls`` (None: of all calls).

    ``action``: "kill"; "stop" for ``seconds``, as by SIGSTOP; or the name of an error, such as "ENOSPC", with which
    this call fails, and with ``lasting`` every one of these after it. Only calls on files in ``folder`` can fail.
    """

    point: int
    action: str = "kill"
    calls: frozenset[int] | None = CHANGING
    lasting: bool = False
    seconds: float = 0.0
    folder: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """How the process ended: whether it was killed at its point, how many calls were counted, at how many something
    was done, and the result of the function or its exception."""

    killed: bool
    calls: int
    hits: int
    result: Any = None
    error: BaseException | None = None


def can_trace() -> bool:
    """Return whether this system and machine let a process be traced as this module does."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        return run_traced(os.getpid, Interference(0)).error is None
    except OSError:
        return False


def run_traced(function: Callable[[], Any], interference: Interference) -> Outcome:
    """Run ``function`` in a forked process that meets ``interference``."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(function, reading, writing)
    os.close(writing)
    try:
        killed, calls, hits = _Tracer(child, interference).run()
        with os.fdopen(reading, "rb") as stream:
            data = stream.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    if killed:
        return Outcome(True, calls, hits)
    result, error = pickle.loads(data) if data else (None, RuntimeError("the process ended without a word"))
    return Outcome(False, calls, hits, result, error)


def _run_child(function: Callable[[], Any], reading: int, writing: int) -> None:
    os.close(reading)
    _libc.ptrace(_TRACE_ME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    result: Any = None
    error: BaseException | None = None
    try:
        os.getppid()
        result = function()
    except BaseException as raised:  # noqa: BLE001 - passed on
        error = raised
    os.getppid()
    try:
        data = pickle.dumps((result, error))
    except Exception:  # noqa: BLE001 - an exception may hold anything
        data = pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
    with os.fdopen(writing, "wb") as stream:
        stream.write(data)
    os._exit(0)


class _Tracer:
    def __init__(self, child: int, interference: Interference) -> None:
        self._child = child
        self._interference = interference
        self._info = ctypes.create_string_buffer(88)
        self._calls = self._hits = 0
        self._marks = 0
        self._pending_error = 0

    def run(self) -> tuple[bool, int, int]:
        """Follow the process until the function ends; return whether it was killed, and the counts."""
        _, status = os.waitpid(self._child, 0)
        if not os.WIFSTOPPED(status):
            raise OSError(errno.EPERM, "a process cannot be traced here")
        self._ask(_SET_OPTIONS, _OPTIONS)
        delivered = 0
        while True:
            if self._ask(_SYSCALL, delivered) < 0:
                return True, self._calls, self._hits
            _, status = os.waitpid(self._child, 0)
            if not os.WIFSTOPPED(status):
                return os.WIFSIGNALED(status), self._calls, self._hits
            delivered = 0
            if os.WSTOPSIG(status) != _STOPPED_AT_CALL:
                delivered = os.WSTOPSIG(status)
            elif self._at_call():
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)
                return True, self._calls, self._hits
            elif self._marks == 2:
                self._ask(_DETACH, 0)
                return False, self._calls, self._hits

    def _at_call(self) -> bool:
        """Deal with the entry to a call or the exit from it; return whether the process is to be killed."""
        size = _libc.ptrace(_SYSCALL_INFO, self._child, len(self._info), ctypes.addressof(self._info))
        if size < 24:
            return False
        if self._info.raw[0] != _ENTRY:
            if self._pending_error:
                _libc.ptrace(_POKE_USER, self._child, _RAX, (1 << 64) - self._pending_error)
                self._pending_error = 0
            return False
        number, *arguments = struct.unpack_from("=7Q", self._info.raw, 24)
        if number == _MARK:
            self._marks += 1
            return False
        interference = self._interference
        if self._marks != 1 or not self._is_counted(number, arguments):
            return False
        self._calls += 1
        if self._calls < interference.point or (
            self._calls > interference.point and not interference.lasting
        ):
            return False
        if not interference.point:
            return False
        self._hits += 1
        if interference.action == "kill":
            return True
        if interference.action == "stop":
            time.sleep(interference.seconds)
        else:
            _libc.ptrace(_POKE_USER, self._child, _ORIG_RAX, (1 << 64) - 1)
            self._pending_error = getattr(errno, interference.action)
        return False

    def _is_counted(self, number: int, arguments: list[int]) -> bool:
        counted = self._interference.calls
        if counted is None:
            return True
        if number in (_OPEN, _OPENAT):
            flags = arguments[1 if number == _OPEN else 2]
            return bool(NAMES & counted) and bool(flags & _CREATES) and self._is_inside(None)
        if number == _FCNTL and arguments[1] not in _LOCKING:
            return False
        has_descriptor = number in WRITES | SYNCS | LOCKS
        return number in counted and self._is_inside(arguments[0] if has_descriptor else None)

    def _is_inside(self, descriptor: int | None) -> bool:
        folder = self._interference.folder
        if folder is None or descriptor is None:
            return True
        try:
            return os.readlink(f"/proc/{self._child}/fd/{descriptor}").startswith(str(folder))  # noqa: PTH115
        except OSError:
            return False

    def _ask(self, request: int, data: int) -> int:
        return int(_libc.ptrace(request, self._child, None, data))
