"""A folder that is watched while random operations are done on it, as an hour of a person's work replayed fast.

    python tests/watched_folder.py [--operations 500] [--seed 0] [--kills 20]

``clew watch`` runs all the time, and is killed at random moments and started again. Operations come in bursts with
pauses between them. At the end the base is compared with one to which the folder is added for the first time: paths,
documents, the order and scores of searches; then the trash is restored.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import clew
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.trash import Trash
from clew.knowledge_base.watch import FolderWatch

WORDS = "quay harbour lease weir mill ferry lamp keeper tide rope barge lock".split()
KINDS = "create create create change append delete rename move copy touch folder drop zip swap".split()
QUERIES = ("ferry lamp", "keeper of the weir", "rope", "note")
#: Seconds of a burst of operations, and between two.
_BURST, _PAUSE = 0.05, 1.5


class Folder:
    """A folder on which random operations are done, as a person and programs do them."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.rng = random.Random(seed)
        self.count = 0
        path.mkdir()

    def files(self) -> list[Path]:
        """Return the files, sorted."""
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def text(self) -> str:
        """Return a text that no other file has."""
        self.count += 1
        return f"# Note {self.count}\n\n" + " ".join(self.rng.choices(WORDS, k=8)) + ".\n"

    def operate(self) -> str:
        """Do one operation, and return its kind."""
        files = self.files()
        folders = [self.path, *sorted(path for path in self.path.rglob("*") if path.is_dir())]
        place, kind = self.rng.choice(folders), self.rng.choice(KINDS)
        self.count += 1
        if kind == "folder" and len(folders) < 8:
            (place / f"f{self.count}").mkdir()
        elif kind == "drop" and place != self.path and self.rng.random() < 0.3:
            shutil.rmtree(place)
        elif kind == "zip" and self.rng.random() < 0.3:
            with zipfile.ZipFile(place / f"z{self.count}.zip", "w") as archive:
                archive.writestr("inner.md", self.text())
        elif kind == "create" or not files or kind in {"folder", "drop", "zip"}:
            kind = "create"
            (place / f"n{self.count}.md").write_text(self.text())
        else:
            self._change(kind, self.rng.choice(files), self.rng.choice(files), place)
        return kind

    def _change(self, kind: str, file: Path, other: Path, place: Path) -> None:
        if kind in {"change", "append"} and file.suffix == ".md":
            with file.open("a" if kind == "append" else "w") as stream:
                stream.write(self.text())
        elif kind == "delete":
            file.unlink()
        elif kind == "rename":
            file.rename(file.with_name(f"r{self.count}{file.suffix}"))
        elif kind == "move":
            shutil.move(file, place / f"m{self.count}{file.suffix}")
        elif kind == "copy":
            shutil.copy(file, place / f"c{self.count}{file.suffix}")
        elif kind == "touch":
            os.utime(file)
        elif kind == "swap" and file != other and file.suffix == other.suffix:
            # As editors save: a new file takes the place of the old.
            file.replace(other)


@dataclass
class Outcome:
    """What happened, and how the base differs at the end from one made anew; ``differences`` should be empty."""

    operations: int
    kills: int
    starts: int
    seconds: float
    documents: int = 0
    trashed: int = 0
    restored: int = 0
    differences: tuple[str, ...] = ()


class Watch:
    """``clew watch`` in a process of its own."""

    def __init__(self, folder: Path, kb: Path) -> None:
        self._command = [sys.executable, "-m", "clew", "watch", str(folder), "--kb", str(kb)]
        self._command += ["--every", "0.1", "--quiet", "0.3", "--workers", "1"]
        self._log = kb.with_name("watch.log")
        self.starts = self.kills = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        self.starts += 1

    def kill(self) -> None:
        """Kill it as a loss of power would, wherever it is. Raises AssertionError where it has ended by itself."""
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.kills += 1

    def stop(self) -> None:
        """Stop it as a system does that shuts down."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()


def replay(work: Path, operations: int, seed: int, kills: int) -> Outcome:
    """Do the operations on a new folder in ``work`` while it is watched, and return what came of it."""
    folder, kb = Folder(work / "docs", seed), work / "kb"
    with clew.open(kb, create=True) as base:
        base.encoding.set(None)
    watch = Watch(folder.path, kb)
    started = time.monotonic()
    killed_before = sorted(folder.rng.sample(range(1, operations), min(kills, operations - 1)))
    with watch:
        for number in range(operations):
            folder.operate()
            if number in killed_before:
                time.sleep(folder.rng.uniform(0.0, 3.0))
                watch.kill()
                # What happens while it is not running counts as well.
                for _ in range(folder.rng.randint(0, 2)):
                    folder.operate()
                watch.start()
            time.sleep(_PAUSE if folder.rng.random() < 0.1 else _BURST)
        _wait_until_in_step(kb, folder.path)
    outcome = Outcome(operations, watch.kills, watch.starts, round(time.monotonic() - started, 1))
    with clew.open(kb) as base, clew.open(work / "fresh", create=True) as fresh:
        fresh.encoding.set(None)
        fresh.add([folder.path], workers=1)
        outcome.differences = tuple(_differences(base, fresh))
        _restore(base, folder.path, outcome)
    return outcome


def _wait_until_in_step(kb: Path, folder: Path, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with clew.open(kb) as base:
            if not FolderWatch(base, [folder]).changes():
                return
        time.sleep(0.5)
    raise AssertionError(f"not in step after {seconds:.0f} seconds")


def _differences(base: KnowledgeBase, fresh: KnowledgeBase) -> list[str]:
    """Return in what a base differs from one made anew.

    Keys are hashes of the bytes. Digests may differ: an archive that was renamed keeps the title it had before.
    """
    keys = [{path: key for path, (_, key) in each.store.locations().items()} for each in (base, fresh)]
    differences = [f"path {path}" for path in sorted(keys[0].keys() ^ keys[1].keys())]
    differences += [
        f"document at {path}" for path in keys[0].keys() & keys[1].keys() if keys[0][path] != keys[1][path]
    ]
    stored = [{document.key for document in each.documents()} for each in (base, fresh)]
    differences += [f"document {key}" for key in sorted(stored[0] ^ stored[1])]
    for query in QUERIES:
        hits = [[(hit.node.id, hit.score) for hit in each.search(query, k=50)] for each in (base, fresh)]
        differences += [f"search '{query}'"] if hits[0] != hits[1] else []
    return differences


def _restore(base: KnowledgeBase, folder: Path, outcome: Outcome) -> None:
    """Restore the whole trash; nothing may be lost by it, and nothing taken for gone again."""
    trash = Trash(base)
    before = {document.key for document in base.documents()}
    trashed = trash.documents()
    outcome.documents, outcome.trashed = len(before), len(trashed)
    outcome.restored = len(trash.restore(*(entry.id for entry in trashed)))
    after = {document.key for document in base.documents()}
    if trash.documents() or outcome.restored != outcome.trashed or not before <= after:
        outcome.differences += ("trash",)
    if FolderWatch(base, [folder]).changes().vanished:
        outcome.differences += ("restored documents are taken for gone",)


def main() -> int:
    """Run it from the command line; the exit status is 1 where the bases differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        outcome = replay(Path(work), given.operations, given.seed, given.kills)
    sys.stdout.write(f"{json.dumps(asdict(outcome))}\n")
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    sys.exit(main())
