"""The web application: its parts, its routes, and the middleware around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI

from clew.app.web.api import bases, documents, graphs, questions, uploads
from clew.app.web.bases import BaseWarmer, ServedBases
from clew.app.web.errors import install_error_handlers
from clew.app.web.guard import RequestGuard
from clew.app.web.method_choices import offered_methods
from clew.app.web.model_pool import ModelPool
from clew.app.web.openai.routes import make_chat_routers
from clew.app.web.page_images import PageImageCache
from clew.app.web.pages import routes as pages
from clew.app.web.pages.render import CompressedPages, RevalidatedStaticFiles
from clew.app.web.question_queue import QuestionQueue
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.app.web.uploads.manager import UploadManager

_STATIC = Path(__file__).parent / "static"


def make_app(settings: Settings) -> FastAPI:
    """Return the server that ``settings`` describe. Its bases are opened here, and closed when the server ends.

    Raises UsageError for a recipe or model that cannot be used, StoreError for a base that cannot be opened, Locked
    for one that another server takes uploads into.
    """
    offered_methods(settings.recipes)
    app = FastAPI(
        title="clew",
        version=version("clew"),
        summary="Grounded question answering over your own documents and knowledge graphs.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=_lifespan,
    )
    app.state.settings, app.state.models = settings, ModelPool(settings)
    app.state.bases = ServedBases(settings)
    install_error_handlers(app)
    for part in (bases, documents, graphs, questions, uploads):
        app.include_router(part.router, prefix="/api")
    # One thread more than there are places: in it, a question without a place is refused.
    app.state.chat_threads = ThreadPoolExecutor(
        settings.limits.asks + settings.limits.waiting + 1, "clew-chat"
    )
    for prefix, router in make_chat_routers(app, settings, app.state.chat_threads):
        app.include_router(router, prefix=prefix)
    app.include_router(pages.router)
    app.mount("/static", RevalidatedStaticFiles(directory=_STATIC), name="static")
    app.add_middleware(CompressedPages)
    app.add_middleware(RequestGuard, settings=settings)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start what works beside the requests, and end it with the server."""
    settings: Settings = app.state.settings
    served: ServedBases = app.state.bases
    queue = QuestionQueue(settings, app.state.models)
    warmer = BaseWarmer(served, lambda: queue.queue_lengths()["running"] > 0)
    upload_manager = UploadManager(settings, warmer.schedule)
    images = PageImageCache(settings.limits.page_cache)
    app.state.server = Server(settings, served, queue, upload_manager, images)
    try:
        upload_manager.start()
        for base in served.all():
            warmer.schedule(base.name)
        yield
    finally:
        queue.close()
        app.state.chat_threads.shutdown(wait=False, cancel_futures=True)
        upload_manager.close()
        warmer.close()
        served.close()
