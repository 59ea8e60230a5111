"""The pages of bases, documents and graphs. What they show comes from the same places as the JSON API."""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from clew.app.web.guard import cookie_name, secrets_equal, session_value
from clew.app.web.pages import questions as questionpages
from clew.app.web.pages.context import document_lists, render_home, upload_lists
from clew.app.web.pages.render import PageRoute, render_page
from clew.app.web.pages.source import view_source
from clew.app.web.server import CurrentBase, CurrentServer
from clew.core.errors import NotFound
from clew.core.types import SECTION, TABLE
from clew.knowledge_base.graphs import entity_triples

router = APIRouter(include_in_schema=False, route_class=PageRoute)
#: Seconds that a wrong token costs: guessing is slow, and nobody notices who mistypes.
_WRONG_TOKEN = 0.3
#: Days for which a browser remembers that it has given the token.
_REMEMBERED = 30
#: Lines of an outline, relations of a schema, and triples of each relation that a page shows.
_OUTLINE, _RELATIONS, _TRIPLES = 2_000, 500, 25


@router.get("/")
def home(server: CurrentServer) -> Response:
    """Show the bases; where there is one, go there."""
    bases = server.bases.all()
    if len(bases) == 1:
        return RedirectResponse(f"/b/{bases[0].name}/", status_code=303)
    sizes = [(one.name, one.knowledge_base.info(digest=False)) for one in bases]
    return render_page("home.html", title="clew", bases=sizes, locked=server.settings.token is not None)


@router.get("/b/{base}/")
def base(
    server: CurrentServer,
    base: CurrentBase,
    find: str = "",
    question: str = "",
    chain: str = "",
    before: float | None = None,
) -> HTMLResponse:
    """Show one base: where to ask, what was asked (``before`` a time), its documents and graphs. ``question`` and
    ``chain`` are in the form already."""
    return render_home(server, base, {"question": question, "chain": chain}, find=find, before=before)


@router.get("/b/{base}/part/documents")
def documents(server: CurrentServer, base: CurrentBase, find: str = "") -> HTMLResponse:
    """Give the lists of documents and graphs, as the page of the base has them."""
    return render_page("part-documents.html", base=base.name, **document_lists(server, base, find))


@router.get("/b/{base}/part/uploads")
def uploads(server: CurrentServer, base: CurrentBase) -> HTMLResponse:
    """Give the list of uploads, as the page of the base has it."""
    return render_page("part-uploads.html", base=base.name, **upload_lists(server, base))


@router.get("/b/{base}/d/{key}")
def document(
    key: str, server: CurrentServer, base: CurrentBase, at: int | None = None, part: bool = False
) -> HTMLResponse:
    """Show a document's outline, or where one of its nodes stands: the one at position ``at``."""
    known = base.knowledge_base.store.document(key)
    if at is not None:
        return render_page(
            "part-source.html" if part else "source.html",
            title=known.name,
            base=base.name,
            number=0,
            cited=None,
            source=view_source(server, base, f"{known.key}:{at}"),
            gone="",
            around=(),
            back=f"/b/{base.name}/d/{known.key}",
        )
    nodes = base.knowledge_base.tree(known.key)
    outline = [one for one in nodes if one.kind in {SECTION, TABLE}]
    return render_page(
        "document.html",
        title=known.name,
        base=base.name,
        document=known,
        outline=outline[:_OUTLINE],
        more=max(0, len(outline) - _OUTLINE),
        passages=sum(one.kind == "passage" for one in nodes),
        tables=sum(one.kind == TABLE for one in nodes),
        first=next((one.position for one in nodes if one.kind in {"passage", TABLE}), None),
        read_only=server.settings.read_only,
    )


@router.get("/b/{base}/g/{graph}")
def graph(
    graph: str, server: CurrentServer, base: CurrentBase, called: Annotated[str, Query(max_length=1_000)] = ""
) -> HTMLResponse:
    """Show what a graph holds, or what it says of the nodes that are ``called`` so."""
    found = base.knowledge_base.graphs.get(graph)
    entities, problem = [], ""
    if called:
        try:
            entities = [
                (one, entity_triples(found, one, _TRIPLES))
                for one in base.knowledge_base.graphs.entities(graph, called)[:20]
            ]
        except NotFound as error:
            problem = error.problem
    relations = sorted(found.relations().items(), key=lambda one: (-one[1].edges, one[0]))
    return render_page(
        "graph.html",
        title=graph,
        base=base.name,
        graph=graph,
        size=found.size,
        types=sorted(found.types().items(), key=lambda one: (-one[1], one[0])),
        relations=relations[:_RELATIONS],
        more=max(0, len(relations) - _RELATIONS),
        called=called,
        entities=entities,
        problem=problem,
        read_only=server.settings.read_only,
    )


router.include_router(questionpages.router)


@router.get("/b/{base}/{rest:path}")
def nowhere(base: str, rest: str) -> HTMLResponse:
    """Explain that there is no such page."""
    raise NotFound("there is no page at this address", "It may be of a question that was forgotten")


@router.get("/api/docs")
def docs(request: Request) -> HTMLResponse:
    """List the routes of the JSON API, from its OpenAPI description; nothing is loaded from elsewhere."""
    described = request.app.openapi()
    routes = [
        (method.upper(), path, operation.get("description") or operation.get("summary", ""))
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    return render_page("docs.html", title="API", described=described, routes=routes)


@router.get("/login")
def login_page(server: CurrentServer) -> Response:
    """Ask for the token, where one is set."""
    if server.settings.token is None:
        return RedirectResponse("/", status_code=303)
    return render_page("login.html", title="clew", wrong=False)


@router.post("/login")
async def login(request: Request, server: CurrentServer) -> Response:
    """Take the token and remember, in a cookie that scripts cannot read, that it was right."""
    token = server.settings.token
    given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0].strip()
    if token is None:
        return RedirectResponse("/", status_code=303)
    if not secrets_equal(given, token):
        await asyncio.sleep(_WRONG_TOKEN)
        return render_page("login.html", status=401, title="clew", wrong=True)
    done = RedirectResponse("/", status_code=303)
    done.set_cookie(
        cookie_name(token),
        session_value(token),
        max_age=_REMEMBERED * 86_400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return done


@router.post("/logout")
def logout(server: CurrentServer) -> Response:
    """Let this browser forget that it gave the token."""
    done = RedirectResponse("/login", status_code=303)
    if server.settings.token is not None:
        done.delete_cookie(cookie_name(server.settings.token), httponly=True, samesite="strict")
    return done
