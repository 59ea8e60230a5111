"""A cache of completions, so that a model is never asked the same thing twice; and completions as JSON.

The JSON forms of prompts and completions are the keys and values of the cache, and the lines of cassettes
(:mod:`clew.models.cassette`).
"""

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
from clew.core.files import open_private
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.core.types import Usage
from clew.models.wrappers import ModelAround

CACHE_FILE = "completions.sqlite"
#: Prompts that are asked at a time. Their completions are stored at once, so that a failure loses few.
_BATCH = 32
#: Seconds to wait for another process that is writing.
_LOCK_TIMEOUT = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS completion (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"


def prompt_to_dict(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as JSON-compatible values: everything the reply may depend on, the role, and the sample's
    number.

    The first sample is written without its number, as a prompt that is asked once.
    """
    fields = asdict(prompt) | {"stop": list(prompt.stop), "schema": prompt.schema and dict(prompt.schema)}
    if not prompt.sample:
        del fields["sample"]
    # Neither is a word that the model reads.
    del fields["form"], fields["optional"]
    return fields


def completion_to_dict(completion: Completion) -> dict[str, Any]:
    """Return a completion as JSON-compatible values, without whether it came from a cache."""
    return {"text": completion.text, "model": completion.model, "usage": asdict(completion.usage)}


def completion_from_dict(fields: dict[str, Any]) -> Completion:
    """Return the completion of :func:`completion_to_dict`. Raises KeyError and TypeError where it is damaged."""
    return Completion(str(fields["text"]), Usage(**fields["usage"]), str(fields["model"]))


def json_digest(*parts: Any) -> str:
    """Return the SHA-256 of JSON-compatible values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class CompletionCache:
    """Completions by key, in a SQLite file that several processes may share.

    The file has the models' replies, which may quote documents, and hashes of the prompts. It is therefore readable
    by its owner only, and what is deleted is overwritten. Raises StoreError where the file cannot be used, Damaged
    where it is damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_path() / CACHE_FILE

    @property
    def size(self) -> int:
        """The size of the file in bytes; 0 where it has no completions."""
        return self.path.stat().st_size if self.path.is_file() and self.count() else 0

    def count(self) -> int:
        """Return the number of completions."""
        with self._open() as database:
            return int(database.execute("SELECT count(*) FROM completion").fetchone()[0])

    def find(self, keys: Sequence[str]) -> dict[str, Completion]:
        """Return the completions of the keys that have one."""
        completions: dict[str, Completion] = {}
        with self._open() as database:
            for key in dict.fromkeys(keys):
                row = database.execute("SELECT reply FROM completion WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    completions[key] = completion_from_dict(json.loads(row[0]))
        return completions

    def put(self, completions: dict[str, Completion]) -> None:
        """Store completions under their keys."""
        rows = [(key, json.dumps(completion_to_dict(completion))) for key, completion in completions.items()]
        with self._open() as database:
            database.executemany("INSERT OR REPLACE INTO completion (key, reply) VALUES (?, ?)", rows)

    def clear(self) -> int:
        """Delete the completions of all models; return how many there were."""
        if not self.path.is_file():
            return 0
        with self._open() as database:
            return database.execute("DELETE FROM completion").rowcount

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            open_private(self.path, "ab").close()
            with contextlib.closing(sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT)) as database, database:
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


class CachedModel(ModelAround):
    """Caches the completions of ``model`` by the model's name, the parameters and the prompt.

    A cached completion has an empty usage and says that it is cached. With ``charge_cached`` its usage is what asking
    for it did cost, so that the costs of methods that are compared do not depend on which of them asked first. A
    prompt with a temperature is cached like any other: repeating a run gives the same replies.
    """

    def __init__(
        self, model: LanguageModel, cache: CompletionCache | None = None, *, charge_cached: bool = False
    ) -> None:
        self.model = model
        self.cache = cache or CompletionCache()
        self.charge_cached = charge_cached

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError, StoreError."""
        keys = [self._key(prompt) for prompt in prompts]
        cached = {key: self._mark_cached(hit) for key, hit in self.cache.find(keys).items()}
        missing = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in cached}
        new: dict[str, Completion] = {}
        for start in range(0, len(missing), _BATCH):
            batch = dict(list(missing.items())[start : start + _BATCH])
            completions = dict(zip(batch, self.model.complete(list(batch.values())), strict=True))
            self.cache.put(completions)
            new |= completions
            cached |= {key: self._mark_cached(completion) for key, completion in completions.items()}
        # A prompt that is asked twice in one batch costs once: its second completion is a cached one.
        return [new.pop(key, cached[key]) for key in keys]

    def _key(self, prompt: Prompt) -> str:
        # The reply does not depend on the role.
        return json_digest(self.name, prompt_to_dict(replace(prompt, role="")))

    def _mark_cached(self, completion: Completion) -> Completion:
        return replace(completion, usage=completion.usage if self.charge_cached else Usage(), cached=True)
