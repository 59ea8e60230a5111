"""The page of a project while documents arrive, in a real browser: what it shows is what it shows when it is loaded
again, whatever kind of file came first."""

from __future__ import annotations

import difflib
import time
from pathlib import Path

import pytest

from serve_app import FILMS, PATIENCE, SAMPLES, ServedApp, waited_for

pytestmark = pytest.mark.slow

FORMATS = Path(__file__).parents[2] / "data" / "formats"
NOTES = b"The weir\n\nThe weir at Oxlade was built in 1911 by Ada Merrin.\n"
TABLES = b"Kismet\tdirector\tLudwig Berger\nTabu\tdirector\tF. W. Murnau\n"
#: A file of each kind, and the field that it is chosen with.
KINDS: dict[str, tuple[Path | tuple[str, bytes], str]] = {
    "pdf": (SAMPLES / "lighter-hire-contract.pdf", "#files"),
    "docx": (FORMATS / "brannick.docx", "#files"),
    "xlsx": (FORMATS / "brannick.xlsx", "#files"),
    "pptx": (FORMATS / "brannick.pptx", "#files"),
    "html": (FORMATS / "brannick.html", "#files"),
    "markdown": (SAMPLES / "merrowgate-charter.md", "#files"),
    "txt": (("weir.txt", NOTES), "#files"),
    "csv": (FORMATS / "brannick.csv", "#files"),
    "epub": (FORMATS / "brannick.epub", "#files"),
    "eml": (FORMATS / "attached.eml", "#files"),
    "zip": (FORMATS / "brannick.zip", "#files"),
    "graph-tsv": (("films.tsv", FILMS), "#graph-files"),
    "graph-csv": (("films.csv", TABLES.replace(b"\t", b",")), "#graph-files"),
    "broken-pdf": (("broken.pdf", b"%PDF-1.7 and then nothing"), "#files"),
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """A server over an empty project for each kind of file."""
    folder = tmp_path_factory.mktemp("kinds")
    with ServedApp(*(folder / kind for kind in KINDS), encoder="clew:hops") as app:
        yield app


def choose_files(page, field: str, *files: Path | tuple[str, bytes]) -> None:
    page.set_input_files(
        field,
        [
            file
            if isinstance(file, Path)
            else {"name": file[0], "mimeType": "application/octet-stream", "buffer": file[1]}
            for file in files
        ],
    )


def wait_until_ready(app) -> None:
    """Wait until all that was uploaded into a base has ended, its vectors included."""

    def has_ended() -> bool:
        _, reply = app.get(f"{app.api}/uploads")
        states = {upload["state"] for upload in reply["uploads"]}
        return bool(states) and states <= {"done", "failed"} and reply["progress"] is None

    waited_for(has_ended)


def shown_html(page) -> str:
    return page.evaluate("document.body.outerHTML")


def await_same_page(page, fresh) -> None:
    """Wait until a page shows what a page that was opened afterwards shows."""
    expected, deadline = shown_html(fresh), time.monotonic() + PATIENCE / 4
    while (html := shown_html(page)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    lines = difflib.unified_diff(html.splitlines(), expected.splitlines(), "stayed", "loaded again", n=0)
    assert html == expected, "\n".join(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_upload_shows_what_a_reload_shows(kind, projects, open_page) -> None:
    file, field = KINDS[kind]
    projects.base = kind
    page, fresh = open_page(projects), open_page(projects)
    page.goto(f"http://127.0.0.1:{projects.port}/b/{kind}/")
    assert page.locator(".invite").count() == 1
    choose_files(page, field, file)
    wait_until_ready(projects)
    fresh.goto(f"http://127.0.0.1:{projects.port}/b/{kind}/")
    await_same_page(page, fresh)
    for width in (1440, 390):
        boxes = []
        for shown in (page, fresh):
            shown.set_viewport_size({"width": width, "height": 860})
            shown.evaluate("scrollTo(0, 0)")
            boxes.append([shown.locator(name).bounding_box() for name in (".first", ".shelf", ".history")])
        assert boxes[0] == boxes[1]
        if page.locator("#question").count():
            assert page.locator("#question").bounding_box()["width"] > 0.4 * width
