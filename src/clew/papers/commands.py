"""``clew eval paper``: the experiments of a paper on one page, a command for each paper."""

from __future__ import annotations

import typer

from clew.app.cli.command_group import CommandGroup
from clew.papers import page_commands as d3
from clew.papers import page_commands as fourstep
from clew.papers import page_commands as kgp
from clew.papers import page_commands as semicot

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Run a paper's experiments over data sets and write one page of them: page.md, page.html and the figures. "
    "Killed, each continues where it was when run again.",
)
app.command("kgp")(kgp.run_kgp)
app.command("d3")(d3.run_d3)
app.command("semicot")(semicot.run_semicot)
app.command("4stepfocus")(fourstep.run_fourstep)
