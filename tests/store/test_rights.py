"""Nobody but its owner reads a file of a base, whatever the umask."""

import os
import shutil
import stat
import subprocess
import sys

import pytest

import clew
from clew.knowledge_base.base_copy import copy_base
from clew.knowledge_base.trash import Trash
from clew.store.store import Store
from kb_documents import HashEncoder, document, location
from kill_points import check_rights, fill, write_files
from soak import without_processes

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077, 0o277], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_a_base_that_is_used_is_private_whatever_the_umask(tmp_path, umask):
    files, folder = tmp_path / "files", tmp_path / "base"
    old = os.umask(0o022)
    write_files(files)
    os.umask(old)
    with without_processes(), clew.open(folder, create=True) as base:
        fill(base, files)
        check_rights(folder)  # its logs are there now
        assert (folder / "base.sqlite-wal").exists()
        with base.files.open_uploads(20.0, 1 << 30) as uploads:
            uploads.add(files / "documents" / "1.md", "up.md")
        base.store.catch_up()
        Trash(base).add([str(files / "documents" / "2.md")])
        Trash(base).keep_versions([str(files / "documents" / "3.md")])
        check_rights(folder)
    check_rights(folder)
    copy_base(str(folder), str(tmp_path / "copy"))
    check_rights(tmp_path / "copy")
    copy_base(str(folder), f"file://{tmp_path / 'stored'}")
    check_rights(tmp_path / "stored")
    copy_base(f"file://{tmp_path / 'stored'}", str(tmp_path / "fetched"))
    check_rights(tmp_path / "fetched")


def make_old(folder):
    """Make a base as an earlier clew made it."""
    with Store.open(folder, create=True) as base:
        base.put_document(document(1), location("/docs/1.txt"))
        base.encode(HashEncoder())
    (folder / "uploads").mkdir()
    (folder / "uploads" / "abc").write_text("secret")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_an_old_base_is_mended_when_it_is_opened(tmp_path):
    make_old(tmp_path / "base")
    with Store.open(tmp_path / "base") as base:
        base.put_document(document(2), location("/docs/2.txt"))
        check_rights(tmp_path / "base")


@pytest.mark.parametrize("killed_at", [0, 1, 2])
def test_mending_that_was_killed_is_done_at_the_next_opening(tmp_path, killed_at):
    make_old(tmp_path / "base")
    for path in sorted((tmp_path / "base").iterdir())[:killed_at]:
        if path.name != "base.sqlite":
            path.chmod(0o700 if path.is_dir() else 0o600)
    Store.open(tmp_path / "base").close()
    check_rights(tmp_path / "base")


def test_the_doctor_finds_and_mends_what_others_can_read(tmp_path):
    make_old(tmp_path / "base")
    with Store.open(tmp_path / "base") as base:
        for path in ((tmp_path / "base" / "uploads" / "abc"), (tmp_path / "base" / "derived")):
            path.chmod(0o755)
        (finding,) = base.doctor(repair=False)
        assert finding.what == "rights" and finding.problem.startswith("2 ") and not finding.repaired
        assert [finding.repaired for finding in base.doctor()] == [True]
        assert base.doctor() == []
    check_rights(tmp_path / "base")


def test_what_is_not_of_the_base_is_left_alone(tmp_path):
    """A base among a person's own files, with a link to another place."""
    make_old(tmp_path)
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "photos").mkdir()
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "photos").chmod(0o755)
    elsewhere = tmp_path / "photos" / "elsewhere"
    elsewhere.write_text("mine")
    elsewhere.chmod(0o644)
    (tmp_path / "uploads" / "link").symlink_to(elsewhere)
    tmp_path.chmod(0o755)
    Store.open(tmp_path).close()
    rights = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path, tmp_path / "run.sh", tmp_path / "photos", elsewhere)
    }
    assert set(rights.values()) == {0o755, 0o644} and rights["elsewhere"] == 0o644
    assert stat.S_IMODE((tmp_path / "base.sqlite").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "uploads" / "abc").stat().st_mode) == 0o600
    with Store.open(tmp_path) as base:
        assert base.doctor(repair=False) == []


@pytest.mark.parametrize("name", ["notes.clew", "a/b/c"])
def test_folders_above_a_base_have_the_usual_rights(tmp_path, name):
    before = os.umask(0o022)
    try:
        clew.open(tmp_path / name, create=True).close()
    finally:
        os.umask(before)
    check_rights(tmp_path / name)
    if "/" in name:
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_reads_nothing(tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    base = place / "base"
    make_old(base)
    Store.open(base).close()
    for path in (place, *place.parents):
        if path.owner() == "root" and path != path.parent:
            path.chmod(path.stat().st_mode | 0o055)
    program = (
        "import os, sys; os.setgid(65534); os.setuid(65534); "
        "print(sum(len(names) for _, _, names in os.walk(sys.argv[1])), os.access(sys.argv[1], os.R_OK))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run([*command, str(base)], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["0", "False"], done.stderr
    shutil.rmtree(place)
