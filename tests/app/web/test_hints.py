"""What the command line says of pictures and scans, the app says, too: why they are not read, and what helps."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path

import pytest

from clew.core.installation import format_install_command
from clew.parse.graphs.formats import graph_formats, readable_suffixes
from command_line import run
from page_reader import fetch_page
from serve_app import ServedApp, waited_for

without_recognition = pytest.mark.skipif(
    find_spec("rapidocr") is not None, reason="the extra ocr is installed here"
)

HINT = f"To read text in pictures: {format_install_command('ocr')}"


def draw_pdf(*pages: str) -> bytes:
    """Return a PDF with a line of text on each page, "" for a page with a picture alone."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    stream = io.BytesIO()
    canvas = Canvas(stream)
    for text in pages:
        if not text:
            canvas.drawImage(ImageReader(Image.new("RGB", (60, 40))), 72, 300, 400, 300)
        canvas.drawString(72, 720, text)
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


FILES = {
    "plan.png": (b"\x89PNG\r\n\x1a\n" + bytes(40), "PNG image, which is not supported"),
    "photo.jpg": (b"\xff\xd8\xff\xe0" + bytes(40), "JPEG image, which is not supported"),
    "survey.tif": (b"II*\0" + bytes(40), "TIFF image, which is not supported"),
    "scan.pdf": (draw_pdf("", ""), "on any of its 2 pages; it looks scanned"),
}


@without_recognition
@pytest.mark.parametrize("name", FILES)
def test_a_picture_or_scan_has_its_hint_everywhere(name: str, own: ServedApp, tmp_path: Path) -> None:
    data, problem = FILES[name]
    own.base = own.post("/api/bases", {"title": name})[1]["base"]
    upload = own.upload(name, data)
    assert upload["state"] == "failed" and problem in upload["error"] and HINT in upload["hint"]
    page = fetch_page(own, f"/b/{own.base}/").text
    assert problem in page and HINT in page
    german = own.request("GET", f"/b/{own.base}/", headers={"Accept-Language": "de"})[2].decode()
    assert "Um Text in Bildern zu lesen" in german
    (tmp_path / name).write_bytes(data)
    printed = run("add", tmp_path / name, "--kb", tmp_path / "kb", status=1).stderr
    assert problem in printed and format_install_command("ocr") in printed


@without_recognition
def test_a_scanned_page_among_others_has_its_hint(own: ServedApp, tmp_path: Path) -> None:
    own.base = own.post("/api/bases", {"title": "A scanned page"})[1]["base"]
    upload = own.upload("mixed.pdf", draw_pdf("The lock opens in June.", ""))
    assert upload["notes"] == [f"no text on page 2. {HINT}"]
    assert f"no text on page 2. {HINT}" in fetch_page(own, f"/b/{own.base}/").text
    (tmp_path / "mixed.pdf").write_bytes(draw_pdf("The lock opens in June.", ""))
    assert HINT in " ".join(run("add", tmp_path, "--kb", tmp_path / "kb").stdout.split())


@without_recognition
@pytest.mark.slow
def test_pictures_of_a_folder_are_left_out_with_a_hint(own: ServedApp, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "weir.md").write_text("# The weir\n\nThe weir was raised by Ines Harrow.\n")
    (folder / "mixed.pdf").write_bytes(draw_pdf("The lock opens in June.", ""))
    for name, (data, _) in FILES.items():
        (folder / name).write_bytes(data)
    added = run("add", folder, "--kb", tmp_path / "kb", status=1)
    printed = " ".join(added.output.split())
    assert f"pictures are left out (3). {HINT}" in printed and f"no text on page 2. {HINT}" in printed
    own.base = own.post("/api/bases", {"title": "Followed"})[1]["base"]
    own.post(f"{own.api}/sources", {"kind": "folder", "place": str(folder)})
    waited_for(lambda: own.get(f"{own.api}/sources")[1]["sources"][0]["state"].get("files") == 2)
    page = fetch_page(own, f"/b/{own.base}/").text
    assert f"pictures are left out (3). {HINT}" in page and f"no text on page 2. {HINT}" in page
    assert "on any of its 2 pages; it looks scanned" in page


def test_the_button_for_graphs_offers_what_can_be_read(
    own: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {suffix for form in graph_formats() for suffix in form.suffixes}
    for missing in ((), ("pyoxigraph",), ("pyarrow",), ("pyoxigraph", "pyarrow")):
        monkeypatch.setattr(
            "clew.parse.graphs.formats.find_spec",
            lambda name, missing=missing: None if name in missing else find_spec(name),
        )
        page = own.request("GET", f"/b/{own.base}/")[2].decode()
        [offered] = [line for line in page.splitlines() if 'id="graph-files"' in line]
        suffixes = offered.partition('accept="')[2].partition('"')[0].split(",")
        assert suffixes == readable_suffixes() and {".csv", ".jsonl", ".bib"} <= set(suffixes) <= known
        rdf = {".nt", ".ttl", ".rdf", ".owl", ".xml"} & set(suffixes)
        assert (not rdf) == ("pyoxigraph" in missing) and (".parquet" in suffixes) == (
            "pyarrow" not in missing
        )
