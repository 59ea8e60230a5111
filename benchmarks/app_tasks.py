"""Twelve tasks in the web app, done with only what the screen says: how many steps, and how many seconds.

Each step is one act of a person: a press on something that is found by the words on it, or a field that is filled,
found by its label. Waiting is no step; the seconds are those of the machine from the page to the result, without
a person's reading and typing. The base is made anew from the samples, with the encoder and the reader that come with
clew; two leases and a folder are made for the tasks, and a scripted server stands for a model on this machine.

    python benchmarks/app_tasks.py

Needs the extra serve, playwright, and Chromium (apt install chromium).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import clew

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from chromium import chromium  # noqa: E402 (what the tests share lies beside them)
from scripted import ScriptedServer  # noqa: E402
from serve_app import ServedApp  # noqa: E402

LATE = "What does the hirer pay a day if the lighter is returned late?"
LEASE = "# Lease of the lamp house, {}\n\n## Rent\n\nThe rent is ${} a month, due on the first day of the month.\n"
QUESTIONS = (
    "When was it signed?|Who are the parties?|What is the rent?|Who keeps the keys?|What is the penalty?|"
    "How long does it run?"
)


class Person:
    """Does one thing after another on the page, by the words on it, and counts."""

    def __init__(self, page: Any, app: ServedApp, folder: Path) -> None:
        self.page, self.app, self.folder = page, app, folder
        self.steps = 0

    def press(self, words: str, exact: bool = False) -> None:
        """Press the first thing in view with these words."""
        self.steps += 1
        places = self.page.get_by_text(words, exact=exact).or_(self.page.get_by_label(words, exact=exact))
        places.locator("visible=true").first.click()

    def tick(self, words: str) -> None:
        """Tick the box with this label."""
        self.steps += 1
        self.page.get_by_label(words).first.check()

    def fill(self, label: str, text: str, enter: bool = False) -> None:
        """Fill the field with this label, and press Enter."""
        self.steps += 1
        field = (
            self.page.get_by_label(label)
            .or_(self.page.get_by_placeholder(label))
            .locator("visible=true")
            .first
        )
        field.fill(text)
        if enter:
            field.press("Enter")

    def see(self, words: str) -> None:
        """Wait until these words are in view; a large grid takes minutes."""
        self.page.get_by_text(words).locator("visible=true").first.wait_for(timeout=400_000)

    def home(self) -> None:
        """Start from the page of the project; no step."""
        self.page.goto(f"http://127.0.0.1:{self.app.port}/b/{self.app.base}/")


def add_folder(person: Person) -> None:
    """Add a folder."""
    person.press("Add a folder, a web page or text")
    person.fill("Its path", str(person.folder / "papers"))
    person.press("Follow this folder")
    person.see("followed, 2 files")


def ask(person: Person) -> None:
    """Ask."""
    person.fill("What do you want to know?", LATE, enter=True)
    person.see("sure of this")


def follow_up(person: Person) -> None:
    """Follow up."""
    ask(person)
    person.steps = 0
    person.fill("Ask a follow-up", "and when is it to be returned?", enter=True)
    person.page.wait_for_selector(".earlier")
    person.page.wait_for_selector(".answer")


def open_page(person: Person) -> None:
    """Open the cited page."""
    ask(person)
    person.steps = 0
    person.press("Evidence 1")
    person.page.wait_for_selector(".viewer .sheet rect")


def turn_page(person: Person) -> None:
    """Turn to the next page."""
    person.page.goto(f"http://127.0.0.1:{person.app.port}/b/{person.app.base}/")
    person.press("Oskell Passage Company: Annual Report")
    person.press("Read from the start")
    person.page.wait_for_selector(".viewer .sheet")
    person.steps = 0
    person.press("Next page")
    person.see("page 2")


def compare(person: Person) -> None:
    """Compare two contracts."""
    person.tick("Ask only lease-1933.md")
    person.tick("Ask only lease-1934.md")
    person.press("Compare", exact=True)
    person.see("with other numbers")


def make_grid(person: Person) -> None:
    """Make a grid of 10 x 6 (here all documents x 6)."""
    person.press("Table of answers")
    person.fill("Questions, one a line", QUESTIONS.replace("|", "\n"))
    person.press("Ask them all")
    person.see("have an answer, each with a quote")


def about(person: Person) -> None:
    """Find everything about a name."""
    person.press("Everything about a name")
    person.fill("A person, company, place or term", "Hesper Marrable", enter=True)
    person.see("Occurs with")


def memo(person: Person) -> None:
    """Make a memo."""
    ask(person)
    person.steps = 0
    person.press("Put aside")
    person.press("Show", exact=True)
    with person.page.expect_download():
        person.press("Word", exact=True)


def set_model(person: Person) -> None:
    """Set a model."""
    person.press("Settings")
    person.see("Ollama is running")
    with person.page.expect_navigation(wait_until="load"):
        person.press("Use it")
    person.see("used unless you choose another")


def restrict(person: Person) -> None:
    """Restrict a question to two documents."""
    person.tick("Ask only merrowgate-charter.md")
    person.tick("Ask only lighter-hire-contract.pdf")
    person.see("Asking 2 of")
    person.fill("What do you want to know?", LATE, enter=True)
    person.see("Asking 2 of")


def undo(person: Person) -> None:
    """Undo a removal."""
    person.press("Remove quillstone-bank-paper.pdf")
    person.press("Undo")
    person.see("Put back.")


TASKS: tuple[Callable[[Person], None], ...] = (
    add_folder,
    ask,
    follow_up,
    open_page,
    turn_page,
    compare,
    make_grid,
    about,
    memo,
    restrict,
    undo,
    set_model,
)


def main() -> None:
    """Print a table."""
    with TemporaryDirectory() as name, chromium() as browser, ScriptedServer() as model:
        folder = Path(name)
        papers = folder / "papers"
        papers.mkdir()
        for number in (1, 2):
            (papers / f"note-{number}.md").write_text(f"# Note {number}\n\nThe tide was low.\n")
            lease = LEASE.format(1932 + number, 80 + 20 * number)
            (folder / f"lease-{1932 + number}.md").write_text(lease)
        with clew.open(folder / "oskell", create=True) as base:
            base.add([ROOT / "samples" / "documents", *folder.glob("lease-*.md")])
        settings: dict[str, Any] = {"projects": folder / "projects", "own_settings": folder / "settings.json"}
        servers = (("Ollama", model.url.removesuffix("/v1")),)
        with ServedApp(folder / "oskell", model_servers=servers, **settings) as app:
            print("| task | steps | seconds |\n| --- | ---: | ---: |")
            for task in TASKS:
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                person = Person(context.new_page(), app, folder)
                person.home()
                start = time.perf_counter()
                task(person)
                seconds = time.perf_counter() - start
                print(f"| {(task.__doc__ or '').rstrip('.')} | {person.steps} | {seconds:.1f} |", flush=True)
                context.close()


if __name__ == "__main__":
    main()
