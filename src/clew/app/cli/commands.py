"""The application ``clew`` and its commands, by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

      clew add FOLDER           read its files, of many formats

      clew ask "YOUR QUESTION"  print the answer, its quotes and their places

    You do not need a language model. Without one, answers are quoted from your documents; with one (--llm), they are
    written. Everything stays on this machine unless you name a model or service elsewhere; then clew tells you first.

    Exit status: 0 success (also if the documents do not contain the answer), 1 a file could not be added, 2 the
    request was wrong, 3 a budget ran out before the answer was complete, 130 interrupted.
    """


#: The commands by task, each with its line in the help.
_COMMANDS: Mapping[str, Mapping[str, tuple[Callable[..., None] | typer.Typer, str]]] = {
    "Documents": {
        "add": (documents.add, "Add files and folders; makes the base if there is none."),
        "list": (documents.list_documents, "List the documents."),
        "show": (documents.show, "Show a document as clew read it."),
        "diff": (diff.diff, "Print what changed between two documents."),
        "remove": (documents.remove, "Remove documents; the files stay where they are."),
        "watch": (watch.watch, "Keep the base in step with folders."),
        "trash": (watch.trash_app, "Documents that disappeared from watched folders."),
    },
    "Questions": {
        "ask": (ask.ask, "Answer a question from documents and graphs."),
        "chat": (ask.chat, "Ask one question after another."),
        "search": (ask.search, "Find passages and table rows, best first."),
        "about": (about.about, "Print everything that is said of a name."),
        "grid": (grid.grid, "Ask every question of every document: a spreadsheet."),
        "memo": (memo.memo, "List the quotes put aside, or write them as a memo."),
    },
    "Tables and graphs": {
        "tables": (tables.list_tables, "List the tables, or show one with its columns."),
        "sql": (tables.sql, "Run a SELECT over the tables."),
        "graph": (graph.app, "Add knowledge graphs, look into them, remove them."),
    },
    "Browser and other programs": {
        "serve": (serve.serve, "Start the web app, with an API."),
        "mcp": (mcp.mcp, "Let an AI assistant use the base (MCP)."),
    },
    "The knowledge base": {
        "info": (info.info, "Print its size, contents and state."),
        "doctor": (info.doctor, "Check and repair it; with --llm, check a model."),
        "copy": (copy.copy, "Copy it to a folder or to object storage, and back."),
        "estimate": (info.estimate, "Say what a command would take, without doing it."),
        "encoder": (encoder.app, "Choose what finds passages by meaning."),
        "summarise": (enrich.summarise, "Write summaries of sections for the method drill."),
        "annotate": (enrich.annotate, "Link passages to Wikipedia entities."),
    },
    "Methods and experiments": {
        "recipes": (info.recipes, "List methods, retrievers and readers with options."),
        "eval": (evaluate.app, "Compare methods on data sets."),
        "train": (train.app, "Train readers, encoders and guides of walks."),
        "cluster": (cluster.app, "Start and stop a Ray cluster on this machine."),
    },
}
for _task, _commands in _COMMANDS.items():
    for _name, (_command, _summary) in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, short_help=_summary, rich_help_panel=_task)
        else:
            app.command(_name, short_help=_summary, rich_help_panel=_task)(_command)
