"""``clew grid``: the same questions asked of many documents, as a spreadsheet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.command_group import EXIT_INTERRUPTED
from clew.app.cli.options import (
    BudgetCalls,
    BudgetMoney,
    BudgetTokens,
    Documents,
    Json,
    Kb,
    Llm,
    Recipe,
    announce_text_destination,
    configured_model,
    confirm_cost,
)
from clew.app.cli.output import (
    format_cost,
    format_count,
    format_duration,
    print_json,
    print_line,
    print_note,
    progress_display,
)
from clew.core.errors import UsageError

if TYPE_CHECKING:
    from clew.core.types import Usage
    from clew.knowledge_base.grid import Grid

#: Cells that are answered before the rest is estimated.
SAMPLE = 3


def grid(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="A text file with one question a line.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Write the grid here: .xlsx or .csv.")
    ] = Path("grid.xlsx"),
    documents: Documents = None,
    llm: Llm = None,
    recipe: Recipe = "default",
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation before a model is called.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Ask every question of every document alone, and write the answers as a spreadsheet.

    A row is a document, a column a question. Each filled cell has a quote from its document, with the page; a cell is
    empty where the document does not hold the answer. The first three cells are answered to estimate the rest.
    Answers are kept in FILE.cells.jsonl: if you stop the command, it continues there, and documents or questions that
    you add later are the only ones that are asked.

      clew grid questions.txt --out grid.xlsx

      clew grid questions.txt -d leases/ --out leases.csv
    """
    from clew.knowledge_base.grid import SUFFIXES, Grid
    from clew.knowledge_base.ingest.report import Event

    if out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot write a grid to '{out.name}'", f"Known endings: {', '.join(SUFFIXES)}")
    try:
        lines = questions.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the questions in {questions}: {error}") from error
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money
    )
    with clew.open(kb) as base:
        cells = out.with_name(f"{out.name}.cells.jsonl")
        table = Grid(base, lines, cells, documents=documents, llm=model, recipe=recipe)
        announce_text_destination("questions and passages", model)
        try:
            _estimate(table, yes, as_json)
            with progress_display(quiet=as_json) as show:
                work = table.fill(progress=lambda done, total: show(Event("grid", done, total)))
        except KeyboardInterrupt:
            table.write(out)
            print_note(
                f"clew: stopped; {format_count(len(table.missing()), 'cell')} left. To continue, run it again"
            )
            raise typer.Exit(EXIT_INTERRUPTED) from None
        table.write(out)
        if as_json:
            print_json(table.to_dict())
            return
        filled = sum(bool(cell.answer) for document in table.documents for cell in table.row(document))
        total = len(table.documents) * len(table.questions)
        cost = format_cost(work.usage)
        print_line(
            f"{filled:,} of {format_count(total, 'cell')} filled, each with a quote"
            + (f" ({cost})" if cost else "")
        )
        print_line(f"Written to {out}")


def _estimate(table: Grid, yes: bool, quiet: bool) -> None:
    """Answer a few cells, print what the rest will take, and ask before a model is paid for it."""
    missing = len(table.missing())
    total = len(table.documents) * len(table.questions)
    size = (
        f"{format_count(len(table.documents), 'document')} x {format_count(len(table.questions), 'question')}"
    )
    if missing < total:
        size += f", {total - missing:,} of {total:,} cells answered before"
    if missing <= SAMPLE:
        print_note(size)
        return
    work = table.fill(SAMPLE)
    rest = missing - SAMPLE
    seconds = rest * work.seconds / SAMPLE
    parts = [f"{size}; {format_count(rest, 'cell')} left", f"about {format_duration(seconds)}"]
    confirm_cost(parts, _scale(work.usage, rest / SAMPLE), yes, quiet, basis=f"as for the first {SAMPLE}")


def _scale(usage: Usage, factor: float) -> Usage:
    return replace(
        usage,
        calls=round(usage.calls * factor),
        tokens_in=round(usage.tokens_in * factor),
        tokens_out=round(usage.tokens_out * factor),
        seconds=usage.seconds * factor,
        money=None if usage.money is None else usage.money * factor,
    )
