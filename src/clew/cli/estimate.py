"""``clew estimate``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.options import Documents, Json, Kb, Llm, Recipe, Retriever, Workers

if TYPE_CHECKING:
    from clew.api import RoleCost
    from clew.ingest import Estimate


def estimate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="What would be added.", metavar="PATH...", show_default=False),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option("--ask", metavar="QUESTION", help="What asking this would cost.", show_default=False),
    ] = None,
    llm: Llm = None,
    recipe: Recipe = "default",
    retriever: Retriever = None,
    documents: Documents = None,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Files of each type to read; 0 reads all of them.")
    ] = 3,
    workers: Workers = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Say what adding files or asking a question would bring and cost, before it happens.

    clew estimate ~/Documents/reports

    clew estimate --ask "Who built the mill?" --llm openai:gpt-4o-mini
    """
    import clew
    from clew.api import estimate_question, open_or_empty
    from clew.catalog import replace_retriever
    from clew.cli.output import print_json
    from clew.cli.remote import model_name

    if not paths and not ask:
        raise typer.BadParameter("name files to add, or a question with --ask")
    if retriever is not None:
        recipe = replace_retriever(recipe, retriever)
    with clew.open(kb) if ask else open_or_empty(kb) as base:
        added = base.estimate(paths, sample=sample, workers=workers) if paths else None
        costs = estimate_question(base, ask, model_name(llm), recipe, documents) if ask else []
    if as_json:
        print_json({"add": asdict(added) if added else None, "ask": [asdict(cost) for cost in costs]})
        return
    if added:
        _print_added(added)
    if ask:
        _print_costs(costs)


def _print_added(added: Estimate) -> None:
    from clew.cli.output import format_count, print_note, format_size

    about = "" if added.exact else "about "
    print(f"{format_count(added.files, 'new or changed file')} ({format_size(added.bytes)}), {added.unchanged:,} unchanged")
    print(
        f"  {about}{format_count(added.documents, 'document')}, {format_count(added.pages, 'page')}, "
        f"{format_count(added.passages, 'passage')}, {format_count(added.tables, 'table')} with {format_count(added.rows, 'row')}"
    )
    print(f"  an encoder would read {added.characters:,} characters; adding calls no language model")
    for failure in added.failed:
        print_note(f"clew: {failure}")


def _print_costs(costs: list[RoleCost]) -> None:
    from clew.cli.output import format_cost

    if not costs:
        print("asking calls no language model: none is set (--llm)")
    for one in costs:
        print(f"{one.role}: {format_cost(one.usage)}, if every reply is as long as it may get")
