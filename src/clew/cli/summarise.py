"""``clew summarise``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.group import EXIT_INTERRUPTED
from clew.cli.options import Documents, Json, Kb, Llm

if TYPE_CHECKING:
    from clew.api.summaries import SummaryEstimate, Faithfulness

#: Unfaithful summaries that are listed; --json lists all.
MAX_LISTED_SUMMARIES = 10


def summarise(
    summariser: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="extractive (the sentences that cover a section best), model (the language model writes them) or "
            "local:NAME, such as local:facebook/bart-large-cnn.",
        ),
    ] = "extractive",
    words: Annotated[int, typer.Option(min=1, metavar="N", help="Words of a summary at most.")] = 64,
    llm: Llm = None,
    check: Annotated[
        bool, typer.Option("--check", help="Make none: say how faithful those are that are there.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    documents: Documents = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Make the summaries of sections that the retriever drill shows to a model.

    Each is made once and kept with its document; stopped, it continues where it was. What it will take is said
    first, and before a model is asked you are. Every number and every name of a summary must occur in its
    section: where a model has invented one, the extractive summary stands in its place, and it is said. Extractive
    summaries need no making: drill makes those that it lacks.

      clew summarise

      clew summarise --summariser model --llm ollama:llama3.1

      clew summarise --summariser model --llm ollama:llama3.1 --check
    """
    import clew
    from clew.api.summaries import SummaryJob
    from clew.cli.output import format_cost, print_note, print_json
    from clew.cli.progress import progress_display
    from clew.cli.remote import configured_model, announce_text_destination
    from clew.ingest import Event

    model = configured_model(llm) if summariser == "model" else None
    with clew.open(kb) as base:
        work = SummaryJob(base, summariser, words, model, documents)
        made = 0
        if not check:
            _say(work.estimate(), yes, as_json)
            announce_text_destination("the sections", model)
            with progress_display(quiet=as_json) as show:
                try:
                    made = work.make(lambda done, total: show(Event("summarise", done, total)))
                except KeyboardInterrupt:
                    print_note("clew: stopped; the summaries made so far are kept. To continue, run it again")
                    raise typer.Exit(EXIT_INTERRUPTED) from None
        found = work.faithfulness()
    if as_json:
        print_json(_shape(found, made))
        return
    if not check:
        print(f"{made:,} made" + (f" ({spent})" if (spent := format_cost(work.usage)) else ""))
    _print(found)


def _say(ahead: SummaryEstimate, yes: bool, quiet: bool) -> None:
    """Say what it will take, and ask before a model is asked. Raises Exit where the answer is no."""
    from clew.cli.output import format_count, format_duration
    from clew.cli.remote import confirm_cost

    if ahead.sections:
        parts = [f"{format_count(ahead.sections, 'section')} to summarise by {ahead.summariser}"]
        parts += [f"about {format_duration(ahead.seconds)}"] if ahead.seconds is not None else []
        confirm_cost(parts, ahead.usage, yes, quiet)


def _shape(found: Faithfulness, made: int) -> dict[str, object]:
    wrong = [
        {"document": one.document, "section": one.section, "invented": list(one.invented)}
        for one in found.unfaithful
    ]
    return {
        "summariser": found.summariser,
        "made": made,
        "summaries": found.summaries,
        "faithful": found.share,
        "unfaithful": wrong,
    }


def _print(found: Faithfulness) -> None:
    from clew.cli.output import format_count

    said = f"{format_count(found.summaries, 'summary')} by {found.summariser}"
    if found.summaries:
        said += f", {found.share:.1%} faithful"
    print(said)
    for one in found.unfaithful[:MAX_LISTED_SUMMARIES]:
        print(f"  not in its section: {', '.join(one.invented)}  ({one.document}, {one.section})")
    if len(found.unfaithful) > MAX_LISTED_SUMMARIES:
        print(f"  and {len(found.unfaithful) - MAX_LISTED_SUMMARIES:,} more: --json lists all")
    if found.unfaithful:
        print("  in their place: the extractive summary")
