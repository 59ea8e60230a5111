"""``clew annotate`` and ``clew summarise``: jobs that add entities and summaries to a knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.command_group import interruptible
from clew.app.cli.options import (
    Documents,
    Json,
    Kb,
    Llm,
    announce_text_destination,
    configured_model,
    confirm_cost,
    option,
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

if TYPE_CHECKING:
    from clew.knowledge_base.summaries import Faithfulness, SummaryEstimate


#: Unfaithful summaries that are listed; --json lists all.
MAX_LISTED_SUMMARIES = 10


def annotate(
    service: Annotated[str, typer.Option(metavar="NAME", help="The service: wat or tagme.")] = "wat",
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of the passages.")] = "en",
    url: Annotated[str, option("URL", "The address of another server of the same service.")] = "",
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Link passages to Wikipedia entities with the public service WAT or TAGME.

    This sends the texts of all passages to the service, at most two per second; clew first prints how many. You need
    a free token of the TagMe VRE at D4Science in CLEW_TAGME_TOKEN. If you stop it, it continues there next time. The
    entities make up the graph 'entities' of the KGP paper:

      clew annotate

      clew ask "..." --recipe "kgp(graph=entities(prior=0.8))"
    """
    from clew.knowledge_base.ingest.report import Event

    with clew.open(kb) as base:
        remaining, target = base.count_unannotated(service, language, url)
        if remaining:
            print_note(f"the texts of {format_count(remaining, 'passage')} go to {target}")
        with (
            progress_display(quiet=as_json) as show,
            interruptible("what was annotated so far is kept. To continue: clew annotate"),
        ):
            annotated = base.annotate(
                service, language, url, lambda done, total: show(Event("annotate", done, total))
            )
    if as_json:
        print_json({"service": service, "annotated": annotated})
    else:
        print_line(f"{format_count(annotated, 'passage')} annotated by {service}")


def summarise(
    summariser: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="extractive (sentences of the section), model (written by the language model) or local:NAME, "
            "such as local:facebook/bart-large-cnn.",
        ),
    ] = "extractive",
    words: Annotated[int, typer.Option(min=1, metavar="N", help="At most N words per summary.")] = 64,
    llm: Llm = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write no summaries; check the existing ones.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation before a model is called.")
    ] = False,
    documents: Documents = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Write the summaries of sections that the retriever drill shows to a model.

    A summary is written once and stored with its document. If you stop the command, it continues there next time.
    Prints an estimate and asks for confirmation before calling a model. Every number and name in a summary must occur
    in its section; if a model invents one, clew reports it and uses the extractive summary instead. Extractive
    summaries need no preparation: drill makes them when it needs them.

      clew summarise

      clew summarise --summariser model --llm ollama:llama3.1

      clew summarise --summariser model --llm ollama:llama3.1 --check
    """
    from clew.knowledge_base.ingest.report import Event
    from clew.knowledge_base.summaries import SummaryJob

    model = configured_model(llm) if summariser == "model" else None
    with clew.open(kb) as base:
        job = SummaryJob(base, summariser, words, model, documents)
        written = 0
        if not check:
            _confirm(job.estimate(), yes, as_json)
            announce_text_destination("the sections", model)
            with (
                progress_display(quiet=as_json) as show,
                interruptible("the summaries made so far are kept. To continue, run it again"),
            ):
                written = job.make(lambda done, total: show(Event("summarise", done, total)))
        faithfulness = job.faithfulness()
    if as_json:
        print_json(_faithfulness_to_dict(faithfulness, written))
        return
    if not check:
        cost = format_cost(job.usage)
        print_line(f"{written:,} made" + (f" ({cost})" if cost else ""))
    _print_faithfulness(faithfulness)


def _confirm(estimate: SummaryEstimate, yes: bool, quiet: bool) -> None:
    """Print what the summaries will take, and ask before a model is called. Raises Exit if the answer is no."""
    if estimate.sections:
        parts = [f"{format_count(estimate.sections, 'section')} to summarise by {estimate.summariser}"]
        if estimate.seconds is not None:
            parts.append(f"about {format_duration(estimate.seconds)}")
        confirm_cost(parts, estimate.usage, yes, quiet)


def _faithfulness_to_dict(faithfulness: Faithfulness, written: int) -> dict[str, object]:
    return {
        "summariser": faithfulness.summariser,
        "made": written,
        "summaries": faithfulness.summaries,
        "faithful": faithfulness.share,
        "unfaithful": [
            {"document": summary.document, "section": summary.section, "invented": list(summary.invented)}
            for summary in faithfulness.unfaithful
        ],
    }


def _print_faithfulness(faithfulness: Faithfulness) -> None:
    share = f", {faithfulness.share:.1%} faithful" if faithfulness.summaries else ""
    print_line(f"{format_count(faithfulness.summaries, 'summary')} by {faithfulness.summariser}{share}")
    unfaithful = faithfulness.unfaithful
    for summary in unfaithful[:MAX_LISTED_SUMMARIES]:
        invented = ", ".join(summary.invented)
        print_line(f"  not in its section: {invented}  ({summary.document}, {summary.section})")
    if len(unfaithful) > MAX_LISTED_SUMMARIES:
        print_line(f"  and {len(unfaithful) - MAX_LISTED_SUMMARIES:,} more: --json lists all")
    if unfaithful:
        print_line("  in their place: the extractive summary")
