"""Never ask the same thing twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clew.config import cache_path
from clew.errors import Damaged, StoreError
from clew.models.wire import completion_of, completion_shape, digest, prompt_shape
from clew.protocols import Completion, LanguageModel, Prompt
from clew.types import Usage

FILE = "completions.sqlite"
#: Completions are kept as they arrive, this many prompts at a time, so that a failure loses few.
_BATCH = 32
_PATIENCE = 30.0


class Cached:
    """Keeps completions in a SQLite file outside every base, keyed by model, parameters and prompt.

    Several processes may share the file. It holds the models' replies and hashes of what they were asked, no
    prompts. A cached completion costs nothing and says that it is cached. A prompt at a temperature is cached
    like any other: a run that is repeated gives the same.
    """

    def __init__(self, model: LanguageModel, path: Path | None = None) -> None:
        self.model = model
        self.path = path or cache_path() / FILE

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError, StoreError."""
        keys = [digest(self.name, prompt_shape(prompt) | {"role": ""}) for prompt in prompts]
        found = self._look_up(keys)
        missing = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in found}
        fresh: dict[str, Completion] = {}
        for start in range(0, len(missing), _BATCH):
            batch = dict(list(missing.items())[start : start + _BATCH])
            made = dict(zip(batch, self.model.complete(list(batch.values())), strict=True))
            self._keep(made)
            fresh |= made
            found |= {key: _free(completion) for key, completion in made.items()}
        # A prompt that is asked twice in one batch is paid for once.
        return [fresh.pop(key, found[key]) for key in keys]

    def clear(self) -> int:
        """Forget everything, of every model; return how many completions there were."""
        with self._open() as database:
            (count,) = database.execute("SELECT count(*) FROM completion").fetchone()
            database.execute("DELETE FROM completion")
        return int(count)

    def _look_up(self, keys: Sequence[str]) -> dict[str, Completion]:
        found: dict[str, Completion] = {}
        with self._open() as database:
            for key in keys:
                row = database.execute("SELECT reply FROM completion WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = _free(completion_of(json.loads(row[0])))
        return found

    def _keep(self, made: dict[str, Completion]) -> None:
        rows = [(key, json.dumps(completion_shape(completion))) for key, completion in made.items()]
        with self._open() as database:
            database.executemany("INSERT OR REPLACE INTO completion (key, reply) VALUES (?, ?)", rows)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The user's own: replies quote the user's documents.
        self.path.touch(mode=0o600)
        database = sqlite3.connect(self.path, timeout=_PATIENCE)
        try:
            with database:
                database.execute("PRAGMA secure_delete = ON")
                database.execute(
                    "CREATE TABLE IF NOT EXISTS completion (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"
                )
                yield database
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"the cache of model replies {self.path} cannot be used: {error}",
                "Name another folder with CLEW_CACHE, or ask without the cache",
            ) from error
        except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
            raise Damaged(
                f"the cache of model replies {self.path} is damaged: {error}",
                "Delete it; nothing else depends on it",
            ) from error
        finally:
            database.close()


def _free(completion: Completion) -> Completion:
    return replace(completion, usage=Usage(), cached=True)
