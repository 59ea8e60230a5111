"""The web application: its parts, its routes, the middleware around them; and the server that runs it on a socket."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from clew.app.web.api import bases, documents, evidence, graphs, grids, questions, setup, sources, uploads
from clew.app.web.bases import BaseWarmer, ServedBases
from clew.app.web.connection import BoundedConnection
from clew.app.web.embeddings import make_embeddings_routers
from clew.app.web.errors import Problem, describe_errors, install_error_handlers
from clew.app.web.events import StreamLimiter
from clew.app.web.grids import GridRunner
from clew.app.web.guard import RequestGuard, is_for_this_machine
from clew.app.web.method_choices import offered_methods
from clew.app.web.model_pool import ModelPool
from clew.app.web.openai import make_chat_routers
from clew.app.web.pages import routes
from clew.app.web.pages.render import CompressedPages, RevalidatedStaticFiles, error_page
from clew.app.web.question_queue import QuestionQueue
from clew.app.web.server import PageImageCache, Server
from clew.app.web.settings import Settings
from clew.app.web.setup import ModelSetup
from clew.app.web.sources.manager import SourceManager
from clew.app.web.uploads.manager import UploadManager
from clew.core.errors import UsageError

_STATIC = Path(__file__).parent / "static"
#: The statuses of errors that a request to the API may be answered with.
_ERRORS = (400, 401, 403, 404, 408, 409, 413, 414, 415, 421, 422, 429, 500, 502, 503, 507)


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
    app.state.models = ModelPool(settings)
    app.state.bases = ServedBases(settings)
    # A project that another server has is left out.
    settings = replace(settings, bases={name: settings.bases[name] for name in app.state.bases.names()})
    app.state.settings = settings
    install_error_handlers(app, error_page)
    for part in (bases, documents, evidence, graphs, grids, questions, setup, sources, uploads):
        app.include_router(part.router, prefix="/api", responses=describe_errors(Problem, *_ERRORS))
    # One thread more than there are places: in it, a question without a place is refused.
    app.state.chat_threads = ThreadPoolExecutor(
        settings.limits.asks + settings.limits.waiting + 1, "clew-chat"
    )
    app.state.add_routes = partial(add_base_routes, app)
    app.state.add_routes(list(settings.bases))
    app.include_router(routes.router)
    app.mount("/static", RevalidatedStaticFiles(directory=_STATIC), name="static")
    app.add_middleware(CompressedPages)
    app.add_middleware(RequestGuard, settings=settings)
    return app


def add_base_routes(app: FastAPI, names: Sequence[str]) -> None:
    """Add the routes of other programs' protocols for bases. They stay when a base is deleted, and answer 404."""
    known: set[str] = getattr(app.state, "routed_bases", set())
    app.state.routed_bases = known
    fresh = [name for name in names if name not in known]
    known.update(fresh)
    for make_routers in (make_chat_routers, make_embeddings_routers):
        for prefix, router in make_routers(app, app.state.settings, app.state.chat_threads, fresh):
            app.include_router(router, prefix=prefix)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start what works beside the requests, and end it with the server."""
    settings: Settings = app.state.settings
    served: ServedBases = app.state.bases
    queue = QuestionQueue(
        settings, app.state.models, lambda base: (upload_manager.progress(base) or {"files": 0})["files"] > 0
    )
    warmer = BaseWarmer(served, lambda: queue.queue_lengths()["running"] > 0)
    upload_manager = UploadManager(settings, warmer.schedule)
    images = PageImageCache(settings.limits.page_cache)
    streams = StreamLimiter(settings.limits.streams, settings.limits.client_streams)

    def note_source(base: str, is_fresh: bool) -> None:
        if base in upload_manager.events:
            upload_manager.events[base].send("source", {"documents": is_fresh})
        if is_fresh:
            warmer.schedule(base)

    folders = {name: path for name, path in settings.bases.items() if path not in settings.addresses}
    source_manager = SourceManager(folders, note_source, read_only=settings.read_only)
    grid_runner = GridRunner(queue)
    model_setup = None
    if settings.own_settings is not None and is_for_this_machine(settings):
        model_setup = ModelSetup(settings.own_settings, app.state.models, settings.models)
    app.state.server = Server(
        settings, served, queue, upload_manager, source_manager, images, streams, grid_runner, model_setup
    )
    try:
        upload_manager.start()
        for base in served.all():
            warmer.schedule(base.name)
        yield
    finally:
        grid_runner.close()
        queue.close()
        app.state.chat_threads.shutdown(wait=False, cancel_futures=True)
        upload_manager.close()
        source_manager.close()
        warmer.close()
        served.close()


#: Seconds that open connections get when the server is told to end.
_GRACE = 2
#: Connections at the same time, streams of events included; more are answered 503.
_MAX_CONNECTIONS = 1_000
#: Connections that may wait to be accepted.
_BACKLOG = 128
#: Files that may be open at the same time, if the system allows it.
_MAX_FILES = 65_536


class _Server(uvicorn.Server):
    """A uvicorn server that ends the streams of events before it waits for connections to end."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the server."""
        server: Server | None = getattr(self.config.app.state, "server", None)  # type: ignore[union-attr]
        if server is not None:
            server.end_streams()
        await super().shutdown(sockets)


class RunningServer:
    """A context manager around one server. ``run`` serves until a signal, or ``stop``, ends it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._socket = _bind(settings.host, settings.port)
        try:
            self.app = make_app(settings)
        except BaseException:
            self._socket.close()
            raise
        self._server = _Server(
            uvicorn.Config(
                self.app,
                log_level="warning",
                access_log=False,  # the paths of questions and documents stay private
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                limit_concurrency=_MAX_CONNECTIONS,
                http=BoundedConnection,
                h11_max_incomplete_event_size=64 << 10,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self.app.state.bases.close()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address to open."""
        host = self.settings.host
        name = socket.gethostname() if host in {"0.0.0.0", "::"} else host
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}"

    @property
    def is_serving(self) -> bool:
        """Whether requests are answered."""
        return self._server.started

    def run(self) -> None:
        """Serve until told to stop."""
        _raise_file_limit()
        # Questions overlap here, and the limit that one sets (KnowledgeBase.ask) would end with it.
        with threadpool_limits(1, user_api="blas"):
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Tell the server to end; called from any thread."""
        self._server.should_exit = True


def _raise_file_limit() -> None:
    """Allow this process and its children as many open files as the system permits: every connection is one, and
    every memory-mapped part of a base."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise UsageError(f"'{host}' is no address: {error.strerror or error}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # Connections that arrive before the server is ready wait.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", "Take another: --port 0"
        ) from error
    return listener
