"""``clew doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.group import EXIT_FAILED
from clew.cli.options import Json, Kb


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair/--check-only", help="Rebuild what is damaged and can be rebuilt.")
    ] = True,
    checksums: Annotated[
        bool, typer.Option("--checksums/--quick", help="Read every file whole; --quick looks at sizes only.")
    ] = True,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Check the knowledge base, and rebuild indexes that are missing or damaged.

    Exit status 1 if something is wrong and was not repaired.

      clew doctor

      clew doctor --check-only --json
    """
    import clew
    from clew.cli.output import format_count, print_json

    with clew.open(kb) as base:
        findings = base.doctor(repair=repair, checksums=checksums)
    if as_json:
        shapes = [{"what": f.what, "problem": f.problem, "repaired": f.repaired} for f in findings]
        print_json({"findings": shapes})
    else:
        for finding in findings:
            print(f"{finding.what}: {finding.problem}{' (repaired)' if finding.repaired else ''}")
        print(format_count(len(findings), "finding") if findings else "all is well")
    if not all(finding.repaired for finding in findings):
        raise typer.Exit(EXIT_FAILED)
