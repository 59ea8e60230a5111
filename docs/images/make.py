"""Makes the pictures of the app that the README shows, from the samples and without a model.

    python docs/images/make.py

Needs the extras serve and dev, and Chromium (apt install chromium).
"""

from __future__ import annotations

import sys
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
from serve_app import ServedApp  # noqa: E402

SIZE = {"width": 1280, "height": 800}


def main() -> None:
    """Ask, and take the pictures."""
    with TemporaryDirectory() as folder, chromium() as browser:
        base = Path(folder) / "oskell"
        with clew.open(base, create=True) as made:
            made.add([ROOT / "samples" / "documents"])
        with ServedApp(base) as app:
            page = browser.new_page(viewport=SIZE)
            asked(page, app, "What does the hirer pay a day if the lighter is returned late?")
            page.locator(".answer .cite").first.click()
            page.wait_for_selector(".viewer .sheet rect")
            page.wait_for_load_state("networkidle")
            kept(page, "answer")
            page = browser.new_page(viewport=SIZE, color_scheme="dark")
            asked(page, app, "Which of the two steamers was the longer, the Heron Maid or the Heron Queen?")
            page.click(".advanced summary")
            page.wait_for_selector(".walk-hint")
            page.wait_for_load_state("networkidle")
            page.locator(".walk").evaluate("one => one.scrollIntoView()")
            page.locator(".walk .place.cited[data-column='1'], .walk .place.cited").last.hover()
            kept(page, "walk")


def asked(page: Any, app: ServedApp, question: str) -> None:
    """Ask, and wait for the answer."""
    page.goto(f"http://127.0.0.1:{app.port}/")
    page.fill("#question", question)
    page.click(".more summary")
    page.select_option("#ask [name=recipe]", "kgp")
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")
    page.wait_for_selector(".answer")


def kept(page: Any, name: str) -> None:
    """Save what the window shows, in few colours: text and lines need no more."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(96, dither=Image.Dither.NONE).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
