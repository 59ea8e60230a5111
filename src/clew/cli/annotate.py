"""``clew annotate``."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.group import EXIT_INTERRUPTED
from clew.cli.options import Json, Kb


def annotate(
    service: Annotated[str, typer.Option(metavar="NAME", help="wat or tagme.")] = "wat",
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of the passages.")] = "en",
    url: Annotated[
        str, typer.Option(metavar="URL", help="Another server of the same kind.", show_default=False)
    ] = "",
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Find the Wikipedia entities of every passage with the public service WAT or TAGME.

    The texts of all passages are sent to that service, at most two a second; how many there are is said
    first. It needs a free token of the TagMe VRE at D4Science in CLEW_TAGME_TOKEN. Stopped, it continues
    where it was. The graph that comes of it is the paper's:

      clew annotate

      clew ask "..." --recipe "kgp(graph=entities(prior=0.8))"
    """
    import clew
    from clew.cli.output import format_count, print_note, print_json
    from clew.cli.progress import progress_display
    from clew.ingest import Event

    with clew.open(kb) as base:
        waiting, target = base.count_unannotated(service, language, url)
        if waiting:
            print_note(f"the texts of {format_count(waiting, 'passage')} go to {target}")
        with progress_display(quiet=as_json) as show:
            try:
                asked = base.annotate(
                    service, language, url, lambda done, total: show(Event("annotate", done, total))
                )
            except KeyboardInterrupt:
                print_note("clew: stopped; what was annotated so far is kept. To continue: clew annotate")
                raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json({"service": service, "annotated": asked})
    else:
        print(f"{format_count(asked, 'passage')} annotated by {service}")
