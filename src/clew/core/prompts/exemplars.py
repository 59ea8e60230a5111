"""Exemplars: the worked examples of few-shot prompts, in files that a user can replace.

A file is ``exemplars/<name>.jsonl``: one JSON object a line, all its values text. Several prompts may show the same
exemplars, each the fields that its part ``# exemplar`` mentions. A file of the same name in the folder ``exemplars``
of the user's prompts replaces the built-in one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.core.errors import UsageError, unknown_name_error

_BUILT_IN = Path(__file__).parent / "exemplars"


@dataclass(frozen=True, slots=True)
class Exemplars:
    """The exemplars of one file. ``digest`` is the start of the SHA-256 of a user's file, "" for a built-in one."""

    path: Path
    shots: Sequence[Mapping[str, str]]
    digest: str = ""


def load_exemplars(name: str, folder: Path | None = None) -> Exemplars:
    """Return the exemplars called ``name``: the user's where ``folder`` has them, else the built-in ones.

    Raises UsageError for an unknown name, or a line that is not an object of texts.
    """
    built_in = _BUILT_IN / f"{name}.jsonl"
    if not built_in.is_file():
        raise unknown_name_error("file of exemplars", name, {path.stem for path in _BUILT_IN.glob("*.jsonl")})
    users = folder / "exemplars" / built_in.name if folder is not None else None
    if users is None or not users.is_file():
        return Exemplars(built_in, _read(built_in))
    return Exemplars(users, _read(users), hashlib.sha256(users.read_bytes()).hexdigest()[:8])


def _read(path: Path) -> list[Mapping[str, str]]:
    shots: list[Mapping[str, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            shot = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}: line {number} is not JSON: {error}") from error
        if not isinstance(shot, dict) or not all(isinstance(value, str) for value in shot.values()):
            raise UsageError(f"{path}: line {number} is not an object whose values are texts")
        if any("{{" in value for value in shot.values()):
            raise UsageError(f"{path}: line {number} contains '{{{{'", "That would be read as a variable")
        shots.append(shot)
    return shots
