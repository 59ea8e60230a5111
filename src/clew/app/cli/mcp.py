"""``clew mcp``: a server of the Model Context Protocol."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.options import (
    BudgetCalls,
    BudgetMoney,
    BudgetTokens,
    Llm,
    announce_search_destination,
    announce_text_destination,
    configured_model,
    describe_encoder_input,
)
from clew.app.cli.output import print_json, print_note
from clew.core.config import knowledge_base_name, knowledge_base_path
from clew.core.errors import UsageError, require_packages

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
            help="A knowledge base. With several (repeat the option), each call names one.",
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
            help="A method that the client may choose; the first is the default. Repeat for several.",
            show_default="default, and all methods that answer from evidence",
        ),
    ] = None,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    config: Annotated[
        bool,
        typer.Option("--config", help="Only print the JSON that a client needs to start this server."),
    ] = False,
) -> None:
    """Let an AI assistant use your knowledge base, as a server of the Model Context Protocol (MCP).

    The assistant starts this command itself and talks to it over standard input and output. Add it to the assistant's
    list of servers. Most take this form; --config prints it with the paths of this machine:

      {"mcpServers": {"clew": {"command": "clew", "args": ["mcp", "--kb", "/home/me/notes.clew"]}}}

    The assistant gets three tools, all read-only: ask (an answer with numbered citations, or that the documents do
    not contain it), search (passages with their places) and show (documents, pages, sections, entities).

      clew mcp --kb notes.clew --config

      clew mcp --kb notes.clew --kb work=reports/base --llm ollama:llama3.1

    Only the language model named here is used; the assistant cannot choose another. Text that leaves this machine is
    announced on stderr, which assistants keep as a log. A model's key goes into the list of servers as "env":
    {"OPENAI_API_KEY": "..."}. A budget is for all questions together.

    Needs the extra serve.
    """
    folders = _name_folders(kbs)
    if config:
        _print_config(folders, llm, recipes)
        return
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money
    )
    with ExitStack() as stack:
        bases = {name: stack.enter_context(clew.open(folder)) for name, folder in folders.items()}
        _serve(bases, model, recipes)


def _serve(
    bases: Mapping[str, KnowledgeBase], model: LanguageModel | None, recipes: Sequence[str] | None
) -> None:
    from clew.app.web.mcp.tools import ToolContext
    from clew.app.web.method_choices import DEFAULT, evidence_methods, validate_recipes

    allowed = validate_recipes(recipes or [DEFAULT, *evidence_methods(model is not None)])
    require_packages("serve", "mcp", part="mcp, which speaks the Model Context Protocol,")
    from clew.app.web.mcp.server import serve_stdio

    announce_text_destination("questions and passages", model)
    announce_search_destination("questions and the queries made of them", list(allowed))
    for base in bases.values():
        announce_text_destination(describe_encoder_input("questions", list(allowed)), base.encoding.encoder())
    if sys.stdin.isatty():
        print_note(
            "Waiting for a client on standard input. A client starts this command itself: clew mcp --help"
        )
    serve_stdio(ToolContext(bases, allowed, model))


def _name_folders(options: Sequence[str] | None) -> dict[str, Path | str]:
    """Return the folder of each base by its name: that of NAME=FOLDER, else the folder's own without ``.clew``.

    Raises UsageError if two bases have the same name.
    """
    folders: dict[str, Path | str] = {}
    for option in options or [""]:
        name, equals, rest = option.partition("=")
        named = bool(equals) and bool(name) and "/" not in name
        folder = knowledge_base_path(rest if named else option)
        name = name if named else knowledge_base_name(folder)
        if name in folders:
            raise UsageError(f"two knowledge bases are named '{name}'", f"Name one: --kb other={folder}")
        folders[name] = folder
    return folders


def _print_config(
    folders: Mapping[str, Path | str], llm: Sequence[str] | None, recipes: Sequence[str] | None
) -> None:
    arguments = ["-m", "clew", "mcp"]
    for name, folder in folders.items():
        arguments += ["--kb", f"{name}={folder}"]
    for option, values in (("--llm", llm), ("--recipe", recipes)):
        for value in values or ():
            arguments += [option, value]
    print_json({"mcpServers": {"clew": {"command": sys.executable, "args": arguments}}})
