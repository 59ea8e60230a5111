"""Runs a server: a socket that is bound before anything is printed, and uvicorn over it."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

import uvicorn

from clew.app.web.application import make_app
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.core.errors import UsageError

#: Seconds that open connections (events that are followed) get when the server is told to end.
_PARTING = 2
#: Connections at once; more are answered 503. Each that follows events is one.
_CONNECTIONS = 1_000
_WAITING = 128
#: Files that may be open at once, where the system allows it.
_FILES = 65_536


class _Server(uvicorn.Server):
    """A server that ends what is followed before it waits for connections to end."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        parts: Server | None = getattr(self.config.app.state, "server", None)  # type: ignore[union-attr]
        if parts is not None:
            parts.end_streams()
        await super().shutdown(sockets)


class RunningServer:
    """A context manager around one server. ``run`` serves until a signal, or ``stop``, ends it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._socket = _bound(settings.host, settings.port)
        try:
            self.app = make_app(settings)
        except BaseException:
            self._socket.close()
            raise
        self._server = _Server(
            uvicorn.Config(
                self.app,
                log_level="warning",
                access_log=False,  # addresses of questions and documents are nobody's business
                server_header=False,
                timeout_graceful_shutdown=_PARTING,
                limit_concurrency=_CONNECTIONS,
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
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    @property
    def started(self) -> bool:
        """Whether requests are answered."""
        return self._server.started

    def run(self) -> None:
        """Serve until told to stop."""
        _many_files()
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Tell the server to end; called from any thread."""
        self._server.should_exit = True


def _many_files() -> None:
    """Let this process, and those that it starts, have as many files open as the system allows: each part of a base
    that is read in place is one, and each connection."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
    except OSError as error:
        raise UsageError(f"'{host}' is no address: {error.strerror or error}") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        # Who comes before the server is ready waits, and is not turned away.
        made.listen(_WAITING)
    except OSError as error:
        made.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", "Take another: --port 0"
        ) from error
    return made
