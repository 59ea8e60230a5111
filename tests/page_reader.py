"""Pages of the app as they are served, read without a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urlencode

from serve_app import waited_for

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
#: What a browser sends with a form of a page of ours.
OWN = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}


class Elements(HTMLParser):
    """What elements a page has, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.text += data

    def all(self, tag, **attrs):
        return [a for t, a in self.found if t == tag and all(a.get(k) == v for k, v in attrs.items())]


def fetch_page(app, path, status=200):
    got, headers, body = app.request("GET", path)
    assert got == status, body
    assert headers["content-type"].startswith("text/html")
    page = Elements()
    page.feed(body.decode())
    # The policy allows neither, so a page that had one would be broken.
    assert not page.all("style") and not any("style" in attrs for _, attrs in page.found)
    assert all(attrs.get("src", "").startswith("/static/") for attrs in page.all("script"))
    assert not any(name.startswith("on") for _, attrs in page.found for name in attrs)
    return page


def ask_by_form(app, **fields):
    """Ask with the form; return the page of the question, once it has ended."""
    status, headers, body = app.request(
        "POST", f"/b/{app.base}/ask", urlencode(fields).encode(), {**FORM, **OWN}
    )
    assert status == 303, body
    place = headers["location"]
    waited_for(lambda: "data-state" in app.request("GET", place)[2].decode() and has_ended(app, place))
    return place, fetch_page(app, place)


def has_ended(app, place):
    states = re.findall(r'data-state="(\w+)"', app.request("GET", place)[2].decode())
    return not {"waiting", "running"} & set(states)
