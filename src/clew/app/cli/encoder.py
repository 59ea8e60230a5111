"""``clew encoder``: the encoder that makes the vectors of a knowledge base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.command_group import CommandGroup, interruptible
from clew.app.cli.options import Json, Kb, On, announce_text_destination, cluster_session, option
from clew.app.cli.output import (
    format_count,
    format_duration,
    print_json,
    print_line,
    print_note,
    progress_display,
)

if TYPE_CHECKING:
    from clew.knowledge_base.knowledge_base import KnowledgeBase

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Choose the encoder, which finds passages by meaning and not only by words.",
)


@app.command("list")
def list_encoders(kb: Kb = None, as_json: Json = False) -> None:
    """List the encoders that this knowledge base has vectors of, and the kinds of encoder you can set.

    clew encoder list
    """
    from clew.knowledge_base import encoder_kinds

    with clew.open(kb) as base:
        encoder = base.encoding.name
        counts = base.encoding.vector_counts()
    kinds = encoder_kinds()
    if as_json:
        vectors = [
            {"name": count.name, "vectors": count.vectors, "missing": count.missing} for count in counts
        ]
        print_json({"encoder": encoder, "vectors": vectors, "kinds": kinds})
        return
    print_line(f"encoder of this base: {encoder or 'none (search is by words and graph)'}")
    for count in counts:
        print_line(f"  {count.name}: {format_count(count.vectors, 'vector')}, {count.missing:,} missing")
    print_line("kinds:")
    for name, summary in kinds.items():
        print_line(f"  {name}: {summary}")


@app.command("set")
def set_encoder(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="An encoder, such as clew:hops or onnx:FOLDER; or none.", show_default=False
        ),
    ],
    now: Annotated[
        bool,
        typer.Option("--encode/--later", help="Make the missing vectors now, or with the next clew add."),
    ] = True,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Set the encoder of this knowledge base, and encode the passages that have no vector yet.

    Prints an estimate of the time first. If you stop it, it continues there next time. The vectors of other encoders
    are kept, so switching back costs nothing.

      clew encoder set onnx:models/minilm

      clew encoder set clew:hops      back to the one that comes with clew

      clew encoder set none
    """
    with clew.open(kb) as base:
        base.encoding.set(name)
        encoded = _encode(base, as_json) if now and name != "none" else 0
        _print_outcome(base, encoded, as_json)


@app.command("encode")
def encode(on: On = None, kb: Kb = None, as_json: Json = False) -> None:
    """Make the missing vectors. If you stop it, it continues there next time.

    clew encoder encode
    """
    with cluster_session(on) as cluster, clew.open(kb) as base:
        base.encoding.cluster = cluster
        _print_outcome(base, _encode(base, as_json), as_json)


@app.command("export")
def export_encoder(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A sentence-transformers model: a folder or a hub name.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write.")],
    weights: Annotated[
        str,
        typer.Option(
            metavar="FORM", help="fp32, half (half the size) or int8 (a quarter of the size, faster)."
        ),
    ] = "fp32",
    name: Annotated[str | None, option("NAME", "The encoder's name.", default="the folder's name")] = None,
    max_tokens: Annotated[
        int | None, option("N", "Cut texts after N tokens.", default="where the source does", min=1)
    ] = None,
    query_prefix: Annotated[
        str | None, option("TEXT", "Text put before every question.", default="the source's")
    ] = None,
    passage_prefix: Annotated[
        str | None, option("TEXT", "Text put before every passage.", default="the source's")
    ] = None,
) -> None:
    """Export a sentence-transformers model as an encoder that runs without torch: onnx:FOLDER.

    Before anything is written, the result is compared with the model on sample texts. Needs the extra train.

      clew encoder export all-MiniLM-L6-v2 models/minilm --weights int8

      clew encoder set onnx:models/minilm
    """
    from clew.train import export

    form = replace(
        export.parse_form(weights, name),
        max_tokens=max_tokens,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
    )
    exported = export.export_encoder(source, folder, form)
    print_line(
        f"{folder}: {exported.size / 2**20:.0f} MiB, {exported.settings['dimension']} dimensions, {weights}; "
        f"worst cosine distance to the source on sample texts: {exported.max_distance:.1e}"
    )


def _encode(base: KnowledgeBase, quiet: bool) -> int:
    from clew.knowledge_base.ingest.report import Event

    announce_text_destination("passages", base.encoding.encoder())
    missing, seconds = base.encoding.estimate()
    if missing:
        duration = f", about {format_duration(seconds)}" if seconds else ""
        print_note(f"{format_count(missing, 'vector')} to make{duration}")
    with (
        progress_display(quiet=quiet) as show,
        interruptible("the vectors made so far are kept. To continue: clew encoder encode"),
    ):
        return base.encoding.encode_missing(lambda done, total: show(Event("encode", done, total)))


def _print_outcome(base: KnowledgeBase, encoded: int, as_json: bool) -> None:
    encoder = base.encoding.name
    if as_json:
        print_json({"encoder": encoder, "encoded": encoded})
    else:
        print_line(f"encoder of this base: {encoder or 'none'}; {format_count(encoded, 'vector')} made")
