"""Makes the pictures of the app's states in docs/images/states, over the samples and without a model.

    python docs/images/states.py [NAME ...]

Needs the extras serve and dev, and Chromium (apt install chromium).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

import clew

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from chromium import chromium  # noqa: E402 (what the tests share lies beside them)
from scripted import ScriptedServer  # noqa: E402
from serve_app import ServedApp  # noqa: E402

DOCUMENTS = ROOT / "samples" / "documents"
LATE = "What does the hirer pay a day if the lighter is returned late?"
LONGER = "Which of the two steamers was the longer, the Heron Maid or the Heron Queen?"
TABLE = "How many people crossed by the Long Passage in July 1931?"
UNKNOWN = "Who invented the telescope?"

Steps = Callable[[Any, ServedApp], None]


def ask(page: Any, question: str) -> None:
    """Ask, and wait for the answer."""
    page.fill("#question", question)
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")
    page.wait_for_selector(".answer")


def go(page: Any, app: ServedApp, path: str) -> None:
    """Open a page of the app."""
    page.goto(f"http://127.0.0.1:{app.port}{path}")


def choose_two(page: Any, app: ServedApp) -> None:
    """Choose two documents."""
    for words in ("Charter", "lighter Bittern"):
        page.locator(".documents li", has_text=words).locator("input").check()


def tag_two(page: Any, app: ServedApp) -> None:
    """Tag two documents, and begin to tag them again."""
    choose_two(page, app)
    page.click(".picked >> text=Tag")
    page.fill("#tagging input", "river law")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tags .chip")


def tagging(page: Any, app: ServedApp) -> None:
    """The dialog of a tag."""
    tag_two(page, app)
    page.click(".picked >> text=Tag")


def remove_two(page: Any, app: ServedApp) -> None:
    """Remove two documents."""
    choose_two(page, app)
    page.click(".picked >> text=Remove")
    page.wait_for_selector("#toast >> text=Undo")
    page.wait_for_selector(".documents li:nth-child(11)", state="detached")


def removed(page: Any, app: ServedApp) -> None:
    """The list of removed documents."""
    remove_two(page, app)
    page.click("text=2 removed documents")


def answer(question: str, click: str = "", wait: str = "", then: str = "") -> Steps:
    """Return the steps that ask, and open a part of the answer."""

    def steps(page: Any, app: ServedApp) -> None:
        ask(page, question)
        for selector in click.split(" | ") if click else ():
            page.locator(selector).first.click()
        if wait:
            page.wait_for_selector(wait)
        if then:
            page.locator(then).first.scroll_into_view_if_needed()

    return steps


def asked_of_two(page: Any, app: ServedApp) -> None:
    """An answer from two documents, with the chips of the follow-up."""
    choose_two(page, app)
    ask(page, LATE)
    page.locator(".follow").scroll_into_view_if_needed()


def follow_up(page: Any, app: ServedApp) -> None:
    """A follow-up and what it was taken to mean."""
    ask(page, TABLE)
    page.fill(".follow textarea", "and in August?")
    with page.expect_navigation(wait_until="load"):
        page.press(".follow textarea", "Enter")
    page.wait_for_selector(".answer")


def adding(page: Any, app: ServedApp) -> None:
    """The forms for folders, pages and text."""
    page.locator(".add-more > summary").click()
    page.wait_for_selector(".add-source")


def following(page: Any, app: ServedApp) -> None:
    """A folder that is followed, with a file that was not added."""
    folder = app.settings.projects.parent / "river"  # type: ignore[union-attr]
    shutil.copytree(ROOT / "samples" / "source", folder) if (ROOT / "samples" / "source").is_dir() else None
    folder.mkdir(exist_ok=True)
    (folder / "torn.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (folder / "weir.md").write_text("# The weir\n\nThe weir at Oxlade was raised in 1911.\n")
    app.post(f"{app.api}/sources", {"kind": "folder", "place": str(folder), "tags": ["river"]})
    app.post(f"{app.api}/sources", {"kind": "page", "place": "http://127.0.0.1:9/report"})
    page.wait_for_selector("#sources >> text=followed")
    page.wait_for_selector("#sources .failed")
    page.locator("#sources").scroll_into_view_if_needed()


def broken_file(page: Any, app: ServedApp) -> None:
    """Files of which one could not be added."""
    app.send_files(("torn.pdf", b"%PDF-1.7 and then nothing"), ("note.md", b"# Note\n\nThe tide is low.\n"))
    page.wait_for_selector(".upload.failed .why")
    page.wait_for_selector(".documents li:nth-child(13)")
    page.evaluate("document.querySelector('.failures').scrollIntoView()")


def at(path: str, wait: str = "main") -> Steps:
    """Return the steps that open a page; ``{b}`` stands for the path of the base."""

    def steps(page: Any, app: ServedApp) -> None:
        go(page, app, path.format(b=f"/b/{app.base}"))
        page.wait_for_selector(wait)

    return steps


def projects(page: Any, app: ServedApp) -> None:
    """Three projects, and the menu of one."""
    for title in ("Leases", "The museum"):
        app.post("/api/bases", {"title": title})
    go(page, app, "/projects")
    page.locator(".cards summary").last.click()


def document(page: Any, app: ServedApp) -> None:
    """The outline of a document, and a table in it."""
    page.locator(".documents a", has_text="Annual Report").click()
    page.locator(".outline .is-table a").first.click()
    page.wait_for_selector(".viewer .source")


def changed(page: Any, app: ServedApp) -> None:
    """Two versions of a lease, compared."""
    lease = "# Lease\n\n## Rent\n\nThe rent is ${} a month, due on the first day.\n\n## Keys\n\n{}\n"
    first = app.upload("lease-1933.md", lease.format(100, "The owner keeps a key.").encode())["key"]
    second = app.upload("lease-1934.md", lease.format(120, "The tenant keeps all keys.").encode())["key"]
    go(page, app, f"/b/{app.base}/changes?before={first}&after={second}")


def put_aside(page: Any, app: ServedApp) -> None:
    """A quote that was put aside, with a note."""
    ask(page, LATE)
    page.locator(".citations .pin").first.click()
    page.click("#toast >> text=Show")
    page.fill("[data-note]", "for the meeting")


def forget(page: Any, app: ServedApp) -> None:
    """The menu of a question in the history."""
    ask(page, LATE)
    go(page, app, f"/b/{app.base}/")
    page.locator(".questions .menu summary").first.click()


#: Name, width, light or dark, whether the base is empty, and the steps.
STATES: tuple[tuple[str, int, str, bool, Steps], ...] = (
    ("first-1440-light", 1440, "light", True, at("{b}/")),
    ("first-390-dark", 390, "dark", True, at("{b}/")),
    ("home-1440-light", 1440, "light", False, at("{b}/")),
    ("home-390-dark", 390, "dark", False, at("{b}/")),
    ("chosen-1440-light", 1440, "light", False, choose_two),
    ("chosen-390-light", 390, "light", False, choose_two),
    ("tagging-1440-dark", 1440, "dark", False, tagging),
    ("undo-1440-light", 1440, "light", False, remove_two),
    ("removed-390-light", 390, "light", False, removed),
    ("adding-1440-light", 1440, "light", False, adding),
    ("following-1440-dark", 1440, "dark", False, following),
    ("not-added-390-light", 390, "light", False, broken_file),
    ("projects-1440-light", 1440, "light", False, projects),
    ("projects-390-dark", 390, "dark", False, projects),
    ("settings-1440-light", 1440, "light", False, at("/settings", "#local-models >> text=is running")),
    ("settings-390-dark", 390, "dark", False, at("/settings", "#local-models >> text=is running")),
    ("answer-1440-light", 1440, "light", False, answer(LATE)),
    ("answer-390-light", 390, "light", False, answer(LATE)),
    ("asked-of-two-1440-light", 1440, "light", False, asked_of_two),
    ("follow-up-1440-dark", 1440, "dark", False, follow_up),
    ("how-1440-light", 1440, "light", False, answer(LONGER, ".how-box summary", "", ".how-box")),
    ("not-answered-390-dark", 390, "dark", False, answer(UNKNOWN)),
    ("viewer-1440-dark", 1440, "dark", False, answer(LATE, ".answer .cite", ".viewer .sheet rect")),
    ("viewer-390-light", 390, "light", False, answer(LATE, ".answer .cite", ".viewer .sheet rect")),
    ("table-1440-light", 1440, "light", False, document),
    ("about-1440-light", 1440, "light", False, at("{b}/about?name=Hesper+Marrable")),
    ("changes-1440-light", 1440, "light", False, changed),
    ("put-aside-390-dark", 390, "dark", False, put_aside),
    ("history-1440-light", 1440, "light", False, forget),
    ("missing-1440-light", 1440, "light", False, at("{b}/q/nothing")),
)


def main() -> None:
    """Make the pictures that are named, by default all."""
    wanted = set(sys.argv[1:])
    (HERE / "states").mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, chromium() as browser, ScriptedServer() as model:
        filled = Path(folder) / "filled"
        with clew.open(filled, create=True) as base:
            base.add([DOCUMENTS])
        servers = (("Ollama", model.url.removesuffix("/v1")),)
        model.models = ["llama3.1", "qwen3"]
        for name, width, scheme, is_empty, steps in STATES:
            if wanted and name not in wanted:
                continue
            place = Path(folder) / name
            if not is_empty:
                shutil.copytree(filled, place / "oskell")
            own = {"projects": place / "projects", "own_settings": place / "settings.json"}
            with ServedApp(place / "oskell", model_servers=servers, **own) as app:
                context = browser.new_context(
                    viewport={"width": width, "height": 900 if width > 1000 else 844}, color_scheme=scheme
                )
                page = context.new_page()
                go(page, app, "/")
                steps(page, app)
                page.wait_for_timeout(400)
                save(page, name, folder)
                context.close()


def save(page: Any, name: str, folder: str) -> None:
    """Save what the window shows in few colours; the paths of this machine are made those of a person."""
    page.evaluate(
        """folder => {
          const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let node = walk.nextNode(); node; node = walk.nextNode())
            if (node.data.includes(folder))
              node.data = node.data.replaceAll(folder, "/home/ines")
                .replace(/\\/ines\\/[\\w-]+-(1440|390)-\\w+/g, "/ines");
          for (const field of document.querySelectorAll("[placeholder]"))
            if (field.placeholder.endsWith("/…")) field.placeholder = "/home/ines/…";
        }""",
        folder,
    )
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(64, dither=Image.Dither.NONE).save(HERE / "states" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
