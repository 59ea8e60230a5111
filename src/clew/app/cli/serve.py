"""``clew serve``."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.app.cli.options import BudgetCalls, BudgetMoney, BudgetTokens
from clew.app.cli.output import print_note
from clew.core.config import environment, knowledge_base_path, server_token

if TYPE_CHECKING:
    from clew.app.web.settings import Settings

#: Seconds that threads get to end when the server has ended.
_PARTING = 1.0


def serve(
    kb: Annotated[
        list[Path] | None,
        typer.Option(
            "--kb",
            metavar="FOLDER",
            help="A knowledge base; made if there is none. Repeat for several.",
            show_default="$CLEW_HOME, else ./.clew",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Other machines need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: any that is free.")] = 8321,
    llm: Annotated[
        list[str] | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            help="A language model that may be chosen, as clew ask takes it; the first is the default. Repeat for "
            "several; roles in one: guide=ollama:llama3.1,read=openai:gpt-4o.",
            show_default="$CLEW_LLM, else none",
        ),
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            "--recipe",
            "--method",
            metavar="RECIPE",
            help="A method that may be chosen, besides the default. Repeat for several.",
            show_default="all that search no web",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The encoder of a base that is made (none: search by words and graph alone).",
            show_default="clew:hops, which comes with clew",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Refuse everybody who does not give it. One is made where other machines can come in.",
            show_default="$CLEW_TOKEN, else none",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Another name by which the server is reached, such as that of a proxy. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Questions only: no document or graph is added or removed.")
    ] = False,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
) -> None:
    r"""Open the web app: drop documents in, ask, and see each hop of the thread on the real page.

    It prints its address and runs until Ctrl-C. Only this machine can reach it; with --host, others can, who then
    need the token that it prints. Models are those that you name here: a page cannot name another. A budget holds
    for each question. Its JSON API is described at /api/docs.

      clew serve

      clew serve --kb reports.clew --kb films.clew --llm ollama:llama3.1

      clew serve --host 0.0.0.0 --read-only

      curl -s localhost:8321/api/bases

    Needs the extra serve: pip install 'clew\[serve]'
    """
    from clew.app.web import require_extra

    require_extra()
    from clew.app.web.settings import (
        QuestionBudget,
        Settings,
        is_loopback_host,
        name_bases,
        name_models,
        new_token,
    )

    given = token or server_token()
    if given is None and not is_loopback_host(host):
        given = new_token()
    models = llm or [one for one in [environment("CLEW_LLM")] if one]
    settings = Settings(
        bases=name_bases(kb or [knowledge_base_path()]),
        models=name_models(models),
        encoder=encoder,
        recipes=tuple(recipe or ()),
        host=host,
        port=port,
        hosts=tuple(allow_host or ()),
        token=given,
        read_only=read_only,
        budget=QuestionBudget(budget_calls, budget_tokens, budget_money),
    )
    for model in settings.models:
        if model.leaves:
            print_note(f"the questions and passages that {model.id} reads: {model.goes}")
    _run(settings)


def _run(settings: Settings) -> None:
    from clew.app.web.running import RunningServer

    try:
        with RunningServer(settings) as serving:
            print(f"clew: {serving.url}", flush=True)
            if settings.token is not None:
                print_note(f"clew: token: {settings.token}")
            for name, path in settings.bases.items():
                print_note(f"clew: {name}: {path}")
            serving.run()
    except KeyboardInterrupt:
        _leave()
        raise
    _leave()


def _leave() -> None:
    """End the process at once where a thread still waits for a model: Python would wait for that one. All that is to
    be kept is on the disk, and the next server says that the question was interrupted."""
    others = [
        one for one in threading.enumerate() if one is not threading.current_thread() and not one.daemon
    ]
    for one in others:
        one.join(_PARTING / len(others))
    if any(one.is_alive() for one in others):
        os._exit(130)
