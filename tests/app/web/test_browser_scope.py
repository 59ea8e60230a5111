"""What a question is asked of, in a real browser: documents chosen as chips, tagged, removed and put back."""

from __future__ import annotations

import pytest

import clew
from browsing import home, visit, wait_for_answer
from clew.app.web.pages import context
from serve_app import QUESTION, waited_for

pytestmark = pytest.mark.slow

CONTRACT, CHARTER, READINGS = (
    "lighter-hire-contract.pdf",
    "merrowgate-charter.md",
    "gauge-readings-march-1929.csv",
)


def choose(page, name: str) -> None:
    page.locator(".documents li", has_text=name).locator("input").check()


def is_asked_of(page, what: str) -> bool:
    """Wait until the box says what is asked: its script may still be on the way."""
    page.locator("#ask .what, .follow .what").filter(has_text=what).wait_for()
    return True


def test_chosen_documents_are_chips_that_stay_and_restrict_the_question(served, open_page) -> None:
    page = open_page(served)
    assert is_asked_of(page, "Asking all 3 documents")
    choose(page, CHARTER)
    assert is_asked_of(page, "Asking 1 of 3 documents")
    choose(page, READINGS)
    assert is_asked_of(page, "Asking 2 of 3 documents") and page.locator("#ask .chip").count() == 2
    page.reload()
    page.wait_for_selector("#ask .chip")
    assert is_asked_of(page, "Asking 2 of 3 documents")
    # What the contract alone says is not found in the two others.
    page.fill("#question", QUESTION)
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")
    wait_for_answer(page)
    assert CONTRACT not in page.locator(".result").inner_text()
    assert is_asked_of(page, "Asking 2 of 3 documents")
    # A follow-up keeps the choice, less what is taken away.
    page.locator(".follow .chip", has_text="gauge").locator("button").click()
    assert is_asked_of(page, "Asking 1 of 3 documents")
    page.fill(".follow textarea", "Which travellers are to be carried for nothing?")
    with page.expect_navigation(wait_until="load"):
        page.press(".follow textarea", "Enter")
    assert "midwives" in wait_for_answer(page) and page.locator(".follow .chip").count() == 1
    home(page)
    page.click("#ask .scope >> text=Ask all")
    assert (
        is_asked_of(page, "Asking all 3 documents") and not page.locator(".documents input:checked").count()
    )
    page.fill("#question", QUESTION)
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")
    assert "9" in wait_for_answer(page)


def test_documents_are_tagged_together_and_listed_by_tag(served, open_page) -> None:
    page = open_page(served)
    choose(page, CHARTER)
    choose(page, CONTRACT)
    page.click(".picked >> text=Tag")
    page.fill("#tagging input", "river law")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tags .chip")
    assert page.locator(".tags .chip").inner_text().split() == ["river", "law", "2"]
    visit(page, ".tags .chip")
    page.wait_for_selector(".tags .on")
    assert page.locator(".documents li").count() == 2
    page.check("#all-shown")
    assert is_asked_of(page, "Asking 2 of 3 documents")
    status, reply = served.post(
        f"{served.api}/search", {"question": QUESTION, "where": 'tag = "river law"', "k": 50}
    )
    assert status == 200 and {hit["document"] for hit in reply["hits"]} <= {CHARTER, CONTRACT}
    page.click(".picked >> text=Tag")
    page.fill("#tagging input", "River Law")
    page.click("#tagging >> text=Take it away")
    page.wait_for_selector(".tags .chip", state="detached")


def test_a_removal_is_undone_with_the_picture_of_its_page(served, open_page) -> None:
    with clew.open(served.settings.bases[served.base]) as base:
        before = [node.to_dict() for document in base.documents() for node in base.tree(document.key)]
    page = open_page(served)
    choose(page, CHARTER)
    choose(page, CONTRACT)
    page.click(".picked >> text=Remove")
    page.wait_for_selector("#toast >> text=2 documents were removed")
    page.wait_for_selector(".documents li:nth-child(2)", state="detached")
    assert not page.locator("#ask .chip").count()
    page.click("#toast >> text=Undo")
    page.wait_for_selector("#toast >> text=Put back")
    page.wait_for_selector(".documents li:nth-child(3)")
    with clew.open(served.settings.bases[served.base]) as base:
        assert before == [node.to_dict() for document in base.documents() for node in base.tree(document.key)]
    # From the page of a document, and back from the list of what was removed.
    visit(page, ".documents a:has-text('hire')")
    with page.expect_navigation(wait_until="load"):
        page.click("text=Remove")
    page.wait_for_selector("#toast >> text=1 document was removed")
    visit(page, "text=1 removed document")
    page.click("[data-trash] >> text=Put back")
    page.wait_for_selector("[data-trash]", state="detached")
    home(page)
    page.wait_for_selector(".documents li:nth-child(3)")
    waited_for(lambda: served.get(f"{served.api}")[1]["pending"] == 0)
    page.fill("#question", QUESTION)
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")
    assert "9" in wait_for_answer(page)
    page.locator(".answer [data-cite]").first.click()
    page.wait_for_selector(".viewer .sheet rect")


def test_a_long_list_is_shown_whole(served, open_page, monkeypatch) -> None:
    monkeypatch.setattr(context, "_MAX_DOCUMENTS", 2)
    page = open_page(served)
    page.wait_for_selector("#documents >> text=The first 2 of 3.")
    page.click("[data-list-all]")
    page.wait_for_selector("[data-list-all]", state="detached")
    assert page.locator("#documents li", has_text=READINGS).count() == 1
    page.reload()  # what is shown stays so
    page.wait_for_selector(".documents li:nth-child(3)")
