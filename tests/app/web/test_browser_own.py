"""What the person who runs the app does in it: projects, folders, pages and text, a model; in a real browser."""

from __future__ import annotations

import json

import pytest

from browsing import ask, home, visit, wait_for_answer
from clew.models.keys import read_key, store_key
from scripted import ScriptedServer
from serve_app import QUESTION, SAMPLES, ServedApp

pytestmark = pytest.mark.slow


@pytest.fixture
def empty(tmp_path):
    settings = {"projects": tmp_path / "projects", "own_settings": tmp_path / "settings.json"}
    with (
        ScriptedServer() as model,
        ServedApp(
            tmp_path / "kb",
            encoder="none",
            model_servers=(("LM Studio", model.url.removesuffix("/v1")),),
            **settings,
        ) as app,
    ):
        yield app


def test_the_sample_project_is_opened_and_asked_and_deleted(empty, open_page) -> None:
    page = open_page(empty)
    with page.expect_navigation(wait_until="load"):
        page.click("text=Try it with sample documents")
    page.wait_for_selector(f".documents li:nth-child({len(list(SAMPLES.iterdir()))})")
    page.wait_for_selector("#uploads .upload", state="detached")
    assert page.locator(".top nav").inner_text() == "Sample: the river Oskell"
    page.reload()
    with page.expect_navigation(wait_until="load"):
        page.locator(".suggested button").first.click()
    wait_for_answer(page)
    visit(page, ".top >> text=Projects")
    assert page.locator(".cards li").count() == 2 and not page.locator("text=Sample project").count()
    line = page.locator(".cards li", has_text="river Oskell")
    line.locator("summary").click()
    line.locator("text=Rename").click()
    line.locator("input").fill("The river")
    # The page is loaded again, its menus closed.
    with page.expect_navigation(wait_until="load"):
        page.keyboard.press("Enter")
    page.wait_for_selector(".cards [data-confirm*='“The river”']", state="attached")
    line = page.locator(".cards li", has_text="The river")
    line.locator("summary").click()
    line.locator("text=Delete").click()
    assert "12 documents" in page.locator("#confirm").inner_text()
    page.keyboard.press("Enter")  # the dialog begins at the button that keeps
    assert page.locator(".cards li").count() == 2
    line.locator("text=Delete").click()
    page.click("#confirm button[value=yes]")
    page.wait_for_selector(".cards li:nth-child(2)", state="detached")
    # The folder that clew was started with cannot be deleted here, and the page says why.
    page.locator(".cards summary").click()
    assert "cannot be deleted here" in page.locator(".cards .menu").inner_text()


def test_a_project_is_made_and_follows_a_folder(empty, browser, tmp_path) -> None:
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "weir.md").write_text("# The weir\n\nThe weir at Oxlade was raised by Ines Harrow.\n")
    page = browser.new_page()  # the browser logs replies that are no success
    page.goto(f"http://127.0.0.1:{empty.port}/")
    visit(page, ".top >> text=Projects")
    page.fill("#new-project input", "The quay")
    with page.expect_navigation(wait_until="load"):
        page.keyboard.press("Enter")
    page.locator(".add-more:not([open]) > summary").click()
    page.wait_for_selector(".add-source [name=place]")
    field = page.locator("[data-source-kind=folder] [name=place]")
    field.fill(str(tmp_path / "no-such"))
    page.click("text=Follow this folder")
    page.wait_for_selector(".add-source .problem >> text=there is no folder")
    field.fill(str(tmp_path / "pap"))
    page.wait_for_selector("#folders option", state="attached")
    assert page.locator("#folders option").get_attribute("value") == str(folder)
    field.fill(str(folder))
    page.locator("[data-source-kind=folder] [name=tags]").fill("river")
    page.click("text=Follow this folder")
    page.wait_for_selector("#sources >> text=followed, 1 file")
    page.wait_for_selector("#ask")
    page.wait_for_selector(".documents .badge >> text=river")
    (folder / "mill.md").write_text("# The mill\n\nThe mill burned in 1920.\n")
    page.wait_for_selector(".documents li:nth-child(2)")
    (folder / "mill.md").unlink()
    page.wait_for_selector(".documents li:nth-child(2)", state="detached")
    page.wait_for_selector("text=1 removed document")
    # A page that must not be read says why; pasted text becomes a document.
    page.locator(".add-more:not([open]) > summary").click()
    page.locator(".add-more details summary", has_text="A web page").click()
    page.locator("[data-source-kind=page] [name=place]").fill(f"http://127.0.0.1:{empty.port}/")
    page.click("text=Add this page")
    page.wait_for_selector("#sources .failed >> text=on this machine")
    page.locator(".add-more:not([open]) > summary").click()
    page.locator(".add-more details summary", has_text="Text").click()
    page.locator("[data-source-kind=text] textarea").fill("The lamp at Fenner Mouth is lit at dusk.")
    page.click("text=Add this text")
    page.wait_for_selector(".documents li:nth-child(2)")
    page.locator("#sources li", has_text="papers").locator("summary").first.click()
    page.locator("#sources li", has_text="papers").locator("text=Pause").click()
    page.wait_for_selector("#sources >> text=paused")
    ask(page, "Who raised the weir at Oxlade?")
    assert "Harrow" in wait_for_answer(page)
    page.close()


def test_a_model_of_this_machine_is_offered_and_used(empty, open_page) -> None:
    page = open_page(empty)
    visit(page, ".top >> text=Settings")
    page.wait_for_selector("#local-models >> text=LM Studio is running")
    assert "stays on this computer" in page.locator("#local-models").inner_text()
    with page.expect_navigation(wait_until="load"):
        page.click("#local-models >> text=Use it")
    page.wait_for_selector("#local-models >> text=its models are chosen")
    assert page.locator(".settings b >> text=scripted").count()
    with page.expect_navigation(wait_until="load"):
        page.click("text=Use no more")
    assert page.locator("text=No model is set.").count()


def test_a_model_elsewhere_is_used_no_more_and_its_key_forgotten(tmp_path, open_page) -> None:
    own, url = tmp_path / "settings.json", "https://models.example.org/v1"
    own.write_text(json.dumps({"models": [f"{url}#large"]}))
    store_key(url, "a-key")
    with ServedApp(tmp_path / "kb", encoder="none", model_servers=(), own_settings=own) as app:
        page = open_page(app)
        visit(page, ".top >> text=Settings")
        with page.expect_navigation(wait_until="load"):
            page.click("[data-model-remove][data-has-key]")
        page.wait_for_selector("text=No model is set.")
    assert read_key(url) is None and json.loads(own.read_text()) == {"models": []}


def test_the_theme_stays(served, open_page) -> None:
    page = open_page(served)
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(colour)
    visit(page, ".top >> text=Settings")
    page.check("[name=theme][value=dark]")
    dark = page.evaluate(colour)
    visit(page, ".brand")
    page.wait_for_selector("#question")
    assert page.evaluate(colour) == dark != light
    visit(page, ".top >> text=Settings")
    assert page.locator("[name=theme]:checked").get_attribute("value") == "dark"
    page.check("[name=theme][value='']")
    assert page.evaluate(colour) == light
    visit(page, ".brand")
    home(page)
    ask(page, QUESTION)
    wait_for_answer(page)
