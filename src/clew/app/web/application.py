"""The app: its parts, its routes, and what stands before them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI

from clew.app.web import method_choices as choices
from clew.app.web.api import bases, documents, graphs, questions, uploads
from clew.app.web.bases import BaseWarmer, ServedBases
from clew.app.web.errors import install_error_handlers
from clew.app.web.guard import RequestGuard
from clew.app.web.model_pool import ModelPool
from clew.app.web.openai.routes import make_chat_routers
from clew.app.web.page_images import PageImageCache
from clew.app.web.pages import routes as pages
from clew.app.web.pages.render import CompressedPages, RevalidatedStaticFiles
from clew.app.web.question_queue import QuestionQueue
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.app.web.uploads.manager import UploadManager

_HERE = Path(__file__).parent


def make_app(settings: Settings) -> FastAPI:
    """Return the server that ``settings`` describe. Its bases are opened here, and closed when it ends.

    Raises UsageError for a recipe or model that cannot be used, StoreError for a base that cannot be opened, Locked
    for one that another server takes uploads into.
    """
    choices.offered_methods(settings.recipes)
    lender = ModelPool(settings)
    shelf = ServedBases(settings)
    app = FastAPI(
        title="clew",
        version=version("clew"),
        summary="Grounded question answering over your own documents and knowledge graphs.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=_running,
    )
    app.state.settings, app.state.shelf, app.state.lender = settings, shelf, lender
    install_error_handlers(app)
    for part in (bases, documents, graphs, questions, uploads):
        app.include_router(part.router, prefix="/api")
    # One more than have a place: in it, whoever has none is told so.
    app.state.threads = ThreadPoolExecutor(settings.limits.asks + settings.limits.waiting + 1, "clew-chat")
    for prefix, routes in make_chat_routers(app, settings, app.state.threads):
        app.include_router(routes, prefix=prefix)
    app.include_router(pages.router)
    app.mount("/static", RevalidatedStaticFiles(directory=_HERE / "static"), name="static")
    app.add_middleware(CompressedPages)
    app.add_middleware(RequestGuard, settings=settings)
    return app


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    shelf: ServedBases = app.state.shelf
    asking = QuestionQueue(settings, app.state.lender)
    warming = BaseWarmer(shelf, lambda: asking.queue_lengths()["running"] > 0)
    taking = UploadManager(settings, warming.schedule)
    app.state.server = Server(settings, shelf, asking, taking, PageImageCache(settings.limits.page_cache))
    try:
        taking.start()
        for one in shelf.all():
            warming.schedule(one.name)
        yield
    finally:
        asking.close()
        app.state.threads.shutdown(wait=False, cancel_futures=True)
        taking.close()
        warming.close()
        shelf.close()
