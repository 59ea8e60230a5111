"""``clew graph extract``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.group import FAILED, INTERRUPTED, SPENT
from clew.cli.options import BudgetCalls, BudgetMoney, BudgetTokens, Documents, Json, Kb, Llm

if TYPE_CHECKING:
    from clew.api.extracts import Behind, ExtractReport

#: Unreadable replies that are listed; --json lists all.
LISTED = 10


def extract(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the graph is called.", show_default=False)
    ],
    llm: Llm = None,
    documents: Documents = None,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Extract a graph from the documents: a language model writes down the triples of every passage.

    What it finds in a passage is kept with the document, so a passage is asked about once: stopped, it continues, and
    after more documents were added, run it again. Every triple says which passage it is from. What a removed document
    said leaves the graph with it. What it will take is said first, and before a model is asked you are.

    A reply that cannot be read is named, and its passage asked about again next time (exit status 1).

      clew graph extract notes --llm ollama:llama3.1

      clew graph extract notes          brings it up to date, where no passage is new

      clew graph show notes "Maria Hale"
    """
    import clew
    from clew.api.extracts import Extracting
    from clew.cli.output import count, note, print_json
    from clew.cli.progress import showing
    from clew.cli.remote import agreed, configured_model, say_where_texts_go
    from clew.ingest import Event

    # No cache: what is found is kept in the base, and a reply that made no sense must not come again from there.
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money, cache=False
    )
    with clew.open(kb) as base:
        work = Extracting(base, name, model, documents)
        ahead = work.ahead()
        if ahead.passages and model is not None:
            what = f"{count(ahead.passages, 'passage')} to read by {ahead.maker}"
            agreed([what], ahead.usage, yes, as_json)
            say_where_texts_go("the passages", model)
        with showing(quiet=as_json) as show:
            try:
                report = work.make(lambda done, total: show(Event("extract", done, total)))
            except KeyboardInterrupt:
                note("clew: stopped; what was found so far is kept. To continue, run it again")
                raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(_shape(report))
    else:
        _print(report)
    if report.stopped:
        note(f"clew: {report.stopped}; {report.left:,} passages are left. To continue, run it again")
        raise typer.Exit(SPENT)
    if report.unreadable:
        raise typer.Exit(FAILED)


def late(name: str, behind: Behind) -> str:
    """Return in what an extracted graph is behind its documents, and what brings it up to date; "" for nothing."""
    from clew.cli.output import count

    parts = [f"{count(behind.gone, 'document')} gone"] if behind.gone else []
    parts += [f"{count(behind.new, 'document')} new"] if behind.new else []
    return f"behind its documents ({', '.join(parts)}); run: clew graph extract {name}" if parts else ""


def _print(report: ExtractReport) -> None:
    from clew.cli.output import cost, count, duration

    graph = report.graph
    sizes = f"{count(graph.nodes, 'node')}, {count(graph.edges, 'edge')}"
    print(f"{report.outcome} {graph.name}: {sizes} in {duration(report.seconds)}")
    print(
        f"  {count(report.passages, 'passage')} read"
        + (f" ({spent})" if (spent := cost(report.usage)) else "")
    )
    if report.incomplete:
        print(f"  {count(report.incomplete, 'triple')} left out: a part is empty")
    if report.cut:
        print(f"  {count(report.cut, 'reply')} as long as a reply may get: triples at the end may be missing")
    for one in report.unreadable[:LISTED]:
        print(f"  not read: {one.document} ({one.passage}): {one.problem}")
    if len(report.unreadable) > LISTED:
        print(f"  and {len(report.unreadable) - LISTED:,} more: --json lists all")
    if report.unreadable:
        print(f"  {count(len(report.unreadable), 'reply')} made no sense; to ask again, run it again")


def _shape(report: ExtractReport) -> dict[str, Any]:
    from dataclasses import asdict

    from clew.shapes import graph_shape

    return graph_shape(report.graph) | {
        "outcome": report.outcome,
        "passages": report.passages,
        "unreadable": [asdict(one) for one in report.unreadable],
        "incomplete": report.incomplete,
        "cut": report.cut,
        "left": report.left,
        "usage": asdict(report.usage),
        "stopped": report.stopped or None,
        "seconds": round(report.seconds, 3),
    }
