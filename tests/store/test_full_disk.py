"""A disk that is really full, and a file system that cannot lock: one true line, and nothing is lost."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.core.errors import StoreError
from clew.store import database
from small_disk import can_mount
from soak import without_processes
from system_calls import LOCKS, Interference, can_trace, run_traced

PROGRAM = Path(__file__).parent.parent / "small_disk.py"
FLOCK, FCNTL = 73, 72
needs_tracing = pytest.mark.skipif(not can_trace(), reason="a process cannot be traced here")


@pytest.fixture
def disk(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("a user of this system cannot mount a small disk (unshare -rm mount -t tmpfs)")
    return tmp_path / "disk"


def run_on_disk(disk: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a program of tests with a mount namespace of its own."""
    words = ["unshare", "-rm", sys.executable, *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(("operation", "step"), [("create", 170), ("add", 60), ("remove_graph", 60)])
def test_an_operation_on_a_full_disk_says_so_and_loses_nothing(disk, operation, step):
    """At a few sizes; ``tests/small_disk.py`` tries more, and all operations."""
    done = run_on_disk(disk, PROGRAM, disk, "--step", step, "--operations", operation)
    assert done.returncode == 0 and "disk" in done.stdout, done.stdout + done.stderr


#: Mounts a disk of so many KiB and runs the command on it; then with more room, again.
_COMMAND = """
import subprocess, sys
disk, size, files = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", disk], check=True)
add = [sys.executable, "-m", "clew", "add", files, "--kb", f"{disk}/base"]
print(subprocess.run(add, capture_output=True, text=True).stderr)
subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
print("---", subprocess.run(add, capture_output=True, text=True).returncode)
print(subprocess.run([*add[:3], "doctor", "--kb", f"{disk}/base"], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("size", [40, 300, 640, 900])
def test_a_command_on_a_full_disk_ends_in_two_lines(disk, tmp_path, size):
    """The command line, with real processes that read files, and the encoder that comes with clew."""
    disk.mkdir()
    files = tmp_path / "files"
    files.mkdir()
    for number in range(4):
        text = " ".join(f"word{number}{place}" for place in range(4000))
        (files / f"{number}.txt").write_text(
            "\n\n".join(text[at : at + 900] for at in range(0, len(text), 900))
        )
    done = run_on_disk(disk, "-c", _COMMAND, disk, size, files)
    problem, _, rest = done.stdout.partition("---")
    assert "Traceback" not in problem and "full" in problem and "Make room on the disk" in problem, problem
    assert rest.split("\n")[0].strip() == "0" and "all is well" in rest, rest + done.stderr


_CODES = """
import subprocess, sys
from pathlib import Path
import numpy as np
from clew.store.binary_index import BinaryIndexFile
disk, size = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", disk], check=True)
vectors = np.random.default_rng(1).normal(size=(40_000, 64)).astype(np.float32)
try:
    BinaryIndexFile(Path(disk) / "signs.u64", 64, 40_000).write(0, vectors)
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("size", [16, 200])
def test_codes_on_a_full_disk_do_not_end_the_process(disk, size):
    """A mapped file that finds no room kills the process that writes to it."""
    disk.mkdir()
    done = run_on_disk(disk, "-c", _CODES, disk, size)
    assert done.returncode == 0 and "No space left" in done.stdout, (done.returncode, done.stderr)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0.3)
    monkeypatch.setattr(inspect.unwrap(database.hold_lock), "__defaults__", (0.3, "busy", "Try again"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nThe mill stands at the river.\n")
    with without_processes():
        yield tmp_path


def add(folder: Path) -> None:
    with clew.open(folder / "base", create=True) as base:
        base.add([folder / "docs"])


def look(folder: Path) -> None:
    with clew.open(folder / "base") as base:
        assert len(base.documents()) == 1


@needs_tracing
@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP", "EINVAL"])
@pytest.mark.parametrize("calls", [{FLOCK}, {FCNTL}, LOCKS], ids=["flock", "fcntl", "both"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_system_that_cannot_lock_is_named(folder, error, calls, is_new):
    if not is_new:
        add(folder)
    broken = Interference(1, error, frozenset(calls), lasting=True, folder=folder)
    outcome = run_traced(lambda: add(folder), broken)
    assert isinstance(outcome.error, StoreError), repr(outcome.error)
    words = str(outcome.error)
    assert "cannot be locked" in words and "full" not in words and str(folder / "base") in words
    add(folder)
    look(folder)


@needs_tracing
@pytest.mark.parametrize("error", ["ENOLCK", "ENOSYS"])
def test_reading_where_nothing_can_be_locked_says_so(folder, error):
    add(folder)
    outcome = run_traced(lambda: look(folder), Interference(1, error, LOCKS, lasting=True, folder=folder))
    assert isinstance(outcome.error, StoreError) and "cannot be locked" in str(outcome.error), outcome.error
    look(folder)


@needs_tracing
def test_a_lock_that_another_process_holds_is_no_fault_of_the_file_system(folder):
    add(folder)
    with database.hold_lock(folder / "base" / "write.lock"):
        outcome = run_traced(lambda: add(folder), Interference(0))
    assert outcome.error is None or "cannot be locked" not in str(outcome.error)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [["list"], ["recipes"], ["list", "--json"]])
def test_output_that_finds_no_room_ends_without_a_traceback(tmp_path, words):
    clew.open(tmp_path / "base", create=True).close()
    command = [sys.executable, "-m", "clew", *words]
    if words[0] == "list":
        command += ["--kb", str(tmp_path / "base")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=os.environ | {}
        )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
