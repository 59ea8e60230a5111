"""One connection of the server, with the limits that a middleware cannot enforce, since it sees whole requests.

- The headers of a request arrive within ``header_seconds``, however slowly each byte comes.
- A chunk that claims more bytes than any request may have is refused at once, before they are waited for.
- A connection whose reply was sent before the request had ended is closed: what follows would only be thrown away.
- A client that stops reading its reply is given up after ``idle_seconds``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from clew.app.web.settings import Limits

#: Seconds in which a client may read the last bytes of a reply, before its connection is broken off.
_LAST_WORDS = 2.0


class BoundedConnection(H11Protocol):
    """A connection that speaks HTTP/1.1, with the limits of this module."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits: Limits = config.app.state.settings.limits  # type: ignore[union-attr]
        self._largest_chunk = self._limits.upload_bytes + self._limits.body_bytes
        self._headers_due: asyncio.TimerHandle | None = None
        self._reading_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the headers of the first request."""
        super().connection_made(transport)
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        super().connection_lost(exc)
        for timer in (self._headers_due, self._reading_due):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Read what has arrived."""
        super().data_received(data)
        self._watch_headers()
        # h11 hands out the bytes of a chunk as they come, and nowhere says how many it still expects.
        if getattr(getattr(self.conn, "_reader", None), "_bytes_in_chunk", 0) > self._largest_chunk:
            self._refuse_chunk()

    def pause_writing(self) -> None:
        """Stop writing, since the client does not read; after a while give it up."""
        self.flow.pause_writing()
        self._reading_due = self.loop.call_later(self._limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self.flow.resume_writing()
        if self._reading_due is not None:
            self._reading_due.cancel()

    def on_response_complete(self) -> None:
        """Wait for the next request, or close where this one was answered before it had ended."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(_LAST_WORDS, self._end_unread, self.cycle)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(_LAST_WORDS, self.transport.abort)

    def _watch_headers(self) -> None:
        """Start the timer of the headers, or stop it if they are complete."""
        if self.conn.their_state is not h11.IDLE:
            if self._headers_due is not None:
                self._headers_due.cancel()
                self._headers_due = None
        elif self._headers_due is None:
            self._headers_due = self.loop.call_later(self._limits.header_seconds, self._end_headers)

    def _end_headers(self) -> None:
        self._headers_due = None
        # A request that is being answered has its headers; the next timer starts with the next bytes.
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.abort()

    def _end_unread(self, cycle: RequestResponseCycle) -> None:
        """Break off a request that was answered before it ended, if it still has not."""
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()

    def _refuse_chunk(self) -> None:
        """Answer 400, and tell the work on the request that its client is gone."""
        may_answer = self.conn.our_state is h11.SEND_RESPONSE
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        if may_answer:
            self.send_400_response("A chunk is larger than a request may be.")
        else:
            self.transport.abort()
