"""Progress with an end: pages of how many, how long, cancelled, and what was not added."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.app.web.pages.render import render_fragment
from clew.parse.documents.progress import receive_pages
from clew.parse.documents.reader import read_file
from page_reader import Elements
from serve_app import SAMPLES, ServedApp, waited_for

FILINGS = Path(__file__).parents[4] / "shared" / "data" / "financebench" / "pdfs"


@pytest.mark.slow
def test_a_parser_reports_its_pages_to_the_last() -> None:
    reports: list[tuple[int, int]] = []
    receive_pages(lambda done, total: reports.append((done, total)))
    try:
        read_file(SAMPLES / "oskell-passage-annual-report-1931.pdf")
    finally:
        receive_pages(lambda done, total: None)
    assert reports == sorted(reports) and reports[-1] == (8, 8)


def shown_uploads(*uploads) -> Elements:
    page = Elements()
    page.feed(
        render_fragment(
            "part-uploads.html",
            base="b",
            progress=None,
            under_way=[upload for upload in uploads if upload["state"] != "failed"],
            failed=[upload for upload in uploads if upload["state"] == "failed"],
        )
    )
    return page


def test_uploads_say_how_far_they_are_and_failures_are_folded() -> None:
    reading = {"id": "a", "name": "filing.pdf", "state": "reading", "notes": []}
    reading["pages"] = {"done": 212, "total": 549, "seconds_left": 125}
    failed = [
        {
            "id": f"f{n}",
            "name": f"{n}.pdf",
            "state": "failed",
            "notes": [],
            "error": f"reason {n}",
            "hint": "",
        }
        for n in range(3)
    ]
    page = shown_uploads(reading, *failed)
    assert "page 212 of 549, about 2 min" in page.text and "3 files were not added" in page.text
    assert all(f"Reason {n}." in page.text for n in range(3))
    (folded,) = page.all("details")
    assert "open" not in folded
    assert page.all("button", **{"aria-label": "Cancel: filing.pdf"})
    assert "open" in shown_uploads(failed[0]).all("details")[0]


@pytest.mark.slow
def test_the_reading_of_a_long_file_is_followed_and_cancelled(tmp_path) -> None:
    filing = FILINGS / "CVSHEALTH_2022_10K.pdf"
    if not filing.exists():
        pytest.skip("the shared data is not here")
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        _, reply = app.send_files((filing.name, filing.read_bytes()), ("note.md", b"# Weir\n\nIt stands.\n"))
        first, second = (upload["id"] for upload in reply["uploads"])
        uploads = f"{app.api}/uploads"

        def pages():
            known = {upload["id"]: upload for upload in app.get(uploads)[1]["uploads"]}
            return known[first].get("pages")

        waited_for(lambda: (pages() or {}).get("done"))
        assert pages()["total"] > 100
        assert app.delete(f"{uploads}/{first}")[0] == 200
        waited_for(lambda: first not in {upload["id"] for upload in app.get(uploads)[1]["uploads"]})
        # The file after it is read, and nothing of the cancelled one is left.
        assert app.ended(second)["state"] == "done"
        assert [d["document"] for d in app.get(f"{app.api}/documents")[1]["documents"]] == ["note.md"]
        assert not list((tmp_path / "kb" / "spool").glob("*"))
