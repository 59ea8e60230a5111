"""Progress with an end: pages of how many, how long, cancelled, and what was not added."""

from __future__ import annotations

import threading
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


def paragraphs(name: str, count: int) -> tuple[str, bytes]:
    """Return a document of so many passages, each of words of its own."""
    lines = (f"The {name} number {n} was built by {name} {7 * n}.\n\n" for n in range(count))
    return f"{name}.md", f"# {name}\n\n{''.join(lines)}".encode()


@pytest.mark.slow
def test_the_progress_of_all_files_never_falls_and_has_an_end(tmp_path) -> None:
    sizes = {"weir": 300, "mill": 280, "lock": 5}
    with ServedApp(tmp_path / "kb", encoder="clew:hops") as app:
        events, shares, pages = [], [], []

        def look() -> dict:
            _, reply = app.get(f"{app.api}/uploads")
            if reply["progress"] is not None:
                shares.append(reply["progress"]["share"])
            if is_encoding(reply):
                page = app.request("GET", f"/b/{app.base}/")[2].decode()
                # It may have ended before the page was made.
                if is_encoding(app.get(f"{app.api}/uploads")[1]):
                    pages.append(page)
            return reply

        def is_encoding(reply: dict) -> bool:
            return any(upload["state"] == "encoding" for upload in reply["uploads"])

        def follow() -> None:
            for event, data in app.events(f"{app.api}/uploads/events"):
                if event == "encoding":
                    events.append((data["done"], data["total"]))

        threading.Thread(target=follow, daemon=True).start()
        for name, count in sizes.items():  # each arrives while the one before is encoded
            before = len(events)
            assert app.send_files(paragraphs(name, count))[0] == 202
            waited_for(lambda before=before: look() and len(events) > before)
        ended = waited_for(lambda: (reply := look())["progress"] is None and reply)
        assert {upload["state"] for upload in ended["uploads"]} == {"done"} and ended["encoding"] is None
    assert shares == sorted(shares) and len(set(shares)) > 2 and all(0 <= share <= 1 for share in shares)
    done, total = ([event[place] for event in events] for place in (0, 1))
    assert done == sorted(done) and total == sorted(total), events
    assert done[-1] == total[-1] == sum(sizes.values())
    # What can be asked is among the documents, and in no second list above them.
    assert pages and all('class="upload encoding"' not in page and "<progress" in page for page in pages)


@pytest.mark.slow
def test_small_files_are_read_before_large_ones(tmp_path) -> None:
    sizes = {"large": 4_000, "middle": 400, "small": 4, "other": 40}
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        read: list[str] = []

        def follow() -> None:
            for event, data in app.events(f"{app.api}/uploads/events"):
                if event == "upload" and data["state"] == "reading":
                    read.append(data["name"])

        threading.Thread(target=follow, daemon=True).start()
        with app.serving.app.state.server.uploads.pause_worker():
            _, reply = app.send_files(*(paragraphs(name, count) for name, count in sizes.items()))
        for upload in reply["uploads"]:
            assert app.ended(upload["id"])["state"] == "done"
        waited_for(lambda: len(read) == len(sizes))
    assert read == ["small.md", "other.md", "middle.md", "large.md"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "small",
    [("note.md", b"# Weir\n\nThe weir stands at Oxlade.\n"), ("table.csv", b"name,height\nweir,4\nmill,9\n")],
)
def test_a_small_file_can_be_asked_while_a_large_one_is_read(tmp_path, small) -> None:
    slow = b"".join(b"Line %d of a very long text.\n\n" % number for number in range(700_000))
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        large = app.send_files(("slow.md", slow))[1]["uploads"][0]["id"]

        def state(id: str) -> str:
            known = {upload["id"]: upload["state"] for upload in app.get(f"{app.api}/uploads")[1]["uploads"]}
            return known.get(id, "gone")

        waited_for(lambda: state(large) == "reading")
        assert app.upload(*small)["state"] == "done" and state(large) == "reading"
        assert [d["document"] for d in app.get(f"{app.api}/documents")[1]["documents"]] == [small[0]]
        assert app.ask("Where does the weir stand, and how high is it?")["event"] == "answer"
        assert state(large) == "reading"
        # Each can still be cancelled.
        assert app.delete(f"{app.api}/uploads/{large}")[0] == 200
        waited_for(lambda: state(large) == "gone")
        assert app.upload("after.md", b"# After\n\nAll is well.\n")["state"] == "done"
