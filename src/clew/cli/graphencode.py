"""``clew graph encode``."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.group import EXIT_INTERRUPTED
from clew.cli.options import Json, Kb


def encode(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)],
    names: Annotated[
        bool, typer.Option("--names", help="The names of nodes alone: they help to find what a name means.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Every node, not only those of the types that may answer.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Make the vectors of a graph's nodes, so that all of them are searched by meaning (retrievers vss, multi-vss).

    Without this, a question embeds what it needs: at most 500 nodes that are best by words. Stopped, it continues
    where it was; the vectors go with the graph.

      clew graph encode films

      clew ask "Which film is about a labyrinth?" --retriever vss
    """
    import clew
    from clew.cli.output import format_count, format_duration, print_note, print_json
    from clew.cli.progress import progress_display
    from clew.cli.remote import announce_text_destination

    with clew.open(kb) as base:
        announce_text_destination("texts of nodes", base.encoder())
        missing, seconds = base.estimate_graph_encoding(name, names=names, every=every)
        if missing:
            print_note(f"{format_count(missing, 'vector')} to make" + (f", about {format_duration(seconds)}" if seconds else ""))
        with progress_display(quiet=as_json) as show:
            try:
                made = base.encode_graph(name, names=names, every=every, progress=show)
            except KeyboardInterrupt:
                print_note(
                    f"clew: stopped; the vectors made so far are kept. To continue: clew graph encode {name}"
                )
                raise typer.Exit(EXIT_INTERRUPTED) from None
        encoder = base.encoder_name()
    if as_json:
        print_json({"graph": name, "encoder": encoder, "encoded": made})
    else:
        print(f"{name}: {format_count(made, 'vector')} made by {encoder}")
