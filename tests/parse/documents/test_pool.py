"""What goes wrong in a worker costs one file. Real processes really crash, hang, hog and are killed."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew.core.config import reading_limits
from clew.core.errors import UnreadableFile, UsageError
from clew.core.types import PASSAGE, ParsedDocument
from clew.parse.documents import sandbox
from clew.parse.documents.limits import SIMPLER, SMALLER
from clew.parse.documents.pool import ParsePool
from clew.parse.documents.sandbox import confinement, try_confinement
from parse_readers import announce, obey

MEMORY = 1 << 29


def files(folder: Path, words: list[str]) -> list[Path]:
    paths = [folder / f"{number}.txt" for number in range(len(words))]
    for path, word in zip(paths, words, strict=True):
        path.write_text(f"{word} is what this file says. It has two sentences.")
    return paths


def outcomes(folder: Path, words: list[str], **options: float) -> list[str]:
    """Return for each file its text's first word, or why there is none."""
    paths = files(folder, words)
    with ParsePool(2, reader=obey, memory_limit=MEMORY, **options) as pool:
        outcome_of = dict(pool.read_files(paths))
    assert set(outcome_of) == set(paths)
    return [
        outcome.text.split()[0] if isinstance(outcome, ParsedDocument) else str(outcome)
        for outcome in map(outcome_of.__getitem__, paths)
    ]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")
def test_each_way_to_fail_loses_its_own_file_only(tmp_path: Path) -> None:
    words = "good refuse good segfault good kill exit good hog creep abort recurse bug good".split()
    results = outcomes(tmp_path, words)
    reasons = {word: result for word, result in zip(words, results, strict=True) if word != "good"}
    assert [result for word, result in zip(words, results, strict=True) if word == "good"] == ["good"] * 5
    assert reasons["refuse"] == "is not to my liking. Try another"
    for word, how in (("segfault", "SIGSEGV"), ("kill", "SIGKILL"), ("exit", "exit status 3")):
        assert reasons[word] == f"the parser crashed on it ({how}). {SIMPLER}"
    limit = f"reading it takes more than {MEMORY >> 20} MiB of memory (CLEW_READ_MEMORY sets the limit)"
    assert reasons["hog"] == reasons["creep"] == limit
    assert reasons["abort"] == f"{limit}, or it is damaged"
    assert reasons["recurse"] == f"it is nested too deeply. {SIMPLER}"
    assert reasons["bug"].startswith("the parser crashed on it (KeyError: 'no such key', parse_readers.py:")


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_given_up_while_others_are_read(tmp_path: Path) -> None:
    results = outcomes(tmp_path, ["hang", "good", "good", "spin", "good", "good"], time_limit=5)
    given_up = f"the parser took longer than 5 seconds. {SMALLER}"
    assert results == [given_up, "good", "good", given_up, "good", "good"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_file_that_uses_too_much_of_the_processor_is_given_up(tmp_path: Path) -> None:
    results = outcomes(tmp_path, ["spin", "good", "hang", "good"], processor_limit=1, time_limit=8)
    given_up = "reading it takes more than 1 seconds of processor time (CLEW_READ_SECONDS sets the limit)"
    assert results == [given_up, "good", f"the parser took longer than 8 seconds. {SMALLER}", "good"]


def test_limits_of_reading_are_numbers(monkeypatch) -> None:
    monkeypatch.setenv("CLEW_READ_SECONDS", "0")
    monkeypatch.setenv("CLEW_READ_MEMORY", "100.5")
    assert reading_limits() == (0, 100.5)
    for wrong in ("much", "-1", "inf", "nan"):
        monkeypatch.setenv("CLEW_READ_MEMORY", wrong)
        with pytest.raises(UsageError, match=f"CLEW_READ_MEMORY is no limit: '{wrong}'"):
            reading_limits()


@pytest.mark.slow
def test_results_come_as_they_are_done_and_the_unit_is_passed_on(tmp_path: Path) -> None:
    paths = files(tmp_path, ["hang", "good", "good"])
    with ParsePool(2, reader=obey, time_limit=60) as pool:
        results = pool.read_files(paths, "sentence")
        for _ in range(2):  # while the first still hangs
            path, outcome = next(results)
            assert path != paths[0]
            assert isinstance(outcome, ParsedDocument)
            assert [node.kind for node in outcome.nodes].count(PASSAGE) == 2


@pytest.mark.slow
def test_a_worker_that_died_idle_is_replaced_without_loss(tmp_path: Path) -> None:
    paths = files(tmp_path, ["die-later", "good"])
    with ParsePool(1, reader=obey) as pool:
        assert isinstance(dict(pool.read_files(paths[:1]))[paths[0]], ParsedDocument)
        time.sleep(1)
        assert isinstance(dict(pool.read_files(paths[1:]))[paths[1]], ParsedDocument)


@pytest.mark.slow
def test_the_real_reader_is_the_default(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.md", tmp_path / "bad.pdf"
    good.write_text("# Title\n\nWords.")
    bad.write_bytes(b"")
    with ParsePool() as pool:
        outcome_of = dict(pool.read_files([good, bad]))
    assert isinstance(outcome_of[good], ParsedDocument)
    assert outcome_of[good].title == "Title"
    assert isinstance(outcome_of[bad], UnreadableFile)
    assert outcome_of[bad].problem == "is empty"


@pytest.mark.skipif(not all(confinement().values()), reason="this system cannot confine a process")
def test_what_a_system_can_confine_it_confines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert try_confinement() == {"files": True, "reading": True, "network": True}
    monkeypatch.setattr(sandbox, "_TRIAL", sandbox._TRIAL.replace("confine_process()\n", "\n"))
    assert try_confinement() == {"files": False, "reading": False, "network": False}


@pytest.mark.slow
@pytest.mark.skipif(not all(confinement().values()), reason="this system cannot confine a process")
def test_a_parser_reaches_no_file_and_no_network(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "other.txt").write_text("not to be touched")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("ESCAPE_PORT", str(listening.getsockname()[1]))
        (path,) = files(tmp_path, ["escape"])
        texts = []
        for confined in (True, False):
            with ParsePool(1, reader=obey, confined=confined) as pool:
                ((_, document),) = pool.read_files([path])
            texts.append(document.text)
    assert texts[0] == "escapes: none" or _parser_may_signal(texts[0])
    with ParsePool(1, reader=obey, folder=tmp_path) as pool:
        ((_, document),) = pool.read_files([path])
    assert {"write-beside", "change", "read-again"} <= set(document.text.split())
    assert not {"write-at-home", "read-password-file"} & set(document.text.split())
    # What is tried can be done elsewhere.
    assert {"tcp", "write-beside", "list", "read", "read-again", "read-password-file"} <= set(
        texts[1].split()
    )


@pytest.mark.slow
@pytest.mark.skipif(not all(confinement().values()), reason="this system cannot confine a process")
def test_documents_beside_a_script_are_not_read_as_if_they_were_modules(tmp_path: Path) -> None:
    """Python has the folder of the script on its path."""
    (tmp_path / "other.txt").write_text("not to be touched")
    files(tmp_path, ["escape"])
    command = script(tmp_path)
    program = (
        SCRIPT.replace("announce", "obey")
        .replace(", confined=False", "")
        .replace("type(outcome)", "outcome.text, type(outcome)")
    )
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"ESCAPE_PORT": "9"},
    )
    assert "0.txt escapes: " in done.stdout and "read" not in done.stdout


@pytest.mark.slow
def test_a_worker_can_make_its_parent_call_nothing(tmp_path: Path) -> None:
    """A pickle may name any function; a parser that was taken over could send one."""
    sent = f"it sent {os.mkdir.__module__}.mkdir, which is no part of a message"
    assert outcomes(tmp_path, ["order", "good"]) == [f"the parser crashed on it ({sent}). {SIMPLER}", "good"]
    assert not (tmp_path / "ordered").exists()


@pytest.mark.slow
def test_what_cannot_be_opened_is_said_as_if_it_were_opened_here(tmp_path: Path) -> None:
    folder, gone, good = tmp_path / "a.txt", tmp_path / "gone.txt", tmp_path / "good.txt"
    folder.mkdir()
    good.write_text("Words.")
    with ParsePool(1) as pool:
        outcome_of = dict(pool.read_files([folder, gone, good]))
    assert outcome_of[folder].problem == "is a folder, not a file"
    assert outcome_of[gone].problem == "no longer exists"
    assert outcome_of[good].text == "Words."


def _parser_may_signal(text: str) -> bool:
    """Return whether a signal is all that got through: Landlock of Linux before 6.12 does not stop it."""
    return text == "escapes: signal" and tuple(map(int, platform.release().split(".")[:2])) < (6, 12)


def test_no_files_need_no_worker() -> None:
    with ParsePool() as pool:
        assert list(pool.read_files([])) == []


@pytest.mark.slow
def test_a_result_of_many_megabytes_arrives_whole(tmp_path: Path) -> None:
    paths = files(tmp_path, ["good", "good"])
    text = "good " + "paragraph of some words\n\n" * 30_000
    for path in paths:
        path.write_text(text)
    with ParsePool(2, reader=obey) as pool:
        for _, outcome in pool.read_files(paths):
            assert isinstance(outcome, ParsedDocument)
            assert len(outcome.nodes) == 30_001


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
print("started", flush=True)
from parse_readers import announce
from clew.parse.documents import sandbox
from clew.parse.documents.limits import SIMPLER, SMALLER
from clew.parse.documents.pool import ParsePool
from clew.parse.documents.sandbox import confinement
with ParsePool(2, reader=announce, confined=False) as pool:
    for path, outcome in pool.read_files(sorted(Path(sys.argv[2]).glob("*.txt"))):
        print(path.name, type(outcome).__name__, flush=True)
"""


def script(folder: Path) -> list[str]:
    program = folder / "program.py"
    program.write_text(SCRIPT)
    return [sys.executable, str(program), str(Path(__file__).parents[2]), str(folder)]


@pytest.mark.slow
def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    files(tmp_path, ["good", "refuse"])
    done = subprocess.run(script(tmp_path), capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split("\n")) == ["", "0.txt ParsedDocument", "1.txt UnreadableFile", "started"]
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends workers on Linux only")
def test_workers_end_with_a_killed_parent_even_in_the_middle_of_a_file(tmp_path: Path) -> None:
    paths = files(tmp_path, ["hang", "spin"])
    parent = subprocess.Popen(script(tmp_path), stdout=subprocess.DEVNULL)
    try:
        workers = [int(wait_for(path.with_suffix(".pid"))) for path in paths]
        time.sleep(0.3)
        assert all(map(alive, workers))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    until = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, workers))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks processes up in /proc")
def test_closing_early_leaves_no_worker(tmp_path: Path) -> None:
    paths = files(tmp_path, ["good", "hang", "hang"])
    with ParsePool(2, reader=announce, confined=False) as pool:
        next(pool.read_files(paths))
        workers = [int(wait_for(path.with_suffix(".pid"))) for path in paths]
    assert not any(map(alive, workers))


def wait_for(path: Path) -> str:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


def alive(process: int) -> bool:
    """Return whether a process exists and is no zombie that nobody has waited for yet."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    os.kill(process, 0)
    return status.rpartition(")")[2].split()[0] != "Z"
