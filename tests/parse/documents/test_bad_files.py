"""Every kind of bad file is refused with its reason, and with nothing but UnreadableFile."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bad_files import (
    BAD_FILES,
    SPECIAL_FILES,
    UNSUPPORTED_FILES,
    BadFile,
    changed_zip,
    good_docx,
    good_pdf,
    good_xlsx,
    sample,
    wrong_files,
)
from clew.core.errors import UnreadableFile
from clew.core.types import PAGE, TABLE
from clew.parse.documents.files import read_bytes
from clew.parse.documents.formats import document_formats
from clew.parse.documents.limits import Limits
from clew.parse.documents.reader import is_supported, parse, read_file

EVERY = (*BAD_FILES, *SPECIAL_FILES, *UNSUPPORTED_FILES)
#: Files that take long to refuse, because they are large once they are read.
LARGE = {"wide.html", "bomb.docx"}


@pytest.mark.parametrize(
    "bad",
    [pytest.param(bad, id=bad.name, marks=[pytest.mark.slow] if bad.name in LARGE else []) for bad in EVERY],
)
def test_a_bad_file_is_refused_with_its_reason_in_one_line(bad: BadFile, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile) as refused:
        read_file(bad.write(tmp_path))
    assert bad.reason in refused.value.problem
    assert "\n" not in refused.value.problem
    assert len(refused.value.problem) < 200


@pytest.mark.slow
@pytest.mark.parametrize("suffix", sorted({form.suffixes[0] for form in document_formats()}))
def test_each_format_has_twelve_bad_files_those_with_the_content_of_another_included(
    suffix, tmp_path
) -> None:
    wrong = wrong_files(suffix)
    for bad in wrong:
        with pytest.raises(UnreadableFile) as refused:
            read_file(bad.write(tmp_path))
        assert bad.reason in refused.value.problem and "\n" not in refused.value.problem
    assert len(wrong) + sum(bad.name.endswith(suffix) for bad in BAD_FILES) >= 12


def test_there_are_at_least_thirty_kinds_and_a_folder_finds_them_all() -> None:
    names = [bad.name for bad in BAD_FILES]
    assert len(set(names)) == len(names) >= 30
    assert all(is_supported(Path(name)) for name in names)
    assert not any(is_supported(Path(bad.name)) for bad in UNSUPPORTED_FILES)


def test_what_bad_files_are_made_from_is_good() -> None:
    for data, name in ((good_docx(), "a.docx"), (good_xlsx(), "a.xlsx"), (good_pdf(), "a.pdf")):
        assert parse(data, name).text


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (good_pdf(), "report.docx", "application/pdf"),
        (good_pdf(), "report", "application/pdf"),
        (
            good_docx(),
            "report.xlsx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (good_xlsx(), "table.csv", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (b"<!DOCTYPE html><title>T</title><p>Words.", "page.txt", "text/html"),
        (b"\xef\xbb\xbf  <!-- c --> <html><p>Words.", "page.md", "text/html"),
        (b"Only words.", "letter.docx", "text/plain"),
        (b"Only words.", "LETTER", "text/plain"),
        (b"# Words", "notes.MD", "text/markdown"),
        (b"a,b\n1,2\n", "TABLE.CSV", "text/csv"),
        (b"a\tb\n1\t2\n", "table.tsv", "text/tab-separated-values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_is_read_as_what_it_is(data: bytes, name: str, media_type: str) -> None:
    assert parse(data, name).media_type == media_type


def test_random_damage_is_read_or_refused_but_never_another_error() -> None:
    """Bytes of good files changed, cut out and doubled at random places."""
    chance = random.Random(11)
    html = b"<html><title>T</title><h1>H</h1><table><tr><th>a<td>b</tr></table><ul><li>x<li>y</ul>" * 3
    markdown = (
        b"---\ntitle: T\n---\n# H\n\n- a\n  - b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n" * 3
    )
    goods = (
        (good_docx(), "a.docx"),
        (good_xlsx(), "a.xlsx"),
        (html, "a.html"),
        (markdown, "a.md"),
        (b'a,b\n1,"2\n3"\n' * 9, "a.csv"),
    )
    refused = 0
    for number in range(200):
        data, name = goods[number % len(goods)]
        changed = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            start = chance.randrange(len(changed) - 1)
            end = min(start + chance.randint(1, 40), len(changed))
            changed[start:end] = chance.choice(
                [chance.randbytes(end - start), b"", bytes(changed[start:end]) * 2]
            )
        try:
            parse(bytes(changed), name)
        except UnreadableFile:
            refused += 1
    assert 40 < refused < 160


@pytest.mark.slow
def test_parts_of_an_office_file_may_be_damaged_at_random() -> None:
    """The XML itself changed, inside a container that is whole: values missing, strange or out of range."""
    import io
    import re
    import zipfile

    from bad_files import changed_zip

    chance = random.Random(5)
    strange = [b"", b"-1", b"x", b"99999999999", b"1e999", b"\xc3\xa9", b"NaN", b"A1:XFD1048576"]
    for data, name in ((good_docx(), "a.docx"), (good_xlsx(), "a.xlsx")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {
                part: archive.read(part) for part in archive.namelist() if part.endswith((".xml", ".rels"))
            }
        for _ in range(20):
            part = chance.choice(sorted(parts))
            values = list(re.finditer(rb'="([^"]*)"', parts[part]))
            if not values:
                continue
            value = chance.choice(values)
            content = parts[part][: value.start(1)] + chance.choice(strange) + parts[part][value.end(1) :]
            try:
                parse(changed_zip(data, {part: content}), name)
            except UnreadableFile as refused:
                assert refused.problem


def test_a_file_larger_than_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: a terabyte that takes no room
    with pytest.raises(UnreadableFile, match="larger than 512"):
        read_file(path)
    path.write_bytes(b"x" * 11)
    with pytest.raises(UnreadableFile, match="larger than 10 bytes"):
        read_bytes(path, Limits(file_bytes=10))
    assert read_bytes(path, Limits(file_bytes=11)) == b"x" * 11


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="cannot be opened"):
        read_file(Path("a\0b.txt"))
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_file(Path("a" * 5_000 + ".txt"))


@pytest.mark.slow
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("Words.")
    path.chmod(0)
    if os.geteuid() != 0:
        with pytest.raises(UnreadableFile, match="no permission"):
            read_file(path)
        return
    # Root may read everything, so another user tries. The folder must let them in.
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    program = (
        "import os, sys; from pathlib import Path; from clew.parse.documents.reader import read_file;"
        "from clew.core.errors import UnreadableFile; os.setuid(65534)\n"
        "try: read_file(Path(sys.argv[1]))\n"
        "except UnreadableFile as refused: sys.exit(refused.problem)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    assert "no permission" in done.stderr


def test_a_part_that_is_listed_again_is_read_once() -> None:
    """A small file could list one sheet or slide a hundred thousand times."""
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="rId1"/>' for n in range(1, 4))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    book = f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{sheets}</sheets></workbook>'
    parsed = parse(changed_zip(good_xlsx(), {"xl/workbook.xml": book.encode()}), "a.xlsx")
    assert sum(node.kind == TABLE for node in parsed.nodes) == 1
    slides = "".join(f'<p:sldId id="{n}" r:id="rId3"/>' for n in range(256, 259))
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    deck = f'<p:presentation xmlns:p="{main}" xmlns:r="{relations}"><p:sldIdLst>{slides}</p:sldIdLst>'
    changes = {"ppt/presentation.xml": f"{deck}</p:presentation>".encode()}
    parsed = parse(changed_zip(sample("pptx"), changes), "a.pptx")
    assert sum(node.kind == PAGE for node in parsed.nodes) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are those of Linux")
def test_drawn_documents_stay_within_the_limits(tmp_path: Path) -> None:
    """Those that once took minutes or gigabytes, of the 250 of ``python tests/hostile_documents.py``."""
    kinds = ["docx, spaces", "docx, nested text boxes", "html, attributes", "html, large table"]
    kinds += ["xlsx, far rows", "markdown, large table"]
    command = [sys.executable, str(Path(__file__).parents[2] / "hostile_documents.py"), "--number", "99"]
    command += ["--out", str(tmp_path / "out.jsonl"), "--kinds", *kinds]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 documents, 0 beyond a limit" in done.stdout
