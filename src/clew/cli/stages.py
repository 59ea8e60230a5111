"""What the commands of ``clew eval`` share: units of passages, and what a run will cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.cli.output import format_cost, print_note
from clew.config import default_encoder
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.parse.build import PassageUnit
    from clew.types import Usage


def parse_unit(passages: str) -> PassageUnit:
    """Return the unit of passages that ``--passages`` names. Raises UsageError."""
    if passages == "sentence":
        return "sentence"
    if passages != "paragraph":
        raise UsageError(f"no passages of '{passages}'", "Known: paragraph, sentence")
    return "paragraph"


def choose_encoder(given: str | None) -> str | None:
    """Return the name that ``--encoder`` gives, or that new bases get; None for none."""
    name = given or default_encoder()
    return None if name == "none" else name


def print_estimate(recipe: str, usage: Usage) -> None:
    """Say what a recipe will cost."""
    print_note(f"{recipe}: about {format_cost(usage) or 'no model calls'}, if every reply is as long as it may get")
