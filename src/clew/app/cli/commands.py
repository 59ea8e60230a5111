"""The application: its commands, in the order in which a person meets them."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.app.cli import ask, documents, encoder, evaluate, graph, info, mcp, serve, train
from clew.app.cli import ask as search
from clew.app.cli import documents as add
from clew.app.cli import documents as show
from clew.app.cli import enrich as annotate
from clew.app.cli import enrich as summarise
from clew.app.cli import info as doctor
from clew.app.cli import info as estimate
from clew.app.cli import info as recipes
from clew.app.cli.command_group import CommandGroup

app = typer.Typer(
    name="clew",
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"clew {version('clew')}")
        raise typer.Exit


@app.callback()
def clew(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Answers questions over your own documents, with the thread that leads to every answer.

    Start with:

      clew add FOLDER               reads its PDF, Word, HTML, Markdown, text, CSV and Excel files

      clew ask "YOUR QUESTION"      prints the answer, its evidence, and how it was reached

    No language model is needed; with one (--llm), answers are written instead of extracted.

    Exit status: 0 fine (also when the documents hold no answer), 1 a file could not be added, 2 the request
    could not be carried out, 3 a budget was spent before the answer was complete, 130 interrupted.
    """


app.command("add")(add.add)
app.command("ask")(ask.ask)
app.command("search")(search.search)
app.command("show")(show.show)
app.command("list")(documents.list_documents)
app.command("remove")(documents.remove)
app.command("info")(info.info)
app.command("estimate")(estimate.estimate)
app.command("recipes")(recipes.recipes)
app.command("serve")(serve.serve)
app.command("summarise")(summarise.summarise)
app.command("mcp")(mcp.mcp)
app.command("annotate")(annotate.annotate)
app.command("doctor")(doctor.doctor)
app.add_typer(graph.app, name="graph")
app.add_typer(encoder.app, name="encoder")
app.add_typer(evaluate.app, name="eval")
app.add_typer(train.app, name="train")
