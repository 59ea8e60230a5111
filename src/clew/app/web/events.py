"""Events of a piece of work, for readers that come late or come back: server-sent events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from fastapi.responses import StreamingResponse

#: Seconds without an event after which a comment is sent, so that nobody takes the connection for dead.
KEEP_ALIVE = 15.0

#: Numbers of events are shorter; whatever is sent, Python reads none of thousands of digits.
_DIGITS = 18


class EventChannel:
    """Numbered events from threads to any number of readers; ``keep`` bounds how many old ones are remembered.

    A reader gets what is remembered, then each event as it happens, until the channel is closed.
    """

    def __init__(self, keep: int = 10_000) -> None:
        self._keep = keep
        self._first = 1  # the number of the oldest event that is remembered
        self._events: list[tuple[str, str]] = []
        self._closed = False
        self._lock = threading.Lock()
        self._wake: set[Callable[[], None]] = set()

    @property
    def last_number(self) -> int:
        """The number of the latest event; 0 before the first."""
        return self._first + len(self._events) - 1

    @property
    def closed(self) -> bool:
        """Whether there will be no more events."""
        return self._closed

    def send(self, event: str, data: Any) -> None:
        """Add an event; ``data`` is JSON-compatible. Called from any thread."""
        text = json.dumps(data, ensure_ascii=False)
        with self._lock:
            if self._closed:
                return
            self._events.append((event, text))
            if len(self._events) > self._keep:
                dropped = len(self._events) - self._keep
                del self._events[:dropped]
                self._first += dropped
            awake = list(self._wake)
        for wake in awake:
            wake()

    def close(self) -> None:
        """Say that this was all."""
        with self._lock:
            self._closed = True
            awake = list(self._wake)
        for wake in awake:
            wake()

    async def follow(self, after: int = 0) -> AsyncIterator[str]:
        """Yield the events after number ``after`` as they are sent over the wire, until the channel is closed."""
        loop, happened = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # The loop is gone when the server is.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(happened.set)

        with self._lock:
            self._wake.add(wake)
        try:
            while True:
                happened.clear()
                closed, batch = self._after(after)
                for number, event, text in batch:
                    yield f"id: {number}\nevent: {event}\ndata: {text}\n\n"
                    after = number
                if closed:
                    return
                try:
                    await asyncio.wait_for(happened.wait(), KEEP_ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            with self._lock:
                self._wake.discard(wake)

    def _after(self, number: int) -> tuple[bool, list[tuple[int, str, str]]]:
        with self._lock:
            skip = max(0, number + 1 - self._first)
            first = self._first + skip
            return self._closed, [(first + n, *one) for n, one in enumerate(self._events[skip:])]


def parse_last_event_id(said: str | None) -> int:
    """Return the number of the last event that a reader had, 0 for what is no number."""
    return int(said) if said and said.isascii() and said.isdecimal() and len(said) < _DIGITS else 0


def stream_channel(channel: EventChannel, after: str | None) -> StreamingResponse:
    """Return the reply that streams a channel; ``after`` is the number that a reader who comes back had seen."""
    return stream_events(channel.follow(parse_last_event_id(after)))


def stream_events(wires: AsyncIterator[str]) -> StreamingResponse:
    """Return the reply that sends events as they come, through proxies that would gather them."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(wires, media_type="text/event-stream", headers=headers)
