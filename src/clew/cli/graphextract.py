"""``clew graph extract``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.group import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_BUDGET
from clew.cli.options import BudgetCalls, BudgetMoney, BudgetTokens, Documents, Json, Kb, Llm

if TYPE_CHECKING:
    from clew.api.extracts import Staleness, ExtractionReport

#: Unreadable replies that are listed; --json lists all.
MAX_LISTED_REPLIES = 10


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
    from clew.api.extracts import GraphExtraction
    from clew.cli.output import format_count, print_note, print_json
    from clew.cli.progress import progress_display
    from clew.cli.remote import confirm_cost, configured_model, announce_text_destination
    from clew.ingest import Event

    # No cache: what is found is kept in the base, and a reply that made no sense must not come again from there.
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money, cache=False
    )
    with clew.open(kb) as base:
        work = GraphExtraction(base, name, model, documents)
        ahead = work.estimate()
        if ahead.passages and model is not None:
            what = f"{format_count(ahead.passages, 'passage')} to read by {ahead.maker}"
            confirm_cost([what], ahead.usage, yes, as_json)
            announce_text_destination("the passages", model)
        with progress_display(quiet=as_json) as show:
            try:
                report = work.run(lambda done, total: show(Event("extract", done, total)))
            except KeyboardInterrupt:
                print_note("clew: stopped; what was found so far is kept. To continue, run it again")
                raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json(_shape(report))
    else:
        _print(report)
    if report.stopped:
        print_note(f"clew: {report.stopped}; {report.left:,} passages are left. To continue, run it again")
        raise typer.Exit(EXIT_BUDGET)
    if report.unreadable:
        raise typer.Exit(EXIT_FAILED)


def describe_staleness(name: str, behind: Staleness) -> str:
    """Return in what an extracted graph is behind its documents, and what brings it up to date; "" for nothing."""
    from clew.cli.output import format_count

    parts = [f"{format_count(behind.gone, 'document')} gone"] if behind.gone else []
    parts += [f"{format_count(behind.new, 'document')} new"] if behind.new else []
    return f"behind its documents ({', '.join(parts)}); run: clew graph extract {name}" if parts else ""


def _print(report: ExtractionReport) -> None:
    from clew.cli.output import format_cost, format_count, format_duration

    graph = report.graph
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    print(f"{report.outcome} {graph.name}: {sizes} in {format_duration(report.seconds)}")
    print(
        f"  {format_count(report.passages, 'passage')} read"
        + (f" ({spent})" if (spent := format_cost(report.usage)) else "")
    )
    if report.incomplete:
        print(f"  {format_count(report.incomplete, 'triple')} left out: a part is empty")
    if report.cut:
        print(f"  {format_count(report.cut, 'reply')} as long as a reply may get: triples at the end may be missing")
    for one in report.unreadable[:MAX_LISTED_REPLIES]:
        print(f"  not read: {one.document} ({one.passage}): {one.problem}")
    if len(report.unreadable) > MAX_LISTED_REPLIES:
        print(f"  and {len(report.unreadable) - MAX_LISTED_REPLIES:,} more: --json lists all")
    if report.unreadable:
        print(f"  {format_count(len(report.unreadable), 'reply')} made no sense; to ask again, run it again")


def _shape(report: ExtractionReport) -> dict[str, Any]:
    from dataclasses import asdict

    from clew.shapes import graph_to_dict

    return graph_to_dict(report.graph) | {
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
