"""Operations killed wherever they touch a file or run a statement: nothing is lost, nothing is left, no repair."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.core.errors import StoreError
from clew.store.database import DATABASE_FILE, UNFINISHED_VECTORS, connect
from clew.store.store import Store
from kb_documents import HashEncoder, document, location
from system_calls import can_trace

PROGRAM = Path(__file__).parent.parent / "kill_points.py"
#: What that program knows; importing it would load hypothesis.
OPERATIONS = (
    "create",
    "add",
    "add_archive",
    "upload_archive",
    "change_archive",
    "copy_archive",
    "change",
    "remove",
    "replace_graph",
    "remove_graph",
    "set_encoder",
    "summarise",
)


needs_tracing = pytest.mark.skipif(not can_trace(), reason="a process cannot be traced here")


@pytest.mark.slow
@needs_tracing
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_operation_needs_no_repair(operation, tmp_path):
    """Every 31st point; ``python tests/kill_points.py OPERATION FOLDER`` tries them all."""
    command = [sys.executable, str(PROGRAM), operation, str(tmp_path), "--step", "31"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 2


@pytest.mark.slow
@needs_tracing
def test_random_operations_with_kills_and_full_disks(tmp_path):
    """The campaign in short; ``make soak`` goes on."""
    command = [
        sys.executable,
        str(PROGRAM.with_name("soak.py")),
        "--sequences",
        "20",
        "--records",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_empty_file_where_a_base_was_being_made_is_no_base(tmp_path):
    (tmp_path / "base.sqlite").touch()
    assert not Store.exists(tmp_path)
    with Store.open(tmp_path, create=True) as base:
        base.put_document(document(1), location("/docs/1.txt"))
    assert Store.exists(tmp_path)


@pytest.mark.parametrize("renamed", [False, True])
def test_vectors_whose_rewriting_was_killed_are_there_again(tmp_path, renamed):
    with Store.open(tmp_path / "base", create=True) as base:
        for number in range(3):
            base.put_document(document(number), location(f"/docs/{number}.txt"))
        base.encode(HashEncoder())
        before = dict(base.info().encoders)
        (folder,) = (base.derived / "vectors").iterdir()
    fresh, old = (folder.with_name(folder.name + suffix) for suffix in UNFINISHED_VECTORS)
    fresh.mkdir()
    if renamed:
        folder.rename(old)
    with Store.open(tmp_path / "base") as base:
        assert dict(base.info().encoders) == before and not base.doctor()
    assert folder.exists() and not fresh.exists() and not old.exists()


def test_vectors_of_nothing_are_cleared_without_a_word(tmp_path):
    """Found by the campaign: the mean of no vectors is no number, of which numpy warns."""
    with Store.open(tmp_path, create=True) as base:
        for _ in range(2):
            base.put_document(document(1), location("/docs/1.txt"))
            base.encode(HashEncoder())
            base.remove(["/docs/1.txt"])
            base.put_document(document(2), location("/docs/2.txt"))
            base.remove(["/docs/2.txt"])
        assert not base.doctor()


def test_files_of_an_archive_that_a_killed_process_unpacked_go_at_the_next_opening(tmp_path):
    with Store.open(tmp_path / "base", create=True) as base:
        with base.temporary_folder() as folder:
            (folder / "member").write_text("a text")
            with Store.open(tmp_path / "base"), Store.open(tmp_path / "base"):
                assert (folder / "member").exists()  # its process is at work
        assert not folder.parent.exists()
    abandoned = tmp_path / "base" / "temporary" / "abandoned"
    abandoned.mkdir(parents=True)
    (abandoned / "member").write_text("a text")
    with Store.open(tmp_path / "base"):
        assert not abandoned.parent.exists()


def test_an_upload_whose_removal_was_killed_goes_at_the_next_opening(tmp_path):
    """Found by the campaign of random operations: its text stayed until somebody ran the doctor an hour later."""
    with clew.open(tmp_path, create=True) as base:
        for number in (1, 2):
            parsed = document(number)
            base.store.put_document(parsed, location(f"upload:{parsed.key}/{number}.md"))
            (tmp_path / "uploads").mkdir(exist_ok=True)
            (tmp_path / "uploads" / parsed.key).write_text("a text")
        gone, there = (place for place in base.store.locations())
        with pytest.raises(KeyboardInterrupt), base.files.forgetting_uploads([gone, there]):
            base.store.remove([gone])
            raise KeyboardInterrupt
    with clew.open(tmp_path) as base:
        left = {path.name for path in (tmp_path / "uploads").iterdir() if path.is_file()}
        assert left == {there.split("/")[0].removeprefix("upload:")}
        base.remove(there)
        assert not list((tmp_path / "uploads").rglob("*"))


def test_text_that_a_killed_writer_never_committed_goes_at_the_next_opening(tmp_path):
    folder = tmp_path / "base"
    clew.open(folder, create=True).close()
    writer = connect(folder / DATABASE_FILE, write=True)
    # Without room in its cache SQLite writes pages of the transaction into the log before the commit.
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    for number in range(200):
        writer.execute("INSERT INTO setting VALUES (?, ?)", (f"name{number}", "zqnevercommitted " * 40))
    killed = tmp_path / "killed"
    shutil.copytree(folder, killed, ignore=shutil.ignore_patterns("*-shm"))
    writer.close()
    assert b"zqnevercommitted" in (killed / f"{DATABASE_FILE}-wal").read_bytes()
    with clew.open(killed):
        assert not any(b"zqnevercommitted" in path.read_bytes() for path in killed.glob("base.sqlite*"))


def test_a_log_that_a_reader_needs_is_left_without_waiting(tmp_path):
    with clew.open(tmp_path / "base", create=True) as base:
        path = base.store.database.path
        reader, writer = connect(path, write=False), connect(path, write=True)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM setting").fetchall()
        writer.execute("INSERT INTO setting VALUES ('name', 'value')")
        assert base.store.database.scrub(timeout=0) is False
        reader.close()
        assert base.store.database.scrub(timeout=0) is True and not base.store.database.has_log()
        writer.close()


def test_a_base_that_was_closed_is_not_damaged(tmp_path):
    base = Store.open(tmp_path, create=True)
    base.close()
    with pytest.raises(StoreError, match="closed database"):
        base.documents()


@pytest.mark.slow
@needs_tracing
def test_a_machine_that_fails_is_said_and_loses_nothing(tmp_path):
    """Two operations and few points; ``python tests/faults.py FOLDER`` tries more, and prints what was said."""
    command = [sys.executable, str(PROGRAM.with_name("faults.py")), str(tmp_path)]
    command += ["--step", "23", "--operations", "change", "remove"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
