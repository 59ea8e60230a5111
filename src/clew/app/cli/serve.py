"""``clew serve``: the web app."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.app.cli.options import BudgetCalls, BudgetMoney, BudgetTokens
from clew.app.cli.output import print_line, print_note
from clew.core.addresses import is_loopback_host
from clew.core.config import data_path, environment, knowledge_base_path, projects_path, server_token

if TYPE_CHECKING:
    from clew.app.web.settings import Settings

#: Seconds that threads get to end after the server.
_GRACE = 1.0


def serve(
    kb: Annotated[
        list[str] | None,
        typer.Option(
            "--kb",
            "-b",
            metavar="FOLDER",
            help="A knowledge base; it is created if it does not exist. Or the address of a copy, "
            "s3://BUCKET/PREFIX, which several servers may have. Repeat for several.",
            show_default="$CLEW_HOME, else ./.clew",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on. With another than this machine's, a token is required.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes any free one.")
    ] = 8321,
    llm: Annotated[
        list[str] | None,
        typer.Option(
            "--llm",
            metavar="MODEL",
            help="A language model that users may choose; the first is the default. Repeat for several. Different "
            "models per role: guide=ollama:llama3.1,read=openai:gpt-4o.",
            show_default="$CLEW_LLM, else none",
        ),
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            "--recipe",
            "--method",
            metavar="RECIPE",
            help="A method that users may choose besides the default. Repeat for several.",
            show_default="all that do not search the web",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The encoder of a base that is created (none: search by words and graph alone).",
            show_default="clew:hops, which comes with clew",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Require this token. If other machines can connect and none is given, clew makes one.",
            show_default="$CLEW_TOKEN, else none",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Another host name that the server answers to, such as that of a proxy. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", help="Allow questions only; nobody can add or remove documents or graphs."
        ),
    ] = False,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
) -> None:
    """Start the web app: add documents, ask questions, and see the evidence on the page it comes from.

    Without --kb, the projects that were made in the app are served, too.

    Prints its address and runs until Ctrl-C. By default the server accepts local connections only. With --host,
    other machines can connect; they need the token that is printed. Users can choose only the models that you name
    here, and a budget applies to each question. The JSON API is described at /api/docs; OpenAI clients can use /v1.

      clew serve

      clew serve --kb reports.clew --kb films.clew --llm ollama:llama3.1

      clew serve --host 0.0.0.0 --read-only

      curl -s localhost:8321/api/bases

    Needs the extra serve.
    """
    from clew.app.web import require_extra

    require_extra()
    from clew.app.web.bases import find_storage_folder
    from clew.app.web.settings import (
        QuestionBudget,
        Settings,
        name_bases,
        name_models,
        new_token,
    )

    token = token or server_token()
    if token is None and not is_loopback_host(host):
        token = new_token()
    default_llm = environment("CLEW_LLM")
    models = llm or ([default_llm] if default_llm else [])
    places = [knowledge_base_path(place) for place in kb] if kb else [knowledge_base_path(), *find_projects()]
    # In the order given: the first is the default of some interfaces.
    folders = [find_storage_folder(place) if isinstance(place, str) else place for place in places]
    addresses = {
        folder: place for folder, place in zip(folders, places, strict=True) if isinstance(place, str)
    }
    settings = Settings(
        bases=name_bases(folders, addresses),
        addresses=addresses,
        projects=projects_path(),
        own_settings=data_path() / "settings.json",
        models=name_models(models),
        encoder=encoder,
        recipes=tuple(recipe or ()),
        host=host,
        port=port,
        hosts=tuple(allow_host or ()),
        token=token,
        read_only=read_only,
        budget=QuestionBudget(budget_calls, budget_tokens, budget_money),
    )
    for model in settings.models:
        if model.leaves:
            print_note(f"the questions and passages that {model.id} reads: {model.goes}")
    _run(settings)


def find_projects() -> list[Path]:
    """Return the folders of the projects that were made in the app."""
    from clew.store.store import Store

    folder = projects_path()
    return sorted(path for path in folder.iterdir() if Store.exists(path)) if folder.is_dir() else []


def _run(settings: Settings) -> None:
    from clew.app.web.application import RunningServer

    try:
        with RunningServer(settings) as server:
            print_line(f"clew: {server.url}", flush=True)
            if settings.token is not None:
                print_note(f"clew: token: {settings.token}")
            for name, path in settings.bases.items():
                print_note(f"clew: {name}: {settings.addresses.get(path, path)}")
            server.run()
    except KeyboardInterrupt:
        _end_process()
        raise
    _end_process()


def _end_process() -> None:
    """End the process at once if a thread still waits for a model: Python would wait for the thread.

    All that matters is on the disk, and the next server marks the question as interrupted.
    """
    current = threading.current_thread()
    threads = [thread for thread in threading.enumerate() if thread is not current and not thread.daemon]
    for thread in threads:
        thread.join(_GRACE / len(threads))
    if any(thread.is_alive() for thread in threads):
        os._exit(130)
