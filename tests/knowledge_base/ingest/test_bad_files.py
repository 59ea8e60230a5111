"""A folder of bad files among good ones: each is reported with its reason, and nothing else is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from bad_files import BAD_FILES, SPECIAL_FILES
from clew.knowledge_base.ingest.documents import add
from clew.store.store import Store

GOOD = {f"{number:02d}-good.txt": f"The good file number {number} says hello." for number in range(12)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for bad in (*BAD_FILES, *SPECIAL_FILES):
        bad.write(folder)
    for name, text in GOOD.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
def test_each_bad_file_is_reported_and_no_good_one_lost(folder: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        report = add(base, [folder])
        reasons = {Path(failure.path).name: failure.reason for failure in report.failed}
        assert reasons.keys() == {bad.name for bad in BAD_FILES}
        assert all(bad.reason in reasons[bad.name] for bad in BAD_FILES)
        assert sorted(Path(path).name for path in report.added) == sorted(GOOD)
        assert sorted(document.name for document in base.documents()) == sorted(GOOD)
        assert not report.complete
        assert base.snapshot().pending == 0

        again = add(base, [folder])
        assert (again.unchanged, len(again.failed), again.added) == (len(GOOD), len(BAD_FILES), [])


@pytest.mark.slow
def test_a_good_file_that_turns_bad_keeps_its_last_good_self(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Words that were good.")
    with Store.open(tmp_path / "base", create=True) as base:
        add(base, [path])
        path.write_bytes(bytes(100))
        report = add(base, [path])
        assert [(failure.keeps_version, failure.reason) for failure in report.failed] == [
            (True, "holds nothing but zero bytes")
        ]
        (document,) = base.documents()
        assert base.document_text(document.key) == "Words that were good."
