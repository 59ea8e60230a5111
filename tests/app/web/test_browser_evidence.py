"""The pages about a name, of what changed, and of what was put aside; in a real browser."""

from __future__ import annotations

import zipfile

import pytest

from browsing import ask, home, visit, wait_for_answer
from serve_app import QUESTION

pytestmark = pytest.mark.slow

LEASE = (
    "# Lease\n\n## 1. Rent\n\nThe rent is $100 a month, due on the first day.\n\n"
    "## 2. Keys\n\nThe owner keeps a key.\n"
)


def test_everything_about_a_name_leads_to_where_it_stands(served, open_page) -> None:
    page = open_page(served)
    visit(page, "text=Everything about a name")
    page.fill("#name", "Bittern")
    with page.expect_navigation(wait_until="load"):
        page.keyboard.press("Enter")
    page.wait_for_selector(".citations li")
    assert "in 1 document" in page.locator("[role=status]").first.inner_text()
    page.locator(".citations .open").first.click()
    page.wait_for_selector(".viewer .source")
    page.keyboard.press("Escape")
    page.fill("#name", "Biterm")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nothing here is called “Biterm”")


def test_two_chosen_documents_are_compared(served, open_page) -> None:
    served.upload("lease-1.md", LEASE.encode())
    served.upload("lease-2.md", LEASE.replace("$100", "$120").replace("a key", "no key").encode())
    page = open_page(served)
    for name in ("lease-1.md", "lease-2.md"):
        page.locator(".documents li", has_text=name).locator("input").check()
    with page.expect_navigation(wait_until="load"):
        page.click(".picked >> text=Compare")
    assert "2 changed (1 with other numbers)" in page.locator("[role=status]").first.inner_text()
    marks = page.locator(".changes mark").all_inner_texts()
    assert {"100", "120"} <= {mark.strip("$ ") for mark in marks}, marks
    page.check("[name=numbers]")
    with page.expect_navigation(wait_until="load"):
        page.click("main >> text=Compare")
    assert page.locator(".changes > li").count() == 1
    page.locator(".changes [data-source]").last.click()
    page.wait_for_selector(".viewer .source >> text=$120")


def test_quotes_are_put_aside_and_become_a_memo(served, open_page, tmp_path) -> None:
    page = open_page(served)
    ask(page, QUESTION)
    wait_for_answer(page)
    page.locator(".citations .pin").first.click()
    page.wait_for_selector("#toast >> text=Put aside.")
    with page.expect_navigation(wait_until="load"):
        page.click("#toast >> text=Show")
    assert "$9" in page.locator(".citations .passage").inner_text()
    page.fill("[data-note]", "for the meeting")
    page.keyboard.press("Tab")
    page.wait_for_selector("#toast >> text=The note is saved")
    page.fill("[name=title]", "The lighter")
    with page.expect_download() as download:
        page.click("text=Word")
    download.value.save_as(tmp_path / "memo.docx")
    with zipfile.ZipFile(tmp_path / "memo.docx") as archive:
        text = archive.read("word/document.xml").decode() + archive.read("word/footnotes.xml").decode()
    assert "The lighter" in text and "$9" in text and "lighter-hire-contract.pdf" in text
    assert "for the meeting" in text
    page.click("text=Take out")
    page.wait_for_selector(".citations li", state="detached")
    home(page)
    page.click("text=Quotes put aside")
    page.wait_for_selector("text=Nothing yet")
