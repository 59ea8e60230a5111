"""Operations killed wherever they touch a file or run a statement: nothing is lost, nothing is left, no repair."""

import subprocess
import sys
from pathlib import Path

import pytest

from clew.store.database import UNFINISHED_VECTORS
from clew.store.store import Store
from kb_documents import HashEncoder, document, location

PROGRAM = Path(__file__).parent.parent / "kill_points.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("operation", ["create", "add", "change", "remove", "replace_graph", "set_encoder"])
def test_a_killed_operation_needs_no_repair(operation, tmp_path):
    """Every seventh point; ``python tests/kill_points.py OPERATION FOLDER`` tries them all."""
    command = [sys.executable, str(PROGRAM), operation, str(tmp_path), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 10


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
