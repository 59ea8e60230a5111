"""Renders the templates of the pages; every text in them is escaped."""

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

from clew.app.answers.view import format_confidence
from clew.app.web.errors import retry_headers, status_code
from clew.core.errors import ClewError
from clew.core.text import shorten

_BACKTICKS = re.compile(r"`{1,2}([^`]+)`{1,2}")
#: The steps of a trail in plain words.
_STEP_NAMES = {
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
    "exact": "Solved the triples exactly",
    "prepare": "Matched the triples with the graph",
    "substitute": "Substituted the unknowns",
    "join graphs": "Joined graphs",
    "sort": "Sorted the candidates",
    "ranked": "Ranked the answers",
    "look in passages": "Looked in passages",
    "follow up": "Asked a follow-up question",
    "reason": "Reasoned",
    "route": "Chose where to ask",
    "respell": "Read a name as a similar one",
    "readings": "Read the question as triples",
    "stopped": "Stopped",
}


@lru_cache(maxsize=1)
def template_environment() -> Environment:
    """Return the templates. An undefined name in a template is an error."""
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "part": lambda text: quote(str(text), safe=""),
        "when": format_time,
        "count": format_count,
        "duration": format_duration,
        "line": lambda text, length=120: shorten(str(text), length),
        "share": format_percent,
        "confidence": format_confidence,
        "number": format_score,
        "flat": flatten_tables,
        "detail": format_detail,
        "sentence": as_sentence,
        "coded": code_markup,
        "doing": lambda name: _STEP_NAMES.get(name, name.capitalize()),
    }
    return environment


def code_markup(text: str) -> Markup:
    """Return escaped text, with the parts in backticks as code.

    >>> code_markup("``<a>`` and `b`")
    Markup('<code>&lt;a&gt;</code> and <code>b</code>')
    """
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))


def render_fragment(name: str, **context: Any) -> str:
    """Return the text of a template."""
    return template_environment().get_template(name).render(**context)


def render_page(name: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a template as a page."""
    return HTMLResponse(render_fragment(name, **context), status_code=status)


class PageRoute(APIRoute):
    """A route of pages: its errors are pages, where those of the API are JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, with its errors turned into pages."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
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

        return handle_errors


def error_page(status: int, problem: str, hint: str = "") -> HTMLResponse:
    """Return the page of an error, with its hint."""
    return render_page("problem.html", status=status, title="clew", problem=problem, hint=hint)


class RevalidatedStaticFiles(StaticFiles):
    """Styles and scripts, which browsers cache and revalidate each time."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file, or 304 if it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


class CompressedPages(GZipMiddleware):
    """Compresses pages, styles and scripts; streams and the API are sent as they are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        compress = scope["type"] == "http" and scope["path"].startswith(("/b/", "/static/"))
        await (super().__call__ if compress else self.app)(scope, receive, send)


def format_time(seconds: float) -> str:
    """Return the date and time of a timestamp in the server's time zone."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%d %b %Y, %H:%M").lstrip("0")


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "page"), format_count(2000, "page"), format_count(2, "query"), format_count(0, "passage")
    ('1 page', '2,000 pages', '2 queries', '0 passages')
    """
    if number != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun}"


def format_duration(seconds: float) -> str:
    """Return a duration in few characters.

    >>> format_duration(0.0004), format_duration(0.25), format_duration(7.31), format_duration(95)
    ('0 s', '0.25 s', '7.3 s', '1 min 35 s')
    """
    if seconds < 0.005:
        return "0 s"
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def flatten_tables(text: str) -> str:
    r"""Return a text with its Markdown tables as lines of values.

    >>> flatten_tables("Fleet\n| a | b |\n| --- | --- |\n| 1 | 2 |")
    'Fleet\na, b\n1, 2'
    """
    lines = [line for line in text.splitlines() if line.strip("|-: ") or not line.startswith("|")]
    return "\n".join(
        ", ".join(cell.strip() for cell in line.strip("| ").split("|")) if line[:1] == "|" else line
        for line in lines
    )


def as_sentence(text: str) -> str:
    """Return the text of an error as a sentence.

    >>> as_sentence("the question is empty"), as_sentence("Ask again."), as_sentence("")
    ('The question is empty.', 'Ask again.', '')
    """
    return text[:1].upper() + text[1:] + ("" if text[-1:] in {"", ".", "?", "!"} else ".")


def format_detail(value: Any) -> str:
    """Return a value of a step's detail in words.

    >>> format_detail({"#1": ["Ada", "Bo"], "of": 2}), format_detail([["a", 0.5]]), format_detail(None)
    ('#1: Ada, Bo; of: 2', 'a, 0.5', '')
    """
    if isinstance(value, dict):
        return "; ".join(f"{key}: {format_detail(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_detail, value))
    return "" if value is None else str(value)


def format_percent(value: float) -> str:
    """Return a number from 0 to 1 as a percentage.

    >>> format_percent(0.5), format_percent(1.0)
    ('50 %', '100 %')
    """
    return f"{100 * value:.0f} %"


def format_score(value: float) -> str:
    """Return a score with two significant digits.

    >>> format_score(0.0165), format_score(1.0), format_score(0.33977)
    ('0.017', '1', '0.34')
    """
    return f"{value:.2g}"
