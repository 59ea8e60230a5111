"""Templates, and pages made of them: every text that is put into one is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from clew.app.web.errors import retry_headers, status_code
from clew.core.errors import ClewError
from clew.core.text import shorten

_BACKTICKS = re.compile(r"`{1,2}([^`]+)`{1,2}")
#: What the steps of a trail do, in words for somebody who watches.
_DOING = {
    "seed": "Found where to start",
    "expand": "Walked to neighbours",
    "structure": "Looked for the pages, tables and sections that are named",
    "read": "Read the evidence",
    "retrieve": "Searched",
    "search": "Searched",
    "rerank": "Ranked again",
    "documents": "Chose documents",
    "sections": "Chose sections",
    "paragraphs": "Chose paragraphs",
    "summarise": "Summarised sections",
    "chain": "Wrote the question as triples",
    "triples": "Wrote the question as triples",
    "link": "Found what names stand for",
    "fill": "Looked up an unknown",
    "questions": "Put a hop into words",
    "filled": "Filled the triples in",
    "remember": "Asked the model's memory",
    "conflict": "Sources disagree",
    "prepare": "Matched the triples with the graph",
    "substitute": "Substituted the unknowns",
    "join graphs": "Joined graphs",
    "sort": "Sorted the candidates",
    "ranked": "Ranked the answers",
    "look in passages": "Looked in passages",
    "follow up": "Asked a follow-up question",
    "reason": "Reasoned",
    "stopped": "Stopped",
}


@lru_cache(maxsize=1)
def template_environment() -> Environment:
    """Return the templates. A name that is not given is an error, not an empty place."""
    folder = Path(__file__).parent / "templates"
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "part": lambda text: quote(str(text), safe=""),
        "when": format_time,
        "count": format_count,
        "duration": format_duration,
        "line": lambda text, length=120: shorten(str(text), length),
        "share": format_percent,
        "number": format_score,
        "spoken": flatten_tables,
        "told": format_detail,
        "sentence": as_sentence,
        "coded": code_markup,
        "doing": lambda name: _DOING.get(name, name.capitalize()),
    }
    return made


def code_markup(text: str) -> Markup:
    """Return text, escaped, with what stands in backticks as code.

    >>> coded("``<a>`` and `b`")
    Markup('<code>&lt;a&gt;</code> and <code>b</code>')
    """
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))


def render_fragment(name: str, **given: Any) -> str:
    """Return what a template makes."""
    return template_environment().get_template(name).render(**given)


def render_page(name: str, status: int = 200, **given: Any) -> HTMLResponse:
    """Return the page of a template."""
    return HTMLResponse(render_fragment(name, **given), status_code=status)


class PageRoute(APIRoute):
    """A route of pages: what goes wrong there is explained by a page, where the API replies with JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, with its errors made pages."""
        handle = super().get_route_handler()

        async def explained(request: Request) -> Response:
            try:
                return await handle(request)
            except ClewError as error:
                reply = error_page(status_code(error), error.problem, error.hint)
                reply.headers.update(retry_headers(error))
                return reply
            except RequestValidationError:
                return error_page(422, "the address or the form makes no sense")
            except HTTPException as error:
                return error_page(error.status_code, str(error.detail))

        return explained


def error_page(status: int, problem: str, hint: str = "") -> HTMLResponse:
    """Return the page that says what is wrong, and what to do about it."""
    return render_page("problem.html", status=status, title="clew", problem=problem, hint=hint)


class RevalidatedStaticFiles(StaticFiles):
    """Style and scripts: a browser keeps them, and asks each time whether they are still the same."""

    def file_response(self, *args: Any, **more: Any) -> Response:
        """Return a file, or that it has not changed."""
        response = super().file_response(*args, **more)
        response.headers["Cache-Control"] = "no-cache"
        return response


class CompressedPages(GZipMiddleware):
    """Packs pages, style and scripts, which then take a quarter of the bytes; streams and the API go as they are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        packed = scope["type"] == "http" and scope["path"].startswith(("/b/", "/static/"))
        await (super().__call__ if packed else self.app)(scope, receive, send)


def format_time(seconds: float) -> str:
    """Return a time of day and date, as the server's clock has it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%d %b %Y, %H:%M").lstrip("0")


def format_count(number: int, what: str) -> str:
    """Return a number of things.

    >>> count(1, "page"), count(2000, "page"), count(2, "query"), count(0, "passage")
    ('1 page', '2,000 pages', '2 queries', '0 passages')
    """
    if number != 1:
        what = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{number:,} {what}"


def format_duration(seconds: float) -> str:
    """Return a duration in few characters.

    >>> duration(0.0004), duration(0.25), duration(7.31), duration(95)
    ('0 s', '0.25 s', '7.3 s', '1 min 35 s')
    """
    if seconds < 0.005:
        return "0 s"
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def flatten_tables(text: str) -> str:
    r"""Return a text without the rules and bars of the tables in it.

    >>> spoken("Fleet\n| a | b |\n| --- | --- |\n| 1 | 2 |")
    'Fleet\na, b\n1, 2'
    """
    lines = [one for one in text.splitlines() if one.strip("|-: ") or not one.startswith("|")]
    bare = [
        ", ".join(part.strip() for part in one.strip("| ").split("|")) if one[:1] == "|" else one
        for one in lines
    ]
    return "\n".join(bare)


def as_sentence(text: str) -> str:
    """Return words of an error as a sentence.

    >>> sentence("the question is empty"), sentence("Ask again."), sentence("")
    ('The question is empty.', 'Ask again.', '')
    """
    return text[:1].upper() + text[1:] + ("" if text[-1:] in {"", ".", "?", "!"} else ".")


def format_detail(value: Any) -> str:
    """Return what a step says, of whatever form, in words.

    >>> told({"#1": ["Ada", "Bo"], "of": 2}), told([["a", 0.5]]), told(None)
    ('#1: Ada, Bo; of: 2', 'a, 0.5', '')
    """
    if isinstance(value, dict):
        return "; ".join(f"{key}: {format_detail(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_detail(one) for one in value)
    return "" if value is None else str(value)


def format_percent(value: float) -> str:
    """Return a number from 0 to 1 as per cent.

    >>> share(0.5), share(1.0)
    ('50 %', '100 %')
    """
    return f"{100 * value:.0f} %"


def format_score(value: float) -> str:
    """Return a score with the digits that matter.

    >>> number(0.0165), number(1.0), number(0.33977)
    ('0.017', '1', '0.34')
    """
    return f"{value:.2g}"
