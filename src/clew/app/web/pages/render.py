"""Renders the templates of the pages; every text in them is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
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

from clew.app.answers.view import confidence_percent
from clew.app.web.errors import retry_headers, status_code
from clew.app.web.guard import is_local_user
from clew.app.web.pages import language
from clew.app.web.pages.answer import STEP_WORDS
from clew.app.web.pages.language import gettext, ngettext, pgettext
from clew.app.web.pages.texts import translate_text
from clew.core.errors import ClewError
from clew.core.text import shorten
from clew.core.types import Document

#: Seconds that are a few.
_FEW_SECONDS = 10
#: Characters of a title that says something.
_LEAST_TITLE = 4
#: From which confidence on a stated answer need not be checked against its quote.
_HIGH = 0.75
#: What a sentence ends with, in any of the languages; "" is no sentence.
_SENTENCE_ENDS = frozenset({"", ".", "?", "!", "。", "？", "！", "؟"})
_BACKTICKS = re.compile(r"`{1,2}([^`]+)`{1,2}")


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
    environment.globals |= {
        "theme": current_theme,
        "is_local": is_for_local_user,
        "language": language.current_language,
        "languages": language.LANGUAGES,
        "language_choice": language_choice,
    }
    # Our functions fill messages in and escape as Jinja's "newstyle" ones do, and write numbers as the language does.
    environment.add_extension("jinja2.ext.i18n")
    environment.globals |= {
        "gettext": as_markup(gettext),
        "ngettext": as_markup(ngettext),
        "pgettext": as_markup(pgettext),
    }
    environment.filters |= {
        "project": project_title,
        "part": lambda text: quote(str(text), safe=""),
        "when": format_time,
        "count": language.format_count,
        "integer": language.format_integer,
        "translated": translate_text,
        "duration": format_duration,
        "remaining": format_remaining,
        "line": lambda text, length=120: shorten(str(text), length),
        "share": format_percent,
        "confidence": format_confidence,
        "number": format_score,
        "flat": flatten_tables,
        "detail": format_detail,
        "sentence": as_sentence,
        "coded": code_markup,
        "doing": lambda name: gettext(STEP_WORDS[name]) if name in STEP_WORDS else name.capitalize(),
        "sureness": grade_confidence,
        "plainly": omit_command_line,
        "for_people": omit_command_parts,
        "called": document_title,
    }
    return environment


def as_markup(function: Callable[..., str]) -> Callable[..., Markup]:
    """Wrap a translation function for templates: the message is HTML, values inserted into it are escaped."""

    def translate(*message: Any, **values: Any) -> Markup:
        safe = {name: value if type(value) is int else escape(value) for name, value in values.items()}
        return Markup(function(*message, **safe))

    return translate


def code_markup(text: str) -> Markup:
    """Return escaped text, with the parts in backticks as code.

    >>> code_markup("``<a>`` and `b`")
    Markup('<code>&lt;a&gt;</code> and <code>b</code>')
    """
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))


#: The request that is being answered with a page.
_REQUEST: ContextVar[Request | None] = ContextVar("request", default=None)
#: The cookie with the theme that a browser was set to, and the themes.
THEME_COOKIE, THEMES = "clew_theme", ("light", "dark")


def current_theme() -> str:
    """Return the theme chosen in the browser, "" for the system's."""
    request = _REQUEST.get()
    theme = "" if request is None else request.cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def language_choice() -> str:
    """Return the code of the language that the browser was set to, "" for that of the browser itself."""
    request = _REQUEST.get()
    code = "" if request is None else request.cookies.get(language.LANGUAGE_COOKIE, "")
    return code if code in language.LANGUAGES else ""


def begin_page(request: Request) -> None:
    """Make pages for a request from here on: in its language, for its person."""
    _REQUEST.set(request)
    accepted = request.headers.get("accept-language", "")
    language.set_language(language.choose_language(accepted, language_choice()))


def is_for_local_user() -> bool:
    """Return whether the page is for the person who runs the server, on its machine."""
    request = _REQUEST.get()
    return request is not None and is_local_user(request.app.state.settings, request)


def project_title(name: str) -> str:
    """Return what people call the base ``name``."""
    request = _REQUEST.get()
    if request is None or name not in request.app.state.bases:
        return name
    title: str = request.app.state.bases[name].title
    return title


def render_fragment(name: str, **context: Any) -> str:
    """Return the text of a template."""
    return template_environment().get_template(name).render(**context)


def render_page(name: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a template as a page."""
    return HTMLResponse(render_fragment(name, **context), status_code=status)


class PageRoute(APIRoute):
    """A route of pages: it answers errors with a page; routes of the API answer with JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, with its errors turned into pages."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            begin_page(request)
            try:
                return await handle(request)
            except ClewError as error:
                reply = error_page(request, status_code(error), error.problem, error.hint)
                reply.headers.update(retry_headers(error))
                return reply
            except RequestValidationError:
                return error_page(request, 422, "the address or the form makes no sense")
            except HTTPException as error:
                return error_page(request, error.status_code, str(error.detail))

        return handle_errors


def error_page(request: Request, status: int, problem: str, hint: str = "") -> HTMLResponse:
    """Return the page of an error, with its hint."""
    begin_page(request)
    # The keyword "status" is that of the reply; the template needs it too.
    html = render_fragment("problem.html", title="clew", status=status, problem=problem, hint=hint)
    return HTMLResponse(html, status_code=status)


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
    return language.format_moment(datetime.fromtimestamp(seconds).astimezone())


def format_duration(seconds: float) -> str:
    """Return a duration in few characters.

    >>> format_duration(0.0004), format_duration(0.25), format_duration(7.31), format_duration(95)
    ('0 s', '0.25 s', '7.3 s', '1 min 35 s')
    """
    if seconds >= 60:
        return gettext("%(minutes)s min %(seconds)s s", minutes=int(seconds) // 60, seconds=int(seconds) % 60)
    text = "0" if seconds < 0.005 else f"{seconds:.2f}" if seconds < 1 else f"{seconds:.1f}"
    return gettext("%(seconds)s s", seconds=language.format_decimal(text))


def format_remaining(seconds: float) -> str:
    """Return roughly how long something still takes.

    >>> format_remaining(4), format_remaining(42), format_remaining(125), format_remaining(7300)
    ('a few seconds', 'under a minute', 'about 2 min', 'about 2 h')
    """
    if seconds < _FEW_SECONDS:
        return gettext("a few seconds")
    if seconds < 60:
        return gettext("under a minute")
    if seconds < 5400:
        return gettext("about %(minutes)s min", minutes=round(seconds / 60))
    return gettext("about %(hours)s h", hours=round(seconds / 3600))


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
    text = text[:1].upper() + text[1:]
    return text if text[-1:] in _SENTENCE_ENDS else gettext("%(sentence)s.", sentence=text)


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


def grade_confidence(confidence: float) -> str:
    """Return ``high`` or ``middle`` for the confidence of a stated answer.

    >>> grade_confidence(0.9), grade_confidence(0.7)
    ('high', 'middle')
    """
    return "high" if confidence >= _HIGH else "middle"


def omit_command_line(hint: str) -> str:
    """Return the hint of an error without what only a person at a command line can do.

    >>> omit_command_line("Set a model: --llm ollama:llama3.1"), omit_command_line("Ask for less at a time")
    ('It needs a language model, which whoever runs this server can set', 'Ask for less at a time')
    """
    if re.search(r"--llm|CLEW_LLM", hint):
        return "It needs a language model, which whoever runs this server can set"
    return "" if re.search(r"(?<!\w)--\w|\bclew \w+|`", hint) else hint


def omit_command_parts(reason: str) -> str:
    """Return the reason of a failure without the parts that only a person at a command line can use.

    >>> omit_command_parts("the host is on a private network; If it is meant so: --allow-private")
    'the host is on a private network'
    """
    return "; ".join(part for part in reason.split("; ") if omit_command_line(part) == part)


def document_title(document: Document) -> str:
    """Return what a person calls a document: its title, or its file's name where the title says nothing."""
    title = " ".join(document.title.split())
    says_something = len(title) >= _LEAST_TITLE and any(char.isalpha() for char in title)
    names = {document.name.casefold(), document.name.rpartition(".")[0].casefold()}
    return title if says_something and title.casefold() not in names else document.name


def format_percent(value: float) -> str:
    """Return a number from 0 to 1 as a percentage.

    >>> format_percent(0.5), format_percent(1.0)
    ('50 %', '100 %')
    """
    return gettext("%(number)s %%", number=f"{100 * value:.0f}")


def format_confidence(confidence: float) -> str:
    """Return a confidence from 0 to 1 as a percentage, in the language of the page."""
    percent = confidence_percent(confidence)
    return gettext("%(number)s %%", number=percent) if percent else gettext("under 1 %%")


def format_score(value: float) -> str:
    """Return a score with two significant digits.

    >>> format_score(0.0165), format_score(1.0), format_score(0.33977)
    ('0.017', '1', '0.34')
    """
    return language.format_decimal(f"{value:.2g}")
