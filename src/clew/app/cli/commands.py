"""The application ``clew`` and its commands, in the order in which a newcomer needs them."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.app.cli import (
    about,
    ask,
    cluster,
    copy,
    diff,
    documents,
    encoder,
    enrich,
    evaluate,
    graph,
    grid,
    info,
    mcp,
    memo,
    serve,
    tables,
    train,
    watch,
)
from clew.app.cli.command_group import CommandGroup
from clew.app.cli.output import print_line

app = typer.Typer(
    name="clew",
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print_line(f"clew {version('clew')}")
        raise typer.Exit


@app.callback()
def clew(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Answers questions from your own documents and knowledge graphs, and shows the evidence for every answer.

    Start with two commands:

      clew add FOLDER               read its PDF, Office, web, mail and text files, tables and more

      clew ask "YOUR QUESTION"      print the answer, its evidence, and the steps that led to it

    You do not need a language model. Without one, answers are quoted from your documents; with one (--llm), they are
    written. Everything stays on this machine unless you name a model or service elsewhere; then clew tells you first.

    Exit status: 0 success (also if the documents do not contain the answer), 1 a file could not be added, 2 the
    request was wrong, 3 a budget ran out before the answer was complete, 130 interrupted.
    """


app.command("add")(documents.add)
app.command("ask")(ask.ask)
app.command("chat")(ask.chat)
app.command("search")(ask.search)
app.command("show")(documents.show)
app.command("about")(about.about)
app.command("diff")(diff.diff)
app.command("memo")(memo.memo)
app.command("list")(documents.list_documents)
app.command("tables")(tables.list_tables)
app.command("sql")(tables.sql)
app.command("grid")(grid.grid)
app.command("remove")(documents.remove)
app.command("watch")(watch.watch)
app.command("info")(info.info)
app.command("copy")(copy.copy)
app.command("estimate")(info.estimate)
app.command("recipes")(info.recipes)
app.command("serve")(serve.serve)
app.command("summarise")(enrich.summarise)
app.command("mcp")(mcp.mcp)
app.command("annotate")(enrich.annotate)
app.command("doctor")(info.doctor)
app.add_typer(watch.trash_app, name="trash")
app.add_typer(graph.app, name="graph")
app.add_typer(encoder.app, name="encoder")
app.add_typer(evaluate.app, name="eval")
app.add_typer(cluster.app, name="cluster")
app.add_typer(train.app, name="train")
