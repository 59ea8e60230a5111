"""The folder that a model is trained into: its record, its checkpoints, the finished model.

The record (``clew-traverser.json``, ``clew-training.json``) is there from the beginning: it says what the
training is, so that one that was killed is continued by the same command and by no other, and at the end what
came of it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError

#: The key of a record that is there when the training is finished: the held-out loss or measures after it.
FINISHED = "after"


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """The folder of one training, and the name of its record."""

    path: Path
    name: str

    @property
    def checkpoints(self) -> Path:
        """Where the Trainer keeps what it continues from; gone when the training is finished."""
        return self.path / "checkpoints"

    def check(self) -> None:
        """Raise UsageError where the folder holds something else than a training."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file", "Name a new folder: --out FOLDER")
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / self.name).is_file():
            raise UsageError(f"{self.path} holds something else", "Name a new folder: --out FOLDER")

    def read(self) -> dict[str, Any]:
        """Return the record, empty before the first one. Raises UsageError for a damaged one."""
        path = self.path / self.name
        if not path.is_file():
            return {}
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{path} is damaged: {error}", "Delete the folder, or name a new one") from error
        if not isinstance(record, dict):
            raise UsageError(f"{path} is damaged: not a JSON object", "Delete the folder, or name a new one")
        return record

    def begin(self, what: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of the training ``what``: the one that was begun here, else a new one, written."""
        if record := self.matching_record(what):
            return record
        self.path.mkdir(parents=True, exist_ok=True)
        self.write(what)
        return dict(what)

    def matching_record(self, what: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record, which is empty or that of the training ``what``.

        Raises UsageError where another training was begun here, naming the first difference.
        """
        record = self.read()
        for key, value in _flat(what).items() if record else ():
            before = _flat(record).get(key)
            if before != value:
                raise UsageError(
                    f"{self.path} was begun with another {key}: {before} there, {value} now",
                    "Run the same command to continue it, or name a new folder: --out FOLDER",
                )
        return record

    def write(self, record: Mapping[str, Any]) -> None:
        """Write the record, whole or not at all."""
        made = self.path / f"{self.name}.new"
        made.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        made.replace(self.path / self.name)

    def last_checkpoint(self) -> tuple[Path | None, int]:
        """Return the latest whole checkpoint and its step, or None and 0. What a kill left unfinished is deleted."""
        whole: dict[int, Path] = {}
        for folder in self.checkpoints.glob("checkpoint-*"):
            try:
                # The Trainer writes it last.
                state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
                whole[int(state["global_step"])] = folder
            except (OSError, ValueError):
                shutil.rmtree(folder)
        last = max(whole, default=0)
        return whole.get(last), last

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write the last record, when the model is there, and delete the checkpoints."""
        self.write(record)
        shutil.rmtree(self.checkpoints, ignore_errors=True)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a record, those of its settings by their own names."""
    settings = record.get("settings", {})
    return {key: value for key, value in record.items() if key != "settings"} | dict(settings)


def progress_callback(progress: Callable[[int, int], None]) -> Any:
    """Return the callback that tells after each step how many of how many are done."""
    from transformers import TrainerCallback

    class Counted(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            progress(state.global_step, state.max_steps)

    return Counted()


# MERGED: What a Trainer of transformers tells while it trains.
