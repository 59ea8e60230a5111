"""Places for work that threads do: some at once, some waiting, the others refused while they still listen."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.app.web import history
from clew.app.web.errors import LOG, SERVER_FAULT, ServerBusy, error_to_dict
from clew.app.web.events import EventChannel
from clew.core.errors import ClewError, NotFound

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.model_pool import ModelPool
    from clew.app.web.settings import ModelChoice, Settings
    from clew.core.types import Answer, Step


class AdmissionLimiter:
    """``most`` pieces of work at once, ``waiting`` more for their turn; ``what`` they are called in a refusal."""

    def __init__(self, most: int, waiting: int, what: str) -> None:
        self._free = threading.Semaphore(most)
        self._most = most + waiting
        self._what = what
        self._in = 0
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, retry_after: int = 5) -> Iterator[None]:
        """Hold a place, once it is free. Raises Busy where too many wait already."""
        with self._lock:
            if self._in >= self._most:
                raise ServerBusy(f"{self._in} {self._what} are under way or wait for their turn", retry_after)
            self._in += 1
        try:
            with self._free:
                yield
        finally:
            with self._lock:
                self._in -= 1


#: Questions that have ended and whose events are kept, for readers that come back; the answers are in the history.
_KEPT = 32
#: Searches that wait for their turn; all that wait share their threads with the pages.
_WAITING = 16
#: Seconds that questions get to come to an end when the server does.
_PARTING = 5.0


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question as a request puts it. ``recipe`` and ``model`` are ids of choices; ``documents`` are keys.
    ``beside`` is the id of a question that this one is compared with."""

    question: str
    recipe: str = "default"
    model: str | None = None
    documents: tuple[str, ...] | None = None
    graphs: tuple[str, ...] | None = None
    chain: str = ""
    beside: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON-compatible dictionary."""
        return {
            "question": self.question,
            "recipe": self.recipe,
            "model": self.model,
            "documents": None if self.documents is None else list(self.documents),
            "graphs": None if self.graphs is None else list(self.graphs),
            "chain": self.chain,
            "beside": self.beside,
        }


@dataclass(slots=True)
class QuestionJob:
    """A question on its way to an answer. Its events: ``waiting``, ``running``, a ``step`` for each step of the
    trail, and at the end ``answer`` or ``problem``."""

    id: str
    base: ServedBase
    request: QuestionRequest
    recipe: str
    model: ModelChoice | None
    events: EventChannel = field(default_factory=EventChannel)
    stop_requested: bool = False
    state: str = history.WAITING
    future: Future[None] | None = None


class QuestionQueue:
    """Answers questions in threads of its own. A context in which all jobs end when it is closed.

    ``searches`` and ``chats`` are the places for what is asked in threads of others; ``lender`` has the models.
    """

    def __init__(self, settings: Settings, lender: ModelPool) -> None:
        self.models = lender
        self._limits = settings.limits
        self._pool = ThreadPoolExecutor(self._limits.asks, thread_name_prefix="clew-ask")
        self._jobs: OrderedDict[str, QuestionJob] = OrderedDict()
        self._open: dict[str, QuestionJob] = {}
        self._lock = threading.Lock()
        self._seconds = 1.0  # what a question took lately, on average
        self._closed = False
        self.search_slots = AdmissionLimiter(2 * self._limits.asks, _WAITING, "searches")
        self.chat_slots = AdmissionLimiter(self._limits.asks, self._limits.waiting, "questions")

    def submit(
        self, base: ServedBase, asked: QuestionRequest, recipe: str, model: ModelChoice | None
    ) -> QuestionJob:
        """Take a question on. Raises Busy where too many wait already."""
        job = QuestionJob(secrets.token_hex(8), base, asked, recipe, model)
        with self._lock:
            if self._closed:
                raise ServerBusy("the server is being shut down", 10, status=503)
            if len(self._open) >= self._limits.asks + self._limits.waiting:
                turns = len(self._open) / self._limits.asks
                raise ServerBusy(
                    f"{len(self._open)} questions are being answered or wait; more are not taken on",
                    max(1, min(60, round(turns * self._seconds / 2))),
                )
            self._open[job.id] = self._jobs[job.id] = job
            ahead = max(0, len(self._open) - self._limits.asks)
        try:
            base.history.begin(job.id, asked.to_dict())
            job.events.send("waiting", {"id": job.id, "ahead": ahead})
            job.future = self._pool.submit(self._run, job)
        except BaseException:
            self._put_away(job)
            raise
        return job

    def get(self, base: ServedBase, id: str) -> QuestionJob | None:
        """Return a question of a base that is being answered, or was lately; None for others."""
        job = self._jobs.get(id)
        return job if job is not None and job.base is base else None

    def entry(self, base: ServedBase, id: str) -> dict[str, Any]:
        """Return a question of the history whole, as one that failed where it has ended and nothing could be written
        of that. Raises NotFound."""
        entry, job = base.history.get(id), self.get(base, id)
        if entry["state"] in history.FINAL_STATES or (job is not None and not job.events.closed):
            return entry
        entry = base.history.get(id)  # it may have ended between the two
        if entry["state"] not in history.FINAL_STATES:
            lost = {"error": "what became of this question could not be kept", "hint": "Is the disk full?"}
            entry |= {"state": history.FAILED, "problem": lost}
        return entry

    def stop(self, base: ServedBase, id: str) -> QuestionJob:
        """Ask a question to stop: at once if it waits, else after the step that it is at. Raises NotFound."""
        job = self.get(base, id)
        if job is None:
            raise NotFound(f"no question '{id}' is being answered")
        job.stop_requested = True
        if job.future is not None and job.future.cancel():
            job.state = history.STOPPED
            self._finish(job, problem={"error": "stopped before it was its turn", "hint": ""})
        return job

    def queue_lengths(self) -> dict[str, int]:
        """Return how many questions are being answered, and how many wait."""
        running = sum(one.state == history.RUNNING for one in list(self._open.values()))
        return {"running": running, "waiting": len(self._open) - running}

    def stop_all(self) -> None:
        """Take no more questions on, stop those that are being answered, and end their events."""
        with self._lock:
            self._closed = True
            jobs = list(self._open.values())
        for job in jobs:
            self.stop(job.base, job.id)
            job.events.close()

    def close(self) -> None:
        """Stop what is being answered, and wait a little for it to end; the outcome is in the history.

        A question that waits for a model's reply cannot be woken: its thread may be there still.
        """
        self.stop_all()
        with self._lock:
            last = [job.future for job in self._open.values() if job.future is not None]
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(last, _PARTING)

    def _run(self, job: QuestionJob) -> None:
        started = time.perf_counter()
        job.state = history.RUNNING
        try:
            job.base.history.set_state(job.id, job.state)
            job.events.send("running", {"id": job.id})
            answer = self._answer(job)
            job.state = history.STOPPED if job.stop_requested else history.DONE
            self._finish(job, answer=answer)
        except ClewError as error:
            job.state = history.FAILED
            self._finish(job, problem=error_to_dict(error))
        # A fault of ours must not leave a reader waiting for ever; the log has it.
        except Exception:  # noqa: BLE001
            LOG.exception("a question could not be answered")
            job.state = history.FAILED
            self._finish(job, problem=SERVER_FAULT)
        finally:
            self._seconds += 0.1 * (time.perf_counter() - started - self._seconds)

    def _answer(self, job: QuestionJob) -> Answer:
        asked, number = job.request, 0

        def watch(step: Step) -> None:
            nonlocal number
            job.events.send("step", {"number": number, **step.to_dict()})
            number += 1

        return job.base.knowledge_base.ask(
            asked.question,
            llm=self.models.lend(job.model, lambda: job.stop_requested),
            recipe=job.recipe,
            documents=asked.documents,
            graphs=asked.graphs,
            chain=asked.chain,
            watch=watch,
            stop=lambda: job.stop_requested,
        )

    def _finish(
        self, job: QuestionJob, answer: Answer | None = None, problem: dict[str, str] | None = None
    ) -> None:
        """Keep the outcome, then tell of it: whoever hears of an answer finds it in the history."""
        shape = None if answer is None else answer.to_dict()
        try:
            job.base.history.finish(job.id, job.state, shape, problem)
        finally:
            told = {"id": job.id, "state": job.state}
            if shape is not None:
                job.events.send("answer", told | shape)
            else:
                job.events.send("problem", told | (problem or {}))
            job.events.close()
            self._put_away(job)

    def _put_away(self, job: QuestionJob) -> None:
        with self._lock:
            self._open.pop(job.id, None)
            ended = [id for id in self._jobs if id not in self._open]
            for id in ended[: max(0, len(ended) - _KEPT)]:
                del self._jobs[id]


# MERGED: Questions being answered: a few at once, some waiting, more refused until there is room.
