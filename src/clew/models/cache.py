"""Prompts and completions as JSON: for cache keys and cassettes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from clew.core.config import cache_path
from clew.core.errors import Damaged, StoreError
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.core.types import Usage


def prompt_to_dict(prompt: Prompt) -> dict[str, Any]:
    """Return everything that the reply may depend on, the role, and which sample it is.

    The first sample has the shape of a prompt that is asked once, so that what was kept before is still found.
    """
    shape = asdict(prompt) | {"stop": list(prompt.stop), "schema": prompt.schema and dict(prompt.schema)}
    if not prompt.sample:
        del shape["sample"]
    return shape


def completion_to_dict(completion: Completion) -> dict[str, Any]:
    """Return a completion without whether it came from a cache: that is not its own property."""
    return {"text": completion.text, "model": completion.model, "usage": asdict(completion.usage)}


def completion_from_dict(shape: dict[str, Any]) -> Completion:
    """Return the completion of a shape. Raises KeyError and TypeError where it is damaged."""
    return Completion(str(shape["text"]), Usage(**shape["usage"]), str(shape["model"]))


def json_digest(*parts: Any) -> str:
    """Return the SHA-256 of JSON-compatible values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


CACHE_FILE = "completions.sqlite"
#: Completions are kept as they arrive, this many prompts at a time, so that a failure loses few.
_BATCH = 32
#: Seconds to wait for another process that is writing.
_PATIENCE = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS completion (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"


class CompletionCache:
    """Completions by key, in a SQLite file that several processes may share.

    It holds the models' replies, which may quote documents, and hashes of what they were asked; so it is
    readable by its owner only, and what is forgotten is overwritten. Raises StoreError where the file cannot
    be used.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_path() / CACHE_FILE

    @property
    def size(self) -> int:
        """The size of the file; 0 where nothing is kept."""
        return self.path.stat().st_size if self.path.is_file() and self.count() else 0

    def count(self) -> int:
        """Return how many completions are kept."""
        with self._open() as database:
            return int(database.execute("SELECT count(*) FROM completion").fetchone()[0])

    def find(self, keys: Sequence[str]) -> dict[str, Completion]:
        """Return the completions of those keys that have one."""
        found: dict[str, Completion] = {}
        with self._open() as database:
            for key in dict.fromkeys(keys):
                row = database.execute("SELECT reply FROM completion WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = completion_from_dict(json.loads(row[0]))
        return found

    def put(self, made: dict[str, Completion]) -> None:
        """Keep completions under their keys."""
        rows = [(key, json.dumps(completion_to_dict(completion))) for key, completion in made.items()]
        with self._open() as database:
            database.executemany("INSERT OR REPLACE INTO completion (key, reply) VALUES (?, ?)", rows)

    def clear(self) -> int:
        """Forget everything, of every model; return how many completions there were."""
        if not self.path.is_file():
            return 0
        with self._open() as database:
            return database.execute("DELETE FROM completion").rowcount

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            with contextlib.closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as database, database:
                database.execute("PRAGMA secure_delete = ON")
                database.execute(_TABLE)
                yield database
        except (OSError, sqlite3.OperationalError) as error:
            raise StoreError(
                f"the cache of model replies {self.path} cannot be used: {error}",
                "Name another folder with CLEW_CACHE, or ask without the cache",
            ) from error
        except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
            raise Damaged(
                f"the cache of model replies {self.path} is damaged: {error}",
                "Delete it; nothing else depends on it",
            ) from error


class CachedModel:
    """Keeps the completions of ``model``, by its name, the parameters and the prompt.

    A cached completion costs nothing and says that it is cached; ``charged``, its usage is what asking for it did
    cost, so that the costs of methods that are compared do not depend on which of them asked first. A prompt with
    a temperature is cached like any other: a run that is repeated gives the same.
    """

    def __init__(
        self, model: LanguageModel, cache: CompletionCache | None = None, *, charge_cached: bool = False
    ) -> None:
        self.model = model
        self.cache = cache or CompletionCache()
        self.charge_cached = charge_cached

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError, StoreError."""
        keys = [self._key(prompt) for prompt in prompts]
        found = {key: self._again(completion) for key, completion in self.cache.find(keys).items()}
        missing = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in found}
        fresh: dict[str, Completion] = {}
        for start in range(0, len(missing), _BATCH):
            batch = dict(list(missing.items())[start : start + _BATCH])
            made = dict(zip(batch, self.model.complete(list(batch.values())), strict=True))
            self.cache.put(made)
            fresh |= made
            found |= {key: self._again(completion) for key, completion in made.items()}
        # A prompt that is asked twice in one batch is paid for once.
        return [fresh.pop(key, found[key]) for key in keys]

    def _key(self, prompt: Prompt) -> str:
        # What a reply is for changes nothing about it.
        return json_digest(self.name, prompt_to_dict(replace(prompt, role="")))

    def _again(self, completion: Completion) -> Completion:
        return replace(completion, usage=completion.usage if self.charge_cached else Usage(), cached=True)


# MERGED: Never ask the same thing twice.
