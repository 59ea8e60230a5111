"""Operations on a base of twelve documents on a disk that is really full; prints a table of what was said.

    unshare -rm python tests/small_disk.py FOLDER [--step 12] [--operations NAME...]

Mounts a small disk in memory at FOLDER, fills it but for some KiB, and lets the operation fail there; with more and
more room, until it succeeds. Each time the error has to be one of clew that says what is full and what to do, the
base has to hold what it held before or afterwards, and with more room the same operation must succeed. Exit status 1
if not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from clew.core.errors import StoreError
from faults import Bench
from kill_points import OPERATIONS
from soak import without_processes

DISK_SIZE = 48 << 20


def can_mount(folder: Path) -> bool:
    """Return whether a process of this user may mount a disk of its own."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def mount(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "none", str(folder)], check=True)


def fill_disk(filler: Path, room: int) -> None:
    """Write a file that leaves ``room`` bytes of the disk free."""
    state = os.statvfs(filler.parent)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, state.f_bavail * state.f_frsize - room)


def try_rooms(bench: Bench, step: int) -> Counter[str]:
    """Let an operation run with ever more room; return what was said."""
    said: Counter[str] = Counter()
    filler, room = bench.work / "filler", 0
    while True:
        bench.copy()
        fill_disk(filler, room << 10)
        error: BaseException | None = None
        try:
            bench.run()
        except (OSError, StoreError) as raised:
            error = raised
        filler.unlink()
        if error is None:
            return said
        assert isinstance(error, StoreError), f"{room} KiB: {error!r}"
        assert "disk" in error.problem and "room" in error.hint, f"{room} KiB: {error}"
        said[error.problem.replace(str(bench.folder), "BASE")] += 1
        bench.check_recovered()
        room += step


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--step", type=int, default=12, help="KiB")
    parser.add_argument("--operations", nargs="+", choices=OPERATIONS, default=list(OPERATIONS))
    given = parser.parse_args()
    mount(given.folder)
    failed = 0
    with without_processes():
        for name in given.operations:
            work = given.folder / name
            (work / "temporary").mkdir(parents=True)
            tempfile.tempdir = str(work / "temporary")
            try:
                said = try_rooms(Bench(name, work), given.step)
                for text, times in said.most_common():
                    sys.stdout.write(f"{name} | {times} | {text}\n")
            except AssertionError as error:
                failed += 1
                sys.stdout.write(f"{name} | FAILED | {error}\n")
            sys.stdout.flush()
            shutil.rmtree(work)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
