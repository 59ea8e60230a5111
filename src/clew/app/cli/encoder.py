"""``clew encoder``: which encoder makes this base's vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED, CommandGroup
from clew.app.cli.options import Json, Kb

if TYPE_CHECKING:
    from clew.knowledge_base.knowledge_base import KnowledgeBase

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Choose the encoder that finds passages by meaning, not only by words.",
)


@app.command("list")
def list_encoders(kb: Kb = None, as_json: Json = False) -> None:
    """List the kinds of encoder there are, and those that this base has vectors of.

    clew encoder list
    """
    import clew
    from clew.app.cli.output import format_count, print_json

    with clew.open(kb) as base:
        chosen = base.encoding.name
        held = base.encoding.vector_counts()
    kinds = clew.knowledge_base.encoder_kinds()
    if as_json:
        shapes = [{"name": v.name, "vectors": v.vectors, "missing": v.missing} for v in held]
        print_json({"encoder": chosen, "vectors": shapes, "kinds": kinds})
        return
    print(f"encoder of this base: {chosen or 'none (search is by words and graph)'}")
    for v in held:
        print(f"  {v.name}: {format_count(v.vectors, 'vector')}, {v.missing:,} missing")
    print("kinds:")
    for name, summary in kinds.items():
        print(f"  {name}: {summary}")


@app.command("set")
def set_encoder(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Such as onnx:FOLDER; or none.", show_default=False)
    ],
    now: Annotated[
        bool, typer.Option("--encode/--later", help="Make the missing vectors now, or at the next add.")
    ] = True,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Make NAME the encoder of this base and encode what has no vector yet.

    It says how long that will take. Stopped, it continues where it was when run again. The vectors of other
    encoders stay, so going back costs nothing.

      clew encoder set onnx:models/minilm

      clew encoder set clew:hops      back to the one that comes with clew

      clew encoder set none
    """
    import clew

    with clew.open(kb) as base:
        base.encoding.set(None if name == "none" else name)
        made = _encode(base, as_json) if now and name != "none" else 0
        _said(base, made, as_json)


@app.command("encode")
def encode(kb: Kb = None, as_json: Json = False) -> None:
    """Make the vectors that are missing; continues where it was stopped.

    clew encoder encode
    """
    import clew

    with clew.open(kb) as base:
        _said(base, _encode(base, as_json), as_json)


@app.command("export")
def export_encoder(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A sentence-transformers model: a folder or a hub name.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.")],
    weights: Annotated[
        str, typer.Option(metavar="FORM", help="fp32, half (half the size) or int8 (a quarter, faster).")
    ] = "fp32",
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What it is called.", show_default="the folder's name")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Cut texts here.", show_default="where the source does"),
    ] = None,
    query_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Put before a question.", show_default="the source's")
    ] = None,
    passage_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Put before a passage.", show_default="the source's")
    ] = None,
) -> None:
    """Export a sentence-transformers model to a folder that needs no torch: onnx:FOLDER.

    The result is compared with its source on sample texts before anything is written. Needs the extra train.

      clew encoder export all-MiniLM-L6-v2 models/minilm --weights int8

      clew encoder set onnx:models/minilm
    """
    from dataclasses import replace

    from clew.train.export import export_encoder, parse_form

    form = replace(
        parse_form(weights, name),
        max_tokens=max_tokens,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
    )
    made = export_encoder(source, folder, form)
    print(
        f"{folder}: {made.size / 2**20:.0f} MiB, {made.settings['dimension']} dimensions, {weights}; "
        f"worst cosine distance to the source on sample texts: {made.max_distance:.1e}"
    )


def _encode(base: KnowledgeBase, quiet: bool) -> int:
    from clew.app.cli.models import announce_text_destination
    from clew.app.cli.output import format_count, format_duration, print_note
    from clew.app.cli.progress import progress_display
    from clew.knowledge_base.ingest.report import Event

    announce_text_destination("passages", base.encoding.encoder())
    missing, seconds = base.encoding.estimate()
    if missing:
        print_note(
            f"{format_count(missing, 'vector')} to make"
            + (f", about {format_duration(seconds)}" if seconds else "")
        )
    with progress_display(quiet=quiet) as show:
        try:
            return base.encoding.encode_missing(lambda done, total: show(Event("encode", done, total)))
        except KeyboardInterrupt:
            print_note("clew: stopped; the vectors made so far are kept. To continue: clew encoder encode")
            raise typer.Exit(EXIT_INTERRUPTED) from None


def _said(base: KnowledgeBase, made: int, as_json: bool) -> None:
    from clew.app.cli.output import format_count, print_json

    shape: dict[str, Any] = {"encoder": base.encoding.name, "encoded": made}
    if as_json:
        print_json(shape)
    else:
        print(f"encoder of this base: {shape['encoder'] or 'none'}; {format_count(made, 'vector')} made")
