"""The folder that a model is trained into: its record, its checkpoints, the finished model.

The record (``clew-traverser.json``, ``clew-training.json``) is written first. It describes the training, so that only
the same command continues an interrupted one; at the end it also has the results.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError

#: The key that a record has once the training is finished: the held-out loss or measures after it.
FINISHED = "after"


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """The folder of one training, and the name of its record."""

    path: Path
    name: str

    @property
    def checkpoints(self) -> Path:
        """The checkpoints of the Trainer; deleted when the training is finished."""
        return self.path / "checkpoints"

    def check(self) -> None:
        """Raise UsageError where the folder holds something other than a training."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file", "Name a new folder: --out FOLDER")
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / self.name).is_file():
            raise UsageError(f"{self.path} holds something else", "Name a new folder: --out FOLDER")

    def read(self) -> dict[str, Any]:
        """Return the record, empty if there is none. Raises UsageError for a damaged one."""
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

    def begin(self, description: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of an interrupted training, else write a new one with ``description`` and return it."""
        if record := self.matching_record(description):
            return record
        self.path.mkdir(parents=True, exist_ok=True)
        self.write(description)
        return dict(description)

    def matching_record(self, description: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record, which is empty or has this ``description``.

        Raises UsageError where another training was begun here, naming the first difference.
        """
        record = self.read()
        for key, value in _flatten_settings(description).items() if record else ():
            recorded = _flatten_settings(record).get(key)
            if recorded != value:
                raise UsageError(
                    f"{self.path} was begun with another {key}: {recorded} there, {value} now",
                    "Run the same command to continue it, or name a new folder: --out FOLDER",
                )
        return record

    def write(self, record: Mapping[str, Any]) -> None:
        """Write the record atomically."""
        temporary = self.path / f"{self.name}.new"
        temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(self.path / self.name)

    def last_checkpoint(self) -> tuple[Path | None, int]:
        """Return the latest complete checkpoint and its step, or None and 0. Incomplete checkpoints are deleted."""
        checkpoints: dict[int, Path] = {}
        for folder in self.checkpoints.glob("checkpoint-*"):
            try:
                # The Trainer writes it last.
                state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
                checkpoints[int(state["global_step"])] = folder
            except (OSError, ValueError):
                shutil.rmtree(folder)
        last = max(checkpoints, default=0)
        return checkpoints.get(last), last

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write the final record, after the model was saved, and delete the checkpoints."""
        self.write(record)
        shutil.rmtree(self.checkpoints, ignore_errors=True)


def _flatten_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with the settings on the top level."""
    settings = record.get("settings", {})
    return {key: value for key, value in record.items() if key != "settings"} | dict(settings)


def progress_callback(progress: Callable[[int, int], None]) -> Any:
    """Return the transformers callback that reports the number of finished steps and their total."""
    from transformers import TrainerCallback

    class ProgressCallback(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            progress(state.global_step, state.max_steps)

    return ProgressCallback()
