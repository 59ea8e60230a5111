"""Folders that are watched: random operations with kills, the trash, and what is not taken for gone."""

import shutil

import pytest

import clew
from clew.core.errors import NotFound
from clew.knowledge_base.watch import FolderWatch
from watched_folder import replay


@pytest.mark.slow
@pytest.mark.parametrize(("operations", "kills", "seed"), [(60, 4, 10), (60, 0, 11)])
def test_after_random_operations_and_kills_the_base_is_that_of_a_fresh_add(operations, kills, seed, tmp_path):
    """The long form is ``python tests/watched_folder.py``: 500 operations, 20 kills."""
    outcome = replay(tmp_path, operations, seed, kills)
    assert outcome.differences == () and outcome.kills == kills and outcome.documents > 5


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


@pytest.mark.slow
def test_a_moved_file_keeps_its_document_and_tags_and_is_not_in_the_trash(watched, tmp_path):
    base, folder = watched.base, tmp_path / "docs"
    before = {document.name: document.key for document in base.documents()}
    base.tag(str(folder / "quay.md"), add=["lease"])
    (folder / "sub").mkdir()
    (folder / "quay.md").rename(folder / "sub" / "pier.md")
    changes = watched.changes()
    assert (
        changes.moved == ((str(folder / "quay.md"), str(folder / "sub" / "pier.md")),)
        and not changes.vanished
    )
    watched.synchronise()
    pier = next(document for document in base.documents() if document.name == "pier.md")
    assert pier.key == before["quay.md"] and pier.tags == ("lease",) and len(base.documents()) == 2
    assert pier.paths == (str(folder / "sub" / "pier.md"),)
    # One of two equal files goes.
    shutil.copy(folder / "mill.md", folder / "copy.md")
    watched.synchronise()
    (folder / "mill.md").unlink()
    watched.synchronise()
    assert {document.key for document in base.documents()} == set(before.values())
    assert not watched.trash.documents() and not watched.changes()


def test_commands(watched, tmp_path, capsys):
    from clew.app.cli.commands import app

    kb = ["--kb", str(tmp_path / "kb")]
    (tmp_path / "docs" / "quay.md").unlink()

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            app([*arguments, *kb])
        assert not end.value.code
        return capsys.readouterr().out

    kb[1] = str(tmp_path / "none yet")
    assert (
        "would read" in run("watch", str(tmp_path / "docs"), "--dry-run")
        and not (tmp_path / "none yet").exists()
    )
    kb[1] = str(tmp_path / "kb")
    assert "would move to the trash" in run("watch", str(tmp_path / "docs"), "--dry-run")
    assert len(watched.base.documents()) == 2
    watched.trash.add([str(tmp_path / "docs" / "quay.md")])
    assert "quay.md" in run("trash", "list")
    assert "restored restored:" in run("trash", "restore", str(tmp_path / "docs" / "quay.md"))
    assert "the trash is empty" in run("trash", "list")
    assert "0 documents deleted" in run("trash", "empty", "--yes")
