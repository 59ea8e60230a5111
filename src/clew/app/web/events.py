"""Server-sent events of a piece of work, for readers that connect late or reconnect; and the steps of a question that
a thread answers, as an asynchronous stream."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from anyio import CancelScope
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from clew.app.web.errors import ServerBusy, response_for
from clew.core.types import Answer, Step

#: Seconds after which a client may ask again for a stream that it did not get.
_RETRY_STREAM = 5
#: Seconds without an event after which a comment is sent, so that proxies keep the connection open.
KEEP_ALIVE = 15.0

#: Events that are written together.
_EVENTS_A_WRITE = 256
#: Event numbers are shorter; Python refuses to read numbers of thousands of digits.
_MAX_DIGITS = 18


#: Returns the JSON to send for an event, given its name and its JSON.
RenderData: TypeAlias = Callable[[str, str], str]


class EventChannel:
    """Passes numbered events from threads to any number of readers, and remembers the last ``keep`` of them.

    A reader gets the remembered events, then each event as it happens, until the channel is closed.
    """

    def __init__(self, keep: int = 10_000) -> None:
        self._keep = keep
        self._first = 1  # the number of the oldest event that is remembered
        self._events: list[tuple[str, str]] = []
        self._closed = False
        self._lock = threading.Lock()
        self._wakers: set[Callable[[], None]] = set()

    @property
    def last_number(self) -> int:
        """The number of the latest event; 0 before the first."""
        return self._first + len(self._events) - 1

    @property
    def is_closed(self) -> bool:
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
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def close(self) -> None:
        """End the channel: no more events follow."""
        with self._lock:
            self._closed = True
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    async def follow(self, after: int = 0, render: RenderData | None = None) -> AsyncIterator[str]:
        """Yield the events after number ``after`` in the wire format, until the channel is closed.

        Each text holds one event or several. ``render`` returns the data to send for an event; by default they are
        sent as they are.
        """
        loop, happened = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # The loop may have ended with the server.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(happened.set)

        with self._lock:
            self._wakers.add(wake)
        try:
            while True:
                happened.clear()
                closed, batch = self._after(after)
                # Many at once: a reader that is gone is noticed between two writes, not between two events.
                for start in range(0, len(batch), _EVENTS_A_WRITE):
                    part = batch[start : start + _EVENTS_A_WRITE]
                    yield "".join(
                        f"id: {number}\nevent: {event}\ndata: {render(event, text) if render else text}\n\n"
                        for number, event, text in part
                    )
                    after = part[-1][0]
                if closed:
                    return
                try:
                    await asyncio.wait_for(happened.wait(), KEEP_ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            with self._lock:
                self._wakers.discard(wake)

    def _after(self, number: int) -> tuple[bool, list[tuple[int, str, str]]]:
        with self._lock:
            skip = max(0, number + 1 - self._first)
            first = self._first + skip
            return self._closed, [(first + n, *event) for n, event in enumerate(self._events[skip:])]


def parse_last_event_id(header: str | None) -> int:
    """Return the number of the last event that a reader received; 0 if the header is not a number."""
    return (
        int(header) if header and header.isascii() and header.isdecimal() and len(header) < _MAX_DIGITS else 0
    )


class StreamLimiter:
    """Counts the open streams of events: at most ``total``, of which ``client`` have the same address.

    Where all are taken, an address gets a place from the one that has most, if that has more: nobody who opens
    hundreds of streams keeps others from following their answers.
    """

    def __init__(self, total: int, client: int) -> None:
        self._total = total
        self._client = client
        #: How to end each open stream, by address, the oldest first.
        self._open: dict[str, dict[object, Callable[[], None]]] = {}

    @contextmanager
    def open_stream(self, client: str, end: Callable[[], None]) -> Iterator[None]:
        """Hold a place for a stream to an address; ``end`` ends it. Raises ServerBusy if too many are open."""
        streams, count = self._open.get(client, {}), sum(map(len, self._open.values()))
        most = max(self._open.values(), key=len, default=streams)
        is_full = count >= self._total
        if len(streams) >= self._client or (is_full and len(most) <= len(streams) + 1):
            raise ServerBusy(f"{count} streams of events are open", _RETRY_STREAM, status=503)
        if is_full:
            oldest = next(iter(most))
            end_oldest = most.pop(oldest)
            end_oldest()
        place = object()
        self._open.setdefault(client, {})[place] = end
        try:
            yield
        finally:
            streams = self._open.get(client, {})
            streams.pop(place, None)
            if not streams:
                self._open.pop(client, None)


class EventStream(StreamingResponse):
    """The reply that sends events as they happen; its headers keep proxies from buffering them."""

    def __init__(self, events: AsyncIterator[str]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)


class CountedEventStream(EventStream):
    """An event stream that anyone can open and that lasts as long as its reader likes. Where too many are open it is
    a 503 instead."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, or the refusal."""
        limiter: StreamLimiter = scope["app"].state.server.streams
        client = scope.get("client")
        place = CancelScope()
        try:
            with limiter.open_stream(client[0] if client else "", place.cancel), place:
                await super().__call__(scope, receive, send)
            if place.cancelled_caught:
                # Its reader opens the stream again later, after the last event that it received.
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ServerBusy as error:
            await response_for(error)(scope, receive, send)


def stream_channel(
    channel: EventChannel, after: str | None, render: RenderData | None = None
) -> CountedEventStream:
    """Return the reply that streams a channel; ``after`` is the Last-Event-ID of a reader that reconnects."""
    return CountedEventStream(channel.follow(parse_last_event_id(after), render))


#: Answers a question; called with a receiver of steps and a function that says whether to stop.
QuestionWork: TypeAlias = Callable[[Callable[[Step], None], Callable[[], bool]], Answer]


async def stream_steps(work: QuestionWork, executor: Executor | None = None) -> AsyncGenerator[Step | Answer]:
    """Yield the steps of ``work`` as they happen, and its answer last. Raises the exceptions of ``work``.

    If the stream is closed or cancelled before the answer, the work is told to stop, which it does between two steps;
    nobody waits for it. ``executor`` is by default the event loop's own.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Step | None] = asyncio.Queue()
    stop = threading.Event()

    def watch(step: Step) -> None:
        if not stop.is_set():
            loop.call_soon_threadsafe(queue.put_nowait, step)

    done = loop.run_in_executor(executor, work, watch, stop.is_set)
    done.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (step := await queue.get()) is not None:
            yield step
        yield done.result()
    finally:
        stop.set()
        done.cancel()  # work that still waits for a thread is never started
