"""Options that several commands share; the language models that they name; and the notices before text leaves this
machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from clew.app.cli.output import format_cost, print_line, print_note
from clew.core.component import parse_recipe
from clew.core.config import environment

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel
    from clew.core.types import Usage
    from clew.knowledge_base.cluster import Cluster


def option(metavar: str, help: str, *names: str, default: str = "", **limits: float) -> Any:
    """Return an option with a value; ``default`` is what ``--help`` calls its default, "" for nothing."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=default or False, **limits)  # type: ignore[arg-type]


Kb: TypeAlias = Annotated[
    str | None,
    option(
        "FOLDER",
        "The folder of the knowledge base, or the address of a copy: s3://BUCKET/PREFIX.",
        "--kb",
        "-b",
        default="$CLEW_HOME, else ./.clew",
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Documents: TypeAlias = Annotated[
    list[str] | None,
    option(
        "DOCUMENT",
        "Search only this document or folder, by file name, path or key. Repeat for several.",
        "--documents",
        "-d",
    ),
]
Anyway: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--anyway", help="Also read a folder of the whole system, such as / or /etc, or the home folder."
    ),
]
Where: TypeAlias = Annotated[
    str,
    option(
        "CONDITION",
        'Search only documents whose fields meet this: "date >= 2021 and tag = lease". Fields: author, date, '
        "tag, folder, kind, language, name, title, pages.",
        "--where",
        "-w",
    ),
]
Llm: TypeAlias = Annotated[
    list[str] | None,
    option(
        "MODEL",
        "The language model: openai:gpt-4o-mini, ollama:llama3.1, http://localhost:8000/v1#name or "
        "replay:file.jsonl. For different models per role, repeat: guide=ollama:llama3.1.",
        "--llm",
        default="$CLEW_LLM, else none",
    ),
]
Recipe: TypeAlias = Annotated[
    str,
    typer.Option(
        "--recipe",
        "--method",
        metavar="RECIPE",
        help="The method, such as default, chain or selfask, or with its options: "
        "'kgp(graph=keywords, guide=tfidf, budget=30)'. See clew recipes.",
    ),
]
Retriever: TypeAlias = Annotated[
    str | None,
    option(
        "NAME",
        "The retriever that the method searches with, if it lets you choose; see clew recipes.",
        "--retriever",
    ),
]
Graphs: TypeAlias = Annotated[
    list[str] | None, option("NAME", "Search only this graph. Repeat for several.", "--graph", "-g")
]
Workers: TypeAlias = Annotated[
    int | None, option("N", "Read files in N processes.", default="one per core", min=1)
]
On: TypeAlias = Annotated[
    str | None,
    option(
        "local|ray://HOST:PORT",
        "Do the work on a Ray cluster (extra scale): that of this machine (clew cluster up) or another.",
        "--on",
        default="this process and its workers",
    ),
]
BudgetCalls: TypeAlias = Annotated[
    int | None, option("N", "Stop before the model is called more than N times.", min=0)
]
BudgetTokens: TypeAlias = Annotated[
    int | None, option("N", "Stop before the model reads and writes more than N tokens.", min=0)
]
BudgetMoney: TypeAlias = Annotated[
    float | None, option("DOLLARS", "Stop before the model costs more than this.", min=0)
]
Record: TypeAlias = Annotated[
    Path | None,
    option("FILE", "Record all model calls, so that --llm replay:FILE repeats the run without a model."),
]
NoCache: TypeAlias = Annotated[
    bool, typer.Option("--no-cache", help="Do not reuse replies that the model gave earlier.")
]


@contextmanager
def cluster_session(place: str | None, limit: int | None = None) -> Iterator[Cluster | None]:
    """Connect to the cluster that ``--on`` names, None for none; ``limit`` is the greatest number of tasks at a time.

    Prints where texts go if that is another machine. Raises UsageError, MissingExtra, RemoteError.
    """
    if place is None:
        yield None
        return
    from clew.knowledge_base.cluster import LOCAL, connect_cluster

    if place != LOCAL:
        print_note(f"documents, passages and questions: sent to {place}")
    with connect_cluster(place, limit) as cluster:
        yield cluster


def limit_option(noun: str) -> Any:
    """Return the option ``--limit`` of a command that prints many of something."""
    return typer.Option(min=0, metavar="N", help=f"Print at most N {noun}; 0 prints all.")


def print_rest(total: int, limit: int) -> None:
    """Print how many more there are than the first ``limit`` (0: all) that were printed."""
    if 0 < limit < total:
        print_line("", f"({total - limit:,} more: --limit 0)")


def configured_model(
    names: Sequence[str] | None,
    *,
    budget_calls: int | None = None,
    budget_tokens: int | None = None,
    budget_money: float | None = None,
    record: Path | None = None,
    cache: bool = True,
    charged: bool = False,
) -> LanguageModel | None:
    """Return the language model of ``--llm`` (or ``CLEW_LLM``), or None.

    ``charged``: a cached reply counts with its original cost, as an evaluation needs. Raises UsageError,
    MissingExtra.
    """
    from clew.knowledge_base import registry

    name = model_name(names)
    if name is None:
        return None
    budget = None
    if (budget_calls, budget_tokens, budget_money) != (None, None, None):
        from clew.models.wrappers import Budget

        budget = Budget(budget_calls, budget_tokens, budget_money)
    return registry.load_language_model(name, cache=cache, charged=charged, budget=budget, record=record)


def model_name(names: Sequence[str] | None) -> str | None:
    """Return the name that ``--llm`` (or ``CLEW_LLM``) gives, of one model or one per role; None for none."""
    return ",".join(names) if names else environment("CLEW_LLM")


def confirm_cost(
    parts: Sequence[str],
    usage: Usage,
    yes: bool,
    quiet: bool,
    basis: str = "if every reply is as long as it may get",
) -> None:
    """Print what work will take; on a terminal, ask for confirmation before a model is paid for.

    ``parts`` describe the work, the first of them first; ``usage`` is what models will cost, and ``basis``
    says how that was estimated. ``yes`` and ``quiet`` do not ask. Raises Exit if the answer is no.
    """
    estimate = [f"about {format_cost(usage)}, {basis}"] if usage.calls else []
    print_note("; ".join([parts[0], *estimate, *parts[1:]]))
    free = not usage.calls or usage.money == 0
    if not (yes or free or quiet) and sys.stdin.isatty() and not typer.confirm("Go on?", err=True):
        raise typer.Exit(0)


def announce_text_destination(what: str, model: LanguageModel | Encoder | None) -> None:
    """Print where a model will receive ``what``, if that is another machine."""
    if model is None:
        return
    from clew.models import describe_destination, leaves_machine

    if leaves_machine(model.name):
        print_note(f"{what}: {describe_destination(model.name)}")


def describe_encoder_input(what: str, recipes: Sequence[str]) -> str:
    """Return what an encoder receives: ``what``, and texts of nodes if one of the recipes embeds them.

    Raises UsageError for a recipe that cannot be read.
    """
    from clew.knowledge_base.registry import embeds_nodes

    embeds = any(embeds_nodes(parse_recipe(recipe)) for recipe in recipes)
    return f"{what} and texts of nodes" if embeds else what


def announce_search_destination(what: str, recipes: Sequence[str]) -> None:
    """Print where a web search will receive ``what``, if one of the recipes searches the web.

    Raises UsageError for a recipe that cannot be read.
    """
    from clew.knowledge_base.registry import searches_web, web_destination

    if any(searches_web(parse_recipe(recipe)) for recipe in recipes) and (place := web_destination()):
        print_note(f"{what}: sent to {place}")
