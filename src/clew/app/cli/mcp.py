"""``clew mcp``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.models import (
    announce_search_destination,
    announce_text_destination,
    configured_model,
    describe_encoder_input,
)
from clew.app.cli.options import BudgetCalls, BudgetMoney, BudgetTokens, Llm
from clew.app.cli.output import print_json, print_note
from clew.core.config import knowledge_base_name, knowledge_base_path
from clew.core.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.protocols import LanguageModel
    from clew.knowledge_base.knowledge_base import KnowledgeBase


def mcp(
    kbs: Annotated[
        list[str] | None,
        typer.Option(
            "--kb",
            metavar="[NAME=]FOLDER",
            help="The knowledge base. Repeat for several: the client then names one in each call.",
            show_default="$CLEW_HOME, else ./.clew",
        ),
    ] = None,
    llm: Llm = None,
    recipes: Annotated[
        list[str] | None,
        typer.Option(
            "--recipe",
            "--method",
            metavar="RECIPE",
            help="A method that the client may choose, the first if it chooses none. Repeat for several.",
            show_default="default, and every method that answers from evidence",
        ),
    ] = None,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    config: Annotated[
        bool,
        typer.Option(
            "--config", help="Print what a client needs to start this server, as JSON, and do nothing else."
        ),
    ] = False,
) -> None:
    """Give programs the tools ask, search and show over a knowledge base: a Model Context Protocol server.

    An assistant that speaks MCP starts this command itself and talks to it over standard input and output. Tell it
    how in its list of servers. Most clients take this form; --config prints it with this machine's paths:

      {"mcpServers": {"clew": {"command": "clew", "args": ["mcp", "--kb", "/home/me/notes.clew"]}}}

    The client then finds three tools, none of which changes anything: ask (an answer with numbered citations, or that
    the documents do not hold it), search (passages with their places), show (documents, pages, sections, entities).

      clew mcp --kb notes.clew --config

      clew mcp --kb notes.clew --kb work=reports/base --llm ollama:llama3.1

    The language model is the one named here and no other; a client cannot choose one. What it is sent is said on
    stderr, which clients keep as their log. A model's key goes into the client's list as "env": {"OPENAI_API_KEY":
    "..."}. Budgets are for all questions together. Needs the extra serve: pip install 'clew[serve]'
    """
    folders = _folders(kbs)
    if config:
        _print_config(folders, llm, recipes)
        return
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money
    )
    with ExitStack() as opened:
        _serve({name: opened.enter_context(clew.open(at)) for name, at in folders.items()}, model, recipes)


def _serve(
    bases: Mapping[str, KnowledgeBase], model: LanguageModel | None, recipes: Sequence[str] | None
) -> None:

    from clew.app.web.mcp.tools import ToolContext
    from clew.app.web.method_choices import DEFAULT, evidence_methods, validate_recipes

    allowed = validate_recipes(recipes or [DEFAULT, *evidence_methods(model is not None)])
    try:
        from clew.app.web.mcp.server import serve_stdio
    except ModuleNotFoundError as error:
        raise MissingExtra("mcp, which speaks the Model Context Protocol,", "serve") from error
    announce_text_destination("questions and passages", model)
    announce_search_destination("questions and the queries made of them", list(allowed))
    for base in bases.values():
        announce_text_destination(describe_encoder_input("questions", list(allowed)), base.encoding.encoder())
    if sys.stdin.isatty():
        print_note(
            "Waiting for a client on standard input. A client starts this command itself: clew mcp --help"
        )
    serve_stdio(ToolContext(bases, allowed, model))


def _folders(given: Sequence[str] | None) -> dict[str, Path]:
    """Return the folder of each base by its name: the one given, else its own without the ending ``.clew``.

    Raises UsageError where two have one name.
    """
    found: dict[str, Path] = {}
    for one in given or [""]:
        name, equals, rest = one.partition("=")
        named = bool(equals) and bool(name) and "/" not in name
        folder = knowledge_base_path(rest if named else one)
        name = name if named else knowledge_base_name(folder)
        if name in found:
            raise UsageError(f"two knowledge bases are named '{name}'", f"Name one: --kb other={folder}")
        found[name] = folder
    return found


def _print_config(
    folders: Mapping[str, Path], llm: Sequence[str] | None, recipes: Sequence[str] | None
) -> None:

    words = ["-m", "clew", "mcp"]
    for name, folder in folders.items():
        words += ["--kb", f"{name}={folder}"]
    for option, values in (("--llm", llm), ("--recipe", recipes)):
        for value in values or ():
            words += [option, value]
    print_json({"mcpServers": {"clew": {"command": sys.executable, "args": words}}})
