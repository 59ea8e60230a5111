"""Groups of commands: how every command ends, and commands that other packages add.

Exit statuses: 0 success (also if ``ask`` found no answer), 1 a file could not be added or ``doctor`` could not repair
a fault, 2 the request was wrong or the knowledge base cannot be used, 3 a budget ran out before an answer was
complete, 130 interrupted.

A package adds commands by entry points of the group ``clew.commands``. An entry point's name is the path of the
command with dots, its value a function (which becomes the command, with its docstring as help) or a ``typer.Typer``
(which becomes a group of commands)::

    [project.entry-points."clew.commands"]
    "translate" = "my_package.commands:translate"      # clew translate
    "eval.speed" = "my_package.commands:speed_app"     # clew eval speed ...

They are looked up when no built-in command has the name, or when help is printed.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command as make_click_command

from clew.app.cli.output import print_note
from clew.core.errors import ClewError
from clew.core.files import is_system_error, system_error
from clew.core.installation import find_sources
from clew.core.text import clean_name

EXIT_FAILED, EXIT_USAGE, EXIT_BUDGET, EXIT_INTERRUPTED = 1, 2, 3, 130
#: The group of entry points that add commands.
ENTRY_POINTS = "clew.commands"

#: The error of words that no command takes: click's, or that of the copy of click in typer.
_UsageError: Any = typer.BadParameter.__mro__[1]


@contextmanager
def interruptible(left: str) -> Iterator[None]:
    """Take an interrupt as the wish to stop: print what is ``left``, and exit with the status of an interrupt."""
    try:
        yield
    except KeyboardInterrupt:
        print_note(f"clew: stopped; {left}")
        raise typer.Exit(EXIT_INTERRUPTED) from None


class CommandGroup(TyperGroup):
    """A group of commands that prints errors without a traceback, and finds the commands of other packages."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Return the context of a call; an error in its words, which typer prints, says them without controls."""
        with _clean_usage_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A ClewError is printed as problem and hint on stderr, as is a system that has no room, no
        free descriptors, or no permission to write."""
        if sys.stdout is None:  # clew list >&-
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the process
            if sys.stderr is not None:
                print_note("clew: standard output is closed; nothing is printed")
        try:
            with _clean_usage_errors():
                result = super().invoke(ctx)
            sys.stdout.flush()
        except ClewError as error:
            _print_error(error)
            raise typer.Exit(EXIT_USAGE) from None
        except KeyboardInterrupt:
            print_note("clew: interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has what it wanted (clew list | head). What is still buffered goes nowhere, so that
            # the interpreter's own flush at exit does not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except MemoryError:
            _print_error(system_error(OSError(errno.ENOMEM, "")))
            raise typer.Exit(EXIT_USAGE) from None
        except OSError as error:
            if not is_system_error(error):
                raise
            _print_error(system_error(error))
            raise typer.Exit(EXIT_USAGE) from None
        return result

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, those of other packages last."""
        names = super().list_commands(ctx)
        return [*names, *(name for name in _entry_points(_path(ctx)) if name not in names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name, its help ready to be wrapped; None if there is none."""
        command: Any = super().get_command(ctx, cmd_name)
        if command is None and (entry_point := _entry_points(_path(ctx)).get(cmd_name)) is not None:
            command = _load(entry_point, cmd_name)
            self.add_command(command, cmd_name)
        if command is not None:
            command.help = join_lines(command.help or "")
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, wrapped once, to the width of the terminal."""
        self.help = join_lines(self.help or "")
        super().format_help(ctx, formatter)


def join_lines(text: str) -> str:
    r"""Return a text with each paragraph in one line; its first line keeps its indentation.

    >>> join_lines("Adds files\nand folders.\n\n  clew add A\n  B")
    'Adds files and folders.\n\n  clew add A B'
    """
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", paragraph.rstrip()) for paragraph in paragraphs)


@contextmanager
def _clean_usage_errors() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        error.message = clean_name(error.message)
        raise


def _print_error(error: ClewError) -> None:
    # A message goes on in indented lines; another break is that of a name in it.
    text = f"clew: {error.problem}" + (f"\n      {error.hint}" if error.hint else "")
    print_note(*re.split(r"\n(?=  )", text))
    if "pip install" in error.hint and (sources := find_sources()) not in {None, Path.cwd()}:
        print_note(f"      In the folder {sources}")


def _path(context: Any) -> str:
    """Return the path of a group below ``clew``: "" for the application itself, ``eval`` for ``clew eval``."""
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return ".".join(names)


def _entry_points(path: str) -> dict[str, EntryPoint]:
    """Return the entry points of the commands directly below a path, by the commands' names."""
    from importlib.metadata import entry_points

    below = {entry.name.rpartition(".")[::2]: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {name: entry for (parent, name), entry in below.items() if parent == path}


def _load(entry_point: EntryPoint, name: str) -> Any:
    """Import the command of an entry point, and return it as typer's groups hold commands."""
    value = entry_point.load()
    if not isinstance(value, typer.Typer):
        function, value = (
            value,
            typer.Typer(cls=CommandGroup, rich_markup_mode="rich", pretty_exceptions_enable=False),
        )
        value.command(name)(function)
    command: Any = make_click_command(value)
    command.name = name
    return command
