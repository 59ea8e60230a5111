"""The app by keys alone, in a narrow window, in light and dark."""

from __future__ import annotations

import re

import pytest

from browsing import ask, home, wait_for_answer
from serve_app import QUESTION

pytestmark = pytest.mark.slow


def test_everything_is_done_without_a_mouse(served, open_page) -> None:
    page = open_page(served)
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.type(QUESTION)
    page.keyboard.press("Shift+Enter")
    assert page.input_value("#question").endswith("\n")
    with page.expect_navigation(wait_until="load"):
        page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    _tab_to(page, ".answer [data-cite]")
    # What has the focus shows it.
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector(".viewer .source")
    assert page.evaluate("document.activeElement.className") == "viewer-body"
    page.keyboard.press("Escape")
    assert page.locator(".viewer").is_hidden()
    assert page.evaluate("document.activeElement.dataset.cite") == "1"
    _tab_to(page, ".how-box summary")
    page.keyboard.press("Enter")
    assert page.locator(".plain-steps").is_visible()
    _tab_to(page, ".advanced summary")
    page.keyboard.press("Enter")
    page.wait_for_selector(".walk .place")
    _tab_to(page, ".walk .place")
    page.locator(".walk-note:visible").wait_for()  # the script of the walk is there
    # An answer from the seeds alone is a walk of one column: there is no way to the right.
    columns = page.evaluate(
        "new Set(Array.from(document.querySelectorAll('.walk .place'), p => p.dataset.column)).size"
    )
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.column") == ("1" if columns > 1 else "0")
    assert page.locator(".trail-box .step").first.is_visible()
    _tab_to(page, ".again select")
    page.keyboard.type("read")
    _tab_to(page, ".again button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".entries.two")
    page.locator(".entry:nth-child(2) .answer").wait_for()
    assert page.locator(".entry .answer").count() == 2


def _tab_to(page, selector: str) -> None:
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("one => document.activeElement.matches(one)", selector):
            return
    raise AssertionError(f"no way by Tab to {selector}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_needs_no_scrolling_sideways(served, open_page, scheme) -> None:
    page = open_page(served, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    ask(page, QUESTION, recipe="kgp")
    wait_for_answer(page)
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(wide)
    page.locator(".answer [data-cite]").first.click()
    page.wait_for_selector(".viewer .source")
    assert page.locator(".viewer").bounding_box()["width"] == 390
    page.click(".viewer .close")
    home(page)
    page.wait_for_selector("#ask")
    assert not page.evaluate(wide)
    _readable(page)


def _readable(page) -> None:
    """Text stands out from what is behind it as WCAG AA asks."""
    colours = page.evaluate(
        """() => {
          const shown = [...document.querySelectorAll('p, a, button, h2, label, .muted, code')];
          const clear = (one) => getComputedStyle(one).backgroundColor === 'rgba(0, 0, 0, 0)';
          return shown.filter((one) => one.offsetWidth).map((one) => {
            let behind = one;
            while (behind.parentElement && clear(behind)) behind = behind.parentElement;
            return [getComputedStyle(one).color, getComputedStyle(behind).backgroundColor, one.className];
          });
        }"""
    )
    for ink, paper, where in colours:
        assert _contrast(_rgb(ink), _rgb(paper)) >= 4.5, (ink, paper, where)


def _rgb(colour: str) -> list[float]:
    return [float(item) for item in re.findall(r"[\d.]+", colour)[:3]]


def _contrast(item: list[float], other: list[float]) -> float:
    """The contrast ratio of WCAG 2.1, from 1 to 21."""

    def luminance(rgb: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(item), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
