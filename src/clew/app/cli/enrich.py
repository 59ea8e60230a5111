"""``clew annotate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED
from clew.app.cli.options import Documents, Json, Kb, Llm

if TYPE_CHECKING:
    from clew.knowledge_base.summaries import Faithfulness, SummaryEstimate


def annotate(
    service: Annotated[str, typer.Option(metavar="NAME", help="wat or tagme.")] = "wat",
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of the passages.")] = "en",
    url: Annotated[
        str, typer.Option(metavar="URL", help="Another server of the same kind.", show_default=False)
    ] = "",
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Find the Wikipedia entities of every passage with the public service WAT or TAGME.

    The texts of all passages are sent to that service, at most two a second; how many there are is said
    first. It needs a free token of the TagMe VRE at D4Science in CLEW_TAGME_TOKEN. Stopped, it continues
    where it was. The graph that comes of it is the paper's:

      clew annotate

      clew ask "..." --recipe "kgp(graph=entities(prior=0.8))"
    """
    import clew
    from clew.app.cli.output import format_count, print_json, print_note
    from clew.app.cli.progress import progress_display
    from clew.knowledge_base.ingest.report import Event

    with clew.open(kb) as base:
        waiting, target = base.count_unannotated(service, language, url)
        if waiting:
            print_note(f"the texts of {format_count(waiting, 'passage')} go to {target}")
        with progress_display(quiet=as_json) as show:
            try:
                asked = base.annotate(
                    service, language, url, lambda done, total: show(Event("annotate", done, total))
                )
            except KeyboardInterrupt:
                print_note("clew: stopped; what was annotated so far is kept. To continue: clew annotate")
                raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json({"service": service, "annotated": asked})
    else:
        print(f"{format_count(asked, 'passage')} annotated by {service}")


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
    from clew.app.cli.models import announce_text_destination, configured_model
    from clew.app.cli.output import format_cost, print_json, print_note
    from clew.app.cli.progress import progress_display
    from clew.knowledge_base.ingest.report import Event
    from clew.knowledge_base.summaries import SummaryJob

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
    from clew.app.cli.models import confirm_cost
    from clew.app.cli.output import format_count, format_duration

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
    from clew.app.cli.output import format_count

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


# MERGED: ``clew summarise``.
