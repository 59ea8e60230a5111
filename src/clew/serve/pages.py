"""The pages: HTML from templates, every text escaped. What they show comes from the same places as the JSON API."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from clew.serve.guard import COOKIE, same, session
from clew.serve.server import Here, Opened

router = APIRouter(include_in_schema=False)
#: Seconds that a wrong token costs: guessing is slow, and nobody notices who mistypes.
_WRONG_TOKEN = 0.3
#: Days for which a browser remembers that it has given the token.
_REMEMBERED = 30


@lru_cache(maxsize=1)
def templates() -> Environment:
    """Return the templates. A name that is not given is an error, not an empty place."""
    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)


def page(name: str, status: int = 200, **given: Any) -> HTMLResponse:
    """Return the page of a template."""
    return HTMLResponse(templates().get_template(name).render(**given), status_code=status)


@router.get("/")
def home(here: Here) -> Response:
    """Show the bases; where there is one, go there."""
    bases = here.shelf.every()
    if len(bases) == 1:
        return RedirectResponse(f"/b/{bases[0].name}/", status_code=303)
    return page("home.html", title="clew", bases=[one.name for one in bases])


@router.get("/b/{base}/")
def base(here: Here, opened: Opened) -> HTMLResponse:
    """Show one base: its documents, and where to ask."""
    return page(
        "base.html",
        title=opened.name,
        base=opened.name,
        documents=opened.base.documents(),
        read_only=here.settings.read_only,
    )


@router.get("/api/docs")
def docs(request: Request) -> HTMLResponse:
    """List the routes of the JSON API, from its OpenAPI description; nothing is loaded from elsewhere."""
    described = request.app.openapi()
    routes = [
        (method.upper(), path, operation.get("description") or operation.get("summary", ""))
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    return page("docs.html", title="API", described=described, routes=routes)


@router.get("/login")
def login_page(here: Here) -> Response:
    """Ask for the token, where one is set."""
    if here.settings.token is None:
        return RedirectResponse("/", status_code=303)
    return page("login.html", title="clew", wrong=False)


@router.post("/login")
async def login(request: Request, here: Here) -> Response:
    """Take the token and remember, in a cookie that scripts cannot read, that it was right."""
    token = here.settings.token
    given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0].strip()
    if token is None:
        return RedirectResponse("/", status_code=303)
    if not same(given, token):
        await asyncio.sleep(_WRONG_TOKEN)
        return page("login.html", status=401, title="clew", wrong=True)
    done = RedirectResponse("/", status_code=303)
    done.set_cookie(
        COOKIE,
        session(token),
        max_age=_REMEMBERED * 86_400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return done
