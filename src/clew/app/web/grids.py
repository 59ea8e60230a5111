"""Grids of the app: documents by questions, answered one after another in a thread, kept in the folder of the base.

A grid has a folder ``grids/ID`` with what was asked and the cells that are answered, so that one that was stopped, or
whose server ended, goes on where it was."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.app.web.errors import LOG, ServerBusy
from clew.core.errors import ClewError, NotFound, UsageError
from clew.core.files import create_folder, open_private, replace_file
from clew.knowledge_base.grid import Grid

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.app.web.question_queue import QuestionQueue

FOLDER = "grids"
#: Questions and cells of one grid, and grids that wait.
MAX_QUESTIONS, MAX_CELLS, _MAX_WAITING = 50, 20_000, 8
#: Seconds that a cell gets to end.
_GRACE = 5.0
_ID = re.compile(r"[0-9a-f]{12}")


class _Stopped(Exception):
    """A grid ends after the current cell."""


@dataclass(slots=True)
class _Run:
    """A grid that waits or is being answered."""

    grid: Grid
    started: float = 0.0
    done: int = 0
    begun_with: int = 0
    error: str = ""
    stop: threading.Event = field(default_factory=threading.Event)


class GridRunner:
    """Answers the grids of a server, one at a time."""

    def __init__(self, queue: QuestionQueue) -> None:
        self._queue = queue
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="clew-grid")
        self._runs: dict[str, _Run] = {}
        self._errors: dict[str, str] = {}
        self._lock = threading.Lock()

    def create(self, base: ServedBase, questions: Sequence[str], documents: Sequence[str]) -> str:
        """Begin a grid and return its id; without ``documents`` (keys), of all. Raises UsageError, NotFound."""
        id = secrets.token_hex(6)
        folder = base.knowledge_base.path / FOLDER / id
        chosen = list(documents) or None
        grid = Grid(base.knowledge_base, questions, folder / "cells.jsonl", documents=chosen)
        if len(grid.questions) > MAX_QUESTIONS:
            raise UsageError(f"a grid has at most {MAX_QUESTIONS} questions")
        if not grid.documents or len(grid.questions) * len(grid.documents) > MAX_CELLS:
            raise UsageError(
                "there are no documents" if not grid.documents else f"a grid has at most {MAX_CELLS:,} cells"
            )
        create_folder(folder)
        open_private(grid.file).close()
        asked = {"questions": grid.questions, "documents": chosen, "asked": time.time()}
        replace_file(folder / "asked.json", json.dumps(asked, ensure_ascii=False))
        self.go_on(base, id)
        return id

    def go_on(self, base: ServedBase, id: str) -> None:
        """Answer the open cells of a grid. Raises NotFound, ServerBusy."""
        with self._lock:
            if id in self._runs:
                return
            if len(self._runs) >= _MAX_WAITING:
                raise ServerBusy(f"{len(self._runs)} grids wait already", 60)
            run = _Run(self._open(base, id, with_model=True))
            self._runs[id] = run
            self._errors.pop(id, None)
        self._pool.submit(self._fill, id, run)

    def stop(self, id: str) -> None:
        """Stop a grid after its current cell."""
        if (run := self._runs.get(id)) is not None:
            run.stop.set()

    def stop_base(self, base: ServedBase) -> None:
        """Stop the grids of a base, and wait a little for the current cell."""
        for record in self.all_grids(base):
            self.stop(record["id"])
            deadline = time.monotonic() + _GRACE
            while record["id"] in self._runs and time.monotonic() < deadline:
                time.sleep(0.05)

    def delete(self, base: ServedBase, id: str) -> None:
        """Delete a grid. Raises NotFound, and ServerBusy while it is being answered."""
        if id in self._runs:
            raise ServerBusy("this grid is being answered: stop it first", 2)
        shutil.rmtree(self._folder(base, id))

    def all_grids(self, base: ServedBase) -> list[dict[str, Any]]:
        """Return the grids of a base, the latest first."""
        folder = base.knowledge_base.path / FOLDER
        records = []
        for file in folder.glob("*/asked.json") if folder.is_dir() else ():
            records.append({"id": file.parent.name, **json.loads(file.read_text("utf-8"))})
        return sorted(records, key=lambda record: -record["asked"])

    def progress(self, id: str) -> dict[str, Any]:
        """Return the state of a grid: ``waiting``, ``running`` with the seconds that are left, or ``ended``."""
        run = self._runs.get(id)
        if run is None:
            return {"state": "ended", "error": self._errors.get(id, "")}
        total = len(run.grid.documents) * len(run.grid.questions)
        fresh = run.done - run.begun_with
        left = (time.monotonic() - run.started) * (total - run.done) / fresh if fresh else None
        return {
            "state": "running" if run.started else "waiting",
            "done": run.done,
            "total": total,
            "seconds_left": left,
        }

    def read(self, base: ServedBase, id: str) -> Grid:
        """Return a grid with the cells that are answered. Raises NotFound."""
        run = self._runs.get(id)
        return self._open(base, id) if run is None else run.grid

    def close(self) -> None:
        """Stop all grids; the next server can go on with them."""
        for run in list(self._runs.values()):
            run.stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _folder(self, base: ServedBase, id: str) -> Path:
        folder = base.knowledge_base.path / FOLDER / id
        if not _ID.fullmatch(id) or not folder.is_dir():
            raise NotFound(f"no grid '{id}'")
        return folder

    def _open(self, base: ServedBase, id: str, *, with_model: bool = False) -> Grid:
        folder = self._folder(base, id)
        asked = json.loads((folder / "asked.json").read_text("utf-8"))
        known = {document.key for document in base.knowledge_base.documents()}
        keys = None if asked["documents"] is None else [key for key in asked["documents"] if key in known]
        choice = self._queue.models.choice(asked.get("model")) if asked.get("model") else None
        if with_model and "model" not in asked:
            choice = self._queue.models.choice(None)
            asked["model"] = "none" if choice is None else choice.id
            replace_file(folder / "asked.json", json.dumps(asked, ensure_ascii=False))
        model = self._queue.models.lend(choice, lambda: False)
        return Grid(
            base.knowledge_base, asked["questions"], folder / "cells.jsonl", documents=keys, llm=model
        )

    def _fill(self, id: str, run: _Run) -> None:
        def note(done: int, total: int) -> None:
            run.done = done
            if run.stop.is_set():
                raise _Stopped

        try:
            total = len(run.grid.documents) * len(run.grid.questions)
            run.begun_with = run.done = total - len(run.grid.missing())
            run.started = time.monotonic()
            if not run.stop.is_set():
                run.grid.fill(progress=note)
        except _Stopped:
            pass
        except ClewError as error:
            self._errors[id] = str(error)
        # An error of ours must not leave a page waiting for ever; it is logged.
        except Exception:  # noqa: BLE001
            LOG.exception("a grid could not be answered")
            self._errors[id] = "the server made a mistake"
        finally:
            with self._lock:
                self._runs.pop(id, None)
