"""Operations on a base of twelve documents while the machine fails them; prints a table of what was said.

    python tests/faults.py FOLDER [--step 5]

A full disk, a disk that fails, fsync that fails or takes long, few descriptors, little memory, a limit on the size of
files, a clock that goes back, a writer that is stopped. The faults of the disk come at every ``--step``-th call. Each
time the error has to say what it is, the base has to hold what it held before or afterwards, and the same operation
must then succeed and lead to the same base as one without a fault. Exit status 1 if not. Linux on x86-64.
"""

from __future__ import annotations

import argparse
import errno
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import clew
from clew.core.errors import ClewError, Locked
from clew.store import database
from clew.store.store import Store
from kill_points import OPERATIONS, Operation, check, fill, read_results, run, write_files
from soak import State, is_between, read_state, without_processes
from system_calls import SYNCS, WRITES, Interference, Outcome, run_traced

NAMES = ("add", "change", "remove", "replace_graph", "set_encoder")


@dataclass
class Bench:
    """The base before and after an operation, and a copy for each trial."""

    name: str
    work: Path
    operation: Operation = field(init=False)
    before: State = field(init=False)
    after: State = field(init=False)

    def __post_init__(self) -> None:
        self.operation = OPERATIONS[self.name]
        self.files, self.start, self.folder = (self.work / part for part in ("files", "start", "trial"))
        write_files(self.files)
        with clew.open(self.start, create=True) as base:
            if not self.operation.is_new:
                fill(base, self.files)
            self.before = read_state(base)
        self.operation.prepare(self.files)
        self.copy()
        self.run()
        with clew.open(self.folder) as base:
            self.after, self.digest, self.results = read_state(base), base.store.digest(), read_results(base)

    def copy(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.operation.is_new:
            shutil.copytree(self.start, self.folder)

    def run(self) -> None:
        run(self.operation, self.folder, self.files)

    def check_recovered(self) -> None:
        """Check that nothing is lost, and that the operation succeeds now."""
        if not self.operation.is_new or Store.exists(self.folder):
            with clew.open(self.folder) as base:
                assert is_between(read_state(base), self.before, self.after), "something is lost"
        self.run()
        with clew.open(self.folder) as base:
            assert base.store.digest() == self.digest and read_results(base) == self.results
            assert not base.doctor()
        check(self.folder, self.after, self.before.words() | self.after.words())


def describe(error: BaseException | None) -> str:
    """Return an error in the words that a person reads. Raises AssertionError for one that says something else."""
    if error is None:
        return "no error"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EMFILE):
        return str(error.strerror)
    assert isinstance(error, ClewError | MemoryError), repr(error)
    words = str(error) or "MemoryError"
    assert "backup" not in words, words
    words = words.partition(". ")[0]
    return words.rpartition("base.sqlite ")[2] if "base.sqlite " in words else words


def disk_fault(bench: Bench, action: str, calls: frozenset[int], step: int, lasting: bool) -> Counter[str]:
    """Let the disk fail at every ``step``-th call."""
    said: Counter[str] = Counter()
    point, reached = 1, True
    while reached:
        bench.copy()
        fault = Interference(point, action, calls, lasting, folder=bench.work)
        outcome = run_traced(bench.run, fault)
        reached = outcome.hits > 0
        if reached:
            said[describe(outcome.error)] += 1
        bench.check_recovered()
        point += step
    return said


def slow_disk(bench: Bench) -> Counter[str]:
    bench.copy()
    outcome = run_traced(bench.run, Interference(1, "stop", SYNCS, True, seconds=0.05, folder=bench.work))
    assert outcome.error is None and outcome.hits
    bench.check_recovered()
    return Counter({"no error": 1})


def limited(bench: Bench, limits: list[tuple[int, int]]) -> Counter[str]:
    """Run with each of the limits of the system."""
    said: Counter[str] = Counter()
    for kind, limit in limits:
        bench.copy()

        def act(kind: int = kind, limit: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python itself does
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
            bench.run()

        outcome: Outcome = run_traced(act, Interference(0))
        said[describe(outcome.error)] += 1
        bench.check_recovered()
    return said


def few_descriptors(bench: Bench) -> Counter[str]:
    used = len(list(Path("/proc/self/fd").iterdir()))
    return limited(bench, [(resource.RLIMIT_NOFILE, used + more) for more in range(2, 20)])


def little_memory(bench: Bench) -> Counter[str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize:"))
    return limited(bench, [(resource.RLIMIT_AS, used + (more << 18)) for more in range(0, 32, 4)])


def small_files(bench: Bench) -> Counter[str]:
    return limited(bench, [(resource.RLIMIT_FSIZE, size << 10) for size in (1, 16, 64, 160, 200, 240)])


def clock_back(bench: Bench) -> Counter[str]:
    """The clock goes back by a day in the middle: two machines that disagree write to one base."""
    bench.copy()
    real = time.time
    calls = 0

    def strange_time() -> float:
        nonlocal calls
        calls += 1
        return real() - 86_400 * (calls % 2)

    time.time = strange_time
    try:
        bench.run()
    finally:
        time.time = real
    bench.check_recovered()
    return Counter({"no error": 1})


def stopped_writer(bench: Bench, step: int) -> Counter[str]:
    """Stop the writer at a call; meanwhile the base is read, and another writer is told so."""
    said: Counter[str] = Counter()
    for point in range(1, 200, 4 * step):
        bench.copy()
        child = os.fork()
        if child == 0:
            _stop_at(bench, point)
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        with clew.open(bench.folder) as base:
            assert is_between(read_state(base), bench.before, bench.after)
            base.search("mill", k=3, retriever="bm25")
            try:
                with base.store.database.hold_lock(timeout=0.2):
                    said["another can write"] += 1
            except Locked as error:
                said[describe(error)] += 1
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, 0)
        assert os.WEXITSTATUS(status) == 0, "the writer did not come to its end"
        bench.check_recovered()
    return said


def _stop_at(bench: Bench, point: int) -> None:
    """Run in this process, which stops itself at the ``point``-th statement, and end."""
    count = 0
    connect = database.connect

    def counted(path: Path, *, write: bool) -> object:
        connection = connect(path, write=write)

        def count_statement(_: str) -> None:
            nonlocal count
            count += 1
            if count == point:
                os.kill(os.getpid(), signal.SIGSTOP)

        connection.set_trace_callback(count_statement if write else None)
        return connection

    database.connect = counted  # type: ignore[assignment]
    status = 1
    try:
        bench.run()
        status = 0
    finally:
        os._exit(status)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--step", type=int, default=5)
    parser.add_argument("--operations", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    given = parser.parse_args()
    step = given.step
    faults: dict[str, Callable[[Bench], Counter[str]]] = {
        "full disk": lambda bench: disk_fault(bench, "ENOSPC", WRITES, step, True),
        "a write fails once": lambda bench: disk_fault(bench, "EIO", WRITES, step, False),
        "fsync fails": lambda bench: disk_fault(bench, "EIO", SYNCS, step, True),
        "fsync is slow": slow_disk,
        "few descriptors": few_descriptors,
        "little memory": little_memory,
        "files may not grow": small_files,
        "the clock goes back": clock_back,
        "the writer is stopped": lambda bench: stopped_writer(bench, step),
    }
    failed = 0
    sys.stdout.write("| fault | operation | trials | said |\n| --- | --- | ---: | --- |\n")
    with without_processes():
        for name in given.operations:
            work = given.folder / name
            (work / "temporary").mkdir(parents=True)
            tempfile.tempdir = str(work / "temporary")
            bench = Bench(name, work)
            for fault, try_fault in faults.items():
                try:
                    said = try_fault(bench)
                    words = "; ".join(f"{text} ({times})" for text, times in said.most_common())
                    line = f"| {fault} | {name} | {said.total()} | {words} |"
                except AssertionError as error:
                    failed += 1
                    line = f"| {fault} | {name} | | FAILED: {error} |"
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
