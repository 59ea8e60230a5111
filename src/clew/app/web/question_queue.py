"""The questions that a server answers: a few at the same time, some waiting, more refused until there is room."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.app.answers.follow_ups import name_source
from clew.app.web import history
from clew.app.web.errors import LOG, SERVER_FAULT, ServerBusy, error_to_dict
from clew.app.web.events import EventChannel
from clew.core.errors import ClewError, NotFound
from clew.core.types import EVIDENCE_FOR_ALL, Answer, Step

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.model_pool import ModelPool
    from clew.app.web.settings import ModelChoice, Settings


class AdmissionLimiter:
    """Admits ``running`` pieces of work at the same time and lets ``waiting`` more wait; ``noun`` names them in the
    error that the others get."""

    def __init__(self, running: int, waiting: int, noun: str) -> None:
        self._running = threading.Semaphore(running)
        self._limit = running + waiting
        self._noun = noun
        self._admitted = 0
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, retry_after: int = 5) -> Iterator[None]:
        """Hold a place, as soon as one is free. Raises ServerBusy if too many wait already."""
        with self._lock:
            if self._admitted >= self._limit:
                raise ServerBusy(
                    f"{self._admitted} {self._noun} are under way or wait for their turn", retry_after
                )
            self._admitted += 1
        try:
            with self._running:
                yield
        finally:
            with self._lock:
                self._admitted -= 1


#: Questions that have ended and whose events are kept for readers that reconnect; answers are in the history.
_KEPT_JOBS = 32
#: Searches that may wait; they hold threads that also serve the pages.
_WAITING_SEARCHES = 16
#: Seconds that questions get to end with the server.
_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question as requested. ``recipe`` and ``model`` are names of choices, ``documents`` are keys, and ``beside``
    is the id of a question that this one is compared with. A follow-up has the id of the question that it ``follows``
    and the words that were ``typed``; ``question`` is what they were taken to mean, and with ``asks_source`` the
    document that its answer is from is wanted."""

    question: str
    recipe: str = "default"
    model: str | None = None
    documents: tuple[str, ...] | None = None
    graphs: tuple[str, ...] | None = None
    chain: str = ""
    beside: str | None = None
    follows: str | None = None
    typed: str = ""
    asks_source: bool = False

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
            "follows": self.follows,
            "typed": self.typed,
            "asks_source": self.asks_source,
        }


@dataclass(slots=True)
class QuestionJob:
    """A question that waits or is answered. Its events are ``waiting``, ``running``, a ``step`` for each step of the
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
    """Answers questions in its own threads.

    ``search_slots`` and ``chat_slots`` limit the searches and chats that other threads answer; ``models`` has the
    language models; ``is_preparing`` says whether files wait to be read into a base.
    """

    def __init__(
        self, settings: Settings, models: ModelPool, is_preparing: Callable[[str], bool] = lambda base: False
    ) -> None:
        self.models = models
        self._is_preparing = is_preparing
        self._limits = settings.limits
        self._pool = ThreadPoolExecutor(self._limits.asks, thread_name_prefix="clew-ask")
        self._jobs: OrderedDict[str, QuestionJob] = OrderedDict()
        self._open: dict[str, QuestionJob] = {}
        self._lock = threading.Lock()
        self._seconds = 1.0  # moving average of the time that a question takes
        self._closed = False
        self.search_slots = AdmissionLimiter(2 * self._limits.asks, _WAITING_SEARCHES, "searches")
        self.chat_slots = AdmissionLimiter(self._limits.asks, self._limits.waiting, "questions")

    def submit(
        self, base: ServedBase, request: QuestionRequest, recipe: str, model: ModelChoice | None
    ) -> QuestionJob:
        """Accept a question. Raises ServerBusy if too many wait already."""
        job = QuestionJob(secrets.token_hex(8), base, request, recipe, model)
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
            base.history.begin(job.id, request.to_dict())
            job.events.send("waiting", {"id": job.id, "ahead": ahead})
            job.future = self._pool.submit(self._run, job)
        except BaseException:
            self._forget(job)
            raise
        return job

    def get(self, base: ServedBase, id: str) -> QuestionJob | None:
        """Return the job of a question that is being answered, or was recently; None for others."""
        job = self._jobs.get(id)
        return job if job is not None and job.base is base else None

    def entry(self, base: ServedBase, id: str) -> dict[str, Any]:
        """Return a question of the history. It counts as failed if it has ended and its end could not be written.

        Raises NotFound.
        """
        entry, job = base.history.get(id), self.get(base, id)
        if entry["state"] in history.FINAL_STATES or (job is not None and not job.events.is_closed):
            return entry
        entry = base.history.get(id)  # it may have ended between the two
        if entry["state"] not in history.FINAL_STATES:
            problem = {"error": "what became of this question could not be kept", "hint": "Is the disk full?"}
            entry |= {"state": history.FAILED, "problem": problem}
        return entry

    def stop(self, base: ServedBase, id: str) -> QuestionJob:
        """Stop a question: at once if it waits, else after its current step. Raises NotFound."""
        job = self.get(base, id)
        if job is None:
            raise NotFound(f"no question '{id}' is being answered")
        job.stop_requested = True
        if job.future is not None and job.future.cancel():
            job.state = history.STOPPED
            self._finish(job, problem={"error": "stopped before it was its turn", "hint": ""})
        return job

    def stop_base(self, base: ServedBase) -> None:
        """Stop all questions of a base, and wait a little for them to end."""
        with self._lock:
            jobs = [job for job in self._open.values() if job.base is base]
        for job in jobs:
            self.stop(base, job.id)
        wait([job.future for job in jobs if job.future is not None], _GRACE)

    def queue_lengths(self) -> dict[str, int]:
        """Return how many questions are being answered, and how many wait."""
        running = sum(job.state == history.RUNNING for job in list(self._open.values()))
        return {"running": running, "waiting": len(self._open) - running}

    def stop_all(self) -> None:
        """Accept no more questions, stop the current ones, and end their events."""
        with self._lock:
            self._closed = True
            jobs = list(self._open.values())
        for job in jobs:
            self.stop(job.base, job.id)
            job.events.close()

    def close(self) -> None:
        """Stop all questions and wait a little for them to end.

        A thread that waits for a model's reply cannot be interrupted, so it may still run afterwards.
        """
        self.stop_all()
        with self._lock:
            futures = [job.future for job in self._open.values() if job.future is not None]
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(futures, _GRACE)

    def _run(self, job: QuestionJob) -> None:
        started = time.perf_counter()
        job.state = history.RUNNING
        try:
            job.base.history.set_state(job.id, job.state, early=self._is_early(job))
            job.events.send("running", {"id": job.id})
            answer = self._answer(job)
            job.state = history.STOPPED if job.stop_requested else history.DONE
            self._finish(job, answer=answer)
        except ClewError as error:
            job.state = history.FAILED
            self._finish(job, problem=error_to_dict(error))
        # An error of ours must not leave a reader waiting forever; it is logged.
        except Exception:  # noqa: BLE001
            LOG.exception("a question could not be answered")
            job.state = history.FAILED
            self._finish(job, problem=SERVER_FAULT)
        finally:
            self._seconds += 0.1 * (time.perf_counter() - started - self._seconds)

    def _is_early(self, job: QuestionJob) -> bool:
        """Return whether documents that a question is asked of cannot be found yet, or by their words alone."""
        base, documents = job.base.knowledge_base, job.request.documents
        if base.store.snapshot().pending or (documents is None and self._is_preparing(job.base.name)):
            return True
        try:
            return base.encoding.count_missing(documents) > 0
        except ClewError:  # the encoder cannot be used: if the question needs it, its answer says so
            return False

    def _answer(self, job: QuestionJob) -> Answer:
        request, number = job.request, 0

        def watch(step: Step) -> None:
            nonlocal number
            job.events.send("step", {"number": number, **step.to_dict()})
            number += 1

        answer = job.base.knowledge_base.ask(
            request.question,
            llm=self.models.lend(job.model, lambda: job.stop_requested),
            recipe=job.recipe,
            documents=request.documents,
            graphs=request.graphs,
            chain=request.chain,
            evidence_for=EVIDENCE_FOR_ALL,
            watch=watch,
            stop=lambda: job.stop_requested,
        )
        return name_source(answer) if request.asks_source else answer

    def _finish(
        self, job: QuestionJob, answer: Answer | None = None, problem: dict[str, str] | None = None
    ) -> None:
        """Store the outcome, then send it, so that whoever receives an answer finds it in the history."""
        data = None if answer is None else answer.to_dict()
        try:
            job.base.history.finish(job.id, job.state, data, problem)
        finally:
            head = {"id": job.id, "state": job.state}
            if data is not None:
                job.events.send("answer", head | data)
            else:
                job.events.send("problem", head | (problem or {}))
            job.events.close()
            self._forget(job)

    def _forget(self, job: QuestionJob) -> None:
        with self._lock:
            self._open.pop(job.id, None)
            ended = [id for id in self._jobs if id not in self._open]
            for id in ended[: max(0, len(ended) - _KEPT_JOBS)]:
                del self._jobs[id]
