"""Steps in the app that the tests in a browser share."""


def visit(page, link: str) -> None:
    """Follow a link, and wait until the page that it leads to can be used."""
    with page.expect_navigation(wait_until="load"):
        page.locator(link).first.click()


def home(page) -> None:
    visit(page, ".top nav a")


def ask(page, question: str, **choices: str) -> None:
    home(page)
    page.fill("#question", question)
    if choices:
        page.click(".more summary")
    for name, value in choices.items():
        page.select_option(f"#ask [name={name}]", value)
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")


def wait_for_answer(page) -> str:
    """Wait for the answer and return its text."""
    return page.locator(".answer .text, .answer .candidate b").first.inner_text()
