"""The models that a command was given, and a word to the person before any text leaves the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel
    from clew.core.types import Usage


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

    ``charged``: what is cached counts as what it cost, as an evaluation needs. Raises UsageError, MissingExtra."""
    from clew.knowledge_base import registry as catalog

    name = model_name(names)
    if name is None:
        return None
    budget = None
    if (budget_calls, budget_tokens, budget_money) != (None, None, None):
        from clew.models.wrappers import Budget

        budget = Budget(budget_calls, budget_tokens, budget_money)
    return catalog.load_language_model(name, cache=cache, charged=charged, budget=budget, record=record)


def model_name(names: Sequence[str] | None) -> str | None:
    """Return the name that ``--llm`` (or ``CLEW_LLM``) gives, one model or one per role; None for none."""
    from clew.core.config import environment

    return ",".join(names) if names else environment("CLEW_LLM")


def confirm_cost(parts: Sequence[str], usage: Usage, yes: bool, quiet: bool) -> None:
    """Say what work will take, and ask before a model is asked for money. Raises Exit where the answer is no.

    ``parts`` say what is to be done; ``usage`` what models will cost at most. ``yes`` and ``quiet`` do not ask.
    """
    import sys

    import typer

    from clew.app.cli.output import format_cost, print_note

    foreseen = [f"about {format_cost(usage)}, if every reply is as long as it may get"] if usage.calls else []
    print_note("; ".join([parts[0], *foreseen, *parts[1:]]))
    free = not usage.calls or usage.money == 0
    if not (yes or free or quiet) and sys.stdin.isatty() and not typer.confirm("Go on?", err=True):
        raise typer.Exit(0)


def announce_text_destination(what: str, model: LanguageModel | Encoder | None) -> None:
    """Say which texts go where, if they leave this machine."""
    if model is None:
        return
    from clew.app.cli.output import print_note
    from clew.models.names import describe_destination, leaves_machine

    if leaves_machine(model.name):
        print_note(f"{what}: {describe_destination(model.name)}")


def describe_encoder_input(what: str, recipes: Sequence[str]) -> str:
    """Return what an encoder is sent: ``what``, and texts of nodes where one of the recipes embeds them.

    Raises UsageError for a recipe that makes no sense.
    """
    from clew.core.recipe import parse_recipe
    from clew.knowledge_base.registry import embeds_nodes

    return f"{what} and texts of nodes" if any(embeds_nodes(parse_recipe(one)) for one in recipes) else what


def announce_search_destination(what: str, recipes: Sequence[str]) -> None:
    """Say which texts a web search is sent, and where, if one of the recipes asks the web.

    Raises UsageError for a recipe that makes no sense.
    """
    from clew.app.cli.output import print_note
    from clew.core.recipe import parse_recipe
    from clew.knowledge_base.registry import searches_web, web_destination

    place = web_destination() if any(searches_web(parse_recipe(one)) for one in recipes) else ""
    if place:
        print_note(f"{what}: sent to {place}")
