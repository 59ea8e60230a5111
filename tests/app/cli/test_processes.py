"""The command as a process: pipes, interrupts, terminals that are none, and two at once."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile

import pytest
from typer.testing import CliRunner

import clew
from bad_files import good_pdf
from clew.app.cli.commands import app
from clew.core.errors import StoreError

COMMAND = [sys.executable, "-c", "from clew.app.cli.commands import app; app()"]


def write(folder, count, passages=8):
    folder.mkdir(exist_ok=True)
    for number in range(count):
        parts = [f"The mill number {number} ground {part} sacks a day." for part in range(passages)]
        (folder / f"{number:03d}.txt").write_text("\n\n".join(parts))


def clew_process(*words, **options):
    return subprocess.Popen([*COMMAND, *map(str, words)], text=True, **options)


@pytest.fixture
def interruptible():
    """In the background of a shell SIGINT is ignored, also by what is started there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_keeps_what_is_done_and_says_how_to_continue(tmp_path, interruptible) -> None:
    # With names so long that what is said of 500 files fills the pipe: nobody reads on, so it cannot be done before
    # the signal.
    folder, kb = tmp_path / "-".join(["files"] * 40), tmp_path / "kb"
    write(folder, 500)
    child = clew_process(
        "add", folder, "--kb", kb, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while "(3 of" not in child.stderr.readline():
        assert child.poll() is None
    os.killpg(child.pid, signal.SIGINT)  # a terminal sends it to the workers too
    _, text = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "again to continue" in text and "Traceback" not in text
    with clew.open(kb) as base:
        assert 3 <= len(base.documents()) < 500
    again = subprocess.run([*COMMAND, "add", folder, "--kb", kb, "--json"], check=True, capture_output=True)
    report = json.loads(again.stdout)
    assert report["unchanged"] >= 3 and report["unchanged"] + len(report["added"]) == 500


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_reader_that_goes_away_is_no_error(tmp_path) -> None:
    write(tmp_path / "files", 400, 1)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path / "files"])
    child = clew_process("list", "--kb", tmp_path / "kb", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(timeout=60) == 0
    assert child.stderr.read() == ""
    child.stderr.close()


@pytest.mark.slow
def test_one_process_adds_while_another_asks(tmp_path) -> None:
    folder, kb = tmp_path / "files", tmp_path / "kb"
    write(folder, 5)
    (folder / "heron.txt").write_text("The heron nests in the reeds of the mill pond.")
    with clew.open(kb, create=True) as base:
        base.add([folder])
        write(folder, 120, 30)  # over 2,000 passages: indexes catch up in the middle
        child = clew_process("add", folder, "--kb", kb, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = []
        while child.poll() is None:
            answer = base.ask("Where does the heron nest?")
            assert "reeds" in answer.text and answer.evidence[0].node.document_name == "heron.txt"
            seen.append(base.info().documents)
            time.sleep(0.02)
        assert child.returncode == 0
        assert seen == sorted(seen) and seen[0] < 121
        assert base.search("mill number 119")[0].node.document_name == "119.txt"


@pytest.mark.slow
def test_every_option_of_every_command_is_in_its_help() -> None:
    expected = {
        "add": "--sync --kb --encoder --passages --workers --checksum --json",
        "ask": "--llm --recipe --documents --k --json --budget-calls --budget-tokens --budget-money --record "
        "--no-cache --kb",
        "search": "--recipe --retriever --documents --kb --json -k",
        "show": "--page --table --left-out --kb --json",
        "list": "--kb --json",
        "remove": "--clear-cache --kb --json",
        "info": "--digest --graphs --kb --json",
        "estimate": "--ask --llm --recipe --kb --json",
        "doctor": "--check-only --kb --json",
        "mcp": "--kb --llm --recipe --budget-calls --budget-tokens --budget-money --config",
    }
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    for command, options in expected.items():
        output = re.sub(r"\x1b\[[0-9;]*m", "", CliRunner().invoke(app, [command, "--help"], env=wide).stdout)
        assert not [option for option in options.split() if option not in output], command
        assert f"clew {command}" in output.replace("Usage: clew", "", 1)  # an example


def test_a_wrong_value_of_an_option_is_refused_with_those_that_are_right(tmp_path) -> None:
    result = CliRunner().invoke(app, ["add", str(tmp_path), "--passages", "word"])
    assert result.exit_code == 2 and "paragraph" in result.stderr and "sentence" in result.stderr


def test_skipped_files_are_named_by_suffix(tmp_path):
    write(tmp_path / "files", 1)
    for name in [*(f"{number}.gif" for number in range(7)), "a.7z", "README"]:
        (tmp_path / "files" / name).write_bytes(b"\x00\x01\x02\xff" * 9)
    shown = CliRunner().invoke(app, ["add", str(tmp_path / "files"), "--kb", str(tmp_path / "kb")])
    assert "skipped: 9 unsupported type" in shown.output
    assert "    .gif: 0.gif, 1.gif, 2.gif, 3.gif, 4.gif and 2 more\n" in shown.output
    assert "    .7z: a.7z\n" in shown.output and "    no suffix: README\n" in shown.output


def test_a_refusal_says_what_to_do_and_an_archive_fills_no_screen(tmp_path):
    (tmp_path / "locked.pdf").write_bytes(good_pdf("secret"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(14):
            archive.writestr(f"../{number}.txt", "Words.")
        archive.writestr("good.md", "# Words\n\nGood words.\n")
    names = ["locked.pdf", "a.zip"]
    words = ["add", *(str(tmp_path / name) for name in names), "--kb", str(tmp_path / "kb"), "--workers", "1"]
    shown = CliRunner().invoke(app, words)
    lines = [line for line in shown.stderr.splitlines() if line.startswith("clew:")]
    assert sum("leads out of the archive" in line for line in lines) == 10
    assert any(
        line.endswith("a.zip: 4 more files in it could not be read (--json names all)") for line in lines
    )
    assert any("needs a password; save it without a password" in line for line in lines)
    assert "2 added, 15 could not be read" in shown.output


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_closed_output_and_few_descriptors_end_with_a_sentence(tmp_path):
    write(tmp_path / "files", 1)
    CliRunner().invoke(app, ["add", str(tmp_path / "files"), "--kb", str(tmp_path / "kb")])
    clew_list = f"{sys.executable} -m clew list --kb {tmp_path / 'kb'}"
    closed = subprocess.run(f"{clew_list} >&-", shell=True, capture_output=True, text=True)
    assert closed.returncode == 0 and closed.stderr == "clew: standard output is closed; nothing is printed\n"
    ask = f"{sys.executable} -m clew ask 'Which mill ground sacks?' --kb {tmp_path / 'kb'}"
    few = subprocess.run(f"ulimit -n 14; {ask}", shell=True, capture_output=True, text=True)
    assert few.returncode == 2 and "too many open files" in few.stderr.lower() and "ulimit -n" in few.stderr


def test_a_full_disk_is_not_damage(tmp_path):
    write(tmp_path / "files", 3, passages=400)
    with clew.open(tmp_path / "kb", create=True) as base:
        writer = base.store.database._open_writer()
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreError, match="nothing that was stored is lost"):
            base.add([tmp_path / "files"], workers=1)
    with clew.open(tmp_path / "kb") as base:
        assert base.documents() == [] and not base.doctor()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_a_limit_on_the_size_of_files_is_said_as_such(tmp_path):
    write(tmp_path / "files", 3, passages=400)
    add = f"{sys.executable} -m clew add {tmp_path / 'files'} --kb {tmp_path / 'kb'}"
    limited = subprocess.run(f"ulimit -f 48; {add}", shell=True, capture_output=True, text=True)
    assert limited.returncode == 2 and "Traceback" not in limited.stderr, limited.stderr
    assert "refuses to write" in limited.stderr or "grow so large" in limited.stderr, limited.stderr
    subprocess.run(add, shell=True, check=True, capture_output=True)
    with clew.open(tmp_path / "kb") as base:
        assert len(base.documents()) == 3 and not base.doctor()
