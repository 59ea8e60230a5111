"""``clew add``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clew.cli.group import EXIT_FAILED, EXIT_INTERRUPTED
from clew.cli.options import Json, Kb, Workers

if TYPE_CHECKING:
    from clew.ingest import Report


def add(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders.", show_default=False)
    ],
    sync: Annotated[
        bool, typer.Option("--sync", help="Also forget files under the folders that no longer exist.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Set the base's encoder and encode with it (none: search by words and graph alone); see: "
            "clew encoder list.",
            show_default="clew:hops, which comes with clew",
        ),
    ] = None,
    passages: Annotated[
        Literal["paragraph", "sentence"] | None,
        typer.Option(
            help="The unit of a new base: what is searched and given as evidence.", show_default="paragraph"
        ),
    ] = None,
    workers: Workers = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="Compare the bytes of files that look unchanged.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add files and folders to the knowledge base, which is made if there is none.

    Unchanged files are skipped, changed ones replaced, moved and duplicate ones recognised. A file that cannot
    be read is named with the reason, the others are added, and the exit status is 1. It can be stopped at any
    time, even by a power cut; run it again to continue.

      clew add ~/Documents/reports

      clew add report.pdf notes.md --kb project.clew

      clew add --sync ~/Documents/reports      mirror the folder: what was deleted there goes
    """
    import clew
    from clew.cli.output import print_note, print_json
    from clew.cli.progress import progress_display
    from clew.cli.remote import announce_text_destination

    with clew.open(kb, create=True, passages=passages) as base:
        if encoder is not None:
            base.set_encoder(None if encoder == "none" else encoder)
        announce_text_destination("the passages", base.encoder())
        with progress_display(quiet=as_json) as progress:
            report = base.add(paths, sync=sync, checksum=checksum, workers=workers, progress=progress)
        where = base.path
    for failure in report.failed:
        print_note(f"clew: {failure}")
    if as_json:
        print_json(_shape(report))
    else:
        _print(report)
    if report.interrupted:
        print_note(f"clew: stopped; what is done is kept in {where}. Run the same command again to continue.")
        raise typer.Exit(EXIT_INTERRUPTED)
    if report.failed:
        raise typer.Exit(EXIT_FAILED)


def _print(report: Report) -> None:
    from clew.cli.output import format_count, format_duration

    parts = [
        f"{len(report.added):,} added",
        f"{len(report.replaced):,} replaced",
        f"{len(report.located):,} found again at another path",
        f"{len(report.removed):,} removed",
        f"{report.unchanged:,} unchanged",
        f"{len(report.failed):,} could not be read",
    ]
    said = [part for part in parts if not part.startswith("0 ")]
    skipped = [f"{number:,} {reason}" for reason, number in sorted(report.skipped.items())]
    print(f"{', '.join(said) or 'nothing to add'} in {format_duration(report.seconds)}")
    if report.added or report.replaced:
        sums = (
            (report.pages, "page"),
            (report.passages, "passage"),
            (report.tables, "table"),
            (report.rows, "table row"),
        )
        print("  new: " + ", ".join(format_count(number, noun) for number, noun in sums if number))
    if report.encoded:
        print(f"  {format_count(report.encoded, 'vector')} made")
    if skipped:
        print(f"  skipped: {', '.join(skipped)}")
    for path, remark in report.notes:
        print(f"  note: {path}: {remark}")


def _shape(report: Report) -> dict[str, Any]:
    return {
        "added": report.added,
        "replaced": report.replaced,
        "located": report.located,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "failed": [{"path": f.path, "reason": f.reason, "kept": f.kept} for f in report.failed],
        "skipped": report.skipped,
        "notes": [{"path": path, "note": remark} for path, remark in report.notes],
        "pages": report.pages,
        "passages": report.passages,
        "tables": report.tables,
        "rows": report.rows,
        "encoded": report.encoded,
        "interrupted": report.interrupted,
        "seconds": round(report.seconds, 3),
    }
