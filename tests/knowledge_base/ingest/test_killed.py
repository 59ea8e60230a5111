"""``clew add`` killed at random instants, in real child processes: what it said was added stays added."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clew

FILES, PASSAGES, KILLS = 240, 12, 20
COMMAND = [sys.executable, "-c", "from clew.app.cli.commands import app; app()"]


def write_files(folder: Path) -> None:
    """Write files of several types; every tenth is a copy of the one before it."""
    folder.mkdir()
    for number in range(FILES):
        content = number - 1 if number % 10 == 9 else number
        paragraphs = [f"File {content} says in part {part} what was found." for part in range(PASSAGES)]
        suffix = "txt" if content % 2 else "md"
        (folder / f"{number:03d}.{suffix}").write_text("\n\n".join(paragraphs))


def add(folder: Path, kb: Path, *options: str) -> list[str]:
    return [*COMMAND, "add", str(folder), "--kb", str(kb), "--workers", "1", *options]


def start_add(folder: Path, kb: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start an add; return when it has added its first file."""
    with log.open("wb") as stderr:
        child = subprocess.Popen(add(folder, kb), stdout=subprocess.DEVNULL, stderr=stderr)
    while child.poll() is None and b"  (" not in log.read_bytes():
        time.sleep(0.005)
    return child


def kill_add(folder: Path, kb: Path, log: Path, delay: float) -> list[str]:
    """Kill an add ``delay`` seconds after it has added its first file; return the paths it said were in."""
    with start_add(folder, kb, log) as child:
        time.sleep(delay)
        child.kill()
    whole_lines = log.read_text().splitlines(keepends=True)
    words = [line.split() for line in whole_lines if line.endswith(")\n")]
    return [path for outcome, path, *_ in words if outcome in {"added", "located"}]


@pytest.mark.slow
def test_an_add_killed_at_twenty_instants_loses_nothing_and_continues(tmp_path: Path) -> None:
    folder, kb = tmp_path / "files", tmp_path / "killed"
    write_files(folder)
    with start_add(folder, tmp_path / "undisturbed", tmp_path / "log") as child:
        started = time.perf_counter()
    assert child.returncode == 0
    # However fast the machine, the kills come while about half of the files are added.
    most = (time.perf_counter() - started) / KILLS
    instants = random.Random(7)
    promised: set[str] = set()
    interrupted = 0
    for _ in range(KILLS):
        promised.update(kill_add(folder, kb, tmp_path / "log", instants.uniform(0, most)))
        with clew.open(kb) as base:
            there = base.store.locations().keys()
            assert promised <= there
            interrupted += len(there) < FILES
    assert interrupted >= KILLS // 2  # else the kills came too late to prove anything

    report = json.loads(subprocess.run(add(folder, kb, "--json"), check=True, capture_output=True).stdout)
    assert report["unchanged"] >= len(promised) and not report["failed"]
    with clew.open(kb) as base, clew.open(tmp_path / "undisturbed") as twin:
        assert base.info().digest == twin.info().digest
        assert base.info().pending == 0
        assert not base.doctor()
        for question in ("what did file 17 say in part 3", "found in file 231"):
            hits = [[(hit.node.id, hit.score) for hit in kb.search(question)] for kb in (base, twin)]
            assert hits[0] == hits[1] and hits[0]
