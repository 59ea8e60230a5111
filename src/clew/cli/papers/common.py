"""What the commands of ``clew eval paper`` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

PageFolder: TypeAlias = Annotated[Path, typer.Option(metavar="DIR", help="Where results and the page go.")]


def repeated_option(option: str, metavar: str, text: str) -> typer.models.OptionInfo:
    """Return an option that may be repeated."""
    made: typer.models.OptionInfo = typer.Option(
        option, metavar=metavar, help=f"{text}; may be repeated.", show_default=False
    )
    return made


def print_paths(paths: Sequence[Path]) -> None:
    """Print the files that were written, a line each."""
    for path in paths:
        print(path)
