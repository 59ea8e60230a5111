"""The steps of a question that a thread answers, as an asynchronous stream."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from typing import TypeAlias

from clew.core.types import Answer, Step

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
