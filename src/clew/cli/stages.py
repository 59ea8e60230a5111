"""What the commands of ``clew eval`` share: units of passages, and lines that show how far a stage is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.cli.output import cost, note
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.parse.build import Unit
    from clew.types import Usage


def unit(passages: str) -> Unit:
    """Return the unit of passages that ``--passages`` names. Raises UsageError."""
    if passages == "sentence":
        return "sentence"
    if passages != "paragraph":
        raise UsageError(f"no passages of '{passages}'", "Known: paragraph, sentence")
    return "paragraph"


def foreseen(recipe: str, usage: Usage) -> None:
    """Say what a recipe will cost."""
    note(f"{recipe}: about {cost(usage) or 'no model calls'}, if every reply is as long as it may get")


def told(stage: str) -> Callable[[int, int], None]:
    """Return what shows a stage's progress: a line that is written over, or one for each tenth."""
    said = 0

    def tell(done: int, total: int) -> None:
        nonlocal said
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{stage[:60]}: {done:,} of {total:,}" + ("\n" if done == total else ""))
        elif done * 10 // max(total, 1) > said:
            said = done * 10 // max(total, 1)
            note(f"{stage}: {done:,} of {total:,}")

    return tell
