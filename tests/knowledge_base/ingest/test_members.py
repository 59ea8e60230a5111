"""Files within files: attachments and archives become documents of their own, and go with what they were in."""

from __future__ import annotations

import json
import shutil
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

import clew
from clew.core.types import container_path
from clew.knowledge_base.ingest.documents import add
from clew.store.store import Store


def write_mail(path: Path, *files: tuple[str, bytes], subject: str = "Tolls") -> bytes:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "ines@example.org", subject
    mail.set_content("See the files.")
    for name, content in files:
        mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    path.write_bytes(mail.as_bytes())
    return path.read_bytes()


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def paths_below(base: Store, folder: Path) -> list[str]:
    paths = (path for document in base.documents() for path in document.paths)
    return sorted(path.removeprefix(f"{folder}/") for path in paths)


def test_the_path_of_a_file_within_a_file() -> None:
    assert container_path("/a/b.zip//c/d.eml//e.pdf") == "/a/b.zip"
    assert container_path("https://example.org/a.zip//b.txt") == "https://example.org/a.zip"
    assert container_path("/a/b.txt") == "/a/b.txt"


@pytest.mark.slow
def test_members_are_added_found_replaced_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    plan = ("plan.md", b"# Plan\n\nThe lock closes in June.")
    mail = write_mail(folder / "mail.eml", plan, ("run.exe", b"MZ"), ("bad.pdf", b"%PDF-1.7\n"))
    write_zip(
        folder / "all.zip",
        {
            "mails/mail.eml": mail,
            "../evil.txt": b"Words.",
            "notes.txt": b"Notes of the keeper.",
            "x.bin": b"1",
        },
    )
    with Store.open(tmp_path / "base", create=True) as base:
        report = add(base, [folder])
        reasons = {failure.path.removeprefix(f"{folder}/"): failure.reason for failure in report.failed}
        assert reasons.keys() == {
            "mail.eml//bad.pdf",
            "all.zip//mails/mail.eml//bad.pdf",
            "all.zip//evil.txt",
        } or (
            reasons.keys() == {"mail.eml//bad.pdf", "all.zip//evil.txt"}  # the two mails have the same bytes
        )
        assert "leads out" in reasons["all.zip//evil.txt"]
        assert paths_below(base, folder) == [
            "all.zip",
            "all.zip//mails/mail.eml",
            "all.zip//mails/mail.eml//plan.md",
            "all.zip//notes.txt",
            "mail.eml",
            "mail.eml//plan.md",
        ]
        assert any("run.exe" in note for _, note in report.notes)

        again = add(base, [folder])
        assert (again.added, again.failed, again.unchanged) == ([], [], 2)

        # A copy of a known archive brings its files; what is gone goes with them.
        shutil.copy(folder / "all.zip", folder / "copy.zip")
        (folder / "all.zip").unlink()
        write_mail(folder / "mail.eml", ("other.md", b"# Other\n\nThe ferry sails."))
        report = add(base, [folder], sync=True)
        assert paths_below(base, folder) == [
            "copy.zip",
            "copy.zip//mails/mail.eml",
            "copy.zip//mails/mail.eml//plan.md",
            "copy.zip//notes.txt",
            "mail.eml",
            "mail.eml//other.md",
        ]
        assert f"{folder}/mail.eml//plan.md" in report.removed
        assert f"{folder}/all.zip//notes.txt" in report.removed

        (folder / "copy.zip").unlink()
        base.remove([f"{folder}/copy.zip"])
        assert paths_below(base, folder) == ["mail.eml", "mail.eml//other.md"]
        # What cannot be read replaces nothing: the mail stays as it was, with its attachment.
        (folder / "mail.eml").write_text("Only words.")
        (failure,) = add(base, [folder]).failed
        assert "it has no headers" in failure.reason and failure.keeps_version
        assert paths_below(base, folder) == ["mail.eml", "mail.eml//other.md"]
        # A mail without attachments takes those of the last version with it.
        write_mail(folder / "mail.eml", subject="Only words")
        add(base, [folder])
        assert paths_below(base, folder) == ["mail.eml"]


@pytest.mark.slow
def test_the_bytes_of_a_member_are_read_from_where_it_is(tmp_path: Path) -> None:
    write_mail(tmp_path / "mail.eml", ("plan.md", b"# Plan\n\nThe lock closes in June."))
    mail = (tmp_path / "mail.eml").read_bytes()
    write_zip(tmp_path / "a.zip", {"in/mail.eml": mail})
    with clew.open(tmp_path / "base", create=True) as base:
        base.add([tmp_path / "a.zip"])
        (plan,) = [document for document in base.documents() if document.name == "plan.md"]
        assert base.files.original(plan.key).read_bytes() == b"# Plan\n\nThe lock closes in June."
        with base.files.open_uploads() as uploads:
            result = uploads.add(tmp_path / "mail.eml", "sent.eml")
        uploaded = next(path for path in base.store.document(plan.key).paths if path.startswith("upload:"))
        assert uploaded == f"upload:{result.key}/sent.eml//plan.md"
        (tmp_path / "a.zip").unlink()
        assert base.files.original(plan.key).read_bytes().startswith(b"# Plan")
        base.remove(f"upload:{result.key}/sent.eml")
        assert not any((tmp_path / "base" / "uploads").iterdir())


@pytest.mark.slow
def test_archives_within_archives_end_at_the_limit(tmp_path: Path) -> None:
    content, name = b"Words at the bottom.", "bottom.txt"
    for depth in range(5):
        write_zip(tmp_path / f"{depth}.zip", {name: content})
        content, name = (tmp_path / f"{depth}.zip").read_bytes(), f"{depth}.zip"
    with Store.open(tmp_path / "base", create=True) as base:
        report = add(base, [tmp_path / "4.zip"])
        (failure,) = report.failed
        assert failure.reason == "nested too deeply: more than 3 files within each other; unpack it"
        assert len(base.documents()) == 4


QUESTIONS = Path(__file__).parents[2] / "data" / "formats"
FORMATS = "docx odt rtf epub ipynb tex html eml mbox pptx odp xlsx ods csv json jsonl zip".split()


@pytest.mark.slow
def test_twenty_questions_find_their_passage_in_every_format(tmp_path: Path) -> None:
    """The questions were written before the files were read; benchmarks/formats.py prints the figures."""
    questions = [json.loads(line) for line in (QUESTIONS / "questions.jsonl").read_text().splitlines()]
    folder = tmp_path / "files"
    folder.mkdir()
    for suffix in FORMATS:
        shutil.copy(QUESTIONS / f"brannick.{suffix}", folder)
    with clew.open(tmp_path / "base", create=True) as base:
        report = add(base.store, [folder])
        assert report.failed == []
        for suffix in FORMATS:
            name = f"brannick.{suffix}" if suffix != "zip" else "brannick.md"
            missed = [
                row["question"]
                for row in questions
                if not any(
                    row["evidence"] in hit.node.text
                    for hit in base.search(row["question"], k=5, retriever="bm25", documents=[name])
                )
            ]
            assert missed == [], suffix


@pytest.mark.slow
@pytest.mark.parametrize("calls", range(3))
def test_a_copy_of_an_archive_is_whole_after_a_kill_between_its_files(calls, tmp_path, monkeypatch) -> None:
    """Found by the campaign: the copy counted as unchanged, and its files never became known."""
    folder = tmp_path / "files"
    folder.mkdir()
    write_zip(folder / "a.zip", {"one.txt": b"One mill.", "two.txt": b"Two mills."})
    with Store.open(tmp_path / "kb", create=True) as base:
        add(base, [folder], workers=1)
        shutil.copyfile(folder / "a.zip", folder / "b.zip")
        waiting = [base.put_location] * calls

        def put_location(*place):
            if not waiting:
                raise OSError("killed")
            return waiting.pop()(*place)

        with monkeypatch.context() as patch:
            patch.setattr(base, "put_location", put_location)
            with pytest.raises(OSError, match="killed"):
                add(base, [folder], workers=1)
        add(base, [folder], workers=1)
        expected = [f"{name}.zip{part}" for name in "ab" for part in ("", "//one.txt", "//two.txt")]
        assert paths_below(base, folder) == expected
