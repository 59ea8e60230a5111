"""Folders that are watched: 500 random operations with kills, the trash, and what is not taken for gone."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest

import clew
from clew.core.errors import NotFound
from clew.knowledge_base.trash import Trash
from clew.knowledge_base.watch import FolderWatch

WORDS = "quay harbour lease weir mill ferry lamp keeper tide rope barge lock".split()


class Folder:
    """A folder on which random operations are done, as a person does them."""

    def __init__(self, path, seed):
        self.path = path
        self.rng = random.Random(seed)
        self.count = 0
        path.mkdir()

    def files(self):
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def folders(self):
        return [self.path, *sorted(path for path in self.path.rglob("*") if path.is_dir())]

    def text(self):
        self.count += 1
        return f"# Note {self.count}\n\n" + " ".join(self.rng.choices(WORDS, k=8)) + ".\n"

    def operate(self):
        files, folders = self.files(), self.folders()
        place = self.rng.choice(folders)
        kind = self.rng.choice(
            "create create create change delete rename move copy touch folder drop zip".split()
        )
        self.count += 1
        if kind == "folder" and len(folders) < 8:
            (place / f"f{self.count}").mkdir()
        elif kind == "drop" and place != self.path and self.rng.random() < 0.3:
            shutil.rmtree(place)
        elif kind == "zip" and self.rng.random() < 0.3:
            with zipfile.ZipFile(place / f"z{self.count}.zip", "w") as archive:
                archive.writestr("inner.md", self.text())
        elif kind == "create" or not files or kind in {"folder", "drop", "zip"}:
            (place / f"n{self.count}.md").write_text(self.text())
        else:
            file = self.rng.choice(files)
            if kind == "change" and file.suffix == ".md":
                file.write_text(self.text())
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


@pytest.mark.slow
def test_after_500_operations_and_kills_the_base_is_that_of_a_fresh_add(tmp_path):
    folder = Folder(tmp_path / "docs", 0)
    kb = tmp_path / "kb"
    with clew.open(kb, create=True) as base:
        base.encoding.set(None)
    command = [
        sys.executable,
        "-m",
        "clew",
        "watch",
        str(folder.path),
        "--kb",
        str(kb),
        "--once",
        "--workers",
        "1",
    ]
    kills = 0
    for step in range(25):
        for _ in range(20):
            folder.operate()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if step % 3 == 1:
            # Killed anywhere between the start of Python and the end of the work, operations going on meanwhile.
            time.sleep(folder.rng.uniform(0.3, 2.5))
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
            process.stderr.close()
        else:
            _, errors = process.communicate()
            assert process.returncode == 0, errors
    assert kills
    with clew.open(kb) as base, clew.open(tmp_path / "fresh", create=True) as fresh:
        fresh.encoding.set(None)
        FolderWatch(base, [folder.path], workers=1).synchronise()
        fresh.add([folder.path], workers=1)
        assert sorted(base.store.locations()) == sorted(fresh.store.locations())
        # Keys are hashes of the bytes. Digests may differ: an archive that was renamed keeps the title it had before.
        keys = [{path: key for path, (_, key) in each.store.locations().items()} for each in (base, fresh)]
        assert keys[0] == keys[1]
        assert not FolderWatch(base, [folder.path]).changes()
        hits = [[(hit.node.id, hit.score) for hit in kb.search("ferry lamp")] for kb in (base, fresh)]
        assert hits[0] == hits[1]
        # Whatever disappeared is in the trash, and comes back from there.
        trash = Trash(base)
        before, trashed = len(base.documents()), trash.documents()
        assert len(trashed) > 20
        known = {document.key for document in base.documents()}
        places = trash.restore(*(entry.id for entry in trashed))
        assert len(places) == len(trashed) and not trash.documents()
        assert len(base.documents()) > before and known < {document.key for document in base.documents()}
        # What was restored is not taken for gone again.
        assert not FolderWatch(base, [folder.path]).changes().vanished


@pytest.fixture
def watched(tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("quay", "mill"):
        (tmp_path / "docs" / f"{name}.md").write_text(
            f"---\nauthor: Ada\n---\n# {name}\n\nThe {name} is old.\n"
        )
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        watch = FolderWatch(base, [tmp_path / "docs"], quiet=0.0, workers=1)
        assert len(watch.changes().new) == 2 and not base.documents()
        watch.synchronise()
        yield watch


@pytest.mark.slow
def test_what_disappears_is_in_the_trash_for_its_days(watched, tmp_path):
    base, folder = watched.base, tmp_path / "docs"
    stored = {document.name: document for document in base.documents()}
    digest = base.store.digest()
    (folder / "quay.md").unlink()
    assert watched.changes().vanished == (str(folder / "quay.md"),)
    watched.synchronise()
    assert [document.name for document in base.documents()] == ["mill.md"]
    assert not base.search("quay", retriever="bm25")
    (entry,) = watched.trash.documents()
    assert entry.path == str(folder / "quay.md") and entry.title == "quay"
    with pytest.raises(NotFound, match="nothing in the trash"):
        watched.trash.restore("weir.md")
    # Restored without its file, it is the same document and stays.
    (place,) = watched.trash.restore(entry.path)
    assert place == f"restored:{entry.path}" and base.store.digest() == digest
    restored = next(document for document in base.documents() if document.name == "quay.md")
    assert restored.key == stored["quay.md"].key and restored.fields == stored["quay.md"].fields
    assert base.search("quay", retriever="bm25")
    watched.synchronise()
    assert len(base.documents()) == 2
    # With its file back it has its own path again, in the trash or not.
    (folder / "mill.md").rename(tmp_path / "mill.md")
    watched.synchronise()
    shutil.move(tmp_path / "mill.md", folder / "mill.md")
    assert watched.trash.restore(str(folder / "mill.md")) == [str(folder / "mill.md")]
    assert watched.changes().vanished == ()
    (folder / "mill.md").unlink()
    watched.synchronise()
    assert watched.trash.empty(days=1) == 0 and len(watched.trash.documents()) == 1
    watched.trash_days = 0.0
    watched.synchronise()
    assert not watched.trash.documents()


@pytest.mark.slow
def test_a_missing_folder_empties_nothing_and_a_change_waits_for_quiet(watched, tmp_path):
    base, folder = watched.base, tmp_path / "docs"
    folder.rename(tmp_path / "unmounted")
    assert watched.changes().missing == (str(folder),) and not watched.changes().vanished
    watched.synchronise()
    assert len(base.documents()) == 2
    (tmp_path / "unmounted").rename(folder)
    # Ten writes in a row are one change.
    looks = iter(range(1000))
    watched.quiet = 0.2

    def write_while_it_looks():
        look = next(looks)
        if 2 <= look < 12:
            (folder / "weir.md").write_text(f"# weir\n\nThe weir, written {look} times.\n")
        return look > 40

    works = [report for report, _ in watched.run(every=0.05, should_stop=write_while_it_looks)]
    assert [len(report.added) for report in works] == [1]
    assert "written 11 times" in base.search("weir", retriever="bm25")[0].node.text


def test_commands(watched, tmp_path, capsys):
    from clew.app.cli.commands import app

    kb = ["--kb", str(tmp_path / "kb")]
    (tmp_path / "docs" / "quay.md").unlink()

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            app([*arguments, *kb])
        assert not end.value.code
        return capsys.readouterr().out

    assert "would move to the trash" in run("watch", str(tmp_path / "docs"), "--dry-run")
    assert len(watched.base.documents()) == 2
    watched.trash.add([str(tmp_path / "docs" / "quay.md")])
    assert "quay.md" in run("trash", "list")
    assert "restored restored:" in run("trash", "restore", str(tmp_path / "docs" / "quay.md"))
    assert "the trash is empty" in run("trash", "list")
    assert "0 documents deleted" in run("trash", "empty", "--yes")
