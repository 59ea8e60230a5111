"""``clew summarise``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.group import INTERRUPTED
from clew.cli.options import Documents, Json, Kb, Llm

if TYPE_CHECKING:
    from clew.api.summaries import Ahead, Faithfulness

#: Unfaithful summaries that are listed; --json lists all.
LISTED = 10


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
    from clew.api.summaries import Summarising
    from clew.cli.output import cost, note, print_json
    from clew.cli.progress import showing
    from clew.cli.remote import configured_model, say_where_texts_go
    from clew.ingest import Event

    model = configured_model(llm) if summariser == "model" else None
    with clew.open(kb) as base:
        work = Summarising(base, summariser, words, model, documents)
        made = 0
        if not check:
            _say(work.ahead(), yes, as_json)
            say_where_texts_go("the sections", model)
            with showing(quiet=as_json) as show:
                try:
                    made = work.make(lambda done, total: show(Event("summarise", done, total)))
                except KeyboardInterrupt:
                    note("clew: stopped; the summaries made so far are kept. To continue, run it again")
                    raise typer.Exit(INTERRUPTED) from None
        found = work.faithfulness()
    if as_json:
        print_json(_shape(found, made))
        return
    if not check:
        print(f"{made:,} made" + (f" ({spent})" if (spent := cost(work.usage)) else ""))
    _print(found)


def _say(ahead: Ahead, yes: bool, quiet: bool) -> None:
    """Say what it will take, and ask before a model is asked. Raises Exit where the answer is no."""
    from clew.cli.output import count, duration
    from clew.cli.remote import agreed

    if ahead.sections:
        parts = [f"{count(ahead.sections, 'section')} to summarise by {ahead.summariser}"]
        parts += [f"about {duration(ahead.seconds)}"] if ahead.seconds is not None else []
        agreed(parts, ahead.usage, yes, quiet)


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
    from clew.cli.output import count

    said = f"{count(found.summaries, 'summary')} by {found.summariser}"
    if found.summaries:
        said += f", {found.share:.1%} faithful"
    print(said)
    for one in found.unfaithful[:LISTED]:
        print(f"  not in its section: {', '.join(one.invented)}  ({one.document}, {one.section})")
    if len(found.unfaithful) > LISTED:
        print(f"  and {len(found.unfaithful) - LISTED:,} more: --json lists all")
    if found.unfaithful:
        print("  in their place: the extractive summary")
