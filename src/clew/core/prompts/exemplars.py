"""Exemplars: worked examples that a few-shot prompt shows, in files that a user can replace.

A file is ``exemplars/<name>.jsonl``: one JSON object a line, all its values text. Several prompts may show the same
exemplars, each those fields that its part ``# exemplar`` uses. A file of the same name in the folder ``exemplars`` of
the user's prompts replaces ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.core.errors import UsageError, unknown_name_error

_OURS = Path(__file__).parent / "exemplars"


@dataclass(frozen=True, slots=True)
class Exemplars:
    """The exemplars of one file. ``digest`` is "" for ours, the start of the file's SHA-256 for a user's."""

    path: Path
    shots: Sequence[Mapping[str, str]]
    digest: str = ""


def load_exemplars(name: str, folder: Path | None = None) -> Exemplars:
    """Return the exemplars of that name: the user's where ``folder`` has them, else ours.

    Raises UsageError for an unknown name, or a line that is not an object of texts.
    """
    ours = _OURS / f"{name}.jsonl"
    if not ours.is_file():
        raise unknown_name_error("file of exemplars", name, {path.stem for path in _OURS.glob("*.jsonl")})
    theirs = folder / "exemplars" / ours.name if folder is not None else None
    if theirs is None or not theirs.is_file():
        return Exemplars(ours, _read(ours))
    return Exemplars(theirs, _read(theirs), hashlib.sha256(theirs.read_bytes()).hexdigest()[:8])


def _read(path: Path) -> list[Mapping[str, str]]:
    found: list[Mapping[str, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}: line {number} is not JSON: {error}") from error
        if not isinstance(one, dict) or not all(isinstance(value, str) for value in one.values()):
            raise UsageError(f"{path}: line {number} is not an object whose values are texts")
        if any("{{" in value for value in one.values()):
            raise UsageError(f"{path}: line {number} has '{{{{' in it", "That would stand for a variable")
        found.append(one)
    return found
