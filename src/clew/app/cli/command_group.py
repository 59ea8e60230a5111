"""How every command ends: an error as problem and hint, an interrupt, a pipe that was closed.

Exit statuses: 0 all is well (an ``ask`` that found nothing included), 1 some file could not be added or
``doctor`` found a fault that it could not repair, 2 the request made no sense or the knowledge base cannot be
used, 3 a budget was spent before an answer was complete, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from clew.core.errors import ClewError

EXIT_FAILED, EXIT_USAGE, EXIT_BUDGET, EXIT_INTERRUPTED = 1, 2, 3, 130


class CommandGroup(TyperGroup):
    """Runs a command and turns what goes wrong into lines on stderr and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A ClewError is printed without a traceback."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except ClewError as error:
            print(f"clew: {error.problem}", file=sys.stderr)
            if error.hint:
                print(f"      {error.hint}", file=sys.stderr)
            raise typer.Exit(EXIT_USAGE) from None
        except KeyboardInterrupt:
            print("clew: interrupted", file=sys.stderr)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has what it wanted (clew list | head). What is still buffered goes nowhere, so that
            # the interpreter's own flush at exit does not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        return result
