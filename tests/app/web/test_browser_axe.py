"""No page has a barrier that axe-core knows of: light and dark, wide and narrow. Needs axe-playwright-python."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from browsing import ask, home, wait_for_answer
from serve_app import QUESTION

pytestmark = pytest.mark.slow

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}


@pytest.fixture(scope="module")
def axe():
    package = find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("axe-core is not installed: pip install '.[dev]'")
    return (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(page, axe) -> list[str]:
    """Return what axe-core objects to on a page, as it is now."""
    # The policy of the pages allows no script but theirs; the browser's own console may run one.
    page.evaluate(f"{axe}; 0")
    results = page.evaluate("rules => axe.run(document, rules)", RULES)
    assert results["passes"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in results["violations"]
        for node in rule["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_page_has_a_barrier(own_served, browser, axe, width, scheme) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"http://127.0.0.1:{own_served.port}/")
    base = f"http://127.0.0.1:{own_served.port}/b/{own_served.base}"
    problems: dict[str, list[str]] = {}

    def check(name: str) -> None:
        page.wait_for_load_state("networkidle")
        if objections := violations(page, axe):
            problems[name] = objections

    page.locator(".documents input[form=ask]").first.check()
    page.locator(".more summary").click()
    page.locator(".add-more > summary").click()
    page.wait_for_selector(".add-source")
    check("home")
    page.locator(".picked >> text=Tag").click()
    check("tagging")
    page.keyboard.press("Escape")
    page.locator("#ask .scope >> text=Ask all").click()
    ask(page, QUESTION)
    wait_for_answer(page)
    page.click(".how-box summary")
    page.click(".advanced summary")
    page.wait_for_selector(".trail-box")
    check("answer")
    page.locator(".citations .pin").first.click()
    page.wait_for_selector("#toast >> text=Put aside.")
    page.locator(".answer [data-cite]").first.click()
    page.wait_for_selector(".viewer .source")
    check("viewer")
    page.click(".viewer .close")
    home(page)
    page.locator(".documents li .quiet").first.click()
    page.wait_for_selector("#toast button")
    check("removed one")
    for path in (
        "/removed",
        "/about?name=lighter",
        "/basket",
        "/grids",
        "/../../projects",
        "/../../settings",
        "/nothing",
        "/q/nothing",
    ):
        page.goto(f"{base}{path}")
        check(path)
    document = own_served.get(f"{own_served.api}/documents")[1]["documents"][0]["key"]
    page.goto(f"{base}/d/{document}")
    check("document")
    keys = [one["key"] for one in own_served.get(f"{own_served.api}/documents")[1]["documents"]]
    page.goto(f"{base}/changes?before={keys[0]}&after={keys[1]}")
    check("changes")
    page.close()
    assert problems == {}
