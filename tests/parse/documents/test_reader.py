"""Reading one file of any format: which modules are loaded, which formats are known, what holds of every document."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bad_files import good_docx, good_pdf, good_xlsx
from clew.parse.documents.formats import document_formats
from clew.parse.documents.reader import is_supported, member_files, parse, read_file

GOOD = (
    (good_pdf(), "a.pdf"),
    (good_docx(), "a.docx"),
    (good_xlsx(), "a.xlsx"),
    (b"<html><p>One is. Two is.", "a.html"),
    (b"# One\n\nTwo.", "a.md"),
    (b"One.\n\nTwo.", "a.txt"),
    (b"a,b\n1,2\n", "a.csv"),
    (b"a\tb\n1\t2\n", "a.tsv"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("data", "name"), GOOD, ids=[name for _, name in GOOD])
def test_a_document_is_a_function_of_bytes_parser_and_unit(data: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    document = read_file(path)
    assert document == parse(data, name) == read_file(path)
    assert re.search(r"/\d+\(passages=paragraph\)$", document.parser)
    by_sentence = read_file(path, unit="sentence")
    assert by_sentence.parser == document.parser.replace("paragraph", "sentence")
    assert by_sentence.key != document.key
    assert is_supported(path)


def test_a_key_depends_on_what_the_bytes_are_read_as() -> None:
    assert parse(b"One.", "a.txt").key == parse(b"One.", "b.text").key
    assert parse(b"One.", "a.txt").key != parse(b"One.", "a.md").key
    assert parse(b"One.", "a.txt").key != parse(b"Two.", "a.txt").key


@pytest.mark.slow
def test_only_the_parser_that_is_needed_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Words.")
    program = (
        "import sys; from pathlib import Path; from clew.parse.documents.reader import read_file, is_supported\n"
        "read_file(Path(sys.argv[1]))\n"
        "heavy = 'lxml numpy pypdfium2 markdown_it charset_normalizer'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


PLUGIN = """
from clew.parse.documents.blocks import Paragraph, SourceFile, build_document
from clew.parse.documents.formats import DocumentFormat

def parse(data, *, unit, name):
    text = data.removeprefix(b"SHOUT\\n").decode().lower()
    return build_document([Paragraph(text)], SourceFile(data, name, "text/x-shout", "shout/1", unit))

FORMAT = DocumentFormat("text/x-shout", "a shout", (".shout",), parse, magic=b"SHOUT\\n")
"""


def install_plugin(folder: Path, value: str) -> None:
    """Write a package with the entry point ``value`` of the group "clew.parsers"."""
    (folder / "shout.py").write_text(PLUGIN)
    metadata = folder / "shout-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[clew.parsers]\nshout = {value}\n")


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_format_of_another_package_is_found_by_its_entry_point(tmp_path: Path) -> None:
    install_plugin(tmp_path, "shout:FORMAT")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from clew.parse.documents.reader import is_supported, parse\n"
        "document = parse(b'SHOUT\\nHELLO', 'a.txt')\n"
        "print(is_supported(Path('a.shout')), document.parser, document.text, parse(b'HI', 'b.shout').text)"
    )
    done = run_python(program, str(tmp_path))
    assert done.stdout.strip() == "True shout/1(passages=paragraph) hello hi", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("value", ["shout:MISSING", "absent:FORMAT", "shout:parse"])
def test_a_broken_format_of_another_package_is_left_out_and_named(value: str, tmp_path: Path) -> None:
    install_plugin(tmp_path, value)
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from clew.core.component import load_declaration; from clew.core.errors import PluginError\n"
        "from clew.parse.documents.formats import DocumentFormat\n"
        "from clew.parse.documents.reader import is_supported\n"
        "print(is_supported(Path('a.txt')), is_supported(Path('a.shout')))\n"
        "try: load_declaration('clew.parsers', 'shout', DocumentFormat)\n"
        "except PluginError as error: print(error.problem)"
    )
    supported, problem = run_python(program, str(tmp_path)).stdout.splitlines()
    assert supported == "True False"
    assert problem.startswith("the plug-in 'shout' of shout ")


def test_every_format_declares_its_own_media_type_and_suffixes() -> None:
    formats = document_formats()
    assert {"application/pdf", "text/html", "text/plain"} < {form.media_type for form in formats}
    suffixes = [suffix for form in formats for suffix in form.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)


def test_a_file_without_a_name_in_an_archive_is_left_out():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("n", "a.txt"):
            archive.writestr(name, "Words.")
    data = bytearray(stream.getvalue())
    entry = data.find(b"PK\x01\x02")
    data[entry + 28], data[entry + 30] = 0, 1  # the name of the first becomes data beside it
    assert [member.name for member in member_files(bytes(data), "a.zip")] == ["a.txt"]
    assert "holds 1 file" in parse(bytes(data), "a.zip").text
