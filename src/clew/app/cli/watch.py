"""``clew watch`` and ``clew trash``: folders that a knowledge base follows, and what disappeared from them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.command_group import EXIT_FAILED, CommandGroup
from clew.app.cli.documents import failure_lines
from clew.app.cli.options import Anyway, Json, Kb, Workers, announce_text_destination
from clew.app.cli.output import format_count, print_json, print_line, print_note, progress_display
from clew.core.sources import refuse_system_folders

if TYPE_CHECKING:
    from clew.knowledge_base.ingest.report import Report
    from clew.knowledge_base.watch import FolderChanges

trash_app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Documents that disappeared from watched folders."
)


def watch(
    folders: Annotated[list[str], typer.Argument(metavar="FOLDER...", help="Folders.", show_default=False)],
    every: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="Look at the folders so often.")
    ] = 2.0,
    quiet: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Wait until nothing has changed for so long.")
    ] = 2.0,
    trash_days: Annotated[
        float, typer.Option(min=0.0, metavar="DAYS", help="Keep what disappears in the trash for so long.")
    ] = 30.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done now, and stop.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Do what is to be done now, and stop.")] = False,
    workers: Workers = None,
    anyway: Anyway = False,
    kb: Kb = None,
) -> None:
    """Keep the knowledge base in step with folders until you stop it (Ctrl-C).

    New and changed files are added. A document whose file disappears goes to the trash; clew trash restore brings it
    back. A folder that is missing altogether, such as a drive that is not mounted, changes nothing.

      clew watch ~/Documents/reports

      clew watch ~/Documents ~/Mail --dry-run
    """
    from clew.knowledge_base.knowledge_base import open_or_empty
    from clew.knowledge_base.watch import FolderWatch

    if not anyway:
        refuse_system_folders(folders)
    # What would be done is said without making a knowledge base.
    with open_or_empty(kb) if dry_run else clew.open(kb, create=True) as base:
        watched = FolderWatch(base, folders, quiet, trash_days=trash_days, workers=workers, anyway=anyway)
        if dry_run:
            _print_plan(watched.changes())
            return
        announce_text_destination("the passages", base.encoding.encoder())
        with progress_display() as progress:
            if once:
                _print_work(*watched.synchronise(progress))
                return
            print_note(f"clew: watching {', '.join(map(str, watched.folders))}; stop with Ctrl-C")
            try:
                for report, changes in watched.run(every, progress=progress):
                    _print_work(report, changes)
            except KeyboardInterrupt:
                print_note("clew: stopped; the knowledge base stays as it is")


def _print_plan(changes: FolderChanges) -> None:
    for path in changes.new:
        print_line(f"would read {path}")
    for path in changes.vanished:
        print_line(f"would move to the trash {path}")
    for old, path in changes.moved:
        print_line(f"moved from {old} to {path}")
    _print_missing(changes)
    if not changes:
        print_line("nothing to do")


def _print_work(report: Report, changes: FolderChanges) -> None:
    lists = {"added": report.added, "replaced": report.replaced, "found again": report.located}
    for outcome, paths in lists.items():
        for path in paths:
            print_line(f"{outcome} {path}", flush=True)
    for path in changes.vanished:
        print_line(f"moved to the trash {path}", flush=True)
    for old, path in changes.moved:
        print_line(f"no longer at {old}; the same document is at {path}", flush=True)
    for line in failure_lines(report.failed):
        print_note(f"clew: {line}")
    _print_missing(changes)


def _print_missing(changes: FolderChanges) -> None:
    for folder in changes.missing:
        print_note(f"clew: {folder} is missing; its documents stay")


@trash_app.command("list")
def list_trash(kb: Kb = None, as_json: Json = False) -> None:
    """List the contents of the trash, latest first."""
    from clew.knowledge_base.trash import Trash

    with clew.open(kb) as base:
        entries = Trash(base).documents()
    if as_json:
        print_json(
            {
                "documents": [
                    {"id": entry.id, "path": entry.path, "title": entry.title, "when": entry.when}
                    for entry in entries
                ]
            }
        )
        return
    for entry in entries:
        print_line(f"{entry.id}  {datetime.fromtimestamp(entry.when):%Y-%m-%d %H:%M}  {entry.path}")
    if not entries:
        print_line("the trash is empty")


@trash_app.command("restore")
def restore(
    what: Annotated[
        list[str], typer.Argument(metavar="WHAT...", help="Ids or paths, as clew trash list prints them.")
    ],
    kb: Kb = None,
) -> None:
    """Put documents back into the knowledge base. Files on the disk are not touched."""
    from clew.knowledge_base.trash import Trash

    with clew.open(kb) as base:
        places = Trash(base).restore(*what)
        base.encoding.encode_missing() if base.encoding.name else None
    for place in places:
        print_line(f"restored {place}")


@trash_app.command("empty")
def empty(
    days: Annotated[float, typer.Option(min=0.0, metavar="DAYS", help="Only what is older than this.")] = 0.0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    kb: Kb = None,
) -> None:
    """Delete the contents of the trash for good."""
    from clew.knowledge_base.trash import Trash

    if not yes and not typer.confirm("Delete it for good?"):
        raise typer.Exit(EXIT_FAILED)
    with clew.open(kb) as base:
        count = Trash(base).empty(days)
    print_line(f"{format_count(count, 'document')} deleted")
